//! `AwsLambdaCanaryDeploy`: a new version of a function that gets no traffic yet.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::alias::Target;
use super::calls;
use super::instances::{self, Change};
use super::manifest::alias_name;
use super::ready::{Ready, ready};
use super::release::{Phase, Release};
use super::snapshot::RollbackData;
use super::{DEPLOY, PREPARE, deploy};
use crate::context::StepContext;
use crate::deployment::spec::check;
use crate::deployment::{FETCH, invalid, told};
use crate::step::{Progress, Step, Undo};

/// The step.
pub struct CanaryDeploy;

#[async_trait]
impl Step for CanaryDeploy {
    fn step_type(&self) -> &'static str {
        "AwsLambdaCanaryDeploy"
    }

    fn units(&self) -> &'static [&'static str] {
        &[FETCH, PREPARE, DEPLOY]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Step("AwsLambdaCanaryRollback")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let result = match Release::resume(cx).await {
            Ok(release) => go_on(release, cx).await,
            Err(failure) => Err(failure),
        };
        told(cx, self.units(), result)
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        deploy::stop(cx)
    }
}

async fn go_on(mut release: Release, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
    release.shares = true;
    if release.state.phase == Phase::Prepare {
        check_aliases(&release)?;
    }
    loop {
        let pause = match release.state.phase {
            Phase::Alias => alias(&mut release, cx).await?,
            Phase::Note => return note(&release, cx).await.map(Progress::Done),
            _ => release.go_on(cx).await?,
        };
        release.save(cx).await?;
        if let Some(pause) = pause {
            return Ok(Progress::Again(pause));
        }
    }
}

/// Packages need an alias to share traffic with; for images it is the user's affair (Harness's canary steps).
fn check_aliases(release: &Release) -> Result<(), Failure> {
    let documents = &release.documents;
    if documents.aliases.is_empty() && !documents.is_image() {
        return Err(invalid(format!(
            "a canary of function {} needs an alias, through which it gets its share of the traffic: add an \
             AwsLambdaFunctionAliasDefinition manifest to the service.",
            documents.short_name()
        )));
    }
    Ok(())
}

/// Aliases that are there stay as they are; those that are not get to where the traffic is: the version before, or
/// the new one where there was none.
async fn alias(
    release: &mut Release,
    cx: &mut StepContext<'_>,
) -> Result<Option<Duration>, Failure> {
    let base = release
        .state
        .rollback
        .as_ref()
        .and_then(RollbackData::version);
    let base = base.unwrap_or_else(|| release.version()).to_owned();
    let aliases = release.documents.aliases.clone();
    for manifest in &aliases {
        let name = alias_name(manifest);
        if calls::alias(&release.site, release.name(), name)
            .await?
            .is_some()
        {
            cx.info(
                DEPLOY,
                format!(
                    "Alias {name} stays where it is: the canary gets traffic when it is shifted"
                ),
            );
            continue;
        }
        if let Ready::NotYet(_) = ready(&release.site, release.name(), &base).await? {
            return Ok(Some(release.pause()));
        }
        let target = Target {
            site: &release.site,
            function: release.documents.name(),
            unit: DEPLOY,
        };
        target.point(cx, manifest, &base).await?;
    }
    release.state.phase = Phase::Note;
    Ok(None)
}

async fn note(release: &Release, cx: &mut StepContext<'_>) -> Result<Value, Failure> {
    let deployed = instances::Deployed::of(release);
    let found = instances::note(cx, &release.site, &deployed, Change::Beside).await?;
    cx.info(
        DEPLOY,
        format!(
            "Canary version {} of function {} is there",
            release.version(),
            release.documents.short_name()
        ),
    );
    cx.unit_ended(DEPLOY, true);
    let canary: Vec<Value> = found
        .into_iter()
        .filter(|one| one["version"] == json!(release.version()))
        .collect();
    Ok(release.outputs(&canary))
}
