//! Where a Lambda stage deploys to.

use std::fmt;

use slipway_model::status::Failure;

use crate::aws::AwsTarget;
use crate::context::StepContext;
use crate::deployment::invalid;
use crate::deployment::spec::text;

/// A region of an account, with clients that may change it.
pub(super) struct Site {
    pub(super) aws: AwsTarget,
    /// `identifier` of the infrastructure definition, for messages.
    pub(super) infrastructure: String,
}

impl Site {
    /// The site of the stage's infrastructure definition.
    pub(super) async fn of_stage(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let stage = cx.stage();
        let Some(infrastructure) = &stage.infrastructure else {
            return Err(invalid(format!(
                "cannot tell where to deploy: stage {} has no infrastructure.",
                stage.identifier
            )));
        };
        let spec = cx.evaluate(&infrastructure.spec)?;
        let Some(region) = text(&spec, "region") else {
            return Err(invalid(format!(
                "cannot tell where to deploy: `region` of infrastructure {} is empty.",
                infrastructure.identifier
            )));
        };
        Ok(Self {
            aws: cx.aws(&region).await?,
            infrastructure: infrastructure.identifier.to_string(),
        })
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
