//! Where an ECS stage deploys to.

use std::fmt;

use serde_json::Value;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;

use crate::aws::AwsTarget;
use crate::context::StepContext;
use crate::deployment::spec::text;

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
        Self::with(cx, &Value::Null, None).await
    }

    /// The same, with the connector, region and cluster of the step's own spec where it names them.
    pub(super) async fn of_step(cx: &mut StepContext<'_>) -> Result<Self, Failure> {
        let (spec, connector) = (cx.spec(), cx.step().connector.as_deref());
        Self::with(cx, spec, connector).await
    }

    async fn with(
        cx: &mut StepContext<'_>,
        own: &Value,
        connector: Option<&ConnectorPlan>,
    ) -> Result<Self, Failure> {
        let stage = cx.stage();
        let Some(infrastructure) = &stage.infrastructure else {
            return Err(bad_site(format!(
                "stage {} has no infrastructure",
                stage.identifier
            )));
        };
        let spec = cx.evaluate(&infrastructure.spec)?;
        let field = |name: &str| {
            let found = text(own, name).or_else(|| text(&spec, name));
            found.ok_or_else(|| {
                bad_site(format!(
                    "`{name}` of infrastructure {} is empty",
                    infrastructure.identifier
                ))
            })
        };
        let (region, cluster) = (field("region")?, field("cluster")?);
        Ok(Self {
            aws: match connector {
                Some(connector) => cx.aws_through(connector, &region).await?,
                None => cx.aws(&region).await?,
            },
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
