//! A store, a sandbox account and one ECS stage, and a lane loop of a few lines that can be killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ecs::types::ServiceField;
use indexmap::IndexMap;
use secrecy::SecretString;
use serde_json::{Value, json};
use slipway_cli::local::objects::EmbeddedObjects;
use slipway_clock::Clock;
use slipway_engine::kept::KEPT;
use slipway_engine::runs::Runs;
use slipway_expr::{Context, Limits, Segment};
use slipway_model::id::{
    AccountId, EntityId, LaneId, NodeId, OrgId, ProjectId, RunId, Scope, StageId,
};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::{
    ArtifactPlan, ConnectorPlan, EnvironmentPlan, InfrastructurePlan, ManifestPlan, Plan,
    ServicePlan, StagePlan, StepPlan,
};
use slipway_sandbox::{Pace, Sandbox, SandboxConfig};
use slipway_steps::aws::oidc::Issuer;
use slipway_steps::aws::{Ambient, AwsTargets, TargetConfig};
use slipway_steps::context::Starts;
use slipway_steps::secrets::SecretSource;
use slipway_steps::{Expressions, Progress, StepContext, StepInput, StepServices};
use slipway_store::embedded::{Embedded, in_process};
use slipway_store::layout::Layout;
use slipway_store::record::NodeRecord;
use slipway_store::{NodeEnd, Store};
use slipway_world::NoSources;

use crate::balancer::Balancer;
use crate::published::Published;
use crate::tap::{Mode, Tap};

/// How the world knows Slipway in these tests.
pub(crate) const PUBLIC_URL: &str = "https://slipway.example.com";

/// A value that must never be seen outside the account.
pub(crate) use slipway_world::ticket::PASSWORD;

/// Longest a step of these tests may take, in the account's time.
const PATIENCE: Duration = Duration::from_secs(1800);

pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) sandbox: Sandbox,
    pub(crate) tap: Tap,
    pub(crate) store: Store,
    pub(crate) services: StepServices,
    pub(crate) names: Names,
    pub(crate) manifests: Vec<ManifestPlan>,
    pub(crate) service_spec: Value,
    pub(crate) connector: Value,
    /// The connector of the step itself, for steps that have one.
    pub(crate) step_connector: Option<ConnectorPlan>,
    /// Steps of the stage behind the one that runs.
    pub(crate) later: Vec<(&'static str, Value)>,
    /// What the stores in the step's spec hold.
    pub(crate) step_manifests: Vec<ManifestPlan>,
    pub(crate) infrastructure: Value,
    /// The artifact of the stage's service.
    pub(crate) artifact: Option<ArtifactPlan>,
    pub(crate) run: RunId,
    /// The list of steps that the next one is in.
    pub(crate) list: &'static str,
    /// Identifier of the stage's service.
    pub(crate) service: String,
    /// The load balancer of the account, where there is one.
    pub(crate) balancer: Option<Balancer>,
    pub(crate) embedded: Embedded,
}

/// Expressions of these tests: the names that a test sets.
#[derive(Clone, Default)]
pub(crate) struct Names(pub(crate) BTreeMap<String, Value>);

impl Context for Names {
    fn lookup(&self, path: &[Segment]) -> Option<slipway_expr::Value> {
        let text: Vec<String> = path
            .iter()
            .filter_map(Segment::key)
            .map(str::to_owned)
            .collect();
        self.0
            .get(&text.join("."))
            .map(slipway_expr::Value::from_json)
    }
}

impl Expressions for Names {
    fn evaluate(&self, value: &Value) -> Result<Value, Failure> {
        let result = slipway_expr::evaluate_json(value, self, &Limits::default());
        result.map(|(value, _)| value).map_err(|error| Failure {
            error: ErrorType::Unknown,
            message: error.to_string(),
            left_behind: None,
        })
    }

    fn context(&self) -> &dyn Context {
        self
    }
}

pub(crate) struct Vault;

