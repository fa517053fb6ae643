//! Notices: what a rule that asks for all events must have been told of a run, by its records. Nobody waits for them;
//! that shows in the model, which knows none.

use std::collections::BTreeMap;

use slipway_model::status::Status;
use slipway_world::tap::{Place, Verdict};

use crate::ast::{Case, Fault};
use crate::seen::SeenRun;

/// Type, stage and step of an event, and how often it was told.
pub type Told = BTreeMap<(String, String, String), usize>;

/// What of a run was not told, or too often.
pub fn check(case: &Case, run: &SeenRun) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(record) = &run.record else {
        return wrong;
    };
    if case.notices.is_none() {
        return wrong;
    }
    let mut needed: Vec<(&str, &str)> = vec![("PipelineStart", ""), ("PipelineEnd", "")];
    match record.status {
        Status::Aborted | Status::AbortedByFreeze => {}
        good if good.is_good() => needed.push(("PipelineSuccess", "")),
        _ => needed.push(("PipelineFailed", "")),
    }
    for stage in &record.stages {
        let id = stage.id.as_str();
        let prefix = format!("stages.{id}.");
        if run
            .nodes
            .iter()
            .any(|node| node.id.as_str().starts_with(&prefix))
        {
            needed.push(("StageStart", id));
        }
        match stage.status {
            Status::Aborted | Status::AbortedByFreeze | Status::Skipped | Status::NotStarted => {}
            good if good.is_good() => needed.push(("StageSuccess", id)),
            _ => needed.push(("StageFailed", id)),
        }
    }
    for (event, stage) in needed {
        let key = (event.to_owned(), stage.to_owned(), String::new());
        if !run.told.contains_key(&key) && !may_be_lost(case) {
            wrong.push(format!("nobody was told of {event} {stage}"));
        }
    }
    // What is sent by a function that dies is sent again; a step is told of once for each attempt.
    for ((event, stage, step), often) in &run.told {
        if *often > 1
            && step.is_empty()
            && !event.starts_with("PipelineP")
            && !event.starts_with("PipelineR")
            && case.faults.is_empty()
        {
            wrong.push(format!("{event} {stage} was told {often} times"));
        }
    }
    wrong
}

/// Whether Step Functions is away for so long that a run goes on without a notice.
fn may_be_lost(case: &Case) -> bool {
    let away = |fault: &Fault| {
        matches!(
            fault,
            Fault::Request {
                place: Place::Workflows,
                verdict: Verdict::Fail { .. } | Verdict::Throttle,
                ..
            }
        )
    };
    case.faults.iter().any(away)
}
