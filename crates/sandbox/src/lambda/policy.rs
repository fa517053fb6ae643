//! Who may invoke a function: the statements of its resource policy. They are kept, and nothing asks for them.

use serde_json::{Value, json};

use super::Reply;
use super::error::{conflict, missing, not_found};
use super::name::Named;
use super::request::Request;
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;

fn of(account: &Account, caller: &Caller, request: &Request) -> Result<(Named, String), ApiError> {
    let named = Named::of(account, caller, request)?;
    named.version(account)?;
    let qualifier = named.qualifier.clone().unwrap_or_default();
    Ok((named, qualifier))
}

pub(super) fn add(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, qualifier) = of(account, caller, request)?;
    let fields = request.fields();
    let id = fields
        .text("StatementId")?
        .ok_or_else(|| missing("statementId"))?;
    let action = fields.text("Action")?.ok_or_else(|| missing("action"))?;
    let principal = fields
        .text("Principal")?
        .ok_or_else(|| missing("principal"))?;
    let principal = match principal {
        "*" => json!("*"),
        service if service.contains('.') => json!({"Service": service}),
        other => json!({"AWS": other}),
    };
    let mut statement = json!({
        "Sid": id, "Effect": "Allow", "Principal": principal, "Action": action, "Resource": named.qualified(),
    });
    if let Some(source) = fields.text("SourceArn")? {
        statement["Condition"]["ArnLike"]["AWS:SourceArn"] = json!(source);
    }
    if let Some(source) = fields.text("SourceAccount")? {
        statement["Condition"]["StringEquals"]["AWS:SourceAccount"] = json!(source);
    }
    let statements = named
        .function_mut(account)?
        .policies
        .entry(qualifier)
        .or_default();
    if statements
        .iter()
        .any(|known| known.get("Sid") == Some(&json!(id)))
    {
        return Err(conflict(format!(
            "The statement id ({id}) provided already exists. Please provide a new statement id, or remove the existing statement."
        )));
    }
    let text = statement.to_string();
    if let Value::Object(statement) = statement {
        statements.push(statement);
    }
    Ok((201, json!({"Statement": text})))
}

pub(super) fn remove(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, qualifier) = of(account, caller, request)?;
    let id = request.second();
    let statements = named
        .function_mut(account)?
        .policies
        .entry(qualifier)
        .or_default();
    let before = statements.len();
    statements.retain(|known| known.get("Sid") != Some(&json!(id)));
    if statements.len() == before {
        return Err(not_found(format!(
            "Statement {id} is not found in resource policy."
        )));
    }
    Ok((204, Value::Null))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, qualifier) = of(account, caller, request)?;
    let function = named.function(account)?;
    let statements = function
        .policies
        .get(&qualifier)
        .filter(|statements| !statements.is_empty());
    let statements =
        statements.ok_or_else(|| not_found("The resource you requested does not exist."))?;
    let policy = json!({"Version": "2012-10-17", "Id": "default", "Statement": statements});
    Ok((
        200,
        json!({"Policy": policy.to_string(), "RevisionId": function.latest.id}),
    ))
}
