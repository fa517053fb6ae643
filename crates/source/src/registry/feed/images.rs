//! Tags of images, from registries that speak the OCI distribution API.

use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::Value;
use slipway_model::status::ErrorType;
use slipway_plan::artifact::docker_registry;
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::Build;

use super::super::client::{Registry, Reply, is_loopback};
use super::super::login::login;
use super::super::{name, oci};
use super::server::{busy, free, host, is_busy, validators, validators_of};
use super::{Answer, Listed, MOST_BUILDS, Poll, Trouble, build};
use crate::fault::Fault;
use crate::git::login::Login;

/// Tags of one page that are asked for.
const PAGE: usize = 1000;
/// Most pages.
const MOST_PAGES: usize = 100;
/// Names of Google's registries. Its key is sent to no other.
const GOOGLE: &[&str] = &["gcr.io", ".gcr.io", "-docker.pkg.dev"];
/// Names of Azure's registries.
const AZURE: &[&str] = &[".azurecr.io", ".azurecr.cn", ".azurecr.us"];

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
        "Gcr" | "GoogleArtifactRegistry" => Some(google(poll, secrets).await?),
        "Acr" => Some(azure(poll, secrets).await?),
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
            let registry = of_cloud(poll.must("registryHostname")?, GOOGLE)?;
            (registry, poll.must("imagePath")?.to_owned())
        }
        "GoogleArtifactRegistry" => {
            let host = format!("{}-docker.pkg.dev", poll.must("region")?);
            let registry = of_cloud(&host, GOOGLE)?;
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
            (of_cloud(&host, AZURE)?, poll.must("repository")?.to_owned())
        }
    };
    let repository = path.trim_matches('/').to_owned();
    name::repository(&repository)?;
    Ok(Place {
        registry,
        repository,
    })
}

/// The address of a registry of a cloud. Who may write a trigger must not have the cloud's key sent elsewhere.
fn of_cloud(host: &str, names: &[&str]) -> Result<String, Fault> {
    let bare = host.trim_start_matches("https://").trim_end_matches('/');
    let url = Url::parse(&format!("https://{bare}")).ok();
    let name = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let is_bare = url
        .as_ref()
        .is_some_and(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty());
    if url.as_ref().is_some_and(is_loopback) && is_bare {
        // As Docker does it.
        return Ok(format!("http://{bare}"));
    }
    let known = names
        .iter()
        .any(|known| match known.strip_prefix(['.', '-']) {
            Some(_) => name.ends_with(known) && name.len() > known.len(),
            None => name == *known,
        });
    match is_bare && known {
        true => Ok(format!("https://{bare}")),
        false => Err(format!(
            "`{host:.100}` is no registry of the cloud that the connector is for: those end with {}",
            names.join(", ")
        )
        .into()),
    }
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

/// A service account logs in with its key (docs: Artifact Registry, *Authenticate with a service account key*).
async fn google(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Login, Fault> {
    let credential = &poll.connector.spec["credential"];
    let reference = credential["spec"]["secretKeyRef"].as_str();
    let Some(reference) = reference.filter(|_| credential["type"] == "ManualConfig") else {
        return Err(Fault::login(
            "it logs in without a key of a service account, which this version does not: use ManualConfig",
        ));
    };
    let (scope, _) = poll.scope.resolve(&poll.connector.reference);
    let password = secrets.value_in(&scope, reference).await;
    Ok(Login {
        user: "_json_key".to_owned(),
        password: password?,
    })
}

/// A service principal logs in with its id and secret (docs: Azure Container Registry, *Authenticate with a service
/// principal*).
async fn azure(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Login, Fault> {
    let credential = &poll.connector.spec["credential"];
    let spec = &credential["spec"];
    let reference = spec["auth"]["spec"]["secretRef"].as_str();
    let (Some(user), Some(reference)) = (spec["applicationId"].as_str(), reference) else {
        return Err(Fault::login(
            "it logs in without a secret of a service principal, which this version does not: use ManualConfig with a \
             Secret",
        ));
    };
    let (scope, _) = poll.scope.resolve(&poll.connector.reference);
    let password = secrets.value_in(&scope, reference).await;
    Ok(Login {
        user: user.to_owned(),
        password: password?,
    })
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
    fn keys_of_clouds_go_to_their_registries_only() {
        let table = [
            ("gcr.io", GOOGLE, Some("https://gcr.io")),
            ("eu.gcr.io", GOOGLE, Some("https://eu.gcr.io")),
            ("https://us.gcr.io/", GOOGLE, Some("https://us.gcr.io")),
            (
                "europe-west1-docker.pkg.dev",
                GOOGLE,
                Some("https://europe-west1-docker.pkg.dev"),
            ),
            ("shop.azurecr.io", AZURE, Some("https://shop.azurecr.io")),
            ("127.0.0.1:5000", GOOGLE, Some("http://127.0.0.1:5000")),
            ("evil-gcr.io", GOOGLE, None),
            ("gcr.io.evil.com", GOOGLE, None),
            (".gcr.io", GOOGLE, None),
            ("-docker.pkg.dev", GOOGLE, None),
            ("gcr.io@evil.com", GOOGLE, None),
            ("evil.com#.gcr.io", GOOGLE, None),
            ("evil.com/.gcr.io", GOOGLE, None),
            ("evil.com?x=.gcr.io", GOOGLE, None),
            ("shop.azurecr.io", GOOGLE, None),
            ("169.254.169.254", AZURE, None),
            ("", AZURE, None),
        ];
        for (host, names, expected) in table {
            assert_eq!(of_cloud(host, names).ok().as_deref(), expected, "{host}");
        }
    }

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
