//! What environments, infrastructures and overrides change of a service.
//!
//! From the weakest to the strongest: the environment itself, overrides of the environment, of a service in
//! it, of an infrastructure, of a service on an infrastructure; of each first those of the account, then of
//! the organization, then of the project (docs: continuous-delivery/x-platform-cd-features/overrides-v2,
//! "override priority").

use slipway_model::id::{EntityId, Scope};
use slipway_model::{Code, Kind, Ref};

use super::known::Known;
use super::spread::Site;
use super::variable::overridden;
use super::{Referred, Resolver};
use crate::{EnvironmentPlan, Found, Reference, ServicePlan};

/// Types of overrides with whether they are for one service, and for one infrastructure; the later wins.
const TYPES: &[(&str, bool, bool)] = &[
    ("ENV_GLOBAL_OVERRIDE", false, false),
    ("ENV_SERVICE_OVERRIDE", true, false),
    ("INFRA_GLOBAL_OVERRIDE", false, true),
    ("INFRA_SERVICE_OVERRIDE", true, true),
];

/// Settings of a service that are replaced as a whole.
const WHOLE: &[&str] = &["applicationSettings", "connectionStrings"];

impl Resolver<'_> {
    /// Lays over a service and an environment whatever overrides them, the weakest first.
    pub(super) fn overrides(
        &mut self,
        site: &Site<'_>,
        environment: (&Referred, &mut EnvironmentPlan),
        service: &mut Option<ServicePlan>,
        known: &mut Known<'_>,
    ) {
        let (referred, plan) = environment;
        let environment_id = referred.entity.head.identifier.clone();
        let infrastructure = site
            .infrastructure
            .as_ref()
            .map(|choice| choice.identifier.as_str());
        let service_place = service
            .as_ref()
            .map(|service| self.request.scope.resolve(&service.reference));
        let mut takes_inputs = false;
        for (kind, for_service, for_infrastructure) in TYPES {
            for level in levels(self.request.scope) {
                let Some(environment) = seen_from(&level, &referred.scope, &environment_id) else {
                    continue;
                };
                let service_ref = service_place.as_ref().filter(|_| *for_service);
                let service_ref = service_ref.and_then(|(scope, id)| seen_from(&level, scope, id));
                if *for_service && service_ref.is_none()
                    || *for_infrastructure && infrastructure.is_none()
                {
                    continue;
                }
                let infrastructure = infrastructure.filter(|_| *for_infrastructure);
                let mut wanted = vec![Reference::of_overrides(
                    level.clone(),
                    kind,
                    &environment,
                    service_ref.as_deref(),
                    infrastructure,
                )];
                if *kind == "ENV_SERVICE_OVERRIDE" {
                    wanted.insert(
                        0,
                        first_version(&level, &environment, service_ref.as_deref()),
                    );
                }
                for reference in wanted {
                    takes_inputs |= self.override_by(&reference, site, plan, service, known);
                }
            }
        }
        let inputs = site.item.and_then(|item| item.get("serviceOverrideInputs"));
        if let Some(value) = inputs.filter(|value| !takes_inputs && value.entries().len() > 0) {
            let message = "`serviceOverrideInputs` are given, but no overrides of the service in this environment take them";
            self.fault(Code::BadInput, value, message);
        }
    }

    /// Lays one of the overrides over, if there is such a one; whether it takes `serviceOverrideInputs`.
    fn override_by(
        &mut self,
        reference: &Reference,
        site: &Site<'_>,
        environment: &mut EnvironmentPlan,
        service: &mut Option<ServicePlan>,
        known: &mut Known<'_>,
    ) -> bool {
        let Some(Found::Entity(entity)) = self.find(reference) else {
            return false;
        };
        let found = Referred {
            entity,
            scope: reference.scope.clone(),
            written: String::new(),
        };
        let inputs = site.item.and_then(|item| item.get("serviceOverrideInputs"));
        let of_service = reference.id.as_str().starts_with("ENV_SERVICE_OVERRIDE")
            || reference.kind == Kind::ServiceOverrides.key();
        let inputs = inputs.filter(|_| of_service);
        let Some(filled) = self.filled(&found, inputs, site.at, known) else {
            return of_service;
        };
        let body = filled.body();
        let body = body.get("spec").unwrap_or(body);
        if reference.id.as_str().starts_with("ENV_GLOBAL_OVERRIDE") {
            let variables = self.variables(body.get("variables"), "env.variables");
            let own = std::mem::take(&mut environment.variables);
            environment.variables = overridden(own, &variables);
        }
        self.lay_over(body, &reference.scope, service, known);
        of_service
    }

    /// Lays variables, manifests, configuration files and settings over a service; those of the same name or
    /// identifier are replaced, others added.
    pub(super) fn lay_over(
        &mut self,
        over: Ref<'_>,
        scope: &Scope,
        service: &mut Option<ServicePlan>,
        known: &mut Known<'_>,
    ) {
        let variables = self.variables(over.get("variables"), "serviceVariables");
        if let Some(service) = service {
            let own = std::mem::take(&mut service.variables);
            service.variables = overridden(own, &variables);
            known.service = Some(service.clone());
        }
        let manifests = self.manifests(over.get("manifests"), scope, known);
        let files = self.config_files(over.get("configFiles"), scope, known);
        let Some(service) = service else {
            return;
        };
        for manifest in manifests {
            let same = |known: &&mut crate::ManifestPlan| known.identifier == manifest.identifier;
            match service.manifests.iter_mut().find(same) {
                Some(known) => *known = manifest,
                None => service.manifests.push(manifest),
            }
        }
        for file in files {
            let same = |known: &&mut crate::ConfigFilePlan| known.identifier == file.identifier;
            match service.config_files.iter_mut().find(same) {
                Some(known) => *known = file,
                None => service.config_files.push(file),
            }
        }
        for name in WHOLE {
            if let (Some(value), Some(spec)) = (over.get(name), service.spec.as_object_mut()) {
                spec.insert((*name).to_owned(), value.to_json());
            }
        }
        known.service = Some(service.clone());
    }
}

/// The scopes whose overrides count, the weakest first.
fn levels(scope: &Scope) -> Vec<Scope> {
    let account = scope.account.clone();
    let mut levels = vec![Scope::account(account.clone())];
    if let Some(org) = &scope.org {
        levels.push(Scope::org(account, org.clone()));
    }
    if scope.project.is_some() {
        levels.push(scope.clone());
    }
    levels
}

/// How a scope refers to an entity of another one; `None` where it cannot.
fn seen_from(level: &Scope, lives: &Scope, id: &EntityId) -> Option<String> {
    if level == lives {
        return Some(id.to_string());
    }
    match (&lives.org, &lives.project) {
        (None, None) => Some(format!("account.{id}")),
        (Some(org), None) if level.org.as_ref() == Some(org) => Some(format!("org.{id}")),
        _ => None,
    }
}

/// Overrides of a service in an environment as the first version of them had it, `serviceOverrides`.
fn first_version(level: &Scope, environment: &str, service: Option<&str>) -> Reference {
    Reference {
        scope: level.clone(),
        kind: Kind::ServiceOverrides.key(),
        parent: Some(EntityId::new(environment)),
        id: EntityId::new(service.unwrap_or_default()),
    }
}