#[async_trait]
impl SecretSource for Vault {
    async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
        match reference {
            "account.password" => Ok(SecretString::from(PASSWORD)),
            other => Err(Failure {
                error: ErrorType::Unknown,
                message: format!("There is no secret {other}."),
                left_behind: None,
            }),
        }
    }
}

/// The steps here start no runs.
fn no_workflows() -> aws_sdk_sfn::Client {
    let config = aws_sdk_sfn::Config::builder().behavior_version_latest();
    aws_sdk_sfn::Client::from_conf(config.build())
}

/// How a call of a step went.
#[derive(Debug)]
pub(crate) enum Ended {
    Done(Value),
    Failed(Failure),
}

impl Ended {
    pub(crate) fn done(self) -> Value {
        match self {
            Self::Done(outputs) => outputs,
            Self::Failed(failure) => panic!("failed: {failure:?}"),
        }
    }

    pub(crate) fn failed(self) -> Failure {
        match self {
            Self::Failed(failure) => failure,
            Self::Done(outputs) => panic!("did not fail: {outputs}"),
        }
    }
}

/// Refers to a manifest of the stage's service.
pub(crate) fn manifest(kind: &str, content: &Value) -> ManifestPlan {
    ManifestPlan {
        commit: None,
        identifier: EntityId::new(kind.to_lowercase()),
        kind: kind.to_owned(),
        store: json!({"type": "Inline"}),
        files: vec![(format!("{kind}.yaml"), content.to_string())],
        settings: serde_json::Map::new(),
    }
}

/// A service definition of `count` tasks.
pub(crate) fn service_definition(count: u32) -> Value {
    json!({
        "serviceName": "web",
        "desiredCount": count,
        "launchType": "FARGATE",
        "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-1"], "securityGroups": ["sg-1"]}},
        "deploymentConfiguration": {"maximumPercent": 200, "minimumHealthyPercent": 100},
    })
}

/// A task definition of one container.
pub(crate) fn task_definition(image: &str) -> Value {
    json!({
        "family": "web",
        "cpu": "256",
        "memory": "512",
        "networkMode": "awsvpc",
        "requiresCompatibilities": ["FARGATE"],
        "executionRoleArn": "arn:aws:iam::123456789012:role/ecsTaskExecutionRole",
        "containerDefinitions": [{
            "name": "web", "image": image, "essential": true,
            "portMappings": [{"containerPort": 80}],
            "environment": [{"name": "PASSWORD", "value": "<+secrets.getValue(\"account.password\")>"}],
        }],
    })
}

/// Family of the tasks of [`job`].
pub(crate) const JOB: &str = "migrate";

/// The documents of an `EcsRunTask` that runs `count` tasks of an image.
pub(crate) fn job(image: &str, count: u32) -> Vec<ManifestPlan> {
    let mut definition = task_definition(image);
    definition["family"] = json!(JOB);
    let service = service_definition(0);
    let request = json!({
        "count": count,
        "launchType": "FARGATE",
        "networkConfiguration": service["networkConfiguration"],
    });
    let mut task = manifest("EcsTaskDefinition", &definition);
    task.identifier = EntityId::new("taskDefinition");
    let mut request = manifest("EcsRunTaskRequestDefinition", &request);
    request.identifier = EntityId::new("runTaskRequestDefinition");
    vec![task, request]
}

impl World {
    /// An account with the cluster `prod`, in paused time, in which things take as long as on AWS.
    pub(crate) async fn new() -> Self {
        Self::with_pace(Pace::realistic()).await
    }

    /// The same at another pace.
    pub(crate) async fn with_pace(pace: Pace) -> Self {
        Self::over(Embedded::temporary().expect("a store"), pace).await
    }

    /// Another account, in time of its own, over the same store.
    pub(crate) async fn beside(&self, pace: Pace) -> Self {
        Self::over(self.embedded.clone(), pace).await
    }

