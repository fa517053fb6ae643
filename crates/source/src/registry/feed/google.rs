//! What buckets of Google have: objects, and the index of a repository of charts (docs: Cloud Storage, *JSON API*).

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use slipway_steps::secrets::Secrets;

use super::server::{Server, json, validators_of};
use super::{Answer, LARGEST_INDEX, Listed, MOST_BUILDS, Poll, Trouble, build, chart, in_order};
use crate::token;

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
    let when = (poll.asking.clock.now(), TOKEN);
    let token = token::google(poll.connector, poll.scope, READING, when, secrets).await?;
    let bearer = SecretString::from(format!("Bearer {}", token.expose_secret()));
    let address = poll.asking.google_storage.unwrap_or(STORAGE);
    Server::at(poll, address, Some(bearer), CHECK)
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
