//! `<+rollbackArtifact.…>`: the artifact that was deployed where the stage deploys to before the run came, which is the one
//! that a rollback leads to. Harness's expressions have its `version` and its `metadata.image`; `tag` is `version`.

use serde_json::{Value as Json, json};
use slipway_engine::error::{Doing, RunError};
use slipway_engine::runs::{Runs, StageOfRun};
use slipway_expr::Value;
use slipway_model::id::RunId;
use slipway_plan::{ArtifactPlan, StagePlan};
use slipway_store::record::{Again, DeployedRecord, RunRecord};

/// The name of the expressions.
pub(crate) const NAME: &str = "rollbackArtifact";

/// What the expressions of a stage read; `None` where none of them does, or nothing was deployed there before.
pub(crate) async fn load(runs: &Runs, of_run: &StageOfRun) -> Result<Option<Value>, RunError> {
    let stage = of_run.stage();
    if !mentions(stage) {
        return Ok(None);
    }
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(None);
    };
    let place = (
        &service.identifier,
        &environment.identifier,
        &infrastructure.identifier,
    );
    let found = runs.store.find_deployed(&of_run.plan.scope, place).await;
    let found = found.doing(|| format!("read what service {} has deployed", service.identifier))?;
    let Some((noted, run)) = found.and_then(|there| before(there, &of_run.run)) else {
        return Ok(None);
    };
    let planned = match run {
        Some(run) => planned(runs, &run, stage).await,
        None => None,
    };
    let told = match planned.filter(|artifact| artifact.pinned.is_some() && artifact.tag.is_some())
    {
        Some(artifact) => {
            json!({"version": artifact.tag, "tag": artifact.tag, "metadata": artifact.metadata()})
        }
        None => told(&noted, service.artifact.as_ref()),
    };
    Ok(Some(Value::from_json(&told)))
}

/// The artifact that a run has deployed where a stage deploys to, as it was planned. A run that is not kept any more is an
/// old one.
async fn planned(runs: &Runs, run: &RunId, stage: &StagePlan) -> Option<ArtifactPlan> {
    let (_, plan) = runs.load(run).await.ok()?;
    let place = |stage: &StagePlan| {
        let service = stage.service.as_ref()?.identifier.clone();
        let environment = stage.environment.as_ref()?.identifier.clone();
        Some((
            service,
            environment,
            stage.infrastructure.as_ref()?.identifier.clone(),
        ))
    };
    let mut stages = plan.groups.iter().flatten();
    let found = stages.find(|other| place(other) == place(stage))?;
    found.service.as_ref()?.artifact.clone()
}

/// Whether a text of the stage may name it. Texts are not parsed: a false alarm costs one small query.
fn mentions(stage: &StagePlan) -> bool {
    serde_json::to_string(stage).is_ok_and(|text| text.contains(NAME))
}

/// What is noted of the deployment before that of the run, and whose it is: what the run has deployed itself, or the one that
/// it retries, is not it.
fn before(there: DeployedRecord, run: &RunRecord) -> Option<(String, Option<RunId>)> {
    let retried = run.origin.as_ref();
    let retried = retried.filter(|origin| origin.how == Again::Retry);
    let own = there.run == run.id || retried.is_some_and(|origin| origin.run == there.run);
    if own && there.restores.is_none() {
        let before = there.before?;
        return Some((before.artifact?, before.run));
    }
    let deployer = there.deployer().clone();
    Some((there.artifact?, Some(deployer)))
}

/// An image is noted whole, and others by their versions. The repository of a version is the one that the stage deploys from.
fn told(noted: &str, artifact: Option<&ArtifactPlan>) -> Json {
    let apart = |image: &str| {
        let (repository, version) = image.split_once('@').or_else(|| image.rsplit_once(':'))?;
        (!version.contains('/')).then(|| (repository.to_owned(), version.to_owned()))
    };
    let (version, image) = match apart(noted) {
        Some((_, version)) => (version, Some(noted.to_owned())),
        None => {
            let now = artifact.map(ArtifactPlan::metadata).unwrap_or_default();
            let repository = now["image"].as_str().and_then(apart);
            let image = repository.map(|(repository, _)| format!("{repository}:{noted}"));
            (noted.to_owned(), image)
        }
    };
    let mut metadata = json!({"tag": version});
    if let Some(image) = image {
        metadata["image"] = json!(image);
    }
    json!({"version": version, "tag": version, "metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(image: Option<&str>) -> ArtifactPlan {
        ArtifactPlan {
            identifier: "primary".to_owned(),
            kind: "DockerRegistry".to_owned(),
            spec: json!({}),
            image: image.map(str::to_owned),
            tag: Some("v2".to_owned()),
            pinned: None,
            late: None,
        }
    }

    #[test]
    fn what_is_noted_is_an_image_or_a_version_of_the_repository_that_is_deployed() {
        let now = Some("shop.example:5000/web:v2");
        for (noted, now, version, image) in [
            (
                "shop.example/web:v1",
                now,
                "v1",
                json!("shop.example/web:v1"),
            ),
            ("web@sha256:ab", now, "sha256:ab", json!("web@sha256:ab")),
            ("v1", now, "v1", json!("shop.example:5000/web:v1")),
            // The port is no tag.
            ("v1", Some("shop.example:5000/web"), "v1", Json::Null),
            ("web-1.zip", None, "web-1.zip", Json::Null),
        ] {
            let told = told(noted, Some(&artifact(now)));
            assert_eq!(told["metadata"]["image"], image, "{noted} {now:?}");
            assert_eq!(
                (&told["version"], &told["metadata"]["tag"]),
                (&json!(version), &json!(version))
            );
        }
        assert_eq!(told("v1", None)["version"], "v1");
    }
}
