//! Pipelines, in both forms of the API.

pub(crate) mod ng;
pub(crate) mod v1;

use slipway_model::Ref;
use slipway_model::entity::Kind;
use slipway_model::id::Scope;
use slipway_store::Page as StorePage;
use slipway_store::record::{EntityRecord, RunRecord};

use crate::Deps;
use crate::auth::Caller;
use crate::entity::{self, Filter, Place};
use crate::error::ApiResult;
use crate::page::Page;
use crate::runs;

/// Runs that a summary of a pipeline shows.
const RECENT: usize = 10;

/// The place of a pipeline.
pub(crate) fn place(scope: Scope, id: &str) -> ApiResult<Place> {
    Place::of(scope, Kind::Pipeline, id)
}

/// What belongs to a pipeline and goes with it.
const BELOW: &[Kind] = &[Kind::InputSet, Kind::Trigger];

/// Deletes a pipeline, and then what belongs to it: one of the same name that is made later must not find that.
async fn remove(deps: &Deps, caller: &Caller, place: Place) -> ApiResult<()> {
    entity::delete(deps, caller, &place).await?;
    let all = Page {
        index: 0,
        size: 10_000,
    };
    for kind in BELOW {
        let (owner, every) = (Some(&place.id), Filter::default());
        let (found, _) = entity::list(deps, &place.scope, *kind, owner, &every, all).await?;
        for record in found {
            let below = Place {
                kind: *kind,
                parent: record.parent,
                id: record.id,
                scope: record.scope,
            };
            entity::delete(deps, caller, &below).await?;
        }
    }
    Ok(())
}

/// The YAML of a pipeline with its templates put in, or what is wrong with these: a pipeline can be read whatever
/// became of its templates.
async fn applied(deps: &Deps, record: &EntityRecord) -> ApiResult<Result<String, String>> {
    match runs::expanded(deps, record).await {
        Ok(yaml) => Ok(Ok(yaml)),
        Err(error) if error.status().is_client_error() => Ok(Err(error.message().to_owned())),
        Err(error) => Err(error),
    }
}

/// The newest runs of a pipeline.
async fn recent_runs(deps: &Deps, record: &EntityRecord) -> ApiResult<Vec<RunRecord>> {
    let page = StorePage {
        limit: RECENT,
        after: None,
    };
    Ok(deps
        .store
        .list_runs(&record.scope, Some(&record.id), page)
        .await?
        .items)
}

/// Stage names of a pipeline, in order.
fn stage_names(record: &EntityRecord) -> Vec<String> {
    let parsed = crate::flat::parsed(Kind::Pipeline, &record.yaml);
    let mut names = Vec::new();
    if let Some(stages) = parsed
        .as_ref()
        .and_then(|parsed| parsed.body().get("stages"))
    {
        collect_names(stages, &mut names);
    }
    names
}

/// Parallel stages stand in a list of their own; the language bounds how deep.
fn collect_names(stages: Ref<'_>, into: &mut Vec<String>) {
    for item in stages.items() {
        if let Some(stage) = item.get("stage") {
            let name = stage.get_text("name").or(stage.get_text("identifier"));
            into.extend(name.map(str::to_owned));
        }
        if let Some(parallel) = item.get("parallel") {
            collect_names(parallel, into);
        }
    }
}
