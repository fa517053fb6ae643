//! Elastic Load Balancing: load balancers, listeners, rules and the health of targets, looked at and changed.

use aws_sdk_elasticloadbalancingv2::types::{
    Action, Listener, LoadBalancer, TargetHealth, TargetHealthReasonEnum, TargetHealthStateEnum,
};
use serde::{Deserialize, Serialize};
use slipway_model::status::Failure;

use super::super::site::Site;
use super::forward::Forward;
use crate::aws::balancer::keep_client_secrets;
use crate::aws::error::{Doing, code, failure};
use crate::deployment::invalid;

/// A rule of a listener, as a spec names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// ARN of the listener.
    pub(super) listener: String,
    /// ARN of the rule.
    pub(super) rule: String,
}

/// A rule as it is now.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) place: Place,
    is_default: bool,
    actions: Vec<Action>,
    pub(super) forward: Forward,
}

/// Looks at a load balancer, which is named or given by its ARN.
async fn load_balancer(site: &Site, name: &str) -> Result<LoadBalancer, Failure> {
    let doing = format!("look at load balancer `{name}` in {}", site.aws.region);
    let call = site.aws.elb.describe_load_balancers();
    let call = match name.starts_with("arn:") {
        true => call.load_balancer_arns(name),
        false => call.names(name),
    };
    let found = call
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    let found = found.load_balancers.unwrap_or_default().into_iter().next();
    found.ok_or_else(|| invalid(format!("there is no load balancer `{name}`.")))
}

/// Looks at rules of a load balancer, and checks that they and their listeners belong together. Answers with the load
/// balancer's ARN, too.
pub(super) async fn find(
    site: &Site,
    balancer: &str,
    places: &[&Place],
) -> Result<(String, Vec<Rule>), Failure> {
    let found = load_balancer(site, balancer).await?;
    let arn = found.load_balancer_arn().unwrap_or_default();
    let mut listeners: Vec<String> = places.iter().map(|one| one.listener.clone()).collect();
    listeners.dedup();
    let described = match ask_listeners(site, balancer, listeners.clone()).await {
        // AWS does not say which of them.
        Err(_) if listeners.len() > 1 => {
            let mut all = Vec::new();
            for listener in listeners {
                all.extend(ask_listeners(site, balancer, vec![listener]).await?);
            }
            all
        }
        asked => asked?,
    };
    for listener in &described {
        if listener.load_balancer_arn() != Some(arn) {
            return Err(invalid(format!(
                "listener {} is not of load balancer {balancer}, but of {}. Correct the one or the other.",
                listener.listener_arn().unwrap_or_default(),
                listener.load_balancer_arn().unwrap_or_default(),
            )));
        }
    }
    Ok((arn.to_owned(), rules(site, places).await?))
}

/// The target groups that get requests of a rule.
pub(super) fn reached(rule: &aws_sdk_elasticloadbalancingv2::types::Rule) -> Vec<String> {
    let Some(forward) = rule.actions().iter().rev().find_map(Forward::read) else {
        return Vec::new();
    };
    let groups = forward.groups.iter().map(|one| &one.group);
    let sends = groups.filter(|group| forward.sends_to(group));
    sends.cloned().collect()
}

async fn ask_listeners(
    site: &Site,
    balancer: &str,
    arns: Vec<String>,
) -> Result<Vec<Listener>, Failure> {
    let doing = format!(
        "look at listeners {} of load balancer {balancer}",
        arns.join(" and ")
    );
    let described = site.aws.elb.describe_listeners();
    let described = described.set_listener_arns(Some(arns)).send().await;
    let described = described.map_err(|error| failure(Doing::with(&doing), error))?;
    Ok(described.listeners.unwrap_or_default())
}

/// Looks at rules.
pub(super) async fn rules(site: &Site, places: &[&Place]) -> Result<Vec<Rule>, Failure> {
    for place in places {
        check_belongs(place)?;
    }
    let mut arns: Vec<String> = places.iter().map(|place| place.rule.clone()).collect();
    arns.dedup();
    let asked = ask(site, arns.clone()).await;
    let described = match asked {
        // AWS does not say which of them.
        Err(_) if arns.len() > 1 => {
            let mut all = Vec::new();
            for arn in arns {
                all.extend(ask(site, vec![arn]).await?);
            }
            all
        }
        asked => asked?,
    };
    let mut rules = Vec::new();
    for place in places {
        let rule = described
            .iter()
            .find(|rule| rule.rule_arn() == Some(&place.rule));
        let rule = rule.ok_or_else(|| {
            invalid(format!(
                "AWS does not tell anything of listener rule {}.",
                place.rule
            ))
        })?;
        rules.push(forwarding(place, rule).ok_or_else(|| no_groups(place, rule.actions()))?);
    }
    Ok(rules)
}

/// A rule that somebody may have changed; `None` where it is gone or forwards to no target group any more.
pub(super) async fn still_forwarding(site: &Site, place: &Place) -> Result<Option<Rule>, Failure> {
    check_belongs(place)?;
    let described = ask(site, vec![place.rule.clone()]).await?;
    let mut described = described.iter();
    let rule = described.find(|rule| rule.rule_arn() == Some(&place.rule));
    Ok(rule.and_then(|rule| forwarding(place, rule)))
}

