//! Reserved concurrency.

use serde_json::{Value, json};

use super::Reply;
use super::error::{invalid, missing};
use super::name::Named;
use super::request::Request;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;

/// Executions at once of an account and region, and how many of them no function may reserve.
const OF_ACCOUNT: i64 = 1_000;
const UNRESERVED: i64 = 100;

pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    named.function(account)?;
    let count = request.fields().integer("ReservedConcurrentExecutions")?;
    let count = count.ok_or_else(|| missing("reservedConcurrentExecutions"))?;
    let prefix = format!("{}/", caller.region);
    let others = account
        .lambda
        .functions
        .under(&prefix)
        .filter(|(key, _)| *key != named.key);
    let others: i64 = others.filter_map(|(_, function)| function.reserved).sum();
    if count < 0 || others.saturating_add(count) > OF_ACCOUNT - UNRESERVED {
        return Err(invalid(format!(
            "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below \
             its minimum value of [{UNRESERVED}]."
        )));
    }
    named.function_mut(account)?.reserved = Some(count);
    Ok((200, json!({"ReservedConcurrentExecutions": count})))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    let reserved = named.function(account)?.reserved;
    Ok((
        200,
        reserved.map_or_else(
            || json!({}),
            |count| json!({"ReservedConcurrentExecutions": count}),
        ),
    ))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    named.function_mut(account)?.reserved = None;
    Ok((204, Value::Null))
}
