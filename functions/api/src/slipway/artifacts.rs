//! `GET /slipway/api/services/{service}/artifacts`: the versions that there are of an artifact of a service.
//!
//! Query: organization and project; `artifactIdentifier` where the service has several sources; paging as everywhere.
//! Answer: a page of `{"artifact","type","version","digest","atMs","metadata"}`, the newest first; by name, the last first,
//! where the registry tells no times. None of Harness's official clients lists versions.

use axum::extract::Path;
use serde_json::{Value, json};
use slipway_model::entity::{self as text, Kind};
use slipway_plan::{ArtifactSource, ConnectorPlan, ListedVersion, artifact_sources};

use crate::call::Call;
use crate::entity;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::place::Place;
use crate::{Deps, bundle};

pub(super) async fn list(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = Place::of(query.scope(&caller)?, Kind::Service, &id)?;
    let page = Page::ng(&query)?;
    let record = entity::get(&deps, &place).await?;
    let service = text::parse(Kind::Service.key(), &record.yaml);
    let service =
        service.map_err(|_| ApiError::invalid(format!("the service {id} is not well formed")))?;
    let sources = artifact_sources(&service);
    let source = chosen(&id, &sources, query.one("artifactIdentifier")?)?;
    let reference = source.connector().map_err(ApiError::invalid)?.to_owned();
    let connector = connector(&deps, &place, &reference).await?;
    let wanted = source.wanted(connector, &place.scope);
    let wanted = wanted.map_err(ApiError::invalid)?;
    let listed = deps
        .sources
        .list_versions(&wanted, page.start(), page.size)
        .await;
    let listed = listed.map_err(ApiError::invalid)?;
    let content = listed
        .versions
        .iter()
        .map(|version| render(source, version));
    Ok(success(page.render(content.collect(), listed.total)))
}

/// The source that is asked for, or the first one: the primary.
fn chosen<'s, 'r>(
    service: &str,
    sources: &'s [ArtifactSource<'r>],
    wanted: Option<&str>,
) -> ApiResult<&'s ArtifactSource<'r>> {
    let found = match wanted {
        Some(wanted) => sources.iter().find(|source| source.identifier == wanted),
        None => sources.first(),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = sources.iter().map(|one| one.identifier.as_str()).collect();
        let message = match names.as_slice() {
            [] => format!("the service {service} has no artifacts"),
            names => format!(
                "the service {service} has no such artifact; it has {}",
                names.join(", ")
            ),
        };
        ApiError::field("artifactIdentifier", message)
    })
}

async fn connector(deps: &Deps, service: &Place, reference: &str) -> ApiResult<ConnectorPlan> {
    let (scope, id) = service.scope.resolve(reference);
    let place = Place::of(scope, Kind::Connector, id.as_str())?;
    let record = entity::get(deps, &place).await?;
    let found = bundle::object(Kind::Connector, &record);
    Ok(ConnectorPlan {
        reference: reference.to_owned(),
        kind: found["type"].as_str().unwrap_or_default().to_owned(),
        spec: found["spec"].clone(),
    })
}

fn render(source: &ArtifactSource<'_>, listed: &ListedVersion) -> Value {
    json!({
        "artifact": source.identifier,
        "type": source.kind,
        "version": listed.found.version,
        "digest": listed.found.digest,
        "atMs": listed.at_ms,
        "metadata": listed.found.metadata,
    })
}
