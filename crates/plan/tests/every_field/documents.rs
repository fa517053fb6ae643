//! What runs are planned from, and how a field of it is filled in otherwise.

use std::sync::Arc;

use serde_json::{Value, json};
use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, Scope};
use slipway_model::{Kind, entity};
use slipway_plan::{FILE, Found, Reference, Request, Snapshot, resolve};

use crate::samples::STORE;

/// The documents that a run is planned from, in one.
pub(crate) fn documents() -> Value {
    let steps = |identifier: &str, kind: &str, spec: Value| {
        json!([{"step": {"identifier": identifier, "name": identifier, "type": kind, "spec": spec, "timeout": "10m",
            "failureStrategies": [{"onFailure": {"errors": ["Timeout"], "action": {"type": "Retry",
                "spec": {"retryCount": 1, "retryIntervals": ["5s"]}}}}]}}])
    };
    json!({
        "pipeline": {"identifier": "p", "name": "P",
            "variables": [{"name": "v", "type": "String", "value": "1"}],
            "notificationRules": [{"name": "n", "identifier": "n", "enabled": true,
                "pipelineEvents": [{"type": "StageFailed", "forStages": ["deploy"]}],
                "notificationMethod": {"type": "Slack", "spec": {"webhookUrl": "http://x"}}}],
            "stages": [
                {"stage": {"identifier": "look", "name": "Look", "type": "Custom", "spec": {"execution": {"steps": [
                    {"step": {"identifier": "loop", "name": "Loop", "type": "Wait", "spec": {"duration": "1s"},
                        "strategy": {"repeat": {"items": ["a", "b", "c"]}}}},
                    {"stepGroup": {"identifier": "g", "name": "G",
                        "steps": steps("ping", "Http", json!({"url": "http://x", "method": "GET"}))}}]}}}},
                {"stage": {"identifier": "deploy", "name": "Deploy", "type": "Deployment",
                    "when": {"pipelineStatus": "Success"},
                    "spec": {"deploymentType": "ECS", "service": {"serviceRef": "web"},
                        "environment": {"environmentRef": "prod", "infrastructureDefinitions": [{"identifier": "ecs"}]},
                        "execution": {"steps": steps("roll", "EcsRollingDeploy", json!({}))}}}},
                {"stage": {"identifier": "chain", "name": "Chain", "type": "Pipeline",
                    "spec": {"org": "default", "project": "default", "pipeline": "child"}}}]},
        "service": {"identifier": "web", "name": "Web", "serviceDefinition": {"type": "ECS", "spec": {
            "variables": [{"name": "x", "type": "String", "value": "<+input>.default(0)"}],
            "artifacts": {"primary": {"primaryArtifactRef": "img", "sources": [
                {"identifier": "img", "type": "Ecr", "spec": {"connectorRef": "aws", "registryId": "1", "region": "r", "imagePath": "i", "tag": "t"}}]}}}}},
        "environment": {"identifier": "prod", "name": "Prod", "type": "Production",
            "variables": [{"name": "y", "type": "String", "value": "<+input>.default(0)"}]},
        "infrastructureDefinition": {"identifier": "ecs", "name": "ECS", "environmentRef": "prod", "deploymentType": "ECS",
            "type": "ECS", "spec": {"connectorRef": "aws", "region": "r", "cluster": "<+input>.default(c)"}},
        "connector": {"identifier": "aws", "name": "AWS", "type": "Aws",
            "spec": {"credential": {"type": "InheritFromDelegate"}}},
        "environmentGroup": {"identifier": "all", "name": "All", "envIdentifiers": ["prod"]},
        "overrides": {"environmentRef": "prod", "type": "ENV_GLOBAL_OVERRIDE",
            "variables": [{"name": "o", "type": "String", "value": "1"}]},
    })
}

fn scope() -> Scope {
    let (account, org) = (AccountId::new("acc"), OrgId::new("default"));
    Scope::project(account, org, ProjectId::new("default"))
}

