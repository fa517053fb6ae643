//! Names and key schemas of the tables: the one definition that the embedded tables are made from and
//! that `infra/data.yaml` is checked against.

use std::env::VarError;

/// Names of the tables and of the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Table of entities and tokens.
    pub entities: String,
    /// Table of runs and all that belongs to them.
    pub runs: String,
    /// Table of what was deployed and counted.
    pub instances: String,
    /// Bucket of large values and logs.
    pub bucket: String,
}

/// A table as CloudFormation and DynamoDB know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    /// Logical id in `infra/data.yaml`.
    pub logical_id: &'static str,
    /// Variable that gives its name to the functions.
    pub variable: &'static str,
    /// Partition key, a string.
    pub partition_key: &'static str,
    /// Sort key, a string.
    pub sort_key: &'static str,
    /// Attribute with the epoch second after which DynamoDB may delete an item.
    pub time_to_live: &'static str,
}

/// Name of the partition key of every table.
pub(crate) const PK: &str = "pk";
/// Name of the sort key of every table.
pub(crate) const SK: &str = "sk";

const fn table(logical_id: &'static str, variable: &'static str) -> TableDefinition {
    TableDefinition {
        logical_id,
        variable,
        partition_key: PK,
        sort_key: SK,
        time_to_live: "expires",
    }
}

/// All tables.
pub const TABLES: [TableDefinition; 3] = [
    table("EntitiesTable", "SLIPWAY_ENTITIES_TABLE"),
    table("RunsTable", "SLIPWAY_RUNS_TABLE"),
    table("InstancesTable", "SLIPWAY_INSTANCES_TABLE"),
];

/// Variable that gives the bucket's name to the functions.
pub const BUCKET_VARIABLE: &str = "SLIPWAY_BUCKET";

/// A variable that names a table or the bucket is missing.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {variable} must name the store's table or bucket")]
pub struct LayoutError {
    /// The variable.
    pub variable: &'static str,
    /// Why it cannot be read.
    #[source]
    pub source: VarError,
}

impl Layout {
    /// Reads the names that `infra/app.yaml` gives to every function.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn from_env() -> Result<Self, LayoutError> {
        let [entities, runs, instances] = TABLES;
        Ok(Self {
            entities: variable(entities.variable)?,
            runs: variable(runs.variable)?,
            instances: variable(instances.variable)?,
            bucket: variable(BUCKET_VARIABLE)?,
        })
    }

    /// The names of local mode.
    pub fn local() -> Self {
        Self {
            entities: "slipway-entities".to_owned(),
            runs: "slipway-runs".to_owned(),
            instances: "slipway-instances".to_owned(),
            bucket: "slipway".to_owned(),
        }
    }

    /// The tables with their names.
    pub fn tables(&self) -> [(&str, TableDefinition); 3] {
        let [entities, runs, instances] = TABLES;
        [
            (&self.entities, entities),
            (&self.runs, runs),
            (&self.instances, instances),
        ]
    }
}

fn variable(variable: &'static str) -> Result<String, LayoutError> {
    std::env::var(variable).map_err(|source| LayoutError { variable, source })
}
