//! Which version of its launch template a group serves with. The one that its next instance would be started from is it in
//! every usual case. After a deployment that was aborted or failed it may be one of which no instance ever became healthy,
//! while healthy ones of another version go on: what a rollback leads to is that other one.

use std::collections::BTreeMap;

use slipway_model::status::Failure;

use super::PREPARE;
use super::before::Before;
use super::group::{Group, Member};
use super::instances::{self, By};
use super::refresh;
use super::site::Site;
use super::steady;
use super::template::{self, Version};
use crate::context::StepContext;

/// What a look told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Decided,
    /// An instance refresh is in progress, which the deployment is about to end or to wait for: what serves is told after it.
    NotYet,
}

impl Before {
    /// Takes the version that serves for what there was, where that is another one than `asked`, which the group starts its
    /// instances from. `clears` says whether an instance refresh that is in progress is ended or waited for afterwards.
    pub(super) async fn look_what_serves(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (group, asked): (&Group, Option<Version>),
        clears: bool,
    ) -> Result<Told, Failure> {
        let name = group.name();
        let Some(asked) = asked else {
            return Ok(Told::Decided);
        };
        let fresh = group.serving(Some(&asked));
        let other = most(group, &asked).filter(|(_, count)| *count > fresh);
        let Some((serving, count)) = other else {
            return self
                .look_what_is_noted(cx, site, (group, asked), clears)
                .await;
        };
        let noted = instances::version_of(cx, name).await?;
        let is_noted =
            |version: &Version| noted.as_ref().is_some_and(|(known, _)| known == version);
        let newest = refresh::newest(site, name).await?;
        let why = match &newest {
            Some(newest) if newest.is_active() && clears => return Ok(Told::NotYet),
            // Somebody's deployment that goes well is what they want.
            Some(newest) if newest.is_active() => {
                (fresh == 0 && !is_noted(&asked)).then(|| newest.told())
            }
            Some(newest) if !newest.is_successful() => Some(newest.told()),
            // Nobody has asked AWS to replace the instances: a deployment that ended before it did, or somebody who wants
            // only later ones to be other. What is noted tells.
            _ => (fresh == 0 && is_noted(&serving))
                .then(|| "no instance refresh was started for it".to_owned()),
        };
        let Some(why) = why else {
            return Ok(Told::Decided);
        };
        let records = match &noted {
            Some((known, Some(run))) if *known == serving => {
                format!(", as Slipway's records say (run {run})")
            }
            Some((known, Some(run))) => {
                format!(
                    "; Slipway's records say version {} (run {run})",
                    known.number
                )
            }
            _ => String::new(),
        };
        let (asked, to) = (&asked.number, &serving.number);
        let warning = format!(
            "Auto Scaling group {name} in {site} was told to start instances from version {asked} of launch template {}, \
             which has not come up ({why}; {fresh} of its instances are healthy): {count} healthy instances serve with version {to}{records}. The \
             deployment goes on; a rollback brings back version {to}.",
            serving.name
        );
        cx.warn_of_run(PREPARE, &warning).await?;
        self.by = Some(By::noted(cx, name, Some(&serving)).await?);
        self.version = Some(serving);
        Ok(Told::Decided)
    }
}

impl Before {
    /// The same where no other version has more healthy instances to go by: those of `asked` have taken the place of all. It is
    /// what there was, unless it does not come up, as far as AWS tells, and the records say that another version worked.
    async fn look_what_is_noted(
        &mut self,
        cx: &mut StepContext<'_>,
        site: &Site,
        (group, asked): (&Group, Version),
        clears: bool,
    ) -> Result<Told, Failure> {
        let (name, desired) = (group.name(), group.sizes().desired);
        let noted = instances::version_of(cx, name).await?;
        let other = noted.filter(|(known, _)| known.id == asked.id && known.number != asked.number);
        let Some((known, run)) = other.filter(|_| desired > 0) else {
            return Ok(Told::Decided);
        };
        let Some(newest) = refresh::newest(site, name).await? else {
            return Ok(Told::Decided);
        };
        if newest.is_active() && clears {
            return Ok(Told::NotYet);
        }
        let healthy = group.serving(Some(&asked));
        let failing = steady::failing(cx, site, (name, desired)).await?;
        let failing = match (failing, healthy) {
            (Some(why), _) => format!("; {why}"),
            (None, 0) => String::new(),
            (None, _) => return Ok(Told::Decided),
        };
        if !template::exists(site, &known).await? {
            return Ok(Told::Decided);
        }
        let (asked, to) = (&asked.number, &known.number);
        let run = run.map_or_else(String::new, |run| format!(" (run {run})"));
        let warning = format!(
            "Auto Scaling group {name} in {site} was told to start instances from version {asked} of launch template {}, \
             which has not come up ({}; {healthy} of its {desired} instances are healthy{failing}), and no more are left of \
             version {to}, which worked, as Slipway's records say{run}. The deployment goes on; a rollback brings back version {to}.",
            known.name,
            newest.told()
        );
        cx.warn_of_run(PREPARE, &warning).await?;
        self.by = Some(By::noted(cx, name, Some(&known)).await?);
        self.version = Some(known);
        Ok(Told::Decided)
    }
}

