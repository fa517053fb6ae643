//! `SetRulePriorities`.

use serde_json::{Value, json};

use super::request::{missing, validation};
use super::rule::{self, Rule};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;

/// Sets all priorities that a request names, or none.
pub(super) fn set_priorities(
    account: &mut Account,
    _caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let mut changed: Vec<Rule> = Vec::new();
    for item in request.objects("RulePriorities")? {
        let item = Fields(item);
        let arn = item.text("RuleArn")?.ok_or_else(|| missing("RuleArn"))?;
        let found = account.elb.rules.get(arn).ok_or_else(rule::not_found)?;
        if found.is_default() {
            return Err(ApiError::client(
                "OperationNotPermitted",
                format!("The priority of default rule '{arn}' cannot be changed"),
            ));
        }
        if changed.iter().any(|one| one.arn == arn) {
            return Err(validation(format!(
                "Rule '{arn}' is specified more than once"
            )));
        }
        let priority = Some(rule::priority(item)?);
        changed.push(Rule {
            priority,
            ..found.clone()
        });
    }
    if changed.is_empty() {
        return Err(missing("RulePriorities"));
    }
    check_unique(account, &changed)?;
    let views: Vec<Value> = changed.iter().map(Rule::view).collect();
    for one in changed {
        account.elb.rules.put(one.arn.clone(), one);
    }
    Ok(json!({"Rules": views}))
}

/// No two rules of a listener have one priority, changed or not.
fn check_unique(account: &Account, changed: &[Rule]) -> Result<(), ApiError> {
    for one in changed {
        let others = account.elb.rules.iter().map(|(_, rule)| rule);
        let staying = others.filter(|rule| changed.iter().all(|other| other.arn != rule.arn));
        let taken = staying.chain(changed).any(|rule| {
            let same_listener = rule.listener == one.listener && rule.arn != one.arn;
            same_listener && rule.priority == one.priority
        });
        if taken {
            return Err(rule::in_use(one.priority.unwrap_or_default()));
        }
    }
    Ok(())
}
