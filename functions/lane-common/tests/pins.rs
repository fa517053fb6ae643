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
