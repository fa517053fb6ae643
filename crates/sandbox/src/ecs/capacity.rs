//! Capacity providers: those that every account has, those of Auto Scaling groups, and the strategies that name them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cluster::{Cluster, is_name};
use super::launch::providers;
use super::tag;
use crate::account::Account;
use crate::arn::last_part;
use crate::autoscaling;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};
use crate::page::{Paging, cut};

/// Those that nobody creates.
const OF_AWS: [&str; 2] = ["FARGATE", "FARGATE_SPOT"];
/// Most capacity providers of a strategy (ECS API reference, `CreateService`).
const MOST: usize = 20;
/// Largest `weight` and `base` of one.
const BOUNDS: [(&str, i64); 2] = [("weight", 1_000), ("base", 100_000)];

const PAGING: Paging = Paging {
    token: "nextToken",
    size: "maxResults",
    default: 10,
    most: 10,
};

/// A capacity provider of an Auto Scaling group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CapacityProvider {
    name: String,
    arn: String,
    /// Name of the Auto Scaling group.
    pub(super) group: String,
    /// `autoScalingGroupProvider`, as it came.
    settings: Document,
    tags: Document,
}

impl CapacityProvider {
    fn view(&self, tags: bool) -> Value {
        let shown = if tags {
            tag::view(&self.tags)
        } else {
            json!([])
        };
        json!({
            "capacityProviderArn": self.arn,
            "name": self.name,
            "status": "ACTIVE",
            "type": "EC2_AUTOSCALING",
            "autoScalingGroupProvider": self.settings,
            "tags": shown,
        })
    }
}

fn refuse<T>(message: impl Into<String>) -> Result<T, ApiError> {
    Err(ApiError::invalid_parameter(message))
}

fn key(region: &str, name: &str) -> String {
    format!("{region}/{}", last_part(name))
}

/// The Auto Scaling group of a capacity provider, where it has one.
pub(super) fn group_of<'a>(account: &'a Account, region: &str, name: &str) -> Option<&'a str> {
    let found = account.capacity_providers.get(&key(region, name))?;
    Some(&found.group)
}

/// Whether the region has capacity providers of these names.
pub(super) fn check_known(account: &Account, region: &str, names: &[&str]) -> Result<(), ApiError> {
    let known = |name: &str| {
        OF_AWS.contains(&name) || account.capacity_providers.get(&key(region, name)).is_some()
    };
    match names.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => refuse(format!(
            "The specified capacity provider '{name}' was not found. Specify a valid name or ARN and try again."
        )),
    }
}

/// Checks what a request says of capacity in a cluster: a launch type or a strategy, not both (ECS API reference,
/// `launchType`), and a strategy that the cluster can follow.
pub(super) fn check(
    account: &Account,
    cluster: &Cluster,
    request: Fields<'_>,
) -> Result<(), ApiError> {
    let strategy = request.objects("capacityProviderStrategy")?;
    if !strategy.is_empty() && request.text("launchType")?.is_some() {
        return refuse(
            "Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.",
        );
    }
    check_strategy(account, &cluster.region, &strategy, &cluster.providers())
}

/// Checks a strategy in a cluster that has `associated` capacity providers.
pub(super) fn check_strategy(
    account: &Account,
    region: &str,
    strategy: &[&Document],
    associated: &[&str],
) -> Result<(), ApiError> {
    if strategy.len() > MOST {
        return refuse(format!(
            "The specified capacity provider strategy cannot contain more than {MOST} capacity providers. Remove capacity \
             providers and try again."
        ));
    }
    let (mut names, mut weights, mut bases) = (Vec::new(), Vec::new(), 0);
    for one in strategy.iter().copied().map(Fields) {
        names.push(last_part(one.required_text("capacityProvider")?));
        for (member, most) in BOUNDS {
            if let Some(value) = one.integer(member)?
                && !(0..=most).contains(&value)
            {
                return refuse(format!(
                    "The {member} of a capacity provider must be between 0 and {most}."
                ));
            }
        }
        weights.push(one.integer("weight")?);
        bases += usize::from(one.integer("base")?.is_some_and(|base| base > 0));
    }
    check_known(account, region, &names)?;
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return refuse(
                "The specified capacity provider strategy contains duplicate capacity providers. Remove the duplicates and \
                 try again.",
            );
        }
        if !associated.contains(name) {
            return refuse(
                "The specified capacity provider strategy cannot contain a capacity provider that is not associated with \
                 the cluster. Associate the capacity provider with the cluster and try again.",
            );
        }
    }
    let of_aws = names.iter().filter(|name| OF_AWS.contains(name)).count();
    if of_aws > 0 && of_aws < names.len() {
        return refuse(
            "The specified capacity provider strategy cannot contain a mix of capacity providers using Auto Scaling groups \
             and Fargate providers. Specify one or the other and try again.",
        );
    }
    // A single one without a weight takes everything.
    let weightless = weights.iter().all(|weight| weight.unwrap_or(0) == 0);
    if weightless && (weights.len() > 1 || weights == [Some(0)]) {
        return refuse(
            "There are no capacity providers in the capacity provider strategy with a weight value greater than zero. \
             Specify a weight value greater than zero and try again.",
        );
    }
    if bases > 1 {
        return refuse(
            "There are multiple capacity providers in the specified capacity provider strategy with a base value defined. \
             Specify a base value for only one capacity provider and try again.",
        );
    }
    Ok(())
}

