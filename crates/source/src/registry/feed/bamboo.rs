//! Builds of a plan of Bamboo that went well (docs: Bamboo REST API, *Build results*).

use slipway_steps::secrets::Secrets;

use super::server::{Server, json};
use super::{Answer, Poll, Trouble, build, from_floor};

/// Builds that Bamboo is asked for, the newest.
const MOST: usize = 100;

/// What to check where there is nothing.
const CHECK: &str = "`planKey` (`PROJECT-PLAN`), and the connector's address";

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let plan = poll.must("planKey")?.trim();
    let server = Server::of(poll, "bambooUrl", CHECK, secrets).await?;
    let mut url = server.url(&["rest", "api", "latest", "result", plan])?;
    {
        let mut query = url.query_pairs_mut();
        query
            .append_pair("buildstate", "Successful")
            .append_pair("expand", "results.result")
            .append_pair("start-index", "0")
            .append_pair("max-results", &MOST.to_string());
        if server.logs_in() {
            // Without it a login that is not taken sees what everybody may see.
            query.append_pair("os_authType", "basic");
        }
    }
    let answer = json(&server, &server.get(&url).await?)?;
    let Some(results) = answer["results"]["result"].as_array() else {
        let why = "its answer has no `results.result`";
        return Err(format!("{}: {why}: check {CHECK}", server.name()).into());
    };
    let well = results.iter().filter(|result| {
        result["buildState"] == "Successful"
            && (result["lifeCycleState"].is_null() || result["lifeCycleState"] == "Finished")
    });
    let mut all = Vec::new();
    for result in well {
        let number = ["buildNumber", "number"];
        let Some(number) = number.iter().find_map(|name| result[*name].as_i64()) else {
            continue;
        };
        let key = ["key", "buildResultKey"];
        let key = key.iter().find_map(|name| result[*name].as_str());
        let url = match key {
            Some(key) => Some(server.url(&["browse", key])?.to_string()),
            None => None,
        };
        let told = [
            ("buildNumber", Some(number.to_string())),
            ("planKey", Some(plan.to_owned())),
            ("buildKey", key.map(str::to_owned)),
            ("url", url),
            (
                "revision",
                result["vcsRevisionKey"].as_str().map(str::to_owned),
            ),
        ];
        all.push((number, build(&number.to_string(), told)));
    }
    let is_cut = results.len() >= MOST;
    Ok(Answer::All(from_floor(all, is_cut, poll.known.floor)))
}
