//! What happened in the runs of a story, as an operator reads it: since when, in which run, stage and step, what, why,
//! and which calls were made to AWS.

use std::collections::{BTreeSet, HashMap};

use slipway_engine::name::stage_execution;
use slipway_model::id::{NodeId, RunId};
use slipway_model::status::{Failure, Status};
use slipway_plan::{Node, Plan};
use slipway_store::Page;
use slipway_store::record::{NodeRecord, RunRecord, StageSummary};
use slipway_world::World;

use crate::outcome::plain;
use crate::play::Story;
use crate::table::{Event, table};

/// The events of a story, a line each.
pub(crate) async fn events(world: &World, story: &Story<'_>) -> String {
    let ids = &story.played().runs;
    let mut events = Vec::new();
    for (at_ms, run, text) in &story.played().said {
        events.push(Event {
            at_ms: *at_ms,
            run: format!("run {}", run + 1),
            stage: String::new(),
            step: String::new(),
            what: plain(text, ids),
        });
    }
    let runs = runs(world, story).await;
    for (label, run) in &runs {
        events.extend(of_run(world, label, run, ids).await);
    }
    for call in world.sandbox.calls() {
        // The test itself makes the cluster.
        if call.operation == "CreateCluster" {
            continue;
        }
        let error = call.error.map(|error| format!(" answers {error}"));
        events.push(Event {
            at_ms: call.at.as_millisecond(),
            run: String::new(),
            stage: String::new(),
            step: String::new(),
            what: format!(
                "AWS: {} {}{}",
                call.service,
                call.operation,
                error.unwrap_or_default()
            ),
        });
    }
    events.sort_by_key(|event| event.at_ms);
    table(&events)
}

/// The runs of the story, and those that they started, in the order of their start.
async fn runs(world: &World, story: &Story<'_>) -> Vec<(String, RunRecord)> {
    let ids = &story.played().runs;
    let first = world
        .store
        .get_run(&RunId::new(&ids[0]))
        .await
        .expect("the run");
    let all = world
        .store
        .list_runs(&first.scope, None, Page::first(50))
        .await;
    let mut runs: Vec<_> = all.expect("the runs").items;
    runs.sort_by_key(|run| (run.started_ms, run.parent.is_some(), run.sequence));
    let mut named = Vec::new();
    for run in runs {
        let own = ids.iter().position(|id| id == run.id.as_str());
        let label = match own {
            Some(number) => format!("run {}", number + 1),
            None => format!("{} {}", run.pipeline, run.sequence),
        };
        let run = world.store.get_run(&run.id).await.expect("the run");
        named.push((label, run));
    }
    named
}

async fn of_run(world: &World, label: &str, run: &RunRecord, ids: &[String]) -> Vec<Event> {
    let mut told = Told {
        label,
        ids,
        events: Vec::new(),
    };
    let notes = if run.notes.is_empty() {
        String::new()
    } else {
        format!(", {}", run.notes)
    };
    let began = format!(
        "begins: pipeline {}, {} by {}{notes}",
        run.pipeline, run.trigger_type, run.triggered_by
    );
    told.add(run.started_ms, "", "", began);
    let (_, plan) = world.runs.load(&run.id).await.expect("the plan");
    let plan = world.runs.unrolled(&run.id, plan).await.expect("the plan");
    let nodes = world
        .store
        .list_nodes(&run.id, None)
        .await
        .expect("the nodes");
    for stage in &run.stages {
        let own: Vec<_> = nodes.iter().filter(|node| node.stage == stage.id).collect();
        of_stage(world, run, stage, &plan, &own, &mut told).await;
    }
    if let Some(ended_ms) = run.ended_ms {
        let tags: Vec<_> = run
            .tags
            .iter()
            .map(|(name, value)| format!("{name}:{value}"))
            .collect();
        let tags = if tags.is_empty() {
            String::new()
        } else {
            format!(", tags {}", tags.join(" "))
        };
        let ended = format!("{}{tags}", told.end(run.status, run.failure.as_ref()));
        told.add(ended_ms, "", "", ended);
    }
    told.events
}

async fn of_stage(
    world: &World,
    run: &RunRecord,
    stage: &StageSummary,
    plan: &Plan,
    nodes: &[&NodeRecord],
    told: &mut Told<'_>,
) {
    let name = stage.id.as_str();
    let planned = plan
        .groups
        .iter()
        .flatten()
        .find(|planned| planned.id == stage.id);
    let (Some(began_ms), Some(planned)) = (stage.started_ms, planned) else {
        let ended_ms = stage.ended_ms.or(run.ended_ms).unwrap_or(run.started_ms);
        let ended = told.end(stage.status, stage.failure.as_ref());
        return told.add(ended_ms, name, "", ended);
    };
    for at_ms in holds(world, run, stage).await {
        told.add(
            at_ms,
            name,
            "",
            "waits for its infrastructure, which another run holds".to_owned(),
        );
    }
    told.add(began_ms, name, "", format!("begins: {}", stage.stage_type));
    let mut by_id: HashMap<&NodeId, Vec<&NodeRecord>> = HashMap::new();
    for node in nodes {
        by_id.entry(&node.id).or_default().push(node);
    }
    for records in by_id.values_mut() {
        records.sort_by_key(|record| record.attempt);
    }
    let mut steps = Steps {
        stage: name,
        by_id,
        seen: BTreeSet::new(),
    };
    steps.walk(&planned.steps, (i64::MIN, i64::MAX), told);
    steps.walk(&planned.rollback_steps, (i64::MIN, i64::MAX), told);
    steps.rest(nodes, told);
    if let Some(ended_ms) = stage.ended_ms {
        let ended = told.end(stage.status, stage.failure.as_ref());
        told.add(ended_ms, name, "", ended);
    }
    if let Some(undo) = &stage.undo {
        let ended = told.end(undo.status, undo.failure.as_ref());
        let at_ms = undo.ended_ms.or(stage.ended_ms).unwrap_or(began_ms);
        told.add(
            at_ms,
            name,
            "",
            format!("rolled back with the run: {ended}"),
        );
    }
}

