//! The health of a group's instances in its target groups: requests go only where it is good.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_elasticloadbalancingv2::types::TargetHealthStateEnum as State;
use serde::{Deserialize, Serialize};
use slipway_model::status::Failure;

use super::group::{self, Member, Standing};
use super::site::Site;
use super::steady::Steady;
use super::wrong;
use crate::aws::error::{Doing, failure};
use crate::context::StepContext;

/// Time between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Health {
    told: Option<(usize, usize)>,
    steady: Steady,
}

/// The target groups in which instances are to be healthy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Targets<'a> {
    pub(super) groups: &'a [String],
    /// Whether targets that no load balancer asks are fine too.
    pub(super) unused: bool,
}

impl Health {
    /// Which instances waited for lifecycle hooks when the group was seen last.
    pub(super) fn held(&self) -> Option<&str> {
        self.steady.held()
    }

    /// Looks once; how long to wait for the next look, or `None` when all of `desired` instances are healthy in all of
    /// the target groups.
    pub(super) async fn look(
        &mut self,
        cx: &mut StepContext<'_>,
        (site, name): (&Site, &str),
        (groups, desired): (&Targets<'_>, i64),
        unit: &'static str,
    ) -> Result<Option<Duration>, Failure> {
        let Standing::There(found) = group::describe(site, name).await? else {
            return Err(wrong(format!(
                "Auto Scaling group {name} in {site} was deleted by somebody or something else while its targets were \
                 waited for."
            )));
        };
        let serving = found.members().into_iter().filter(Member::serves);
        let ids: BTreeSet<String> = serving.map(|member| member.id().to_owned()).collect();
        let mut healthy = ids.clone();
        for group in groups.groups {
            let here = in_group(site, group, groups.unused).await?;
            healthy.retain(|id| here.contains(id));
        }
        let now = (healthy.len(), ids.len());
        if self.told != Some(now) {
            cx.info(
                unit,
                format!("{}/{} targets of Asg {name} are healthy", now.0, now.1),
            );
            self.told = Some(now);
        }
        let many = i64::try_from(healthy.len()).unwrap_or(i64::MAX);
        if many >= desired && healthy.len() == ids.len() {
            return Ok(None);
        }
        self.steady.tell_held(cx, site, &found, unit).await;
        self.steady
            .look_beside(cx, site, (name, desired), unit)
            .await?;
        Ok(Some(PAUSE))
    }
}

/// Ids of the targets of a group that are healthy, or that no load balancer asks where that is enough.
async fn in_group(site: &Site, group: &str, unused: bool) -> Result<BTreeSet<String>, Failure> {
    let doing = format!("look at the health of the targets of {group} in {site}");
    let found = site
        .aws
        .elb
        .describe_target_health()
        .target_group_arn(group);
    let found = found.send().await;
    let found = found.map_err(|error| failure(Doing::with(&doing), error))?;
    let good = found.target_health_descriptions().iter().filter(|one| {
        let state = one.target_health().and_then(|health| health.state());
        state == Some(&State::Healthy) || (unused && state == Some(&State::Unused))
    });
    let ids = good.filter_map(|one| one.target().and_then(|target| target.id()));
    Ok(ids.map(str::to_owned).collect())
}