/// The version of the same launch template that most of the healthy instances were started from, other than `asked`, and how
/// many they are.
fn most(group: &Group, asked: &Version) -> Option<(Version, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let members = group.members();
    for member in members.iter().filter(|member| member.serves()) {
        let number = member.version_of(&asked.id);
        if let Some(number) = number.filter(|number| *number != asked.number) {
            *counts.entry(number).or_default() += 1;
        }
    }
    let newest = |number: &str| number.parse::<u64>().unwrap_or_default();
    let (number, count) = counts
        .into_iter()
        .max_by_key(|(number, count)| (*count, newest(number)))?;
    let version = Version {
        number: number.to_owned(),
        ..asked.clone()
    };
    Some((version, count))
}

/// The group that serves of those that are to have instances, newest last: the one that the newest complete deployment left, as
/// the records name it; else the newest, unless none of its instances is healthy and one before it has healthy ones. What a run
/// left half done has a number after that of the good one.
pub(super) fn the_one_that_serves<'g>(
    groups: &[&'g Group],
    deployed: &[String],
) -> Option<&'g Group> {
    let serves = |group: &&&Group| group.members().iter().any(Member::serves);
    let mut noted = groups
        .iter()
        .rev()
        .filter(|group| deployed.iter().any(|name| name == group.name()));
    let (newest, others) = groups.split_last()?;
    let found = noted.find(serves).or_else(|| match serves(&newest) {
        true => Some(newest),
        false => others.iter().rev().find(serves),
    });
    found.or(Some(newest)).copied()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn group(name: &str, instances: &[(&str, &str)]) -> Group {
        let instances = instances.iter().map(|(version, health)| {
            json!({
                "LifecycleState": "InService", "HealthStatus": health,
                "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": version},
            })
        });
        let instances: Vec<_> = instances.collect();
        Group(json!({"AutoScalingGroupName": name, "Instances": instances}))
    }

    #[test]
    fn the_version_of_most_healthy_instances() {
        let asked = Version {
            id: "lt-1".to_owned(),
            name: "web".to_owned(),
            number: "10".to_owned(),
        };
        let (good, bad) = ("Healthy", "Unhealthy");
        let of = |instances: &[(&str, &str)]| {
            most(&group("web", instances), &asked).map(|(version, count)| (version.number, count))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("10", good), ("7", bad)]), None);
        let found = of(&[("7", good), ("10", bad), ("7", good), ("6", good)]);
        assert_eq!(found, Some(("7".to_owned(), 2)));
        let found = of(&[("9", good), ("7", good), ("10", good)]);
        assert_eq!(found, Some(("9".to_owned(), 1)));
        let other = Version {
            id: "lt-2".to_owned(),
            ..asked
        };
        assert_eq!(most(&group("web", &[("7", good)]), &other), None);
    }

    #[test]
    fn the_newest_group_is_passed_over_only_for_one_that_serves() {
        let up = |name: &str| group(name, &[("1", "Healthy")]);
        let down = |name: &str| group(name, &[("1", "Unhealthy")]);
        let of = |groups: &[Group], noted: &str| {
            let groups: Vec<&Group> = groups.iter().collect();
            let serving = the_one_that_serves(&groups, &[noted.to_owned()]);
            serving.map_or("", Group::name).to_owned()
        };
        assert_eq!(of(&[], "a"), "");
        assert_eq!(of(&[down("a")], ""), "a");
        assert_eq!(of(&[up("a"), up("b")], ""), "b");
        assert_eq!(of(&[down("a"), down("b")], ""), "b");
        assert_eq!(of(&[up("a"), down("b"), down("c")], ""), "a");
        // What is noted serves, whatever has come up after it; unless it is down.
        assert_eq!(of(&[up("a"), up("b"), up("c")], "a"), "a");
        assert_eq!(of(&[down("a"), up("b"), down("c")], "a"), "b");
    }
}
