//! Where an ECS stage deploys to.

use std::fmt;

use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};

use crate::aws::AwsTarget;
use crate::context::StepContext;

/// A cluster in a region, with clients that may change it.
pub(super) struct Site {
    pub(super) aws: AwsTarget,
    pub(super) cluster: String,
    /// `identifier` of the infrastructure definition, for messages.
    pub(super) infrastructure: String,
}

impl Site {
    /// The site of the stage's infrastructure definition.
    pub(super) async fn of_stage(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let stage = cx.stage();
        let Some(infrastructure) = &stage.infrastructure else {
            return Err(bad_site(format!(
                "stage {} has no infrastructure",
                stage.identifier
            )));
        };
        let spec = cx.evaluate(&infrastructure.spec)?;
        let field = |name: &str| match &spec[name] {
            Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(bad_site(format!(
                "`{name}` of infrastructure {} is empty",
                infrastructure.identifier
            ))),
        };
        let (region, cluster) = (field("region")?, field("cluster")?);
        Ok(Self {
            aws: cx.aws(&region).await?,
            cluster,
            infrastructure: infrastructure.identifier.to_string(),
        })
    }

    /// The cluster's short name: AWS takes name or ARN, and some ids are made of the name.
    pub(super) fn cluster_name(&self) -> &str {
        self.cluster.rsplit('/').next().unwrap_or(&self.cluster)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            aws,
            cluster,
            infrastructure,
        } = self;
        write!(
            f,
            "cluster {cluster} in {} (infrastructure {infrastructure})",
            aws.region
        )
    }
}

fn bad_site(why: String) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!("Invalid request: cannot tell where to deploy: {why}."),
        left_behind: None,
    }
}
