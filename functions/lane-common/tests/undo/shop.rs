//! A service of the sandbox account, deployed and rolled back: whose deployment is there, and who may roll it back.

mod left;

use serde_json::{Value, json};
use slipway_engine::start::StartRun;
use slipway_engine::undo::{Deployed, Outlook, Place, deployed_at, find_place, outlook};
use slipway_world::by_hand;

use super::*;

/// The image of a version. One of the version `missing` cannot be pulled in the sandbox.
fn image(tag: &str) -> String {
    format!("index.docker.io/library/shop:{tag}")
}

const SHOP: &str = include_str!("shop.yaml");

fn step(id: &str, kind: &str) -> String {
    format!(
        "- step:\n    name: {id}\n    identifier: {id}\n    type: {kind}\n    timeout: 10m\n    spec: {{}}\n"
    )
}

/// Deploys a version after a pause.
fn rollout() -> String {
    let steps = wait("pause", "<+pipeline.variables.pause>") + &step("rollout", "EcsRollingDeploy");
    let rollback = step("rollback", "EcsRollingRollback");
    let stages = [deployment(&stage("ship", &steps, &rollback, ROLL_BACK))];
    with_inputs(&pipeline(&stages))
}

/// A pipeline that asks for the version and the pause.
fn with_inputs(pipeline: &str) -> String {
    let variable =
        |name: &str| format!("    - name: {name}\n      type: String\n      value: <+input>\n");
    let head = format!(
        "  variables:\n{}{}  stages:\n",
        variable("tag"),
        variable("pause")
    );
    pipeline.replacen("  stages:\n", &head, 1)
}

/// A pipeline of steps of these types, with the rollback steps of canaries.
fn of_canaries(id: &str, types: &[&str]) -> String {
    let each = |types: &[&str]| {
        let steps = types.iter().map(|kind| step(&kind.to_lowercase(), kind));
        steps.collect::<String>()
    };
    let rollback = each(&["EcsCanaryDelete", "EcsRollingRollback"]);
    let ship = stage("ship", &each(types), &rollback, ROLL_BACK);
    let whole = with_inputs(&pipeline(&[deployment(&ship)]));
    whole.replace(": release\n", &format!(": {id}\n"))
}

struct Shop(World);

impl Shop {
    async fn new() -> Self {
        let options = Options {
            in_memory: true,
            ..Options::default()
        };
        let world = World::with(options).await;
        world.apply(SHOP).await;
        world.apply(&rollout()).await;
        let cluster = json!({"clusterName": "main"});
        world.ecs("CreateCluster", &cluster).await;
        Self(world)
    }

    async fn start(&self, tag: &str, pause: &str) -> RunId {
        self.start_of("release", tag, pause).await
    }

    async fn start_of(&self, pipeline: &str, tag: &str, pause: &str) -> RunId {
        let variable = |name: &str, value: &str| {
            format!("    - name: {name}\n      type: String\n      value: \"{value}\"\n")
        };
        let inputs = format!(
            "pipeline:\n  identifier: {pipeline}\n  variables:\n{}{}",
            variable("tag", tag),
            variable("pause", pause)
        );
        let start = StartRun {
            inputs_yaml: Some(inputs),
            ..by_hand(pipeline)
        };
        self.0.try_start(start).await.expect("it starts").id
    }

    async fn deploy(&self, tag: &str) -> RunRecord {
        let run = self.start(tag, "1s").await;
        self.0.finish(&run).await
    }

    async fn roll_back(&self, run: &RunId) -> RunRecord {
        let undo = self.0.undo(undo(run)).await;
        let undo = undo.unwrap_or_else(|error| panic!("{}", error.full_text()));
        self.0.finish(&undo.id).await
    }

    /// The image that the service runs.
    async fn runs(&self) -> Value {
        let wanted = json!({"cluster": "main", "services": ["shop"]});
        let described = self.0.ecs("DescribeServices", &wanted).await;
        let definition = &described["services"][0]["taskDefinition"];
        let wanted = json!({"taskDefinition": definition});
        let definition = self.0.ecs("DescribeTaskDefinition", &wanted).await;
        definition["taskDefinition"]["containerDefinitions"][0]["image"].clone()
    }

    /// How many tasks its canary is to have, where there is one.
    async fn canary(&self) -> Value {
        let wanted = json!({"cluster": "main", "services": ["shopCanary"]});
        let described = self.0.ecs("DescribeServices", &wanted).await;
        let canary = &described["services"][0];
        match canary["status"] == "ACTIVE" {
            true => canary["desiredCount"].clone(),
            false => Value::Null,
        }
    }