    async fn over(embedded: Embedded, pace: Pace) -> Self {
        let clock = Clock::paused("2026-01-01T00:00:00Z".parse().expect("a time"));
        let config = SandboxConfig {
            clock: clock.clone(),
            region: "eu-west-1".to_owned(),
            account: "123456789012".to_owned(),
            pace,
        };
        let sandbox = Sandbox::open(None, config).expect("a sandbox in memory");
        sandbox.read_objects_from(Arc::new(EmbeddedObjects {
            client: embedded.s3(),
            own_bucket: Layout::local().bucket,
        }));
        let tap = Tap::new(in_process(sandbox.router()));
        let store = embedded.store(clock.clone());
        let target = TargetConfig {
            endpoint_url: Some("http://sandbox.localhost".to_owned()),
            http_client: Some(tap.client()),
            ambient: Ambient::Sandbox,
            objects: None,
        };
        let issuer = Issuer::new(PUBLIC_URL, embedded.secrets(), clock.clone());
        sandbox.read_documents_with(Arc::new(Published(issuer.clone())));
        let services = StepServices {
            store: store.clone(),
            clock: clock.clone(),
            aws: AwsTargets::with_issuer(target, clock.clone(), Some(issuer)),
            secrets: Arc::new(Vault),
            starts: Starts {
                runs: Runs {
                    store: store.clone(),
                    workflows: no_workflows(),
                    clock: clock.clone(),
                    pipeline_machine: String::new(),
                    notify_machine: None,
                    errand_machine: None,
                    url: None,
                },
                sources: Arc::new(NoSources),
            },
        };
        let mut world = Self {
            clock,
            sandbox,
            tap,
            store,
            services,
            names: Names::default(),
            manifests: Vec::new(),
            list: STEPS,
            service_spec: json!({}),
            connector: json!({"credential": {"type": "InheritFromDelegate"}}),
            step_connector: None,
            step_manifests: Vec::new(),
            later: Vec::new(),
            infrastructure: json!({"connectorRef": "account.aws", "region": "eu-west-1", "cluster": "prod"}),
            artifact: None,
            run: RunId::new("run-0"),
            service: "web".to_owned(),
            balancer: None,
            embedded,
        };
        world
            .ecs()
            .create_cluster()
            .cluster_name("prod")
            .send()
            .await
            .expect("a cluster");
        world.deploys(&task_definition("nginx:1"), &service_definition(2));
        world.next_run();
        world
    }

    /// What the stage's service deploys from now on.
    pub(crate) fn deploys(&mut self, task_definition: &Value, service_definition: &Value) {
        self.manifests = vec![
            manifest("EcsTaskDefinition", task_definition),
            manifest("EcsServiceDefinition", service_definition),
        ];
    }

    /// What is deployed is scaled by the policy `P1`.
    pub(crate) fn scales(&mut self) {
        self.manifests.push(manifest(
            "EcsScalableTargetDefinition",
            &json!({"minCapacity": 1, "maxCapacity": 8}),
        ));
        self.manifests.push(manifest(
            "EcsScalingPolicyDefinition",
            &json!({"policyName": "P1", "policyType": "TargetTrackingScaling",
                "targetTrackingScalingPolicyConfiguration": {"targetValue": 60,
                "predefinedMetricSpecification": {"predefinedMetricType": "ECSServiceAverageCPUUtilization"}}}),
        ));
    }

    /// Steps belong to another run from now on.
    pub(crate) fn next_run(&mut self) {
        static RUNS: AtomicU32 = AtomicU32::new(1);
        self.run = RunId::new(format!("run-{}", RUNS.fetch_add(1, Ordering::Relaxed)));
    }

    /// A client of the account that no tap is on.
    pub(crate) fn ecs(&self) -> aws_sdk_ecs::Client {
        let config = aws_sdk_ecs::Config::builder()
            .behavior_version(aws_sdk_ecs::config::BehaviorVersion::latest())
            .region(aws_sdk_ecs::config::Region::new("eu-west-1"))
            .credentials_provider(credentials())
            .endpoint_url("http://sandbox.localhost")
            .http_client(in_process(self.sandbox.router()))
            .build();
        aws_sdk_ecs::Client::from_conf(config)
    }

