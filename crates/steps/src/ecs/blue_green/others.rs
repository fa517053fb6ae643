//! Listener rules that no step of a deployment names, and that send requests to one of its target groups: another path or
//! host on the same service, or another port. No step moves them, so what they reach is neither deleted nor emptied.

use std::fmt;

use slipway_model::status::Failure;
use slipway_plan::Node;

use super::super::site::Site;
use super::balancer::{self, Rule};
use super::routes::Routes;
use crate::aws;
use crate::context::StepContext;

/// Such a rule.
#[derive(Clone, Debug)]
pub(super) struct Other {
    rule: Rule,
    /// Whether those who try a version out send them, as far as it can be told.
    pub(super) of_testers: bool,
}

impl Other {
    /// Whether a target group gets requests of it.
    pub(super) fn reaches(&self, group: &str) -> bool {
        self.rule.forward.sends_to(group)
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.rule.place;
        write!(f, "rule {} of listener {}", place.rule, place.listener)
    }
}

/// Several of them, in words.
pub(super) fn told(others: &[Other]) -> String {
    let each: Vec<String> = others.iter().map(Other::to_string).collect();
    each.join(" and ")
}

/// Looks at all rules of the load balancer. With one target group for both versions there is nothing to move, and rules of
/// a listener that is the stage's alone are for who looks at the stage.
pub(super) async fn find(
    cx: &StepContext<'_>,
    site: &Site,
    routes: &Routes,
) -> Result<Vec<Other>, Failure> {
    if routes.is_shared() {
        return Ok(Vec::new());
    }
    let production = &routes.prod.place.listener;
    let stage = routes.stage.as_ref().map(|stage| &stage.place);
    let named = [Some(&routes.prod.place), stage].map(|place| place.map(|place| &place.rule));
    let listeners = match &routes.balancer {
        Some(balancer) => aws::balancer::listeners(&site.aws.elb, balancer).await?,
        // As earlier versions wrote it down.
        None => vec![production.clone()],
    };
    let by_weight = shifted_alone(cx);
    let mut others = Vec::new();
    for listener in listeners {
        if listener != *production && stage.is_some_and(|stage| stage.listener == listener) {
            continue;
        }
        for rule in balancer::rules_of(site, &listener).await? {
            let reaches = [&routes.prod_group, &routes.stage_group]
                .iter()
                .any(|group| rule.forward.sends_to(group));
            if !reaches || named.contains(&Some(&rule.place.rule)) {
                continue;
            }
            // A traffic shift has no listener of the stage: testers have one of their own, and nothing names it.
            let of_testers = (routes.is_shift() && listener != *production)
                || by_weight.contains(&rule.place.rule.as_str());
            others.push(Other { rule, of_testers });
        }
    }
    Ok(others)
}

/// The rules that steps of this pipeline set by weight, each for itself.
fn shifted_alone<'a>(cx: &'a StepContext<'_>) -> Vec<&'a str> {
    let mut rules = Vec::new();
    for stage in cx.plan().groups.iter().flatten() {
        collect(&stage.steps, &mut rules);
    }
    rules
}

fn collect<'a>(nodes: &'a [Node], rules: &mut Vec<&'a str>) {
    for node in nodes {
        match node {
            Node::Step(step) if step.step_type == "EcsBlueGreenTrafficShift" => {
                let shift = &step.spec["ecsTrafficShiftWrapper"]["spec"];
                rules.extend(shift["listenerRuleArn"].as_str());
            }
            Node::Step(_) => {}
            Node::Group(group) => collect(&group.nodes, rules),
            Node::Parallel(parallel) => collect(&parallel.branches, rules),
        }
    }
}
