//! The manifests of an Auto Scaling service, read, resolved and checked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;
use slipway_plan::ServicePlan;
use slipway_plan::fit::USER_DATA;

use super::{FETCH, image, invalid, name};
use crate::aws::document::read;
use crate::context::StepContext;
use crate::deployment::manifest::{Reader, once};
use crate::deployment::spec::text;

/// Most bytes of user data, before they are encoded (EC2 user guide, "Run commands when you launch an instance").
const MOST_USER_DATA: usize = 16 * 1024;

/// Field of a configuration that names the group.
const NAME: &str = "AutoScalingGroupName";

/// What a deployment needs of the manifests. Secrets are holes: it is stored as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Documents {
    /// Name of the group, without any suffix.
    pub(super) group: String,
    /// `CreateLaunchTemplate`, without what the deployment decides (name, image).
    pub(super) template: Value,
    /// `CreateAutoScalingGroup`, without what the deployment decides (name, launch template).
    pub(super) configuration: Value,
    /// `PutScalingPolicy`, each without the group's name.
    pub(super) policies: Vec<Value>,
    /// `PutScheduledUpdateGroupAction`, each without the group's name.
    pub(super) actions: Vec<Value>,
    /// `metrics` of the additional configuration.
    pub(super) metrics: Vec<Value>,
    /// What the instances run at their start, not encoded.
    pub(super) user_data: Option<String>,
    /// The image of the artifact, as the service names it.
    pub(super) image: Option<image::Wanted>,
}

impl Documents {
    /// Reads them once, and keeps them: `key` is where they are from then on.
    pub(super) async fn once(
        cx: &mut StepContext<'_>,
        key: &mut Option<String>,
    ) -> Result<Self, Failure> {
        once(cx, key, Self::fetch).await
    }

    fn fetch(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let service = service(cx)?;
        let user_data = user_data(cx, service)?;
        let image = image::Wanted::of_service(cx, service)?;
        let has_base = {
            let infrastructure = cx.stage().infrastructure.as_ref();
            let spec = infrastructure.map(|infrastructure| cx.evaluate(&infrastructure.spec));
            spec.transpose()?
                .is_some_and(|spec| text(&spec, "baseAsgName").is_some())
        };
        let mut reader = Reader {
            cx,
            manifests: &service.manifests,
            names: &[],
        };
        let mut template = reader.one_or(
            "AsgLaunchTemplate",
            "CreateLaunchTemplate",
            has_base.then(|| json!({"LaunchTemplateData": {}})),
        )?;
        reader.take_out(
            &mut template,
            &[
                "LaunchTemplateName",
                "LaunchTemplateId",
                "ClientToken",
                "DryRun",
                "SourceVersion",
            ],
        );
        let mut configuration = reader.one_or(
            "AsgConfiguration",
            "CreateAutoScalingGroup",
            has_base.then(|| json!({})),
        )?;
        let written = text(&configuration, NAME);
        let mut ignored = vec!["LaunchTemplate", "LaunchConfigurationName", "InstanceId"];
        let named = text(reader.cx.spec(), "asgName");
        if named.is_some() && written.is_some() && named != written {
            ignored.push(NAME);
        }
        reader.take_out(&mut configuration, &ignored);
        let mut policies = reader.all("AsgScalingPolicy", "AutoScaling.PutScalingPolicy")?;
        let mut actions = reader.all(
            "AsgScheduledUpdateGroupAction",
            "PutScheduledUpdateGroupAction",
        )?;
        for document in policies.iter_mut().chain(&mut actions) {
            reader.take_out(document, &[NAME]);
        }
        let metrics = reader.all("AsgAdditionalConfiguration", "AsgAdditionalConfiguration")?;
        for metrics in &metrics {
            check_metrics(metrics)?;
        }
        let group = named.or(written).ok_or_else(nameless)?;
        name::check(&group)?;
        let documents = Self {
            group,
            template,
            configuration,
            policies,
            actions,
            metrics,
            user_data,
            image,
        };
        documents.check(has_base)?;
        Ok(documents)
    }

    /// What AWS would refuse later.
    fn check(&self, has_base: bool) -> Result<(), Failure> {
        let data = &self.template["LaunchTemplateData"];
        if !data.is_object() {
            return Err(invalid(
                "the AsgLaunchTemplate manifest has no `LaunchTemplateData`.",
            ));
        }
        if self.image.is_none() && text(data, "ImageId").is_none() && !has_base {
            return Err(invalid(
                "there is no image to start instances from: give the service an AmazonMachineImage artifact, or \
                 `ImageId` in the AsgLaunchTemplate manifest.",
            ));
        }
        for (documents, kind, field) in [
            (&self.policies, "AsgScalingPolicy", "PolicyName"),
            (
                &self.actions,
                "AsgScheduledUpdateGroupAction",
                "ScheduledActionName",
            ),
        ] {
            let mut names: Vec<&str> = Vec::new();
            for document in documents {
                let Some(name) = document[field].as_str().filter(|name| !name.is_empty()) else {
                    return Err(invalid(format!("an {kind} manifest has no `{field}`.")));
                };
                if names.contains(&name) {
                    return Err(invalid(format!(
                        "two {kind} manifests have the `{field}` `{name}`."
                    )));
                }
                names.push(name);
            }
        }
        Ok(())
    }

