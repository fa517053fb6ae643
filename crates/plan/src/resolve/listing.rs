//! Artifact sources of a service outside of any run: what a registry is asked for the versions that there are.

use std::cell::Cell;

use slipway_model::id::Scope;
use slipway_model::{Parsed, Ref};

use super::known::Known;
use super::registry::{Source, connectors, unasked};
use crate::ConnectorPlan;
use crate::artifact::{ArtifactQuestion, ArtifactVersion, CUSTOM, WantedArtifact};

/// An artifact source as a service has it.
pub struct ArtifactSource<'r> {
    /// Its identifier; `primary` where it has none.
    pub identifier: String,
    /// `type`, `Ecr` for instance.
    pub kind: String,
    service: &'r Parsed,
    spec: Ref<'r>,
}

/// The artifact sources of a service, with the primary one first where that is fixed; sidecars last.
pub fn artifact_sources(service: &Parsed) -> Vec<ArtifactSource<'_>> {
    let definition = service.body().get("serviceDefinition");
    let spec = definition.and_then(|definition| definition.get("spec"));
    let Some(artifacts) = spec.and_then(|spec| spec.get("artifacts")) else {
        return Vec::new();
    };
    let mut all: Vec<ArtifactSource<'_>> = Vec::new();
    if let Some(primary) = artifacts.get("primary") {
        all.extend(source(service, primary, "primary"));
        let list = primary.get("sources").into_iter().flat_map(Ref::items);
        all.extend(list.filter_map(|item| source(service, item, "primary")));
        let first = primary.get_text("primaryArtifactRef").unwrap_or_default();
        all.sort_by_key(|one| one.identifier != first);
    }
    let sidecars = artifacts.get("sidecars");
    let sidecars = sidecars.into_iter().flat_map(Ref::items);
    let sidecars = sidecars.filter_map(|item| item.get("sidecar"));
    all.extend(sidecars.filter_map(|item| source(service, item, "sidecar")));
    all
}

fn source<'r>(service: &'r Parsed, source: Ref<'r>, name: &str) -> Option<ArtifactSource<'r>> {
    Some(ArtifactSource {
        identifier: source.get_text("identifier").unwrap_or(name).to_owned(),
        kind: source.get_text("type")?.to_owned(),
        service,
        spec: source.get("spec")?,
    })
}

impl ArtifactSource<'_> {
    /// The reference of its connector.
    ///
    /// # Errors
    /// Why it has none that is known outside of a run.
    pub fn connector(&self) -> Result<&str, String> {
        let written = self.spec.get_text("connectorRef").unwrap_or_default();
        match written.trim() {
            "" if self.kind == CUSTOM => Err(format!(
                "the artifact `{}` is listed by its script, and scripts run in runs only: its versions cannot be listed here",
                self.identifier
            )),
            "" => Err(format!(
                "the artifact `{}` has no `connectorRef`",
                self.identifier
            )),
            name if name.contains("<+") => Err(self.open()),
            name => Ok(name),
        }
    }

    /// What is asked with this connector, which the service names in `scope`.
    ///
    /// # Errors
    /// When sources of its type are not asked about, or what is to be asked is not known outside of a run.
    pub fn wanted(
        &self,
        connector: ConnectorPlan,
        scope: &Scope,
    ) -> Result<WantedArtifact, String> {
        let of = |why: &str| format!("the artifact `{}`: {why}", self.identifier);
        if let Some(why) = unasked(&self.kind, self.spec) {
            return Err(of(&why));
        }
        let fits = connectors(&self.kind);
        let Some(fits) = fits else {
            return Err(of(&format!(
                "versions of type {} are not listed",
                self.kind
            )));
        };
        if connector.kind != fits {
            return Err(of(&format!(
                "its connector {} is of type {}, and it needs one of type {fits}",
                connector.reference, connector.kind
            )));
        }
        let known = Known::new(scope, self.service, Vec::new());
        let open = Cell::new(false);
        let source = Source {
            spec: self.spec,
            scope,
            known: &known,
            nameless: false,
            unchecked: false,
            open: &open,
        };
        let place = source.place(&self.kind, &connector.spec);
        let place = place.map_err(|_| of("it does not say where it is kept"))?;
        if open.get() {
            return Err(self.open());
        }
        Ok(WantedArtifact {
            scope: scope.clone(),
            question: ArtifactQuestion {
                connector: connector.reference.clone(),
                place: place.settled(),
                version: Some(ArtifactVersion::Last),
                digest: None,
            },
            connector,
        })
    }

    fn open(&self) -> String {
        format!(
            "where the artifact `{}` is kept is an expression that only a run can tell: its versions cannot be listed",
            self.identifier
        )
    }
}
