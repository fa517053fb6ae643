//! The current user and its account: what clients ask at login. And the people of the account: who there is, and who was
//! removed (API 5.2).
//!
//! A person is known from the first token that is made for them, or the first call with one that an earlier version made.
//! Who was removed is kept: their tokens are refused, and the triggers that they saved last start nothing, until they are
//! added again. There are no roles yet: `roleBindings` of requests give nothing, for everybody may do everything.

use axum::Router;
use axum::extract::{Extension, Path};
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_model::id::{AccountId, PrincipalId};
use slipway_store::Page as StorePage;
use slipway_store::record::{OF_TRIGGER, PersonRecord, Removal};

use crate::Deps;
use crate::auth::Caller;
use crate::body::Body;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::query::Query;

pub(crate) use slipway_engine::user_group::email;

/// People that are read at once.
const STORE_PAGE: usize = 500;

/// Most people that one request adds.
const MOST_ADDED: usize = 100;

/// Longest name of somebody, in characters.
pub(crate) const LONGEST_NAME: usize = 128;

/// Where a name is the address: [`email`] of a name that is none.
const HERE: &str = "@localhost";

pub(crate) fn routes() -> Router<Deps> {
    let path = "/ng/api/user";
    Router::new()
        .route(&format!("{path}/currentUser"), get(current))
        .route(&format!("{path}/aggregate"), post(list))
        .route(&format!("{path}/aggregate/{{id}}"), get(aggregate))
        .route(&format!("{path}/users"), post(add))
        .route(&format!("{path}/{{id}}"), get(one).delete(remove))
}

/// A person as clients see one. Who was removed is disabled.
fn render(person: &PersonRecord) -> Value {
    let removed = person.removed.as_ref();
    json!({
        "uuid": person.principal.as_str(),
        "name": person.principal.as_str(),
        "email": email(&person.principal),
        "locked": false,
        "disabled": removed.is_some(),
        "externallyManaged": false,
        "twoFactorAuthenticationEnabled": false,
        "createdAt": person.since_ms,
        "removedAt": removed.map(|removal| removal.at_ms),
        "removedBy": removed.map(|removal| removal.by.as_str()),
    })
}

/// With the roles, of which there are none.
fn with_roles(person: &PersonRecord) -> Value {
    json!({"user": render(person), "roleAssignmentMetadata": []})
}

/// People belong to the account as a whole: a request for one organization or project alone is refused, and not taken for
/// more than it says.
fn whole_account(caller: &Caller, query: &Query) -> ApiResult<()> {
    let scope = query.scope(caller)?;
    match scope.org {
        None => Ok(()),
        Some(_) => Err(ApiError::field(
            "orgIdentifier",
            "must be left out: people are added to, and removed from, the account as a whole",
        )),
    }
}

/// `POST /ng/api/user/aggregate`: those who are there, and with `includeRemoved=true` those who were removed as well.
async fn list(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let page = Page::ng(&query)?;
    let mut wanted = query.one("searchTerm")?.map(str::to_lowercase);
    if wanted.is_none() && !body.text()?.trim().is_empty() {
        let filter = body.object()?;
        wanted = filter["searchTerm"].as_str().map(str::to_lowercase);
    }
    let all = query.one("includeRemoved")? == Some("true");
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let part = StorePage {
            limit: STORE_PAGE,
            after,
        };
        let listing = deps.store.list_people(&caller.account, part).await?;
        found.extend(listing.items.into_iter().filter(|person| {
            let named = |text: &String| email(&person.principal).to_lowercase().contains(text);
            (all || person.removed.is_none()) && wanted.as_ref().is_none_or(named)
        }));
        after = listing.next;
        if after.is_none() {
            break;
        }
    }
    let total = found.len();
    let people = page.cut(found);
    Ok(success(
        page.render(people.iter().map(with_roles).collect(), total),
    ))
}

/// Somebody who is there, or 404.
async fn there(deps: &Deps, caller: &Caller, id: &str) -> ApiResult<PersonRecord> {
    let who = PrincipalId::new(id);
    let found = deps.store.find_person(&caller.account, &who).await?;
    match found {
        Some(person) if person.removed.is_none() => Ok(person),
        Some(_) => Err(ApiError::not_found(format!(
            "{who} was removed: `slipway user restore` brings them back"
        ))),
        None => Err(ApiError::not_found(format!(
            "Nobody of this account is known as {who}: `slipway user list` shows who is. Whose last call was to an earlier \
             version is not known yet: add them, then they can be removed"
        ))),
    }
}

/// `GET /ng/api/user/{userId}`.
async fn one(Call(deps, caller, _): Call, Path(id): Path<String>) -> ApiResult {
    let person = there(&deps, &caller, &id).await?;
    Ok(success(render(&person)))
}

/// `GET /ng/api/user/aggregate/{userId}`.
async fn aggregate(Call(deps, caller, _): Call, Path(id): Path<String>) -> ApiResult {
    let person = there(&deps, &caller, &id).await?;
    Ok(success(with_roles(&person)))
}