fn forwarding(place: &Place, rule: &aws_sdk_elasticloadbalancingv2::types::Rule) -> Option<Rule> {
    let forward = rule.actions().iter().rev().find_map(Forward::read)?;
    Some(Rule {
        place: place.clone(),
        is_default: rule.is_default() == Some(true),
        actions: rule.actions().to_vec(),
        forward,
    })
}

async fn ask(
    site: &Site,
    arns: Vec<String>,
) -> Result<Vec<aws_sdk_elasticloadbalancingv2::types::Rule>, Failure> {
    let doing = format!("look at listener rules {}", arns.join(" and "));
    let described = site
        .aws
        .elb
        .describe_rules()
        .set_rule_arns(Some(arns))
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    Ok(described.rules.unwrap_or_default())
}

/// The ARN of a rule is that of its listener with an id behind it.
fn check_belongs(place: &Place) -> Result<(), Failure> {
    let own = place.listener.replacen(":listener/", ":listener-rule/", 1);
    let belongs = place.rule.strip_prefix(&own);
    match belongs.is_some_and(|id| id.starts_with('/')) {
        true => Ok(()),
        false => Err(invalid(format!(
            "listener rule {} is not a rule of listener {}.",
            place.rule, place.listener
        ))),
    }
}

fn no_groups(place: &Place, actions: &[Action]) -> Failure {
    let does = actions.last().and_then(Action::r#type);
    invalid(format!(
        "listener rule {} forwards to no target group: its action is {}. Give a rule that forwards, or change \
         this one.",
        place.rule,
        does.map_or("none", |does| does.as_str()),
    ))
}

/// Lets a rule forward to something else; what it does before that stays.
pub(super) async fn point(site: &Site, rule: &Rule, forward: &Forward) -> Result<(), Failure> {
    let mut actions = rule.actions.clone();
    for action in &mut actions {
        if Forward::read(action).is_some() {
            forward.write(action);
        }
    }
    keep_client_secrets(&mut actions);
    let Place {
        listener,
        rule: arn,
    } = &rule.place;
    if rule.is_default {
        let doing = format!("let the default rule of listener {listener} forward to {forward}");
        let call = site.aws.elb.modify_listener().listener_arn(listener);
        let call = call.set_default_actions(Some(actions));
        let done = call.send().await.map(|_| ());
        return done.map_err(|error| failure(Doing::with(&doing), error));
    }
    let doing = format!("let listener rule {arn} forward to {forward}");
    let call = site.aws.elb.modify_rule().rule_arn(arn);
    let call = call.set_actions(Some(actions));
    let done = call.send().await.map(|_| ());
    done.map_err(|error| failure(Doing::with(&doing), error))
}

/// The port of a target group.
pub(super) async fn port(site: &Site, group: &str) -> Result<Option<i32>, Failure> {
    let doing = format!("look at target group {group}");
    let described = site
        .aws
        .elb
        .describe_target_groups()
        .target_group_arns(group)
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    Ok(described.target_groups().first().and_then(|one| one.port()))
}

/// How the targets of a group are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// Targets that passed their checks.
    pub(super) healthy: i64,
    /// Targets that did not, and do not drain.
    pub(super) waiting: i64,
    /// Those of them that are not checked, because no rule sends them requests.
    pub(super) unused: i64,
    /// Why others did not, without repetition.
    pub(super) others: Vec<String>,
}

impl Health {
    /// What is not healthy, in words.
    pub(super) fn told(&self) -> String {
        match self.others.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.others.join("; ")),
        }
    }
}

/// Whether the health checks of a target's group are off (`TargetHealth`, *Reason*).
fn is_unchecked(state: &TargetHealth) -> bool {
    state.reason() == Some(&TargetHealthReasonEnum::HealthCheckDisabled)
}

/// Looks at the health of a group's targets; a group that is gone has none.
pub(super) async fn health(site: &Site, group: &str) -> Result<Health, Failure> {
    let doing = format!("look at the health of the targets of {group}");
    let described = site
        .aws
        .elb
        .describe_target_health()
        .target_group_arn(group)
        .send()
        .await;
    let described = match described {
        Err(error) if code(&error) == Some("TargetGroupNotFound") => {
            return Ok(Health::default());
        }
        described => described.map_err(|error| failure(Doing::with(&doing), error))?,
    };
    let mut health = Health::default();
    for target in described.target_health_descriptions() {
        let Some(state) = target.target_health() else {
            continue;
        };
        match state.state() {
            Some(TargetHealthStateEnum::Healthy) => health.healthy += 1,
            // Nobody wants to know of a Lambda function: requests reach it.
            Some(TargetHealthStateEnum::Unavailable) if is_unchecked(state) => health.healthy += 1,
            Some(TargetHealthStateEnum::Draining) | None => {}
            Some(other) => {
                health.waiting += 1;
                health.unused += i64::from(*other == TargetHealthStateEnum::Unused);
                let why = state.description().unwrap_or(other.as_str());
                let why = format!("{}: {why}", other.as_str());
                if !health.others.contains(&why) {
                    health.others.push(why);
                }
            }
        }
    }
    Ok(health)
}
