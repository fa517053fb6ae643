//! User groups: `/ng/api/user-groups`, and `/ng/api/v2/user-groups` where members are named by their e-mail addresses.
//! Bodies are the group, without a wrapper. A member is known by the name of its tokens or by its address; there is no
//! list of users to look them up in.

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_engine::user_group::{Found, UserGroup, find};
use slipway_model::entity::Kind;
use slipway_model::id::{PrincipalId, Scope};
use slipway_store::record::EntityRecord;

use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Draft, Filter, Place};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;
use crate::{Deps, bundle, edit, user};

pub(crate) fn routes() -> Router<Deps> {
    let path = "/ng/api/user-groups";
    let newer = "/ng/api/v2/user-groups";
    Router::new()
        .route(path, get(list).post(create).put(update))
        .route(&format!("{path}/{{id}}"), get(one).delete(remove))
        .route(
            &format!("{path}/{{id}}/member/{{user}}"),
            get(is_member).put(add).delete(take_out),
        )
        .route(newer, post(create_v2).put(update_v2))
        .route(&format!("{newer}/{{id}}"), get(one_v2))
}

/// A group as clients see it. Groups of other systems (SSO, SCIM) are not kept.
fn render(record: &EntityRecord) -> Value {
    let mut group = bundle::object(Kind::UserGroup, record);
    for field in ["type", "spec"] {
        group.shift_remove(field);
    }
    let given = [
        ("accountIdentifier", json!(record.scope.account.as_str())),
        ("ssoLinked", json!(false)),
        ("isSsoLinked", json!(false)),
        ("linkedSsoId", Value::Null),
        ("linkedSsoType", Value::Null),
        ("linkedSsoDisplayName", Value::Null),
        ("ssoGroupId", Value::Null),
        ("ssoGroupName", Value::Null),
        ("externallyManaged", json!(false)),
        ("harnessManaged", json!(false)),
    ];
    for (name, value) in given {
        group.insert(name.to_owned(), value);
    }
    for list in ["users", "notificationConfigs"] {
        group.entry(list).or_insert_with(|| json!([]));
    }
    Value::Object(group)
}

/// As [`render`], with members as objects.
fn render_v2(record: &EntityRecord) -> Value {
    let mut group = render(record);
    let users = members(record).into_iter().map(|user| {
        let email = user::email(&PrincipalId::new(user.as_str()));
        json!({"uuid": user, "name": user, "email": email})
    });
    group["users"] = users.collect();
    group
}

fn members(record: &EntityRecord) -> Vec<String> {
    UserGroup::read(record).map_or_else(Vec::new, |group| group.users)
}

fn place(caller: &Caller, query: &Query, id: &str) -> ApiResult<Place> {
    Place::of(query.scope(caller)?, Kind::UserGroup, id)
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        ..Filter::default()
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let (found, total) = entity::list(&deps, &scope, Kind::UserGroup, None, &filter, page).await?;
    Ok(success(
        page.render(found.iter().map(render).collect(), total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render(&record)))
}

async fn one_v2(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    Ok(success(render_v2(&record)))
}

fn draft(caller: &Caller, query: &Query, group: Value) -> ApiResult<Draft> {
    let body = json!({ (Kind::UserGroup.key()): group });
    let scope = bundle::scope(caller, query, Kind::UserGroup, &body)?;
    bundle::draft(scope, Kind::UserGroup, &body, None)
}

async fn create(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, body.object()?)?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn update(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, body.object()?)?;
    let saved = entity::update(&deps, &caller, draft).await?;
    Ok(saved.answer(render))
}

async fn create_v2(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, body.object()?)?;
    let saved = entity::create(&deps, &caller, draft).await?;
    Ok(saved.answer(render_v2))
}

async fn update_v2(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let draft = draft(&caller, &query, body.object()?)?;
    let saved = entity::update(&deps, &caller, draft).await?;
    Ok(saved.answer(render_v2))
}

/// Answers with the group that is no more, as Harness does.
async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = place(&caller, &query, &id)?;
    let record = entity::get(&deps, &place).await?;
    entity::delete(&deps, &caller, &place).await?;
    Ok(success(render(&record)))
}

async fn is_member(
    Call(deps, caller, query): Call,
    Path((id, user)): Path<(String, String)>,
) -> ApiResult {
    let record = entity::get(&deps, &place(&caller, &query, &id)?).await?;
    let email = user::email(&PrincipalId::new(user.as_str()));
    let found = UserGroup::read(&record).is_some_and(|group| group.has(&user, &email));
    Ok(success(Value::Bool(found)))
}

async fn add(
    Call(deps, caller, query): Call,
    Path((id, user)): Path<(String, String)>,
) -> ApiResult {
    change(&deps, &caller, &place(&caller, &query, &id)?, |users| {
        if !users.iter().any(|known| known.eq_ignore_ascii_case(&user)) {
            users.push(user);
        }
    })
    .await
}

async fn take_out(
    Call(deps, caller, query): Call,
    Path((id, user)): Path<(String, String)>,
) -> ApiResult {
    change(&deps, &caller, &place(&caller, &query, &id)?, |users| {
        users.retain(|known| !known.eq_ignore_ascii_case(&user));
    })
    .await
}

/// Changes the members of a group.
async fn change(
    deps: &Deps,
    caller: &Caller,
    place: &Place,
    with: impl FnOnce(&mut Vec<String>),
) -> ApiResult {
    let before = entity::get(deps, place).await?;
    let mut users = members(&before);
    with(&mut users);
    let yaml = edit::set(Kind::UserGroup, &before.yaml, "users", &json!(users));
    let draft = Draft::of_yaml(place.scope.clone(), Kind::UserGroup, yaml)?;
    let saved = entity::update(deps, caller, draft).await?;
    Ok(saved.answer(render))
}

/// Refuses somebody who is in none of the groups that are asked, and no service account that is. Where nobody is
/// named, everybody is asked.
pub(crate) async fn check_member(
    deps: &Deps,
    scope: &Scope,
    caller: &Caller,
    groups: &[String],
    accounts: &[String],
) -> ApiResult<()> {
    let who = caller.principal.as_str();
    let itself = |account: &String| account.rsplit('.').next() == Some(who);
    if groups.is_empty() && accounts.is_empty() || accounts.iter().any(itself) {
        return Ok(());
    }
    let email = user::email(&caller.principal);
    let mut missing = Vec::new();
    for reference in groups {
        match find(&deps.store, scope, reference).await? {
            Found::Everybody => return Ok(()),
            Found::Group(group) if group.has(who, &email) => return Ok(()),
            Found::Group(_) => {}
            Found::Missing => missing.push(format!("`{reference}`")),
        }
    }
    let asked: Vec<String> = groups
        .iter()
        .chain(accounts)
        .map(|name| format!("`{name}`"))
        .collect();
    let mut message = format!(
        "{who} is not among those who are asked: {}",
        asked.join(", ")
    );
    if !missing.is_empty() {
        let missing = missing.join(", ");
        message.push_str(&format!(
            "; there is no user group {missing}: make it, with its members, or name another one"
        ));
    }
    Err(ApiError::new(
        slipway_engine::error_name::ErrorName::Forbidden,
        message,
    ))
}
