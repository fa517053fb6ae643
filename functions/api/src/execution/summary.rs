//! The summary of a run: what lists show, and the overview of its stages.

use serde_json::{Map, Value, json};
use slipway_engine::signal::{is_paused, warnings};
use slipway_model::status::{ErrorType, Failure, Status};
use slipway_plan::Plan;
use slipway_store::record::{
    Again, NodeRecord, Origin, ParentRecord, RunRecord, SignalRecord, StageSummary,
};

use crate::wire::{self, tags_list};

/// A run and its stages as waiting for a person where a step of theirs does: clients ask one, or stop following.
pub(crate) fn waiting(mut run: RunRecord, nodes: &[NodeRecord]) -> RunRecord {
    let asks = |status| {
        matches!(
            status,
            Status::ApprovalWaiting | Status::InterventionWaiting | Status::InputWaiting
        )
    };
    if run.status.is_final() {
        return run;
    }
    // A stage that somebody must start has no node that asks.
    if run.stages.iter().any(|stage| asks(stage.status)) {
        run.status = Status::InputWaiting;
    }
    for node in nodes.iter().filter(|node| asks(node.status)) {
        let mut stages = run.stages.iter_mut();
        if let Some(stage) = stages.find(|stage| stage.id == node.stage) {
            match &mut stage.undo {
                _ if !stage.status.is_final() => stage.status = node.status,
                Some(undo) if !undo.status.is_final() => undo.status = node.status,
                _ => {}
            }
        }
        run.status = node.status;
    }
    run
}

/// Where a run stands; one that a person paused is `Paused`, whatever of it still runs.
pub(super) fn status(run: &RunRecord) -> Status {
    match is_paused(run) && !run.status.is_final() {
        true => Status::Paused,
        false => run.status,
    }
}

/// `failureInfo`: an object, or null. What was left behind is part of the message, where everybody sees it.
pub(crate) fn failure_info(failure: Option<&Failure>) -> Value {
    let Some(failure) = failure else {
        return Value::Null;
    };
    json!({
        "message": failure_message(failure),
        "failureTypeList": [failure_type(failure.error)],
        "responseMessages": [],
    })
}

fn failure_message(failure: &Failure) -> String {
    match &failure.left_behind {
        Some(left) => format!("{} Left behind: {left}", failure.message),
        None => failure.message.clone(),
    }
}

fn failure_type(error: ErrorType) -> &'static str {
    match error {
        ErrorType::Authentication => "AUTHENTICATION_ERROR",
        ErrorType::Authorization => "AUTHORIZATION_ERROR",
        ErrorType::Connectivity => "CONNECTIVITY_ERROR",
        ErrorType::DelegateProvisioning => "DELEGATE_PROVISIONING_ERROR",
        ErrorType::DelegateRestart => "DELEGATE_RESTART",
        ErrorType::Timeout => "TIMEOUT_ERROR",
        ErrorType::Verification => "VERIFICATION_ERROR",
        ErrorType::PolicyEvaluationFailure => "POLICY_EVALUATION_FAILURE",
        ErrorType::InputTimeoutError => "INPUT_TIMEOUT_FAILURE",
        ErrorType::ApprovalRejection => "APPROVAL_REJECTION",
        ErrorType::UserMarkedFailure => "USER_MARKED_FAILURE",
        ErrorType::Unknown => "UNKNOWN_ERROR",
    }
}

/// The run that it repeats in this way.
fn origin(run: &RunRecord, how: Again) -> Option<&Origin> {
    run.origin.as_ref().filter(|origin| origin.how == how)
}

/// Who or what started a run.
pub(crate) fn trigger_info(run: &RunRecord) -> Value {
    json!({
        "triggerType": run.trigger_type,
        "triggeredBy": {
            "uuid": run.triggered_by.as_str(),
            "identifier": run.starter(),
            "extraInfo": {"email": run.person().map(crate::user::email)},
        },
        "triggeredByTrigger": run.trigger.as_ref().map(|trigger| json!({
            "identifier": trigger.trigger.as_str(),
            "name": trigger.name,
            "source": trigger.source,
            "eventCorrelationId": trigger.event,
            "about": trigger.about,
        })),
        "isRerun": origin(run, Again::Rerun).is_some(),
    })
}