    /// `LaunchTemplateData` with the image and the user data of the service.
    pub(super) fn data(&self, image: Option<&str>) -> Value {
        let mut data = self.template["LaunchTemplateData"].clone();
        if let Some(image) = image {
            data["ImageId"] = json!(image);
        }
        if let Some(user_data) = &self.user_data {
            data["UserData"] = json!(user_data);
        }
        data
    }
}

/// The name of the group, for steps that deploy nothing: nothing else of the manifests is resolved.
pub(super) fn group_of(cx: &StepContext<'_>) -> Result<String, Failure> {
    if let Some(named) = text(cx.spec(), "asgName") {
        return Ok(named);
    }
    let manifests = service(cx)?.manifests.iter();
    let configurations = manifests.filter(|manifest| manifest.kind == "AsgConfiguration");
    for (path, written) in configurations.flat_map(|manifest| &manifest.files) {
        let document = read(path, written)
            .map_err(|why| invalid(format!("The manifest {path} cannot be read: {why}.")))?;
        let mut fields = document.as_object().into_iter().flatten();
        let field = fields.find(|(name, _)| name.eq_ignore_ascii_case(NAME));
        let Some((_, name)) = field else { continue };
        if let Some(name) = text(&json!({NAME: cx.evaluate(name)?}), NAME) {
            name::check(&name)?;
            return Ok(name);
        }
    }
    Err(nameless())
}

fn nameless() -> Failure {
    invalid(format!(
        "the Auto Scaling group has no name: give `asgName` in the step, or `{NAME}` in the AsgConfiguration manifest."
    ))
}

/// Encodes the user data of a launch template, with its secrets, unless the manifest gave it encoded.
pub(super) fn encode_user_data(documents: &Documents, data: &mut Value) {
    if documents.user_data.is_some()
        && let Some(text) = data["UserData"].as_str()
    {
        data["UserData"] = json!(STANDARD.encode(text));
    }
}

/// The service of the stage, which must have manifests.
fn service<'a>(cx: &StepContext<'a>) -> Result<&'a ServicePlan, Failure> {
    let (stage, step) = (cx.stage(), cx.step());
    let Some(service) = &stage.service else {
        return Err(invalid(format!(
            "Stage {} has no service, and step {} deploys one.",
            stage.identifier, step.identifier
        )));
    };
    let own = |kind: &str| kind != USER_DATA;
    if !service.manifests.iter().any(|manifest| own(&manifest.kind)) {
        return Err(invalid(format!(
            "No manifests found in stage {}. {} step requires a manifest defined in stage service definition",
            stage.identifier, step.step_type
        )));
    }
    Ok(service)
}

fn user_data(cx: &mut StepContext<'_>, service: &ServicePlan) -> Result<Option<String>, Failure> {
    let mut found = service.manifests.iter();
    let Some(manifest) = found.find(|manifest| manifest.kind == USER_DATA) else {
        return Ok(None);
    };
    let [(path, written)] = manifest.files.as_slice() else {
        return Err(invalid(format!(
            "`userData` of service {} must be one file, and there are {}.",
            service.identifier,
            manifest.files.len()
        )));
    };
    cx.info(FETCH, format!("Reading user data ({path})"));
    let resolved = cx.evaluate(&json!(written))?;
    let resolved = resolved.as_str().unwrap_or_default().to_owned();
    if resolved.len() > MOST_USER_DATA {
        return Err(invalid(format!(
            "`userData` of service {} has {} bytes, and EC2 takes {MOST_USER_DATA}.",
            service.identifier,
            resolved.len()
        )));
    }
    Ok(Some(resolved).filter(|text| !text.is_empty()))
}

/// `metrics: {enableMetrices, metricsCollection: [{metric, granularity}]}`; Harness spells the flag both ways.
fn check_metrics(document: &Value) -> Result<(), Failure> {
    let metrics = &document["metrics"];
    let collection = metrics["metricsCollection"].as_array();
    let fits = metrics.is_object()
        && collection.is_none_or(|items| items.iter().all(|item| text(item, "metric").is_some()));
    match fits {
        true => Ok(()),
        false => Err(invalid(
            "the AsgAdditionalConfiguration manifest must have `metrics` with `enableMetrics` and a \
             `metricsCollection` of which each has a `metric`.",
        )),
    }
}