/// Fills in the cluster's own strategy where a request says neither a launch type nor a strategy.
pub(super) fn default_strategy(cluster: &Cluster, settings: &mut Document) {
    let given = |name: &str| match settings.get(name) {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
        None => false,
    };
    if given("launchType") || given("capacityProviderStrategy") {
        return;
    }
    if let Some(own) = cluster.default_strategy() {
        settings.insert("capacityProviderStrategy".into(), own.clone());
    }
}

/// Whether a service of the cluster runs on a capacity provider.
pub(super) fn in_use(account: &Account, cluster: &Cluster, name: &str) -> bool {
    let prefix = format!("{}/{}/", cluster.region, cluster.name);
    let mut services = account.services.under(&prefix).map(|(_, row)| row);
    services
        .any(|row| !row.is_inactive() && providers(&row.settings).any(|one| last_part(one) == name))
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = request.required_text("name")?;
    let reserved = ["aws", "ecs", "fargate"];
    let lower = name.to_ascii_lowercase();
    if !is_name(name) || reserved.iter().any(|word| lower.starts_with(word)) {
        return refuse(
            "The specified capacity provider name is invalid. Up to 255 letters, numbers, underscores and hyphens are \
             allowed, and it cannot be prefixed with \"aws\", \"ecs\" or \"fargate\".",
        );
    }
    let settings = request.object("autoScalingGroupProvider")?.ok_or_else(|| {
        ApiError::client_exception("The Auto Scaling group provider cannot be empty.")
    })?;
    let arn = Fields(settings).required_text("autoScalingGroupArn")?;
    let Some(group) = autoscaling::name_of(account, &caller.region, arn) else {
        return Err(ApiError::client_exception(
            "The specified Auto Scaling group ARN is invalid. Specify a valid ARN and try again.",
        ));
    };
    let key = key(&caller.region, name);
    if account.capacity_providers.get(&key).is_some() {
        return Err(ApiError::client_exception(
            "The specified capacity provider already exists. To change the configuration of an existing capacity provider, \
             update the capacity provider.",
        ));
    }
    let provider = CapacityProvider {
        name: name.to_owned(),
        arn: format!(
            "arn:aws:ecs:{}:{}:capacity-provider/{name}",
            caller.region, account.id
        ),
        group,
        settings: settings.clone(),
        tags: tag::read(request)?,
    };
    let view = provider.view(true);
    account.capacity_providers.put(key, provider);
    Ok(json!({"capacityProvider": view}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let names = request.texts("capacityProviders")?;
    let tags = request.texts("include")?.contains(&"TAGS");
    let of_aws = |name: &str| {
        json!({
            "capacityProviderArn": format!("arn:aws:ecs:{}:{}:capacity-provider/{name}", caller.region, account.id),
            "name": name, "status": "ACTIVE", "type": name, "tags": [],
        })
    };
    if names.is_empty() {
        let all = account
            .capacity_providers
            .under(&format!("{}/", caller.region));
        let mut all: Vec<&str> = OF_AWS
            .into_iter()
            .chain(all.map(|(_, row)| row.name.as_str()))
            .collect();
        all.sort_unstable();
        let page = cut(request, &PAGING, false, all.into_iter())?;
        let shown = page.items.iter().map(|name| {
            let row = account.capacity_providers.get(&key(&caller.region, name));
            row.map_or_else(|| of_aws(name), |row| row.view(tags))
        });
        let shown: Vec<Value> = shown.collect();
        return Ok(json!({"capacityProviders": shown, "nextToken": page.next_token}));
    }
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let short = last_part(name);
        match account.capacity_providers.get(&key(&caller.region, short)) {
            Some(row) => found.push(row.view(tags)),
            None if OF_AWS.contains(&short) => found.push(of_aws(short)),
            None => failures.push(json!({"arn": name, "reason": "MISSING"})),
        }
    }
    Ok(json!({"capacityProviders": found, "failures": failures}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = last_part(request.required_text("capacityProvider")?);
    let key = key(&caller.region, name);
    let Some(found) = account.capacity_providers.get(&key).cloned() else {
        return Err(ApiError::client_exception(
            "The specified capacity provider does not exist. Specify a valid name or ARN and try again.",
        ));
    };
    let mut clusters = account.clusters.under(&format!("{}/", caller.region));
    if clusters.any(|(_, cluster)| cluster.providers().contains(&name)) {
        return Err(ApiError::client_exception(
            "The specified capacity provider cannot be deleted because it is associated with a cluster. Remove the \
             capacity provider from the cluster and try again.",
        ));
    }
    account.capacity_providers.take(&key);
    Ok(json!({"capacityProvider": found.view(false)}))
}
