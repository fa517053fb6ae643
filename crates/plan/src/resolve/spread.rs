//! What a deployment stage deploys and where, taken apart: several services, environments, environment groups
//! and infrastructures become one turn each, as of a matrix (docs: continuous-delivery/x-platform-cd-features/
//! advanced/multiserv-multienv).

use slipway_model::id::EntityId;
use slipway_model::{Code, Kind, Ref};

use super::known::Known;
use super::{Referred, Resolver, is_empty};
use crate::reference::EVERY;
use crate::{EnvironmentGroupPlan, Found, Reference, fit};

/// One service on one infrastructure.
#[derive(Clone, Default)]
pub(super) struct Target<'r> {
    /// `{serviceRef, serviceInputs}` or `{useFromStage}`.
    pub(super) service: Option<Ref<'r>>,
    pub(super) site: Option<Site<'r>>,
}

/// An infrastructure of an environment.
#[derive(Clone)]
pub(super) struct Site<'r> {
    /// The item of the stage that names the environment, with inputs for it; an environment of a group has none.
    pub(super) item: Option<Ref<'r>>,
    /// Where messages point to.
    pub(super) at: Ref<'r>,
    /// The reference of the environment; `None` with `useFromStage`.
    pub(super) environment: Option<String>,
    pub(super) infrastructure: Option<Choice<'r>>,
    /// The group that the environment was found in, where the stage names one.
    pub(super) group: Option<EnvironmentGroupPlan>,
}

/// An infrastructure that was chosen.
#[derive(Clone)]
pub(super) struct Choice<'r> {
    pub(super) at: Ref<'r>,
    pub(super) identifier: String,
    pub(super) inputs: Option<Ref<'r>>,
}

/// What a stage deploys and where.
pub(super) struct Spread<'r> {
    pub(super) targets: Vec<Target<'r>>,
    /// Whether the stage is one of several, even if only one is left.
    pub(super) many: bool,
    /// How many run side by side.
    pub(super) width: usize,
    /// Whether all run even if one fails; otherwise those that wait for a failed one do not begin.
    pub(super) runs_all: bool,
}

impl Spread<'_> {
    /// Of a stage that deploys nothing.
    pub(super) fn alone() -> Self {
        Self {
            targets: Vec::new(),
            many: false,
            width: 1,
            runs_all: false,
        }
    }
}

