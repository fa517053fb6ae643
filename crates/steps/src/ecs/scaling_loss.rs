//! Scaling that people or other tools gave a service and that its manifests do not say: a deployment takes it away, and tells so
//! before it does.

use slipway_model::status::Failure;

use super::PREPARE;
use super::manifest::Documents;
use super::scaling::Scaling;
use super::site::Site;
use crate::context::StepContext;

/// A service, and the one that takes over from it with the scaling of the manifests.
#[derive(Clone, Copy)]
pub(super) struct Succession<'a> {
    pub(super) old: &'a str,
    /// The same one in a rolling deployment.
    pub(super) new: &'a str,
    /// What scales the old one.
    pub(super) has: &'a Scaling,
}

/// Warns in the run of what is lost, and notes what is only different.
pub(super) async fn warn(
    cx: &mut StepContext<'_>,
    site: &Site,
    services: Succession<'_>,
    documents: &Documents,
) -> Result<(), Failure> {
    if services.has.is_empty() {
        return Ok(());
    }
    if documents.scalable_targets.is_empty() {
        return cx.warn_of_run(PREPARE, &services.unscaled(site)).await;
    }
    let gets = Scaling::of_manifests(site, services.new, documents);
    if let Some(told) = services.other_bounds(&gets) {
        cx.info(PREPARE, told);
    }
    match services.has.suspended_but_in(&gets) {
        Some(suspended) => {
            let warning = services.goes_on(site, &suspended);
            cx.warn_of_run(PREPARE, &warning).await
        }
        None => Ok(()),
    }
}

impl Succession<'_> {
    /// What scales the service and stands in no manifest is taken off for good, as in Harness.
    fn unscaled(&self, site: &Site) -> String {
        let (old, new, told) = (self.old, self.new, self.has.told());
        match old == new {
            true => format!(
                "Service {new} in {site} loses {told} in this deployment: its Harness service has no \
                 EcsScalableTargetDefinition manifest. Give it one, or set `skipApplicationScaling: true` to leave scaling \
                 alone."
            ),
            false => format!(
                "Service {new} in {site} takes over from {old} without {told}: its Harness service has no \
                 EcsScalableTargetDefinition manifest. Give it one."
            ),
        }
    }

    /// Bounds that somebody set by hand are what the manifest says afterwards.
    fn other_bounds(&self, gets: &Scaling) -> Option<String> {
        let (has, gets) = (self.has.bounds()?, gets.bounds()?);
        let whose = match self.old == self.new {
            true => format!("{gets} after this deployment"),
            false => format!("that of {}, which takes over from it, {gets}", self.new),
        };
        (has != gets).then(|| {
            format!(
                "The scalable target of service {} allows {has} tasks, and {whose}, as its manifest says",
                self.old
            )
        })
    }

    /// Operators suspend scaling in incidents.
    fn goes_on(&self, site: &Site, suspended: &str) -> String {
        let goes_on = match self.old == self.new {
            true => "goes on after this deployment".to_owned(),
            false => format!("not that of {}, which takes over from it", self.new),
        };
        format!(
            "Scaling of service {} in {site} is suspended ({suspended}), and {goes_on}: the EcsScalableTargetDefinition \
             manifest does not suspend it. Suspend it again with `aws application-autoscaling register-scalable-target`, or \
             write `suspendedState` into the manifest.",
            self.old
        )
    }
}
