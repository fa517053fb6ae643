//! `EcsRunTask`: runs a task definition once, outside of any service, and waits until its tasks have ended well.
//!
//! Its tasks are no service instances. Nothing undoes them. A crash starts none twice: `RunTask` carries the
//! same `clientToken` again, and AWS answers with the tasks that it started (for at most a day; ECS API
//! reference, "Ensuring idempotency").

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ecs::types::Task;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Failure};

use super::manifest::TaskDefinition;
use super::site::Site;
use super::task_definition::{Intent, Registered, intended, registered, short};
use super::task_end::{judge, look, lost, outcome};
use super::{DEPLOY, FETCH, open_unit, told};
use crate::aws::error::{Doing, failure};
use crate::aws::wire::whole;
use crate::context::StepContext;
use crate::deployment::invalid;
use crate::deployment::manifest::{Reader, once};
use crate::deployment::spec::{self, Kind};
use crate::deployment::token;
use crate::step::{Progress, Step, Undo};

/// Fields of the spec.
const FIELDS: &[(&str, Kind)] = &[
    ("runTaskRequestDefinition", Kind::Other),
    ("skipSteadyStateCheck", Kind::Flag),
    ("taskDefinition", Kind::Other),
    ("taskDefinitionArn", Kind::Text),
];

/// Most tasks of one request (ECS API reference, `RunTask`).
const MOST_TASKS: i64 = 10;

/// Longest time between two looks.
const LONGEST_PAUSE: u64 = 15;

/// How long AWS may not know the tasks that it has just started: `RunTask` is eventually consistent, and its
/// reference says to go on asking for up to five minutes.
const VISIBLE_AFTER_MS: i64 = 5 * 60 * 1000;

/// The step.
pub struct RunTask;

/// What the step does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Phase {
    /// Read the documents.
    #[default]
    Prepare,
    /// Register the task definition.
    Register,
    /// Start the tasks.
    Run,
    /// Wait until they have ended.
    Wait,
}

/// What is run. Secrets are holes: it is stored as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Documents {
    task_definition: TaskDefinition,
    /// `RunTask`, without what the step decides.
    request: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    phase: Phase,
    /// Key of the stored [`Documents`].
    documents: Option<String>,
    intent: Option<Intent>,
    task_definition: Option<Registered>,
    /// When the tasks were started, epoch milliseconds.
    started_ms: i64,
    /// ARN and newest status of each task.
    tasks: BTreeMap<String, String>,
    looks: u64,
}

