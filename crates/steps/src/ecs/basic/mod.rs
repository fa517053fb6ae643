//! The basic strategy: every deployment is a service of its own, `<serviceName>__N`, which takes the tasks over
//! from the one before it, at once or in phases.
//!
//! `EcsServiceSetup` creates it without tasks and writes down how things were. Each `EcsUpgradeContainer` moves
//! tasks. `EcsBasicRollback` moves them back. The service before stays without tasks until the next
//! deployment begins.

mod rollback;
mod setup;
mod upgrade;
mod versions;

use serde::{Deserialize, Serialize};
use slipway_model::status::Failure;

use super::scaling::Scaling;
use super::task_definition::Registered;
use crate::context::StepContext;
use crate::deployment::{Replaced, wrong};

pub use rollback::BasicRollback;
pub use setup::ServiceSetup;
pub use upgrade::UpgradeContainer;

/// What a deployment moves from and to. Written down before the first change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Handover {
    /// Name of the new service.
    new: String,
    /// What it takes over from; `None` for the first deployment.
    old: Option<Old>,
    /// The count of the new service when it is upgraded whole.
    full: i64,
    /// Whether new tasks come before old ones go.
    new_first: bool,
    /// Who had deployed the old service, where that is known.
    #[serde(default)]
    replaced: Option<Replaced>,
}

/// The service that is replaced, as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Old {
    name: String,
    /// What serves.
    task_definition: String,
    /// What it was told to run last, where that never came up.
    #[serde(default)]
    passed_over: Option<String>,
    desired: i64,
    running: i64,
    scaling: Scaling,
}

/// What `EcsServiceSetup` did in this stage, as far as it came.
struct SetUp {
    handover: Handover,
    /// The task definition that the new service was created with.
    task_definition: Registered,
    /// Key of the stored manifests.
    documents: String,
}

/// What was set up in this stage; `None` when no service was created.
fn set_up(cx: &StepContext<'_>) -> Result<Option<SetUp>, Failure> {
    let attempts = cx.saved_by_all::<setup::State>("EcsServiceSetup")?;
    // An attempt that came again may have ended before it changed anything; one before it did not.
    Ok(attempts.into_iter().rev().find_map(setup::State::created))
}
