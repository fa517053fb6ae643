//! Registers a task definition once per step, crash or not.

use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};

use super::manifest::TaskDefinition;
use super::site::Site;
use crate::aws::document::within;
use crate::aws::error::{Doing, failure};
use crate::aws::wire::{Answer, whole};
use crate::context::StepContext;

/// How many newer revisions are looked at for one that an interrupted call registered.
const MOST_LOOKED_AT: i32 = 20;

/// Written down before a task definition is registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Intent {
    /// Family of the document.
    pub(super) family: String,
    /// Newest active revision before; 0 when there was none.
    pub(super) revision_before: i32,
}

/// A registered task definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Registered {
    pub(super) arn: String,
}

impl Registered {
    /// `family:revision`.
    pub(super) fn name(&self) -> &str {
        short(&self.arn)
    }

    /// The revision, which is what Harness calls the version of an instance.
    pub(super) fn revision(&self) -> &str {
        revision(&self.arn)
    }
}

/// `family:revision` of an ARN.
pub(super) fn short(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

/// Revision of an ARN.
pub(super) fn revision(arn: &str) -> &str {
    arn.rsplit(':').next().unwrap_or("")
}

/// What to note before [`registered`]; `None` when nothing is to be registered.
pub(super) async fn intended(
    cx: &mut StepContext<'_>,
    site: &Site,
    source: &TaskDefinition,
) -> Result<Option<Intent>, Failure> {
    match source {
        TaskDefinition::Arn(_) => Ok(None),
        TaskDefinition::Document(document) => {
            let document = cx.secrets().reveal(document.clone()).await?;
            intend(site, &document).await.map(Some)
        }
    }
}

/// The task definition of `source`: the one that it names, or registered now. A `resumed` call may have been cut
/// off after it registered; what it made is found by the `intent`.
pub(super) async fn registered(
    cx: &mut StepContext<'_>,
    site: &Site,
    source: &TaskDefinition,
    (intent, resumed): (Option<&Intent>, bool),
    unit: &'static str,
) -> Result<Registered, Failure> {
    let document = match source {
        TaskDefinition::Arn(name) => return named(site, name).await,
        TaskDefinition::Document(document) => cx.secrets().reveal(document.clone()).await?,
    };
    let found = match (intent, resumed) {
        (Some(intent), true) => adopt(site, intent, &document).await?,
        _ => None,
    };
    let registered = match found {
        Some(registered) => registered,
        None => register(site, &document).await?,
    };
    let (name, arn) = (registered.name(), &registered.arn);
    cx.info(
        unit,
        format!("Created Task Definition {name} with Arn {arn}.."),
    );
    Ok(registered)
}

/// The task definition that a service names: an ARN with its revision, or what AWS takes as well, `family:revision`
/// and `family` for the newest. ECS answers with whole ARNs, and those are compared from here on.
async fn named(site: &Site, name: &str) -> Result<Registered, Failure> {
    if name.starts_with("arn:") && short(name).contains(':') {
        return Ok(Registered {
            arn: name.to_owned(),
        });
    }
    let doing = format!("find task definition `{name}` in {site}");
    let answer = site
        .aws
        .ecs
        .describe_task_definition()
        .task_definition(name)
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    arn_in(answer.task_definition(), &doing)
}

async fn intend(site: &Site, document: &Value) -> Result<Intent, Failure> {
    let family = document["family"].as_str().unwrap_or_default().to_owned();
    let doing = format!("look up task definition family `{family}` in {site}");
    let newest = site
        .aws
        .ecs
        .describe_task_definition()
        .task_definition(&family)
        .send()
        .await;
    let revision_before = match newest {
        Ok(answer) => answer
            .task_definition()
            .map_or(0, |definition| definition.revision()),
        // "Unable to describe task definition": the family is new, or all of it is inactive.
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|e| e.code() == Some("ClientException")) =>
        {
            0
        }
        Err(error) => return Err(failure(Doing::with(&doing), error)),
    };
    Ok(Intent {
        family,
        revision_before,
    })
}

/// Registers `document` (secrets filled in).
async fn register(site: &Site, document: &Value) -> Result<Registered, Failure> {
    let family = document["family"].as_str().unwrap_or_default();
    let doing = format!("register task definition `{family}` in {site}");
    let answer = site
        .aws
        .ecs
        .register_task_definition()
        .customize()
        .mutate_request(whole(document))
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    arn_in(answer.task_definition(), &doing)
}

/// The ARN in an answer of AWS.
fn arn_in(
    definition: Option<&aws_sdk_ecs::types::TaskDefinition>,
    doing: &str,
) -> Result<Registered, Failure> {
    let arn = definition.and_then(|definition| definition.task_definition_arn());
    arn.map(|arn| Registered {
        arn: arn.to_owned(),
    })
    .ok_or_else(|| Failure {
        error: ErrorType::Unknown,
        message: format!("Cannot {doing}: AWS's answer names no task definition."),
        left_behind: None,
    })
}

/// The revision that an interrupted [`register`] made, if it got as far: newer than noted, and the same
/// document.
async fn adopt(
    site: &Site,
    intent: &Intent,
    document: &Value,
) -> Result<Option<Registered>, Failure> {
    let Intent {
        family,
        revision_before,
    } = intent;
    let newest = intend(site, document).await?.revision_before;
    let oldest = (*revision_before).max(newest.saturating_sub(MOST_LOOKED_AT));
    for revision in (oldest.saturating_add(1)..=newest).rev() {
        let name = format!("{family}:{revision}");
        let doing = format!("look at task definition {name} in {site}");
        let answer = Answer::default();
        site.aws
            .ecs
            .describe_task_definition()
            .task_definition(&name)
            .customize()
            .interceptor(answer.clone())
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        let found = &answer.take()["taskDefinition"];
        if let (true, Some(arn)) = (same(document, found), found["taskDefinitionArn"].as_str()) {
            return Ok(Some(Registered {
                arn: arn.to_owned(),
            }));
        }
    }
    Ok(None)
}

/// Whether `theirs`, an answer of AWS with its defaults filled in, is what came of `ours`.
fn same(ours: &Value, theirs: &Value) -> bool {
    let Some(fields) = ours.as_object() else {
        return false;
    };
    fields.iter().all(|(name, value)| match name.as_str() {
        // Tags are answered apart; sizes with units come back in AWS's own unit.
        "tags" => true,
        "cpu" | "memory"
            if !value
                .as_str()
                .is_some_and(|v| v.bytes().all(|b| b.is_ascii_digit())) =>
        {
            true
        }
        _ => within(value, &theirs[name.as_str()]),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_of_aws_is_recognised_as_what_was_sent() {
        let ours = json!({
            "family": "web", "cpu": ".5 vCPU", "memory": "512", "tags": [{"key": "a"}],
            "volumes": [],
            "containerDefinitions": [{"name": "a", "environment": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}],
        });
        let mut theirs = json!({
            "family": "web", "cpu": "512", "memory": "512", "revision": 3, "status": "ACTIVE",
            "containerDefinitions": [{"name": "a", "cpu": 0, "essential": true,
                "environment": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}],
        });
        assert!(same(&ours, &theirs));
        theirs["containerDefinitions"][0]["environment"][0]["value"] = json!("3");
        assert!(!same(&ours, &theirs));
    }
}
