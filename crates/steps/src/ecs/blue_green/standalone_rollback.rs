//! `StandAloneTrafficShiftRollback`: the rules that shifts of type `Standalone` set forward again to what they
//! forwarded to when the stage touched them first.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::super::flags::check_flags;
use super::super::site::Site;
use super::super::{ROLLBACK, told};
use super::balancer;
use super::forward::Forward;
use super::routes::Route;
use super::shift::{Phase, State};
use crate::context::StepContext;
use crate::deployment::{Foreign, unended};
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
            left_behind: failure.left_behind.clone().or_else(|| Some(left(&touched))),
            ..failure
        });
        told(cx, self.units(), result)?;
        cx.unit_ended(ROLLBACK, true);
        Ok(Progress::Done(json!({})))
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let touched = touched(cx)?;
        match touched.is_empty() {
            true => Ok(()),
            false => Err(unended(cx, "the listener rules", left(&touched))),
        }
    }
}

/// A rule that was touched.
struct Touched {
    /// As it was before.
    before: Route,
    /// Where the shifts let it forward to, oldest first.
    put: Vec<Forward>,
}

/// The rules that were touched, the last one first.
fn touched(cx: &StepContext<'_>) -> Result<Vec<Touched>, Failure> {
    let mut routes: Vec<Touched> = Vec::new();
    for shift in cx.saved_by_all::<State>("EcsBlueGreenTrafficShift")? {
        let touched = !shift.inherits() && shift.phase >= Phase::Set;
        let Some(before) = shift.before.filter(|_| touched) else {
            continue;
        };
        let known = routes
            .iter_mut()
            .find(|known| known.before.place == before.place);
        match known {
            Some(known) => known.put.extend(shift.wanted),
            None => routes.push(Touched {
                before,
                put: shift.wanted.into_iter().collect(),
            }),
        }
    }
    routes.reverse();
    Ok(routes)
}

async fn restore(cx: &mut StepContext<'_>, touched: &[Touched]) -> Result<(), Failure> {
    if touched.is_empty() {
        cx.info(
            ROLLBACK,
            "Nothing to roll back: no shift of type Standalone changed a rule",
        );
        return Ok(());
    }
    let site = Site::of_stage(cx).await?;
    let mut left = None;
    for Touched { before, put } in touched {
        let (name, wanted) = (&before.place.rule, &before.forward);
        for rule in balancer::rules(&site, &[&before.place]).await? {
            if rule.forward.same_shares(wanted) {
                cx.info(
                    ROLLBACK,
                    format!("Listener rule {name} forwards to {wanted} already"),
                );
                continue;
            }
            if !put.iter().any(|put| rule.forward.same_shares(put)) {
                // The others come back all the same.
                let foreign = Foreign {
                    resource: format!("Listener rule {name}"),
                    found: format!("it forwards to {}", rule.forward),
                    put: put.last().map(Forward::to_string),
                    before: Some(wanted.to_string()),
                };
                left.get_or_insert(foreign.left());
                continue;
            }
            cx.info(
                ROLLBACK,
                format!("Modifying listener rule {name} to forward to {wanted} again"),
            );
            balancer::point(&site, &rule, wanted).await?;
        }
    }
    if let Some(left) = left {
        return Err(left);
    }
    cx.info(ROLLBACK, "All rules forward as before: rolled back cleanly");
    Ok(())
}

fn left(touched: &[Touched]) -> String {
    let rules = touched.iter().map(|Touched { before, .. }| {
        format!(
            "listener rule {} may not forward to {}",
            before.place.rule, before.forward
        )
    });
    rules.collect::<Vec<_>>().join("; ")
}
