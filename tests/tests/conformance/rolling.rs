//! The rolling ECS deployments of the corpus run: each of its stages and stage templates that this version has
//! every step of, on `slipway local`, with what they refer to made beside them.
//!
//! The corpus holds pipelines, not the accounts around them. Service, environment and infrastructure get the
//! names that the stage asks for; a host that a script wants to see healthy is one that answers 200.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Map, Value, json};
use slipway_model::{entity, yaml};
use slipway_tests::{LocalProcess, checkout};

use crate::corpus::rows;

/// A stage that was found, fit to stand in a pipeline of its own.
struct Found {
    from: String,
    stage: Value,
}

#[tokio::test]
async fn rolling_deployments_of_the_corpus_run_and_roll_back() {
    let found = found();
    assert!(found.len() >= 4, "only {} stages", found.len());
    let healthy = healthy_host();
    for Found { from, stage } in found {
        let dir = tempfile::tempdir().expect("a folder");
        let local = LocalProcess::start(&dir.path().join("data"));
        let create = local.ecs().create_cluster().cluster_name("shop");
        create.send().await.expect("a cluster");
        let documents = documents(&stage, &healthy);
        apply(&local, dir.path(), &documents, &from);

        let good = run(&local, "1.0");
        assert_eq!(good.0, 0, "{from}: {}", good.1);
        let before = version(&local, &from).await;
        assert_eq!(before.1, 3, "{from}");
        let bad = run(&local, "missing");
        assert_eq!(bad.0, 1, "{from}: {}", bad.1);
        assert!(
            bad.1.contains("CannotPullContainerError"),
            "{from}: {}",
            bad.1
        );

        let rolls_back = stage["spec"]["execution"]["rollbackSteps"][0].is_object();
        let after = if rolls_back {
            "rolled back"
        } else {
            "left, as it has no rollback steps"
        };
        assert_eq!(
            version(&local, &from).await == before,
            rolls_back,
            "{from}: not {after}"
        );
        println!("{from}: deployed, failed, {after}");
    }
}

/// The task definition of the service, a canary may have registered one before it, and how many of its tasks run.
async fn version(local: &LocalProcess, from: &str) -> (String, i32) {
    let ecs = local.ecs();
    let described = ecs.describe_services().cluster("shop").services("shop");
    let described = described.send().await.expect("the service");
    let service = described.services().first().expect("the service");
    assert_eq!(service.desired_count(), 3, "{from}");
    let definition = service.task_definition().unwrap_or_default();
    (definition.to_owned(), service.running_count())
}

/// Stages of the corpus that roll out an ECS service with steps that this version runs.
fn found() -> Vec<Found> {
    let mut found = Vec::new();
    for row in rows().iter().filter(|row| row.trust != "C") {
        if !row.steps().any(|step| step == "EcsRollingDeploy") {
            continue;
        }
        let Ok(tree) = yaml::parse(&row.path, &row.text()) else {
            continue;
        };
        let mut stages = Vec::new();
        collect(&tree.root().to_json(), &mut stages);
        for (name, stage) in stages {
            let from = format!(
                "{} ({name})",
                row.path.rsplit('/').next().unwrap_or_default()
            );
            let missing: Vec<&str> = step_types(&stage)
                .into_iter()
                .filter(|step| !slipway_steps::registry::runnable(step))
                .collect();
            match missing.as_slice() {
                [] => found.push(Found { from, stage }),
                missing => println!("{from}: left out, it needs {}", missing.join(", ")),
            }
        }
    }
    found
}

/// Deployment stages for ECS with a rolling deployment, wherever they stand.
fn collect(value: &Value, into: &mut Vec<(String, Value)>) {
    let ecs = value["type"] == "Deployment" && value["spec"]["deploymentType"] == "ECS";
    if ecs && step_types(value).contains("EcsRollingDeploy") {
        let name = value["identifier"].as_str().unwrap_or("template");
        return into.push((name.to_owned(), value.clone()));
    }
    match value {
        Value::Object(map) => map.values().for_each(|each| collect(each, into)),
        Value::Array(list) => list.iter().for_each(|each| collect(each, into)),
        _ => {}
    }
}

fn step_types(value: &Value) -> BTreeSet<&str> {
    match value {
        Value::Object(map) => {
            let own = map.get("step").and_then(|step| step["type"].as_str());
            own.into_iter()
                .chain(map.values().flat_map(step_types))
                .collect()
        }
        Value::Array(list) => list.iter().flat_map(step_types).collect(),
        _ => BTreeSet::new(),
    }
}

