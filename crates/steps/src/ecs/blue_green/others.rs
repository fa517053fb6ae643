//! Listener rules that bring requests to a service and that no step moves ([`crate::aws::other_rules`]).

use slipway_model::status::Failure;
use slipway_plan::Node;

use super::super::site::Site;
use super::balancer;
use super::routes::Routes;
use crate::aws::other_rules::{self, Other, Own};
use crate::context::StepContext;

/// Several of them, in words.
pub(super) fn told(others: &[Other]) -> String {
    let each: Vec<String> = others.iter().map(Other::to_string).collect();
    each.join(" and ")
}

/// Looks at all rules of the load balancer. With one target group for both versions there is nothing to move.
pub(super) async fn find(
    cx: &StepContext<'_>,
    site: &Site,
    routes: &Routes,
) -> Result<Vec<Other>, Failure> {
    if routes.is_shared() {
        return Ok(Vec::new());
    }
    let stage = routes.stage.as_ref().map(|stage| &stage.place);
    let places = std::iter::once(&routes.prod.place).chain(stage);
    let own = Own {
        production: [routes.prod.place.listener.as_str()].into(),
        stages: stage.iter().map(|place| place.listener.as_str()).collect(),
        // Earlier versions did not write it down.
        balancers: routes.balancer.iter().map(String::as_str).collect(),
        rules: places.map(|place| place.rule.as_str()).collect(),
        of_testers: shifted_alone(cx),
        groups: vec![&routes.prod_group, &routes.stage_group],
    };
    other_rules::find(&site.aws.elb, &own, balancer::reached).await
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
