//! Artifacts that only the run can name, looked up by functions that die.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use slipway_engine::gather::SourceReader;
use slipway_model::id::Scope;
use slipway_model::status::{Failure, Status};
use slipway_plan::{
    ArtifactAnswer, ArtifactVersion, ConnectorPlan, Fetched, FoundArtifact, ListedVersions,
    RemoteFiles, WantedArtifact,
};
use slipway_store::record::RunRecord;
use slipway_world::yaml::{deployment, pipeline, says, stage};
use slipway_world::{NoSources, Options, World};

/// A registry whose tags move: each answer is another image.
#[derive(Default)]
struct Restless(AtomicUsize);

#[async_trait]
impl SourceReader for Restless {
    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        NoSources.fetch_files(wanted).await
    }

    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>> {
        let each = wanted.iter().map(|wanted| {
            let number = self.0.fetch_add(1, Ordering::SeqCst);
            let Some(ArtifactVersion::Exact(tag)) = &wanted.question.version else {
                return Err("no tag is named".to_owned());
            };
            Ok(ArtifactAnswer::Found(FoundArtifact {
                version: tag.clone(),
                digest: Some(format!("sha256:{number:064x}")),
                ..FoundArtifact::default()
            }))
        });
        each.collect()
    }

    async fn list_versions(
        &self,
        wanted: &WantedArtifact,
        skip: usize,
        most: usize,
    ) -> Result<ListedVersions, String> {
        NoSources.list_versions(wanted, skip, most).await
    }

    async fn test_connection(
        &self,
        connector: &ConnectorPlan,
        scope: &Scope,
    ) -> Option<Result<(), Failure>> {
        NoSources.test_connection(connector, scope).await
    }
}

/// What the steps of the run saw, and what is kept of the answer.
async fn seen(world: &World, run: &RunRecord) -> (Vec<String>, String) {
    let nodes = world.store.list_nodes(&run.id, None).await;
    let nodes = nodes.expect("nodes");
    let word = |id: &str| {
        let node = nodes.iter().find(|node| node.identifier.as_str() == id);
        let said = &node.expect("the step").outputs["output"]["outputVariables"]["word"];
        said.as_str().unwrap_or("?").to_owned()
    };
    let pinned = nodes.iter().find(|node| node.node_type == "PinArtifacts");
    let kept = pinned
        .expect("the step that looks it up")
        .outputs
        .to_string();
    (vec![word("before"), word("after")], kept)
}

