//! Query parameters: unknown ones are ignored, empty ones are absent, repeated ones are lists.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use slipway_model::id::{OrgId, ProjectId, Scope};

use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::identifier;

/// Parameters in a request at most.
const MOST: usize = 500;

/// The query parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Self::of(&parts.uri)
    }
}

impl Query {
    /// The parameters of a URI.
    pub(crate) fn of(uri: &axum::http::Uri) -> ApiResult<Self> {
        if uri
            .query()
            .is_some_and(|q| q.bytes().filter(|b| *b == b'&').count() >= MOST)
        {
            return Err(ApiError::invalid(format!(
                "more than {MOST} query parameters"
            )));
        }
        axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map(|found| {
                Self(
                    found
                        .0
                        .into_iter()
                        .filter(|(_, value)| !value.is_empty())
                        .collect(),
                )
            })
            .map_err(|error| ApiError::invalid(format!("the query cannot be read: {error}")))
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that stands for one thing. Two different values are refused: which of
    /// them was checked and which was used must never be a question.
    pub(crate) fn one(&self, key: &str) -> ApiResult<Option<&str>> {
        let mut values = self.all(key);
        let first = values.next();
        match values.find(|value| Some(*value) != first) {
            Some(_) => Err(ApiError::field(key, "is given twice with different values")),
            None => Ok(first),
        }
    }

    /// A parameter that must be there.
    pub(crate) fn required(&self, key: &str) -> ApiResult<&str> {
        self.one(key)?
            .ok_or_else(|| ApiError::field(key, "must not be empty"))
    }

    /// A whole number under the first of several spellings that is given.
    pub(crate) fn number(&self, keys: &[&str]) -> ApiResult<Option<usize>> {
        for key in keys {
            if let Some(text) = self.one(key)? {
                let wrong = |_| ApiError::field(key, "must be a whole number from 0");
                return text.parse().map(Some).map_err(wrong);
            }
        }
        Ok(None)
    }

    /// `orgIdentifier`.
    pub(crate) fn org(&self) -> ApiResult<Option<OrgId>> {
        let Some(text) = self.one("orgIdentifier")? else {
            return Ok(None);
        };
        identifier::check("orgIdentifier", text).map(|id| Some(OrgId::new(id)))
    }

    /// `projectIdentifier`.
    pub(crate) fn project(&self) -> ApiResult<Option<ProjectId>> {
        let Some(text) = self.one("projectIdentifier")? else {
            return Ok(None);
        };
        identifier::check("projectIdentifier", text).map(|id| Some(ProjectId::new(id)))
    }

    /// The scope that a request names; the account is always that of its token.
    pub(crate) fn scope(&self, caller: &Caller) -> ApiResult<Scope> {
        scope(caller, self.org()?, self.project()?)
    }

    /// A scope that must be a project, as for pipelines and runs.
    pub(crate) fn project_scope(&self, caller: &Caller) -> ApiResult<Scope> {
        let scope = self.scope(caller)?;
        for (key, there) in [
            ("orgIdentifier", scope.org.is_some()),
            ("projectIdentifier", scope.project.is_some()),
        ] {
            if !there {
                return Err(ApiError::field(key, "must not be empty"));
            }
        }
        Ok(scope)
    }
}

/// A scope of the caller's account.
pub(crate) fn scope(
    caller: &Caller,
    org: Option<OrgId>,
    project: Option<ProjectId>,
) -> ApiResult<Scope> {
    if org.is_none() && project.is_some() {
        return Err(ApiError::field(
            "orgIdentifier",
            "must be given where a project is",
        ));
    }
    Ok(Scope {
        account: caller.account.clone(),
        org,
        project,
    })
}
