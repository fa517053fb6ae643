//! What a deployment writes down before its first change, and how it is undone from that.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_store::record::ReplacedRecord;

use super::scaling::Scaling;
use super::served::PassedOver;
use super::site::Site;
use crate::aws::document::fields;
use crate::deployment::Replaced;

/// Rollback data of a rolling deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RollbackData {
    /// `serviceName`.
    pub(super) service: String,
    /// The service as it was; `None` when this is the first deployment.
    pub(super) before: Option<Before>,
    /// Who had deployed what was there, where that is known.
    #[serde(default)]
    pub(super) replaced: Option<Replaced>,
}

impl RollbackData {
    /// What the deployment replaced, for who wants to roll it back later; `None` when it is the first one.
    pub(super) fn replaced(&self) -> Option<ReplacedRecord> {
        self.before.as_ref()?;
        Some(Replaced::record(self.replaced.as_ref()))
    }
}

/// A service before a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Before {
    /// `DescribeServices`, without its history, as it was with what served.
    pub(super) service: Value,
    /// Tasks that were running.
    pub(super) running: i32,
    /// What scaled it; `None` when the deployment leaves scaling alone.
    pub(super) scaling: Option<Scaling>,
    /// What the service was told last, where that is not what served.
    #[serde(default)]
    pub(super) passed_over: Option<PassedOver>,
}

/// Fields of a service that are history or follow from others, and grow.
const NOT_KEPT: &[&str] = &["events", "taskSets", "tags"];

/// Fields that AWS keeps with the deployment and not with the service.
const OF_DEPLOYMENT: &[&str] = &[
    "serviceConnectConfiguration",
    "volumeConfigurations",
    "vpcLatticeConfigurations",
];

/// The part of `DescribeServices`' answer that is worth keeping.
pub(super) fn keepable(mut service: Value) -> Value {
    if let Some(fields) = service.as_object_mut() {
        for name in NOT_KEPT {
            fields.shift_remove(*name);
        }
        let primary = fields
            .get("deployments")
            .and_then(Value::as_array)
            .and_then(|all| all.iter().find(|d| d["status"] == "PRIMARY").cloned());
        fields.shift_remove("deployments");
        for name in OF_DEPLOYMENT {
            if let Some(value) = primary.as_ref().and_then(|primary| primary.get(*name)) {
                fields.insert((*name).to_owned(), value.clone());
            }
        }
    }
    service
}

impl Before {
    /// The task definition that served.
    pub(super) fn task_definition(&self) -> &str {
        self.service["taskDefinition"].as_str().unwrap_or_default()
    }

    /// The count that it was to have.
    pub(super) fn desired(&self) -> i64 {
        self.service["desiredCount"].as_i64().unwrap_or_default()
    }

    /// What a deployment takes scaling off, in words that are the same for who puts it on again; `None` where there is none.
    pub(super) fn owed_by(&self, site: &Site, name: &str) -> Option<String> {
        let scaling = self.scaling.as_ref()?;
        (!scaling.is_empty()).then(|| format!("service {name} in {site}"))
    }

    /// `UpdateService` back to how it was. `sent` are the fields that the deployment set: what it set and
    /// the service did not have is emptied again.
    pub(super) fn restore_document(&self, site: &Site, name: &str, sent: &[String]) -> Value {
        let daemon = self.service["schedulingStrategy"] == "DAEMON";
        let no_balancer = self.service["loadBalancers"]
            .as_array()
            .is_none_or(Vec::is_empty);
        let mut document = Map::new();
        for field in fields("UpdateService") {
            let was = self.service.get(field).filter(|value| !value.is_null());
            let set = sent.iter().any(|sent| sent == field);
            let keep = match (field, was) {
                ("cluster" | "service" | "forceNewDeployment" | "deploymentController", _) => None,
                ("desiredCount", _) if daemon => None,
                // AWS answers 0 where there is no load balancer, and refuses it in a request.
                ("healthCheckGracePeriodSeconds", Some(_)) if no_balancer => None,
                (_, Some(Value::Array(items))) if items.is_empty() && !set => None,
                (_, Some(value)) => Some(value.clone()),
                (_, None) => emptied(field).filter(|_| set),
            };
            if let Some(value) = keep {
                document.insert(field.to_owned(), value);
            }
        }
        document.insert("cluster".to_owned(), json!(site.cluster));
        document.insert("service".to_owned(), json!(name));
        Value::Object(document)
    }
}

/// How a field says "none".
fn emptied(field: &str) -> Option<Value> {
    match field {
        "capacityProviderStrategy"
        | "loadBalancers"
        | "placementConstraints"
        | "placementStrategy"
        | "serviceRegistries"
        | "volumeConfigurations"
        | "vpcLatticeConfigurations" => Some(json!([])),
        "serviceConnectConfiguration" => Some(json!({"enabled": false})),
        "enableExecuteCommand" | "enableECSManagedTags" => Some(json!(false)),
        "propagateTags" => Some(json!("NONE")),
        _ => None,
    }
}
