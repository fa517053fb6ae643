//! What people or other tools set of a group and its manifests do not say: a deployment takes it away, or its next group does not
//! have it, and it tells so before it changes anything.

use slipway_model::status::Failure;

use super::PREPARE;
use super::before::Before;
use super::group::Group;
use super::manifest::Documents;
use super::scaling::Scaling;
use super::site::Site;
use crate::context::StepContext;

/// Warns in the run of policies and scheduled actions of `old` that `new`, the same group or the one that takes over from it, has no
/// manifests of. As in Harness, only those of manifests are there after a deployment.
pub(super) async fn warn(
    cx: &mut StepContext<'_>,
    site: &Site,
    (old, new): (&Before, &str),
    documents: &Documents,
) -> Result<(), Failure> {
    let lost = old.scaling.lost_in(&Scaling::of_manifests(documents));
    if lost.is_empty() {
        return Ok(());
    }
    let (lost, name) = (lost.join(", "), old.group.name());
    let what = match name == new {
        true => format!("Asg {new} in {site} loses {lost} in this deployment"),
        false => format!("Asg {new} in {site} takes over from {name} without {lost}"),
    };
    let warning = format!(
        "{what}: no AsgScalingPolicy or AsgScheduledUpdateGroupAction manifest of its Harness service says it. Add one where it \
         is to stay."
    );
    cx.warn_of_run(PREPARE, &warning).await
}

/// Warns in the run of processes of `old` that somebody suspended and that go on in the group `new`, which may be `there`.
pub(super) async fn warn_of_processes(
    cx: &mut StepContext<'_>,
    site: &Site,
    old: &Group,
    (new, there): (&str, Option<&Group>),
) -> Result<(), Failure> {
    let mut suspended = old.suspended_processes();
    suspended.retain(|process| there.is_none_or(|there| there.suspended(process).is_none()));
    if suspended.is_empty() {
        return Ok(());
    }
    let warning = format!(
        "Processes of Asg {} in {site} are suspended ({}), and not those of {new}, which takes over from it. `aws autoscaling \
         suspend-processes --auto-scaling-group-name {new} --scaling-processes {}` suspends them there too.",
        old.name(),
        suspended.join(", "),
        suspended.join(" ")
    );
    cx.warn_of_run(PREPARE, &warning).await
}