    /// Like [`World::ecs`].
    pub(crate) fn scaling(&self) -> aws_sdk_applicationautoscaling::Client {
        let config = aws_sdk_applicationautoscaling::Config::builder()
            .behavior_version(aws_sdk_applicationautoscaling::config::BehaviorVersion::latest())
            .region(aws_sdk_applicationautoscaling::config::Region::new(
                "eu-west-1",
            ))
            .credentials_provider(credentials())
            .endpoint_url("http://sandbox.localhost")
            .http_client(in_process(self.sandbox.router()))
            .build();
        aws_sdk_applicationautoscaling::Client::from_conf(config)
    }

    /// Like [`World::ecs`].
    pub(crate) fn elb(&self) -> aws_sdk_elasticloadbalancingv2::Client {
        use aws_sdk_elasticloadbalancingv2::config::{BehaviorVersion, Region};
        let config = aws_sdk_elasticloadbalancingv2::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(credentials())
            .endpoint_url("http://sandbox.localhost")
            .http_client(in_process(self.sandbox.router()))
            .build();
        aws_sdk_elasticloadbalancingv2::Client::from_conf(config)
    }

    /// How often an operation was called.
    pub(crate) fn count(&self, operation: &str) -> usize {
        self.sandbox
            .calls()
            .iter()
            .filter(|call| call.operation == operation)
            .count()
    }

    /// What was asked of the account after the first `from` calls: the operations in their order, those that were
    /// repeated in a row once.
    pub(crate) fn trace(&self, from: usize) -> String {
        let calls = self.sandbox.calls();
        let mut operations: Vec<_> = calls[from..].iter().map(|c| c.operation.as_str()).collect();
        operations.dedup();
        operations.join("\n")
    }

    /// How many tasks of a family were ever started, as far as the account still knows.
    pub(crate) async fn ran(&self, family: &str) -> usize {
        let mut ran = 0;
        for status in ["RUNNING", "STOPPED"] {
            let listed = self.ecs().list_tasks().cluster("prod").family(family);
            let listed = listed.desired_status(status.into()).send().await;
            ran += listed.expect("an answer").task_arns().len();
        }
        ran
    }

    /// The other services of the cluster that are there: `name definition running/desired`.
    async fn others(&self) -> Vec<String> {
        let ecs = self.ecs();
        let listed = ecs.list_services().cluster("prod").send().await;
        let arns = listed.expect("an answer").service_arns.unwrap_or_default();
        if arns.is_empty() {
            return Vec::new();
        }
        let described = ecs.describe_services().cluster("prod");
        let described = described.include(ServiceField::Tags);
        let described = described.set_services(Some(arns)).send().await;
        let services = described.expect("an answer").services.unwrap_or_default();
        let there = services
            .iter()
            .filter(|s| s.status() == Some("ACTIVE") && s.service_name() != Some("web"));
        there
            .map(|service| {
                let definition = service.task_definition().unwrap_or_default();
                let tags = service.tags().iter().filter_map(|tag| tag.value());
                let tags: String = tags.map(|value| format!(" {value}")).collect();
                format!(
                    "{} {} {}/{}{tags}",
                    service.service_name().unwrap_or_default(),
                    definition.rsplit('/').next().unwrap_or_default(),
                    service.running_count(),
                    service.desired_count(),
                )
            })
            .collect()
    }