/// When a stage began to wait for its infrastructure.
async fn holds(world: &World, run: &RunRecord, stage: &StageSummary) -> Vec<i64> {
    let name = stage_execution(&run.id, &stage.id, 0);
    let arn = format!("arn:aws:states:us-east-1:123456789012:execution:stage:{name}");
    let history = world
        .sfn
        .get_execution_history()
        .execution_arn(arn)
        .max_results(1000);
    let Ok(history) = history.send().await else {
        // Work that was taken over from another run has no execution.
        return Vec::new();
    };
    let entered = history.events().iter().filter(|event| {
        let details = event.state_entered_event_details();
        details.is_some_and(|details| details.name() == "HoldInfrastructure")
    });
    entered
        .filter_map(|event| event.timestamp().to_millis().ok())
        .collect()
}

struct Told<'a> {
    label: &'a str,
    ids: &'a [String],
    events: Vec<Event>,
}

impl Told<'_> {
    fn add(&mut self, at_ms: i64, stage: &str, step: &str, what: String) {
        self.events.push(Event {
            at_ms,
            run: self.label.to_owned(),
            stage: stage.to_owned(),
            step: step.to_owned(),
            what: plain(&what, self.ids),
        });
    }

    fn end(&self, status: Status, failure: Option<&Failure>) -> String {
        let Some(failure) = failure else {
            return format!("{status:?}");
        };
        let left = failure.left_behind.as_ref();
        let left = left.map_or_else(String::new, |left| format!(" Left behind: {left}"));
        format!("{status:?}: {}{left}", failure.message)
    }
}

struct Steps<'a> {
    stage: &'a str,
    by_id: HashMap<&'a NodeId, Vec<&'a NodeRecord>>,
    seen: BTreeSet<(NodeId, u32)>,
}

impl<'a> Steps<'a> {
    /// Those of the nodes that began in this time, in the order of the plan.
    fn walk(&mut self, nodes: &[Node], during: (i64, i64), told: &mut Told<'_>) {
        for node in nodes {
            match node {
                Node::Step(step) => {
                    for record in self.records(&step.id, during) {
                        self.begin(record, told);
                        self.end(record, told);
                    }
                }
                Node::Group(group) => {
                    for record in self.records(&group.id, during) {
                        self.begin(record, told);
                        let end = record.ended_ms.unwrap_or(i64::MAX);
                        self.walk(&group.nodes, (record.started_ms, end), told);
                        self.walk(&group.rollback_steps, (record.started_ms, end), told);
                        self.end(record, told);
                    }
                }
                Node::Parallel(parallel) => {
                    for record in self.records(&parallel.id, during) {
                        self.seen.insert((record.id.clone(), record.attempt));
                    }
                    self.walk(&parallel.branches, during, told);
                }
            }
        }
    }

    fn records(&self, id: &NodeId, (from, to): (i64, i64)) -> Vec<&'a NodeRecord> {
        let all = self.by_id.get(id).into_iter().flatten();
        let fits = |record: &&&NodeRecord| {
            let seen = self.seen.contains(&(record.id.clone(), record.attempt));
            !seen && (from..=to).contains(&record.started_ms)
        };
        all.filter(fits).copied().collect()
    }

    /// What the plan does not name.
    fn rest(&mut self, nodes: &[&'a NodeRecord], told: &mut Told<'_>) {
        for record in nodes {
            if !self.seen.contains(&(record.id.clone(), record.attempt)) {
                self.begin(record, told);
                self.end(record, told);
            }
        }
    }

    fn begin(&mut self, record: &NodeRecord, told: &mut Told<'_>) {
        self.seen.insert((record.id.clone(), record.attempt));
        if record.ended_ms == Some(record.started_ms) && record.node_type != "STEP_GROUP" {
            return;
        }
        let what = format!("begins: {}{}", record.node_type, attempt(record));
        told.add(
            record.started_ms,
            self.stage,
            record.identifier.as_str(),
            what,
        );
        if let Some(asked_ms) = record.asked_ms {
            let why = record
                .failure
                .as_ref()
                .map_or("", |failure| &failure.message);
            let what = format!("asks a person what to do: {why}");
            told.add(asked_ms, self.stage, record.identifier.as_str(), what);
        }
    }

    fn end(&self, record: &NodeRecord, told: &mut Told<'_>) {
        let Some(ended_ms) = record.ended_ms else {
            return;
        };
        let mut what = told.end(record.status, record.failure.as_ref());
        if record.started_ms == ended_ms && record.node_type != "STEP_GROUP" {
            what = format!("{}{}: {what}", record.node_type, attempt(record));
        }
        let outputs = record.outputs.pointer("/output/outputVariables");
        for (name, value) in outputs
            .and_then(|all| all.as_object())
            .into_iter()
            .flatten()
        {
            what.push_str(&format!(", {name}={}", value.as_str().unwrap_or("?")));
        }
        told.add(ended_ms, self.stage, record.identifier.as_str(), what);
    }
}

fn attempt(record: &NodeRecord) -> String {
    match record.attempt {
        0 => String::new(),
        number => format!(", attempt {}", number + 1),
    }
}
