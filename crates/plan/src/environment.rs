//! Where a stage deploys to, as a plan knows it.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use slipway_model::id::EntityId;

use crate::Variable;

/// A resolved environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentPlan {
    /// `identifier`.
    pub identifier: EntityId,
    /// `name`.
    pub name: String,
    /// `Production` or `PreProduction`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `description`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `tags`.
    pub tags: IndexMap<String, String>,
    /// Environment variables.
    pub variables: Vec<Variable>,
    /// The group that the stage deploys to, of which it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<EnvironmentGroupPlan>,
}

/// The environment group of a stage that deploys to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentGroupPlan {
    /// The reference, after expressions.
    pub reference: String,
    /// `name`.
    pub name: String,
}
