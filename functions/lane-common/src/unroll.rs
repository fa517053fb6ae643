//! Loops over what the run brings forth: taken apart when they begin.

use slipway_engine::directive::Directive;
use slipway_engine::lane::{Attempt, LanePlan, Opening};
use slipway_engine::runs::spec_of_turns;
use slipway_engine::wake::tell_end;
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::unroll::{RunTurn, turns};
use slipway_plan::{Node, ParallelPlan};
use slipway_steps::Expressions;

use crate::HandlerError;
use crate::expressions::NodeExpressions;
use crate::walk::Walk;

impl Walk<'_> {
    /// Records the turns of a loop with the start of its block, and reads the plan as it is with them. Where none of them
    /// would run, for the reason `unmet`, it matters to nobody that they cannot be told.
    pub(crate) async fn unroll(
        &mut self,
        lane: &LanePlan<'_>,
        parallel: &ParallelPlan,
        attempt: Attempt,
        unmet: Option<String>,
    ) -> Result<Option<Directive>, HandlerError> {
        let block = Opening::Parallel(parallel);
        let turns = match (self.turns_of(parallel), unmet) {
            (Ok(turns), _) => turns,
            (Err(_), Some(reason)) => {
                let node = Node::Parallel(parallel.clone());
                return self.skip(&node, attempt, (&reason, true)).await;
            }
            (Err(message), None) => {
                let failure = Failure {
                    error: ErrorType::Unknown,
                    message: format!("The loop of {}: {message}.", parallel.id),
                    left_behind: None,
                };
                return self.fail_undecided(lane, block, attempt, failure).await;
            }
        };
        let mut record = self.writer().begins(block, attempt, spec_of_turns(&turns));
        if turns.is_empty() {
            record.status = Status::Skipped;
            record.ended_ms = Some(record.started_ms);
        }
        self.begin(record).await?;
        // What follows depends on it.
        self.write().await?;
        if turns.is_empty() && !self.of_run.plan.barriers.is_empty() {
            // Who waits at a barrier for the element that loops waits for nobody.
            let run = &self.event.run_id;
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
}
