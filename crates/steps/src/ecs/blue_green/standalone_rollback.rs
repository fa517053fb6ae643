//! `StandAloneTrafficShiftRollback`: the rules that shifts of type `Standalone` set forward again to what they
//! forwarded to when the stage touched them first.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::flags::check_flags;
use super::super::site::Site;
use super::super::{ROLLBACK, told};
use super::balancer;
use super::routes::Route;
use super::shift::{Phase, State};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct StandaloneRollback;

#[async_trait]
impl Step for StandaloneRollback {
    fn step_type(&self) -> &'static str {
        "StandAloneTrafficShiftRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check_flags(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of EcsBlueGreenTrafficShift")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(ROLLBACK);
        let touched = touched(cx)?;
        let result = restore(cx, &touched).await.map_err(|failure| Failure {
            left_behind: Some(left(&touched)),
            ..failure
        });
        told(cx, self.units(), result)?;
        cx.unit_ended(ROLLBACK, true);
        Ok(Progress::Done(json!({})))
    }
}

/// The rules that were touched, each as it was before, the last one first.
fn touched(cx: &StepContext<'_>) -> Result<Vec<Route>, Failure> {
    let mut routes: Vec<Route> = Vec::new();
    for shift in cx.saved_by_all::<State>("EcsBlueGreenTrafficShift")? {
        let touched = !shift.inherits() && shift.phase >= Phase::Set;
        let Some(before) = shift.before.filter(|_| touched) else {
            continue;
        };
        if routes.iter().all(|known| known.place != before.place) {
            routes.push(before);
        }
    }
    routes.reverse();
    Ok(routes)
}

async fn restore(cx: &mut StepContext<'_>, touched: &[Route]) -> Result<(), Failure> {
    if touched.is_empty() {
        cx.info(
            ROLLBACK,
            "Nothing to roll back: no shift of type Standalone changed a rule",
        );
        return Ok(());
    }
    let site = Site::of_stage(cx).await?;
    for route in touched {
        let (name, wanted) = (&route.place.rule, &route.forward);
        for rule in balancer::rules(&site, &[&route.place]).await? {
            if rule.forward.same_shares(wanted) {
                cx.info(
                    ROLLBACK,
                    format!("Listener rule {name} forwards to {wanted} already"),
                );
                continue;
            }
            cx.info(
                ROLLBACK,
                format!("Modifying listener rule {name} to forward to {wanted} again"),
            );
            balancer::point(&site, &rule, wanted).await?;
        }
    }
    cx.info(ROLLBACK, "All rules forward as before: rolled back cleanly");
    Ok(())
}

fn left(touched: &[Route]) -> String {
    let rules = touched.iter().map(|route| {
        format!(
            "listener rule {} may not forward to {}",
            route.place.rule, route.forward
        )
    });
    rules.collect::<Vec<_>>().join("; ")
}
