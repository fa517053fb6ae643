//! Loops over what the run brings forth: taken apart when they begin.

use slipway_engine::directive::Directive;
use slipway_engine::lane::{Attempt, Opening};
use slipway_engine::runs::spec_of_turns;
use slipway_engine::wake::tell_end;
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::unroll::{RunTurn, turns};
use slipway_plan::{Node, ParallelPlan};
use slipway_steps::Expressions;
use slipway_store::record::NodeRecord;

use crate::HandlerError;
use crate::expressions::NodeExpressions;
use crate::walk::Walk;

impl Walk<'_> {
    /// Records the turns of a loop with the start of its block, and reads the plan as it is with them.
    pub(crate) async fn unroll(
        &mut self,
        parallel: &ParallelPlan,
        attempt: Attempt,
    ) -> Result<Option<Directive>, HandlerError> {
        let mut is_empty = false;
        match self.turns_of(parallel) {
            Ok(turns) => {
                is_empty = turns.is_empty();
                let spec = spec_of_turns(&turns);
                let record = self
                    .writer()
                    .begins(Opening::Parallel(parallel), attempt, spec);
                self.begin_container(record).await?;
            }
            Err(message) => {
                let failure = Failure {
                    error: ErrorType::Unknown,
                    message: format!("The loop of {}: {message}.", parallel.id),
                    left_behind: None,
                };
                let node = Node::Parallel(parallel.clone());
                let writer = self.writer();
                let failed = writer.ends_unrun(&node, attempt, Status::Errored, Some(failure));
                self.begin_container(failed).await?;
            }
        }
        let run = &self.event.run_id;
        if is_empty && !self.of_run.plan.barriers.is_empty() {
            // Who waits at a barrier for the element that loops waits for nobody.
            tell_end(&self.deps.runs, run, &parallel.id, attempt.number).await?;
        }
        self.reload().await?;
        Ok(None)
    }

    /// Writes what has happened, and reads the plan as it is with it.
    pub(crate) async fn reload(&mut self) -> Result<(), HandlerError> {
        self.write().await?;
        let (run, stage) = (&self.event.run_id, &self.lane.stage);
        self.of_run = self.deps.runs.load_stage(run, stage).await?;
        self.read_nodes().await
    }

    fn turns_of(&self, parallel: &ParallelPlan) -> Result<Vec<RunTurn>, String> {
        let Some(each) = &parallel.each else {
            return Err("it is none over what the run brings forth".to_owned());
        };
        let expressions = NodeExpressions::new(&self.of_run, &self.nodes, &parallel.id, &self.tags);
        let turns = turns(each, expressions.context())?;
        self.of_run.plan.check_turns(parallel, turns.len())?;
        Ok(turns)
    }

    /// Writes the record of a block that begins, with all that happened before: what follows depends on it.
    async fn begin_container(&mut self, record: NodeRecord) -> Result<(), HandlerError> {
        self.begin(record).await?;
        self.write().await
    }
}
