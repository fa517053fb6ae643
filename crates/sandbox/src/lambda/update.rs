//! `UpdateFunctionCode` and `UpdateFunctionConfiguration`.

use serde_json::Value;

use super::error::changed;
use super::function::{Phase, begin};
use super::name::Named;
use super::request::Request;
use super::{Reply, check, code as packages, version};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::pick;

/// Whether the function is still what the caller has seen.
pub(super) fn check_revision(
    account: &Account,
    named: &Named,
    request: &Request,
) -> Result<(), ApiError> {
    let function = named.function(account)?;
    match request.fields().text("RevisionId")? {
        Some(id) if id != function.latest.id => {
            Err(changed("GetFunction/GetFunctionConfiguration"))
        }
        _ => Ok(()),
    }
}

pub(super) fn code(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    let function = named.function(account)?;
    let image = function.latest.code.is_image();
    let fields = request.fields();
    check_revision(account, &named, request)?;
    function.check_idle()?;
    let code = packages::read(account, request, fields, image)?;
    let architectures = fields
        .0
        .get("Architectures")
        .filter(|value| !value.is_null());
    let function = named.function(account)?;
    let mut changed = function.clone();
    changed.latest.code = code;
    if let Some(architectures) = architectures {
        changed
            .latest
            .document
            .insert("Architectures".to_owned(), architectures.clone());
    }
    if fields.flag("DryRun")?.unwrap_or_default() {
        return Ok((200, changed.view()));
    }
    account.lambda.functions.put(named.key.clone(), changed);
    begin(account, &named.key, Phase::Updating);
    packages::forget_unused(account);
    if fields.flag("Publish")?.unwrap_or_default() {
        return Ok((200, version::publish_now(account, &named, None)?));
    }
    Ok((200, named.function(account)?.view()))
}

pub(super) fn configuration(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    let given = pick(request.fields().0, check::CONFIGURATION);
    let function = named.function(account)?;
    check::configuration(account, caller, &given)?;
    check::only_for_its_package(&given, function.latest.code.is_image())?;
    check_revision(account, &named, request)?;
    function.check_idle()?;
    let function = named.function_mut(account)?;
    for (name, value) in given {
        if is_none(&name, &value) {
            function.latest.document.shift_remove(&name);
        } else {
            function.latest.document.insert(name, value);
        }
    }
    begin(account, &named.key, Phase::Updating);
    Ok((200, named.function(account)?.view()))
}

/// Whether a value takes a setting away.
fn is_none(name: &str, value: &Value) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match name {
        "Environment" => empty(&value["Variables"]),
        "DeadLetterConfig" => empty(&value["TargetArn"]),
        "VpcConfig" => empty(&value["SubnetIds"]) && empty(&value["SecurityGroupIds"]),
        _ => empty(value),
    }
}
