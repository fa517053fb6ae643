//! `AwsLambdaDeploy`: a new version of a function, to which its aliases point then.
//!
//! An alias that points to `$LATEST` points to what that was, as a version of its own, until the new version is ready: new
//! code would serve there before it is seen to work. What is no field of `CreateFunction`, as reserved concurrency and
//! function URLs, is refused with the command that sets it; deployments leave it as it is.

use async_trait::async_trait;
use serde_json::Value;
use slipway_model::status::Failure;

use super::alias::Target;
use super::instances::{self, Change};
use super::release::{Phase, Release, State};
use super::snapshot::RollbackData;
use super::{DEPLOY, PREPARE};
use crate::context::StepContext;
use crate::deployment::spec::check;
use crate::deployment::{FETCH, told};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct Deploy;

#[async_trait]
impl Step for Deploy {
    fn step_type(&self) -> &'static str {
        "AwsLambdaDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Step("AwsLambdaRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Release::resume(cx).await {
            Ok(release) => go_on(release, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        stop(cx)
    }
}

async fn go_on(mut release: Release, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    loop {
        let pause = match release.state.phase {
            Phase::Alias => {
                point(&release, cx).await?;
                release.state.phase = Phase::Note;
                None
            }
            Phase::Note => return note(&release, cx).await.map(Progress::Done),
            _ => release.go_on(cx).await?,
        };
        release.save(cx).await?;
        if let Some(pause) = pause {
            return Ok(Progress::Again(pause));
        }
    }
}

/// Points every alias of the manifests to the new version, which is Active.
async fn point(release: &Release, cx: &mut StepContext<'_>) -> Result<(), Failure> {
    let documents = &release.documents;
    let (name, version) = (documents.short_name(), release.version());
    cx.info(
        DEPLOY,
        format!("Successfully deployed lambda function: [{name}]"),
    );
    if documents.aliases.is_empty() {
        return Ok(());
    }
    cx.info(
        DEPLOY,
        format!("Create or Update Aliases for function {name} with version {version}."),
    );
    let target = Target {
        site: &release.site,
        function: documents.name(),
        unit: DEPLOY,
    };
    for alias in &documents.aliases {
        target.point(cx, alias, version).await?;
    }
    cx.info(DEPLOY, "Done Creating Aliases");
    Ok(())
}

async fn note(release: &Release, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
    let before = release
        .state
        .rollback
        .as_ref()
        .and_then(RollbackData::replaced);
    let deployed = instances::Deployed::of(release);
    let found = instances::note(cx, &release.site, &deployed, Change::Deployed(before)).await?;
    cx.info(DEPLOY, "Done");
    cx.unit_ended(DEPLOY, true);
    Ok(release.outputs(&found))
}

/// Says where a release stood that had to stop.
pub(super) fn stop(cx: &mut StepContext<'_>) -> Result<(), Failure> {
    let state: State = cx.saved()?;
    if state.phase > Phase::Prepare {
        let unit = if cx.unit_is_open(PREPARE) {
            PREPARE
        } else {
            DEPLOY
        };
        cx.warn(
            unit,
            "The function may have the new code or configuration until a rollback step or another deployment changes it",
        );
    }
    Ok(())
}