/// Everything that the stage's pipeline needs, the pipeline last.
fn documents(stage: &Value, healthy: &str) -> Vec<Value> {
    let place = json!({"orgIdentifier": "default", "projectIdentifier": "default"});
    let named = |id: &str, rest: Value| {
        let mut entity = json!({"name": id, "identifier": id});
        for part in [place.clone(), rest] {
            entity
                .as_object_mut()
                .expect("a map")
                .extend(part.as_object().cloned().unwrap_or_default());
        }
        entity
    };
    let mut stage = stage.clone();
    stage["name"] = "deploy".into();
    stage["identifier"] = stage
        .get("identifier")
        .cloned()
        .unwrap_or_else(|| "deploy".into());
    // Its condition speaks of stages and triggers that are left out.
    stage.as_object_mut().expect("a stage").remove("when");
    let spec = stage["spec"].as_object_mut().expect("a spec");
    spec.insert("service".to_owned(), json!({"serviceRef": "shop"}));
    let environment = given(&spec["environment"]["environmentRef"], "production");
    let infrastructure = given(
        &spec["environment"]["infrastructureDefinitions"][0]["identifier"],
        "shop_cluster",
    );
    spec.insert(
        "environment".to_owned(),
        json!({"environmentRef": environment, "deployToAll": false, "infrastructureDefinitions": [{"identifier": infrastructure}]}),
    );
    let pipeline = named(
        "rolling",
        json!({
            "variables": [{"name": "tag", "type": "String", "value": "<+input>"}],
            "stages": [{"stage": stage}],
        }),
    );
    let variables: Vec<Value> = service_variables(&pipeline.to_string())
        .into_iter()
        .map(|name| json!({"name": name, "type": "String", "value": healthy}))
        .collect();
    vec![
        json!({"service": with_variables(variables)}),
        json!({"environment": named(&environment, json!({"type": "Production"}))}),
        json!({"infrastructureDefinition": named(&infrastructure, json!({
            "environmentRef": environment, "deploymentType": "ECS", "type": "ECS",
            "spec": {"connectorRef": "aws", "region": "us-east-1", "cluster": "shop"},
        }))}),
        json!({"pipeline": pipeline}),
    ]
}

/// A reference as the stage has it; where it is asked for at the start, another one.
fn given(written: &Value, otherwise: &str) -> String {
    match written.as_str() {
        Some(text) if !text.contains("<+") => text.to_owned(),
        _ => otherwise.to_owned(),
    }
}

/// Names of `<+serviceVariables.…>` in a text.
fn service_variables(text: &str) -> BTreeSet<String> {
    let names = text.split("<+serviceVariables.").skip(1);
    names
        .map(|rest| {
            rest.chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect()
        })
        .collect()
}

/// The golden service, with more variables.
fn with_variables(variables: Vec<Value>) -> Value {
    let path = checkout("templates/ecs-rolling/service.yaml");
    let text = std::fs::read_to_string(&path).expect("the golden service");
    let parsed = entity::parse("service.yaml", &text).expect("the golden service");
    let mut service = parsed.to_json();
    let spec: &mut Map<String, Value> = service["serviceDefinition"]["spec"]
        .as_object_mut()
        .expect("a spec");
    spec.insert("variables".to_owned(), variables.into());
    service
}

fn apply(local: &LocalProcess, dir: &Path, documents: &[Value], from: &str) {
    let path = dir.join("entities.yaml");
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    std::fs::write(&path, texts.join("\n---\n")).expect("a file");
    let connectors = checkout("templates/ecs-rolling/connectors.yaml");
    let files = [
        connectors.to_str().expect("text"),
        path.to_str().expect("text"),
    ];
    let applied = local.slipway(&["apply", "-f", files[0], "-f", files[1]]);
    let why = String::from_utf8_lossy(&applied.stderr);
    assert!(applied.status.success(), "{from}: {why}");
}

fn run(local: &LocalProcess, tag: &str) -> (i32, String) {
    let input = format!("tag={tag}");
    let output = local.slipway(&["run", "rolling", "--input", &input, "--follow"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

/// Address of a host on which every path answers 200. A thread of its own: the test waits for commands.
fn healthy_host() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    std::thread::spawn(move || {
        for mut peer in listener.incoming().flatten() {
            let mut request = [0; 4096];
            // A peer that went away needs no answer.
            let _ = peer.read(&mut request);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = peer.write_all(answer);
        }
    });
    address
}
