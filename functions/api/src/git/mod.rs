//! Entities are kept in Slipway's store and never in Git. A request that wants one kept in Git, or read from a
//! branch, is refused: to do something else in silence would be worse.

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// Query parameters that name a branch.
const BRANCHES: &[&str] = &["branch", "branch_name", "pipelineBranchName", "baseBranch"];

/// Ends of paths of lists that are asked for with POST; they take whatever may narrow them down.
const LISTS: &[&str] = &["list", "listV2", "list-metadata"];

/// Refuses requests to save or run something of a Git repository.
pub(crate) async fn refuse(request: Request, next: Next) -> Response {
    match check(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(request: &Request) -> ApiResult<()> {
    let changes = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    let last = request.uri().path().rsplit('/').next().unwrap_or_default();
    if !changes || LISTS.contains(&last) {
        return Ok(());
    }
    let query = Query::of(request.uri())?;
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
    let Some(details) = body.get("git_details") else {
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
            "{field}: entities in Git (REMOTE) are not supported by this version: send the YAML itself, INLINE"
        ))),
        None | Some("" | "INLINE") => Ok(()),
        Some(_) => Err(ApiError::field(field, "must be INLINE")),
    }
}

fn of_branch(field: &str, branch: &str) -> ApiError {
    ApiError::unsupported(format!(
        "{field}: there is no branch `{branch}`, entities in Git are not supported by this version: leave it out"
    ))
}
