//! What steps of every swimlane know of Elastic Load Balancing.

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::types::{Action, Rule};
use slipway_model::status::Failure;

use super::error::{Doing, failure};

/// To be sent with actions that AWS told: it never tells the secret of an identity provider's client, and asks for this
/// word instead (ELBv2 API reference, `AuthenticateOidcActionConfig`).
pub(crate) fn keep_client_secrets(actions: &mut [Action]) {
    let providers = actions
        .iter_mut()
        .filter_map(|action| action.authenticate_oidc_config.as_mut());
    for provider in providers {
        provider.use_existing_client_secret = Some(true);
    }
}

/// The ARNs of all listeners of a load balancer, which is given by its ARN.
pub(crate) async fn listeners(elb: &Client, balancer: &str) -> Result<Vec<String>, Failure> {
    let doing = format!("list the listeners of load balancer {balancer}");
    let (mut listeners, mut next) = (Vec::new(), None);
    loop {
        let page = elb.describe_listeners().load_balancer_arn(balancer);
        let page = page.set_marker(next).send().await;
        let page = page.map_err(|error| failure(Doing::with(&doing), error))?;
        let found = page.listeners.unwrap_or_default().into_iter();
        listeners.extend(found.filter_map(|one| one.listener_arn));
        next = page.next_marker;
        if next.is_none() {
            return Ok(listeners);
        }
    }
}

/// All rules of a listener.
pub(crate) async fn rules(elb: &Client, listener: &str) -> Result<Vec<Rule>, Failure> {
    let doing = format!("list the rules of listener {listener}");
    let (mut rules, mut next) = (Vec::new(), None);
    loop {
        let page = elb.describe_rules().listener_arn(listener);
        let page = page.set_marker(next).send().await;
        let page = page.map_err(|error| failure(Doing::with(&doing), error))?;
        rules.extend(page.rules.unwrap_or_default());
        next = page.next_marker;
        if next.is_none() {
            return Ok(rules);
        }
    }
}
