//! Versions of a NuGet package of a repository of Nexus 2, by version 2 of NuGet's protocol: an Atom feed (docs: Nexus
//! Repository Manager 2, *.NET package repositories with NuGet*; learn.microsoft.com: *NuGet.Services.Metadata*, OData).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use reqwest::Url;
use roxmltree::{Document, Node};
use slipway_trigger::feed::Build;

use super::server::Server;
use super::{Answer, Poll, Trouble, build, in_order};

/// Most pages, of which one has some dozens of versions.
const MOST_PAGES: usize = 100;

pub(super) async fn ask(
    poll: &Poll<'_>,
    server: &Server<'_>,
    repository: &str,
) -> Result<Answer, Trouble> {
    let package = poll.must("packageName")?;
    let mut url = server.url(&[
        "service",
        "local",
        "nuget",
        repository,
        "FindPackagesById()",
    ])?;
    // A text of OData, in which a quote is written twice.
    let id = format!("'{}'", package.replace('\'', "''"));
    url.query_pairs_mut().append_pair("id", &id);
    let mut all = Vec::new();
    // What is new may be on any page, so that each is read each time.
    for _ in 0..MOST_PAGES {
        let reply = server.get(&url).await?;
        let (found, next) = page(repository, package, &reply.body).map_err(|why| {
            let check = "check that the connector leads to a Nexus 2, and that the repository is one of NuGet";
            format!("{}: its answer {why}: {check}", server.name())
        })?;
        all.extend(found);
        let Some(next) = next else {
            if all.is_empty() {
                let why = format!(
                    "{}: the repository {repository} has no package {package}",
                    server.name()
                );
                return Err(why.into());
            }
            let builds = in_order(all).into_iter().map(|(_, build)| build);
            return Ok(Answer::All(builds.collect::<Vec<_>>().into()));
        };
        let next = url.join(&next).ok().filter(|next| server.owns(next));
        url = next.ok_or_else(|| {
            format!(
                "{}: its list goes on at an address that is not its own",
                server.name()
            )
        })?;
    }
    Err(format!(
        "{}: it has more than {} versions of {package}",
        server.name(),
        all.len()
    )
    .into())
}

/// What a page has, and where the next one is.
type Page = (Vec<(i64, Build)>, Option<String>);

fn page(repository: &str, package: &str, body: &[u8]) -> Result<Page, String> {
    let text = std::str::from_utf8(body).map_err(|_| "is no text".to_owned())?;
    let document = Document::parse(text).map_err(|why| format!("is no XML ({why})"))?;
    let feed = document.root_element();
    if feed.tag_name().name() != "feed" {
        return Err("is no list".to_owned());
    }
    let entries = children(feed, "entry");
    let found = entries.filter_map(|entry| version(repository, package, entry));
    let mut links = children(feed, "link").filter(|link| link.attribute("rel") == Some("next"));
    let next = links.next().and_then(|link| link.attribute("href"));
    Ok((found.collect(), next.map(str::to_owned)))
}

/// Children of a name, in whatever namespace.
fn children<'a, 'i>(node: Node<'a, 'i>, name: &str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children()
        .filter(move |child| child.tag_name().name() == name)
}

fn version(repository: &str, package: &str, entry: Node<'_, '_>) -> Option<(i64, Build)> {
    // Beside the content of an entry, or in it.
    let mut all = entry.descendants();
    let properties = all.find(|node| node.tag_name().name() == "properties")?;
    let property = |name: &str| {
        let text = children(properties, name).next()?.text()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let version = property("Version")?;
    let at = property("Published").or_else(|| property("Created"));
    let file = children(entry, "content").find_map(|content| content.attribute("src"));
    let url = file.and_then(|file| Url::parse(file).ok());
    let told = [
        ("version", Some(version.clone())),
        ("repositoryName", Some(repository.to_owned())),
        ("package", Some(package.to_owned())),
        ("url", url.map(String::from)),
    ];
    Some((
        at.and_then(|at| time(&at)).unwrap_or_default(),
        build(&version, told),
    ))
}

/// `2026-01-05T09:04:32.5`, with or without a zone, epoch milliseconds.
fn time(text: &str) -> Option<i64> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    let at: DateTime = text.parse().ok()?;
    let at = at.to_zoned(TimeZone::UTC).ok()?;
    Some(at.timestamp().as_millisecond())
}
