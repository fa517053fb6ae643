//! Resolves a pipeline into an immutable plan. Pure.

pub mod plan;

pub use plan::{
    ArtifactPlan, ConnectorPlan, EnvironmentPlan, FailureStrategy, GroupPlan, InfrastructurePlan,
    ManifestPlan, Node, ParallelPlan, Plan, ServicePlan, StagePlan, StepPlan, Variable, When,
    WhenStatus,
};
