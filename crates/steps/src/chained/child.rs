//! The run of the other pipeline.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use slipway_engine::context::RunContext;
use slipway_engine::error::RunError;
use slipway_engine::given::{InGit, given};
use slipway_engine::remote;
use slipway_engine::start::{Parent, StartRun, start_run};
use slipway_expr::{Limits, evaluate_json};
use slipway_model::id::{NodeId, RunId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_model::{emit, entity};
use slipway_store::record::{ParentRecord, RunRecord};

use super::{Spec, inputs};
use crate::context::{StepContext, run_failure, store_failure};
use crate::registry::STEP_TYPES;

/// Id of the run: the same whenever an attempt of the step asks, so that it starts one run.
pub(super) fn id(cx: &StepContext<'_>) -> RunId {
    made_of(cx.run(), cx.node(), cx.attempt(), cx.started_ms())
}

/// Id of the run of an attempt of a step that began at this time.
pub(super) fn made_of(run: &RunId, node: &NodeId, attempt: u32, began_ms: i64) -> RunId {
    let mut hash = Sha256::new();
    for part in [run.as_str(), node.as_str()] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(attempt.to_be_bytes());
    let digest = hash.finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    let began = u64::try_from(began_ms).unwrap_or(0);
    let id = uuid::Builder::from_unix_timestamp_millis(began, &random).into_uuid();
    RunId::new(id.to_string())
}

/// Plans and starts the run.
pub(super) async fn start(
    cx: &StepContext<'_>,
    spec: &Spec,
    run: RunId,
) -> Result<RunRecord, Failure> {
    let parent = cx.store().get_run(cx.run()).await;
    let parent = parent.map_err(|error| store_failure("read the run", &error))?;
    let account = cx.plan().scope.account.clone();
    let scope = Scope::project(account, spec.org.clone(), spec.project.clone());
    let request = StartRun {
        inputs_yaml: document(cx, spec, &scope).await?,
        scope,
        pipeline: spec.pipeline.clone(),
        branch: None,
        principal: parent.triggered_by,
        trigger: parent.trigger_type,
        chosen: None,
        origin: None,
        notes: String::new(),
        fired: None,
        parent: Some(Parent {
            step: ParentRecord {
                run: cx.run().clone(),
                node: cx.node().clone(),
                attempt: cx.attempt(),
            },
            run,
        }),
    };
    let starts = cx.starts();
    let started = start_run(&starts.runs, request, &STEP_TYPES, &*starts.sources).await;
    started.map_err(|error| run_failure(&format!("run pipeline {}", spec.pipeline), &error))
}

/// The runtime inputs of the run: input sets, and the stage's own over them.
async fn document(
    cx: &StepContext<'_>,
    spec: &Spec,
    scope: &Scope,
) -> Result<Option<String>, Failure> {
    let own = match &spec.inputs {
        Value::Null => None,
        value => {
            let filled = inputs::filled(cx, value)?;
            // JSON is YAML.
            Some(json!({"pipeline": filled}).to_string())
        }
    };
    if spec.input_set_references.is_empty() {
        return Ok(own);
    }
    let (runs, id) = (&cx.starts().runs, &spec.pipeline);
    let doing = format!("put the input sets of pipeline {id} together");
    let git = InGit {
        sources: &*cx.starts().sources,
        branch: None,
    };
    let found = remote::pipeline(runs, git.sources, (scope, id), None).await;
    let found = found.map_err(|error| run_failure(&format!("read pipeline {id}"), &error))?;
    let pipeline = entity::parse(id.as_str(), &found.yaml)
        .map_err(|faults| run_failure(&doing, &RunError::faulty(faults)))?;
    let sets = &spec.input_set_references;
    let given = given(
        runs,
        git,
        scope,
        &pipeline,
        sets,
        own.as_deref(),
        &STEP_TYPES,
    )
    .await;
    let given = given.map_err(|error| run_failure(&doing, &error))?;
    Ok(given.inputs.map(|tree| emit::to_yaml(&tree)))
}

/// What a run that has ended means for the step.
pub(super) async fn ended(
    cx: &mut StepContext<'_>,
    spec: &Spec,
    run: &RunRecord,
) -> Result<Value, Failure> {
    let (id, pipeline) = (&run.id, &run.pipeline);
    if run.status.is_good() {
        let outputs = outputs(cx, spec, run).await?;
        cx.info(super::UNIT, format!("Run {id} ended {:?}.", run.status));
        return Ok(json!({"executionId": id, "outputs": outputs}));
    }
    let why = run.failure.as_ref();
    let message = why.map_or_else(String::new, |why| format!(": {}", why.message));
    let message = format!(
        "Run {id} of pipeline {pipeline} ended {:?}{message}",
        run.status
    );
    cx.error(super::UNIT, &message);
    Err(Failure {
        error: why.map_or(ErrorType::Unknown, |why| why.error),
        message,
        left_behind: why.and_then(|why| why.left_behind.clone()),
    })
}

async fn outputs(cx: &StepContext<'_>, spec: &Spec, run: &RunRecord) -> Result<Value, Failure> {
    if spec.outputs.is_empty() {
        return Ok(json!({}));
    }
    let runs = &cx.starts().runs;
    let doing = "read the run of the stage";
    let (run, plan) = runs
        .load(&run.id)
        .await
        .map_err(|error| run_failure(doing, &error))?;
    let nodes = runs.nodes(&run.id, None).await;
    let nodes = nodes.map_err(|error| run_failure(doing, &error))?;
    let context = RunContext {
        plan: &plan,
        run: &run,
        nodes: &nodes,
        stage: None,
        node: None,
    };
    let mut all = Map::new();
    for output in &spec.outputs {
        let found = evaluate_json(&output.value, &context, &Limits::default());
        let (value, _) = found.map_err(|error| Failure {
            error: ErrorType::Unknown,
            message: format!(
                "The output {} cannot be told: {}.",
                output.name,
                error.full_text().trim_end_matches('.')
            ),
            left_behind: None,
        })?;
        all.insert(output.name.clone(), value);
    }
    Ok(Value::Object(all))
}