/// `NORMAL`, or what else a run as a whole does.
pub(crate) fn execution_mode(run: &RunRecord) -> &'static str {
    match run.undoes() {
        Some(_) => "POST_EXECUTION_ROLLBACK",
        None => "NORMAL",
    }
}

/// What steps warned of: Slipway's own field.
fn warned(run: &RunRecord) -> Vec<Value> {
    let warning = |signal: &SignalRecord| {
        json!({
            "message": signal.says,
            "node": signal.node.as_str(),
            "at": signal.at_ms,
        })
    };
    warnings(run).into_iter().map(warning).collect()
}

/// The stage of another run that a run is.
fn parent_stage(parent: &ParentRecord) -> Value {
    json!({
        "hasParentPipeline": true,
        "executionId": parent.run.as_str(),
        "stageNodeId": parent.node.as_str(),
    })
}

/// The summary of a run; with its plan, stages that run side by side are shown so.
pub(crate) fn render(run: &RunRecord, plan: Option<&Plan>) -> Value {
    let stages = stages(run, plan);
    let count = |keep: fn(Status) -> bool| {
        stages
            .iter()
            .flatten()
            .filter(|stage| keep(stage.status))
            .count()
    };
    let succeeded = |status: Status| status.is_good() && status != Status::Skipped;
    let failed = |status: Status| status.is_final() && !status.is_good();
    let running = |status: Status| {
        !status.is_final() && !matches!(status, Status::NotStarted | Status::Queued)
    };
    let (starting, layout) = layout(&stages, (run.undoes().is_some(), run.status.is_final()));
    let error = run.failure.as_ref().map(failure_message);
    let chosen = run.chosen.iter().flat_map(|chosen| &chosen.stages);
    let chosen: Vec<&str> = chosen.map(|id| id.as_str()).collect();
    json!({
        "planExecutionId": run.id.as_str(),
        "pipelineIdentifier": run.pipeline.as_str(),
        "orgIdentifier": wire::org(&run.scope),
        "projectIdentifier": wire::project(&run.scope),
        "name": run.name,
        "status": status(run),
        "runSequence": run.sequence,
        "startTs": run.started_ms,
        "endTs": run.ended_ms,
        "createdAt": run.started_ms,
        "tags": tags_list(&run.tags),
        "modules": ["cd"],
        "moduleInfo": {"cd": {}},
        "executionTriggerInfo": trigger_info(run),
        "failureInfo": failure_info(run.failure.as_ref()),
        "executionErrorInfo": error.map(|message| json!({"message": message})),
        "governanceMetadata": null,
        "startingNodeId": starting,
        "layoutNodeMap": layout,
        "successfulStagesCount": count(succeeded),
        "failedStagesCount": count(failed),
        "runningStagesCount": count(running),
        "totalStagesCount": stages.iter().flatten().count(),
        "executionMode": execution_mode(run),
        "originalPlanExecutionIdForRollbackMode": run.undoes().map(|of| of.run.as_str()),
        "canRetry": failed(run.status) && run.plan.is_some() && run.undoes().is_none(),
        "showRetryHistory": origin(run, Again::Retry).is_some(),
        "gitDetails": run.git.as_ref().map(crate::git::shown::of_place),
        "stagesExecution": run.chosen.is_some(),
        "stagesExecuted": chosen,
        "allowStageExecutions": run.chosen.is_some(),
        "notes": run.notes,
        "warnings": warned(run),
        "notesExistForPlanExecutionId": !run.notes.is_empty(),
        "shouldUseSimplifiedKey": true,
        "executionInputConfigured": false,
        "parentStageInfo": run.parent.as_ref().map(parent_stage),
        "storeType": if run.git.is_some() { "REMOTE" } else { "INLINE" },
    })
}

/// Stages in the groups of the plan, as far as they are known; each in a group of its own without one. Of a run that
/// rolls another one back, those that it rolls back, in the order in which it does.
pub(crate) fn stages(run: &RunRecord, plan: Option<&Plan>) -> Vec<Vec<StageSummary>> {
    let groups = all_stages(run, plan);
    let Some(origin) = run.undoes() else {
        return groups;
    };
    let rolled_back = |group: Vec<StageSummary>| -> Vec<StageSummary> {
        let own = group.into_iter();
        let own = own.filter(|stage| origin.stages.contains(&stage.id));
        own.map(as_undone).collect()
    };
    let groups = groups.into_iter().rev().map(rolled_back);
    groups.filter(|group| !group.is_empty()).collect()
}