impl Resolver<'_> {
    /// Takes the service and environment fields of a deployment stage apart.
    pub(super) fn spread<'r>(&mut self, spec: Ref<'r>, known: &Known<'r>) -> Spread<'r> {
        let (services, many_services, services_beside) = self.services(spec, known);
        let (sites, many_sites, sites_beside) = self.sites(spec, known);
        let services: Vec<_> = match services.is_empty() {
            true => vec![None],
            false => services.into_iter().map(Some).collect(),
        };
        let places: Vec<_> = match sites.is_empty() {
            true => vec![None],
            false => sites.into_iter().map(Some).collect(),
        };
        let target = |service: &Option<Ref<'r>>, site: &Option<Site<'r>>| Target {
            service: *service,
            site: site.clone(),
        };
        // Only sites side by side: a service goes everywhere before the next one begins.
        let mut targets = Vec::with_capacity(services.len().saturating_mul(places.len()));
        let by_service = sites_beside && !services_beside;
        if by_service {
            for service in &services {
                targets.extend(places.iter().map(|site| target(service, site)));
            }
        } else {
            for site in &places {
                targets.extend(services.iter().map(|service| target(service, site)));
            }
        }
        let beside = |yes: bool, count: usize| if yes { count } else { 1 };
        let width = beside(services_beside, services.len()) * beside(sites_beside, places.len());
        let config = spec.get("multiDeploymentConfig");
        let limit = config.and_then(|config| self.limit(config, known));
        let failure = config.and_then(|config| config.get_text("onFailure"));
        Spread {
            targets,
            many: many_services || many_sites,
            width: limit.unwrap_or(width).max(1),
            runs_all: failure == Some("RunAll"),
        }
    }

    fn limit(&mut self, config: Ref<'_>, known: &Known<'_>) -> Option<usize> {
        let value = config.get("maxConcurrency")?;
        let text = self.text(value, known)?;
        let number = text.trim().parse().ok().filter(|number| *number > 0);
        if number.is_none() {
            let message = format!("`{text}` is no whole number of at least 1");
            self.fault(Code::BadValue, value, message);
        }
        number
    }

    fn services<'r>(&mut self, spec: Ref<'r>, known: &Known<'r>) -> (Vec<Ref<'r>>, bool, bool) {
        let Some(services) = spec.get("services") else {
            return (spec.get("service").into_iter().collect(), false, false);
        };
        let mut list = services;
        if let Some(from) = services.get("useFromStage") {
            let name = from.get_text("stage").unwrap_or_default();
            match known
                .stage(name)
                .and_then(|stage| stage.at(&["spec", "services"]))
            {
                Some(used) if used.get("values").is_some() => list = used,
                _ => {
                    let message = format!("stage `{name}` has no `services` of its own to use");
                    self.fault(Code::NotFound, from, message);
                }
            }
        }
        let values: Vec<_> = list
            .get("values")
            .into_iter()
            .flat_map(Ref::items)
            .collect();
        if values.is_empty() {
            let message = "`services` names no service in `values`";
            self.fault(Code::MissingField, services, message);
        }
        (values, true, beside(list))
    }

    fn sites<'r>(&mut self, spec: Ref<'r>, known: &Known<'r>) -> (Vec<Site<'r>>, bool, bool) {
        if let Some(group) = spec.get("environmentGroup") {
            return (self.group_sites(group, known, spec), true, beside(group));
        }
        if let Some(many) = spec.get("environments") {
            let mut sites = Vec::new();
            for item in many.get("values").into_iter().flat_map(Ref::items) {
                sites.extend(self.item_sites(item, many.get("filters"), known, spec).0);
            }
            if sites.is_empty() && !self.has_faults() {
                let message = "`environments` leads to no infrastructure";
                self.fault(Code::MissingField, many, message);
            }
            return (sites, true, beside(many));
        }
        match spec.get("environment") {
            Some(item) => {
                let (sites, many) = self.item_sites(item, None, known, spec);
                (sites, many, beside(item))
            }
            None => (Vec::new(), false, false),
        }
    }

    /// The infrastructures that an environment of the stage stands for, and whether it may be several.
    fn item_sites<'r>(
        &mut self,
        item: Ref<'r>,
        filters: Option<Ref<'r>>,
        known: &Known<'_>,
        spec: Ref<'_>,
    ) -> (Vec<Site<'r>>, bool) {
        let mut site = Site {
            item: Some(item),
            at: item,
            environment: None,
            infrastructure: None,
            group: None,
        };
        if item.get("useFromStage").is_some() {
            return (vec![site], false);
        }
        let Some(reference) = item.get("environmentRef") else {
            let message = "`environmentRef` is missing from a stage's environment";
            self.fault(Code::MissingField, item, message);
            return (Vec::new(), false);
        };
        site.at = reference;
        let Some(written) = self.text(reference, known) else {
            return (Vec::new(), false);
        };
        site.environment = Some(written.trim().to_owned());
        let listed = self.listed(item, known);
        let filters = item
            .get("filters")
            .filter(|value| !is_empty(*value))
            .or(filters);
        let all = item.get_text("deployToAll") == Some("true");
        if listed.is_empty() && (all || filters.is_some()) {
            return (self.all_sites(&site, filters, known, spec), true);
        }
        if listed.is_empty() && !deploys(spec) {
            return (vec![site], false);
        }
        // That GitOps is not supported is told.
        let of_gitops = self.is_draft && spec.get_text("gitOpsEnabled") == Some("true");
        if listed.is_empty() && !of_gitops {
            let at = item.get("infrastructureDefinitions").unwrap_or(item);
            let message = "no infrastructure is named in `infrastructureDefinitions`";
            self.fault(Code::MissingField, at, message);
        }
        let many = listed.len() > 1;
        let sites = listed.into_iter().map(|choice| Site {
            infrastructure: Some(choice),
            ..site.clone()
        });
        (sites.collect(), many)
    }

    /// The infrastructures that an environment of a stage names.
    fn listed<'r>(&mut self, item: Ref<'r>, known: &Known<'_>) -> Vec<Choice<'r>> {
        let single = item.get("infrastructureDefinition").into_iter();
        let list = item.get("infrastructureDefinitions");
        // An expression in the place of the list is the identifier of one.
        let bare = list.filter(|list| list.text().is_some_and(|text| !text.trim().is_empty()));
        let items = list.into_iter().flat_map(Ref::items);
        let mut out = Vec::new();
        for value in single.chain(items).chain(bare) {
            let Some(at) = value.get("identifier").or(bare) else {
                continue;
            };
            if let Some(identifier) = self.text(at, known) {
                out.push(Choice {
                    at,
                    identifier: identifier.trim().to_owned(),
                    inputs: value.get("inputs"),
                });
            }
        }
        out
    }

    /// Every infrastructure of an environment that the stage can deploy to and the filters let through.
    fn all_sites<'r>(
        &mut self,
        site: &Site<'r>,
        filters: Option<Ref<'_>>,
        known: &Known<'_>,
        spec: Ref<'_>,
    ) -> Vec<Site<'r>> {
        let Some(environment) = self.environment_of(site) else {
            return Vec::new();
        };
        let reference = Reference {
            scope: environment.scope.clone(),
            kind: Kind::Infrastructure.key(),
            parent: Some(environment.entity.head.identifier.clone()),
            id: EntityId::new(EVERY),
        };
        let all = match self.find(&reference) {
            Some(Found::Many(all)) => all,
            _ => Vec::new(),
        };
        let deployment = spec.get_text("deploymentType").unwrap_or_default();
        let mut sites = Vec::new();
        for entity in all {
            let kind = entity.head.entity_type.as_deref().unwrap_or_default();
            let own = entity
                .body()
                .get_text("deploymentType")
                .unwrap_or(deployment);
            let types = fit::infrastructure_types(deployment);
            let fits = own == deployment && types.is_none_or(|types| types.contains(&kind));
            if fits && self.passes(filters, "infrastructures", &entity.head.tags, known) {
                sites.push(Site {
                    infrastructure: Some(Choice {
                        at: site.at,
                        identifier: entity.head.identifier.to_string(),
                        inputs: None,
                    }),
                    ..site.clone()
                });
            }
        }
        if sites.is_empty() {
            let message = format!(
                "the environment `{}` has no infrastructure that {} and {deployment} can be deployed to",
                environment.entity.head.identifier,
                if filters.is_some() {
                    "passes the filters"
                } else {
                    "there is"
                },
            );
            self.fault(Code::NotFound, site.at, message);
        }
        sites
    }

    pub(super) fn environment_of(&mut self, site: &Site<'_>) -> Option<Referred> {
        let written = site.environment.clone()?;
        let scope = self.request.scope;
        self.named(Kind::Environment, written, site.at, scope, None)
    }

    fn group_sites<'r>(
        &mut self,
        group: Ref<'r>,
        known: &Known<'_>,
        spec: Ref<'_>,
    ) -> Vec<Site<'r>> {
        let Some(reference) = group.get("envGroupRef") else {
            return Vec::new();
        };
        let scope = self.request.scope;
        let Some(found) = self.entity(Kind::EnvironmentGroup, reference, scope, None, known) else {
            return Vec::new();
        };
        let members = members(&found);
        let filters = group.get("filters").filter(|value| !is_empty(*value));
        let mut sites = Vec::new();
        let chosen: Vec<_> = group
            .get("environments")
            .into_iter()
            .flat_map(Ref::items)
            .collect();
        for item in &chosen {
            let own = item.get_text("environmentRef").unwrap_or_default();
            let known_member = own.contains("<+") || members.iter().any(|id| bare(id) == bare(own));
            if !known_member {
                let message = format!(
                    "the environment `{own}` does not belong to the group `{}`",
                    found.entity.head.identifier
                );
                self.fault(Code::BadValue, *item, message);
                continue;
            }
            sites.extend(self.item_sites(*item, filters, known, spec).0);
        }
        if chosen.is_empty() {
            for member in members {
                let site = Site {
                    item: None,
                    at: reference,
                    environment: Some(member),
                    infrastructure: None,
                    group: None,
                };
                let Some(environment) = self.environment_of(&site) else {
                    continue;
                };
                let tags = &environment.entity.head.tags;
                if self.passes(filters, "environments", tags, known) {
                    sites.extend(self.all_sites(&site, filters, known, spec));
                }
            }
        }
        if sites.is_empty() && !self.has_faults() {
            let message = "the environment group leads to no infrastructure";
            self.fault(Code::NotFound, group, message);
        }
        let named = EnvironmentGroupPlan {
            reference: found.written,
            name: found.entity.head.name.clone(),
        };
        for site in &mut sites {
            site.group = Some(named.clone());
        }
        sites
    }
}

/// Whether a stage deploys something; others may name an environment alone.
fn deploys(spec: Ref<'_>) -> bool {
    let fields = ["deploymentType", "service", "services"];
    fields.iter().any(|field| spec.get(field).is_some())
}

/// `metadata.parallel`. Without it one follows the other, which harms nothing that a failure would spare.
fn beside(list: Ref<'_>) -> bool {
    list.at(&["metadata", "parallel"]).and_then(Ref::text) == Some("true")
}

/// A reference without the level that it lives at.
fn bare(reference: &str) -> &str {
    reference.rsplit('.').next().unwrap_or(reference)
}

/// References of the environments of a group. One of the account or an organization lists bare identifiers of
/// its own level.
fn members(group: &Referred) -> Vec<String> {
    let prefix = match (&group.scope.org, &group.scope.project) {
        (_, Some(_)) => "",
        (Some(_), None) => "org.",
        (None, None) => "account.",
    };
    let list = group.entity.body().get("envIdentifiers");
    let names = list.into_iter().flat_map(Ref::items).filter_map(Ref::text);
    let members = names.map(|id| match id.contains('.') {
        true => id.to_owned(),
        false => format!("{prefix}{id}"),
    });
    members.collect()
}
