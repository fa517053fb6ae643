//! Builds of a job of Jenkins that went well.

use serde_json::Value;
use slipway_steps::secrets::Secrets;

use super::server::{Server, json, validators_of};
use super::{Answer, Listed, Poll, Trouble, build, from_floor};

/// Builds that Jenkins is asked for, the newest.
const MOST: usize = 100;

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let job = poll.must("jobName")?.trim_matches('/').to_owned();
    let check =
        "`jobName` of the trigger, with its folders (`folder/job`), and the connector's address";
    let server = Server::of(poll, "jenkinsUrl", check, secrets).await?;
    let mut segments = Vec::new();
    for part in job.split('/') {
        segments.extend(["job", part]);
    }
    segments.extend(["api", "json"]);
    let mut url = server.url(&segments)?;
    let tree = format!(
        "builds[number,result,building,timestamp,url,artifacts[fileName,relativePath]]{{0,{MOST}}}"
    );
    url.query_pairs_mut().append_pair("tree", &tree);
    let Some(reply) = server.changed(&url).await? else {
        return Ok(Answer::Same);
    };
    let answer = json(&server, &reply)?;
    let Some(builds) = answer["builds"].as_array() else {
        return Err(format!(
            "{}: its answer has no `builds`: check {check}",
            server.name()
        )
        .into());
    };
    // A build that goes on has no result yet. One that is unstable went on although tests failed.
    let well = builds
        .iter()
        .filter(|build| build["building"] != true && build["result"] == "SUCCESS");
    let all = well.filter_map(|found| {
        let number = found["number"].as_i64()?;
        let artifact = &found["artifacts"][0];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let told = [
            ("url", text(&found["url"])),
            ("buildNumber", Some(number.to_string())),
            ("fileName", text(&artifact["fileName"])),
            ("artifactPath", text(&artifact["relativePath"])),
        ];
        Some((number, build(&number.to_string(), told)))
    });
    let (etag, modified) = validators_of(&reply.headers);
    let listed = from_floor(all.collect(), builds.len() >= MOST, poll.known.floor);
    Ok(Answer::All(Listed {
        etag,
        modified,
        ..listed
    }))
}
