//! The service of a stage.

use serde_json::{Map, Value};
use slipway_model::{Code, Kind, Parsed, Ref};

use super::known::Known;
use super::{Resolver, described, tags, unplanned};
use crate::{ServicePlan, StagePlan};

/// Parts of `serviceDefinition.spec` that have a place of their own in the plan.
const PLACED: &[&str] = &["variables", "manifests", "artifacts", "configFiles"];

impl Resolver<'_> {
    pub(super) fn service<'r>(
        &mut self,
        service: Ref<'r>,
        plan: &StagePlan,
        known: &mut Known<'r>,
        before: &[Vec<StagePlan>],
    ) -> Option<ServicePlan> {
        if let Some(from) = service.get("useFromStage") {
            let used = self.used_stage(from, plan, before)?;
            let found = used.service.clone();
            // A deployment stage without one has been reported already.
            if found.is_none() && used.stage_type != "Deployment" {
                let message = format!("stage `{}` has no service to use", used.identifier);
                self.fault(Code::NotFound, from, message);
            }
            return found;
        }
        let Some(reference) = service.get("serviceRef") else {
            self.fault(
                Code::MissingField,
                service,
                "`serviceRef` is missing from a stage's service",
            );
            return None;
        };
        known.unchecked_artifacts |= service.get_text("disableArtifactValidation") == Some("true");
        let scope = self.request.scope;
        let referred = self.entity(Kind::Service, reference, scope, None, known)?;
        let filled = self.filled(&referred, service.get("serviceInputs"), reference, known)?;
        self.service_plan(&filled, &referred, reference, plan, known)
    }

    fn service_plan(
        &mut self,
        service: &Parsed,
        referred: &super::Referred,
        at: Ref<'_>,
        plan: &StagePlan,
        known: &mut Known<'_>,
    ) -> Option<ServicePlan> {
        self.look_over(service.body(), "a service", unplanned::SERVICE);
        let Some(definition) = service.body().get("serviceDefinition") else {
            let message = format!(
                "the service `{}` has no `serviceDefinition`",
                service.head.identifier
            );
            self.fault(Code::MissingField, at, message);
            return None;
        };
        let deployment_type = definition.get_text("type")?.to_owned();
        if let Some(wanted) = plan
            .deployment_type
            .as_deref()
            .filter(|wanted| *wanted != deployment_type)
        {
            let message = format!(
                "the service `{}` is of type {deployment_type}, the stage deploys {wanted}",
                service.head.identifier
            );
            self.fault(Code::BadValue, at, message);
        }
        let spec = definition.get("spec");
        let part = |name: &str| spec.and_then(|spec| spec.get(name));
        let mut out = ServicePlan {
            reference: referred.written.clone(),
            identifier: service.head.identifier.clone(),
            name: service.head.name.clone(),
            deployment_type,
            description: described(service.body()),
            tags: tags(service.body()),
            variables: self.variables(part("variables"), "serviceVariables"),
            manifests: Vec::new(),
            artifact: None,
            sidecars: Vec::new(),
            config_files: Vec::new(),
            spec: rest(&service.to_json()["serviceDefinition"]["spec"]),
        };
        // Manifests and artifacts may name the service's own variables.
        known.service = Some(out.clone());
        out.manifests = self.manifests(part("manifests"), &referred.scope, known);
        if let Some(data) = part("userData").filter(|data| data.get("store").is_some()) {
            out.manifests
                .extend(self.user_data(data, &referred.scope, known));
        }
        out.config_files = self.config_files(part("configFiles"), &referred.scope, known);
        out.artifact = self.artifact(part("artifacts"), &referred.scope, known);
        out.sidecars = self.sidecars(part("artifacts"), &referred.scope, known);
        Some(out)
    }
}

fn rest(spec: &Value) -> Value {
    let fields = spec.as_object().into_iter().flatten();
    let rest: Map<_, _> = fields
        .filter(|(name, _)| !PLACED.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Value::Object(rest)
}
