//! What each step asks of AWS, call by call: in the first, the second and the third deployment of its strategy, and when
//! each of these is rolled back. One golden file for each strategy, in `snapshots/`; repeated looks are told once.
//!
//! `INSTA_UPDATE=always cargo test --workspace --test steps calls` writes them anew.

mod asg;
mod ecs;
mod lambda;

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_steps::STEPS;

use crate::world::World;

/// A step type and its spec.
type Steps = Vec<(&'static str, Value)>;

/// Deployments that are told.
const DEPLOYMENTS: u32 = 3;
/// Attempts of rollback steps, behind those of any deployment.
const ROLLBACK: u32 = 9;

/// Runs a step, and gives its calls in a line.
async fn told(world: &World, step: &str, spec: Value, attempt: u32) -> String {
    let before = world.sandbox.calls().len();
    world.attempt(step, spec, attempt).await.done();
    let calls = world.trace(before).replace('\n', " ");
    match calls.is_empty() {
        true => format!("{step}: no calls"),
        false => format!("{step}: {calls}"),
    }
}

/// Runs the steps of a deployment. The same step twice is two attempts here, as it is two steps in a pipeline.
async fn told_each(world: &World, steps: Steps) -> Vec<String> {
    let mut lines = Vec::new();
    for (attempt, (step, spec)) in (0..).zip(steps) {
        lines.push(told(world, step, spec, attempt).await);
    }
    lines
}

/// Runs the rollback steps of a deployment.
async fn undone(world: &World, steps: &[&'static str]) -> Vec<String> {
    let mut lines = Vec::new();
    for step in steps {
        lines.push(told(world, step, Value::Object(Default::default()), ROLLBACK).await);
    }
    lines
}

/// Deployment `number` and its rollback, as a part of a golden file.
fn part(number: u32, deployed: &[String], rolled_back: &[String]) -> String {
    let mut lines = vec![format!("deployment {number}")];
    lines.extend(deployed.iter().map(|line| format!("  {line}")));
    if !rolled_back.is_empty() {
        lines.push(format!("rollback of deployment {number}"));
        lines.extend(rolled_back.iter().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}

#[test]
fn every_step_that_calls_aws_has_its_calls_told() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/steps/calls/snapshots");
    let files = std::fs::read_dir(&folder).expect("the golden files");
    let told: String = files
        .map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a text"))
        .collect();
    let told: BTreeSet<&str> = told
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
        .map(|(step, _)| step)
        .collect();
    let platform = |name: &str| {
        ["Asg", "AwsLambda", "Ecs", "StandAlone"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let missing: Vec<_> = STEPS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| platform(name) && !told.contains(name))
        .collect();
    assert!(missing.is_empty(), "add them to a strategy: {missing:?}");
}
