//! Clusters. None exists at first, not even `default`.
//!
//! A cluster has room for every task on Fargate; other tasks need container instances ([`super::placement`]).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::task::Status;
use super::{capacity, placement, tag};
use crate::account::{Account, Wake};
use crate::arn::{Arn, last_part};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, default_to, omit};
use crate::page::{Paging, cut};

const PAGING: Paging = Paging {
    token: "nextToken",
    size: "maxResults",
    default: 100,
    most: 100,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cluster {
    pub(crate) region: String,
    pub(crate) name: String,
    pub(crate) arn: String,
    /// What the request said beyond name and tags: settings, configuration, capacity providers.
    document: Document,
    pub(crate) tags: Document,
    /// Set once deleted: when the INACTIVE cluster is forgotten.
    pub(crate) due: Option<Timestamp>,
}

impl Cluster {
    fn is_active(&self) -> bool {
        self.due.is_none()
    }

    /// Names of the capacity providers that are associated with it.
    pub(super) fn providers(&self) -> Vec<&str> {
        let names = self
            .document
            .get("capacityProviders")
            .and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(last_part).collect()
    }

    /// `defaultCapacityProviderStrategy`, where there is one.
    pub(super) fn default_strategy(&self) -> Option<&Value> {
        let own = self.document.get("defaultCapacityProviderStrategy")?;
        own.as_array().filter(|own| !own.is_empty()).map(|_| own)
    }
}

/// Key of the cluster that a request names by `cluster` (name or ARN); `default` when it names none.
pub(crate) fn key(caller: &Caller, request: Fields<'_>) -> Result<String, ApiError> {
    let named = request.text("cluster")?.filter(|name| !name.is_empty());
    let name = last_part(named.unwrap_or("default"));
    Ok(format!("{}/{name}", caller.region))
}

/// The active cluster that a request names.
pub(crate) fn find<'a>(
    account: &'a Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<&'a Cluster, ApiError> {
    let key = key(caller, request)?;
    account
        .clusters
        .get(&key)
        .filter(|cluster| cluster.is_active())
        .ok_or_else(|| ApiError::client("ClusterNotFoundException", "Cluster not found."))
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = request.text("clusterName")?.unwrap_or("default");
    if !is_name(name) {
        return Err(ApiError::invalid_parameter(
            "Invalid cluster name: up to 255 letters, numbers, hyphens and underscores are allowed.",
        ));
    }
    let key = format!("{}/{name}", caller.region);
    if account
        .clusters
        .get(&key)
        .is_none_or(|row| !row.is_active())
    {
        let tags = tag::read(request)?;
        check_providers(account, caller, request)?;
        let cluster = Cluster {
            region: caller.region.clone(),
            name: name.to_owned(),
            arn: format!(
                "arn:aws:ecs:{}:{}:cluster/{name}",
                caller.region, account.id
            ),
            document: omit(request.0, &["clusterName", "tags"]),
            tags,
            due: None,
        };
        account.clusters.put(key.clone(), cluster);
    }
    let cluster = account.clusters.get(&key);
    Ok(json!({"cluster": cluster.map(|row| view(account, row, true))}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let mut names = request.texts("clusters")?;
    if names.is_empty() {
        names.push("default");
    }
    let include = request.texts("include")?;
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let short = last_part(name);
        match account.clusters.get(&format!("{}/{short}", caller.region)) {
            Some(row) => found.push(view(account, row, include.contains(&"TAGS"))),
            None => failures.push(json!({
                "arn": format!("arn:aws:ecs:{}:{}:cluster/{short}", caller.region, account.id),
                "reason": "MISSING",
            })),
        }
    }
    Ok(json!({"clusters": found, "failures": failures}))
}

pub(super) fn list(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let prefix = format!("{}/", caller.region);
    let all = account.clusters.under(&prefix);
    let active = all.filter(|(_, row)| row.is_active());
    let page = cut(
        request,
        &PAGING,
        false,
        active.map(|(_, row)| row.arn.as_str()),
    )?;
    Ok(json!({"clusterArns": page.items, "nextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    request.required_text("cluster")?;
    let key = key(caller, request)?;
    let found = find(account, caller, request)?;
    let counts = Counts::of(account, found);
    if !placement::of_cluster(account, &found.region, &found.name).is_empty() {
        return Err(ApiError::client(
            "ClusterContainsContainerInstancesException",
            "The Cluster cannot be deleted while Container Instances are active or draining.",
        ));
    }
    if counts.services > 0 {
        return Err(ApiError::client(
            "ClusterContainsServicesException",
            "The Cluster cannot be deleted while Services are active.",
        ));
    }
    if counts.running + counts.pending > 0 {
        return Err(ApiError::client(
            "ClusterContainsTasksException",
            "The Cluster cannot be deleted while Tasks are active.",
        ));
    }
    let due = account.later(account.pace.keep_stopped);
    if let Some(row) = account.clusters.get_mut(&key) {
        row.due = Some(due);
    }
    account.schedule(due, Wake::Cluster(key.clone()));
    let cluster = account.clusters.get(&key);
    Ok(json!({"cluster": cluster.map(|row| view(account, row, true))}))
}

/// Capacity providers of a cluster are there, and its default strategy names some of them.
fn check_providers(
    account: &Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<(), ApiError> {
    let names = request.texts("capacityProviders")?;
    let names: Vec<&str> = names.into_iter().map(last_part).collect();
    capacity::check_known(account, &caller.region, &names)?;
    let strategy = request.objects("defaultCapacityProviderStrategy")?;
    capacity::check_strategy(account, &caller.region, &strategy, &names)
}

/// `PutClusterCapacityProviders`: replaces both the providers and the default strategy.
pub(super) fn put_providers(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    request.required_text("cluster")?;
    for name in ["capacityProviders", "defaultCapacityProviderStrategy"] {
        if request.0.get(name).is_none_or(Value::is_null) {
            return Err(ApiError::invalid_parameter(format!(
                "{name} cannot be null."
            )));
        }
    }
    check_providers(account, caller, request)?;
    let found = find(account, caller, request)?;
    let given = request.texts("capacityProviders")?;
    let leaving = found.providers().into_iter();
    let mut leaving = leaving.filter(|old| !given.iter().any(|new| last_part(new) == *old));
    if leaving.any(|name| capacity::in_use(account, found, name)) {
        return Err(ApiError::client(
            "ResourceInUseException",
            "The specified capacity provider is in use and cannot be removed.",
        ));
    }
    let (region, name) = (found.region.clone(), found.name.clone());
    let key = format!("{region}/{name}");
    let given = omit(request.0, &["cluster"]);
    if let Some(row) = account.clusters.get_mut(&key) {
        row.document.extend(given);
    }
    let cluster = account.clusters.get(&key);
    Ok(json!({"cluster": cluster.map(|row| view(account, row, true))}))
}

/// Forgets an INACTIVE cluster whose time has come.
pub(crate) fn forget(account: &mut Account, key: &str, at: Timestamp) {
    if account
        .clusters
        .get(key)
        .is_some_and(|row| row.due == Some(at))
    {
        account.clusters.take(key);
    }
}

struct Counts {
    running: usize,
    pending: usize,
    services: usize,
}

impl Counts {
    fn of(account: &Account, cluster: &Cluster) -> Self {
        let prefix = format!("{}/{}/", cluster.region, cluster.name);
        let services = account.services.under(&prefix);
        let mut counts = Self {
            running: 0,
            pending: 0,
            services: services.filter(|(_, row)| !row.is_inactive()).count(),
        };
        for (_, task) in account.tasks.under(&prefix) {
            match task.status {
                Status::Running => counts.running += 1,
                Status::Provisioning | Status::Pending | Status::Activating => counts.pending += 1,
                _ => {}
            }
        }
        counts
    }
}

fn view(account: &Account, cluster: &Cluster, tags: bool) -> Value {
    let counts = Counts::of(account, cluster);
    let mut document = cluster.document.clone();
    document.insert("clusterArn".into(), json!(cluster.arn));
    document.insert("clusterName".into(), json!(cluster.name));
    let status = if cluster.is_active() {
        "ACTIVE"
    } else {
        "INACTIVE"
    };
    document.insert("status".into(), json!(status));
    let instances = placement::of_cluster(account, &cluster.region, &cluster.name).len();
    document.insert("registeredContainerInstancesCount".into(), json!(instances));
    document.insert("runningTasksCount".into(), json!(counts.running));
    document.insert("pendingTasksCount".into(), json!(counts.pending));
    document.insert("activeServicesCount".into(), json!(counts.services));
    document.insert("statistics".into(), json!([]));
    let shown = if tags {
        tag::view(&cluster.tags)
    } else {
        json!([])
    };
    document.insert("tags".into(), shown);
    default_to(&mut document, "settings", json!([]));
    default_to(&mut document, "capacityProviders", json!([]));
    default_to(&mut document, "defaultCapacityProviderStrategy", json!([]));
    Value::Object(document)
}

/// The rule of cluster, service and family names.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Cluster and name in the ARN of a service or task: `service/<cluster>/<name>`.
pub(crate) fn split_resource<'a>(name_or_arn: &'a str, kind: &str) -> (Option<&'a str>, &'a str) {
    let named = Arn::parse(name_or_arn).and_then(|arn| arn.named(kind));
    match named.map(|rest| rest.split_once('/')) {
        Some(Some((cluster, name))) => (Some(cluster), name),
        _ => (None, last_part(name_or_arn)),
    }
}
