//! The inspector of traffic: what rules did with their requests, for tests and demonstrations.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::rule::Rule;
use super::traffic::{TrafficRoute, prefix};
use crate::Sandbox;
use crate::account::Account;
use crate::error::StoreError;

/// What one rule of a listener did with its requests. Every rule counts by itself, as if requests came that
/// only it applies to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleTraffic {
    /// ARN of the rule.
    pub rule: String,
    /// Its priority, or `default`.
    pub priority: String,
    /// In the order of time, without gaps, up to the present.
    pub spans: Vec<TrafficSpan>,
}

/// A time in which requests went to the same places in the same shares.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficSpan {
    /// When it began.
    pub from: Timestamp,
    /// When the next one began, or now.
    pub until: Timestamp,
    /// Where the requests went. Empty when the load balancer itself answered them.
    pub routes: Vec<TrafficRoute>,
}

/// Numbers of requests at a steady rate, with fractions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// All of them.
    pub sent: f64,
    /// Those that no healthy target was there for. Above zero for a moment of any length.
    pub failed: f64,
    /// Those that healthy targets took, by ARN of the target group.
    pub by_target_group: BTreeMap<String, f64>,
    /// Those that healthy targets took, by ARN of the ECS task.
    pub by_task: BTreeMap<String, f64>,
    /// Those that healthy targets took, by ARN of the task definition.
    pub by_task_definition: BTreeMap<String, f64>,
}

impl TrafficSpan {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.until.duration_since(self.from).as_secs_f64()
    }

    /// Share of the requests that no healthy target was there for, of 1.
    pub fn failing(&self) -> f64 {
        let failing = self.routes.iter().filter(|route| !route.healthy);
        failing.map(|route| route.share).sum()
    }
}

impl RuleTraffic {
    /// What became of `per_second` requests a second.
    pub fn requests(&self, per_second: f64) -> Requests {
        let mut requests = Requests::default();
        for span in &self.spans {
            let sent = span.seconds() * per_second;
            requests.sent += sent;
            requests.failed += sent * span.failing();
            for route in span.routes.iter().filter(|route| route.healthy) {
                let taken = sent * route.share;
                let count = |into: &mut BTreeMap<String, f64>, name: &Option<String>| {
                    if let Some(name) = name {
                        *into.entry(name.clone()).or_default() += taken;
                    }
                };
                count(
                    &mut requests.by_target_group,
                    &Some(route.target_group.clone()),
                );
                count(&mut requests.by_task, &route.task);
                count(&mut requests.by_task_definition, &route.task_definition);
            }
        }
        requests
    }
}

impl Sandbox {
    /// What the rules of a listener did with their requests since an instant, or since as long as is
    /// remembered (1,000 changes of each rule): the rules in the order of their priorities, the default one
    /// last. `None` when there is no such listener.
    ///
    /// # Errors
    /// When the data file failed before and cannot be read now.
    pub fn traffic(
        &self,
        listener: &str,
        since: Option<Timestamp>,
    ) -> Result<Option<Vec<RuleTraffic>>, StoreError> {
        self.look(|account| {
            let listener = account.elb.listeners.get(listener)?;
            let rules = account.elb.rules.under(&listener.rules_prefix());
            let mut rules: Vec<&Rule> = rules.map(|(_, rule)| rule).collect();
            rules.sort_by_key(|rule| rule.priority.unwrap_or(i64::MAX));
            let since = since.unwrap_or(Timestamp::MIN);
            let each = rules.iter().map(|rule| of_rule(account, rule, since));
            Some(each.collect())
        })
    }
}

fn of_rule(account: &Account, rule: &Rule, since: Timestamp) -> RuleTraffic {
    let prefix = prefix(&rule.arn);
    let kept = account.elb.traffic.under(&prefix);
    let mut spans: Vec<TrafficSpan> = Vec::new();
    for (_, span) in kept {
        if let Some(before) = spans.last_mut() {
            before.until = span.from;
        }
        spans.push(TrafficSpan {
            from: span.from,
            until: account.now,
            routes: span.routes.clone(),
        });
    }
    // What is going on now is told even when it began this instant.
    spans.retain(|span| span.until > since || span.until == account.now);
    for span in &mut spans {
        span.from = span.from.max(since).min(span.until);
    }
    RuleTraffic {
        rule: rule.arn.clone(),
        priority: rule.priority_text(),
        spans,
    }
}
