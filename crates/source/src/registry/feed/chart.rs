//! Versions of a Helm chart: the index of a repository over HTTP or in a bucket, tags of an OCI registry.

use aws_sdk_s3::Client;
use jiff::Timestamp;
use slipway_model::Ref;
use slipway_model::yaml;
use slipway_steps::aws::error::{Doing, failure};
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::Build;

use super::super::login::login;
use super::images::{self, Place};
use super::server::{Server, validators_of};
use super::{Answer, LARGEST_INDEX, Listed, Poll, Trouble, account, build, google, in_order};
use crate::fault::Fault;

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let chart = poll.must("chartName")?;
    let store = &poll.place["store"];
    if store["type"] == "S3" {
        return in_bucket(poll, chart, secrets).await;
    }
    if store["type"] == "Gcs" {
        return google::charts(poll, chart, secrets).await;
    }
    let written = poll.address("helmRepoUrl")?;
    if let Some(rest) = written.strip_prefix("oci://") {
        return in_registry(poll, rest, chart, secrets).await;
    }
    if poll.connector.kind == "OciHelmRepo" {
        return in_registry(poll, written, chart, secrets).await;
    }
    let check = "`helmRepoUrl` of the connector: the index of a repository is at its `index.yaml`";
    let mut server = Server::of(poll, "helmRepoUrl", check, secrets).await?;
    server.accept = "*/*";
    server.largest = LARGEST_INDEX;
    let Some(reply) = server.changed(&server.url(&["index.yaml"])?).await? else {
        return Ok(Answer::Same);
    };
    let (etag, modified) = validators_of(&reply.headers);
    let builds = versions(&reply.body, chart).map_err(|why| format!("{}: {why}", server.name()))?;
    Ok(Answer::All(Listed {
        etag,
        modified,
        ..Listed::from(builds)
    }))
}

