//! Published versions.

use serde_json::{Value, json};

use super::Reply;
use super::error::{conflict, invalid};
use super::function::{Phase, Revision, Version};
use super::name::Named;
use super::request::Request;
use super::update::check_revision;
use crate::account::{Account, Wake};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::page::cut_at;

pub(super) fn publish(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    let function = named.function(account)?;
    let fields = request.fields();
    check_revision(account, &named, request)?;
    let current = &function.latest.code.sha256;
    if let Some(wanted) = fields.text("CodeSha256")?
        && !wanted.is_empty()
        && wanted != current
    {
        return Err(invalid(format!(
            "CodeSHA256 ({wanted}) is different from current CodeSHA256 in $LATEST ({current}). Please try again with \
             the CodeSHA256 in $LATEST."
        )));
    }
    function.check_idle()?;
    if let Phase::Broken { reason, .. } = &function.latest.phase {
        return Err(conflict(format!(
            "The operation cannot be performed at this time. The last update of the function failed: {reason}"
        )));
    }
    let description = fields.text("Description")?.map(str::to_owned);
    Ok((201, publish_now(account, &named, description)?))
}

/// Publishes `$LATEST`, unless the newest version is the same.
pub(super) fn publish_now(
    account: &mut Account,
    named: &Named,
    description: Option<String>,
) -> Result<Value, ApiError> {
    let function = named.function(account)?;
    let newest = account
        .lambda
        .versions
        .get(&named.version_key(&function.published.to_string()));
    if let Some(newest) = newest
        && same_but_description(&newest.revision, &function.latest)
    {
        return Ok(view(account, named, newest));
    }
    let number = function.published + 1;
    let mut revision = function.latest.clone();
    revision.phase = Phase::Creating;
    if let Some(description) = description.filter(|text| !text.is_empty()) {
        revision
            .document
            .insert("Description".to_owned(), json!(description));
    }
    revision.id = account.draw_uuid();
    revision.modified = account.now;
    let due = account.later(account.pace.function);
    let key = named.version_key(&number.to_string());
    let version = Version {
        number,
        revision,
        due: Some(due),
    };
    let shown = view(account, named, &version);
    account.lambda.versions.put(key.clone(), version);
    account.schedule(due, Wake::FunctionVersion(key));
    named.function_mut(account)?.published = number;
    Ok(shown)
}

/// A version can have a description of its own.
fn same_but_description(version: &Revision, latest: &Revision) -> bool {
    let mut version = version.clone();
    match latest.document.get("Description") {
        Some(text) => version
            .document
            .insert("Description".to_owned(), text.clone()),
        None => version.document.shift_remove("Description"),
    };
    version.same(latest)
}

/// `FunctionConfiguration` of a version.
pub(super) fn view(account: &Account, named: &Named, version: &Version) -> Value {
    let number = version.number.to_string();
    let arn = format!("{}:{number}", named.arn);
    let function = account.lambda.functions.get(&named.key);
    let shown = function.map(|function| version.revision.view(function, &number, &arn));
    Value::Object(shown.unwrap_or_default())
}

/// `$LATEST` first, then the versions in the order of their numbers.
pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    let function = named.function(account)?;
    let below = named.below();
    let versions = account.lambda.versions.under(&below).map(|(key, _)| key);
    let all = std::iter::once(below.as_str()).chain(versions);
    let page = cut_at(request.page_size()?, request.query("Marker"), false, all)?;
    let shown = page
        .items
        .iter()
        .filter_map(|key| match account.lambda.versions.get(key) {
            Some(version) => Some(view(account, &named, version)),
            None if *key == below => {
                let arn = format!("{}:$LATEST", named.arn);
                Some(Value::Object(
                    function.latest.view(function, "$LATEST", &arn),
                ))
            }
            None => None,
        });
    let shown: Vec<Value> = shown.collect();
    Ok((
        200,
        json!({"Versions": shown, "NextMarker": page.next_token}),
    ))
}