    /// What a person sees of the service: `status definition desired/running scaling`, and of others beside it.
    pub(crate) async fn account(&self) -> String {
        let answer = self
            .ecs()
            .describe_services()
            .cluster("prod")
            .services("web")
            .send()
            .await;
        let answer = answer.expect("an answer");
        let service = match answer.services() {
            [service] if service.status() == Some("ACTIVE") => {
                let definition = service.task_definition().unwrap_or_default();
                let definition = definition.rsplit('/').next().unwrap_or_default();
                let rollouts: Vec<_> = service
                    .deployments()
                    .iter()
                    .map(|d| d.rollout_state().map_or("?", |state| state.as_str()))
                    .collect();
                format!(
                    "{definition} {}/{} {}",
                    service.running_count(),
                    service.desired_count(),
                    rollouts.join(",")
                )
            }
            [service] => service.status().unwrap_or("?").to_owned(),
            _ => "absent".to_owned(),
        };
        let policies = self
            .scaling()
            .describe_scaling_policies()
            .service_namespace("ecs".into())
            .send()
            .await
            .expect("an answer");
        let policies: Vec<_> = policies
            .scaling_policies()
            .iter()
            .map(|p| p.policy_name())
            .collect();
        let mut seen = match policies.is_empty() {
            true => service,
            false => format!("{service} scaled by {}", policies.join(",")),
        };
        for other in self.others().await {
            seen.push_str(&format!(", beside it {other}"));
        }
        if let Some(balancer) = &self.balancer {
            seen.push_str(&balancer.seen(self).await);
        }
        for function in self.functions().await {
            seen.push_str(&format!(", {function}"));
        }
        seen
    }

    /// Runs a step of the current run to its end.
    pub(crate) async fn run(&self, step_type: &str, spec: Value) -> Ended {
        self.attempt(step_type, spec, 0).await
    }

    /// Runs one attempt of a step to its end. When the tap kills the process the step is begun anew with
    /// what was stored.
    pub(crate) async fn attempt(&self, step_type: &str, spec: Value, attempt: u32) -> Ended {
        let plan = self.plan(step_type, &spec);
        let stage = &plan.groups[0][0];
        let slipway_plan::Node::Step(step) = &stage.steps[0] else {
            panic!("a step")
        };
        let record = self.record(step, attempt, &spec);
        self.store.start_node(&record).await.expect("a new node");
        let begun = self.clock.now();
        loop {
            let earlier = self
                .store
                .list_nodes(&self.run, Some(&record.stage))
                .await
                .expect("nodes");
            let stored = self.store.get_node(&self.run, &record.id).await;
            let stored = stored.expect("an answer").expect("the node");
            let input = StepInput {
                run: &self.run,
                plan: &plan,
                stage,
                step,
                attempt,
                spec: &spec,
                progress: stored.progress,
                started_ms: record.started_ms,
                earlier: &earlier,
                said: &[],
                late_since_ms: None,
                aborted: false,
                delegate_result: None,
                expressions: &self.names,
            };
            let mut cx = StepContext::new(&self.services, input);
            let implementation = slipway_steps::find(step_type).expect("a step of the registry");
            let advanced = tokio::select! {
                advanced = slipway_steps::advance(implementation, &mut cx) => advanced.map_err(|failure| cx.masked(failure)),
                () = self.tap.died() => {
                    self.tap.set(Mode::Open);
                    continue;
                }
            };
            let ended = match &advanced {
                Ok(Progress::Again(_) | Progress::Hold { .. } | Progress::Delegate(_)) => None,
                Ok(Progress::Done(_)) => Some(true),
                Err(_) => Some(false),
            };
            let trace = cx.finish(ended).await.expect("a stored log");
            let (status, failure, outputs) = match advanced {
                Ok(Progress::Again(pause) | Progress::Hold { time: pause, .. }) => {
                    assert!(self.clock.now().duration_since(begun).unsigned_abs() < PATIENCE);
                    if !trace.stored {
                        let (store, progress) = (&self.store, &trace.progress);
                        let saved = store.save_progress(&self.run, &record.id, attempt, progress);
                        saved.await.expect("stored progress");
                    }
                    self.clock.sleep(pause).await;
                    continue;
                }
                Ok(Progress::Delegate(work)) => return Ended::Done(work.payload),
                Ok(Progress::Done(outputs)) => (Status::Success, None, outputs),
                Err(failure) => (Status::Failed, Some(failure), Value::Null),
            };
            let end = NodeEnd {
                run: self.run.clone(),
                node: record.id.clone(),
                attempt,
                status,
                failure: failure.clone(),
                outputs: outputs.clone(),
                refused: Vec::new(),
                units: trace.units,
                progress: Some(trace.progress),
            };
            self.store.end_node(&end).await.expect("an ended node");
            return failure.map_or(Ended::Done(outputs), Ended::Failed);
        }
    }

