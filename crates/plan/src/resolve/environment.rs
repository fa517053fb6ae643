//! The environment and infrastructure of a stage.

use slipway_model::id::EntityId;
use slipway_model::{Code, Kind, Parsed, Ref};

use super::known::Known;
use super::variable::overridden;
use super::{Referred, Resolver, tags};
use crate::{ConnectorPlan, EnvironmentPlan, InfrastructurePlan, StagePlan, fit};

impl Resolver<'_> {
    pub(super) fn environment(
        &mut self,
        spec: Ref<'_>,
        plan: &mut StagePlan,
        known: &mut Known<'_>,
        before: &[Vec<StagePlan>],
    ) {
        let Some(environment) = spec.get("environment") else {
            let other = ["environments", "environmentGroup", "infrastructure"];
            if other.iter().all(|field| spec.get(field).is_none()) {
                self.fault(
                    Code::MissingField,
                    spec,
                    "`environment` is missing from a deployment stage",
                );
            }
            return;
        };
        self.refuse_unsupported(environment);
        if let Some(from) = environment.get("useFromStage") {
            let Some(used) = self.used_stage(from, plan, before) else {
                return;
            };
            plan.environment.clone_from(&used.environment);
            plan.infrastructure.clone_from(&used.infrastructure);
            if plan.environment.is_none() && used.stage_type != "Deployment" {
                let message = format!("stage `{}` has no environment to use", used.identifier);
                self.fault(Code::NotFound, from, message);
            }
            return;
        }
        let Some(reference) = environment.get("environmentRef") else {
            self.fault(
                Code::MissingField,
                environment,
                "`environmentRef` is missing from a stage's environment",
            );
            return;
        };
        let scope = self.request.scope;
        let Some(referred) = self.entity(Kind::Environment, reference, scope, None, known) else {
            return;
        };
        let inputs = environment.get("environmentInputs");
        let Some(filled) = self.filled(&referred, inputs, reference) else {
            return;
        };
        let resolved = self.environment_plan(&filled);
        self.override_service(&filled, &resolved, &referred, plan, known);
        known.environment = Some(resolved.clone());
        plan.environment = Some(resolved);
        plan.infrastructure = self.infrastructure(environment, &referred, plan, known);
    }

    fn refuse_unsupported(&mut self, environment: Ref<'_>) {
        for (field, advice) in [
            (
                "filters",
                "; name one infrastructure in `infrastructureDefinitions`",
            ),
            ("gitOpsClusters", ""),
            ("provisioner", ""),
            ("servicesOverrides", ""),
            ("serviceOverrideInputs", ""),
        ] {
            let value = environment.get(field);
            if let Some(value) =
                value.filter(|value| value.scalar() != Some("") && !is_empty(*value))
            {
                self.unsupported(value, &format!("`{field}` of an environment"), advice);
            }
        }
    }

    fn environment_plan(&mut self, environment: &Parsed) -> EnvironmentPlan {
        let body = environment.body();
        EnvironmentPlan {
            identifier: environment.head.identifier.clone(),
            name: environment.head.name.clone(),
            kind: environment.head.entity_type.clone().unwrap_or_default(),
            tags: tags(body),
            variables: self.variables(body.get("variables"), "env.variables"),
        }
    }

    /// What an environment says about every service in it: its variables and manifests win.
    fn override_service(
        &mut self,
        environment: &Parsed,
        resolved: &EnvironmentPlan,
        referred: &Referred,
        plan: &mut StagePlan,
        known: &mut Known<'_>,
    ) {
        let overrides = environment.body().get("overrides");
        let manifests = overrides.and_then(|overrides| overrides.get("manifests"));
        let manifests = self.manifests(manifests, &referred.scope, known);
        let Some(service) = &mut plan.service else {
            return;
        };
        service.variables = overridden(std::mem::take(&mut service.variables), &resolved.variables);
        for manifest in manifests {
            match service
                .manifests
                .iter_mut()
                .find(|known| known.identifier == manifest.identifier)
            {
                Some(known) => *known = manifest,
                None => service.manifests.push(manifest),
            }
        }
        known.service = Some(service.clone());
    }

    fn infrastructure(
        &mut self,
        environment: Ref<'_>,
        referred: &Referred,
        plan: &StagePlan,
        known: &Known<'_>,
    ) -> Option<InfrastructurePlan> {
        let item = self.infrastructure_item(environment)?;
        let identifier = item.get("identifier")?;
        let parent = &referred.entity.head.identifier;
        let found = self.entity(
            Kind::Infrastructure,
            identifier,
            &referred.scope,
            Some(parent),
            known,
        )?;
        let filled = self.filled(&found, item.get("inputs"), identifier)?;
        self.check_infrastructure(&filled, identifier, parent, plan);
        let body = filled.body();
        let spec = filled.to_json()["spec"].clone();
        let connector = body.at(&["spec", "connectorRef"]);
        let connector = connector.and_then(|value| self.connector(value, &found, known));
        Some(InfrastructurePlan {
            identifier: filled.head.identifier.clone(),
            name: filled.head.name.clone(),
            kind: filled.head.entity_type.clone().unwrap_or_default(),
            allow_simultaneous_deployments: body.get_text("allowSimultaneousDeployments")
                == Some("true"),
            spec,
            connector,
        })
    }

    /// The one item of `infrastructureDefinitions`.
    fn infrastructure_item<'r>(&mut self, environment: Ref<'r>) -> Option<Ref<'r>> {
        if let Some(single) = environment.get("infrastructureDefinition") {
            return Some(single);
        }
        let list = environment.get("infrastructureDefinitions");
        let mut items = list.into_iter().flat_map(Ref::items);
        let (first, second) = (items.next(), items.next());
        if let Some(second) = second {
            self.unsupported(
                second,
                "deploying to several infrastructures in one stage",
                "; name one",
            );
            return None;
        }
        if first.is_none() {
            let message = match environment.get_text("deployToAll") {
                Some("true") => {
                    "`deployToAll` is not supported by this version yet; name one infrastructure"
                }
                _ => "no infrastructure is named in `infrastructureDefinitions`",
            };
            self.fault(Code::MissingField, list.unwrap_or(environment), message);
        }
        first
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
                "the infrastructure definition `{}` belongs to environment `{}`, not to `{environment}`",
                head.identifier,
                own.unwrap_or_default()
            );
            self.fault(Code::BadValue, at, message);
        }
        let Some(deployment) = plan.deployment_type.as_deref() else {
            return;
        };
        let kind = head.entity_type.as_deref().unwrap_or_default();
        if fit::infrastructure_types(deployment).is_some_and(|types| !types.contains(&kind)) {
            let message = format!(
                "the infrastructure definition `{}` is of type {kind}, which {deployment} cannot be deployed to",
                head.identifier
            );
            self.fault(Code::BadValue, at, message);
        }
    }

    fn connector(
        &mut self,
        value: Ref<'_>,
        infrastructure: &Referred,
        known: &Known<'_>,
    ) -> Option<ConnectorPlan> {
        let found = self.entity(Kind::Connector, value, &infrastructure.scope, None, known)?;
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
        Some(ConnectorPlan {
            reference: found.written,
            kind,
            spec: found.entity.to_json()["spec"].clone(),
        })
    }
}

fn is_empty(value: Ref<'_>) -> bool {
    value.scalar().is_none() && value.items().len() == 0 && value.entries().len() == 0
}
