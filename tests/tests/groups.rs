//! The golden pipelines of Auto Scaling groups, run by the binary as users have it, behind a load balancer whose
//! requests are counted.

use aws_sdk_elasticloadbalancingv2::types::TargetTypeEnum;
use serde_json::Value;
use slipway_tests::balancer::{self, Forwarding};
use slipway_tests::{LocalProcess, checkout};

/// A local mode with the templates.
fn shop(dir: &std::path::Path) -> LocalProcess {
    let local = LocalProcess::start(dir);
    for folder in [
        "ecs-rolling",
        "asg-rolling",
        "asg-canary",
        "asg-phased",
        "asg-blue-green",
        "asg-scale",
        "asg-swap",
    ] {
        let folder = match folder {
            "asg-rolling" => hasty(dir),
            _ => checkout(&format!("templates/{folder}")),
        };
        let applied = local.slipway(&["apply", "-f", folder.to_str().expect("text")]);
        assert_eq!(applied.status.code(), Some(0), "{}", text(&applied.stderr));
    }
    local
}

/// The template of the machines with a grace period that is over at once: these tests wait in real time.
fn hasty(dir: &std::path::Path) -> std::path::PathBuf {
    let folder = dir.join("templates");
    std::fs::create_dir(&folder).expect("a folder");
    for file in ["environment.yaml", "pipeline.yaml", "service.yaml"] {
        let written = std::fs::read_to_string(checkout("templates/asg-rolling").join(file));
        let written = written.expect("a template");
        let hasty = written.replace("HealthCheckGracePeriod: 30", "HealthCheckGracePeriod: 1");
        assert_eq!(hasty != written, file == "service.yaml", "{file}");
        std::fs::write(folder.join(file), hasty).expect("a file");
    }
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a pipeline to its end: exit code and what went to standard error.
fn run(local: &LocalProcess, pipeline: &str, inputs: &[&str]) -> (i32, String) {
    let mut line = vec!["run", pipeline, "--follow", "-o", "json"];
    for input in inputs {
        line.extend(["--input", input]);
    }
    let ended = local.slipway(&line);
    (ended.status.code().unwrap_or(-1), text(&ended.stderr))
}

fn runs(local: &LocalProcess, pipeline: &str, inputs: &[&str]) {
    let (code, why) = run(local, pipeline, inputs);
    assert_eq!(code, 0, "{pipeline}: {why}");
}

/// Runs a pipeline to its good end; its id.
fn deployed(local: &LocalProcess, pipeline: &str, inputs: &[&str]) -> String {
    let mut line = vec!["run", pipeline, "--follow", "-o", "json"];
    for input in inputs {
        line.extend(["--input", input]);
    }
    let ended = local.slipway(&line);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let row: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    row["run"].as_str().expect("a run").to_owned()
}

/// Launch template versions of the instances that are counted, with their groups.
fn versions(local: &LocalProcess) -> Vec<String> {
    let instances = local.json(&["list", "instance", "-o", "json"]);
    let rows = instances.as_array().into_iter().flatten();
    let mut versions: Vec<String> = rows
        .map(|row| {
            let info = |name: &str| row["info"][name].as_str().unwrap_or("?").to_owned();
            format!("{} {}", info("asgName"), info("launchTemplateVersion"))
        })
        .collect();
    versions.sort();
    versions
}

#[tokio::test]
async fn what_was_deployed_to_machines_is_rolled_back_after_its_run() {
    for (pipeline, first, second) in [
        ("deploy_machines", "shop 1", "shop 2"),
        (
            "deploy_machines_in_phases",
            "shop_phased__1 1",
            "shop_phased__2 1",
        ),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let local = shop(dir.path());
        deployed(&local, pipeline, &["image=ami-000000a1"]);
        let has = |version: &str| {
            let seen = versions(&local);
            let of_it = seen.iter().filter(|one| *one == version).count();
            assert_eq!(of_it, 2, "{pipeline}: {seen:?}");
        };
        has(first);
        let run = deployed(&local, pipeline, &["image=ami-000000a2"]);
        has(second);
        let undone = local.slipway(&["rollback", &run, "--follow", "-o", "json"]);
        assert_eq!(undone.status.code(), Some(0), "{}", text(&undone.stderr));
        has(first);
        let again = local.slipway(&["rollback", &run, "-o", "json"]);
        assert_eq!(again.stdout, undone.stdout);
    }
}

/// Names of the groups that instances are counted of.
fn counted(local: &LocalProcess) -> Vec<String> {
    let instances = local.json(&["list", "instance", "-o", "json"]);
    let rows = instances.as_array().into_iter().flatten();
    let mut names: Vec<String> = rows
        .filter_map(|row| row.pointer("/info/asgName").and_then(Value::as_str))
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn machines_are_rolled_out_tried_and_rolled_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path());
    runs(&local, "deploy_machines", &["image=ami-000000a1"]);
    assert_eq!(counted(&local), ["shop", "shop"]);
    runs(&local, "deploy_machines_by_canary", &["image=ami-000000a2"]);
    assert_eq!(counted(&local), ["shop", "shop"]);
    let (code, why) = run(&local, "deploy_machines", &["image=ami-00000bad"]);
    assert_eq!(code, 1);
    assert!(why.contains("health check"), "{why}");
    assert_eq!(counted(&local), ["shop", "shop"]);
    let (code, why) = run(&local, "deploy_machines", &["image=ami-00000403"]);
    assert_eq!(code, 1);
    assert!(why.contains("must be shared with this one"), "{why}");
}