    /// Stops a step of the current run as an abort does, with what it had stored.
    pub(crate) async fn abort(&self, step_type: &str, spec: Value) -> Result<(), Failure> {
        let plan = self.plan(step_type, &spec);
        let stage = &plan.groups[0][0];
        let slipway_plan::Node::Step(step) = &stage.steps[0] else {
            panic!("a step")
        };
        let stored = self.store.get_node(&self.run, &step.id).await;
        let stored = stored.expect("an answer").expect("the node");
        let earlier = self.store.list_nodes(&self.run, Some(&stored.stage)).await;
        let earlier = earlier.expect("nodes");
        let input = StepInput {
            run: &self.run,
            plan: &plan,
            stage,
            step,
            attempt: stored.attempt,
            spec: &spec,
            progress: stored.progress,
            started_ms: stored.started_ms,
            earlier: &earlier,
            said: &[],
            late_since_ms: None,
            aborted: true,
            delegate_result: None,
            expressions: &self.names,
        };
        let mut cx = StepContext::new(&self.services, input);
        let implementation = slipway_steps::find(step_type).expect("a step of the registry");
        let stopped = implementation.stop(&mut cx).await;
        cx.finish(Some(false)).await.expect("a stored log");
        stopped
    }

    /// The log of a unit of a step of the current run.
    pub(crate) async fn log(&self, step_type: &str, unit: &str) -> String {
        let node = self.node_id(step_type);
        let page = self
            .store
            .read_log(&self.run, &node, unit, 0)
            .await
            .expect("a log");
        page.lines.into_iter().map(|line| line.out).collect()
    }

    /// What a step of the current run notes as set for good.
    pub(crate) async fn kept(&self, step_type: &str) -> Value {
        let nodes = self.store.list_nodes(&self.run, None).await.expect("nodes");
        let node = nodes.into_iter().find(|node| node.node_type == step_type);
        node.expect("the step").progress[KEPT].clone()
    }

    /// Everything of the current run that is stored, to look for what must not be there.
    pub(crate) async fn everything_stored(&self) -> String {
        let nodes = self.store.list_nodes(&self.run, None).await.expect("nodes");
        let mut all = serde_json::to_string(&nodes).expect("JSON");
        for node in &nodes {
            for unit in &node.units {
                all.push_str(&self.log(&node.node_type, &unit.name).await);
            }
            if let Some(key) = node.progress["state"]["documents"].as_str() {
                let blob = self.store.get_blob(key).await.expect("a blob");
                all.push_str(&String::from_utf8_lossy(&blob));
            }
        }
        all
    }

    pub(crate) fn record(&self, step: &StepPlan, attempt: u32, spec: &Value) -> NodeRecord {
        NodeRecord {
            run: self.run.clone(),
            id: step.id.clone(),
            stage: StageId::new("deploy"),
            lane: LaneId::new("deploy"),
            attempt,
            identifier: step.identifier.clone(),
            name: step.name.clone(),
            node_type: step.step_type.clone(),
            status: Status::Running,
            started_ms: self.clock.now_ms(),
            ended_ms: None,
            failure: None,
            spec: spec.clone(),
            outputs: Value::Null,
            progress: Value::Null,
            units: Vec::new(),
            delegate: None,
            asked_ms: None,
            round: 0,
            base: 0,
            refused: Vec::new(),
        }
    }

