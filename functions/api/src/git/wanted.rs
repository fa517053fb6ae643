//! What a request says of Git, in the parameters of Harness's API; of v1 in its body.

use serde_json::Value;
use slipway_engine::remote;

use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// What a request wants of Git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `storeType=REMOTE`.
    pub(crate) remote: bool,
    /// `connectorRef`.
    pub(crate) connector: Option<String>,
    /// `repoName`.
    pub(crate) repository: Option<String>,
    /// `branch`.
    pub(crate) branch: Option<String>,
    /// `filePath`.
    pub(crate) path: Option<String>,
    /// `commitMsg`.
    pub(crate) message: Option<String>,
    /// `isNewBranch`: the branch is made, of `baseBranch`.
    pub(crate) fresh: bool,
    /// `baseBranch`.
    pub(crate) base: Option<String>,
    /// `lastObjectId`: the object that was changed.
    pub(crate) object: Option<String>,
    /// `lastCommitId`: the commit that it was read at.
    pub(crate) commit: Option<String>,
    /// `resolvedConflictCommitId`: the commit up to which conflicts are resolved.
    pub(crate) resolved: Option<String>,
}

impl Wanted {
    /// What the parameters of a request say.
    pub(crate) fn of(query: &Query) -> ApiResult<Self> {
        let text = |name: &str| {
            let text = query
                .one(name)?
                .map(str::trim)
                .filter(|text| !text.is_empty());
            Ok::<_, ApiError>(text.map(str::to_owned))
        };
        Ok(Self {
            remote: is_remote("storeType", text("storeType")?.as_deref())?,
            connector: text("connectorRef")?,
            repository: text("repoName")?,
            branch: branch(query)?,
            path: path("filePath", text("filePath")?)?,
            message: text("commitMsg")?,
            fresh: text("isNewBranch")?.as_deref() == Some("true"),
            base: text("baseBranch")?,
            object: id("lastObjectId", text("lastObjectId")?)?,
            commit: id("lastCommitId", text("lastCommitId")?)?,
            resolved: id(
                "resolvedConflictCommitId",
                text("resolvedConflictCommitId")?,
            )?,
        })
    }

    /// What an object in the body of a v1 request says, by the name of the object.
    pub(crate) fn in_body(body: &Value, object: &str) -> ApiResult<Self> {
        let field = |name: &str| format!("{object}.{name}");
        let text = |name: &str| {
            let text = body[object][name].as_str().map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let (branch, base) = (text("branch_name"), text("base_branch"));
        Ok(Self {
            remote: is_remote(&field("store_type"), text("store_type").as_deref())?,
            connector: text("connector_ref"),
            repository: text("repo_name"),
            // v1 has no word for a new branch: it is one that begins at another.
            fresh: base.is_some() && base != branch,
            branch,
            path: path(&field("file_path"), text("file_path"))?,
            message: text("commit_message"),
            base,
            object: id(&field("last_object_id"), text("last_object_id"))?,
            commit: id(&field("last_commit_id"), text("last_commit_id"))?,
            resolved: None,
        })
    }

    /// The file, where a request must name one.
    pub(crate) fn file(&self, field: &str) -> ApiResult<&str> {
        let path = self.path.as_deref();
        path.ok_or_else(|| ApiError::field(field, "must name the file in the repository"))
    }
}

fn is_remote(field: &str, kind: Option<&str>) -> ApiResult<bool> {
    match kind {
        Some("REMOTE") => Ok(true),
        None | Some("INLINE") => Ok(false),
        Some(_) => Err(ApiError::field(field, "must be INLINE or REMOTE")),
    }
}

fn path(field: &str, path: Option<String>) -> ApiResult<Option<String>> {
    let checked = path.map(|path| remote::path(&path)).transpose();
    checked.map_err(|why| ApiError::field(field, why))
}

fn id(field: &str, id: Option<String>) -> ApiResult<Option<String>> {
    match id {
        Some(id) if !is_id(&id) => Err(ApiError::field(
            field,
            "must be an id of Git, in hexadecimal digits",
        )),
        id => Ok(id),
    }
}

/// The branch that a request reads from, under any of its names.
pub(crate) fn branch(query: &Query) -> ApiResult<Option<String>> {
    for name in [
        "branch",
        "branch_name",
        "pipelineBranch",
        "pipelineBranchName",
    ] {
        let text = query.one(name)?.map(str::trim);
        if let Some(branch) = text.filter(|text| !text.is_empty()) {
            return Ok(Some(branch.to_owned()));
        }
    }
    Ok(None)
}

fn is_id(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
