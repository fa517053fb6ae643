//! Small plans for the tests of the deciding half.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, NodeId, OrgId, ProjectId, Scope, StageId};
use slipway_plan::{
    FailureStrategy, GroupPlan, Iteration, Node, ParallelPlan, Plan, StagePlan, StepPlan, When,
    WhenStatus,
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
        delegate_selectors: Vec::new(),
        connector: None,
        manifests: Vec::new(),
        timeout: Duration::from_secs(600),
        iteration: None,
    })
}

pub(crate) fn group(id: &str, nodes: Vec<Node>) -> Node {
    Node::Group(GroupPlan {
        id: NodeId::new(id),
        identifier: EntityId::new(id),
        name: id.to_owned(),
        when: None,
        failure_strategies: Vec::new(),
        timeout: None,
        variables: Vec::new(),
        nodes,
        rollback_steps: Vec::new(),
        iteration: None,
    })
}

pub(crate) fn parallel(id: &str, branches: Vec<Node>) -> Node {
    Node::Parallel(ParallelPlan {
        each: None,
        id: NodeId::new(id),
        branches,
        concurrency: 0,
        skips_queued: false,
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
        description: None,
        tags: IndexMap::new(),
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
        iteration: None,
        each: None,
        start_within: None,
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
        scope_variables: Vec::new(),
        trigger: None,
        files: Vec::new(),
        notifications: Vec::new(),
        barriers: Vec::new(),
        warnings: Vec::new(),
        timeout: Duration::from_secs(86_400),
        groups,
    }
}

pub(crate) fn variable(name: &str, kind: &str, value: Value) -> slipway_plan::Variable {
    slipway_plan::Variable {
        name: name.to_owned(),
        kind: kind.to_owned(),
        value,
    }
}

/// A turn of a loop over `matrix.axis` and `repeat.item`, both its index as a text.
pub(crate) fn turn(of: &str, index: usize, total: usize, concurrency: u32) -> Iteration {
    let text = Value::from(index.to_string());
    Iteration {
        of: EntityId::new(of),
        index: u32::try_from(index).unwrap(),
        total: u32::try_from(total).unwrap(),
        concurrency,
        matrix: IndexMap::from([("axis".to_owned(), text.clone())]),
        item: Some(text),
        partition: None,
    }
}

pub(crate) fn deploys(mut stage: StagePlan) -> StagePlan {
    stage.service = Some(slipway_plan::ServicePlan {
        reference: "shop".to_owned(),
        identifier: EntityId::new("shop"),
        name: "Shop".to_owned(),
        deployment_type: "ECS".to_owned(),
        description: Some("What customers see".to_owned()),
        tags: IndexMap::from([("team".to_owned(), "checkout".to_owned())]),
        variables: vec![variable("replicas", "Number", json!(3))],
        manifests: Vec::new(),
        artifact: Some(slipway_plan::ArtifactPlan {
            identifier: "web".to_owned(),
            kind: "DockerRegistry".to_owned(),
            spec: json!({"imagePath": "acme/web", "tag": "<+pipeline.variables.tag>"}),
            image: Some("acme/web:<+artifact.tag>".to_owned()),
            tag: Some("<+pipeline.variables.tag>".to_owned()),
            pinned: None,
            late: None,
        }),
        sidecars: Vec::new(),
        config_files: Vec::new(),
        spec: json!({}),
    });
    stage.environment = Some(slipway_plan::EnvironmentPlan {
        identifier: EntityId::new("prod"),
        name: "Prod".to_owned(),
        kind: "Production".to_owned(),
        description: None,
        tags: IndexMap::new(),
        variables: vec![variable("region", "String", json!("eu-west-1"))],
        group: Some(slipway_plan::EnvironmentGroupPlan {
            reference: "org.live".to_owned(),
            name: "Live".to_owned(),
        }),
    });
    stage.infrastructure = Some(slipway_plan::InfrastructurePlan {
        identifier: EntityId::new("cluster"),
        name: "Cluster".to_owned(),
        kind: "ECS".to_owned(),
        tags: IndexMap::from([("zone".to_owned(), "eu".to_owned())]),
        allow_simultaneous_deployments: false,
        spec: json!({"region": "<+env.variables.region>", "cluster": "main"}),
        connector: None,
        connector_name: Some("Live AWS".to_owned()),
    });
    stage
}

pub(crate) fn run(plan: &Plan) -> slipway_store::record::RunRecord {
    slipway_store::record::RunRecord {
        id: slipway_model::id::RunId::new("r1"),
        scope: plan.scope.clone(),
        pipeline: plan.pipeline.clone(),
        name: plan.name.clone(),
        sequence: 7,
        status: slipway_model::status::Status::Running,
        trigger_type: "MANUAL".to_owned(),
        triggered_by: slipway_model::id::PrincipalId::new("alex"),
        started_ms: 1_000,
        ended_ms: None,
        yaml: String::new(),
        inputs: None,
        plan: None,
        failure: None,
        abort: None,
        signals: Vec::new(),
        parent: None,
        trigger: None,
        tags: Vec::new(),
        stages: Vec::new(),
        chosen: None,
        origin: None,
        notes: String::new(),
        url: None,
        git: None,
    }
}

pub(crate) fn record(id: &str, outputs: Value) -> slipway_store::record::NodeRecord {
    slipway_store::record::NodeRecord {
        run: slipway_model::id::RunId::new("r1"),
        id: NodeId::new(id),
        stage: StageId::new("build"),
        lane: slipway_model::id::LaneId::new("build/steps"),
        attempt: 1,
        identifier: EntityId::new(id),
        name: id.to_owned(),
        node_type: "ShellScript".to_owned(),
        status: slipway_model::status::Status::Success,
        started_ms: 1_000,
        ended_ms: Some(2_000),
        failure: None,
        spec: json!({"shell": "Bash"}),
        outputs,
        progress: Value::Null,
        units: Vec::new(),
        delegate: None,
        asked_ms: None,
        round: 0,
        base: 0,
        refused: Vec::new(),
    }
}
