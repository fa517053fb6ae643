//! `slipway local` is killed with SIGKILL at random moments during runs; every run ends as it would have,
//! nothing is done twice and nothing is lost. `SLIPWAY_KILLS=200` for the long form.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_tests::dice::{Dice, kills};
use slipway_tests::history::{entered, executions};
use slipway_tests::{LocalProcess, checkout};

/// Kills in the short form.
const KILLS: u32 = 12;

/// Runs that a kill may interrupt, and how each must end: the tag `missing` cannot be pulled.
const TAGS: &[(&str, &str)] = &[
    ("1.0", "Success"),
    ("2.0", "Success"),
    ("missing", "Failed"),
];

fn status(local: &LocalProcess, run: &str) -> String {
    let run = local.json(&["get", "run", run, "-o", "json"]);
    run["status"].as_str().unwrap_or_default().to_owned()
}

fn is_final(status: &str) -> bool {
    matches!(
        status,
        "Success" | "Failed" | "Aborted" | "Errored" | "Expired"
    )
}

async fn create_cluster(local: &LocalProcess) {
    local
        .ecs()
        .create_cluster()
        .cluster_name("shop")
        .send()
        .await
        .expect("a cluster");
}

#[tokio::test]
async fn every_run_survives_being_killed_anywhere() {
    let kills = kills(KILLS);
    let (mut dice, seed) = Dice::from_env(20_260_101);
    let dir = tempfile::tempdir().expect("a folder");
    let mut local = LocalProcess::start(dir.path());
    create_cluster(&local).await;
    let templates = checkout("templates/ecs-rolling");
    local.json(&[
        "apply",
        "-f",
        templates.to_str().expect("text"),
        "-o",
        "json",
    ]);

    let mut runs: Vec<(String, &str)> = Vec::new();
    let mut killed = 0;
    while killed < kills
        || runs
            .last()
            .is_some_and(|(run, _)| !is_final(&status(&local, run)))
    {
        if runs
            .last()
            .is_none_or(|(run, _)| is_final(&status(&local, run)))
        {
            let (tag, ends) = TAGS[runs.len() % TAGS.len()];
            let input = format!("tag={tag}");
            let started = local.json(&["run", "deploy_shop", "--input", &input, "-o", "json"]);
            runs.push((started["run"].as_str().expect("a run id").to_owned(), ends));
        }
        // A random number of looks is the random moment.
        let (run, _) = runs.last().expect("a run");
        for _ in 0..dice.roll(12) {
            if is_final(&status(&local, run)) {
                break;
            }
        }
        if killed < kills {
            local.kill();
            killed += 1;
            local = LocalProcess::start(dir.path());
        }
    }

    for (run, ends) in &runs {
        assert_eq!(&status(&local, run), ends, "run {run}, seed {seed}");
    }
    let registered = local
        .ecs()
        .list_task_definitions()
        .family_prefix("shop")
        .send()
        .await;
    let registered = registered.expect("a list").task_definition_arns().len();
    assert_eq!(
        registered,
        runs.len(),
        "one task definition per run, seed {seed}"
    );
    let listed: Value = local.json(&["list", "run", "--limit", "100", "-o", "json"]);
    let listed: BTreeSet<&str> = listed
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|r| r["planExecutionId"].as_str())
        .collect();
    for (run, _) in &runs {
        assert!(listed.contains(run.as_str()), "run {run} was lost");
    }
    check_histories(&local, seed).await;
}

/// How a stage goes, and how a pipeline of one stage goes, when nothing is entered twice.
const TRACES: &[&[&str]] = &[
    &["Begin", "Steps"],
    &["Begin", "Steps", "End", "RollBack", "End"],
    &[
        "Plan",
        "Stages",
        "Group",
        "Line",
        "Stage",
        "Finish",
        "Succeeded",
    ],
    &[
        "Plan", "Stages", "Group", "Line", "Stage", "Finish", "Failed",
    ],
];

/// Every pipeline and stage execution went one of the ways that an execution without kills goes. Lanes loop:
/// of them only the unbroken numbers of their events are checked.
async fn check_histories(local: &LocalProcess, seed: u64) {
    for (machine, execution) in executions(local).await {
        let names = entered(local, execution.execution_arn()).await;
        let known = TRACES.iter().any(|trace| *trace == names.as_slice());
        let shown = (execution.name(), execution.status());
        assert!(
            known || machine.name() == "slipway-lane",
            "{shown:?} {names:?}, seed {seed}"
        );
    }
}