/// A stage as its rollback stands.
fn as_undone(stage: StageSummary) -> StageSummary {
    let undo = stage.undo.clone();
    let undo = undo.as_ref();
    StageSummary {
        status: undo.map_or(Status::NotStarted, |undo| undo.status),
        started_ms: undo.and_then(|undo| undo.started_ms),
        ended_ms: undo.and_then(|undo| undo.ended_ms),
        failure: undo.and_then(|undo| undo.failure.clone()),
        ..stage
    }
}

fn all_stages(run: &RunRecord, plan: Option<&Plan>) -> Vec<Vec<StageSummary>> {
    let Some(plan) = plan else {
        return run.stages.iter().map(|stage| vec![stage.clone()]).collect();
    };
    let seen = |id| run.stages.iter().find(|stage| stage.id == id).cloned();
    let groups = plan.groups.iter().map(|group| {
        group
            .iter()
            .map(|stage| {
                seen(stage.id.clone()).unwrap_or_else(|| StageSummary {
                    id: stage.id.clone(),
                    name: stage.name.clone(),
                    stage_type: stage.stage_type.clone(),
                    status: Status::NotStarted,
                    started_ms: None,
                    ended_ms: None,
                    failure: None,
                    rolled_back: false,
                    undoes_run: false,
                    taken_apart: false,
                    undo: None,
                })
            })
            .collect()
    });
    groups.collect()
}

/// The key of a stage in the overview.
fn layout_id(stage: &StageSummary) -> String {
    stage.id.to_string()
}

/// The key of a group in the overview: that of its stage, or a node of its own for several.
fn group_id(index: usize, group: &[StageSummary]) -> String {
    match group {
        [stage] => layout_id(stage),
        _ => format!("parallel{index}"),
    }
}

fn layout(
    groups: &[Vec<StageSummary>],
    (undoes, over): (bool, bool),
) -> (Option<String>, Map<String, Value>) {
    let ids: Vec<String> = groups
        .iter()
        .enumerate()
        .map(|(index, group)| group_id(index, group))
        .collect();
    let mut map = Map::new();
    for (index, group) in groups.iter().enumerate() {
        let next: Vec<&String> = ids.get(index + 1).into_iter().collect();
        if let [stage] = group.as_slice() {
            map.insert(layout_id(stage), layout_stage(stage, json!(next), undoes));
            continue;
        }
        let children: Vec<String> = group.iter().map(layout_id).collect();
        let statuses = group.iter().map(|stage| stage.status);
        let status = crate::execution::graph::together(statuses, over);
        let parallel = json!({
            "nodeType": "parallel",
            "nodeGroup": "PARALLEL",
            "nodeIdentifier": ids[index],
            "name": ids[index],
            "nodeUuid": ids[index],
            "nodeExecutionId": ids[index],
            "status": status,
            "module": "cd",
            "moduleInfo": {},
            "edgeLayoutList": {"currentNodeChildren": children, "nextIds": next},
        });
        map.insert(ids[index].clone(), parallel);
        for stage in group {
            map.insert(layout_id(stage), layout_stage(stage, json!([]), undoes));
        }
    }
    (ids.first().cloned(), map)
}

fn layout_stage(stage: &StageSummary, next: Value, undoes: bool) -> Value {
    json!({
        "nodeType": stage.stage_type,
        "nodeGroup": "STAGE",
        "nodeIdentifier": stage.id.as_str(),
        "name": stage.name,
        "nodeUuid": layout_id(stage),
        "nodeExecutionId": crate::execution::graph::stage_uuid(&stage.id),
        "status": stage.status,
        "module": "cd",
        "moduleInfo": {"cd": {}},
        "startTs": stage.started_ms,
        "endTs": stage.ended_ms,
        "failureInfo": failure_info(stage.failure.as_ref()),
        "isRollbackStageNode": undoes,
        "edgeLayoutList": {"currentNodeChildren": [], "nextIds": next},
    })
}
