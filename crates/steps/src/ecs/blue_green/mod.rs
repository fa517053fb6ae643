//! Blue-green: a new version beside the live one, behind a target group of its own, that takes the requests over
//! at once (swap) or by and by (traffic shift).
//!
//! `EcsBlueGreenCreateService` writes down how services, rules and scaling were, and creates `<serviceName>__1` or
//! `__2` in the stage target group. `EcsBlueGreenSwapTargetGroups` exchanges the target groups of two rules,
//! `EcsBlueGreenTrafficShift` moves the weights of one. `EcsBlueGreenRollback` puts back what was written down.
//!
//! A version gets requests only while its targets are healthy, and the version before keeps its tasks until
//! requests go elsewhere. What serves is never deleted: which service that is, is told by the rules, also by those that no
//! step names.

mod balancer;
mod change;
mod create;
mod definition;
mod forward;
mod made;
mod others;
mod prepare;
mod rollback;
mod routes;
mod serving;
mod shift;
mod sides;
mod spec;
mod standalone_rollback;
mod swap;
mod tag;
mod undo_new;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use slipway_model::status::Failure;

use super::rollback::Before;
use super::scaling::Scaling;
use super::site::Site;
use crate::context::StepContext;
use crate::deployment::{Replaced, wrong};
use routes::Routes;

pub use create::CreateService;
pub use rollback::Rollback;
pub use shift::TrafficShift;
pub use standalone_rollback::StandaloneRollback;
pub use swap::SwapTargetGroups;

/// Time between two looks at targets.
const PAUSE: Duration = Duration::from_secs(3);

/// How things were before this run changed anything. Written down before the first change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handover {
    routes: Routes,
    /// The service that serves; `None` for the first deployment.
    blue: Option<Blue>,
    /// The service that was in the stage target group without serving.
    green: Option<Green>,
    /// Name of the service that is deployed.
    new: String,
    /// Who had deployed what serves, where that is known.
    replaced: Option<Replaced>,
}

/// The service that serves, as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blue {
    name: String,
    arn: String,
    task_definition: String,
    desired: i64,
    running: i64,
    scaling: Scaling,
    /// The service with what serves in it, where it was told last to run something else, which has not come up: it gets its
    /// tasks back with that.
    #[serde(default)]
    serves: Option<Box<Before>>,
}

impl Blue {
    /// What the service was told to run: what serves in it, or what was asked for last and has not come up.
    fn may_run(&self) -> Vec<&str> {
        let before = self.serves.as_ref();
        let passed_over = before.and_then(|before| before.passed_over.as_ref());
        let asked = passed_over.map(|passed_over| passed_over.task_definition.as_str());
        std::iter::once(self.task_definition.as_str())
            .chain(asked)
            .collect()
    }
}

/// The service that had served before, as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Green {
    name: String,
    before: Before,
    /// Whether it is updated; otherwise it is deleted.
    updated: bool,
}

/// Waits for healthy targets; what it told already is not told again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Patience {
    told: String,
    /// Whether there are targets, and none of them is checked: as far as AWS says, no rule sends them requests.
    #[serde(default)]
    unchecked: bool,
}

impl Patience {
    /// Whether none of the targets is checked, as the last look told.
    fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    /// Looks whether a target group has `wanted` healthy targets: how long to wait, or `None` when it has them.
    async fn look(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (group, wanted): (&str, i64),
        unit: &'static str,
    ) -> Result<Option<Duration>, Failure> {
        let health = balancer::health(site, group).await?;
        if health.healthy >= wanted {
            return Ok(None);
        }
        self.unchecked = health.unused > 0 && health.unused == health.waiting;
        let (healthy, others) = (health.healthy, health.told());
        let told = format!("Waiting for healthy targets in {group}: {healthy}/{wanted}{others}");
        if self.told != told {
            cx.info(unit, &told);
            self.told = told;
        }
        Ok(Some(PAUSE))
    }
}