    fn node_id(&self, step_type: &str) -> NodeId {
        NodeId::new(format!("{}.{step_type}", self.list))
    }

    pub(crate) fn plan(&self, step_type: &str, spec: &Value) -> Plan {
        let step = |step_type: &str, spec: &Value| StepPlan {
            id: self.node_id(step_type),
            identifier: EntityId::new(step_type),
            name: step_type.to_owned(),
            step_type: step_type.to_owned(),
            spec: spec.clone(),
            when: None,
            failure_strategies: Vec::new(),
            delegate_selectors: Vec::new(),
            connector: self.step_connector.clone().map(Box::new),
            manifests: self.step_manifests.clone(),
            timeout: Duration::from_secs(600),
            iteration: None,
        };
        let later = self.later.iter().map(|(kind, spec)| step(kind, spec));
        let steps = std::iter::once(step(step_type, spec)).chain(later);
        let stage = StagePlan {
            id: StageId::new("deploy"),
            identifier: EntityId::new("deploy"),
            name: "Deploy".to_owned(),
            stage_type: "Deployment".to_owned(),
            deployment_type: Some("ECS".to_owned()),
            description: None,
            tags: IndexMap::new(),
            variables: Vec::new(),
            when: None,
            failure_strategies: Vec::new(),
            delegate_selectors: Vec::new(),
            timeout: Duration::from_secs(3600),
            service: Some(self.service()),
            environment: Some(EnvironmentPlan {
                identifier: EntityId::new("production"),
                name: "production".to_owned(),
                kind: "Production".to_owned(),
                description: None,
                tags: IndexMap::new(),
                variables: Vec::new(),
                group: None,
            }),
            infrastructure: Some(self.infrastructure()),
            steps: steps.map(slipway_plan::Node::Step).collect(),
            rollback_steps: Vec::new(),
            iteration: None,
            each: None,
            start_within: None,
        };
        Plan {
            format: 1,
            scope: scope(),
            pipeline: EntityId::new("release"),
            name: "Release".to_owned(),
            tags: IndexMap::new(),
            variables: Vec::new(),
            scope_variables: Vec::new(),
            files: Vec::new(),
            trigger: None,
            notifications: Vec::new(),
            barriers: Vec::new(),
            warnings: Vec::new(),
            timeout: Duration::from_secs(86_400),
            groups: vec![vec![stage]],
        }
    }

    fn service(&self) -> ServicePlan {
        ServicePlan {
            reference: self.service.clone(),
            identifier: EntityId::new(&self.service),
            name: self.service.clone(),
            deployment_type: "ECS".to_owned(),
            description: None,
            tags: IndexMap::new(),
            variables: Vec::new(),
            manifests: self.manifests.clone(),
            artifact: self.artifact.clone(),
            sidecars: Vec::new(),
            config_files: Vec::new(),
            spec: self.service_spec.clone(),
        }
    }

    fn infrastructure(&self) -> InfrastructurePlan {
        InfrastructurePlan {
            identifier: EntityId::new("prod_cluster"),
            name: "prod cluster".to_owned(),
            kind: "ECS".to_owned(),
            tags: IndexMap::new(),
            allow_simultaneous_deployments: false,
            spec: self.infrastructure.clone(),
            connector: Some(ConnectorPlan {
                reference: "account.aws".to_owned(),
                kind: "Aws".to_owned(),
                spec: self.connector.clone(),
            }),
            connector_name: Some("AWS".to_owned()),
        }
    }
}

pub(crate) fn scope() -> Scope {
    Scope::project(
        AccountId::new("acme"),
        OrgId::new("default"),
        ProjectId::new("shop"),
    )
}

/// The list of the stage's own steps.
pub(crate) const STEPS: &str = "stages.deploy.spec.execution.steps";

pub(crate) fn credentials() -> aws_sdk_ecs::config::Credentials {
    aws_sdk_ecs::config::Credentials::new("AKIATESTTESTTESTTEST", "secret", None, None, "test")
}
