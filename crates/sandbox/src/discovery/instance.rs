//! Instances: registered by somebody, or tasks of ECS.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::service::{self, Service};
use super::{PAGING, done, invalid, namespace, registry};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::page::cut;

/// Whether an instance answers, as far as anybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Health {
    /// It does.
    Healthy,
    /// It does not.
    Unhealthy,
    /// Nobody looks.
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Instance {
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) health: Health,
}

/// The instances of a service by their ids.
pub(super) fn all(account: &Account, service: &Service) -> BTreeMap<String, Instance> {
    let prefix = format!("{}/", service.key());
    let stored = account.discovery.instances.under(&prefix);
    let mut all: BTreeMap<String, Instance> = stored
        .map(|(key, one)| {
            let id = key.strip_prefix(prefix.as_str()).unwrap_or(key);
            (id.to_owned(), one.clone())
        })
        .collect();
    all.extend(registry::tasks(account, service));
    all
}

pub(super) fn register(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = service::find(account, &caller.region, request.required_text("ServiceId")?)?;
    let id = request.required_text("InstanceId")?;
    let mut attributes = BTreeMap::new();
    for (name, value) in request.object("Attributes")?.into_iter().flatten() {
        let text = value
            .as_str()
            .ok_or_else(|| invalid(format!("The attribute {name} must be a string.")))?;
        attributes.insert(name.clone(), text.to_owned());
    }
    for (record, attribute) in [
        ("A", "AWS_INSTANCE_IPV4"),
        ("AAAA", "AWS_INSTANCE_IPV6"),
        ("CNAME", "AWS_INSTANCE_CNAME"),
        ("SRV", "AWS_INSTANCE_PORT"),
    ] {
        if found.records().contains(&record) && !attributes.contains_key(attribute) {
            return Err(invalid(format!(
                "The attribute {attribute} must be specified for a service with a record of type {record}."
            )));
        }
    }
    let health = match found.has_custom_health() {
        false => Health::Unknown,
        true => match attributes.get("AWS_INIT_HEALTH_STATUS").map(String::as_str) {
            Some("UNHEALTHY") => Health::Unhealthy,
            _ => Health::Healthy,
        },
    };
    let key = format!("{}/{id}", found.key());
    let instance = Instance { attributes, health };
    account.discovery.instances.put(key, instance);
    Ok(done(account, caller, "REGISTER_INSTANCE", ("INSTANCE", id)))
}

pub(super) fn deregister(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = service::find(account, &caller.region, request.required_text("ServiceId")?)?;
    let id = request.required_text("InstanceId")?;
    let key = format!("{}/{id}", found.key());
    if all(account, found).contains_key(id) && account.discovery.instances.get(&key).is_none() {
        return Err(invalid(format!(
            "Instance {id} is a task of Amazon ECS, which deregisters it when it stops."
        )));
    }
    if account.discovery.instances.take(&key).is_none() {
        return Err(missing(id));
    }
    Ok(done(
        account,
        caller,
        "DEREGISTER_INSTANCE",
        ("INSTANCE", id),
    ))
}

fn missing(id: &str) -> ApiError {
    ApiError::client(
        "InstanceNotFound",
        format!("The instance {id} can't be found."),
    )
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = service::find(account, &caller.region, request.required_text("ServiceId")?)?;
    let id = request.required_text("InstanceId")?;
    let all = all(account, found);
    let instance = all.get(id).ok_or_else(|| missing(id))?;
    Ok(json!({"Instance": {"Id": id, "Attributes": instance.attributes}}))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = service::find(account, &caller.region, request.required_text("ServiceId")?)?;
    let all = all(account, found);
    let page = cut(request, &PAGING, false, all.keys().map(String::as_str))?;
    let items = page.items.iter().filter_map(|id| all.get_key_value(id));
    let views: Vec<Value> = items
        .map(|(id, one)| json!({"Id": id, "Attributes": one.attributes}))
        .collect();
    Ok(json!({"Instances": views, "NextToken": page.next_token}))
}

/// `DiscoverInstances`: as an application asks.
pub(super) fn discover(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let region = caller.region.as_str();
    let name = request.required_text("NamespaceName")?;
    let namespace = namespace::by_name(account, region, name)?;
    let wanted = request.required_text("ServiceName")?;
    let found = service::by_name(account, (region, &namespace.id), wanted).ok_or_else(|| {
        ApiError::client(
            "ServiceNotFound",
            format!("The service {wanted} can't be found in namespace {name}."),
        )
    })?;
    let most = match request.integer("MaxResults")? {
        None => 100,
        Some(most) if (1..=1000).contains(&most) => usize::try_from(most).unwrap_or(1),
        Some(_) => return Err(invalid("MaxResults must be between 1 and 1000.")),
    };
    let asked = request.object("QueryParameters")?;
    let mut all = all(account, found);
    all.retain(|_, one| {
        let mut asked = asked.into_iter().flatten();
        asked.all(|(name, value)| one.attributes.get(name).map(String::as_str) == value.as_str())
    });
    let fine = |one: &Instance| one.health != Health::Unhealthy;
    let some_fine = all.values().any(fine);
    match request
        .text("HealthStatus")?
        .unwrap_or("HEALTHY_OR_ELSE_ALL")
    {
        "ALL" => {}
        "HEALTHY" => all.retain(|_, one| fine(one)),
        "UNHEALTHY" => all.retain(|_, one| !fine(one)),
        "HEALTHY_OR_ELSE_ALL" if some_fine => all.retain(|_, one| fine(one)),
        "HEALTHY_OR_ELSE_ALL" => {}
        other => return Err(invalid(format!("HealthStatus {other} is not known."))),
    }
    let views: Vec<Value> = all
        .iter()
        .take(most)
        .map(|(id, one)| {
            json!({
                "InstanceId": id,
                "NamespaceName": name,
                "ServiceName": wanted,
                "HealthStatus": one.health,
                "Attributes": one.attributes,
            })
        })
        .collect();
    Ok(json!({"Instances": views, "InstancesRevision": account.now.as_millisecond()}))
}
