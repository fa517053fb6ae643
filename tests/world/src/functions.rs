//! The functions behind the engine's Lambda port.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use slipway_asl::{Lambda, LambdaError};
use slipway_engine::error::HandlerError;
use slipway_engine::intake::handler::Handler;
use slipway_engine::runs::Runs;
use slipway_fn_pipeline::LaneFunctions;
use slipway_steps::StepServices;
use tokio::sync::Notify;

use crate::stillness::still;
use crate::tap::{Invocation, LIFE, Tap};

/// A function at work.
type Called<'a> = Pin<Box<dyn Future<Output = Result<Value, HandlerError>> + Send + 'a>>;

/// The functions; wired after the engine is there, because they call it. What they hold holds them, until the world
/// lets go of it.
pub(crate) struct Functions {
    wired: Mutex<Option<Arc<Wired>>>,
    tap: Arc<dyn Tap>,
    /// Whether time stands still meanwhile.
    still: bool,
}

struct Wired {
    pipeline: slipway_fn_pipeline::Deps,
    lane: slipway_fn_lane_common::Deps,
    asg: slipway_fn_lane_common::Deps,
    ecs: slipway_fn_lane_common::Deps,
    lambda: slipway_fn_lane_common::Deps,
    notify: slipway_fn_notify::Deps,
}

impl Functions {
    pub(crate) fn new(tap: Arc<dyn Tap>, still: bool) -> Self {
        Self {
            wired: Mutex::default(),
            tap,
            still,
        }
    }

    /// Gives the functions what they need. Executions of lanes are given so many directives.
    pub(crate) fn wire(
        &self,
        runs: &Runs,
        services: &StepServices,
        turns: u32,
        notify: slipway_fn_notify::Deps,
        handler: Handler,
    ) {
        let lane = |find| slipway_fn_lane_common::Deps {
            runs: runs.clone(),
            services: services.clone(),
            find,
            budget: slipway_fn_lane_common::BUDGET,
            turns,
        };
        let lanes = LaneFunctions {
            common: "lane".to_owned(),
            asg: "lane-asg".to_owned(),
            ecs: "lane-ecs".to_owned(),
            lambda: "lane-lambda".to_owned(),
        };
        let wired = Wired {
            pipeline: slipway_fn_pipeline::Deps {
                runs: runs.clone(),
                lanes,
                handler,
            },
            lane: lane(slipway_fn_lane_common::find),
            asg: lane(slipway_fn_lane_asg::find),
            ecs: lane(slipway_fn_lane_ecs::find),
            lambda: lane(slipway_fn_lane_lambda::find),
            notify,
        };
        let before = self.swap(Some(Arc::new(wired)));
        assert!(before.is_none(), "wired once");
    }

    /// Lets go of the engine and the store: without that no world would ever leave memory.
    pub(crate) fn unwire(&self) {
        self.swap(None);
    }

    fn swap(&self, wired: Option<Arc<Wired>>) -> Option<Arc<Wired>> {
        let mut now = self.wired.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *now, wired)
    }

    fn wired(&self) -> Option<Arc<Wired>> {
        let now = self.wired.lock().unwrap_or_else(PoisonError::into_inner);
        now.clone()
    }

    async fn call(&self, function: &str, payload: Value) -> Result<Value, LambdaError> {
        let Some(wired) = self.wired() else {
            // The world is gone: nobody waits for an answer.
            return std::future::pending().await;
        };
        // Boxed: each is as deep as the whole product.
        let called: Called<'_> = match function {
            "pipeline" => Box::pin(slipway_fn_pipeline::answer(&wired.pipeline, payload)),
            "lane" => Box::pin(slipway_fn_lane_common::answer(&wired.lane, payload)),
            "lane-asg" => Box::pin(slipway_fn_lane_asg::answer(&wired.asg, payload)),
            "lane-ecs" => Box::pin(slipway_fn_lane_ecs::answer(&wired.ecs, payload)),
            "lane-lambda" => Box::pin(slipway_fn_lane_lambda::answer(&wired.lambda, payload)),
            "notify" => Box::pin(slipway_fn_notify::answer(&wired.notify, payload)),
            other => panic!("no function {other}"),
        };
        let answer = called.await;
        answer.map_err(|error| LambdaError {
            error_type: error.name.to_string(),
            message: error.message,
        })
    }

    async fn timed(&self, function: &str, payload: Value) -> Result<Value, LambdaError> {
        match self.still {
            true => still(self.call(function, payload)).await,
            false => self.call(function, payload).await,
        }
    }

    /// One invocation, which may die.
    async fn live(&self, function: &str, payload: Value) -> Result<Value, LambdaError> {
        loop {
            let life = Arc::new(Notify::new());
            tokio::select! {
                biased;
                answer = LIFE.scope(Arc::clone(&life), self.timed(function, payload.clone())) => return answer,
                () = life.notified() => {}
            }
            if let Some(error) = self.tap.death() {
                return Err(lambda_error(error));
            }
        }
    }
}

fn lambda_error(error: &str) -> LambdaError {
    LambdaError {
        error_type: error.to_owned(),
        message: "simulated".to_owned(),
    }
}

#[async_trait]
impl Lambda for Functions {
    async fn invoke(&self, function: &str, payload: Value) -> Result<Value, LambdaError> {
        match self.tap.invocation(function) {
            Invocation::Once => self.live(function, payload).await,
            Invocation::Twice => {
                let (first, _) = tokio::join!(
                    self.live(function, payload.clone()),
                    self.live(function, payload)
                );
                first
            }
            Invocation::Refused(error) => Err(lambda_error(error)),
            Invocation::Unheard(error) => {
                let _ = self.live(function, payload).await;
                Err(lambda_error(error))
            }
        }
    }
}
