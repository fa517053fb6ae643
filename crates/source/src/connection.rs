//! Whether what a connector leads to can be reached and takes its login.
//!
//! | connector | asked |
//! |---|---|
//! | `Aws` | `ec2:DescribeRegions`, as Harness does |
//! | `DockerRegistry`, `OciHelmRepo` | the version of its API, with the login that it asks for |
//! | `Artifactory`, `Nexus`; `HttpHelmRepo` | the list of repositories; the index of charts |
//! | `Gcp`, `Azure` | a token for the service account's key, the service principal's secret |
//! | `Git`, `Github`, `Gitlab`, `Bitbucket`, `AzureRepo` | the branches of the repository; that of `validationRepo` where the connector has several |
//! | `Jira`, `ServiceNow` | who the user is; one incident |

use slipway_model::id::Scope;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;
use slipway_steps::secrets::Secrets;

use crate::fault::Fault;
use crate::{Source, git, registry, token};

/// Tests a connector whose reference was written in `scope`; `None` where connectors of its type are not tested.
pub(crate) async fn test(
    source: &Source,
    connector: &ConnectorPlan,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Option<Result<(), Failure>> {
    let limit = source.config.limit;
    let tested = match connector.kind.as_str() {
        "Aws" => return Some(source.targets.test(connector, scope, secrets).await),
        "DockerRegistry" | "OciHelmRepo" => {
            registry::test(&source.clock, connector, scope, secrets).await
        }
        "Artifactory" | "Nexus" | "HttpHelmRepo" => {
            registry::manager::test(connector, scope, limit, secrets).await
        }
        "Gcp" => {
            let when = (source.clock.now(), limit);
            let token = token::google(connector, scope, token::GOOGLE_CLOUD, when, secrets);
            token.await.map(drop)
        }
        "Azure" => {
            let server = source.config.azure_login.as_deref();
            let token = token::azure(connector, scope, server, limit, secrets);
            token.await.map(drop)
        }
        "Git" | "Github" | "Gitlab" | "Bitbucket" | "AzureRepo" => {
            git::test(connector, scope, source.allowed(), secrets).await
        }
        _ => return slipway_steps::ticket::test(connector, limit, &source.clock, secrets).await,
    };
    let name = &connector.reference;
    Some(tested.map_err(|fault| {
        fault
            .told(|why| format!("Cannot test connector {name}: {why}"))
            .into()
    }))
}

/// What is said where nobody answers in time.
pub(crate) fn late(source: &Source, connector: &ConnectorPlan) -> Failure {
    let seconds = source.config.limit.as_secs();
    let why = format!(
        "Cannot test connector {}: no answer within {seconds} s: check its address and the network",
        connector.reference
    );
    Fault::new(ErrorType::Timeout, why).into()
}
