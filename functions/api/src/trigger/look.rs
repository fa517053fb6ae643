//! What of a trigger that is being saved will keep it from starting anything, although it is written well.

use slipway_model::diagnostic::nearest;
use slipway_model::id::EntityId;
use slipway_model::{Code, Diagnostic, Kind, Parsed, Ref};
use slipway_trigger::draft;

use crate::Deps;
use crate::entity::{self, Draft, Filter};
use crate::error::ApiResult;
use crate::page::Page;

/// Names among which the nearest is looked for.
const MOST_NAMES: usize = 200;

/// Warns of conditions that can never hold, of a schedule that never comes, and of what the trigger names and nobody has.
/// Harness keeps such a trigger too: what it needs may be made later.
pub(crate) async fn look(deps: &Deps, draft: &mut Draft, parsed: &Parsed) -> ApiResult<()> {
    let faults = draft::faults(parsed, deps.clock.now_ms());
    let faults = faults.into_iter().map(Diagnostic::warning);
    draft.warnings.extend(faults);
    let body = parsed.body();
    let spec = |keys: &[&str]| body.at(&["source", "spec"]).and_then(|spec| spec.at(keys));
    let connectors = [
        spec(&["spec", "spec", "connectorRef"]),
        spec(&["spec", "connectorRef"]),
        spec(&["spec", "store", "spec", "connectorRef"]),
    ];
    let named = connectors
        .into_iter()
        .flatten()
        .map(|at| (Kind::Connector, at))
        .chain(
            body.get("encryptedWebhookSecretIdentifier")
                .map(|at| (Kind::Secret, at)),
        )
        .chain(
            body.get("inputSetRefs")
                .into_iter()
                .flat_map(Ref::items)
                .map(|at| (Kind::InputSet, at)),
        )
        .chain(
            body.get("pipelineIdentifier")
                .map(|at| (Kind::Pipeline, at)),
        );
    for (kind, at) in named {
        if let Some(unknown) = unknown(deps, draft, kind, at).await? {
            draft.warnings.push(unknown);
        }
    }
    Ok(())
}

/// What is wrong with a name, where nothing has it.
async fn unknown(
    deps: &Deps,
    draft: &Draft,
    kind: Kind,
    at: Ref<'_>,
) -> ApiResult<Option<Diagnostic>> {
    let written = at.text().unwrap_or_default();
    if written.is_empty() || written.contains("<+") {
        return Ok(None);
    }
    let scope = &draft.place.scope;
    let of_pipeline = kind == Kind::InputSet;
    let (scope, id) = match kind {
        Kind::Connector | Kind::Secret => scope.resolve(written),
        _ => (scope.clone(), EntityId::new(written)),
    };
    let parent = draft.place.parent.as_ref().filter(|_| of_pipeline);
    let kinds = match of_pipeline {
        true => &[Kind::InputSet, Kind::OverlayInputSet][..],
        false => std::slice::from_ref(&kind),
    };
    let mut known = Vec::new();
    for kind in kinds {
        let found = deps.store.find_entity(&scope, kind.key(), parent, &id);
        if found.await?.is_some() {
            return Ok(None);
        }
        let first = Page {
            index: 0,
            size: MOST_NAMES,
        };
        let filter = Filter::default();
        let (found, _) = entity::list(deps, &scope, *kind, parent, &filter, first).await?;
        known.extend(found.into_iter().map(|record| record.id.to_string()));
    }
    let message = format!("there is no {} `{written}` here", entity::noun(kind));
    let unknown = Diagnostic::at(Code::NotFound, at, message).warning();
    let nearest = nearest(id.as_str(), known.iter().map(String::as_str));
    Ok(Some(unknown.suggest(nearest)))
}
