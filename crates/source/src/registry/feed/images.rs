//! Tags of images, from registries that speak the OCI distribution API.

use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::Value;
use slipway_model::status::ErrorType;
use slipway_plan::artifact::docker_registry;
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::Build;

use super::super::client::{Registry, Reply};
use super::super::login::login;
use super::super::{cloud, name, oci};
use super::server::{busy, free, host, is_busy, validators, validators_of};
use super::{Answer, Listed, MOST_BUILDS, Poll, Trouble, build};
use crate::fault::Fault;
use crate::git::login::Login;

/// Tags of one page that are asked for.
const PAGE: usize = 1000;
/// Most pages.
const MOST_PAGES: usize = 100;
/// Where an image is.
pub(super) struct Place {
    pub(super) registry: String,
    pub(super) repository: String,
}

pub(super) async fn ask(
    poll: &Poll<'_>,
    kind: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Answer, Trouble> {
    let place = place(poll, kind)?;
    let login = match kind {
        "Gcr" | "GoogleArtifactRegistry" | "Acr" => {
            let (scope, _) = poll.scope.resolve(&poll.connector.reference);
            Some(cloud::login(poll.connector, &scope, secrets).await?)
        }
        _ => {
            let (scope, _) = poll.scope.resolve(&poll.connector.reference);
            let login = login(poll.connector, &scope, secrets).await;
            login.map_err(Fault::login)?
        }
    };
    tags(poll, &place, login, |tag| tag.to_owned()).await
}

/// Where the image of a feed is.
fn place(poll: &Poll<'_>, kind: &str) -> Result<Place, Fault> {
    let (registry, path) = match kind {
        "DockerRegistry" => {
            let (registry, is_hub) = docker_registry(poll.address("dockerRegistryUrl")?);
            let path = poll.must("imagePath")?.trim_matches('/');
            let path = match is_hub && !path.contains('/') {
                true => format!("library/{path}"),
                false => path.to_owned(),
            };
            (registry, path)
        }
        "ArtifactoryRegistry" => {
            let server = poll.address("artifactoryServerUrl")?.trim_end_matches('/');
            let repository = poll.must("repository")?;
            name::repository(&repository.to_ascii_lowercase())?;
            let registry = format!("{server}/api/docker/{repository}");
            (registry, poll.must("artifactPath")?.to_owned())
        }
        "Nexus3Registry" => {
            let server = poll.address("nexusServerUrl")?.trim_end_matches('/');
            let registry = match poll.text("repositoryUrl") {
                Some(url) => same_host(url, server)?,
                None => {
                    let repository = poll.must("repository")?;
                    name::repository(&repository.to_ascii_lowercase())?;
                    format!("{server}/repository/{repository}")
                }
            };
            let path = poll
                .text("imagePath")
                .map_or_else(|| poll.must("artifactPath"), Ok)?;
            (registry, path.to_owned())
        }
        "Gcr" => {
            let registry = cloud::address(poll.must("registryHostname")?, cloud::GOOGLE)?;
            (registry, poll.must("imagePath")?.to_owned())
        }
        "GoogleArtifactRegistry" => {
            let host = format!("{}-docker.pkg.dev", poll.must("region")?);
            let registry = cloud::address(&host, cloud::GOOGLE)?;
            let path = ["project", "repositoryName", "pkg"].map(|field| poll.must(field));
            let [project, repository, package] = path;
            (
                registry,
                format!("{}/{}/{}", project?, repository?, package?),
            )
        }
        _ => {
            let registry = poll.must("registry")?;
            let host = match registry.contains(['.', ':']) {
                true => registry.to_owned(),
                false => format!("{registry}.azurecr.io"),
            };
            (
                cloud::address(&host, cloud::AZURE)?,
                poll.must("repository")?.to_owned(),
            )
        }
    };
    let repository = path.trim_matches('/').to_owned();
    name::repository(&repository)?;
    Ok(Place {
        registry,
        repository,
    })
}

/// The registry of a repository of Nexus that has a port or a name of its own; the login goes to the server's host only.
fn same_host(url: &str, server: &str) -> Result<String, Fault> {
    let given = match url.contains("://") {
        true => url.to_owned(),
        false => format!("https://{url}"),
    };
    let host = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some(url.host_str()?.to_owned())
    };
    match (host(&given), host(server)) {
        (Some(ours), Some(theirs)) if ours == theirs => {
            Ok(given.trim_end_matches('/').to_owned())
        }
        _ => Err(format!(
            "`repositoryUrl` is `{url:.100}`, which is not on the host of the connector: leave it out, or make a \
             DockerRegistry connector for it"
        )
        .into()),
    }
}

