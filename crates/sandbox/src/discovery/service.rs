//! Services: what instances are registered with, and `serviceRegistries` of ECS name.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{PAGING, filter, instance, invalid, namespace};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, epoch};
use crate::page::cut;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Service {
    pub(super) region: String,
    pub(super) id: String,
    pub(super) name: String,
    /// Id of its namespace.
    pub(super) namespace: String,
    description: Option<String>,
    dns: Option<Document>,
    health: Option<Document>,
    request: Option<String>,
    created: Timestamp,
}

impl Service {
    /// Types of its DNS records: `A`, `AAAA`, `SRV`, `CNAME`.
    pub(super) fn records(&self) -> Vec<&str> {
        let dns = self.dns.as_ref().and_then(|dns| dns.get("DnsRecords"));
        let records = dns.and_then(Value::as_array).into_iter().flatten();
        records
            .filter_map(|record| record.get("Type")?.as_str())
            .collect()
    }

    /// Whether somebody, ECS for instance, says how its instances are.
    pub(super) fn has_custom_health(&self) -> bool {
        self.health.is_some()
    }

    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.region, self.id)
    }

    fn view(&self, account: &Account) -> Value {
        let (region, id) = (&self.region, &self.id);
        json!({
            "Id": id,
            "Arn": format!("arn:aws:servicediscovery:{region}:{}:service/{id}", account.id),
            "Name": self.name,
            "NamespaceId": self.namespace,
            "Description": self.description,
            "InstanceCount": instance::all(account, self).len(),
            "DnsConfig": self.dns,
            "Type": if self.dns.is_some() { "DNS_HTTP" } else { "HTTP" },
            "HealthCheckCustomConfig": self.health,
            "CreatorRequestId": self.request,
            "CreateDate": epoch(self.created),
        })
    }
}

/// The service of an id or ARN.
pub(super) fn find<'a>(
    account: &'a Account,
    region: &str,
    id: &str,
) -> Result<&'a Service, ApiError> {
    let id = id.rsplit('/').next().unwrap_or(id);
    let found = account.discovery.services.get(&format!("{region}/{id}"));
    found.ok_or_else(|| {
        ApiError::client(
            "ServiceNotFound",
            format!("The service {id} can't be found."),
        )
    })
}

/// The service of a name in a namespace.
pub(super) fn by_name<'a>(
    account: &'a Account,
    (region, namespace): (&str, &str),
    name: &str,
) -> Option<&'a Service> {
    let prefix = format!("{region}/");
    let mut all = account.discovery.services.under(&prefix);
    let found = all.find(|(_, one)| one.namespace == namespace && one.name == name);
    found.map(|(_, one)| one)
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = request.required_text("Name")?;
    let dns = request.object("DnsConfig")?;
    let own = dns.and_then(|dns| dns.get("NamespaceId")?.as_str());
    let id = request.text("NamespaceId")?.or(own);
    let id = id.ok_or_else(|| invalid("The namespace ID must be specified."))?;
    let namespace = namespace::find(account, &caller.region, id)?;
    if dns.is_some() && !namespace.is_dns() {
        return Err(invalid(format!(
            "DnsConfig cannot be specified for the HTTP namespace {}.",
            namespace.id
        )));
    }
    let namespace = namespace.id.clone();
    if by_name(account, (&caller.region, &namespace), name).is_some() {
        return Err(ApiError::client(
            "ServiceAlreadyExists",
            format!("The service {name} exists already in namespace {namespace}."),
        ));
    }
    let service = Service {
        region: caller.region.clone(),
        id: format!("srv-{}", account.draw_hex(16)),
        name: name.to_owned(),
        namespace,
        description: request.text("Description")?.map(str::to_owned),
        dns: dns.cloned(),
        health: request.object("HealthCheckCustomConfig")?.cloned(),
        request: request.text("CreatorRequestId")?.map(str::to_owned),
        created: account.now,
    };
    let view = service.view(account);
    account.discovery.services.put(service.key(), service);
    Ok(json!({"Service": view}))
}

pub(super) fn get(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = find(account, &caller.region, request.required_text("Id")?)?;
    Ok(json!({"Service": found.view(account)}))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let namespace = filter(request, "NAMESPACE_ID")?;
    let prefix = format!("{}/", caller.region);
    let all = account.discovery.services.under(&prefix);
    let all = all.filter(|(_, one)| namespace.is_none_or(|id| one.namespace == id));
    let page = cut(request, &PAGING, false, all.map(|(key, _)| key))?;
    let found = page.items.iter();
    let found = found.filter_map(|key| account.discovery.services.get(key));
    let views: Vec<Value> = found.map(|one| one.view(account)).collect();
    Ok(json!({"Services": views, "NextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let found = find(account, &caller.region, request.required_text("Id")?)?;
    if !instance::all(account, found).is_empty() {
        return Err(ApiError::client(
            "ResourceInUse",
            "Service contains registered instances; delete the instances before deleting the service",
        ));
    }
    let key = found.key();
    account.discovery.services.take(&key);
    Ok(json!({}))
}
