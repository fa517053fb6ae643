//! Listener rules that no step of a deployment names, and that send requests to one of its target groups: no step moves
//! them, so the instances behind them are neither replaced nor taken away.

use std::collections::BTreeSet;
use std::fmt;

use slipway_model::status::Failure;

use super::super::site::Site;
use super::route::{Route, Routes, reached};
use crate::aws::balancer;

/// Such a rule.
pub(super) struct Other {
    listener: String,
    rule: String,
    groups: Vec<String>,
    /// Whether those who try a version out send them, as far as it can be told.
    pub(super) of_testers: bool,
}

impl Other {
    /// Whether one of these target groups gets requests of it.
    pub(super) fn reaches(&self, groups: &[&String]) -> bool {
        self.groups.iter().any(|group| groups.contains(&group))
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups.join(" and ");
        write!(
            f,
            "listener rule {} of listener {} sends requests to {groups}",
            self.rule, self.listener
        )
    }
}

/// Looks at all rules of the load balancers. Rules of a listener that is the stage's alone are for who looks at the stage.
pub(super) async fn find(site: &Site, all: &[Routes]) -> Result<Vec<Other>, Failure> {
    let production: BTreeSet<&str> = all.iter().map(|one| one.prod.listener.as_str()).collect();
    let stages: BTreeSet<&str> = all
        .iter()
        .filter_map(|one| Some(one.stage.as_ref()?.listener.as_str()))
        .collect();
    let routes = |one: &Routes| [Some(one.prod.clone()), one.stage.clone()];
    let named: Vec<Route> = all.iter().flat_map(routes).flatten().collect();
    let ours: Vec<&String> = all
        .iter()
        .flat_map(|one| [&one.prod_group, &one.stage_group])
        .collect();
    let mut listeners: BTreeSet<String> = production.iter().map(|arn| (*arn).to_owned()).collect();
    let balancers: BTreeSet<&String> = all.iter().filter_map(|one| one.balancer.as_ref()).collect();
    for arn in balancers {
        listeners.extend(balancer::listeners(&site.aws.elb, arn).await?);
    }
    let mut others = Vec::new();
    for listener in listeners {
        let of_production = production.contains(listener.as_str());
        if !of_production && stages.contains(listener.as_str()) {
            continue;
        }
        for rule in balancer::rules(&site.aws.elb, &listener).await? {
            let arn = rule.rule_arn().unwrap_or_default();
            let mut groups = reached(&rule);
            groups.retain(|group| ours.contains(&group));
            if groups.is_empty() || named.iter().any(|route| route.rule == arn) {
                continue;
            }
            others.push(Other {
                listener: listener.clone(),
                rule: arn.to_owned(),
                groups,
                // A traffic shift has no listener of the stage: testers have one of their own, and nothing names it.
                of_testers: stages.is_empty() && !of_production,
            });
        }
    }
    Ok(others)
}
