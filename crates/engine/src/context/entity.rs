//! Names of the service, environment, infrastructure, artifact and manifests of a stage.

use sha2::{Digest, Sha256};
use slipway_expr::Value;
use slipway_plan::{
    ArtifactPlan, EnvironmentPlan, InfrastructurePlan, ManifestPlan, ServicePlan, StagePlan,
};

use super::{Found, RunContext, json, tags, text, value, variable};

/// Letters of `INFRA_KEY_SHORT_ID`.
const SHORT_KEY: usize = 6;

/// Letters of `INFRA_KEY`, as many as a SHA-1 has.
const LONG_KEY: usize = 40;

impl RunContext<'_> {
    pub(super) fn entity(&self, stage: &StagePlan, first: &str, rest: &[&str]) -> Option<Found> {
        match first {
            "service" => service(stage.service.as_ref()?, rest),
            "serviceVariables" | "serviceVariableOverrides" => {
                variable(&stage.service.as_ref()?.variables, rest)
            }
            "env" | "environment" => environment(stage.environment.as_ref()?, rest),
            "infra" | "infrastructure" => infrastructure(stage.infrastructure.as_ref()?, rest),
            "artifact" => primary(stage, rest),
            "artifacts" => match rest {
                ["primary", rest @ ..] => primary(stage, rest),
                ["sidecars", id, rest @ ..] => {
                    let mut sidecars = stage.service.as_ref()?.sidecars.iter();
                    let sidecar = sidecars.find(|sidecar| sidecar.identifier == *id)?;
                    match rest {
                        ["primaryArtifact"] => value(Value::from(false)),
                        rest => artifact(sidecar, rest),
                    }
                }
                _ => None,
            },
            "manifest" | "manifests" => {
                let (id, rest) = rest.split_first()?;
                let manifests = &stage.service.as_ref()?.manifests;
                let found = manifests.iter().find(|m| m.identifier.as_str() == *id)?;
                manifest(found, rest)
            }
            "INFRA_KEY" if rest.is_empty() => value(infrastructure_key(stage, LONG_KEY)?),
            "INFRA_KEY_SHORT_ID" if rest.is_empty() => value(infrastructure_key(stage, SHORT_KEY)?),
            _ => None,
        }
    }
}

fn service(service: &ServicePlan, path: &[&str]) -> Option<Found> {
    match path {
        ["identifier"] => text(service.identifier.as_str()),
        ["name"] => text(&service.name),
        ["type"] => text(&service.deployment_type),
        ["description"] => text(service.description.as_deref()?),
        ["tags", rest @ ..] => tags(&service.tags, rest),
        ["variables", name @ ..] => variable(&service.variables, name),
        ["gitOpsEnabled"] => value(false),
        _ => None,
    }
}

fn environment(environment: &EnvironmentPlan, path: &[&str]) -> Option<Found> {
    match path {
        ["identifier"] => text(environment.identifier.as_str()),
        ["name"] => text(&environment.name),
        ["type"] => text(&environment.kind),
        ["description"] => text(environment.description.as_deref()?),
        ["tags", rest @ ..] => tags(&environment.tags, rest),
        ["variables", name @ ..] => variable(&environment.variables, name),
        ["envGroupName"] => text(&environment.group.as_ref()?.name),
        ["envGroupRef"] => text(&environment.group.as_ref()?.reference),
        _ => None,
    }
}

fn infrastructure(infrastructure: &InfrastructurePlan, path: &[&str]) -> Option<Found> {
    match path {
        ["identifier" | "infraIdentifier"] => text(infrastructure.identifier.as_str()),
        ["name"] => text(&infrastructure.name),
        ["type" | "infrastructureType"] => text(&infrastructure.kind),
        ["tags", rest @ ..] => tags(&infrastructure.tags, rest),
        ["connector", "type"] => text(&infrastructure.connector.as_ref()?.kind),
        ["connector", "name"] => text(infrastructure.connector_name.as_deref()?),
        ["connector", "ref"] => text(&infrastructure.connector.as_ref()?.reference),
        ["spec", rest @ ..] | rest => json(&infrastructure.spec, rest),
    }
}

fn primary(stage: &StagePlan, path: &[&str]) -> Option<Found> {
    let primary = stage.service.as_ref()?.artifact.as_ref()?;
    match path {
        ["primaryArtifact"] => value(Value::from(true)),
        path => artifact(primary, path),
    }
}

fn artifact(artifact: &ArtifactPlan, path: &[&str]) -> Option<Found> {
    match path {
        ["identifier"] => text(&artifact.identifier),
        ["type"] => text(&artifact.kind),
        ["image"] => text(artifact.image.as_deref()?),
        ["tag" | "version"] => text(artifact.tag.as_deref()?),
        ["metadata", rest @ ..] => json(&artifact.metadata(), rest),
        ["digest"] if artifact.pinned.is_some() => value(artifact.digest()?),
        // Harness has `amiId` and the like both ways.
        rest => json(&artifact.spec, rest).or_else(|| json(&artifact.metadata(), rest)),
    }
}

fn manifest(manifest: &ManifestPlan, path: &[&str]) -> Option<Found> {
    match path {
        ["identifier"] => text(manifest.identifier.as_str()),
        ["type"] => text(&manifest.kind),
        ["store"] => value(Value::from_json(manifest.store.get("type")?)),
        ["spec", "store", rest @ ..] => json(&manifest.store, rest),
        _ => None,
    }
}

/// A key that is the same for the same service, environment and infrastructure, and for no other.
fn infrastructure_key(stage: &StagePlan, letters: usize) -> Option<String> {
    let (service, environment) = (stage.service.as_ref()?, stage.environment.as_ref()?);
    let infrastructure = stage.infrastructure.as_ref()?;
    let connector = infrastructure
        .connector
        .as_ref()
        .map(|c| c.reference.as_str());
    let named = format!(
        "{}\n{}\n{}\n{}",
        service.identifier,
        environment.identifier,
        connector.unwrap_or_default(),
        infrastructure.identifier
    );
    let digest = Sha256::digest(named.as_bytes());
    let key: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(key[..letters].to_owned())
}
