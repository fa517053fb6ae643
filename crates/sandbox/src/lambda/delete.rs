//! `DeleteFunction`: of one version, or of all.

use serde_json::Value;

use super::error::{conflict, invalid, no_function};
use super::name::Named;
use super::request::Request;
use super::{Reply, code};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    named.function(account)?;
    if request.query("Qualifier") == Some("$LATEST") {
        return Err(invalid(
            "$LATEST version cannot be deleted without deleting the function.",
        ));
    }
    match &named.qualifier {
        Some(number) => delete_version(account, &named, number)?,
        None => delete_all(account, &named),
    }
    code::forget_unused(account);
    Ok((204, Value::Null))
}

fn delete_version(account: &mut Account, named: &Named, number: &str) -> Result<(), ApiError> {
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(format!(
            "{number} is an alias: delete it with DeleteAlias."
        )));
    }
    let below = named.below();
    let aliases = account.lambda.aliases.under(&below);
    let names: Vec<&str> = aliases
        .filter(|(_, alias)| alias.names(number))
        .map(|(_, alias)| alias.name.as_str())
        .collect();
    if !names.is_empty() {
        return Err(conflict(format!(
            "Unable to delete version because the following aliases reference it: [{}]",
            names.join(", ")
        )));
    }
    let key = named.version_key(number);
    account
        .lambda
        .versions
        .take(&key)
        .ok_or_else(|| no_function(&named.qualified()))?;
    Ok(())
}

fn delete_all(account: &mut Account, named: &Named) {
    let below = named.below();
    let tables = &mut account.lambda;
    let versions: Vec<String> = tables
        .versions
        .under(&below)
        .map(|(key, _)| key.to_owned())
        .collect();
    let aliases: Vec<String> = tables
        .aliases
        .under(&below)
        .map(|(key, _)| key.to_owned())
        .collect();
    for key in versions {
        tables.versions.take(&key);
    }
    for key in aliases {
        tables.aliases.take(&key);
    }
    tables.functions.take(&named.key);
}
