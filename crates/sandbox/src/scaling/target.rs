//! Scalable targets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Scope, listed, validation};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields, epoch};

/// The dimension of an ECS service.
const ECS_COUNT: &str = "ecs:service:DesiredCount";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ScalableTarget {
    namespace: String,
    resource: String,
    dimension: String,
    arn: String,
    minimum: i64,
    maximum: i64,
    role: String,
    suspended: Document,
    created_at: Timestamp,
}

impl ScalableTarget {
    fn view(&self) -> Value {
        let mut suspended = json!({
            "DynamicScalingInSuspended": false,
            "DynamicScalingOutSuspended": false,
            "ScheduledScalingSuspended": false,
        });
        for (name, value) in &self.suspended {
            suspended[name] = value.clone();
        }
        json!({
            "ServiceNamespace": self.namespace,
            "ResourceId": self.resource,
            "ScalableDimension": self.dimension,
            "MinCapacity": self.minimum,
            "MaxCapacity": self.maximum,
            "RoleARN": self.role,
            "CreationTime": epoch(self.created_at),
            "SuspendedState": suspended,
            "ScalableTargetARN": self.arn,
        })
    }
}

pub(super) fn register(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let scope = Scope::read(request)?;
    check_ecs_service(account, caller, scope)?;
    let key = scope.key(caller);
    let known = account.scalable_targets.get(&key).cloned();
    let given = (
        request.integer("MinCapacity")?,
        request.integer("MaxCapacity")?,
    );
    let (minimum, maximum) = match (given, &known) {
        ((Some(minimum), Some(maximum)), _) => (minimum, maximum),
        ((minimum, maximum), Some(known)) => (
            minimum.unwrap_or(known.minimum),
            maximum.unwrap_or(known.maximum),
        ),
        _ => {
            return Err(validation(
                "Both MinCapacity and MaxCapacity must be specified for a new scalable target.",
            ));
        }
    };
    if minimum < 0 {
        return Err(validation("Minimum capacity cannot be less than 0"));
    }
    if maximum < minimum {
        return Err(validation(
            "Maximum capacity cannot be less than minimum capacity",
        ));
    }
    let id = account.draw_hex(20);
    let arn = match &known {
        Some(known) => known.arn.clone(),
        None => format!(
            "arn:aws:application-autoscaling:{}:{}:scalable-target/{}",
            caller.region, account.id, id
        ),
    };
    let role = format!(
        "arn:aws:iam::{}:role/aws-service-role/ecs.application-autoscaling.amazonaws.com/\
         AWSServiceRoleForApplicationAutoScaling_ECSService",
        account.id
    );
    let target = ScalableTarget {
        namespace: scope.namespace.to_owned(),
        resource: scope.resource.to_owned(),
        dimension: scope.dimension.to_owned(),
        arn: arn.clone(),
        minimum,
        maximum,
        role: request.text("RoleARN")?.map_or(role, str::to_owned),
        suspended: match (request.object("SuspendedState")?, &known) {
            (Some(given), _) => given.clone(),
            (None, Some(known)) => known.suspended.clone(),
            (None, None) => Document::new(),
        },
        created_at: known.map_or(account.now, |known| known.created_at),
    };
    account.scalable_targets.put(key, target);
    Ok(json!({"ScalableTargetARN": arn}))
}

/// A target of namespace `ecs` needs a service that exists.
fn check_ecs_service(account: &Account, caller: &Caller, scope: Scope<'_>) -> Result<(), ApiError> {
    if scope.namespace != "ecs" {
        return Ok(());
    }
    let parts: Vec<&str> = scope.resource.split('/').collect();
    let named = matches!(parts.as_slice(), ["service", cluster, name] if !cluster.is_empty() && !name.is_empty());
    if scope.dimension != ECS_COUNT || !named {
        return Err(validation(
            "Unsupported service namespace, resource type or scalable dimension",
        ));
    }
    let service = scope
        .resource
        .strip_prefix("service/")
        .and_then(|name| account.services.get(&format!("{}/{name}", caller.region)));
    if service.is_none_or(|service| service.is_inactive()) {
        return Err(validation(format!(
            "ECS service doesn't exist: {}",
            scope.resource
        )));
    }
    Ok(())
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let ids = request.texts("ResourceIds")?;
    let dimension = request.text("ScalableDimension")?;
    let fits = |row: &ScalableTarget| {
        (ids.is_empty() || ids.contains(&row.resource.as_str()))
            && dimension.is_none_or(|dimension| row.dimension == dimension)
    };
    let table = &account.scalable_targets;
    listed(
        caller,
        request,
        table,
        "ScalableTargets",
        fits,
        ScalableTarget::view,
    )
}

/// Policies and scheduled actions go with their target (`DeregisterScalableTarget`).
pub(super) fn deregister(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let scope = Scope::read(request)?;
    let key = scope.key(caller);
    if account.scalable_targets.take(&key).is_none() {
        return Err(scope.target_not_found());
    }
    let prefix = format!("{key}|");
    let policies = account.scaling_policies.under(&prefix);
    let keys: Vec<String> = policies.map(|(key, _)| key.to_owned()).collect();
    for key in keys {
        account.scaling_policies.take(&key);
    }
    let actions = account.scheduled_actions.under(&prefix);
    let keys: Vec<String> = actions.map(|(key, _)| key.to_owned()).collect();
    for key in keys {
        account.scheduled_actions.take(&key);
    }
    Ok(json!({}))
}
