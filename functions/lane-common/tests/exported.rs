//! What steps export, and what others read of their settings, in whole runs.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use slipway_model::status::Status;
use slipway_store::record::RunRecord;
use slipway_world::World;
use slipway_world::yaml::{group, pipeline, script, stage};

/// A script that writes one output variable and exports it.
fn exports(id: &str, text: &str, alias: &str, scope: &str) -> String {
    script(id, text, "")
        + "      outputVariables:\n        - {name: TAG, type: String, value: TAG}\n"
        + &format!("      outputAlias: {{key: {alias}, scope: {scope}}}\n")
}

fn reads(id: &str, path: &str) -> String {
    script(
        id,
        &format!("echo <+exportedVariables.getValue(\"{path}\")>"),
        "",
    )
}

async fn finished(steps: &[(&str, String)]) -> (World, RunRecord) {
    let world = World::new().await;
    let stages: Vec<String> = steps
        .iter()
        .map(|(id, steps)| stage(id, steps, "", ""))
        .collect();
    world.apply(&pipeline(&stages)).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    world.assert_clean(&run.id).await;
    (world, run)
}

/// The script of every step, as it ran, and why the run failed.
async fn scripts(world: &World, run: &RunRecord) -> String {
    let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
    let mut lines: Vec<String> = nodes
        .iter()
        .filter(|node| node.node_type == "ShellScript")
        .map(|node| {
            let text = &node.spec["source"]["spec"]["script"];
            let why = node
                .failure
                .as_ref()
                .map(|failure| failure.message.as_str());
            format!("{}: {text} {}", node.identifier, why.unwrap_or_default())
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

#[tokio::test(start_paused = true)]
async fn what_a_step_exports_is_read_by_scope_and_alias() {
    let inner = group(
        "outer",
        &[
            exports("c", "TAG=third", "mine", "StepGroup"),
            group("inner", &[reads("in_group", "stepGroup.mine.TAG")]),
        ],
    );
    let first = exports("a", "TAG=first", "build", "Pipeline")
        + &exports("b", "TAG=second", "build", "Stage")
        + &reads("in_stage", "stage.build.TAG")
        + &inner;
    let second = reads("in_run", "pipeline.build.TAG") + &reads("map", "pipeline.build");
    let (world, run) = finished(&[("one", first), ("two", second)]).await;
    insta::assert_snapshot!(scripts(&world, &run).await, @r#"
    a: "TAG=first" 
    b: "TAG=second" 
    c: "TAG=third" 
    in_group: "echo third" 
    in_run: "echo first" 
    in_stage: "echo second" 
    map: "echo {\"TAG\":\"first\"}" 
    "#);
    assert_eq!(run.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_exported_or_twice_is_told() {
    let mut seen = Vec::new();
    for steps in [
        exports("a", "TAG=1", "build", "Stage") + &exports("b", "TAG=2", "build", "Stage"),
        reads("a", "pipeline.build.TAG"),
        exports("a", "TAG=1", "build", "Stage") + &reads("b", "stage.build.NAME"),
        exports("a", "TAG=1", "build", "Stage") + &reads("b", "account.build.NAME"),
    ] {
        let (world, run) = finished(&[("one", steps)]).await;
        assert_eq!(run.status, Status::Failed);
        seen.push(scripts(&world, &run).await);
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
    a: "TAG=1" 
    b: "TAG=2" The spec of step b cannot be used: outputAlias.key: another step has exported `build` for this stage already, and exported variables never change; choose another key.
    a: null $.spec.script: `<+exportedVariables.getValue("pipeline.build.TAG")>` cannot be evaluated: exportedVariables.getValue(): no step that has succeeded by now exported `build` for this pipeline.
    a: "TAG=1" 
    b: null $.spec.script: `<+exportedVariables.getValue("stage.build.NAME")>` cannot be evaluated: exportedVariables.getValue(): what was exported as `build` has no variable `NAME`.
    a: "TAG=1" 
    b: null $.spec.script: `<+exportedVariables.getValue("account.build.NAME")>` cannot be evaluated: exportedVariables.getValue(): `account.build.NAME` is no exported variable: pipeline.ALIAS.NAME, stage.ALIAS.NAME and stepGroup.ALIAS.NAME are.
    "#);
}

#[tokio::test(start_paused = true)]
async fn environment_variables_of_a_step_are_read_by_their_names() {
    let own = script(
        "a",
        "<+spec.environmentVariables.WHO> <+pipeline.stages.one.spec.execution.steps.a.spec.environmentVariables.WHO>",
        "",
    ) + "      environmentVariables:\n        - {name: WHO, type: String, value: <+pipeline.identifier>}\n";
    let later = script(
        "b",
        "<+execution.steps.a.spec.environmentVariables.WHO>",
        "",
    );
    let (world, run) = finished(&[("one", own + &later)]).await;
    insta::assert_snapshot!(scripts(&world, &run).await, @r#"
    a: "release release" 
    b: "release"
    "#);
    assert_eq!(run.status, Status::Success);
}
