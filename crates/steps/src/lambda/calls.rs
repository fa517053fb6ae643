//! Calls to Lambda: each says what it was for where it fails, and what AWS answered as the document that it is.

use aws_sdk_lambda::primitives::Blob;
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::manifest::short;
use super::site::Site;
use crate::aws::error::{Doing, code, failure};
use crate::aws::wire::{Answer, whole};

/// How a change was answered.
pub(super) enum Changed {
    /// It was made; the answer.
    Done(Value),
    /// The function is being changed by somebody.
    Busy,
    /// It is not what the caller has seen.
    Moved,
    /// What was to be made is there, or what was to be changed is not.
    NotSo(String),
}

/// Sends a prepared call of the SDK and sorts its answer.
macro_rules! change {
    ($call:expr, $document:expr, $doing:expr) => {{
        let answer = Answer::default();
        let call = $call.customize().interceptor(answer.clone());
        let sent = match $document {
            Some(document) => call.mutate_request(whole(document)).send().await,
            None => call.send().await,
        };
        match sent {
            Ok(_) => Ok(Changed::Done(answer.take())),
            Err(error) => match code(&error) {
                Some("ResourceConflictException") => {
                    let text = error.as_service_error().map(ToString::to_string);
                    let text = text.unwrap_or_default();
                    let message = aws_sdk_lambda::error::ProvideErrorMetadata::message(&error)
                        .unwrap_or(&text)
                        .to_owned();
                    let busy = message.contains("cannot be performed at this time");
                    Ok(if busy {
                        Changed::Busy
                    } else {
                        Changed::NotSo(message)
                    })
                }
                Some("PreconditionFailedException") => Ok(Changed::Moved),
                _ => Err(failure(Doing::with(&$doing), error)),
            },
        }
    }};
}

/// Answers `None` for what is not there.
macro_rules! look {
    ($call:expr, $doing:expr) => {{
        let answer = Answer::default();
        let call = $call.customize().interceptor(answer.clone());
        match call.send().await {
            Ok(_) => Ok(Some(answer.take())),
            Err(error) if code(&error) == Some("ResourceNotFoundException") => Ok(None),
            Err(error) => Err(failure(Doing::with(&$doing), error)),
        }
    }};
}

/// `GetFunction`, of a version or of `$LATEST`.
pub(super) async fn get(
    site: &Site,
    name: &str,
    version: Option<&str>,
) -> Result<Option<Value>, Failure> {
    let doing = format!("look at function {} in {site}", short(name));
    let call = site.aws.lambda.get_function().function_name(name);
    look!(call.set_qualifier(version.map(str::to_owned)), doing)
}

/// `GetFunctionConfiguration`, of a version or of `$LATEST`.
pub(super) async fn configuration(
    site: &Site,
    name: &str,
    version: Option<&str>,
) -> Result<Option<Value>, Failure> {
    let doing = format!("look at function {} in {site}", short(name));
    let call = site
        .aws
        .lambda
        .get_function_configuration()
        .function_name(name);
    look!(call.set_qualifier(version.map(str::to_owned)), doing)
}

/// `CreateFunction`.
pub(super) async fn create(site: &Site, document: &Value) -> Result<Changed, Failure> {
    let name = short(document["FunctionName"].as_str().unwrap_or_default());
    let doing = format!("create function {name} in {site}");
    change!(site.aws.lambda.create_function(), Some(document), doing)
}

/// `UpdateFunctionCode`; `document` is its body.
pub(super) async fn update_code(
    site: &Site,
    name: &str,
    document: &Value,
) -> Result<Changed, Failure> {
    let doing = format!("update the code of function {} in {site}", short(name));
    let call = site.aws.lambda.update_function_code().function_name(name);
    change!(call, Some(document), doing)
}

/// `UpdateFunctionCode` with a package of one's own.
pub(super) async fn upload_code(
    site: &Site,
    name: &str,
    (package, architectures): (Vec<u8>, &Value),
) -> Result<Changed, Failure> {
    let doing = format!("upload the code of function {} in {site}", short(name));
    let mut call = site
        .aws
        .lambda
        .update_function_code()
        .function_name(name)
        .zip_file(Blob::new(package));
    for architecture in architectures
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        call = call.architectures(architecture.into());
    }
    let none: Option<&Value> = None;
    change!(call, none, doing)
}

/// `UpdateFunctionConfiguration`; `document` is its body.
pub(super) async fn update_configuration(
    site: &Site,
    name: &str,
    document: &Value,
) -> Result<Changed, Failure> {
    let doing = format!(
        "update the configuration of function {} in {site}",
        short(name)
    );
    let call = site
        .aws
        .lambda
        .update_function_configuration()
        .function_name(name);
    change!(call, Some(document), doing)
}

