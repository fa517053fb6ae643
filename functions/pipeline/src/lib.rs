//! The function of the pipeline and stage machines: `Plan`, `PlanMore`, `RollBack` and `Finish`, `Begin`,
//! `TimeToStart`, `AwaitStart`, `HoldInfrastructure` and `End`; and of the schedule that starts accepted runs. Each is one use case of the engine.

mod wiring;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_engine::begin::{stage_begin, stage_hold};
use slipway_engine::by_hand::{await_start, time_to_start};
use slipway_engine::end::{Finished, finish_run, stage_end};
use slipway_engine::error_name::ErrorName;
use slipway_engine::intake::handler::Handler;
use slipway_engine::plan_run::plan_run;
use slipway_engine::rollback::roll_back_run;
use slipway_engine::runs::Runs;
use slipway_engine::stage_loop::plan_more;
use slipway_engine::unstarted::start_accepted;
use slipway_model::id::{RunId, StageId};
use slipway_plan::StagePlan;

pub use slipway_engine::error::HandlerError;
pub use wiring::{ConfigError, wire};

/// What lives as long as the function.
#[derive(Clone)]
pub struct Deps {
    /// Store, Step Functions and clock.
    pub runs: Runs,
    /// The functions of the swimlanes.
    pub lanes: LaneFunctions,
    /// Has triggers on the end of a run decide at once.
    pub handler: Handler,
}

/// Names or ARNs of the functions that walk lanes.
#[derive(Clone, Debug)]
pub struct LaneFunctions {
    /// Of lanes that need no swimlane of their own.
    pub common: String,
    /// Of Auto Scaling lanes.
    pub asg: String,
    /// Of ECS lanes.
    pub ecs: String,
    /// Of AWS Lambda lanes.
    pub lambda: String,
}

impl LaneFunctions {
    /// The function of a stage's lanes.
    pub fn of(&self, stage: &StagePlan) -> String {
        match stage.deployment_type.as_deref() {
            Some("Asg") => self.asg.clone(),
            Some("ECS") => self.ecs.clone(),
            Some("AwsLambda") => self.lambda.clone(),
            _ => self.common.clone(),
        }
    }
}

/// What a state of the machines, or the schedule, asks for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// `Plan`.
    Plan {
        /// The run.
        run_id: RunId,
    },
    /// `PlanMore`.
    PlanMore {
        /// The run.
        run_id: RunId,
        /// The part of it whose stages ran last.
        part: usize,
    },
    /// `Finish`.
    Finish {
        /// The run.
        run_id: RunId,
        /// The part of it whose stages ran last.
        #[serde(default)]
        part: usize,
        /// Whether the parts after it could not be planned.
        #[serde(default)]
        stopped: bool,
        /// Whether its stages were rolled back, or could not be.
        rolled_back: bool,
    },
    /// `RollBack`.
    RollBack {
        /// The run.
        run_id: RunId,
    },
    /// `Begin`.
    Begin {
        /// The run.
        run_id: RunId,
        /// The stage.
        stage_id: StageId,
        /// Which attempt of it.
        attempt: u32,
    },
    /// `HoldInfrastructure`.
    Hold {
        /// The run.
        run_id: RunId,
        /// The stage.
        stage_id: StageId,
        /// Which attempt of it.
        attempt: u32,
        /// Completes the state.
        token: String,
    },
    /// `TimeToStart`.
    TimeToStart {
        /// The run.
        run_id: RunId,
        /// The stage.
        stage_id: StageId,
        /// Which attempt of it.
        attempt: u32,
    },
    /// `AwaitStart`.
    AwaitStart {
        /// The run.
        run_id: RunId,
        /// The stage.
        stage_id: StageId,
        /// Which attempt of it.
        attempt: u32,
        /// Completes the state.
        token: String,
    },
    /// `End`.
    End {
        /// The run.
        run_id: RunId,
        /// The stage.
        stage_id: StageId,
        /// Which attempt of it.
        attempt: u32,
        /// Whether its rollback steps ran, or could not.
        rolled_back: bool,
    },
    /// The schedule: what was accepted and has not begun is started.
    StartAccepted,
}

/// Carries out what a state asks for.
pub async fn handle(deps: &Deps, event: Event) -> Result<Value, HandlerError> {
    let runs = &deps.runs;
    match event {
        Event::Plan { run_id } => told(plan_run(runs, &run_id).await?),
        Event::PlanMore { run_id, part } => told(plan_more(runs, &run_id, part).await?),
        Event::Finish {
            run_id,
            part,
            stopped,
            rolled_back,
        } => {
            let finished = Finished {
                part,
                stopped,
                rolled_back,
            };
            let status = finish_run(runs, &deps.handler, &run_id, finished).await?;
            Ok(json!({"status": status}))
        }
        Event::RollBack { run_id } => {
            let function_of = |stage: &StagePlan| deps.lanes.of(stage);
            told(roll_back_run(runs, &run_id, &function_of).await?)
        }
        Event::Begin {
            run_id,
            stage_id,
            attempt,
        } => {
            let function_of = |stage: &StagePlan| deps.lanes.of(stage);
            told(stage_begin(runs, &run_id, &stage_id, attempt, &function_of).await?)
        }
        Event::Hold {
            run_id,
            stage_id,
            attempt,
            token,
        } => {
            stage_hold(runs, &run_id, &stage_id, attempt, &token).await?;
            Ok(json!({}))
        }
        Event::TimeToStart {
            run_id,
            stage_id,
            attempt,
        } => told(time_to_start(runs, &run_id, &stage_id, attempt).await?),
        Event::AwaitStart {
            run_id,
            stage_id,
            attempt,
            token,
        } => {
            await_start(runs, &run_id, &stage_id, attempt, &token).await?;
            Ok(json!({}))
        }
        Event::End {
            run_id,
            stage_id,
            attempt,
            rolled_back,
        } => {
            let status = stage_end(runs, &run_id, &stage_id, attempt, rolled_back).await?;
            Ok(json!({"status": status}))
        }
        Event::StartAccepted => {
            let swept = start_accepted(runs).await?;
            Ok(json!({"started": swept.started, "givenUp": swept.given_up}))
        }
    }
}

/// Answers one event, as Lambda and local mode send it.
pub async fn answer(deps: &Deps, event: Value) -> Result<Value, HandlerError> {
    let event: Event = serde_json::from_value(event).map_err(|error| {
        let message = format!("the event of the pipeline function cannot be read: {error}");
        HandlerError::new(ErrorName::InvalidRequest, message)
    })?;
    // Boxed: the futures of the SDK clients nest deeper than the compiler likes to lay out.
    Box::pin(handle(deps, event)).await
}

fn told(answer: impl Serialize) -> Result<Value, HandlerError> {
    serde_json::to_value(answer).map_err(|error| {
        let message = format!("the answer cannot be written: {error}");
        HandlerError::new(ErrorName::Internal, message)
    })
}