/// A registry's tags. A tag has no `+`, so that Helm writes `_` for it (docs: helm.sh, *Use OCI-based registries*).
async fn in_registry(
    poll: &Poll<'_>,
    address: &str,
    chart: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Answer, Trouble> {
    let (registry, path) = registry(address);
    let repository = format!("{path}/{chart}");
    let repository = repository.trim_matches('/').to_owned();
    super::super::name::repository(&repository)?;
    let place = Place {
        registry,
        repository,
    };
    let (scope, _) = poll.scope.resolve(&poll.connector.reference);
    let login = login(poll.connector, &scope, secrets).await;
    let login = login.map_err(Fault::login)?;
    images::tags(poll, &place, login, |tag| tag.replace('_', "+")).await
}

/// The registry of the address of a chart repository, and the path in it.
pub(crate) fn registry(address: &str) -> (String, &str) {
    let (scheme, rest) = address.split_once("://").unwrap_or(("https", address));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_local = host.starts_with("127.0.0.1:") || host.starts_with("localhost:");
    let scheme = match scheme {
        _ if is_local => "http",
        "oci" => "https",
        scheme => scheme,
    };
    (format!("{scheme}://{host}"), path)
}

async fn in_bucket(
    poll: &Poll<'_>,
    chart: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Answer, Trouble> {
    let (bucket, key) = index_of(poll)?;
    let region = poll.place["store"]["spec"]["region"].as_str();
    let region = region.filter(|region| !region.is_empty());
    if poll.asking.targets.is_own_bucket(bucket) {
        return Err(format!(
            "the bucket {bucket} holds Slipway's own plans and logs: use another one"
        )
        .into());
    }
    let (target, region) = account::target(poll, region, secrets).await?;
    let Some((body, etag)) =
        object(&target.s3, (bucket, &region), &key, poll.known.etag.clone()).await?
    else {
        return Ok(Answer::Same);
    };
    let builds = versions(&body, chart).map_err(|why| {
        format!(
            "{key} of bucket {bucket} (connector {}): {why}",
            poll.connector.reference
        )
    })?;
    Ok(Answer::All(Listed {
        etag,
        ..Listed::from(builds)
    }))
}

/// The bucket of a trigger's store, and the index in it.
pub(super) fn index_of<'p>(poll: &'p Poll<'_>) -> Result<(&'p str, String), Fault> {
    let spec = &poll.place["store"]["spec"];
    let text = |name: &str| spec[name].as_str().filter(|text| !text.is_empty());
    let Some(bucket) = text("bucketName") else {
        return Err("`bucketName` of the trigger's store is missing"
            .to_owned()
            .into());
    };
    let folder = text("folderPath").unwrap_or_default().trim_matches('/');
    let key = match folder {
        "" => "index.yaml".to_owned(),
        folder => format!("{folder}/index.yaml"),
    };
    Ok((bucket, key))
}

/// An object with its tag; `None` where it still has the tag that is known.
async fn object(
    s3: &Client,
    (bucket, region): (&str, &str),
    key: &str,
    known: Option<String>,
) -> Result<Option<(Vec<u8>, Option<String>)>, String> {
    let doing = format!("read {key} of bucket {bucket} in {region}");
    let asked = s3
        .get_object()
        .bucket(bucket)
        .key(key)
        .set_if_none_match(known);
    let mut object = match asked.send().await {
        Ok(object) => object,
        Err(error) => {
            let status = error.raw_response().map_or(0, |raw| raw.status().as_u16());
            return match status {
                304 => Ok(None),
                404 => Err(format!(
                    "there is no {key} in bucket {bucket} in {region}: check `bucketName` and `folderPath`"
                )),
                _ => Err(failure(Doing::with(&doing), error).message),
            };
        }
    };
    let mut body = Vec::new();
    loop {
        let chunk = object.body.try_next().await;
        let chunk =
            chunk.map_err(|why| format!("Cannot {doing}: the answer ended early: {why}"))?;
        let Some(chunk) = chunk else { break };
        if body.len() + chunk.len() > LARGEST_INDEX {
            return Err(format!(
                "{key} of bucket {bucket} has more than {LARGEST_INDEX} bytes"
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some((body, object.e_tag)))
}

/// The versions of a chart in an index, the newest last.
pub(super) fn versions(index: &[u8], chart: &str) -> Result<Vec<Build>, String> {
    let text = std::str::from_utf8(index).map_err(|_| "its index is not UTF-8".to_owned())?;
    let cut = (text.len() > yaml::MOST_BYTES).then(|| entry(text, chart));
    let text = cut.as_deref().unwrap_or(text);
    let tree = yaml::parse("index.yaml", text)
        .map_err(|why| format!("its index cannot be read: {}", why.message))?;
    let Some(entries) = tree.root().get("entries") else {
        return Err("its index has no `entries`: check the address of the repository".to_owned());
    };
    let Some(listed) = entries.get(chart) else {
        return Err(format!(
            "its index has no chart `{chart}`: check `chartName`"
        ));
    };
    let all = listed.items().enumerate().filter_map(|(place, version)| {
        let text = |name: &str| version.get_text(name).map(str::to_owned);
        let number = text("version").filter(|number| !number.is_empty())?;
        let made: Option<Timestamp> = text("created").and_then(|at| at.parse().ok());
        let url = version.get("urls").and_then(|urls| urls.items().next());
        let told = [
            ("name", Some(chart.to_owned())),
            ("version", Some(number.clone())),
            ("appVersion", text("appVersion")),
            ("digest", text("digest")),
            ("url", url.and_then(Ref::text).map(str::to_owned)),
        ];
        // Helm writes the highest version first; where no times are told that is the order.
        let first_is_last = i64::try_from(place).map_or(i64::MIN, |place| -place);
        let at = made.map_or(first_is_last, Timestamp::as_millisecond);
        Some((at, build(&number, told)))
    });
    Ok(in_order(all.collect())
        .into_iter()
        .map(|(_, build)| build)
        .collect())
}

/// The part of a large index that is about one chart, as Helm indents it.
fn entry(text: &str, chart: &str) -> String {
    let quoted = [
        format!("  {chart}:"),
        format!("  \"{chart}\":"),
        format!("  '{chart}':"),
    ];
    let mut found = "entries:\n".to_owned();
    let mut lines = text
        .lines()
        .skip_while(|line| line.trim_end() != "entries:");
    lines.next();
    let inside = lines
        .take_while(|line| line.is_empty() || line.starts_with([' ', '#', '-']))
        .skip_while(|line| !quoted.iter().any(|name| line.trim_end() == name));
    for (number, line) in inside.enumerate() {
        let is_next =
            line.starts_with("  ") && !line.starts_with("   ") && !line.starts_with("  -");
        if number > 0 && is_next {
            break;
        }
        found.push_str(line);
        found.push('\n');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(index: &str, chart: &str) -> Result<Vec<String>, String> {
        let found = versions(index.as_bytes(), chart)?;
        Ok(found.into_iter().map(|build| build.version).collect())
    }

    #[test]
    fn an_index_lists_versions_by_their_times_or_its_order() {
        let timed = "apiVersion: v1\nentries:\n  web:\n  - version: 2.0.0\n    created: 2026-01-02T00:00:00.5Z\n    \
                     urls: [web-2.0.0.tgz]\n  - version: 1.9.9\n    created: '2026-03-01T00:00:00+02:00'\n  other: []\n";
        assert_eq!(numbers(timed, "web").unwrap(), ["2.0.0", "1.9.9"]);
        assert_eq!(numbers(timed, "other").unwrap(), Vec::<String>::new());
        let plain = r#"{"entries": {"web": [{"version": "1.10.0"}, {"version": "1.9.0"}, {"name": "none"}]}}"#;
        assert_eq!(numbers(plain, "web").unwrap(), ["1.9.0", "1.10.0"]);
        assert!(
            numbers(timed, "wen")
                .unwrap_err()
                .contains("check `chartName`")
        );
        for bad in [
            "",
            "<html>",
            "entries",
            "a: &a [*a, *a]",
            "entries: {web: x}\nentries: 1",
            "\0",
        ] {
            let _ = numbers(bad, "web").map(|found| assert!(found.is_empty(), "{bad}"));
        }
    }

    #[test]
    fn of_a_large_index_the_part_of_the_chart_is_read() {
        let mut index = "apiVersion: v1\nentries:\n".to_owned();
        for chart in 0..2_000 {
            index.push_str(&format!("  chart-{chart}:\n"));
            for version in 0..20 {
                let filler = "x".repeat(80);
                index.push_str(&format!(
                    "  - description: {filler}\n    version: 1.{version}.0\n    created: 2026-01-{:02}T00:00:00Z\n",
                    version + 1
                ));
            }
        }
        index.push_str("generated: 2026-01-01T00:00:00Z\n");
        assert!(index.len() > yaml::MOST_BYTES);
        let found = numbers(&index, "chart-7").unwrap();
        assert_eq!(
            (found.len(), found.last().unwrap().as_str()),
            (20, "1.19.0")
        );
        assert_eq!(numbers(&index, "chart-1999").unwrap().len(), 20);
        assert!(numbers(&index, "chart-x").is_err());
    }
}
