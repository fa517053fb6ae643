//! What Google has: objects of buckets, and the index of a repository of charts in one (docs: Cloud Storage, *JSON API*); images
//! of Compute Engine (docs: Compute Engine API, *images.list*).

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::Build;

use super::server::{Server, json, validators_of};
use super::{Answer, LARGEST_INDEX, Listed, MOST_BUILDS, Poll, Trouble, build, chart, in_order};
use crate::fault::Fault;
use crate::token;

/// Where images of machines are.
const COMPUTE: &str = "https://compute.googleapis.com";
/// What is asked for: reading images (docs: Google, *OAuth 2.0 scopes*).
const SEEING: &str = "https://www.googleapis.com/auth/compute.readonly";
/// Images of one page that are asked for, the most that Google gives.
const IMAGES: &str = "500";
/// Of an image what is told.
const IMAGE_FIELDS: &str =
    "nextPageToken,items(id,name,creationTimestamp,status,family,selfLink,deprecated(state))";
/// What to check where there are no images.
const IMAGE_CHECK: &str = "`project`, and that the connector's service account may list its images";
/// Where buckets are.
const STORAGE: &str = "https://storage.googleapis.com";
/// What is asked for: reading objects (docs: Google, *OAuth 2.0 scopes*).
const READING: &str = "https://www.googleapis.com/auth/devstorage.read_only";
/// Time for a token.
const TOKEN: std::time::Duration = std::time::Duration::from_secs(10);
/// Objects of one page that are asked for, the most that Google gives.
const PAGE: &str = "1000";
/// Of an object what is told.
const FIELDS: &str = "nextPageToken,items(name,updated,etag,generation)";

/// What to check where there is nothing.
const CHECK: &str = "the bucket and the folder of the trigger, and that the connector's service account may read them";

async fn server<'a>(poll: &'a Poll<'a>, secrets: &mut Secrets<'_>) -> Result<Server<'a>, Trouble> {
    let address = poll.asking.google_storage.unwrap_or(STORAGE);
    server_at(poll, (address, READING, CHECK), secrets).await
}

async fn server_at<'a>(
    poll: &'a Poll<'a>,
    (address, extent, check): (&str, &str, &'static str),
    secrets: &mut Secrets<'_>,
) -> Result<Server<'a>, Trouble> {
    let when = (poll.asking.clock.now(), TOKEN);
    let token = token::google(poll.connector, poll.scope, extent, when, secrets).await?;
    let bearer = SecretString::from(format!("Bearer {}", token.expose_secret()));
    Server::at(poll, address, Some(bearer), check)
}

/// The images of a project, by the times when they were made. What cannot be used any more is none.
pub(super) async fn images(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let (project, filter) = (poll.must("project")?, filter(poll)?);
    let address = poll.asking.google_compute.unwrap_or(COMPUTE);
    let server = server_at(poll, (address, SEEING, IMAGE_CHECK), secrets).await?;
    let at = ["compute", "v1", "projects", project, "global", "images"];
    let mut all = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let mut url = server.url(&at)?;
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("maxResults", IMAGES);
            query.append_pair("fields", IMAGE_FIELDS);
            if !filter.is_empty() {
                query.append_pair("filter", &filter);
            }
            if let Some(token) = &next {
                query.append_pair("pageToken", token);
            }
        }
        let answer = json(&server, &server.get(&url).await?)?;
        let items = answer["items"].as_array().into_iter().flatten();
        all.extend(items.filter_map(image));
        let before = next;
        next = answer["nextPageToken"].as_str().map(str::to_owned);
        // The same page again would never end.
        if next.is_none() || next == before {
            break;
        }
        if all.len() >= MOST_BUILDS {
            let why = format!("the project {project} has more than {MOST_BUILDS} images");
            return Err(why.into());
        }
    }
    let builds = in_order(all).into_iter().map(|(_, build)| build);
    Ok(Answer::All(builds.collect::<Vec<_>>().into()))
}