    async fn there(&self) -> Deployed {
        let id = EntityId::new;
        let names = (&id("shop"), &id("prod"), None);
        let place = find_place(&self.0.runs, &scope(), names).await;
        let place: Place = place.expect("it was deployed");
        let there = deployed_at(&self.0.runs, &scope(), &place).await;
        there.expect("it was deployed")
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_deployment_goes_back_to_the_one_before() {
    let shop = Shop::new().await;
    let one = shop.deploy("1").await;
    let why = refusal(shop.0.undo(undo(&one.id)).await, &one.id);
    insta::assert_snapshot!(why, @"run R was the first that deployed service shop to environment prod (infrastructure cluster): there is no earlier version to go back to; delete the service by hand, or deploy another version");
    let two = shop.deploy("2").await;
    let why = refusal(shop.0.undo(undo(&one.id)).await, &one.id);
    insta::assert_snapshot!(why.replace(two.id.as_str(), "S"), @"run S has deployed service shop to environment prod (infrastructure cluster) since run R: only the newest deployment can be rolled back; roll run S back, or deploy the version that you want");
    let there = shop.there().await;
    assert_eq!(there.run, two.id);
    assert_eq!(there.artifact.as_deref(), Some(image("2").as_str()));
    let before = there.before.expect("the first one");
    assert_eq!(
        (before.run, before.artifact.as_deref()),
        (Some(one.id.clone()), Some(image("1").as_str()))
    );

    assert_eq!(shop.runs().await, image("2"));
    let run = shop.roll_back(&two.id).await;
    insta::assert_snapshot!(told(&shop.0, &run).await, @"
    run Success
    ship Success
    ship.rollbackSteps.rollback #0 Success
    ");
    assert_eq!(shop.runs().await, image("1"));
    let there = shop.there().await;
    assert_eq!(
        (there.run, there.artifact.as_deref()),
        (one.id.clone(), Some(image("1").as_str()))
    );
    let instances = shop
        .0
        .store
        .list_instances(&scope(), &Default::default())
        .await;
    for instance in instances.expect("counted") {
        assert_eq!(instance.run, Some(one.id.clone()), "{instance:?}");
    }
    // Not further back, until something is deployed again.
    let why = there.refusal.expect("it was rolled back");
    let why = why
        .replace(run.id.as_str(), "U")
        .replace(two.id.as_str(), "S");
    insta::assert_snapshot!(why.replace(one.id.as_str(), "R"), @"run U has rolled run S back to what run R had deployed: deploy something before the next rollback");
    let three = shop.deploy("3").await;
    let run = shop.roll_back(&three.id).await;
    assert_eq!(
        (run.status, shop.runs().await),
        (Status::Success, json!(image("1")))
    );
    shop.0.assert_clean(&run.id).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_failed_and_went_back_does_not_count() {
    let shop = Shop::new().await;
    shop.deploy("1").await;
    let two = shop.deploy("2").await;
    for _ in 0..2 {
        let bad = shop.deploy("missing").await;
        assert_eq!(bad.status, Status::Failed);
        assert_eq!(shop.runs().await, image("2"));
    }
    let there = shop.there().await;
    assert_eq!((there.run, there.refusal), (two.id.clone(), None));
    let run = shop.roll_back(&two.id).await;
    assert_eq!(
        (run.status, shop.runs().await),
        (Status::Success, json!(image("1")))
    );
}

#[tokio::test(start_paused = true)]
async fn who_deploys_while_a_rollback_waits_is_not_rolled_over() {
    let shop = Shop::new().await;
    shop.deploy("1").await;
    let two = shop.deploy("2").await;
    let three = shop.start("3", "5m").await;
    shop.0.runs.clock.sleep(Duration::from_secs(60)).await;
    let asked = outlook(&shop.0.runs, &two.id, &Which::All).await;
    assert!(matches!(asked, Ok(Outlook::Allowed(_))), "{asked:?}");
    let run = shop.roll_back(&two.id).await;
    let three = shop.0.finish(&three).await;
    assert_eq!(three.status, Status::Success);
    insta::assert_snapshot!(told(&shop.0, &run).await.replace(three.id.as_str(), "T"), @"
    run Failed: Stage ship was not rolled back: run T has deployed there since. What that run deployed is still there; roll that run back if it is to go.
    ship Failed
    ");
    assert_eq!(shop.runs().await, image("3"));
    shop.0.assert_clean(&run.id).await;
    assert_eq!(shop.0.holds().await, Vec::<String>::new());
}

/// Found by a tester: `PipelineRollback` looks at what is there as a rollback after the run does.
#[tokio::test(start_paused = true)]
async fn a_run_is_not_rolled_back_over_who_deployed_after_its_stage() {
    let shop = Shop::new().await;
    let all = ROLL_BACK.replace("StageRollback", "PipelineRollback");
    let last = wait("while", "1h") + &script("bad", "fail", "");
    let whole = rollout().replace(": release\n", ": slow\n") + &stage("last", &last, "", &all);
    shop.0.apply(&whole).await;
    shop.deploy("1").await;
    let slow = shop.start_of("slow", "2", "1s").await;
    let run = shop.0.finish(&slow).await;
    assert_eq!(run.status, Status::Failed);
    assert_eq!(
        shop.runs().await,
        image("1"),
        "{}",
        told(&shop.0, &run).await
    );

    let slow = shop.start_of("slow", "2", "1s").await;
    shop.0.runs.clock.sleep(Duration::from_secs(30 * 60)).await;
    assert_eq!(shop.runs().await, image("2"));
    let three = shop.deploy("3").await;
    let run = shop.0.finish(&slow).await;
    assert_eq!(run.status, Status::Failed);
    let told = told(&shop.0, &run).await.replace(three.id.as_str(), "T");
    assert!(
        told.contains("Stage ship was not rolled back: run T has deployed there since."),
        "{told}"
    );
    assert_eq!(shop.runs().await, image("3"));
    // What stands is a deployment that can be rolled back.
    assert_eq!(shop.there().await.refusal, None);
    shop.0.assert_clean(&run.id).await;
    assert_eq!(shop.0.holds().await, Vec::<String>::new());
}

/// Found by a tester: the run was told of that the run before it had deployed there *since*.
#[tokio::test(start_paused = true)]
async fn what_a_run_put_beside_the_version_that_serves_is_rolled_back() {
    let shop = Shop::new().await;
    let only = of_canaries("canary", &["EcsCanaryDeploy"]);
    let tried = of_canaries("tried", &["EcsCanaryDeploy", "EcsCanaryDelete"]);
    shop.0.apply(&only).await;
    shop.0.apply(&tried).await;
    shop.deploy("1").await;
    let two = shop.deploy("2").await;
    let of = async |pipeline: &str, tag: &str| {
        let run = shop.start_of(pipeline, tag, "1s").await;
        let run = shop.0.finish(&run).await;
        assert_eq!(run.status, Status::Success, "{}", told(&shop.0, &run).await);
        run.id
    };
    let gone = of("tried", "3").await;
    let why = refusal(shop.0.undo(undo(&gone)).await, &gone);
    insta::assert_snapshot!(why.replace(two.id.as_str(), "S"), @"run R left no version of service shop to environment prod (infrastructure cluster): what is there is what run S deployed before it; there is nothing to roll back");

    let canary = of("canary", "3").await;
    assert_eq!(shop.canary().await, json!(1));
    let why = refusal(shop.0.undo(undo(&two.id)).await, &two.id);
    insta::assert_snapshot!(why.replace(canary.as_str(), "C"), @"run C has put another version of service shop to environment prod (infrastructure cluster) beside that of run R since: roll run C back first, or deploy the version that you want");
    let run = shop.roll_back(&canary).await;
    insta::assert_snapshot!(told(&shop.0, &run).await, @"
    run Success
    ship Success
    ship.rollbackSteps.ecscanarydelete #0 Success
    ship.rollbackSteps.ecsrollingrollback #0 Success
    ");
    assert_eq!(
        (shop.canary().await, shop.runs().await),
        (Value::Null, json!(image("2")))
    );
    let run = shop.roll_back(&two.id).await;
    assert_eq!(
        (run.status, shop.runs().await),
        (Status::Success, json!(image("1")))
    );
    shop.0.assert_clean(&run.id).await;
}

/// A canary that stays beside what a later run deployed is still that of its run.
#[tokio::test(start_paused = true)]
async fn who_deployed_first_says_so_only_where_it_is_so() {
    let shop = Shop::new().await;
    shop.0
        .apply(&of_canaries("canary", &["EcsCanaryDeploy"]))
        .await;
    shop.deploy("1").await;
    let canary = shop.start_of("canary", "2", "1s").await;
    shop.0.finish(&canary).await;
    let three = shop.deploy("3").await;
    let asked = outlook(&shop.0.runs, &three.id, &Which::All).await;
    assert!(matches!(asked, Ok(Outlook::Allowed(_))), "{asked:?}");
    let run = shop.roll_back(&canary).await;
    assert_eq!(run.status, Status::Success, "{}", told(&shop.0, &run).await);
    assert_eq!(
        (shop.canary().await, shop.runs().await),
        (Value::Null, json!(image("3")))
    );
}

/// The artifact that a rollback leads to, by its expressions: the same before and after the run has deployed.
#[tokio::test(start_paused = true)]
async fn the_artifact_before_has_a_name() {
    let word = "<+rollbackArtifact.version> <+rollbackArtifact.metadata.image>";
    let steps = says("early", word) + &step("rollout", "EcsRollingDeploy") + &says("late", word);
    let rollback = step("rollback", "EcsRollingRollback");
    let ship = deployment(&stage("ship", &steps, &rollback, ROLL_BACK));
    let telling = with_inputs(&pipeline(&[ship])).replace(": release\n", ": telling\n");
    let words = async |shop: &Shop, run: &RunId| {
        let nodes = shop.0.store.list_nodes(run, None).await;
        let nodes = nodes.expect("nodes");
        let word = |id: &str| {
            let node = nodes.iter().find(|node| node.identifier.as_str() == id);
            let said = node.map(|node| node.outputs["output"]["outputVariables"]["word"].clone());
            said.unwrap_or_default()
        };
        [word("early"), word("late")]
    };
    let shop = Shop::new().await;
    shop.0.apply(&telling).await;
    // Before the first deployment there is none.
    let first = shop.start_of("telling", "1", "1s").await;
    let first = shop.0.finish(&first).await;
    assert_eq!(first.status, Status::Failed);
    let story = shop.0.story(&first).await;
    assert!(story.contains("rollbackArtifact.version"), "{story}");
    shop.deploy("1").await;
    for (tag, before) in [("2", "1"), ("3", "2")] {
        let run = shop.start_of("telling", tag, "1s").await;
        let ended = shop.0.finish(&run).await;
        let story = told(&shop.0, &ended).await;
        assert_eq!(ended.status, Status::Success, "{story}");
        let expected = json!(format!("{before} {}", image(before)));
        assert_eq!(words(&shop, &run).await, [expected.clone(), expected]);
    }
}

/// Found by the simulation (seed 7443): the first stage was rolled back first, found the deployment of the second one and left
/// it alone; so the second one went back to the first, and the service stayed on what the run had deployed.
#[tokio::test(start_paused = true)]
async fn stages_beside_each_other_that_deployed_one_service_are_rolled_back_the_last_one_first() {
    let shop = Shop::new().await;
    shop.deploy("1").await;
    let ship = |id: &str| {
        let rollback = step("rollback", "EcsRollingRollback");
        deployment(&stage(
            id,
            &step("rollout", "EcsRollingDeploy"),
            &rollback,
            "",
        ))
    };
    let back = ROLL_BACK.replace("StageRollback", "PipelineRollback");
    let stages = [
        together(&[
            ship("one"),
            ship("two"),
            stage("free", &script("a", "ok", ""), &script("b", "ok", ""), ""),
        ]),
        stage("bad", &script("check", "fail", ""), "", &back),
    ];
    let whole = with_inputs(&pipeline(&stages)).replace(": release\n", ": both\n");
    shop.0.apply(&whole).await;
    let run = shop.start_of("both", "2", "1s").await;
    let run = shop.0.finish(&run).await;
    let why = run.failure.as_ref().expect("it failed");
    assert_eq!(why.left_behind, None, "{why:?}");
    assert!(
        why.message
            .contains("The run was rolled back: one, two, free."),
        "{why:?}"
    );
    assert_eq!(shop.runs().await, image("1"));
    let nodes = shop.0.store.list_nodes(&run.id, None).await.expect("nodes");
    let began = |stage: &str| {
        let own = nodes
            .iter()
            .find(|node| node.stage.as_str() == stage && node.identifier.as_str() == "rollback");
        own.map(|node| node.started_ms)
    };
    assert!(
        began("two") < began("one"),
        "{:?} {:?}",
        began("two"),
        began("one")
    );
    shop.0.assert_clean(&run.id).await;
}
