//! Registries that speak the OCI distribution API: Docker Hub, GitHub's, Google's, Azure's, Artifactory, Nexus and most others.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, LINK};
use reqwest::{Method, Url};
use serde_json::Value;
use sha2::{Digest, Sha256};
use slipway_plan::{ArtifactAnswer, FoundArtifact, ListedVersion, ListedVersions, WantedArtifact};
use slipway_steps::secrets::Secrets;

use super::choose::Choice;
use super::client::{Registry, Reply, is_loopback};
use super::login::login;
use super::{Asking, cloud, name};

/// Tags of one page that are asked for.
const PAGE: usize = 1000;
/// Most pages of tags.
const MOST_PAGES: usize = 100;
/// Most tags that are looked through.
const MOST_TAGS: usize = 100_000;

/// Most manifests that are asked for in a list of tags.
const MOST_DIGESTS: usize = 20;

/// Where an image is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) registry: &'a str,
    pub(super) repository: &'a str,
}

pub(super) async fn find(
    asking: Asking<'_>,
    wanted: &WantedArtifact,
    place: Place<'_>,
    choice: &Choice,
    secrets: &mut Secrets<'_>,
) -> Result<ArtifactAnswer, String> {
    let of = |why: String| about(wanted, place, &why);
    name::repository(place.repository)?;
    if let Some(why) = far(asking, place.registry) {
        return Ok(ArtifactAnswer::Unasked(why));
    }
    if let Some(why) = cloud::unsupported(&wanted.connector) {
        return Ok(ArtifactAnswer::Unasked(of(why.to_owned())));
    }
    let mut registry = open(asking, wanted, place, secrets).await.map_err(of)?;
    let tag = match choice {
        Choice::Exact(tag) => Some(tag.clone()),
        Choice::Last(_) => Some(last(&mut registry, choice).await.map_err(of)?),
        Choice::Digest(_) => None,
    };
    let given = wanted.question.digest.as_deref();
    if let Some(given) = given {
        name::digest(given)?;
    }
    if let Some(tag) = &tag {
        name::tag(tag)?;
    }
    let Some(reference) = tag.as_deref().or(given) else {
        return Err(of("neither a tag nor a digest is named".to_owned()));
    };
    let digest = manifest(&mut registry, reference).await.map_err(of)?;
    if let Some(given) = given.filter(|given| *given != digest) {
        return Err(of(format!(
            "{reference} is {digest}, and `digest` says {given}: correct `digest`, or find out who moved the tag"
        )));
    }
    Ok(ArtifactAnswer::Found(FoundArtifact {
        version: tag.unwrap_or_default(),
        digest: Some(digest),
        metadata: BTreeMap::new(),
    }))
}

/// A part of the tags, the last by name first, with the digests of those of the part.
pub(super) async fn list(
    asking: Asking<'_>,
    wanted: &WantedArtifact,
    place: Place<'_>,
    (skip, most): (usize, usize),
    secrets: &mut Secrets<'_>,
) -> Result<ListedVersions, String> {
    let of = |why: String| about(wanted, place, &why);
    name::repository(place.repository)?;
    if let Some(why) = far(asking, place.registry) {
        return Err(of(why));
    }
    let mut registry = open(asking, wanted, place, secrets).await.map_err(of)?;
    let mut all = Vec::new();
    tags(&mut registry, &mut |tag| all.push(tag.to_owned()))
        .await
        .map_err(of)?;
    all.sort_by(|a, b| b.cmp(a));
    let total = all.len();
    let mut versions = Vec::new();
    for tag in all.into_iter().skip(skip).take(most) {
        // A tag that went meanwhile, or that is none, has no digest.
        let digest = match name::tag(&tag) {
            Ok(()) if versions.len() < MOST_DIGESTS => manifest(&mut registry, &tag).await.ok(),
            _ => None,
        };
        versions.push(ListedVersion {
            found: FoundArtifact {
                version: tag,
                digest,
                metadata: BTreeMap::new(),
            },
            at_ms: None,
        });
    }
    Ok(ListedVersions { total, versions })
}

fn about(wanted: &WantedArtifact, place: Place<'_>, why: &str) -> String {
    format!(
        "the registry {}, asked for {} with the connector {}: {why}",
        place.registry, place.repository, wanted.connector.reference
    )
}

/// Why a registry is not asked: nothing in the sandbox pulls images, so that what is far away need not be there.
fn far(asking: Asking<'_>, registry: &str) -> Option<String> {
    let here = Url::parse(registry).is_ok_and(|url| is_loopback(&url));
    (asking.targets.is_sandbox() && !here).then(|| {
        format!(
            "the account is the sandbox, which pulls nothing, so that the registry {registry} is not asked; one on this \
             machine is"
        )
    })
}

