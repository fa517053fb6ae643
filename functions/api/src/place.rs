//! Where an entity is kept: the one place that knows what an entity's owner and key are, for every kind.

use slipway_engine::remote;
use slipway_model::entity::{Kind, Parsed};
use slipway_model::id::{EntityId, Scope};

use crate::error::{ApiError, ApiResult};
use crate::{identifier, scope};

/// Owner of what the file store knows of its files; their contents live by their paths, without an owner, where
/// plans look for them.
pub(crate) const NODES: &str = "node";

/// Where an entity is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) scope: Scope,
    pub(crate) kind: Kind,
    /// The environment of an infrastructure or of overrides, the pipeline of an input set or a trigger, the
    /// template of a version.
    pub(crate) parent: Option<EntityId>,
    /// Identifier; the label of a template's version; what overrides of an environment are for.
    pub(crate) id: EntityId,
}

/// How people call a kind.
pub(crate) fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Pipeline => "Pipeline",
        Kind::Service => "Service",
        Kind::Environment => "Environment",
        Kind::Infrastructure => "Infrastructure Definition",
        Kind::Connector => "Connector",
        Kind::Secret => "Secret",
        Kind::Organization => "Organization",
        Kind::Project => "Project",
        Kind::Template => "Template",
        Kind::InputSet => "Input Set",
        Kind::OverlayInputSet => "Overlay Input Set",
        Kind::Trigger => "Trigger",
        Kind::Freeze => "Freeze",
        Kind::EnvironmentGroup => "Environment Group",
        Kind::Overrides => "Overrides",
        Kind::ServiceOverrides => "Service Overrides",
        Kind::Variable => "Variable",
        Kind::File => "File",
        Kind::UserGroup => "User Group",
    }
}

/// Input sets and overlays of a pipeline share their identifiers, and so they share a partition.
pub(crate) fn stored_as(kind: Kind) -> Kind {
    match kind {
        Kind::OverlayInputSet => Kind::InputSet,
        other => other,
    }
}

impl Place {
    /// A place without an owner.
    pub(crate) fn of(scope: Scope, kind: Kind, id: &str) -> ApiResult<Self> {
        Ok(Self {
            scope,
            kind,
            parent: None,
            id: identifier::entity(id)?,
        })
    }

    /// The place of an input set or a trigger of a pipeline.
    pub(crate) fn of_pipeline(
        scope: Scope,
        kind: Kind,
        pipeline: &str,
        id: &str,
    ) -> ApiResult<Self> {
        identifier::check("pipelineIdentifier", pipeline)?;
        Ok(Self {
            scope,
            kind: stored_as(kind),
            parent: Some(EntityId::new(pipeline)),
            id: identifier::entity(id)?,
        })
    }

    /// Where a document belongs that the language accepted.
    pub(crate) fn of_parsed(scope: Scope, parsed: &Parsed) -> ApiResult<Self> {
        let (head, kind) = (&parsed.head, parsed.head.kind);
        let named = head.identifier.as_str();
        // What overrides are for is their identity; an identifier of their own is only a name.
        if !matches!(kind, Kind::Overrides | Kind::ServiceOverrides) {
            identifier::check("identifier", named)?;
        }
        let wanted = |field: &str, id: Option<&EntityId>| -> ApiResult<Option<EntityId>> {
            let id = id.ok_or_else(|| ApiError::field(field, "must not be empty"))?;
            Ok(Some(identifier::reference(field, id.as_str())?))
        };
        let (parent, id) = match kind {
            Kind::Infrastructure => {
                let environment = wanted("environmentRef", head.env_ref.as_ref())?;
                let environment = environment.map(|id| beside(&scope, id));
                (environment, head.identifier.clone())
            }
            Kind::InputSet | Kind::OverlayInputSet => (
                wanted("pipelineIdentifier", head.pipeline.as_ref())?,
                head.identifier.clone(),
            ),
            Kind::Trigger => (
                wanted("pipelineIdentifier", head.pipeline.as_ref())?,
                head.identifier.clone(),
            ),
            Kind::Template => {
                let label = head.version_label.as_deref().unwrap_or_default();
                (Some(head.identifier.clone()), version(label)?)
            }
            Kind::ServiceOverrides => {
                let service = wanted("serviceRef", head.service_ref.as_ref())?;
                let environment = wanted("environmentRef", head.env_ref.as_ref())?;
                (
                    environment,
                    service.unwrap_or_else(|| head.identifier.clone()),
                )
            }
            Kind::Overrides => {
                let environment = wanted("environmentRef", head.env_ref.as_ref())?;
                (environment, overridden(parsed)?)
            }
            Kind::File => (Some(EntityId::new(NODES)), head.identifier.clone()),
            _ => (None, head.identifier.clone()),
        };
        Ok(Self {
            scope,
            kind: stored_as(kind),
            parent,
            id,
        })
    }

    /// 404 for this place.
    pub(crate) fn not_found(&self) -> ApiError {
        let noun = noun(self.kind);
        let owner = match self.kind {
            Kind::InputSet | Kind::Trigger => "pipeline",
            Kind::Template => "template",
            _ => "environment",
        };
        let parent = self
            .parent
            .as_ref()
            .filter(|_| self.kind != Kind::File)
            .map(|p| format!(" {owner} [{p}],"))
            .unwrap_or_default();
        let place = scope::describe(&self.scope);
        let what = match self.kind {
            Kind::Template if self.parent.is_some() => "version",
            _ => "identifier",
        };
        ApiError::not_found(format!(
            "{noun} with {what} [{}] in{parent} {place} not found",
            self.id
        ))
    }
}