/// `PublishVersion` of the code and revision that were seen.
pub(super) async fn publish(site: &Site, name: &str, seen: &Value) -> Result<Changed, Failure> {
    let doing = format!("publish a version of function {} in {site}", short(name));
    let text = |field: &str| seen[field].as_str().map(str::to_owned);
    let call = site.aws.lambda.publish_version().function_name(name);
    let call = call
        .set_code_sha256(text("CodeSha256"))
        .set_revision_id(text("RevisionId"));
    let none: Option<&Value> = None;
    change!(call, none, doing)
}

/// `DeleteFunction`, of one version or of all. What is gone is deleted.
pub(super) async fn delete(
    site: &Site,
    name: &str,
    version: Option<&str>,
) -> Result<Changed, Failure> {
    let what = version.map_or_else(String::new, |version| format!("version {version} of "));
    let doing = format!("delete {what}function {} in {site}", short(name));
    let call = site.aws.lambda.delete_function().function_name(name);
    let sent = call.set_qualifier(version.map(str::to_owned)).send().await;
    match sent {
        Ok(_) => Ok(Changed::Done(Value::Null)),
        Err(error) => match code(&error) {
            Some("ResourceNotFoundException") => Ok(Changed::Done(Value::Null)),
            Some("ResourceConflictException") => {
                let message = aws_sdk_lambda::error::ProvideErrorMetadata::message(&error);
                let message = message.unwrap_or_default().to_owned();
                let busy = message.contains("cannot be performed at this time");
                Ok(if busy {
                    Changed::Busy
                } else {
                    Changed::NotSo(message)
                })
            }
            _ => Err(failure(Doing::with(&doing), error)),
        },
    }
}

/// `GetAlias`.
pub(super) async fn alias(site: &Site, name: &str, alias: &str) -> Result<Option<Value>, Failure> {
    let doing = format!(
        "look at alias {alias} of function {} in {site}",
        short(name)
    );
    look!(
        site.aws.lambda.get_alias().function_name(name).name(alias),
        doing
    )
}

/// `CreateAlias`; `document` is its body.
pub(super) async fn create_alias(
    site: &Site,
    name: &str,
    document: &Value,
) -> Result<Changed, Failure> {
    let alias = document["Name"].as_str().unwrap_or_default();
    let doing = format!("create alias {alias} of function {} in {site}", short(name));
    let call = site.aws.lambda.create_alias().function_name(name);
    change!(call, Some(document), doing)
}

/// `UpdateAlias`; `document` is its body.
pub(super) async fn update_alias(
    site: &Site,
    (name, alias): (&str, &str),
    document: &Value,
) -> Result<Changed, Failure> {
    let doing = format!("update alias {alias} of function {} in {site}", short(name));
    let call = site
        .aws
        .lambda
        .update_alias()
        .function_name(name)
        .name(alias);
    change!(call, Some(document), doing)
}

/// `DeleteAlias`.
pub(super) async fn delete_alias(site: &Site, name: &str, alias: &str) -> Result<(), Failure> {
    let doing = format!("delete alias {alias} of function {} in {site}", short(name));
    let call = site
        .aws
        .lambda
        .delete_alias()
        .function_name(name)
        .name(alias);
    match call.send().await {
        Ok(_) => Ok(()),
        Err(error) if code(&error) == Some("ResourceNotFoundException") => Ok(()),
        Err(error) => Err(failure(Doing::with(&doing), error)),
    }
}

/// `TagResource` and `UntagResource`: tags that are `null` go.
pub(super) async fn tag(site: &Site, arn: &str, tags: &Map<String, Value>) -> Result<(), Failure> {
    let doing = format!("tag function {} in {site}", short(arn));
    let (gone, set): (Vec<_>, Vec<_>) = tags.iter().partition(|(_, value)| value.is_null());
    if !set.is_empty() {
        let mut call = site.aws.lambda.tag_resource().resource(arn);
        for (name, value) in set {
            call = call.tags(name, value.as_str().unwrap_or_default());
        }
        call.send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
    }
    if !gone.is_empty() {
        let mut call = site.aws.lambda.untag_resource().resource(arn);
        for (name, _) in gone {
            call = call.tag_keys(name);
        }
        call.send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
    }
    Ok(())
}

/// A body of an alias that points to `version` alone.
pub(super) fn whole_alias(version: &str) -> Value {
    json!({"FunctionVersion": version, "RoutingConfig": {"AdditionalVersionWeights": {}}})
}
