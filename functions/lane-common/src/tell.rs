//! What others are told of steps: people who wait for news, and who is asked.

use slipway_engine::notify::{Event, step_failed};
use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_plan::StepPlan;
use slipway_steps::approval::{self, HARNESS_APPROVAL};
use slipway_store::record::NodeRecord;

use crate::walk::Walk;

impl Walk<'_> {
    /// Tells that a person is waited for: before it is recorded, because nobody comes back to tell it.
    pub(crate) async fn tell_waits(&self, node: &NodeId, attempt: u32) {
        let event = Event::WaitingForUserAction {
            stage_id: self.lane.stage.clone(),
            node_id: node.clone(),
            attempt,
        };
        self.tell(event).await;
    }

    /// Tells the user groups of an approval that it waits for them, or that it was answered; other steps have none.
    pub(crate) async fn tell_approvers(
        &self,
        step: &StepPlan,
        record: &NodeRecord,
        answered: bool,
    ) {
        if step.step_type != HARNESS_APPROVAL {
            return;
        }
        let groups = approval::groups(&record.spec);
        let (stage_id, node_id, attempt) =
            (self.lane.stage.clone(), step.id.clone(), record.attempt);
        let event = match answered {
            true => Event::ApprovalAnswered {
                stage_id,
                node_id,
                attempt,
            },
            false => Event::ApprovalRequired {
                stage_id,
                node_id,
                attempt,
            },
        };
        let (run, scope) = (&self.of_run.run.id, &self.of_run.plan.scope);
        let runs = &self.deps.runs;
        runs.tell_approvers(run, scope, &groups, &event).await;
    }

    /// Tells that a step has failed, where it has: before it is recorded, because nobody comes back to tell it.
    pub(crate) async fn tell_failed(&self, node: &NodeId, attempt: u32, status: Status) {
        if !step_failed(status) {
            return;
        }
        let event = Event::StepFailed {
            stage_id: self.lane.stage.clone(),
            node_id: node.clone(),
            attempt,
        };
        self.tell(event).await;
    }

    async fn tell(&self, event: Event) {
        let (run, plan) = (&self.of_run.run.id, &self.of_run.plan);
        self.deps.runs.tell(run, plan, &[event]).await;
    }
}
