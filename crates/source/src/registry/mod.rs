//! Artifacts in their registries: which version there is, and what it is whatever its name will mean later.
//!
//! | source | asked | a version is |
//! |---|---|---|
//! | registries of the OCI distribution API | `HEAD` of a manifest, list of tags | the digest of the manifest |
//! | Amazon ECR | `DescribeImages`, `ListImages` | the digest of the image |
//! | Amazon S3 | `HeadObject`, `ListObjectsV2` | the version of the object, where the bucket keeps any |
//! | Amazon machine images | `DescribeImages` | the id |
//! | Azure Artifacts, Nexus 2, Bamboo, images of Google's machines | all that there is, as for triggers ([`feed::listed`]) | its name |
//!
//! What is not asked and why is said in docs/decisions/0010-artifacts.md.

mod ami;
mod challenge;
mod choose;
pub(crate) mod client;
mod cloud;
mod ecr;
pub(crate) mod feed;
mod login;
pub(crate) mod manager;
mod name;
mod object;
mod oci;

use reqwest::{Method, Url};
use slipway_clock::Clock;
use slipway_model::id::Scope;
use slipway_model::status::ErrorType;
use slipway_plan::artifact::docker_registry;
use slipway_plan::{ArtifactAnswer, ArtifactPlace, ConnectorPlan, ListedVersions, WantedArtifact};
use slipway_steps::aws::AwsTargets;
use slipway_steps::secrets::Secrets;

pub(crate) use choose::Choice;
pub(crate) use client::is_loopback;

use crate::fault::Fault;

/// Why no registry is asked about what a script lists.
const SCRIPTED: &str = "its script runs on a delegate when a stage begins, and nowhere else";

/// What asking needs.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) targets: &'a AwsTargets,
    pub(crate) clock: &'a Clock,
    /// Where buckets of Google are read instead of at Google.
    pub(crate) google_storage: Option<&'a str>,
    /// Where images of Google's machines are listed instead of at Google.
    pub(crate) google_compute: Option<&'a str>,
}

/// Asks one question.
pub(crate) async fn find(
    asking: Asking<'_>,
    wanted: &WantedArtifact,
    secrets: &mut Secrets<'_>,
) -> Result<ArtifactAnswer, String> {
    let question = &wanted.question;
    let choice = Choice::of(question)?;
    match &question.place {
        ArtifactPlace::Image {
            registry,
            repository,
        } => {
            let place = oci::Place {
                registry,
                repository,
            };
            oci::find(asking, wanted, place, &choice, secrets).await
        }
        ArtifactPlace::Ecr {
            region,
            registry,
            repository,
        } => {
            let place = ecr::Place {
                region,
                registry: registry.as_deref(),
                repository,
            };
            ecr::find(asking.targets, wanted, place, &choice, secrets).await
        }
        ArtifactPlace::S3 { region, bucket } => {
            let region = region.as_deref();
            object::find(asking.targets, wanted, (region, bucket), &choice, secrets).await
        }
        ArtifactPlace::Ami { region, filters } => {
            let place = (region.as_str(), filters.as_slice());
            ami::find(asking.targets, wanted, place, &choice, secrets).await
        }
        ArtifactPlace::Listed { kind, spec } => {
            feed::listed::find(asking, wanted, (kind, spec), &choice, secrets).await
        }
        ArtifactPlace::Script { .. } => Err(SCRIPTED.to_owned()),
    }
}