fn image(found: &Value) -> Option<(i64, Build)> {
    let text = |name: &str| found[name].as_str().map(str::to_owned);
    let is_ready = found["status"].is_null() || found["status"] == "READY";
    let state = found["deprecated"]["state"].as_str();
    if !is_ready || matches!(state, Some("OBSOLETE" | "DELETED")) {
        return None;
    }
    let name = text("name")?;
    let made: Option<Timestamp> = text("creationTimestamp").and_then(|at| at.parse().ok());
    let told = [
        ("image", Some(name.clone())),
        ("id", text("id")),
        ("family", text("family")),
        ("url", text("selfLink")),
    ];
    let at = made.map_or(0, Timestamp::as_millisecond);
    Some((at, build(&name, told)))
}

/// The filters and labels of a trigger as Google writes them: all must hold.
fn filter(poll: &Poll<'_>) -> Result<String, Fault> {
    let mut all = Vec::new();
    for (field, before) in [("filters", ""), ("labels", "labels.")] {
        for pair in poll.place[field].as_array().into_iter().flatten() {
            let [name, value] =
                ["name", "value"].map(|part| pair[part].as_str().unwrap_or_default());
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if name.is_empty() || !name.chars().all(plain) {
                let why = format!("`{field}`: `{name:.100}` is no name of a field");
                return Err(why.into());
            }
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            all.push(format!("({before}{name} = \"{value}\")"));
        }
    }
    Ok(all.join(" "))
}

/// The objects of a bucket, by the times when they were written.
pub(super) async fn objects(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let bucket = poll.must("bucket")?;
    let server = server(poll, secrets).await?;
    let mut all = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let mut url = server.url(&["storage", "v1", "b", bucket, "o"])?;
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("maxResults", PAGE);
            query.append_pair("fields", FIELDS);
            if let Some(token) = &next {
                query.append_pair("pageToken", token);
            }
        }
        let answer = json(&server, &server.get(&url).await?)?;
        for object in answer["items"].as_array().into_iter().flatten() {
            let text = |name: &str| object[name].as_str().map(str::to_owned);
            let Some(name) = text("name").filter(|name| !name.ends_with('/')) else {
                continue;
            };
            let written: Option<Timestamp> = text("updated").and_then(|at| at.parse().ok());
            let at = written.map_or(0, Timestamp::as_millisecond);
            let file = name.rsplit('/').next().map(str::to_owned);
            let told = [
                ("bucket", Some(bucket.to_owned())),
                ("artifactPath", Some(name.clone())),
                ("fileName", file),
                ("etag", text("etag")),
                ("generation", text("generation")),
            ];
            all.push((at, build(&name, told)));
        }
        next = answer["nextPageToken"].as_str().map(str::to_owned);
        if next.is_none() {
            break;
        }
        if all.len() >= MOST_BUILDS {
            let why = format!("the bucket {bucket} has more than {MOST_BUILDS} objects");
            return Err(why.into());
        }
    }
    let builds = in_order(all).into_iter().map(|(_, build)| build);
    Ok(Answer::All(builds.collect::<Vec<_>>().into()))
}

/// The versions of a chart in the index of a bucket.
pub(super) async fn charts(
    poll: &Poll<'_>,
    name: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Answer, Trouble> {
    let (bucket, key) = chart::index_of(poll)?;
    let mut server = server(poll, secrets).await?;
    server.accept = "*/*";
    server.largest = LARGEST_INDEX;
    // A slash of a key is part of its name there.
    let mut url = server.url(&["storage", "v1", "b", bucket, "o", &key])?;
    url.query_pairs_mut().append_pair("alt", "media");
    let Some(reply) = server.changed(&url).await? else {
        return Ok(Answer::Same);
    };
    let (etag, modified) = validators_of(&reply.headers);
    let builds = chart::versions(&reply.body, name);
    let builds = builds.map_err(|why| format!("{key} of bucket {bucket}: {why}"))?;
    Ok(Answer::All(Listed {
        etag,
        modified,
        ..Listed::from(builds)
    }))
}