#[async_trait]
impl Step for RunTask {
    fn step_type(&self) -> &'static str {
        "EcsRunTask"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let mut faults = spec::check(spec, FIELDS);
        let given = |name: &str| spec::given(spec, name);
        match (given("taskDefinition"), given("taskDefinitionArn")) {
            (true, true) => faults.push(
                "`taskDefinition` and `taskDefinitionArn` are both given: a step runs one task definition"
                    .to_owned(),
            ),
            (false, false) => faults.push(
                "the task definition is missing: give `taskDefinition` or `taskDefinitionArn`".to_owned(),
            ),
            _ => {}
        }
        if !given("runTaskRequestDefinition") {
            faults.push("`runTaskRequestDefinition` is missing".to_owned());
        }
        faults
    }

    /// Their documents are parsed before their expressions are resolved.
    fn own_expressions(&self) -> &'static [&'static str] {
        &["runTaskRequestDefinition", "taskDefinition"]
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("what a task does only its author knows; rollbackSteps may run another one")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Run::resume(cx).await {
            Ok(run) => run.go_on(cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let state: State = cx.saved()?;
        let unit = open_unit(cx, self.units());
        let alive = state
            .tasks
            .iter()
            .filter(|(_, status)| *status != "STOPPED");
        let alive: Vec<&str> = alive.map(|(arn, _)| arn.as_str()).collect();
        if !alive.is_empty() {
            let alive = alive.join(", ");
            cx.warn(unit, format!("Tasks that were started go on: {alive}"));
            return Err(Failure {
                error: ErrorType::Unknown,
                message: format!(
                    "tasks that this step started go on: {alive}. Stop those that are not wanted with `aws ecs stop-task`."
                ),
                left_behind: None,
            });
        }
        Ok(())
    }
}

/// One call's worth of the step.
struct Run {
    site: Site,
    state: State,
    documents: Documents,
    skip_wait: bool,
    /// Whether the phase was begun by an earlier call, which may have been cut off after its effect.
    resumed: bool,
}

impl Run {
    async fn resume(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let skip_wait = spec::flag(cx.spec(), "skipSteadyStateCheck")?;
        let mut state: State = cx.saved()?;
        let documents = once(cx, &mut state.documents, fetch).await?;
        let site = Site::of_stage(cx).await?;
        let resumed = state.phase != Phase::Prepare;
        Ok(Self {
            site,
            state,
            documents,
            skip_wait,
            resumed,
        })
    }

    async fn go_on(mut self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        cx.unit_started(DEPLOY);
        loop {
            match self.state.phase {
                Phase::Prepare => {
                    let source = &self.documents.task_definition;
                    self.state.intent = intended(cx, &self.site, source).await?;
                    self.state.phase = Phase::Register;
                }
                Phase::Register => {
                    let source = &self.documents.task_definition;
                    let from = (self.state.intent.as_ref(), self.resumed);
                    let registered = registered(cx, &self.site, source, from, DEPLOY).await?;
                    self.state.task_definition = Some(registered);
                    self.state.phase = Phase::Run;
                }
                Phase::Run => self.run(cx).await?,
                Phase::Wait if self.skip_wait => {
                    cx.info(DEPLOY, "Skipped Steady State Check");
                    let tasks: Vec<Value> =
                        self.arns().map(|arn| json!({"taskArn": arn})).collect();
                    return Ok(self.ended(cx, &tasks));
                }
                Phase::Wait => {
                    let tasks = self.wait(cx).await?;
                    cx.save(&self.state).await?;
                    return Ok(match tasks {
                        None => Progress::Again(self.pause()),
                        Some(tasks) => {
                            let tasks: Vec<Value> = tasks.iter().map(outcome).collect();
                            self.ended(cx, &tasks)
                        }
                    });
                }
            }
            cx.save(&self.state).await?;
            self.resumed = false;
        }
    }

    fn task_definition(&self) -> &str {
        let registered = self.state.task_definition.as_ref();
        registered.map_or("", |registered| &registered.arn)
    }

    fn arns(&self) -> impl Iterator<Item = &String> {
        self.state.tasks.keys()
    }

    fn pause(&self) -> Duration {
        Duration::from_secs((1 + self.state.looks / 3).min(LONGEST_PAUSE))
    }

    /// Starts the tasks. Repeated with the same token it finds those that it started.
    async fn run(&mut self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        let mut document = cx.secrets().reveal(self.documents.request.clone()).await?;
        document["cluster"] = json!(self.site.cluster);
        document["taskDefinition"] = json!(self.task_definition());
        document["clientToken"] = json!(token(cx));
        let name = short(self.task_definition()).to_owned();
        let count = document["count"].as_i64().unwrap_or(1);
        cx.info(
            DEPLOY,
            format!("Triggering {count} tasks with task definition {name}"),
        );
        let doing = format!("run {count} tasks of {name} in {}", self.site);
        let call = self.site.aws.ecs.run_task().customize();
        let answer = call
            .mutate_request(whole(&document))
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        cx.info(
            DEPLOY,
            format!(
                "{} Tasks were triggered successfully and {} failures were received.",
                answer.tasks().len(),
                answer.failures().len()
            ),
        );
        for task in answer.tasks() {
            let arn = task.task_arn().unwrap_or_default();
            cx.info(DEPLOY, format!("Task => {arn} was triggered"));
            self.state.tasks.insert(arn.to_owned(), String::new());
        }
        if !answer.failures().is_empty() || answer.tasks().is_empty() {
            return Err(self.refused(&doing, answer.failures()));
        }
        self.state.started_ms = cx.clock().now_ms();
        self.state.phase = Phase::Wait;
        Ok(())
    }

    fn refused(&self, doing: &str, failures: &[aws_sdk_ecs::types::Failure]) -> Failure {
        let why = failures.iter().map(|one| {
            let reason = one.reason().unwrap_or("AWS gave no reason");
            let detail = one.detail().map(|detail| format!(" ({detail})"));
            format!("{reason}{}", detail.unwrap_or_default())
        });
        let mut why: Vec<String> = why.collect();
        why.dedup();
        if why.is_empty() {
            why.push("AWS started none and gave no reason".to_owned());
        }
        let started: Vec<&str> = self.arns().map(|arn| short(arn)).collect();
        Failure {
            error: ErrorType::Unknown,
            message: format!("Cannot {doing}: {}.", why.join("; ")),
            left_behind: (!started.is_empty())
                .then(|| format!("tasks that were started go on: {}", started.join(", "))),
        }
    }

    /// Looks once; the tasks when all of them have ended well.
    async fn wait(&mut self, cx: &mut StepContext<'_>) -> Result<Option<Vec<Task>>, Failure> {
        self.state.looks += 1;
        let arns: Vec<String> = self.arns().cloned().collect();
        let tasks = look(&self.site, &arns).await?;
        for task in &tasks {
            let (Some(arn), Some(status)) = (task.task_arn(), task.last_status()) else {
                continue;
            };
            let known = self.state.tasks.entry(arn.to_owned()).or_default();
            if known != status {
                cx.info(DEPLOY, format!("Task {} is {status}", short(arn)));
                status.clone_into(known);
            }
        }
        if tasks.len() < arns.len() {
            let waited = cx.clock().now_ms() - self.state.started_ms;
            let seen = self.state.tasks.values().any(|status| !status.is_empty());
            return match seen || waited > VISIBLE_AFTER_MS {
                true => Err(lost(&self.site, &arns, &tasks)),
                false => Ok(None),
            };
        }
        if tasks
            .iter()
            .any(|task| task.last_status() != Some("STOPPED"))
        {
            return Ok(None);
        }
        judge(&self.site, self.task_definition(), &tasks).await?;
        Ok(Some(tasks))
    }

    fn ended(&self, cx: &mut StepContext<'_>, tasks: &[Value]) -> Progress {
        cx.info(DEPLOY, "Success.");
        cx.unit_ended(DEPLOY, true);
        Progress::Done(json!({
            "output": {
                "taskDefinitionArn": self.task_definition(),
                "taskArns": self.arns().collect::<Vec<_>>(),
                "tasks": tasks,
            },
        }))
    }
}

/// Reads the documents of the step.
fn fetch(cx: &mut StepContext<'_>) -> Result<Documents, Failure> {
    let step = cx.step();
    let arn = spec::text(cx.spec(), "taskDefinitionArn");
    let mut reader = Reader {
        cx,
        manifests: &step.manifests,
        names: &[],
    };
    let task_definition = match arn {
        Some(arn) => TaskDefinition::Arn(arn),
        None => {
            let found = reader.all("EcsTaskDefinition", "RegisterTaskDefinition")?;
            let definition = only(found, "taskDefinition")?;
            if definition["family"].is_null() || definition["family"] == "" {
                return Err(invalid("`taskDefinition` of the step has no `family`."));
            }
            TaskDefinition::Document(definition)
        }
    };
    let found = reader.all("EcsRunTaskRequestDefinition", "RunTask")?;
    let mut request = only(found, "runTaskRequestDefinition")?;
    reader.take_out(&mut request, &["taskDefinition", "cluster", "clientToken"]);
    match request["count"].as_i64() {
        Some(count) if !(1..=MOST_TASKS).contains(&count) => Err(invalid(format!(
            "`count` of `runTaskRequestDefinition` is {count}: one request of ECS starts 1 to {MOST_TASKS} \
             tasks."
        ))),
        _ => Ok(Documents {
            task_definition,
            request,
        }),
    }
}

fn only(mut found: Vec<Value>, field: &str) -> Result<Value, Failure> {
    match (found.pop(), found.len()) {
        (Some(document), 0) => Ok(document),
        (rest, others) => Err(invalid(format!(
            "`{field}` must name exactly one document, and names {}.",
            others + usize::from(rest.is_some())
        ))),
    }
}