/// What the documents but the pipeline are found under, whatever they say of themselves.
fn snapshot(documents: &Value) -> Result<Snapshot, String> {
    let mut snapshot = Snapshot::default();
    let reference = |kind: &'static str, parent: Option<&str>, id: &str| Reference {
        scope: scope(),
        kind,
        parent: parent.map(EntityId::new),
        id: EntityId::new(id),
    };
    let mut put = |key: &str, references: Vec<Reference>| {
        let text = json!({ key: documents[key] }).to_string();
        let entity = entity::parse(key, &text).map_err(|faults| format!("{faults:?}"))?;
        let entity = Arc::new(entity);
        for reference in references {
            let found = match reference.id.as_str() {
                "*" => Found::Many(vec![entity.clone()]),
                _ => Found::Entity(entity.clone()),
            };
            snapshot.put(reference, Some(found));
        }
        Ok::<_, String>(())
    };
    put("service", vec![reference("service", None, "web")])?;
    put("environment", vec![reference("environment", None, "prod")])?;
    let infrastructure = Kind::Infrastructure.key();
    let parents = [("prod", "ecs"), ("prod", "*"), ("q", "ecs")];
    let places = parents.map(|(parent, id)| reference(infrastructure, Some(parent), id));
    put(infrastructure, places.to_vec())?;
    put("connector", vec![reference("connector", None, "aws")])?;
    put(
        "environmentGroup",
        vec![reference("environmentGroup", None, "all")],
    )?;
    let overrides = ["prod", "q"]
        .map(|id| Reference::of_overrides(scope(), "ENV_GLOBAL_OVERRIDE", id, None, None));
    put("overrides", overrides.to_vec())?;
    // Pipelines that a stage runs.
    for (org, project, id) in [
        ("default", "default", "child"),
        ("q", "default", "child"),
        ("default", "q", "child"),
        ("default", "default", "other"),
    ] {
        let text = json!({"pipeline": {"identifier": id, "name": id, "stages": []}}).to_string();
        let child = entity::parse(id, &text).map_err(|faults| format!("{faults:?}"))?;
        let (account, org) = (AccountId::new("acc"), OrgId::new(org));
        let place = Reference {
            scope: Scope::project(account, org, ProjectId::new(project)),
            ..reference("pipeline", None, id)
        };
        snapshot.put(place, Some(Found::Entity(Arc::new(child))));
    }
    snapshot.put(reference(FILE, None, "/f"), Some(Found::File("x".into())));
    Ok(snapshot)
}

/// The plan as JSON, or everything that is wrong.
pub(crate) fn planned(documents: &Value) -> Result<Value, String> {
    let text = json!({"pipeline": documents["pipeline"]}).to_string();
    let pipeline = entity::parse("p", &text).map_err(|faults| format!("{faults:?}"))?;
    let plan = resolve(&Request {
        pipeline: &pipeline,
        inputs: &[],
        scope: &scope(),
        entities: &snapshot(documents)?,
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    });
    let plan = plan.map_err(|faults| {
        let lines = faults.iter().map(|fault| format!("{fault}\n"));
        lines.collect::<String>()
    })?;
    Ok(serde_json::to_value(plan).unwrap())
}

/// Merges a patch into a document: what is null goes.
fn merge(into: &mut Value, patch: &Value) {
    match (into.as_object_mut(), patch.as_object()) {
        (Some(fields), Some(patch)) => {
            for (key, value) in patch {
                match value.is_null() {
                    true => drop(fields.remove(key)),
                    false => merge(fields.entry(key.clone()).or_insert(Value::Null), value),
                }
            }
        }
        _ => *into = patch.clone(),
    }
}

/// The documents with a field of an element filled in otherwise.
pub(crate) fn changed(mut documents: Value, pointer: &str, field: &str, patch: &str) -> Value {
    let whole = patch.starts_with('+');
    let patch = patch
        .trim_start_matches('+')
        .replace(": STORE", &format!(": {STORE}"));
    let patch: Value = serde_json::from_str(&patch).unwrap_or_else(|e| panic!("{field}: {e}"));
    let element = documents.pointer_mut(pointer);
    let element = element.unwrap_or_else(|| panic!("nothing at {pointer}"));
    match whole {
        true => merge(element, &patch),
        false => merge(element, &json!({ field: patch })),
    }
    documents
}
