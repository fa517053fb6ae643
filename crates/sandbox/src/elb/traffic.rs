//! Where requests would go, over time: for every rule, the spans in which its requests went to the same
//! places in the same shares.
//!
//! Spans begin at the instants at which a rule, a target group or a target changes, so nothing is sampled:
//! a moment without a healthy target is seen however short it was.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Weighted;
use super::rule::Rule;
use super::target::{State, Target};
use crate::account::Account;

/// Spans kept of one rule; the oldest are forgotten first.
const MOST: usize = 1_000;

/// A place where a share of a rule's requests goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficRoute {
    /// ARN of the target group.
    pub target_group: String,
    /// `<id>:<port>` of the target; none when the group has none that takes requests, which are answered
    /// with 503 then.
    pub target: Option<String>,
    /// ARN of the ECS task behind the target.
    pub task: Option<String>,
    /// ARN of that task's definition.
    pub task_definition: Option<String>,
    /// Share of the rule's requests, of 1.
    pub share: f64,
    /// Whether the target passed its health checks. A load balancer sends requests to targets that did not
    /// when the group has no other.
    pub healthy: bool,
}

/// What a rule did from an instant on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(super) from: Timestamp,
    /// Empty when the load balancer itself answers: a redirect or a fixed response.
    pub(super) routes: Vec<TrafficRoute>,
}

/// Key of a span; the order of keys is the order of time.
fn key(rule: &str, from: Timestamp) -> String {
    format!("{rule}|{:020}", from.as_nanosecond())
}

/// Prefix of the keys of a rule's spans.
pub(super) fn prefix(rule: &str) -> String {
    format!("{rule}|")
}

/// Notes where the requests of a rule go from now on.
pub(super) fn note_rule(account: &mut Account, arn: &str) {
    let Some(rule) = account.elb.rules.get(arn) else {
        return;
    };
    let routes = routes(account, rule);
    let prefix = prefix(arn);
    let last = account.elb.traffic.under(&prefix).next_back();
    if last.is_some_and(|(_, last)| last.routes == routes) {
        return;
    }
    let from = account.now;
    let key = key(arn, from);
    account.elb.traffic.put(key, Span { from, routes });
    let mut spans = account.elb.traffic.under(&prefix);
    let oldest = spans.next().map(|(key, _)| key.to_owned());
    if spans.count() >= MOST
        && let Some(oldest) = oldest
    {
        account.elb.traffic.take(&oldest);
    }
}

/// Notes what a change of a target group means for the rules that forward to it.
pub(super) fn note_group(account: &mut Account, group: &str) {
    let rules = account.elb.rules.iter();
    let rules = rules.filter(|(_, rule)| rule.forwards_to(group));
    let rules: Vec<String> = rules.map(|(arn, _)| arn.clone()).collect();
    for arn in rules {
        note_rule(account, &arn);
    }
}

/// Notes what a change of a load balancer means for its rules; `resource` is what their ARNs hold.
pub(super) fn note_load_balancer(account: &mut Account, resource: &str) {
    let mark = format!(":listener-rule/{resource}/");
    let rules = account.elb.rules.iter().map(|(arn, _)| arn);
    let rules: Vec<String> = rules.filter(|arn| arn.contains(&mark)).cloned().collect();
    for arn in rules {
        note_rule(account, &arn);
    }
}

/// Forgets a rule that was deleted.
pub(super) fn forget_rule(account: &mut Account, arn: &str) {
    let spans = account.elb.traffic.under(&prefix(arn));
    let spans: Vec<String> = spans.map(|(key, _)| key.to_owned()).collect();
    for key in spans {
        account.elb.traffic.take(&key);
    }
}

/// Where the requests of a rule go now.
fn routes(account: &Account, rule: &Rule) -> Vec<TrafficRoute> {
    let groups = rule.actions.iter().flat_map(|action| &action.groups);
    let groups: Vec<&Weighted> = groups.collect();
    let total: i64 = groups.iter().map(|one| one.weight).sum();
    let Some(first) = groups.first() else {
        return Vec::new();
    };
    if total == 0 || !is_active(account, rule) {
        return vec![nowhere(&first.group, 1.0)];
    }
    let weighty = groups.iter().filter(|one| one.weight > 0);
    weighty
        .flat_map(|one| {
            // Weights are below a thousand.
            let share = one.weight as f64 / total as f64;
            group_routes(account, &one.group, share)
        })
        .collect()
}

fn is_active(account: &Account, rule: &Rule) -> bool {
    let listener = account.elb.listeners.get(&rule.listener);
    let balancer = listener.and_then(|row| account.elb.load_balancers.get(&row.load_balancer));
    balancer.is_some_and(|row| row.is_active())
}

fn group_routes(account: &Account, group: &str, share: f64) -> Vec<TrafficRoute> {
    let own = account.elb.targets.under(&format!("{group}|"));
    let own: Vec<&Target> = own.map(|(_, target)| target).collect();
    let in_state = |states: &[State]| {
        let fitting = own.iter().filter(|one| states.contains(&one.state));
        fitting.copied().collect::<Vec<&Target>>()
    };
    let mut takers = in_state(&[State::Healthy]);
    let healthy = !takers.is_empty();
    if !healthy {
        takers = in_state(&[State::Initial, State::Unhealthy]);
    }
    if takers.is_empty() {
        return vec![nowhere(group, share)];
    }
    let each = share / takers.len() as f64;
    let routes = takers.into_iter().map(|target| TrafficRoute {
        target_group: group.to_owned(),
        target: Some(format!("{}:{}", target.id, target.port)),
        task: target.task.as_ref().map(|task| task.arn.clone()),
        task_definition: target
            .task
            .as_ref()
            .map(|task| task.task_definition.clone()),
        share: each,
        healthy,
    });
    routes.collect()
}

/// Requests that no target takes.
fn nowhere(group: &str, share: f64) -> TrafficRoute {
    TrafficRoute {
        target_group: group.to_owned(),
        target: None,
        task: None,
        task_definition: None,
        share,
        healthy: false,
    }
}