/// `DELETE /ng/api/user/{userId}`. Nobody removes themselves, so that somebody is always left.
async fn remove(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    whole_account(&caller, &query)?;
    let person = there(&deps, &caller, &id).await?;
    if person.principal == caller.principal {
        let message = "nobody removes themselves: somebody else of the account must do it";
        return Err(ApiError::invalid(message));
    }
    let removed = PersonRecord {
        removed: Some(Removal {
            at_ms: deps.clock.now_ms(),
            by: caller.principal.clone(),
        }),
        ..person
    };
    deps.store.put_person(&removed).await?;
    audit(&caller, "removed", &removed.principal);
    Ok(success(Value::Bool(true)))
}

/// `POST /ng/api/user/users`: adds people by their e-mail addresses, or by their names where these are none. Who was removed
/// is there again, with the tokens and triggers that they had.
async fn add(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    whole_account(&caller, &query)?;
    let body = body.object()?;
    let emails = body["emails"].as_array().filter(|all| !all.is_empty());
    let emails = emails.ok_or_else(|| ApiError::field("emails", "must be a list of addresses"))?;
    if emails.len() > MOST_ADDED {
        let message = format!("must not be more than {MOST_ADDED} at once");
        return Err(ApiError::field("emails", message));
    }
    if body["userGroups"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
    {
        let message = "must be empty: add members with PUT /ng/api/user-groups/GROUP/member/USER";
        return Err(ApiError::field("userGroups", message));
    }
    let mut people = Vec::with_capacity(emails.len());
    for address in emails {
        let address = address.as_str().unwrap_or_default().trim();
        let who = address.strip_suffix(HERE).unwrap_or(address);
        check_name("emails", who)?;
        people.push((address, PrincipalId::new(who)));
    }
    let mut answers = serde_json::Map::new();
    for (address, who) in people {
        let answer = match add_one(&deps, &caller, &who).await? {
            true => "USER_ADDED_SUCCESSFULLY",
            false => "USER_ALREADY_ADDED",
        };
        answers.insert(address.to_owned(), answer.into());
    }
    Ok(success(json!({"addUserResponseMap": answers})))
}

/// Whether somebody was not there before.
async fn add_one(deps: &Deps, caller: &Caller, who: &PrincipalId) -> ApiResult<bool> {
    let added = match deps.store.find_person(&caller.account, who).await? {
        None => deps.store.meet_person(&caller.account, who).await?,
        Some(PersonRecord { removed: None, .. }) => false,
        Some(person) => {
            let back = PersonRecord {
                removed: None,
                ..person
            };
            deps.store.put_person(&back).await?;
            true
        }
    };
    if added {
        audit(caller, "added", who);
    }
    Ok(added)
}

/// Refuses what nobody can be called.
pub(crate) fn check_name(field: &str, name: &str) -> ApiResult<()> {
    let fits = !name.is_empty()
        && name.chars().count() <= LONGEST_NAME
        && !name.chars().any(char::is_control);
    if !fits {
        let message =
            format!("must be a text of 1 to {LONGEST_NAME} characters without control characters");
        return Err(ApiError::field(field, message));
    }
    match name.starts_with(OF_TRIGGER) {
        true => Err(ApiError::field(
            field,
            format!("must not begin with `{OF_TRIGGER}`: triggers are called so"),
        )),
        false => Ok(()),
    }
}

/// Refuses what would be done for somebody who was removed.
///
/// # Errors
/// When they were, or it cannot be read.
pub(crate) async fn check_there(
    deps: &Deps,
    account: &AccountId,
    who: &PrincipalId,
) -> ApiResult<()> {
    let found = deps.store.find_person(account, who).await?;
    match found.is_some_and(|person| person.removed.is_some()) {
        true => Err(ApiError::new(
            ErrorName::InvalidRequest,
            format!("{who} was removed: `slipway user restore {who}` brings them back first"),
        )),
        false => Ok(()),
    }
}

fn audit(caller: &Caller, action: &str, who: &PrincipalId) {
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        account = %caller.account,
        kind = "user",
        identifier = %who,
        action,
        "{} {action} {who}", caller.principal
    );
}

/// `GET /ng/api/user/currentUser`.
async fn current(Extension(caller): Extension<Caller>) -> ApiResult {
    Ok(success(json!({
        "uuid": caller.principal.as_str(),
        "name": caller.principal.as_str(),
        "email": email(&caller.principal),
        "admin": true,
        "accounts": [account_json(&caller)],
        "defaultAccountId": caller.account.as_str(),
        "locked": false,
        "disabled": false,
        "externallyManaged": false,
        "twoFactorAuthenticationEnabled": false,
        "emailVerified": true,
    })))
}

/// `GET /ng/api/accounts/{accountIdentifier}`.
pub(crate) async fn account(
    Extension(caller): Extension<Caller>,
    Path(account): Path<String>,
) -> ApiResult {
    if account != caller.account.as_str() {
        return Err(ApiError::forbidden());
    }
    Ok(success(account_json(&caller)))
}

fn account_json(caller: &Caller) -> Value {
    json!({
        "identifier": caller.account.as_str(),
        "uuid": caller.account.as_str(),
        "name": caller.account.as_str(),
        "accountName": caller.account.as_str(),
        "companyName": caller.account.as_str(),
        "defaultExperience": "NG",
        "authenticationMechanism": "USER_PASSWORD",
        "nextGenEnabled": true,
        "accountStatus": "ACTIVE",
    })
}
