//! The phased strategy: every deployment is a group of its own, `<asgName>__N`, which takes the instances over from the
//! one before it in phases.
//!
//! `AsgSetup` creates it without instances and writes down how things were. Each `AsgPhasedDeploy` moves instances.
//! `AsgRollback` moves them back. The group before stays without instances until the next deployment deletes it.

mod deploy;
mod rollback;
mod setup;

use serde::{Deserialize, Serialize};
use slipway_model::status::Failure;

use super::before::Before;
use super::spec::Sizes;
use super::template::{Look, Version};
use crate::context::StepContext;
use crate::deployment::Replaced;

pub use deploy::PhasedDeploy;
pub use rollback::Rollback;
pub use setup::Setup;

/// Tag of a group of this strategy; its value is the name without the number.
const MARK: &str = "slipway-phase-of";

/// What a deployment moves from and to. Written down before the first change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Handover {
    /// Name of the new group.
    new: String,
    /// The group that it takes over from; `None` for the first deployment.
    old: Option<Before>,
    /// The sizes of the new group when it has taken over whole.
    full: Sizes,
    /// Whether new instances come before old ones go.
    new_first: bool,
    /// The launch template of the new group as it was.
    template: Look,
    /// Target groups that its instances are in.
    target_groups: Vec<String>,
    /// Who had deployed the old group, where that is known.
    replaced: Option<Replaced>,
}

/// What was set up in this stage, as far as it came: the version is there once it was made.
struct SetUp {
    handover: Handover,
    version: Option<Version>,
    /// Those of all attempts.
    versions: Vec<Version>,
    /// Key of the stored manifests.
    documents: Option<String>,
    /// Whether the group was created.
    created: bool,
}

fn set_up(cx: &StepContext<'_>) -> Result<Option<SetUp>, Failure> {
    let attempts = cx.saved_by_all::<setup::State>("AsgSetup")?;
    let versions = attempts
        .iter()
        .filter_map(setup::State::version)
        .cloned()
        .collect();
    // An attempt that came again may have ended before it made anything; one before it did not.
    let set_up = attempts.into_iter().rev().find_map(setup::State::set_up);
    Ok(set_up.map(|set_up| SetUp { versions, ..set_up }))
}
