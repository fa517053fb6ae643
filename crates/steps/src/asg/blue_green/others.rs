//! Listener rules that bring requests to a group and that no step moves ([`crate::aws::other_rules`]).

use slipway_model::status::Failure;

use super::super::site::Site;
use super::route::{Routes, reached};
use crate::aws::other_rules::{self, Other, Own};

/// Looks at all rules of the load balancers.
pub(super) async fn find(site: &Site, all: &[Routes]) -> Result<Vec<Other>, Failure> {
    let stages = || all.iter().filter_map(|one| one.stage.as_ref());
    let routes = all.iter().map(|one| &one.prod).chain(stages());
    let own = Own {
        production: all.iter().map(|one| one.prod.listener.as_str()).collect(),
        stages: stages().map(|stage| stage.listener.as_str()).collect(),
        balancers: all
            .iter()
            .filter_map(|one| one.balancer.as_deref())
            .collect(),
        rules: routes.map(|route| route.rule.as_str()).collect(),
        of_testers: Vec::new(),
        groups: all
            .iter()
            .flat_map(|one| [one.prod_group.as_str(), one.stage_group.as_str()])
            .collect(),
    };
    other_rules::find(&site.aws.elb, &own, reached).await
}