/// All tags, in the registry's order; `version` makes what people call it out of a tag.
pub(super) async fn tags(
    poll: &Poll<'_>,
    place: &Place,
    login: Option<Login>,
    version: impl Fn(&str) -> String,
) -> Result<Answer, Trouble> {
    let about = |why: String| {
        format!(
            "the registry {}, asked for {} with the connector {}: {why}",
            place.registry, place.repository, poll.connector.reference
        )
    };
    let registry = Registry::new(&place.registry, &place.repository, login, poll.asking.clock);
    let mut registry = registry.map_err(about)?;
    let host = host(&registry.base);
    free(poll, &host).map_err(|trouble| trouble.told(about))?;
    let mut url = registry
        .url(&format!("tags/list?n={PAGE}"))
        .map_err(about)?;
    let mut headers = validators(&poll.known);
    let mut all = Listed::default();
    for page in 0..MOST_PAGES {
        let asked = registry.ask_once(&url, &headers).await;
        let reply = asked.map_err(|fault| {
            // A login that is refused is no reason to leave the host alone.
            let is_away = matches!(fault.kind, ErrorType::Connectivity | ErrorType::Timeout);
            let wait = is_away.then(|| poll.held.hold(&host, &HeaderMap::new(), poll.asking.clock));
            Trouble {
                fault: fault.told(about),
                wait: wait.map(|wait| (host.clone(), wait)),
            }
        })?;
        if is_busy(reply.status, &reply.headers) {
            return Err(busy(poll, &host, reply.status, &reply.headers).told(about));
        }
        poll.held.release(&host);
        if reply.status == 304 {
            return Ok(Answer::Same);
        }
        oci::good(&registry, &reply, "the list of tags").map_err(about)?;
        let found = listed(&reply).map_err(about)?;
        let next = oci::next(&url, &reply.headers).map_err(about)?;
        // One page's tag says nothing of the others.
        (all.etag, all.modified) = match (page, &next) {
            (0, None) => validators_of(&reply.headers),
            _ => (None, None),
        };
        let built = found.iter().map(|tag| {
            let image = format!("{host}/{}:{tag}", place.repository);
            build(
                &version(tag),
                [
                    ("image", Some(image)),
                    ("tag", Some(tag.clone())),
                    ("registryHostname", Some(host.clone())),
                ],
            )
        });
        all.builds.extend(built.collect::<Vec<Build>>());
        headers = HeaderMap::new();
        match next {
            None => return Ok(Answer::All(all)),
            Some(_) if all.builds.len() > MOST_BUILDS => break,
            Some(next) => url = next,
        }
    }
    Err(about(format!(
        "it has more than {MOST_BUILDS} tags there, or gives them on more than {MOST_PAGES} pages"
    ))
    .into())
}

/// The tags of a page; what is none is left out.
fn listed(reply: &Reply) -> Result<Vec<String>, String> {
    let answer: Value = serde_json::from_slice(&reply.body)
        .map_err(|_| "its list of tags is not JSON".to_owned())?;
    let tags = answer["tags"].as_array().into_iter().flatten();
    let tags = tags.filter_map(Value::as_str);
    let good = tags.filter(|tag| name::tag(tag).is_ok());
    Ok(good.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_of_nexus_is_on_its_host() {
        let server = "https://nexus.example:8443/x";
        for (url, expected) in [
            ("nexus.example:5000", Some("https://nexus.example:5000")),
            (
                "https://nexus.example:5000/",
                Some("https://nexus.example:5000"),
            ),
            ("evil.example", None),
            ("nexus.example@evil.example", None),
        ] {
            assert_eq!(same_host(url, server).ok().as_deref(), expected, "{url}");
        }
    }
}
