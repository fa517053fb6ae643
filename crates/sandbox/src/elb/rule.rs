//! Rules of listeners: conditions and actions in an order of priorities, the default one last.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::action::{self, Action};
use super::load_balancer::Kind;
use super::request::{bounded, listed, missing, page, required, validation};
use super::{condition, listener, tag, traffic, usage};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most rules of a load balancer, the default ones not counted (ELB quotas).
const MOST: usize = 100;
/// Highest number of a priority, which is the last to be looked at.
const LAST: i64 = 50_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) arn: String,
    /// ARN of the listener.
    pub(super) listener: String,
    /// None for the default rule.
    pub(super) priority: Option<i64>,
    pub(super) conditions: Vec<Value>,
    pub(super) actions: Vec<Action>,
    pub(super) tags: Document,
}

impl Rule {
    /// The default rule of a listener.
    pub(super) fn default_of(listener: &str, arn: &str, actions: Vec<Action>) -> Self {
        Self {
            arn: arn.to_owned(),
            listener: listener.to_owned(),
            priority: None,
            conditions: Vec::new(),
            actions,
            tags: Document::new(),
        }
    }

    pub(super) fn is_default(&self) -> bool {
        self.priority.is_none()
    }

    pub(super) fn forwards_to(&self, group: &str) -> bool {
        let mut groups = self.actions.iter().flat_map(|action| &action.groups);
        groups.any(|one| one.group == group)
    }

    /// The priority as the wire writes it.
    pub(super) fn priority_text(&self) -> String {
        self.priority
            .map_or_else(|| "default".to_owned(), |number| number.to_string())
    }

    pub(super) fn view(&self) -> Value {
        json!({
            "RuleArn": self.arn,
            "Priority": self.priority_text(),
            "Conditions": self.conditions,
            "Actions": action::views(&self.actions),
            "IsDefault": self.is_default(),
        })
    }
}

pub(super) fn not_found() -> ApiError {
    ApiError::client("RuleNotFound", "One or more rules not found")
}

pub(super) fn in_use(priority: i64) -> ApiError {
    ApiError::client(
        "PriorityInUse",
        format!("Priority '{priority}' is currently in use"),
    )
}

/// Priority of a request or of one of its items.
pub(super) fn priority(fields: Fields<'_>) -> Result<i64, ApiError> {
    let found = bounded(fields, "Priority", 1, LAST)?;
    found.ok_or_else(|| missing("Priority"))
}

/// Puts a new or changed rule into force.
pub(super) fn put(account: &mut Account, rule: Rule) {
    let before = account.elb.rules.get(&rule.arn);
    let mut groups = before.map_or_else(Default::default, |old| action::groups(&old.actions));
    groups.extend(action::groups(&rule.actions));
    let arn = rule.arn.clone();
    account.elb.rules.put(arn.clone(), rule);
    usage::refresh(account, &groups);
    traffic::note_rule(account, &arn);
}

/// Takes a rule out of force.
pub(super) fn remove(account: &mut Account, arn: &str) {
    if let Some(rule) = account.elb.rules.take(arn) {
        usage::refresh(account, &action::groups(&rule.actions));
        traffic::forget_rule(account, arn);
    }
}

