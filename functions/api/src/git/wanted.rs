//! What a request says of Git, in the parameters of Harness's API.

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
        let id = |name: &str| match text(name)? {
            Some(id) if !is_id(&id) => Err(ApiError::field(
                name,
                "must be an id of Git, in hexadecimal digits",
            )),
            id => Ok(id),
        };
        let remote = match text("storeType")?.as_deref() {
            Some("REMOTE") => true,
            None | Some("INLINE") => false,
            Some(_) => return Err(ApiError::field("storeType", "must be INLINE or REMOTE")),
        };
        let path = match text("filePath")? {
            Some(path) => {
                Some(remote::path(&path).map_err(|why| ApiError::field("filePath", why))?)
            }
            None => None,
        };
        Ok(Self {
            remote,
            connector: text("connectorRef")?,
            repository: text("repoName")?,
            branch: branch(query)?,
            path,
            message: text("commitMsg")?,
            fresh: text("isNewBranch")?.as_deref() == Some("true"),
            base: text("baseBranch")?,
            object: id("lastObjectId")?,
            commit: id("lastCommitId")?,
            resolved: id("resolvedConflictCommitId")?,
        })
    }
}

/// The branch that a request reads from, under any of its names.
pub(crate) fn branch(query: &Query) -> ApiResult<Option<String>> {
    for name in ["branch", "pipelineBranch", "pipelineBranchName"] {
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