#[tokio::test]
async fn machines_move_in_phases() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path());
    for image in ["image=ami-000000a1", "image=ami-000000a2"] {
        runs(&local, "deploy_machines_in_phases", &[image]);
    }
    assert_eq!(counted(&local), ["shop_phased__2", "shop_phased__2"]);
}

#[tokio::test]
async fn machines_are_refreshed_behind_the_rollout_and_scaled_after_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path());
    for image in ["image=ami-000000a1", "image=ami-000000a2"] {
        runs(&local, "scale_machines", &[image]);
        assert_eq!(counted(&local), ["shop", "shop", "shop"]);
    }
}

#[tokio::test]
async fn machines_behind_two_listeners_are_swapped() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path());
    let (kind, ports) = (TargetTypeEnum::Instance, [80, 8080]);
    let listeners = balancer::open(&local, kind, &ports, Forwarding::Apart).await;
    let [prod, stage] = &listeners[..] else {
        panic!("two listeners")
    };
    let named = [
        format!("prodListener={}", prod.arn),
        format!("prodRule={}", prod.rule),
        format!("stageListener={}", stage.arn),
        format!("stageRule={}", stage.rule),
    ];
    let deploy = |image: &str| {
        let mut inputs: Vec<&str> = named.iter().map(String::as_str).collect();
        inputs.push(image);
        run(&local, "swap_machines", &inputs)
    };
    for (image, group) in [
        ("image=ami-000000a1", "shop__1"),
        ("image=ami-000000a2", "shop__2"),
    ] {
        let (code, why) = deploy(image);
        assert_eq!(code, 0, "{why}");
        assert_eq!(counted(&local), [group, group]);
    }
    let (code, why) = deploy("image=ami-00000bad");
    assert_eq!(code, 1);
    assert!(why.contains("health check"), "{why}");
    assert_eq!(counted(&local), ["shop__2", "shop__2"]);
}

#[tokio::test]
async fn blue_and_green_machines_take_turns_without_a_failed_request() {
    let dir = tempfile::tempdir().expect("a folder");
    let local = shop(dir.path());
    let weighted = Forwarding::Weighted([100, 0]);
    let listeners = balancer::open(&local, TargetTypeEnum::Instance, &[80], weighted).await;
    let listener = &listeners[0].arn;
    let rule = format!("rule={}", listeners[0].rule);
    let listener_input = format!("listener={listener}");
    let deploy = |image: &str| {
        let inputs = [image, listener_input.as_str(), rule.as_str()];
        run(&local, "deploy_machines_blue_green", &inputs)
    };
    let first = deploy("image=ami-000000a1");
    assert_eq!(first.0, 0, "{}", first.1);
    let since = local.json(&["list", "instance", "-o", "json"]);
    assert!(
        since.as_array().is_some_and(|rows| rows.len() == 2),
        "{since}"
    );
    let now = jiff::Timestamp::now();
    for image in ["image=ami-000000a2", "image=ami-000000a3"] {
        let next = deploy(image);
        assert_eq!(next.0, 0, "{}", next.1);
    }
    assert_eq!(counted(&local), ["shop__1", "shop__1"]);
    let (code, why) = deploy("image=ami-00000bad");
    assert_eq!(code, 1);
    assert!(why.contains("health check"), "{why}");
    let asked = format!("{}/_sandbox/traffic", local.url());
    let asked = reqwest::Client::new()
        .get(asked)
        .query(&[
            ("listener", listener.as_str()),
            ("since", &now.to_string()),
            ("rate", "10"),
        ])
        .send()
        .await
        .expect("an answer");
    let rules: Value = asked.json().await.expect("JSON");
    let requests = &rules[0]["requests"];
    assert!(
        requests["sent"].as_f64().is_some_and(|sent| sent > 50.0),
        "{rules}"
    );
    assert_eq!(requests["failed"].as_f64(), Some(0.0), "{rules}");
}
