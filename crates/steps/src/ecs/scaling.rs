//! Application Auto Scaling of a service: read, taken off, put on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::manifest::Documents;
use super::schedule;
use super::site::Site;
use crate::aws::document::fields;
use crate::aws::error::{Doing, code, failure};
use crate::aws::wire::{Answer, whole};
use crate::context::StepContext;

pub(super) const NAMESPACE: &str = "ecs";
pub(super) const DIMENSION: &str = "ecs:service:DesiredCount";

/// Scalable targets and policies of one service, as requests that would make them again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Scaling {
    pub(super) targets: Vec<Value>,
    pub(super) policies: Vec<Value>,
    /// Scheduled actions, which no manifest has.
    #[serde(default)]
    pub(super) actions: Vec<Value>,
}

impl Scaling {
    /// What the manifests ask for.
    pub(super) fn of_manifests(site: &Site, service: &str, documents: &Documents) -> Self {
        let resource = resource(site, service);
        let fit = |document: &Value| {
            let mut document = document.clone();
            document["ResourceId"] = json!(resource);
            for (name, default) in [
                ("ServiceNamespace", NAMESPACE),
                ("ScalableDimension", DIMENSION),
            ] {
                if document[name].is_null() {
                    document[name] = json!(default);
                }
            }
            document
        };
        Self {
            targets: documents.scalable_targets.iter().map(fit).collect(),
            policies: documents.scaling_policies.iter().map(fit).collect(),
            actions: Vec::new(),
        }
    }

    /// The same, with the scheduled actions of what it takes the place of: AWS deletes them with their target.
    pub(super) fn with_actions_of(mut self, before: Option<&Self>) -> Self {
        if let (Some(target), Some(before)) = (self.targets.first(), before) {
            let to = target["ResourceId"].as_str().unwrap_or_default();
            self.actions = schedule::moved(&before.actions, to);
        }
        self
    }

    /// What of its target is lost when `new` takes its place and was hardly meant to be: that somebody suspended it. Nothing, where
    /// that is suspended in the same way.
    pub(super) fn suspended_but_in(&self, new: &Self) -> Option<String> {
        let suspended = |scaling: &Self| {
            let states = scaling.targets.iter();
            let states = states.filter_map(|target| target["SuspendedState"].as_object());
            let set = states.flatten().filter(|(_, value)| **value == json!(true));
            set.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>()
        };
        let lost = &suspended(self) - &suspended(new);
        let lost: Vec<String> = lost.into_iter().collect();
        (!lost.is_empty()).then(|| lost.join(", "))
    }

    /// The bounds of its target, `None` without one.
    pub(super) fn bounds(&self) -> Option<String> {
        let target = self.targets.first()?;
        let bound = |name: &str| {
            let bound = &target[name];
            let text = bound.as_str().map(str::to_owned);
            text.unwrap_or_else(|| bound.to_string())
        };
        Some(format!(
            "{} to {}",
            bound("MinCapacity"),
            bound("MaxCapacity")
        ))
    }

    /// What it is, in words that follow "without".
    pub(super) fn told(&self) -> String {
        let names = self.policies.iter();
        let names: Vec<&str> = names
            .filter_map(|policy| policy["PolicyName"].as_str())
            .collect();
        let mut told = match names.is_empty() {
            true => "its scalable target".to_owned(),
            false => format!(
                "its scalable target and scaling policies {}",
                names.join(", ")
            ),
        };
        let actions = self.actions.iter();
        let actions: Vec<&str> = actions
            .filter_map(|action| action["ScheduledActionName"].as_str())
            .collect();
        if !actions.is_empty() {
            told.push_str(&format!(", scheduled actions {}", actions.join(", ")));
        }
        told
    }

    /// Whether all of it is in `other`, as when it was taken off or put on half way.
    pub(super) fn is_part_of(&self, other: &Self) -> bool {
        self.targets.iter().all(|one| other.targets.contains(one))
            && self.policies.iter().all(|one| other.policies.contains(one))
            && self.actions.iter().all(|one| other.actions.contains(one))
    }

    /// Whether a number of tasks stays as it is when this is put on.
    pub(super) fn allows(&self, desired: i64) -> bool {
        let bound = |target: &Value, name: &str| {
            let bound = &target[name];
            let text = bound.as_str().and_then(|text| text.parse().ok());
            bound.as_i64().or(text)
        };
        self.targets.iter().all(|target| {
            bound(target, "MinCapacity").is_none_or(|min| min <= desired)
                && bound(target, "MaxCapacity").is_none_or(|max| desired <= max)
        })
    }

