//! Artifacts of a Maven, npm or NuGet repository of Nexus 2 (docs: Nexus Repository Manager 2, *Repository content* of its core REST
//! API; the registry API of npm). The folders below an artifact are its versions: what is listed is there, while the search
//! index of Nexus may be behind, and tells at most 200.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::Build;

use super::server::{Server, json, validators_of};
use super::{Answer, Listed, Poll, Trouble, build, in_order, nuget};
use crate::fault::Fault;

/// What to check where there is nothing.
const CHECK: &str =
    "`repository`, `groupId` and `artifactId`, or `packageName`, and the connector's address";

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let repository = match poll.text("repositoryName") {
        Some(_) => poll.must("repositoryName")?,
        None => poll.must("repository")?,
    };
    let format = poll.must("repositoryFormat")?;
    let mut server = Server::of(poll, "nexusServerUrl", CHECK, secrets).await?;
    match format {
        "maven" => maven(poll, &server, repository).await,
        "npm" => npm(poll, &server, repository).await,
        "nuget" => {
            server.accept = "application/atom+xml";
            nuget::ask(poll, &server, repository).await
        }
        other => Err(format!(
            "packages of format {other} of Nexus 2 are not polled by this version: those are maven, npm and nuget"
        )
        .into()),
    }
}

async fn maven(poll: &Poll<'_>, server: &Server<'_>, repository: &str) -> Result<Answer, Trouble> {
    let (group, artifact) = (poll.must("groupId")?, poll.must("artifactId")?);
    let folder: Vec<&str> = group.split('.').chain([artifact]).collect();
    let mut at = vec!["service", "local", "repositories", repository, "content"];
    at.extend(&folder);
    // Without the slash at its end it leads to a page.
    at.push("");
    let Some(reply) = server.changed(&server.url(&at)?).await? else {
        return Ok(Answer::Same);
    };
    let answer = json(server, &reply)?;
    let Some(entries) = answer["data"].as_array() else {
        return Err(wrong(server, "data"));
    };
    let mut all = Vec::new();
    for entry in entries {
        let version = entry["text"].as_str().filter(|text| !text.is_empty());
        // A file there tells of all versions (`maven-metadata.xml`).
        let Some(version) = version.filter(|_| entry["leaf"] != true) else {
            continue;
        };
        let at = entry["lastModified"].as_str().and_then(time);
        let file = file(poll, artifact, version);
        let mut place = vec!["content", "repositories", repository];
        place.extend(&folder);
        place.push(version);
        let url = match &file {
            Some(file) => {
                place.push(file);
                Some(server.url(&place)?.to_string())
            }
            None => None,
        };
        let told = [
            ("version", Some(version.to_owned())),
            ("repositoryName", Some(repository.to_owned())),
            ("groupId", Some(group.to_owned())),
            ("artifactId", Some(artifact.to_owned())),
            ("extension", poll.text("extension").map(str::to_owned)),
            ("classifier", poll.text("classifier").map(str::to_owned)),
            ("fileName", file),
            ("url", url),
        ];
        all.push((at.unwrap_or_default(), build(version, told)));
    }
    Ok(listed(all, &reply.headers))
}

/// The file of a version; those of snapshots have names that only their metadata tell.
fn file(poll: &Poll<'_>, artifact: &str, version: &str) -> Option<String> {
    if version.ends_with("-SNAPSHOT") {
        return None;
    }
    let classifier = poll.text("classifier").map(|text| format!("-{text}"));
    let (classifier, extension) = (classifier.unwrap_or_default(), poll.text("extension")?);
    Some(format!("{artifact}-{version}{classifier}.{extension}"))
}

async fn npm(poll: &Poll<'_>, server: &Server<'_>, repository: &str) -> Result<Answer, Trouble> {
    let package = poll.must("packageName")?;
    let url = server.url(&["content", "repositories", repository, package])?;
    let Some(reply) = server.changed(&url).await? else {
        return Ok(Answer::Same);
    };
    let answer = json(server, &reply)?;
    let Some(versions) = answer["versions"].as_object() else {
        return Err(wrong(server, "versions"));
    };
    let versions = versions.iter().map(|(version, about)| {
        let made: Option<Timestamp> = answer["time"][version]
            .as_str()
            .and_then(|at| at.parse().ok());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let told = [
            ("version", Some(version.clone())),
            ("repositoryName", Some(repository.to_owned())),
            ("package", Some(package.to_owned())),
            ("url", text(&about["dist"]["tarball"])),
        ];
        let at = made.map_or(0, Timestamp::as_millisecond);
        (at, build(version, told))
    });
    Ok(listed(versions.collect(), &reply.headers))
}

fn listed(all: Vec<(i64, Build)>, headers: &reqwest::header::HeaderMap) -> Answer {
    let (etag, modified) = validators_of(headers);
    let builds = in_order(all).into_iter().map(|(_, build)| build);
    Answer::All(Listed {
        etag,
        modified,
        ..Listed::from(builds.collect::<Vec<_>>())
    })
}

fn wrong(server: &Server<'_>, field: &str) -> Trouble {
    let why = format!(
        "{}: its answer has no `{field}`: check that the connector leads to a Nexus 2",
        server.name()
    );
    Fault::from(why).into()
}

/// `2026-01-05 09:04:32.0 UTC`, epoch milliseconds.
fn time(text: &str) -> Option<i64> {
    let time: DateTime = text
        .strip_suffix(" UTC")?
        .replacen(' ', "T", 1)
        .parse()
        .ok()?;
    let at = time.to_zoned(TimeZone::UTC).ok()?;
    Some(at.timestamp().as_millisecond())
}
