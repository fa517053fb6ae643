//! Aliases: names for a version, or for two with a share of the requests each.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{changed, conflict, invalid, missing, no_function, not_found, validation};
use super::function::{Revision, Version};
use super::name::Named;
use super::request::Request;
use super::{Reply, traffic};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};
use crate::page::cut_at;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Alias {
    pub(super) name: String,
    arn: String,
    pub(super) version: String,
    description: String,
    /// The second version and its share, 0 to 1.
    pub(super) second: Option<(String, f64)>,
    id: String,
}

impl Alias {
    /// Whether it points to a version.
    pub(super) fn names(&self, version: &str) -> bool {
        self.version == version
            || self
                .second
                .as_ref()
                .is_some_and(|(second, _)| second == version)
    }

    fn view(&self) -> Value {
        let mut view = json!({
            "AliasArn": self.arn,
            "Name": self.name,
            "FunctionVersion": self.version,
            "Description": self.description,
            "RevisionId": self.id,
        });
        if let Some((version, weight)) = &self.second {
            view["RoutingConfig"] = json!({"AdditionalVersionWeights": {version: weight}});
        }
        view
    }
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    named.function(account)?;
    let fields = request.fields();
    let name = fields.text("Name")?.ok_or_else(|| missing("name"))?;
    check_name(name)?;
    let version = fields
        .text("FunctionVersion")?
        .ok_or_else(|| missing("functionVersion"))?;
    let key = named.alias_key(name);
    let arn = format!("{}:{name}", named.arn);
    if account.lambda.aliases.get(&key).is_some() {
        return Err(conflict(format!("Alias already exists: {arn}")));
    }
    let alias = Alias {
        name: name.to_owned(),
        arn,
        version: version.to_owned(),
        description: description(fields)?.unwrap_or_default(),
        second: second(fields)?.unwrap_or_default(),
        id: account.draw_uuid(),
    };
    check(account, &named, &alias)?;
    traffic::note(account, &named, &alias);
    let view = alias.view();
    account.lambda.aliases.put(key, alias);
    Ok((201, view))
}

pub(super) fn update(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (named, mut alias) = find(account, caller, request)?;
    let fields = request.fields();
    if fields.text("RevisionId")?.is_some_and(|id| id != alias.id) {
        return Err(changed("GetAlias"));
    }
    if let Some(version) = fields.text("FunctionVersion")? {
        alias.version = version.to_owned();
    }
    if let Some(text) = description(fields)? {
        alias.description = text;
    }
    if let Some(second) = second(fields)? {
        alias.second = second;
    }
    alias.id = account.draw_uuid();
    check(account, &named, &alias)?;
    traffic::note(account, &named, &alias);
    let view = alias.view();
    account
        .lambda
        .aliases
        .put(named.alias_key(request.second()), alias);
    Ok((200, view))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let (_, alias) = find(account, caller, request)?;
    Ok((200, alias.view()))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    named.function(account)?;
    let below = named.below();
    let version = request.query("FunctionVersion");
    let aliases = account.lambda.aliases.under(&below);
    let aliases = aliases.filter(|(_, alias)| version.is_none_or(|version| alias.names(version)));
    let keys = aliases.map(|(key, _)| key);
    let page = cut_at(request.page_size()?, request.query("Marker"), false, keys)?;
    let found = page
        .items
        .iter()
        .filter_map(|key| account.lambda.aliases.get(key));
    let found: Vec<Value> = found.map(Alias::view).collect();
    Ok((
        200,
        json!({"Aliases": found, "NextMarker": page.next_token}),
    ))
}

/// An alias that is not there is deleted too.
pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let named = Named::of(account, caller, request)?;
    named.function(account)?;
    account
        .lambda
        .aliases
        .take(&named.alias_key(request.second()));
    Ok((204, Value::Null))
}

