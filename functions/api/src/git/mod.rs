//! Entities whose YAML is kept in Git (Git Experience): what requests say of it ([`Wanted`]), reading and saving
//! ([`entity`]), importing and moving ([`routes`], [`targets`]), and what answers show ([`shown`]). docs/git.md tells users.
//!
//! Pipelines, input sets, templates, services, environments, infrastructures and overrides (V2) can be kept there. A request
//! that wants something else in Git is refused: to do something else in silence would be worse.

pub(crate) mod entity;
pub(crate) mod routes;
pub(crate) mod shown;
pub(crate) mod targets;
mod wanted;

pub(crate) use wanted::{Wanted, branch};

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// The object of a v1 body that says where an entity is kept.
pub(crate) const DETAILS: &str = "git_details";

/// Query parameters that name a branch.
const BRANCHES: &[&str] = &["branch", "branch_name", "pipelineBranchName", "baseBranch"];

/// Ends of paths of lists that are asked for with POST; they take whatever may narrow them down.
const LISTS: &[&str] = &["list", "listV2", "list-metadata"];

/// Beginnings of paths of what can be kept in Git.
const KEPT: &[&str] = &[
    "/pipeline/api/pipeline/",
    "/pipeline/api/pipelines",
    "/pipeline/api/inputSets",
    "/template/api/templates",
    "/ng/api/servicesV2",
    "/ng/api/environmentsV2",
    "/ng/api/infrastructures",
    "/ng/api/serviceOverrides",
    "/ng/api/overrides",
    "/slipway/api/plan/",
    "/slipway/api/apply",
];

/// Beginnings of paths below those, of what cannot.
const NOT_KEPT: &[&str] = &["/ng/api/environmentsV2/serviceOverrides"];

/// Beginnings of paths of what repeats runs.
const AGAIN: &[&str] = &[
    "/pipeline/api/pipeline/execute/rerun/",
    "/pipeline/api/pipeline/execute/retry/",
];

/// Refuses requests to save or run something of a Git repository that cannot be kept there.
pub(crate) async fn refuse(request: Request, next: Next) -> Response {
    match check(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(request: &Request) -> ApiResult<()> {
    let changes = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    let last = request.uri().path().rsplit('/').next().unwrap_or_default();
    let path = request.uri().path();
    let again = AGAIN.iter().any(|again| path.starts_with(again));
    let kept = KEPT.iter().any(|kept| path.starts_with(kept))
        && !NOT_KEPT.iter().any(|other| path.starts_with(other));
    if !changes || LISTS.contains(&last) || (kept && !again) {
        return Ok(());
    }
    let query = Query::of(request.uri())?;
    if again {
        let Some(branch) = wanted::branch(&query)? else {
            return Ok(());
        };
        return Err(ApiError::unsupported(format!(
            "branch: `{branch}`: what repeats a run reads the branch of that run: leave it out, or start a new run"
        )));
    }
    for field in ["storeType", "store_type"] {
        check_store(field, query.one(field)?)?;
    }
    for field in BRANCHES {
        if let Some(branch) = query.one(field)? {
            return Err(of_branch(field, branch));
        }
    }
    Ok(())
}

/// `git_details` of a body, or its `storeType`.
pub(crate) fn check_body(body: &Value) -> ApiResult<()> {
    check_store("storeType", body.get("storeType").and_then(Value::as_str))?;
    let Some(details) = body.get(DETAILS) else {
        return Ok(());
    };
    let text = |field: &str| {
        let text = details.get(field).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    check_store("git_details.store_type", text("store_type"))?;
    match text("branch_name") {
        Some(branch) => Err(of_branch("git_details.branch_name", branch)),
        None => Ok(()),
    }
}

fn check_store(field: &str, kind: Option<&str>) -> ApiResult<()> {
    match kind {
        Some("REMOTE") => Err(ApiError::unsupported(format!(
            "{field}: entities of this kind are not kept in Git (REMOTE) by this version: that is not supported; send the YAML itself, INLINE"
        ))),
        None | Some("" | "INLINE") => Ok(()),
        Some(_) => Err(ApiError::field(field, "must be INLINE")),
    }
}

fn of_branch(field: &str, branch: &str) -> ApiError {
    ApiError::unsupported(format!(
        "{field}: there is no branch `{branch}`, such entities in Git are not supported by this version: leave it out"
    ))
}
