//! Pipelines that are kept in Git, started from the branch that their trigger names.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use slipway_engine::gather::SourceReader;
use slipway_model::id::{EntityId, Scope};
use slipway_model::status::{Failure, Status};
use slipway_plan::{
    ArtifactAnswer, ConnectorPlan, Fetched, GitVersion, ListedVersions, RemoteFiles, RemotePlace,
    WantedArtifact,
};
use slipway_store::record::{EntityRecord, GitPlace};
use slipway_world::yaml::{pipeline, says, stage};
use slipway_world::{World, scope};

use super::{deliver, history, on_push, only_run, push, runs, said, world};

const CODE: &str = "connector:\n  name: code\n  identifier: code\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Git\n  spec:\n    url: https://code.example/shop\n    type: Http\n    connectionType: Repo\n    spec: {}\n";

/// A repository with two branches.
struct Branches;

#[async_trait]
impl SourceReader for Branches {
    async fn fetch_files(&self, wanted: &[RemoteFiles]) -> Vec<Result<Fetched, String>> {
        let read = |wanted: &RemoteFiles| {
            let RemotePlace::Git {
                version: GitVersion::Branch(branch),
                ..
            } = &wanted.place
            else {
                return Err("only branches are read here".to_owned());
            };
            if !["main", "trunk"].contains(&branch.as_str()) {
                return Err(format!("there is no branch `{branch}`"));
            }
            let text = pipeline(&[stage(
                "build",
                &says("told", &format!("of {branch}")),
                "",
                "",
            )]);
            Ok(Fetched {
                commit: Some(format!("commit-of-{branch}")),
                branch: None,
                files: vec![(wanted.paths[0].clone(), text.into())],
            })
        };
        wanted.iter().map(read).collect()
    }

    async fn find_artifacts(
        &self,
        wanted: &[WantedArtifact],
    ) -> Vec<Result<ArtifactAnswer, String>> {
        wanted
            .iter()
            .map(|_| Err("nothing is pinned here".to_owned()))
            .collect()
    }

    async fn list_versions(
        &self,
        _: &WantedArtifact,
        _: usize,
        _: usize,
    ) -> Result<ListedVersions, String> {
        Err("nothing is listed here".to_owned())
    }

    async fn test_connection(&self, _: &ConnectorPlan, _: &Scope) -> Option<Result<(), Failure>> {
        None
    }
}

/// A world whose pipeline is kept in Git, on the branch `trunk`.
async fn in_git() -> World {
    let world = world().await;
    world.apply(CODE).await;
    let id = EntityId::new("release");
    let kept = world
        .store
        .get_entity(&scope(), "pipeline", None, &id)
        .await
        .expect("the pipeline");
    let git = GitPlace {
        connector: "code".to_owned(),
        path: ".harness/release.yaml".to_owned(),
        branch: Some("trunk".to_owned()),
        ..GitPlace::default()
    };
    let remote = EntityRecord {
        git: Some(git),
        ..kept.clone()
    };
    world
        .store
        .put_entity(&remote, Some(kept.version))
        .await
        .expect("stored");
    world
}

/// A push to `main` that is handled where the branches are.
async fn pushed(world: &World, more: &str) {
    let trigger = on_push("t", "").replace("  source:\n", &format!("{more}  source:\n"));
    world.apply(&trigger).await;
    let body = push("0", "a", "2026-01-01T00:00:00Z");
    let (status, answer) = deliver(&world.unheard_hooks(), "d-1", &body).await;
    assert_eq!(status, 200, "{answer}");
    let sources: Arc<dyn SourceReader> = Arc::new(Branches);
    world
        .handle_from(answer["data"].as_str().expect("an event"), &sources)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_push_starts_the_pipeline_of_its_own_branch() {
    for (more, branch) in [
        ("  pipelineBranchName: <+trigger.branch>\n", "main"),
        ("  pipelineBranchName: trunk\n", "trunk"),
        ("", "trunk"),
    ] {
        let world = in_git().await;
        pushed(&world, more).await;
        let run = world.finish(&only_run(&world).await).await;
        assert_eq!(run.status, Status::Success, "{:?}", run.failure);
        let git = run.git.clone().expect("it was read from Git");
        assert_eq!(
            json!([git.branch, git.commit]),
            json!([branch, format!("commit-of-{branch}")])
        );
        assert_eq!(said(&world, &run.id).await, format!("of {branch}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_is_not_there_starts_nothing_and_says_so() {
    let world = in_git().await;
    pushed(&world, "  pipelineBranchName: gone\n").await;
    assert!(runs(&world).await.is_empty());
    let rows = history(&world, "t").await;
    let why = rows[0].message.clone();
    assert!(why.contains("there is no branch `gone`"), "{why}");
}
