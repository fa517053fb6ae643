//! What functions are: `GetFunction`, `GetFunctionConfiguration`, `ListFunctions`.

use serde_json::{Value, json};

use super::name::Named;
use super::request::Request;
use super::{Reply, version};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::page::cut_at;

/// The configuration of what a request names; an alias shows the version that it points to.
fn shown(account: &Account, named: &Named) -> Result<Value, ApiError> {
    match named.version(account)? {
        Some(found) => Ok(version::view(account, named, found)),
        None => {
            let function = named.function(account)?;
            let arn = named.qualified();
            Ok(Value::Object(
                function.latest.view(function, "$LATEST", &arn),
            ))
        }
    }
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    let configuration = shown(account, &named)?;
    let function = named.function(account)?;
    let code = match named.version(account)? {
        Some(version) => &version.revision.code,
        None => &function.latest.code,
    };
    let mut answer =
        json!({"Configuration": configuration, "Code": code.location(&request.address)});
    if !function.tags.is_empty() && named.qualifier.is_none() {
        answer["Tags"] = Value::Object(function.tags.clone());
    }
    if let Some(reserved) = function.reserved {
        answer["Concurrency"] = json!({"ReservedConcurrentExecutions": reserved});
    }
    Ok((200, answer))
}

pub(super) fn configuration(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    Ok((200, shown(account, &named)?))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let prefix = format!("{}/", caller.region);
    let tables = &account.lambda;
    let all = tables.functions.under(&prefix).map(|(key, _)| key);
    let page = cut_at(request.page_size()?, request.query("Marker"), false, all)?;
    let mut functions = Vec::new();
    for key in &page.items {
        let Some(function) = tables.functions.get(key) else {
            continue;
        };
        functions.push(function.view());
        if request.query("FunctionVersion") == Some("ALL") {
            let below = format!("{key}/");
            for (_, version) in tables.versions.under(&below) {
                let (number, arn) = (
                    version.number.to_string(),
                    format!("{}:{}", function.arn, version.number),
                );
                functions.push(Value::Object(
                    version.revision.view(function, &number, &arn),
                ));
            }
        }
    }
    Ok((
        200,
        json!({"Functions": functions, "NextMarker": page.next_token}),
    ))
}