/// A part of the versions that there are, the newest first: so many behind the first `skip`.
pub(crate) async fn list(
    asking: Asking<'_>,
    wanted: &WantedArtifact,
    (skip, most): (usize, usize),
    secrets: &mut Secrets<'_>,
) -> Result<ListedVersions, String> {
    if let ArtifactPlace::Image {
        registry,
        repository,
    } = &wanted.question.place
    {
        let place = oci::Place {
            registry,
            repository,
        };
        return oci::list(asking, wanted, place, (skip, most), secrets).await;
    }
    match &wanted.question.place {
        ArtifactPlace::Script { .. } => return Err(SCRIPTED.to_owned()),
        ArtifactPlace::Listed { kind, spec } => {
            let part = (skip, most);
            return feed::listed::list(asking, wanted, (kind, spec), part, secrets).await;
        }
        _ => {}
    }
    let (connector, scope) = (&wanted.connector, &wanted.scope);
    let own = connector.spec["credential"]["region"].as_str();
    let region = match &wanted.question.place {
        ArtifactPlace::Ecr { region, .. } | ArtifactPlace::Ami { region, .. } => region.as_str(),
        ArtifactPlace::S3 { region, .. } => region.as_deref().or(own).unwrap_or(object::REGION),
        ArtifactPlace::Image { .. }
        | ArtifactPlace::Listed { .. }
        | ArtifactPlace::Script { .. } => object::REGION,
    };
    let target = asking
        .targets
        .target(connector, &connector.spec, scope, region, secrets)
        .await
        .map_err(|failure| failure.message)?;
    let mut all = match &wanted.question.place {
        ArtifactPlace::Ecr {
            registry,
            repository,
            ..
        } => {
            let place = ecr::Place {
                region,
                registry: registry.as_deref(),
                repository,
            };
            place.list(&target).await?
        }
        ArtifactPlace::S3 { bucket, .. } => {
            object::list(asking.targets, &target.s3, (bucket, region)).await?
        }
        ArtifactPlace::Ami { filters, .. } => ami::list(&target, filters, region).await?,
        ArtifactPlace::Image { .. }
        | ArtifactPlace::Listed { .. }
        | ArtifactPlace::Script { .. } => Vec::new(),
    };
    all.sort_by(|a, b| (b.at_ms, &b.found.version).cmp(&(a.at_ms, &a.found.version)));
    Ok(ListedVersions {
        total: all.len(),
        versions: all.into_iter().skip(skip).take(most).collect(),
    })
}

/// Asks the registry of a connector for Docker or for Helm charts for nothing but its version, with the connector's login.
///
/// # Errors
/// What keeps the registry from being read.
pub(crate) async fn test(
    clock: &Clock,
    connector: &ConnectorPlan,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<(), Fault> {
    let field = match connector.kind.as_str() {
        "DockerRegistry" => "dockerRegistryUrl",
        _ => "helmRepoUrl",
    };
    let written = connector.spec[field].as_str().map(str::trim);
    let address = match written.unwrap_or_default() {
        written if field == "helmRepoUrl" => feed::chart_registry(written).0,
        written => docker_registry(written).0,
    };
    let (scope, _) = scope.resolve(&connector.reference);
    let login = login::login(connector, &scope, secrets).await;
    let login = login.map_err(Fault::login)?;
    let of = |why: String| format!("the registry {address}: {why}");
    let mut registry = client::Registry::new(&address, "", login, clock).map_err(of)?;
    let url = registry.base.as_str().trim_end_matches('/');
    let url = Url::parse(&format!("{url}/v2/")).map_err(|why| of(why.to_string()))?;
    let reply = registry.ask(Method::GET, &url).await;
    let reply = reply.map_err(|fault| fault.told(of))?;
    let fault = match reply.status {
        200 if is_registry(&reply) => return Ok(()),
        200 => format!("it answers with what is no registry: check `{field}`").into(),
        401 | 403 => {
            Fault::login("it does not accept the connector's login: check its user and password")
        }
        404 => format!("there is no registry: check `{field}`").into(),
        status => Fault::new(ErrorType::Connectivity, format!("it answers {status}")),
    };
    Err(fault.told(of))
}

/// Whether an answer to `GET /v2/` is that of a registry (OCI distribution specification, *Determining support*; older ones
/// tell their version in a header). The login page of a proxy answers 200 as well.
fn is_registry(reply: &client::Reply) -> bool {
    let named = reply
        .headers
        .contains_key("docker-distribution-api-version");
    let body = reply.body.trim_ascii();
    named || body.is_empty() || serde_json::from_slice::<serde_json::Value>(body).is_ok()
}

/// Where an artifact is looked for, for messages.
pub(crate) fn place(wanted: &WantedArtifact) -> String {
    let connector = &wanted.connector.reference;
    match &wanted.question.place {
        ArtifactPlace::Image {
            registry,
            repository,
        } => format!("the registry {registry}, asked for {repository} (connector {connector}),"),
        ArtifactPlace::Ecr {
            region, repository, ..
        } => format!("ECR in {region}, asked for {repository} (connector {connector}),"),
        ArtifactPlace::S3 { bucket, .. } => format!("the bucket {bucket} (connector {connector})"),
        ArtifactPlace::Ami { region, .. } => {
            format!("EC2 in {region}, asked for images (connector {connector}),")
        }
        ArtifactPlace::Listed { kind, .. } => {
            format!("the registry of the {kind} source (connector {connector})")
        }
        ArtifactPlace::Script { .. } => "the script of the source".to_owned(),
    }
}