/// The bare identifier of an environment of the same scope, however it is written.
pub(crate) fn beside(scope: &Scope, environment: EntityId) -> EntityId {
    match scope.resolve(environment.as_str()) {
        (of, id) if of == *scope => id,
        _ => environment,
    }
}

/// A `versionLabel` of a request: what its pattern (`^[0-9a-zA-Z][^\s/&]{0,127}$`) allows.
pub(crate) fn version(label: &str) -> ApiResult<EntityId> {
    let begins = label
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric());
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '&');
    if begins && label.chars().count() <= 128 && !label.contains(forbidden) {
        return Ok(EntityId::new(label));
    }
    Err(ApiError::field(
        "versionLabel",
        "must be 1 to 128 characters without space, `/` and `&`, and begin with a letter or digit",
    ))
}

/// The key of overrides below their environment, where they say what they are for.
fn overridden(parsed: &Parsed) -> ApiResult<EntityId> {
    let body = parsed.body();
    let of = |field: &str| -> ApiResult<String> {
        match body.get_text(field).filter(|text| !text.trim().is_empty()) {
            Some(text) => identifier::reference(field, text).map(|id| id.to_string()),
            None => Ok(String::new()),
        }
    };
    let kind = body.get_text("type").unwrap_or("ENV_GLOBAL_OVERRIDE");
    let (service, infrastructure) = (of("serviceRef")?, of("infraIdentifier")?);
    let cluster = of("clusterIdentifier")?;
    for (field, value, part) in [
        ("serviceRef", &service, "_SERVICE_"),
        ("infraIdentifier", &infrastructure, "INFRA_"),
        ("clusterIdentifier", &cluster, "CLUSTER_"),
    ] {
        match (value.is_empty(), kind.contains(part)) {
            (true, true) => {
                return Err(ApiError::field(field, format!("is needed for {kind}")));
            }
            (false, false) => {
                return Err(ApiError::field(field, format!("has no meaning for {kind}")));
            }
            _ => {}
        }
    }
    Ok(EntityId::new(remote::overrides_key(parsed)))
}

#[cfg(test)]
mod tests {
    use slipway_model::entity;
    use slipway_model::id::{AccountId, Scope};

    use super::{Place, version};

    #[test]
    fn every_kind_has_an_owner_and_a_key() {
        let scope = Scope::account(AccountId::new("acme"));
        for (yaml, expected) in [
            (
                "infrastructureDefinition:\n  name: i\n  identifier: i\n  environmentRef: account.prod\n  type: KubernetesDirect\n  spec:\n    connectorRef: k\n    namespace: n\n    releaseName: r\n",
                "infrastructureDefinition prod i",
            ),
            ("service:\n  name: s\n  identifier: s\n", "service - s"),
            (
                "overlayInputSet:\n  name: o\n  identifier: o\n  pipeline:\n    identifier: p\n  inputSetReferences: [a]\n",
                "inputSet p o",
            ),
            (
                "template:\n  name: t\n  identifier: t\n  versionLabel: v1.0\n  type: Step\n  spec:\n    type: Wait\n    spec:\n      duration: 1s\n",
                "template t v1.0",
            ),
            (
                "overrides:\n  type: ENV_SERVICE_OVERRIDE\n  environmentRef: account.prod\n  serviceRef: web\n",
                "overrides account.prod ENV_SERVICE_OVERRIDE/web/",
            ),
            (
                "overrides:\n  type: INFRA_GLOBAL_OVERRIDE\n  environmentRef: prod\n  infraIdentifier: a\n",
                "overrides prod INFRA_GLOBAL_OVERRIDE//a",
            ),
            (
                "serviceOverrides:\n  environmentRef: prod\n  serviceRef: web\n",
                "serviceOverrides prod web",
            ),
            (
                "overrides:\n  type: ENV_SERVICE_OVERRIDE\n  environmentRef: prod\n",
                "refused",
            ),
            (
                "overrides:\n  type: ENV_GLOBAL_OVERRIDE\n  environmentRef: prod\n  serviceRef: a\n",
                "refused",
            ),
            (
                "overrides:\n  type: ENV_GLOBAL_OVERRIDE\n  environmentRef: a/b\n",
                "refused",
            ),
        ] {
            let parsed = entity::parse("a.yaml", yaml).expect(yaml);
            let found =
                Place::of_parsed(scope.clone(), &parsed).map_or("refused".to_owned(), |p| {
                    let parent = p.parent.as_ref().map_or("-", |p| p.as_str());
                    format!("{} {parent} {}", p.kind.key(), p.id)
                });
            assert_eq!(found, expected, "{yaml}");
            // Where a plan looks for it.
            if let Ok(place) = Place::of_parsed(scope.clone(), &parsed) {
                let wanted = slipway_plan::Reference::of(&parsed, scope.clone());
                assert_eq!(
                    (wanted.parent, wanted.id),
                    (place.parent, place.id),
                    "{yaml}"
                );
            }
        }
    }

    #[test]
    fn labels_of_versions_cannot_leave_their_key() {
        for label in ["v1", "1", "1.0.0-rc_1", "a#b"] {
            assert!(version(label).is_ok(), "{label}");
        }
        for label in ["", "a/b", "a b", "-a", "a\n", &"a".repeat(129)] {
            assert!(version(label).is_err(), "{label}");
        }
    }
}