fn find(account: &Account, caller: &Caller, request: &Request) -> Result<(Named, Alias), ApiError> {
    let named = Named::of(account, caller, request)?;
    named.function(account)?;
    let name = request.second();
    let found = account.lambda.aliases.get(&named.alias_key(name)).cloned();
    let alias =
        found.ok_or_else(|| not_found(format!("Cannot find alias arn: {}:{name}", named.arn)))?;
    Ok((named, alias))
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let letters = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let number = name.bytes().all(|byte| byte.is_ascii_digit());
    if (1..=128).contains(&name.len()) && letters && !number {
        return Ok(());
    }
    Err(validation(
        "name",
        name,
        "Member must have length between 1 and 128 and satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)",
    ))
}

fn description(fields: Fields<'_>) -> Result<Option<String>, ApiError> {
    let text = fields.text("Description")?;
    if let Some(long) = text.filter(|text| text.len() > 256) {
        return Err(validation(
            "description",
            long,
            "Member must have length less than or equal to 256",
        ));
    }
    Ok(text.map(str::to_owned))
}

/// The routing of a request: `None` where it says nothing, `Some(None)` where it says that there is no second version.
#[expect(
    clippy::option_option,
    reason = "saying nothing and saying none are two things"
)]
fn second(fields: Fields<'_>) -> Result<Option<Option<(String, f64)>>, ApiError> {
    let Some(routing) = fields.object("RoutingConfig")? else {
        return Ok(None);
    };
    let none = Document::new();
    let weights = Fields(routing)
        .object("AdditionalVersionWeights")?
        .unwrap_or(&none);
    let mut weights = weights.iter();
    let Some((version, weight)) = weights.next() else {
        return Ok(Some(None));
    };
    if weights.next().is_some() {
        return Err(invalid(
            "The number of additional versions in the routing configuration cannot exceed 1.",
        ));
    }
    let member = "routingConfig.additionalVersionWeights";
    if version == "$LATEST" {
        return Err(invalid(
            "$LATEST is not supported for an alias pointing to more than 1 version",
        ));
    }
    if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(validation(
            member,
            version,
            "Map keys must satisfy constraint: [Member must satisfy regular expression pattern: [0-9]+]",
        ));
    }
    let share = weight.as_f64().filter(|share| (0.0..=1.0).contains(share));
    let share = share.ok_or_else(|| {
        validation(
            member,
            weight,
            "Map values must satisfy constraint: [Member must have value between 0.0 and 1.0]",
        )
    })?;
    Ok(Some(Some((version.clone(), share))))
}

fn version<'a>(account: &'a Account, named: &Named, number: &str) -> Result<&'a Version, ApiError> {
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(validation(
            "functionVersion",
            number,
            "Member must satisfy regular expression pattern: (\\$LATEST|[0-9]+)",
        ));
    }
    let found = account.lambda.versions.get(&named.version_key(number));
    found.ok_or_else(|| no_function(&format!("{}:{number}", named.arn)))
}

/// The rules of "Configuring versions for an alias" (developer guide).
fn check(account: &Account, named: &Named, alias: &Alias) -> Result<(), ApiError> {
    let latest = alias.version == "$LATEST";
    let Some((second, _)) = &alias.second else {
        return if latest {
            Ok(())
        } else {
            version(account, named, &alias.version).map(|_| ())
        };
    };
    if latest {
        return Err(invalid(
            "$LATEST is not supported for an alias pointing to more than 1 version",
        ));
    }
    if *second == alias.version {
        return Err(invalid(format!(
            "Invalid function version {second}. Function version {second} is already included in routing configuration."
        )));
    }
    let first = &version(account, named, &alias.version)?.revision;
    let other = &version(account, named, second)?.revision;
    let of = |revision: &Revision, name: &str| revision.document.get(name).cloned();
    for (member, what) in [
        ("Role", "execution role"),
        ("DeadLetterConfig", "dead-letter queue"),
    ] {
        if of(first, member) != of(other, member) {
            return Err(invalid(format!(
                "Both versions of an alias must have the same {what}: {} and {second} have not.",
                alias.version
            )));
        }
    }
    Ok(())
}
