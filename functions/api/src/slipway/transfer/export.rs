//! Everything that people wrote in an account, record by record.

use serde_json::json;
use slipway_model::entity::Kind;
use slipway_model::id::{EntityId, OrgId, ProjectId, Scope};
use slipway_store::Page;
use slipway_store::record::EntityRecord;

use super::{Below, FORMAT, LISTS};
use crate::Deps;
use crate::call::Call;
use crate::envelope::success;
use crate::error::ApiResult;
use crate::scope::describe;

/// Records that are read at a time.
const PAGE: usize = 200;

pub(in crate::slipway) async fn export(Call(deps, caller, _): Call) -> ApiResult {
    let account = Scope::account(caller.account.clone());
    let mut records = Vec::new();
    let mut scopes = vec![account.clone()];
    for org in list(&deps, &account, Kind::Organization, None).await? {
        let scope = Scope::org(caller.account.clone(), OrgId::new(org.id.as_str()));
        records.push(org);
        scopes.push(scope.clone());
        for project in list(&deps, &scope, Kind::Project, None).await? {
            let org = OrgId::new(scope.org.as_ref().map_or("", |org| org.as_str()));
            let id = ProjectId::new(project.id.as_str());
            scopes.push(Scope::project(caller.account.clone(), org, id));
            records.push(project);
        }
    }
    for scope in &scopes {
        records.extend(of_scope(&deps, scope).await?);
    }
    let secrets = secrets(&records);
    Ok(success(json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "records": records,
        "secretsWithoutValue": secrets,
    })))
}

/// The secrets among records, whose values are no part of them.
fn secrets(records: &[EntityRecord]) -> Vec<String> {
    let secrets = records
        .iter()
        .filter(|record| record.kind == Kind::Secret.key());
    secrets
        .map(|record| format!("{} in {}", record.id, describe(&record.scope)))
        .collect()
}

async fn of_scope(deps: &Deps, scope: &Scope) -> ApiResult<Vec<EntityRecord>> {
    let mut records = Vec::new();
    for (kind, below) in LISTS {
        match below {
            Below::None => records.extend(list(deps, scope, *kind, None).await?),
            Below::Named(name) => {
                let parent = EntityId::new(*name);
                records.extend(list(deps, scope, *kind, Some(&parent)).await?);
            }
            Below::Each(owner) => {
                for parent in owners(deps, scope, *owner).await? {
                    records.extend(list(deps, scope, *kind, Some(&parent)).await?);
                }
            }
        }
    }
    Ok(records)
}

/// References, from a scope, to the entities of a kind that it can refer to.
async fn owners(deps: &Deps, scope: &Scope, kind: Kind) -> ApiResult<Vec<EntityId>> {
    let account = scope.account.clone();
    let mut levels = vec![("", scope.clone())];
    if let Some(org) = scope.org.as_ref().filter(|_| scope.project.is_some()) {
        levels.push(("org.", Scope::org(account.clone(), org.clone())));
    }
    if scope.org.is_some() {
        levels.push(("account.", Scope::account(account)));
    }
    let mut found = Vec::new();
    for (prefix, level) in levels {
        let ids = list(deps, &level, kind, None).await?.into_iter();
        found.extend(ids.map(|record| EntityId::new(format!("{prefix}{}", record.id))));
    }
    Ok(found)
}

async fn list(
    deps: &Deps,
    scope: &Scope,
    kind: Kind,
    parent: Option<&EntityId>,
) -> ApiResult<Vec<EntityRecord>> {
    let mut page = Page::first(PAGE);
    let mut records = Vec::new();
    loop {
        let found = deps
            .store
            .list_entities(scope, kind.key(), parent, page)
            .await?;
        records.extend(found.items);
        match found.next {
            None => return Ok(records),
            next => {
                page = Page {
                    limit: PAGE,
                    after: next,
                }
            }
        }
    }
}