async fn open<'a>(
    asking: Asking<'a>,
    wanted: &WantedArtifact,
    place: Place<'a>,
    secrets: &mut Secrets<'_>,
) -> Result<Registry<'a>, String> {
    let connector = &wanted.connector;
    let (scope, _) = wanted.scope.resolve(&connector.reference);
    let (address, login) = match cloud::names(connector) {
        Some(names) => {
            let address = cloud::address(place.registry, names)?;
            let login = cloud::login(connector, &scope, secrets).await?;
            (address, Some(login))
        }
        None => {
            let login = login(connector, &scope, secrets).await?;
            (place.registry.to_owned(), login)
        }
    };
    Registry::new(&address, place.repository, login, asking.clock)
}

/// The digest of a manifest. It is not fetched where the registry tells the digest alone, which counts as no pull.
async fn manifest(registry: &mut Registry<'_>, reference: &str) -> Result<String, String> {
    let url = registry.url(&format!("manifests/{reference}"))?;
    let head = registry.ask(Method::HEAD, &url).await?;
    good(registry, &head, reference)?;
    if let Some(digest) = told(&head.headers)? {
        return Ok(digest);
    }
    let whole = registry.ask(Method::GET, &url).await?;
    good(registry, &whole, reference)?;
    let digest = Sha256::digest(&whole.body);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = format!("sha256:{digest}");
    match told(&whole.headers)? {
        Some(told) if told != digest => Err(format!(
            "it says that {reference} is {told}, and what it sends is {digest}: something between here and there \
             changes what is sent"
        )),
        _ => Ok(digest),
    }
}

/// The digest in the headers of a manifest.
fn told(headers: &HeaderMap) -> Result<Option<String>, String> {
    let Some(value) = headers.get("docker-content-digest") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    name::digest(text)?;
    Ok(Some(text.to_owned()))
}

/// The last tag by name that fits: registries do not tell when a tag was pushed.
async fn last(registry: &mut Registry<'_>, choice: &Choice) -> Result<String, String> {
    let mut last = None::<String>;
    let seen = tags(registry, &mut |tag| {
        if choice.fits(tag) && last.as_deref().is_none_or(|last| last < tag) {
            last = Some(tag.to_owned());
        }
    })
    .await?;
    last.ok_or_else(|| format!("it has {seen} tags there, and none {}", choice.told()))
}

/// Shows all tags to `see`, page by page; how many there are.
async fn tags(
    registry: &mut Registry<'_>,
    see: &mut (dyn FnMut(&str) + Send),
) -> Result<usize, String> {
    let mut url = registry.url(&format!("tags/list?n={PAGE}"))?;
    let mut seen = 0;
    for _ in 0..MOST_PAGES {
        let page = registry.ask(Method::GET, &url).await?;
        good(registry, &page, "the list of tags")?;
        let answer: Value = serde_json::from_slice(&page.body)
            .map_err(|_| "its list of tags is not JSON".to_owned())?;
        let tags = answer["tags"].as_array().into_iter().flatten();
        for tag in tags.filter_map(Value::as_str) {
            seen += 1;
            see(tag);
        }
        match next(&url, &page.headers)? {
            Some(more) if seen <= MOST_TAGS => url = more,
            Some(_) => break,
            None => return Ok(seen),
        }
    }
    Err(format!(
        "it has more than {MOST_TAGS} tags there, or gives them on more than {MOST_PAGES} pages: name a tag"
    ))
}

/// The next page (RFC 8288), which must be the registry's own.
pub(super) fn next(url: &Url, headers: &HeaderMap) -> Result<Option<Url>, String> {
    let links = headers.get_all(LINK).iter();
    let mut links = links.filter_map(|value| value.to_str().ok());
    let Some(link) = links.find(|link| link.contains("rel=\"next\"") || link.contains("rel=next"))
    else {
        return Ok(None);
    };
    let target = link
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    let next = target.and_then(|(target, _)| url.join(target).ok());
    match next {
        Some(next) if next.origin() == url.origin() => Ok(Some(next)),
        _ => Err("its list of tags goes on at an address that is not its own".to_owned()),
    }
}

/// Whether an answer is one.
pub(super) fn good(registry: &Registry<'_>, reply: &Reply, what: &str) -> Result<(), String> {
    let repository = registry.repository;
    let why = match reply.status {
        200 => return Ok(()),
        401 | 403 if registry.login.is_some() => format!(
            "the connector's login may not read {repository}, or there is no such repository ({})",
            reply.status
        ),
        401 | 403 => format!(
            "{repository} is not to be read without a login, or does not exist ({}): give the connector a user and \
             password, or check `imagePath`",
            reply.status
        ),
        404 => format!(
            "there is no {what} in {repository}: check the name of the repository and the tag"
        ),
        429 => {
            "it has been asked too often; try again later, or give the connector a login".to_owned()
        }
        status @ 500.. => format!(
            "it has an error of its own ({status}), also after {} attempts: try again later",
            3
        ),
        status => {
            format!("it answers {status}, which no registry should: check the connector's address")
        }
    };
    Err(why)
}
