//! Where an Auto Scaling stage deploys to, and its calls.

use std::fmt;

use serde_json::Value;
use slipway_model::status::Failure;

use super::invalid;
use crate::aws::AwsTarget;
use crate::aws::error::{Doing, code, failure};
use crate::context::StepContext;
use crate::deployment::spec::text;

/// A region, with clients that may change it.
pub(super) struct Site {
    pub(super) aws: AwsTarget,
    /// `identifier` of the infrastructure definition, for messages.
    pub(super) infrastructure: String,
    /// `baseAsgName`: the group that new ones are made like.
    pub(super) base: Option<String>,
}

/// What a call is for, in words that follow "Cannot".
pub(super) struct Ask<'a> {
    pub(super) action: &'a str,
    pub(super) request: &'a Value,
    pub(super) doing: &'a str,
}

impl Site {
    /// The site of the stage's infrastructure definition.
    pub(super) async fn of_stage(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        Self::with(cx, false).await
    }

    /// The same, with the connector and region of the step's own spec where it names them.
    pub(super) async fn of_step(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        Self::with(cx, true).await
    }

    async fn with(cx: &mut StepContext<'_>, own: bool) -> Result<Self, Failure> {
        let stage = cx.stage();
        let Some(infrastructure) = &stage.infrastructure else {
            return Err(invalid(format!(
                "cannot tell where to deploy: stage {} has no infrastructure.",
                stage.identifier
            )));
        };
        let spec = cx.evaluate(&infrastructure.spec)?;
        let named = own.then(|| text(cx.spec(), "region")).flatten();
        let region = named.or_else(|| text(&spec, "region")).ok_or_else(|| {
            invalid(format!(
                "cannot tell where to deploy: `region` of infrastructure {} is empty.",
                infrastructure.identifier
            ))
        })?;
        let connector = cx.step().connector.as_deref().filter(|_| own);
        Ok(Self {
            aws: match connector {
                Some(connector) => cx.aws_through(connector, &region).await?,
                None => cx.aws(&region).await?,
            },
            infrastructure: infrastructure.identifier.to_string(),
            base: text(&spec, "baseAsgName"),
        })
    }

    /// Asks Auto Scaling.
    pub(super) async fn scaling(
        &self,
        action: &str,
        request: &Value,
        doing: &str,
    ) -> Result<Value, Failure> {
        let doing = format!("{doing} in {self}");
        let answer = self.aws.auto_scaling.call(action, request).await;
        answer.map_err(|error| failure(Doing::with(&doing), error))
    }

    /// The same; `None` where AWS answers with one of these codes and, where one is given, a message that holds this.
    pub(super) async fn scaling_unless(
        &self,
        ask: Ask<'_>,
        (codes, part): (&[&str], &str),
    ) -> Result<Option<Value>, Failure> {
        let doing = format!("{} in {self}", ask.doing);
        let answer = self.aws.auto_scaling.call(ask.action, ask.request).await;
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => {
                let known = code(&error).is_some_and(|code| codes.contains(&code));
                let error = failure(Doing::with(&doing), error);
                match known && error.message.contains(part) {
                    true => Ok(None),
                    false => Err(error),
                }
            }
        }
    }

    /// Asks EC2.
    pub(super) async fn ec2(
        &self,
        action: &str,
        request: &Value,
        doing: &str,
    ) -> Result<Value, Failure> {
        let doing = format!("{doing} in {self}");
        let answer = self.aws.ec2.call(action, request).await;
        answer.map_err(|error| failure(Doing::with(&doing), error))
    }

    /// The same; `None` where AWS answers with one of these codes.
    pub(super) async fn ec2_unless(
        &self,
        ask: Ask<'_>,
        codes: &[&str],
    ) -> Result<Option<Value>, Failure> {
        let doing = format!("{} in {self}", ask.doing);
        match self.aws.ec2.call(ask.action, ask.request).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if code(&error).is_some_and(|code| codes.contains(&code)) => Ok(None),
            Err(error) => Err(failure(Doing::with(&doing), error)),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (infrastructure {})",
            self.aws.region, self.infrastructure
        )
    }
}
