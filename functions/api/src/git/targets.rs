//! Services, environments and infrastructures in Git: reading them, importing them, moving them, saying where they are.

use axum::Router;
use axum::extract::Path;
use axum::routing::{post, put};
use serde_json::json;
use slipway_model::entity::Kind;

use super::routes::{moved, placed};
use super::{Wanted, entity as in_git};
use crate::auth::Caller;
use crate::call::Call;
use crate::entity::{self, Draft, Place};
use crate::envelope::success_with;
use crate::error::{ApiError, ApiResult};
use crate::place::beside;
use crate::query::Query;
use crate::{Deps, identifier, pipeline};

/// A kind, where its requests go, and what they call its identifier.
struct Target {
    kind: Kind,
    path: &'static str,
    id: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        kind: Kind::Service,
        path: "/ng/api/servicesV2",
        id: "serviceIdentifier",
    },
    Target {
        kind: Kind::Environment,
        path: "/ng/api/environmentsV2",
        id: ENVIRONMENT,
    },
    Target {
        kind: Kind::Infrastructure,
        path: "/ng/api/infrastructures",
        id: "infraIdentifier",
    },
];

const ENVIRONMENT: &str = "environmentIdentifier";

pub(crate) fn routes() -> Router<Deps> {
    let mut router = Router::new();
    for target in TARGETS {
        let path = target.path;
        router = router
            .route(
                &format!("{path}/import"),
                post(async |Call(deps, caller, query): Call| {
                    import(&deps, &caller, &query, target).await
                }),
            )
            .route(
                &format!("{path}/move-config/{{id}}"),
                post(
                    async |Call(deps, caller, query): Call, Path(id): Path<String>| {
                        let place = target.place(&caller, &query, &id)?;
                        moved(&deps, &caller, &query, place).await
                    },
                ),
            )
            .route(
                &format!("{path}/{{id}}/update-git-metadata"),
                put(
                    async |Call(deps, caller, query): Call, Path(id): Path<String>| {
                        let place = target.place(&caller, &query, &id)?;
                        placed(&deps, &caller, &query, place).await
                    },
                ),
            );
    }
    router
}

impl Target {
    fn place(&self, caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
        let scope = query.scope(caller)?;
        let parent = match self.kind {
            Kind::Infrastructure => {
                let environment = query.required(ENVIRONMENT)?;
                let environment = identifier::reference(ENVIRONMENT, environment)?;
                Some(beside(&scope, environment))
            }
            _ => None,
        };
        Ok(Place {
            parent,
            ..Place::of(scope, self.kind, id)?
        })
    }
}

/// Takes one over that is in Git already: the one that the request names, where it names one.
async fn import(deps: &Deps, caller: &Caller, query: &Query, target: &Target) -> ApiResult {
    let (wanted, scope) = (Wanted::of(query)?, query.scope(caller)?);
    let id = query.one(target.id)?;
    let draft = |yaml: String| {
        let draft = Draft::of_yaml(scope.clone(), target.kind, yaml)?;
        if let Some(id) = id {
            pipeline::ng::check_same(id, &draft)?;
        }
        if target.kind == Kind::Infrastructure && query.one(ENVIRONMENT)?.is_some() {
            let place = target.place(caller, query, draft.place.id.as_str())?;
            if place.parent != draft.place.parent {
                let message =
                    "the YAML names another environment (`environmentRef`) than the request";
                return Err(ApiError::field(ENVIRONMENT, message));
            }
        }
        Ok(draft)
    };
    let file = wanted.file("filePath")?;
    let draft = in_git::import(deps, (&wanted, &scope), file, draft).await?;
    let saved = entity::create(deps, caller, draft).await?;
    let answer = json!({"identifier": saved.record.id.as_str(), "governanceMetadata": null});
    Ok(success_with(answer, &saved.warnings))
}
