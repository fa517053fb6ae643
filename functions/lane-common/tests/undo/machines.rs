//! Auto Scaling groups of the sandbox account: a run that ended halfway is rolled back after it, as long as it is the newest.

use std::collections::BTreeMap;

use slipway_engine::start::StartRun;
use slipway_world::by_hand;

use super::*;

const MACHINES: &str = include_str!("machines.yaml");

fn step(id: &str, kind: &str, spec: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: {kind}\n    timeout: 20m\n    spec: {spec}\n"
    )
}

/// A pipeline that gives the new version so many percent of the instances.
fn phased(id: &str, percentage: u32) -> String {
    let sizes = "{type: Fixed, spec: {min: 1, max: 6, desired: 4}}";
    let setup = format!("{{asgName: web, resizeStrategy: resize_new_first, instances: {sizes}}}");
    let part =
        format!("{{instanceSelection: {{type: Percentage, spec: {{percentage: {percentage}}}}}}}");
    let steps = step("setup", "AsgSetup", &setup) + &step("part", "AsgPhasedDeploy", &part);
    let ship = stage(
        "ship",
        &steps,
        &step("back", "AsgRollback", "{}"),
        ROLL_BACK,
    );
    let whole = pipeline(&[deployment(&ship)]);
    let variables = "  variables:\n    - {name: tag, type: String, value: <+input>}\n  stages:\n";
    whole
        .replacen("  stages:\n", variables, 1)
        .replace(": release\n", &format!(": {id}\n"))
        .replace("deploymentType: ECS", "deploymentType: Asg")
        .replace("serviceRef: shop", "serviceRef: web")
        .replace("identifier: cluster", "identifier: machines")
}

struct Machines(World);

impl Machines {
    async fn new() -> Self {
        let options = Options {
            in_memory: true,
            ..Options::default()
        };
        let world = World::with(options).await;
        for yaml in [MACHINES, &phased("whole", 100), &phased("half", 50)] {
            world.apply(yaml).await;
        }
        Self(world)
    }

    async fn deploy(&self, pipeline: &str, tag: &str) -> RunId {
        let inputs = format!(
            "pipeline:\n  identifier: {pipeline}\n  variables:\n    - {{name: tag, type: String, value: \"{tag}\"}}\n"
        );
        let start = StartRun {
            inputs_yaml: Some(inputs),
            ..by_hand(pipeline)
        };
        let run = self.0.try_start(start).await.expect("it starts").id;
        let run = self.0.finish(&run).await;
        assert_eq!(run.status, Status::Success, "{}", told(&self.0, &run).await);
        run.id
    }

    async fn roll_back(&self, run: &RunId) {
        let undo = self.0.undo(undo(run)).await;
        let undo = undo.unwrap_or_else(|error| panic!("{}", error.full_text()));
        let undo = self.0.finish(&undo.id).await;
        assert_eq!(
            undo.status,
            Status::Success,
            "{}",
            told(&self.0, &undo).await
        );
    }

    /// How many instances each group has.
    async fn counted(&self) -> String {
        let all = Default::default();
        let found = self.0.store.list_instances(&scope(), &all).await;
        let mut counts = BTreeMap::<String, usize>::new();
        for instance in found.expect("counted") {
            let group = instance.info["asgName"].as_str().unwrap_or("?").to_owned();
            *counts.entry(group).or_default() += 1;
        }
        let counts = counts
            .iter()
            .map(|(group, count)| format!("{group} {count}"));
        counts.collect::<Vec<_>>().join(", ")
    }

    async fn refusal(&self, run: &RunId) -> String {
        refusal(self.0.undo(undo(run)).await, run)
    }
}

/// Found by a tester: it "left no version", while half of the instances were those of it.
#[tokio::test(start_paused = true)]
async fn half_of_the_instances_are_given_back() {
    let machines = Machines::new().await;
    let one = machines.deploy("whole", "1").await;
    assert_eq!(machines.counted().await, "web__1 4");
    let two = machines.deploy("half", "2").await;
    assert_eq!(machines.counted().await, "web__1 2, web__2 2");
    let why = machines.refusal(&one).await.replace(two.as_str(), "S");
    insta::assert_snapshot!(why, @"run S has put another version of service web to environment prod (infrastructure machines) beside that of run R since: roll run S back first, or deploy the version that you want");
    machines.roll_back(&two).await;
    assert_eq!(machines.counted().await, "web__1 4");

    // Once another run has deployed it would bring the version before back beside that one.
    let three = machines.deploy("half", "3").await;
    let four = machines.deploy("whole", "4").await;
    assert_eq!(machines.counted().await, "web__2 2, web__3 4");
    let why = machines.refusal(&three).await.replace(four.as_str(), "F");
    insta::assert_snapshot!(why, @"run F has deployed service web to environment prod (infrastructure machines) since run R: only the newest deployment can be rolled back; roll run F back, or deploy the version that you want");
    machines.roll_back(&four).await;
    assert_eq!(machines.counted().await, "web__1 2, web__2 2");
    machines.roll_back(&three).await;
    assert_eq!(machines.counted().await, "web__1 4");
}
