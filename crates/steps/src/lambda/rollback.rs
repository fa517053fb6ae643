//! `AwsLambdaRollback` and `AwsLambdaCanaryRollback`: bring a function back to how the release of their stage found it.

use async_trait::async_trait;
use serde_json::Value;
use slipway_model::status::Failure;

use super::ROLLBACK;
use super::undo;
use crate::context::StepContext;
use crate::deployment::spec::check;
use crate::step::{Progress, Step, Undo};

/// The step that undoes `AwsLambdaDeploy`.
pub struct Rollback;

/// The step that undoes `AwsLambdaCanaryDeploy` and what was shifted to it.
pub struct CanaryRollback;

#[async_trait]
impl Step for Rollback {
    fn step_type(&self) -> &'static str {
        "AwsLambdaRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of AwsLambdaDeploy")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        undo::advance(cx, "AwsLambdaDeploy").await
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        undo::stop(cx, "AwsLambdaDeploy").await
    }
}

#[async_trait]
impl Step for CanaryRollback {
    fn step_type(&self) -> &'static str {
        "AwsLambdaCanaryRollback"
    }

    fn units(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        check(spec, &[])
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("it is itself the undoing of AwsLambdaCanaryDeploy")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        undo::advance(cx, "AwsLambdaCanaryDeploy").await
    }

    async fn stop(&self, cx: &mut StepContext<'_>) -> Result<(), Failure> {
        undo::stop(cx, "AwsLambdaCanaryDeploy").await
    }
}