    /// Whether there is nothing to put on.
    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.policies.is_empty()
    }

    /// What the service has now.
    pub(super) async fn describe(site: &Site, service: &str) -> Result<Self, Failure> {
        let targets = describe_targets(site, service).await?;
        let policies = describe_policies(site, service).await?;
        let actions = match targets.is_empty() {
            // They belong to a target.
            true => Vec::new(),
            false => schedule::describe(site, service).await?,
        };
        Ok(Self {
            actions,
            targets: targets
                .iter()
                .map(|target| request("RegisterScalableTarget", target))
                .collect(),
            policies: policies
                .iter()
                .map(|policy| request("PutScalingPolicy", policy))
                .collect(),
        })
    }

    /// Puts all of it on. Both calls replace what has the same name, so a repetition changes nothing.
    pub(super) async fn attach(
        &self,
        cx: &mut StepContext<'_>,
        site: &Site,
        unit: &'static str,
    ) -> Result<(), Failure> {
        for target in &self.targets {
            let target = cx.secrets().reveal(target.clone()).await?;
            let of = target["ResourceId"].as_str().unwrap_or_default();
            let doing = format!("register the scalable target {of} in {site}");
            let call = site.aws.scaling.register_scalable_target().customize();
            call.mutate_request(whole(&target))
                .send()
                .await
                .map_err(|error| failure(Doing::with(&doing), error))?;
            cx.info(unit, format!("Registered scalable target {of}"));
        }
        for policy in &self.policies {
            let policy = cx.secrets().reveal(policy.clone()).await?;
            let name = policy["PolicyName"].as_str().unwrap_or_default();
            let doing = format!("put the scaling policy `{name}` in {site}");
            let call = site.aws.scaling.put_scaling_policy().customize();
            call.mutate_request(whole(&policy))
                .send()
                .await
                .map_err(|error| failure(Doing::with(&doing), error))?;
            cx.info(unit, format!("Attached scaling policy {name}"));
        }
        schedule::attach(cx, site, &self.actions, unit).await
    }
}

/// Takes every policy and target off a service, as it is now; what is gone already is fine.
pub(super) async fn detach(
    cx: &mut StepContext<'_>,
    site: &Site,
    service: &str,
    unit: &'static str,
) -> Result<(), Failure> {
    let now = Scaling::describe(site, service).await?;
    for policy in &now.policies {
        let name = policy["PolicyName"].as_str().unwrap_or_default();
        let doing = format!("delete the scaling policy `{name}` in {site}");
        let deleted = site
            .aws
            .scaling
            .delete_scaling_policy()
            .policy_name(name)
            .service_namespace(NAMESPACE.into())
            .resource_id(resource(site, service))
            .scalable_dimension(DIMENSION.into())
            .send()
            .await;
        match deleted {
            Err(error) if code(&error) != Some("ObjectNotFoundException") => {
                return Err(failure(Doing::with(&doing), error));
            }
            _ => cx.info(unit, format!("Deleted scaling policy {name}")),
        }
    }
    if now.targets.is_empty() {
        return Ok(());
    }
    let doing = format!("deregister the scalable target of service `{service}` in {site}");
    let gone = site
        .aws
        .scaling
        .deregister_scalable_target()
        .service_namespace(NAMESPACE.into())
        .resource_id(resource(site, service))
        .scalable_dimension(DIMENSION.into())
        .send()
        .await;
    match gone {
        Err(error) if code(&error) != Some("ObjectNotFoundException") => {
            return Err(failure(Doing::with(&doing), error));
        }
        _ => cx.info(
            unit,
            format!("Deregistered scalable target of service {service}"),
        ),
    }
    Ok(())
}

pub(super) fn resource(site: &Site, service: &str) -> String {
    format!("service/{}/{service}", site.cluster_name())
}

async fn describe_targets(site: &Site, service: &str) -> Result<Vec<Value>, Failure> {
    let doing = format!("look at the scalable targets of service `{service}` in {site}");
    let (mut found, mut next) = (Vec::new(), None);
    loop {
        let answer = Answer::default();
        let page = site
            .aws
            .scaling
            .describe_scalable_targets()
            .service_namespace(NAMESPACE.into())
            .resource_ids(resource(site, service))
            .scalable_dimension(DIMENSION.into())
            .set_next_token(next)
            .customize()
            .interceptor(answer.clone())
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        found.extend(list(answer.take()["ScalableTargets"].take()));
        next = page.next_token;
        if next.is_none() {
            return Ok(found);
        }
    }
}

async fn describe_policies(site: &Site, service: &str) -> Result<Vec<Value>, Failure> {
    let doing = format!("look at the scaling policies of service `{service}` in {site}");
    let (mut found, mut next) = (Vec::new(), None);
    loop {
        let answer = Answer::default();
        let page = site
            .aws
            .scaling
            .describe_scaling_policies()
            .service_namespace(NAMESPACE.into())
            .resource_id(resource(site, service))
            .scalable_dimension(DIMENSION.into())
            .set_next_token(next)
            .customize()
            .interceptor(answer.clone())
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        found.extend(list(answer.take()["ScalingPolicies"].take()));
        next = page.next_token;
        if next.is_none() {
            return Ok(found);
        }
    }
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// The part of a description that a request can carry. The service-linked role is AWS's own and is
/// never passed.
fn request(shape: &str, described: &Value) -> Value {
    let linked = |name: &str, value: &Value| {
        name == "RoleARN"
            && value
                .as_str()
                .is_some_and(|arn| arn.contains(":role/aws-service-role/"))
    };
    let fields: Map<String, Value> = fields(shape)
        .filter_map(|name| described.get(name).map(|value| (name, value)))
        .filter(|(name, value)| !value.is_null() && !linked(name, value))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    Value::Object(fields)
}