/// The tag moves while the function is away: who begins again takes what is recorded, and otherwise asks once more, but the
/// stage never sees two images.
#[tokio::test(start_paused = true)]
async fn a_stage_has_one_artifact_wherever_the_function_that_looks_it_up_dies() {
    let registry = Arc::new(Restless::default());
    let options = Options {
        in_memory: true,
        sources: registry.clone(),
        ..Options::default()
    };
    let world = World::with(options).await;
    let tag = "<+pipeline.stages.build.spec.execution.steps.make.output.outputVariables.word>";
    let shop = include_str!("undo/shop.yaml");
    let late = shop.replace("tag: <+pipeline.variables.tag>", &format!("tag: {tag}"));
    assert_ne!(late, shop);
    world.apply(&late).await;
    let build = stage("build", &says("make", "v7"), "", "");
    let steps = says("before", "<+artifact.image>") + &says("after", "<+artifact.image>");
    let ship = deployment(&stage("ship", &steps, "", ""));
    world.apply(&pipeline(&[build, ship])).await;

    let (mut crashes, mut asked_again) = (0, 0);
    for request in (1..).step_by(2) {
        let asked = registry.0.load(Ordering::SeqCst);
        world.crash.arm(request, crashes % 2 == 0);
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let died = !world.crash.is_armed();
        world.crash.disarm();
        let story = world.story(&run).await;
        assert_eq!(run.status, Status::Success, "request {request}: {story}");
        let (words, kept) = seen(&world, &run).await;
        let digest = words[0].rsplit('@').next().unwrap_or_default();
        assert!(
            digest.starts_with("sha256:"),
            "request {request}: {words:?}"
        );
        assert_eq!(words[0], words[1], "request {request}");
        assert!(kept.contains(digest), "request {request}: {kept}");
        world.assert_clean(&run.id).await;
        match registry.0.load(Ordering::SeqCst) - asked {
            1 => {}
            2 if died => asked_again += 1,
            times => panic!("request {request}: asked {times} times"),
        }
        if !died {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 20, "{crashes}");
    assert!(asked_again > 0, "no crash was between question and record");
}

/// The source of the service: two artifacts that scripts list, the image by a pattern and the sidecar by its name.
fn scripted(shop: &str) -> String {
    let source = |identifier: &str, version: &str, items: &str| {
        format!(
            "{{identifier: {identifier}, type: CustomArtifact, spec: {{{version}, timeout: 20m, delegateSelectors: [linux], \
             inputs: [{{name: NAME, type: String, value: <+service.name>}}], scripts: {{fetchAllArtifacts: {{\
             artifactsArrayPath: $.items, versionPath: version, attributes: [{{name: url, type: String, value: 'assets[0].url'}}], \
             spec: {{shell: Bash, source: {{type: Inline, spec: {{script: 'list {{\"items\": [{items}]}}'}}}}}}}}}}}}}}"
        )
    };
    let item = |version: &str, url: &str| {
        format!("{{\"version\": \"{version}\", \"assets\": [{{\"url\": \"{url}\"}}]}}")
    };
    let word = "<+pipeline.stages.build.spec.execution.steps.make.output.outputVariables.word>";
    let images = [
        item("shop:1.9", "nine"),
        item("shop:1.10", "ten"),
        item("other:3", "three"),
    ];
    let image = source("image", "versionRegex: 'shop:.*'", &images.join(", "));
    let agent = source(
        "agent",
        &format!("version: {word}"),
        &item("v7", "<+service.identifier>"),
    );
    let (before, _) = shop
        .split_once("            - identifier: image")
        .expect("the source");
    format!("{before}            - {image}\n        sidecars: [{{sidecar: {agent}}}]\n")
}

/// Each script is given to a delegate once per attempt, and what it listed is what all steps see, whoever dies between.
#[tokio::test(start_paused = true)]
async fn a_stage_asks_the_scripts_of_its_artifacts_wherever_its_function_dies() {
    let world = World::with(Options {
        in_memory: true,
        ..Options::default()
    })
    .await;
    world.apply(&scripted(include_str!("undo/shop.yaml"))).await;
    let build = stage("build", &says("make", "v7"), "", "");
    let agent = "<+artifacts.sidecars.agent.version> <+artifacts.sidecars.agent.metadata.url>";
    let steps = says(
        "before",
        &format!("<+artifact.image> <+artifact.metadata.url> {agent}"),
    ) + &says("after", "<+artifact.tag>");
    let ship = deployment(&stage("ship", &steps, "", ""));
    world.apply(&pipeline(&[build, ship])).await;

    let mut crashes = 0;
    for request in (1..).step_by(3) {
        world.crash.arm(request, crashes % 2 == 0);
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let died = !world.crash.is_armed();
        world.crash.disarm();
        let story = world.story(&run).await;
        assert_eq!(run.status, Status::Success, "request {request}: {story}");
        let (words, _) = seen(&world, &run).await;
        assert_eq!(
            words,
            ["shop:1.10 ten v7 shop", "shop:1.10"],
            "request {request}"
        );
        let done = world.deeds.list();
        let pins = done
            .iter()
            .filter(|task| task.contains(run.id.as_str()) && task.contains("__artifacts"));
        let each: std::collections::BTreeSet<_> = pins.collect();
        assert_eq!(each.len(), 2, "request {request}: {each:?}");
        world.assert_clean(&run.id).await;
        if !died {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 20, "{crashes}");
}

/// What keeps a script from telling an artifact fails the stage with what to do.
#[tokio::test(start_paused = true)]
async fn a_script_that_tells_no_artifact_fails_its_stage_and_says_why() {
    let world = World::with(Options {
        in_memory: true,
        ..Options::default()
    })
    .await;
    let shop = scripted(include_str!("undo/shop.yaml"));
    let build = stage("build", &says("make", "v7"), "", "");
    let ship = deployment(&stage("ship", &says("before", "<+artifact.image>"), "", ""));
    world.apply(&pipeline(&[build, ship])).await;
    let list = "list {\"items\": [{\"version\": \"v7\"";
    let table = [
        (
            "shop:1.",
            "sloop:1.",
            "`image` cannot be had: its script lists 3 artifacts, and none of them has a version that matches `shop:.*`",
        ),
        (
            list,
            "list {\"items\": [{\"name\": \"v7\"",
            "`agent` cannot be had: `versionPath` does not lead to a version in artifact 1",
        ),
        (
            "list {\"items\": [{\"version\": \"shop",
            "list <{\"version\": \"shop",
            "is no JSON",
        ),
        (
            "versionPath: version, ",
            "",
            "`scripts.fetchAllArtifacts.versionPath` is missing",
        ),
        ("shell: Bash", "shell: PowerShell", ""),
    ];
    for (from, to, expected) in table {
        let changed = shop.replacen(from, to, if from == "shop:1." { 9 } else { 1 });
        assert_ne!(changed, shop, "{from}");
        world.apply(&changed).await;
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        let story = world.story(&run).await;
        let nodes = world.store.list_nodes(&run.id, None).await.expect("nodes");
        let failure = nodes.iter().find(|node| node.node_type == "PinArtifacts");
        let failure = failure.and_then(|node| node.failure.as_ref());
        match expected {
            "" => assert_eq!(run.status, Status::Success, "{story}"),
            expected => {
                let told = &failure.expect("a failure").message;
                assert!(told.contains(expected), "{from}: {told}");
                assert_eq!(run.status, Status::Failed, "{from}");
            }
        }
    }
}
