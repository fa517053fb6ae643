//! Who deployed what each instance runs, and with which artifact.

use serde_json::{Value, json};
use slipway_fn_instances::{Deps, sweep};
use slipway_plan::ArtifactPlan;
use slipway_store::InstanceFilter;

use super::{Groups, list};
use crate::world::scope;

/// The next run deploys this image, which is its artifact too.
fn deploys(groups: &mut Groups, image: &str) -> String {
    groups.world.next_run();
    groups.deploys("ami-of-the-artifact", 2);
    groups.world.artifact = Some(ArtifactPlan {
        identifier: "primary".to_owned(),
        kind: "AmazonMachineImage".to_owned(),
        spec: json!({}),
        image: None,
        tag: Some(format!("ami-000000a{image}")),
        pinned: None,
        late: None,
    });
    groups.world.run.to_string()
}

/// Group, artifact and run of the instances that are counted, each with how many there are.
async fn counted(groups: &Groups) -> Vec<String> {
    let filter = InstanceFilter::default();
    let found = groups.world.store.list_instances(&scope(), &filter).await;
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for instance in found.expect("a list") {
        let group = instance.info["asgName"].as_str().unwrap_or("?").to_owned();
        let artifact = instance.artifact.unwrap_or("?".to_owned());
        let artifact = artifact.trim_start_matches("ami-000000a");
        let run = instance.run.map_or("?".to_owned(), |run| run.to_string());
        *counts
            .entry(format!("{group} {artifact} by {run}"))
            .or_default() += 1;
    }
    let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
    counts.collect()
}

fn count(number: u32) -> Value {
    json!({"instanceSelection": {"type": "Count", "spec": {"count": number}}})
}

async fn run(groups: &Groups, step: &str, spec: Value) {
    groups.world.run(step, spec).await.done();
}

#[tokio::test(start_paused = true)]
async fn a_canary_is_its_own_run_s_and_the_group_stays_who_deployed_it() {
    let mut groups = Groups::new().await.beside().await;
    let first = deploys(&mut groups, "1");
    run(&groups, "AsgRollingDeploy", json!({})).await;
    let main = format!("2 web 1 by {first}");
    assert_eq!(counted(&groups).await, [main.as_str()]);
    let second = deploys(&mut groups, "2");
    run(&groups, "AsgCanaryDeploy", count(3)).await;
    let canary = format!("3 web__Canary 2 by {second}");
    assert_eq!(counted(&groups).await, [main.clone(), canary.clone()]);
    let deps = Deps {
        services: groups.world.services.clone(),
    };
    sweep(&deps).await.expect("a sweep");
    assert_eq!(counted(&groups).await, [main.clone(), canary]);
    run(&groups, "AsgCanaryDelete", json!({})).await;
    assert_eq!(counted(&groups).await, [main.as_str()]);
    run(&groups, "AsgRollingDeploy", json!({})).await;
    groups.quiet().await;
    sweep(&deps).await.expect("a sweep");
    assert_eq!(counted(&groups).await, [format!("2 web 2 by {second}")]);
    run(&groups, "AsgRollingRollback", json!({})).await;
    groups.quiet().await;
    sweep(&deps).await.expect("a sweep");
    assert_eq!(counted(&groups).await, [main]);
}

#[tokio::test(start_paused = true)]
async fn blue_and_green_are_whose_they_are() {
    let mut groups = Groups::new().await.beside().await;
    groups.balance(false).await;
    let balancer = groups.balancer.as_ref().expect("a load balancer");
    let spec = balancer.swap_spec();
    let mut runs = Vec::new();
    for image in ["1", "2"] {
        runs.push(deploys(&mut groups, image));
        run(&groups, "AsgBlueGreenDeploy", spec.clone()).await;
        if image == "2" {
            assert_eq!(
                counted(&groups).await,
                [
                    format!("2 web__1 1 by {}", runs[0]),
                    format!("2 web__2 2 by {}", runs[1])
                ]
            );
        }
        let kept = json!({"downsizeOldAsg": false});
        run(&groups, "AsgBlueGreenSwapService", kept).await;
    }
    let old = format!("2 web__1 1 by {}", runs[0]);
    let both = [old.clone(), format!("2 web__2 2 by {}", runs[1])];
    assert_eq!(counted(&groups).await, both);
    run(&groups, "AsgBlueGreenRollback", json!({})).await;
    groups.quiet().await;
    assert_eq!(counted(&groups).await, [old]);
}

#[tokio::test(start_paused = true)]
async fn in_phases_each_version_is_its_own_run_s() {
    let mut groups = Groups::new().await.beside().await;
    let first = deploys(&mut groups, "1");
    run(&groups, "AsgRollingDeploy", json!({})).await;
    let second = deploys(&mut groups, "2");
    let setup = json!({
        "asgName": "web", "resizeStrategy": "resize_new_first",
        "instances": {"type": "Fixed", "spec": {"min": 1, "max": 6, "desired": 2}},
    });
    run(&groups, "AsgSetup", setup).await;
    run(&groups, "AsgPhasedDeploy", count(1)).await;
    let both = [
        format!("1 web 1 by {first}"),
        format!("1 web__1 2 by {second}"),
    ];
    assert_eq!(counted(&groups).await, both);
    run(&groups, "AsgRollback", json!({})).await;
    groups.quiet().await;
    assert_eq!(counted(&groups).await, [format!("2 web 1 by {first}")]);
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_version_noted_is_read() {
    let mut groups = Groups::new().await.beside().await;
    let first = deploys(&mut groups, "1");
    run(&groups, "AsgRollingDeploy", json!({})).await;
    let store = &groups.world.store;
    let mut noted = store.list_deployed().await.expect("a list").remove(0);
    for group in noted.target["groups"].as_array_mut().expect("groups") {
        let by = group.as_object_mut().expect("a group").shift_remove("by");
        assert!(by.is_some(), "{group}");
    }
    store.put_deployed(&noted).await.expect("stored");
    let deps = Deps {
        services: groups.world.services.clone(),
    };
    sweep(&deps).await.expect("a sweep");
    let main = format!("2 web 1 by {first}");
    assert_eq!(counted(&groups).await, [main.as_str()]);
    let second = deploys(&mut groups, "2");
    run(&groups, "AsgCanaryDeploy", count(1)).await;
    let canary = format!("1 web__Canary 2 by {second}");
    assert_eq!(counted(&groups).await, [main, canary]);
}

#[tokio::test(start_paused = true)]
async fn instances_of_a_version_that_slipway_did_not_deploy_are_nobody_s() {
    let mut groups = Groups::new().await.beside().await;
    deploys(&mut groups, "1");
    run(&groups, "AsgRollingDeploy", json!({})).await;
    let noted = groups.world.store.list_deployed().await.expect("a list");
    let gone = groups.world.store.delete_deployed(&noted[0]).await;
    gone.expect("forgotten");
    deploys(&mut groups, "2");
    run(&groups, "AsgRollingDeploy", json!({})).await;
    run(&groups, "AsgRollingRollback", json!({})).await;
    groups.quiet().await;
    let deps = Deps {
        services: groups.world.services.clone(),
    };
    sweep(&deps).await.expect("a sweep");
    assert_eq!(counted(&groups).await, ["2 web ? by ?"]);
    let all = groups.scaling("DescribeAutoScalingGroups", json!({})).await;
    assert_eq!(list(&all["AutoScalingGroups"]).len(), 1);
}
