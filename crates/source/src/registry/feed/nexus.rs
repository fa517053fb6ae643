//! Components of a repository of Nexus 3 that holds no images: Maven, npm, NuGet, raw.

use jiff::Timestamp;
use serde_json::Value;
use slipway_steps::secrets::Secrets;

use super::server::{Server, json};
use super::{Answer, Poll, Trouble, build, in_order};
use crate::fault::Fault;

/// Most pages, of fifty each as Nexus makes them.
const MOST_PAGES: usize = 200;

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let wanted = wanted(poll)?;
    let check = "`repository` of the trigger and the connector's address";
    let server = Server::of(poll, "nexusServerUrl", check, secrets).await?;
    let base = server.url(&["service", "rest", "v1", "search"])?;
    let mut all = Vec::new();
    let mut token = None::<String>;
    for _ in 0..MOST_PAGES {
        let mut url = base.clone();
        for (name, value) in &wanted {
            url.query_pairs_mut().append_pair(name, value);
        }
        if let Some(token) = &token {
            url.query_pairs_mut()
                .append_pair("continuationToken", token);
        }
        let reply = server.get(&url).await?;
        let answer = json(&server, &reply)?;
        let Some(items) = answer["items"].as_array() else {
            let why = "its answer has no `items`: check the connector's address";
            return Err(format!("{}: {why}", server.name()).into());
        };
        all.extend(items.iter().filter_map(|item| component(poll, item)));
        match answer["continuationToken"]
            .as_str()
            .filter(|next| !next.is_empty())
        {
            // The same page again would never end.
            Some(next) if token.as_deref() != Some(next) => token = Some(next.to_owned()),
            _ => {
                let builds = in_order(all).into_iter().map(|(_, build)| build);
                return Ok(Answer::All(builds.collect::<Vec<_>>().into()));
            }
        }
    }
    Err(format!(
        "{}: it has more than {} components there: name a group, a package or an artifact",
        server.name(),
        all.len()
    )
    .into())
}

/// What is searched for.
fn wanted(poll: &Poll<'_>) -> Result<Vec<(&'static str, String)>, Fault> {
    let repository = match poll.text("repositoryName") {
        Some(_) => poll.must("repositoryName")?,
        None => poll.must("repository")?,
    };
    let format = poll.must("repositoryFormat")?;
    let mut all = vec![("repository", repository.to_owned())];
    match format {
        "maven" | "maven2" => {
            all.push(("maven.groupId", poll.must("groupId")?.to_owned()));
            all.push(("maven.artifactId", poll.must("artifactId")?.to_owned()));
            for (field, name) in [
                ("extension", "maven.extension"),
                ("classifier", "maven.classifier"),
            ] {
                all.extend(poll.text(field).map(|text| (name, text.to_owned())));
            }
        }
        "npm" | "nuget" => all.push(("name", poll.must("packageName")?.to_owned())),
        "raw" => all.extend(poll.text("group").map(|text| ("group", text.to_owned()))),
        other => {
            return Err(format!(
                "packages of format {other} are not polled by this version: those are maven, npm, nuget, raw and docker"
            )
            .into());
        }
    }
    Ok(all)
}

/// A component: its version, or of a raw repository its name.
fn component(poll: &Poll<'_>, item: &Value) -> Option<(i64, slipway_trigger::feed::Build)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let version = match poll.text("repositoryFormat") {
        Some("raw") => text(&item["name"])?,
        _ => text(&item["version"])?,
    };
    if version.is_empty() {
        return None;
    }
    let assets = item["assets"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let wanted = poll.text("extension");
    let fits = |asset: &&Value| {
        let path = asset["path"].as_str().unwrap_or_default();
        wanted.is_none_or(|wanted| path.ends_with(&format!(".{wanted}")))
    };
    let asset = assets.iter().find(fits).unwrap_or(&Value::Null);
    let path = text(&asset["path"]);
    let name = path.as_deref().and_then(|path| path.rsplit('/').next());
    let told = [
        ("version", Some(version.clone())),
        ("repositoryName", text(&item["repository"])),
        ("groupId", text(&item["group"])),
        ("artifactId", text(&item["name"])),
        ("package", text(&item["name"])),
        ("extension", wanted.map(str::to_owned)),
        ("fileName", name.map(str::to_owned)),
        ("url", text(&asset["downloadUrl"])),
    ];
    let times = assets.iter().filter_map(|asset| {
        let made: Timestamp = asset["lastModified"].as_str()?.parse().ok()?;
        Some(made.as_millisecond())
    });
    Some((times.max().unwrap_or_default(), build(&version, told)))
}
