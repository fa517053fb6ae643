//! Small plans for the tests of the deciding half.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, NodeId, OrgId, ProjectId, Scope, StageId};
use slipway_plan::{
    FailureStrategy, GroupPlan, Node, ParallelPlan, Plan, StagePlan, StepPlan, When, WhenStatus,
};

pub(crate) fn step(id: &str) -> Node {
    Node::Step(StepPlan {
        id: NodeId::new(id),
        identifier: EntityId::new(id),
        name: id.to_owned(),
        step_type: "ShellScript".to_owned(),
        spec: json!({}),
        when: None,
        failure_strategies: Vec::new(),
        timeout: Duration::from_secs(600),
    })
}

pub(crate) fn group(id: &str, nodes: Vec<Node>) -> Node {
    Node::Group(GroupPlan {
        id: NodeId::new(id),
        identifier: EntityId::new(id),
        name: id.to_owned(),
        when: None,
        failure_strategies: Vec::new(),
        nodes,
        rollback_steps: Vec::new(),
    })
}

pub(crate) fn parallel(id: &str, branches: Vec<Node>) -> Node {
    Node::Parallel(ParallelPlan {
        id: NodeId::new(id),
        branches,
    })
}

pub(crate) fn on(errors: &str, action: &str, spec: Value) -> FailureStrategy {
    FailureStrategy {
        errors: errors.split(',').map(str::to_owned).collect(),
        action: action.to_owned(),
        spec,
    }
}

pub(crate) fn retry(count: u32, interval: &str, then: &str) -> FailureStrategy {
    on(
        "AllErrors",
        "Retry",
        json!({
            "retryCount": count,
            "retryIntervals": [interval],
            "onRetryFailure": {"action": {"type": then}},
        }),
    )
}

pub(crate) fn when(status: WhenStatus, condition: Option<&str>) -> When {
    When {
        status,
        condition: condition.map(str::to_owned),
    }
}

/// Changes on nodes, so that tables read in one line.
pub(crate) trait With {
    fn strategy(self, strategy: FailureStrategy) -> Self;
    fn when(self, status: WhenStatus, condition: Option<&str>) -> Self;
}

impl With for Node {
    fn strategy(mut self, strategy: FailureStrategy) -> Self {
        match &mut self {
            Node::Step(step) => step.failure_strategies.push(strategy),
            Node::Group(group) => group.failure_strategies.push(strategy),
            Node::Parallel(_) => unreachable!("a parallel block has no strategies"),
        }
        self
    }

    fn when(mut self, status: WhenStatus, condition: Option<&str>) -> Self {
        let condition = Some(when(status, condition));
        match &mut self {
            Node::Step(step) => step.when = condition,
            Node::Group(group) => group.when = condition,
            Node::Parallel(_) => unreachable!("a parallel block has no condition"),
        }
        self
    }
}

pub(crate) fn stage(id: &str, steps: Vec<Node>) -> StagePlan {
    StagePlan {
        id: StageId::new(id),
        identifier: EntityId::new(id),
        name: id.to_owned(),
        stage_type: "Deployment".to_owned(),
        deployment_type: Some("ECS".to_owned()),
        variables: Vec::new(),
        when: None,
        failure_strategies: vec![on("AllErrors", "StageRollback", Value::Null)],
        delegate_selectors: Vec::new(),
        timeout: Duration::from_secs(36_000),
        service: None,
        environment: None,
        infrastructure: None,
        steps,
        rollback_steps: Vec::new(),
    }
}

pub(crate) fn plan(groups: Vec<Vec<StagePlan>>) -> Plan {
    Plan {
        format: 1,
        scope: Scope::project(
            AccountId::new("acme"),
            OrgId::new("default"),
            ProjectId::new("shop"),
        ),
        pipeline: EntityId::new("release"),
        name: "Release".to_owned(),
        tags: IndexMap::new(),
        variables: Vec::new(),
        timeout: Duration::from_secs(86_400),
        groups,
    }
}
