//! Namespaces: names under which services are found.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{PAGING, done, filter, invalid};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Fields, epoch};
use crate::page::cut;

/// How instances are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Kind {
    /// By `DiscoverInstances` alone.
    Http,
    /// By names in a private zone too.
    DnsPrivate,
    /// By names in a public zone too.
    DnsPublic,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Namespace {
    region: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: Kind,
    description: Option<String>,
    request: Option<String>,
    created: Timestamp,
}

impl Namespace {
    pub(super) fn is_dns(&self) -> bool {
        self.kind != Kind::Http
    }

    fn view(&self, account: &Account) -> Value {
        let (region, id) = (&self.region, &self.id);
        let prefix = format!("{region}/");
        let services = account.discovery.services.under(&prefix);
        let services = services.filter(|(_, service)| service.namespace == *id);
        json!({
            "Id": id,
            "Arn": format!("arn:aws:servicediscovery:{region}:{}:namespace/{id}", account.id),
            "Name": self.name,
            "Type": self.kind,
            "Description": self.description,
            "ServiceCount": services.count(),
            "CreatorRequestId": self.request,
            "CreateDate": epoch(self.created),
        })
    }
}

/// The namespace of an id or ARN.
pub(super) fn find<'a>(
    account: &'a Account,
    region: &str,
    id: &str,
) -> Result<&'a Namespace, ApiError> {
    let id = id.rsplit('/').next().unwrap_or(id);
    let found = account.discovery.namespaces.get(&format!("{region}/{id}"));
    found.ok_or_else(|| {
        ApiError::client(
            "NamespaceNotFound",
            format!("The namespace {id} can't be found."),
        )
    })
}

/// The namespace of a name.
pub(super) fn by_name<'a>(
    account: &'a Account,
    region: &str,
    name: &str,
) -> Result<&'a Namespace, ApiError> {
    let prefix = format!("{region}/");
    let mut all = account.discovery.namespaces.under(&prefix);
    let found = all.find(|(_, namespace)| namespace.name == name);
    found.map(|(_, namespace)| namespace).ok_or_else(|| {
        ApiError::client(
            "NamespaceNotFound",
            format!("The namespace {name} can't be found."),
        )
    })
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
    kind: Kind,
) -> Result<Value, ApiError> {
    let name = request.required_text("Name")?;
    if kind == Kind::DnsPrivate {
        request.required_text("Vpc")?;
    }
    let well = |c: char| c.is_ascii_alphanumeric() || "!-_.~".contains(c);
    if name.len() > 253 || !name.chars().all(well) {
        return Err(invalid(format!("The name {name} is not valid.")));
    }
    if by_name(account, &caller.region, name).is_ok() {
        return Err(ApiError::client(
            "NamespaceAlreadyExists",
            format!("A namespace with the name {name} exists already."),
        ));
    }
    let namespace = Namespace {
        region: caller.region.clone(),
        id: format!("ns-{}", account.draw_hex(16)),
        name: name.to_owned(),
        kind,
        description: request.text("Description")?.map(str::to_owned),
        request: request.text("CreatorRequestId")?.map(str::to_owned),
        created: account.now,
    };
    let id = namespace.id.clone();
    let key = format!("{}/{id}", caller.region);
    account.discovery.namespaces.put(key, namespace);
    Ok(done(
        account,
        caller,
        "CREATE_NAMESPACE",
        ("NAMESPACE", &id),
    ))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = find(account, &caller.region, request.required_text("Id")?)?;
    Ok(json!({"Namespace": found.view(account)}))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let (name, kind) = (filter(request, "NAME")?, filter(request, "TYPE")?);
    let prefix = format!("{}/", caller.region);
    let all = account.discovery.namespaces.under(&prefix);
    let all = all.filter(|(_, one)| {
        name.is_none_or(|name| one.name == name) && kind.is_none_or(|kind| json!(one.kind) == kind)
    });
    let page = cut(request, &PAGING, false, all.map(|(key, _)| key))?;
    let found = page.items.iter();
    let found = found.filter_map(|key| account.discovery.namespaces.get(key));
    let views: Vec<Value> = found.map(|one| one.view(account)).collect();
    Ok(json!({"Namespaces": views, "NextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let id = find(account, &caller.region, request.required_text("Id")?)?;
    let id = id.id.clone();
    let prefix = format!("{}/", caller.region);
    let services = &account.discovery.services;
    let used = services
        .under(&prefix)
        .any(|(_, service)| service.namespace == id);
    if used {
        return Err(ApiError::client(
            "ResourceInUse",
            "Namespace has associated services; delete the services before deleting the namespace",
        ));
    }
    let key = format!("{}/{id}", caller.region);
    account.discovery.namespaces.take(&key);
    Ok(done(
        account,
        caller,
        "DELETE_NAMESPACE",
        ("NAMESPACE", &id),
    ))
}
