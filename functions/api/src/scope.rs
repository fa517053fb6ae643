//! Parents: an organization or project must exist before something is put into it.

use slipway_model::entity::Kind;
use slipway_model::id::{EntityId, Scope};

use crate::Deps;
use crate::error::{ApiError, ApiResult};

/// 404 naming the parent that is not there.
pub(crate) async fn check_exists(deps: &Deps, scope: &Scope) -> ApiResult<()> {
    let Some(org) = &scope.org else { return Ok(()) };
    let account = Scope::account(scope.account.clone());
    let id = EntityId::new(org.as_str());
    if deps
        .store
        .find_entity(&account, Kind::Organization.key(), None, &id)
        .await?
        .is_none()
    {
        return Err(ApiError::not_found(format!(
            "Organization with identifier [{org}] not found: create it first, or correct orgIdentifier"
        )));
    }
    let Some(project) = &scope.project else {
        return Ok(());
    };
    let parent = Scope::org(scope.account.clone(), org.clone());
    let id = EntityId::new(project.as_str());
    if deps
        .store
        .find_entity(&parent, Kind::Project.key(), None, &id)
        .await?
        .is_none()
    {
        let message = format!(
            "Project with identifier [{project}] in org [{org}] not found: create it first, or \
             correct projectIdentifier"
        );
        return Err(ApiError::not_found(message));
    }
    Ok(())
}

/// `project [p], org [o]`, for messages.
pub(crate) fn describe(scope: &Scope) -> String {
    match (&scope.org, &scope.project) {
        (Some(org), Some(project)) => format!("project [{project}], org [{org}]"),
        (Some(org), None) => format!("org [{org}]"),
        _ => format!("account [{}]", scope.account),
    }
}
