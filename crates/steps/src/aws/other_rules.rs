//! Listener rules that no step of a blue-green deployment names, and that send requests to one of its target groups: another
//! path or host on the same service, or another port. No step moves them, so what they reach is neither deleted, emptied nor
//! replaced.

use std::collections::BTreeSet;
use std::fmt;

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::types::Rule;
use slipway_model::status::Failure;

use super::balancer;

/// What a deployment has of load balancers.
#[derive(Default)]
pub(crate) struct Own<'a> {
    /// Listeners of production.
    pub(crate) production: BTreeSet<&'a str>,
    /// Those of the stage.
    pub(crate) stages: BTreeSet<&'a str>,
    /// Load balancers whose other listeners are looked at, too.
    pub(crate) balancers: BTreeSet<&'a str>,
    /// Rules that its steps move.
    pub(crate) rules: Vec<&'a str>,
    /// Rules that those who try a version out send, as far as the pipeline tells.
    pub(crate) of_testers: Vec<&'a str>,
    /// Its target groups.
    pub(crate) groups: Vec<&'a str>,
}

/// Such a rule.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    listener: String,
    rule: String,
    /// The target groups of the deployment that get requests of it.
    groups: Vec<String>,
    /// Whether those who try a version out send them, as far as it can be told.
    pub(crate) of_testers: bool,
}

impl Other {
    /// Whether a target group gets requests of it.
    pub(crate) fn reaches(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// What it does, as a clause.
    pub(crate) fn sends(&self) -> String {
        let groups = self.groups.join(" and ");
        format!("listener {self} sends requests to {groups}")
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} of listener {}", self.rule, self.listener)
    }
}

/// Looks at all rules of the load balancers. Rules of a listener that is the stage's alone are for who looks at the stage.
/// `reached` tells the target groups that get requests of a rule.
pub(crate) async fn find(
    elb: &Client,
    own: &Own<'_>,
    reached: impl Fn(&Rule) -> Vec<String>,
) -> Result<Vec<Other>, Failure> {
    let production = own.production.iter();
    let mut listeners: BTreeSet<String> = production.map(|arn| (*arn).to_owned()).collect();
    for arn in &own.balancers {
        listeners.extend(balancer::listeners(elb, arn).await?);
    }
    let mut others = Vec::new();
    for listener in listeners {
        let of_production = own.production.contains(listener.as_str());
        if !of_production && own.stages.contains(listener.as_str()) {
            continue;
        }
        for rule in balancer::rules(elb, &listener).await? {
            let arn = rule.rule_arn().unwrap_or_default();
            let mut groups = reached(&rule);
            groups.retain(|group| own.groups.contains(&group.as_str()));
            if groups.is_empty() || own.rules.contains(&arn) {
                continue;
            }
            // A traffic shift has no listener of the stage: testers have one of their own, and nothing names it.
            let apart = own.stages.is_empty() && !of_production;
            others.push(Other {
                listener: listener.clone(),
                rule: arn.to_owned(),
                groups,
                of_testers: apart || own.of_testers.contains(&arn),
            });
        }
    }
    Ok(others)
}
