//! The environment and infrastructure of a stage.

use serde_json::{Map, Value};
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Code, Kind, Parsed, Ref};

use super::known::Known;
use super::spread::{Choice, Site};
use super::variable::overridden;
use super::{Referred, Resolver, described, is_empty, tags, texts, unplanned};
use crate::{ConnectorPlan, EnvironmentPlan, InfrastructurePlan, StagePlan, fit, template};

impl Resolver<'_> {
    /// The environment and infrastructure of a stage, with what they change of its service.
    pub(super) fn site<'r>(
        &mut self,
        site: &Site<'r>,
        plan: &mut StagePlan,
        known: &mut Known<'r>,
        before: &[Vec<StagePlan>],
    ) {
        if let Some(item) = site.item {
            self.refuse_unsupported(item);
            if let Some(from) = item.get("useFromStage") {
                return self.use_environment(from, plan, before);
            }
        }
        let Some(referred) = self.environment_of(site) else {
            return;
        };
        let inputs = site.item.and_then(|item| item.get("environmentInputs"));
        let Some(filled) = self.filled(&referred, inputs, site.at, known) else {
            return;
        };
        let mut resolved = self.environment_plan(&filled);
        resolved.group.clone_from(&site.group);
        if let Some(service) = &mut plan.service {
            let own = std::mem::take(&mut service.variables);
            service.variables = overridden(own, &resolved.variables);
        }
        if let Some(own) = filled.body().get("overrides") {
            self.lay_over(own, &referred.scope, &mut plan.service, known);
        }
        self.overrides(site, (&referred, &mut resolved), &mut plan.service, known);
        known.service.clone_from(&plan.service);
        known.environment = Some(resolved.clone());
        plan.environment = Some(resolved);
        if let Some(choice) = &site.infrastructure {
            plan.infrastructure = self.infrastructure(choice, &referred, plan, known);
            known.infrastructure.clone_from(&plan.infrastructure);
        }
    }

    fn use_environment(&mut self, from: Ref<'_>, plan: &mut StagePlan, before: &[Vec<StagePlan>]) {
        let Some(used) = self.used_stage(from, plan, before) else {
            return;
        };
        plan.environment.clone_from(&used.environment);
        plan.infrastructure.clone_from(&used.infrastructure);
        if plan.environment.is_none() && used.stage_type != "Deployment" {
            let message = format!("stage `{}` has no environment to use", used.identifier);
            self.fault(Code::NotFound, from, message);
        }
    }

    fn refuse_unsupported(&mut self, environment: Ref<'_>) {
        for field in ["gitOpsClusters", "provisioner", "servicesOverrides"] {
            let value = environment.get(field);
            if let Some(value) = value.filter(|value| !is_empty(*value)) {
                self.unsupported(value, &format!("`{field}` of an environment"), "");
            }
        }
    }

    fn environment_plan(&mut self, environment: &Parsed) -> EnvironmentPlan {
        let body = environment.body();
        EnvironmentPlan {
            identifier: environment.head.identifier.clone(),
            name: environment.head.name.clone(),
            kind: environment.head.entity_type.clone().unwrap_or_default(),
            description: described(body),
            tags: tags(body),
            variables: self.variables(body.get("variables"), "env.variables"),
            group: None,
        }
    }

    fn infrastructure<'r>(
        &mut self,
        choice: &Choice<'r>,
        referred: &Referred,
        plan: &StagePlan,
        known: &mut Known<'r>,
    ) -> Option<InfrastructurePlan> {
        let parent = &referred.entity.head.identifier;
        let found = self.named(
            Kind::Infrastructure,
            choice.identifier.clone(),
            choice.at,
            &referred.scope,
            Some(parent),
        )?;
        let filled = self.filled(&found, choice.inputs, choice.at, known)?;
        self.check_infrastructure(&filled, choice.at, parent, plan);
        let body = filled.body();
        let what = "an infrastructure definition";
        self.look_over(body, what, unplanned::INFRASTRUCTURE);
        if let Some(spec) = body.get("spec") {
            self.look_over(spec, what, unplanned::INFRASTRUCTURE_SPEC);
        }
        self.check_scope(body, choice.at, plan);
        let mut spec = filled.to_json()["spec"].clone();
        if let Some(link) = body.at(&["spec", "customDeploymentRef"]) {
            self.custom_deployment(link, &found.scope, &mut spec);
        }
        let connector = body.at(&["spec", "connectorRef"]);
        let connector = connector.and_then(|value| self.connector(value, &found, known));
        let (connector, connector_name) = connector.unzip();
        Some(InfrastructurePlan {
            identifier: filled.head.identifier.clone(),
            name: filled.head.name.clone(),
            kind: filled.head.entity_type.clone().unwrap_or_default(),
            tags: tags(body),
            allow_simultaneous_deployments: body.get_text("allowSimultaneousDeployments")
                == Some("true"),
            spec,
            connector,
            connector_name,
        })
    }

    /// What a deployment template says about the infrastructure: its script, and its variables where the
    /// infrastructure does not set them. Variables are called by name, `<+infra.variables.cluster>`.
    fn custom_deployment(&mut self, link: Ref<'_>, scope: &Scope, spec: &mut Value) {
        let source = super::source(self.request, self.asked);
        let template = match template::deployment(&source, link, scope) {
            Ok(template) => template,
            Err(faults) => return self.faults.extend(faults),
        };
        let own = template.to_json()["spec"]["infrastructure"].clone();
        let mut variables = Map::new();
        for list in [&own["variables"], &spec["variables"]] {
            for variable in list.as_array().into_iter().flatten() {
                let name = variable["name"].as_str().unwrap_or_default();
                variables.insert(name.to_owned(), variable["value"].clone());
            }
        }
        let Some(fields) = spec.as_object_mut() else {
            return;
        };
        for name in [
            "fetchInstancesScript",
            "instancesListPath",
            "instanceAttributes",
        ] {
            fields.insert(name.to_owned(), own[name].clone());
        }
        fields.insert("variables".to_owned(), Value::Object(variables));
    }

    fn check_infrastructure(
        &mut self,
        infrastructure: &Parsed,
        at: Ref<'_>,
        environment: &EntityId,
        plan: &StagePlan,
    ) {
        let head = &infrastructure.head;
        let own = head.env_ref.as_ref().map(|own| own.as_str());
        let bare = own.map(|own| own.rsplit('.').next().unwrap_or(own));
        if bare.is_some_and(|own| own != environment.as_str() && !own.contains("<+")) {
            let message = format!(
                "the infrastructure definition `{}` belongs to environment `{}` (`environmentRef`), not to `{environment}`",
                head.identifier,
                own.unwrap_or_default()
            );
            self.fault(Code::BadValue, at, message);
        }
        let Some(deployment) = plan.deployment_type.as_deref() else {
            return;
        };
        let own = infrastructure.body().get_text("deploymentType");
        if let Some(own) = own.filter(|own| *own != deployment && !own.contains("<+")) {
            let message = format!(
                "the infrastructure definition `{}` is for deployments of type {own} (`deploymentType`), the stage deploys {deployment}",
                head.identifier
            );
            self.fault(Code::BadValue, at, message);
        }
        let kind = head.entity_type.as_deref().unwrap_or_default();
        if fit::infrastructure_types(deployment).is_some_and(|types| !types.contains(&kind)) {
            let message = format!(
                "the infrastructure definition `{}` is of type {kind}, which {deployment} cannot be deployed to",
                head.identifier
            );
            self.fault(Code::BadValue, at, message);
        }
    }

    /// `scopedServices`: the only services that an infrastructure is for, where it names any.
    fn check_scope(&mut self, infrastructure: Ref<'_>, at: Ref<'_>, plan: &StagePlan) {
        let allowed = texts(infrastructure.get("scopedServices"));
        let Some(service) = &plan.service else {
            return;
        };
        if !allowed.is_empty() && !allowed.contains(&service.reference) {
            let message = format!(
                "the infrastructure definition is for the services {} only (`scopedServices`), not for `{}`",
                allowed.join(", "),
                service.reference
            );
            self.fault(Code::BadValue, at, message);
        }
    }

    fn connector(
        &mut self,
        value: Ref<'_>,
        infrastructure: &Referred,
        known: &Known<'_>,
    ) -> Option<(ConnectorPlan, String)> {
        let found = self.entity(Kind::Connector, value, &infrastructure.scope, None, known)?;
        let name = found.entity.head.name.clone();
        let kind = found.entity.head.entity_type.clone().unwrap_or_default();
        let aws = ["ECS", "Asg", "AwsLambda", "AWS_SAM", "ServerlessAwsLambda"];
        let target = infrastructure
            .entity
            .head
            .entity_type
            .as_deref()
            .unwrap_or_default();
        if aws.contains(&target) && kind != "Aws" {
            let message = format!(
                "the connector `{}` is of type {kind}; an infrastructure of type {target} needs an Aws connector",
                found.entity.head.identifier
            );
            self.fault(Code::BadValue, value, message);
        }
        let plan = ConnectorPlan {
            spec: self.connector_spec(&found),
            reference: found.written,
            kind,
        };
        Some((plan, name))
    }
}