pub(super) fn create(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (listener, balancer) = listener::find(account, request)?;
    if balancer.kind == Kind::Network {
        return Err(ApiError::client(
            "OperationNotPermitted",
            "Rules are unsupported for Network Load Balancer listeners",
        ));
    }
    let priority = priority(request)?;
    let conditions = condition::read(&request.objects("Conditions")?)?;
    let items = request.objects("Actions")?;
    let actions = action::read(account, balancer, &listener.protocol, &items, &[])?;
    let mut own = account.elb.rules.under(&listener.rules_prefix());
    let taken = own.any(|(_, rule)| rule.priority == Some(priority));
    drop(own);
    if taken {
        return Err(in_use(priority));
    }
    let all = account.elb.rules.iter().map(|(_, rule)| rule);
    let of_balancer = all.filter(|rule| {
        let of = account.elb.listeners.get(&rule.listener);
        !rule.is_default() && of.is_some_and(|of| of.load_balancer == balancer.arn)
    });
    if of_balancer.count() >= MOST {
        return Err(ApiError::client(
            "TooManyRules",
            format!(
                "The maximum number of rules on load balancer '{}' ({MOST}) is reached",
                balancer.arn
            ),
        ));
    }
    let (listener, prefix) = (listener.arn.clone(), listener.rules_prefix());
    let tags = tag::read(request)?;
    let rule = Rule {
        arn: prefix + &account.draw_hex(16),
        listener,
        priority: Some(priority),
        conditions,
        actions,
        tags,
    };
    let view = rule.view();
    put(account, rule);
    Ok(json!({"Rules": [view]}))
}

pub(super) fn describe(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arns = request.texts("RuleArns")?;
    let mut rules: Vec<&Rule> = match (request.text("ListenerArn")?, arns.as_slice()) {
        (None, []) | (Some(_), [_, ..]) => {
            return Err(validation(
                "You must specify either listener ARN or rule ARNs",
            ));
        }
        (Some(_), []) => {
            let (listener, _) = listener::find(account, request)?;
            let own = account.elb.rules.under(&listener.rules_prefix());
            own.map(|(_, rule)| rule).collect()
        }
        (None, arns) => {
            let found = arns.iter().map(|arn| account.elb.rules.get(arn));
            let found: Option<Vec<&Rule>> = found.collect();
            found.ok_or_else(not_found)?
        }
    };
    rules.sort_by_key(|rule| rule.priority.unwrap_or(i64::MAX));
    // Pages follow the order of priorities, so what a page ends with is one.
    let key = |rule: &Rule| format!("{:05}|{}", rule.priority.unwrap_or(99_999), rule.arn);
    let keys: Vec<String> = rules.iter().map(|rule| key(rule)).collect();
    let page = page(request, keys.iter().map(String::as_str))?;
    let shown = page.items.iter().filter_map(|key| key.split_once('|'));
    let views = shown
        .filter_map(|(_, arn)| account.elb.rules.get(arn))
        .map(Rule::view)
        .collect();
    Ok(listed("Rules", views, page))
}

pub(super) fn modify(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = required(request, "RuleArn")?;
    let mut rule = account.elb.rules.get(arn).ok_or_else(not_found)?.clone();
    if rule.is_default() {
        return Err(not_permitted(arn, "modified"));
    }
    let conditions = request.objects("Conditions")?;
    let items = request.objects("Actions")?;
    if conditions.is_empty() && items.is_empty() {
        return Err(validation("Either conditions or actions must be specified"));
    }
    if !conditions.is_empty() {
        rule.conditions = condition::read(&conditions)?;
    }
    if !items.is_empty() {
        let listener = account.elb.listeners.get(&rule.listener);
        let listener = listener.ok_or_else(listener::not_found)?;
        let balancer = account.elb.load_balancers.get(&listener.load_balancer);
        let balancer = balancer.ok_or_else(listener::not_found)?;
        rule.actions = action::read(account, balancer, &listener.protocol, &items, &rule.actions)?;
    }
    let view = rule.view();
    put(account, rule);
    Ok(json!({"Rules": [view]}))
}

pub(super) fn delete(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let arn = required(request, "RuleArn")?;
    let rule = account.elb.rules.get(arn).ok_or_else(not_found)?;
    if rule.is_default() {
        return Err(not_permitted(arn, "deleted"));
    }
    remove(account, arn);
    Ok(json!({}))
}

/// The error for a change of a default rule, which changes with its listener only.
fn not_permitted(arn: &str, done: &str) -> ApiError {
    ApiError::client(
        "OperationNotPermitted",
        format!("Default rule '{arn}' cannot be {done}"),
    )
}
