//! Azure Repos (learn.microsoft.com: *Hooks: Subscriptions*, *Service hooks events*). A subscription is of one event: a
//! webhook of several is several.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Hook, put};
use crate::changed::azure::{VERSION, api};
use crate::changed::host::{Host, Known};
use crate::changed::place::Place;
use crate::fault::Fault;

/// Comments on pull requests.
const COMMENT: &str = "ms.vss-code.git-pullrequest-comment-event";

pub(super) fn words(event: &str) -> &'static [&'static str] {
    match event {
        "Push" => &["git.push"],
        "PullRequest" => &[
            "git.pullrequest.created",
            "git.pullrequest.updated",
            "git.pullrequest.merged",
        ],
        "IssueComment" => &[COMMENT],
        _ => &[],
    }
}

/// Where subscriptions are, below an organization.
const SUBSCRIPTIONS: [&str; 3] = ["_apis", "hooks", "subscriptions"];

/// As who a subscription posts; only the password is looked at.
const USER: &str = "slipway";

pub(super) async fn register(
    place: &Place,
    login: Option<Known>,
    hook: &Hook<'_>,
) -> Result<(), Fault> {
    let (host, project, name) = api(place, login)?;
    let own = [project.as_str(), "_apis", "git", "repositories", &name];
    let (repository, _) = host.get(&host.url(&own, &[VERSION])?).await?;
    let id = |at: &str| {
        let id = repository.pointer(at).and_then(Value::as_str);
        id.ok_or_else(|| format!("its repository has no `{at}`"))
    };
    let (id, project) = (id("/id")?, id("/project/id")?);
    let of_hooks = [
        VERSION,
        ("publisherId", "tfs"),
        ("consumerId", "webHooks"),
        ("consumerActionId", "httpRequest"),
    ];
    let (listed, _) = host.get(&host.url(&SUBSCRIPTIONS, &of_hooks)?).await?;
    let listed = listed["value"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let publisher = json!({"projectId": project, "repository": id});
    for event in &hook.events {
        let mut found = listed.iter().filter(|one| {
            let of = &one["publisherInputs"];
            one["eventType"] == *event
                && hook.is_at(&one["consumerInputs"]["url"])
                && of["projectId"] == publisher["projectId"]
                && of["repository"] == publisher["repository"]
        });
        let body = subscription(hook, event, &publisher);
        if let Some(found) = found.next() {
            mend(&host, hook, found, body).await?;
            continue;
        }
        let url = host.url(&SUBSCRIPTIONS, &[VERSION])?;
        let (made, _) = host.ask(Method::POST, &url, Some(&body)).await?;
        hook.is_made(&made["consumerInputs"]["url"])?;
    }
    Ok(())
}

/// What is wanted of one event.
fn subscription(hook: &Hook<'_>, event: &str, publisher: &Value) -> Value {
    let mut body = json!({
        "publisherId": "tfs",
        "eventType": event,
        "resourceVersion": if event == COMMENT { "2.0" } else { "1.0" },
        "consumerId": "webHooks",
        "consumerActionId": "httpRequest",
        "publisherInputs": publisher,
        "consumerInputs": {
            "url": hook.url,
            "acceptUntrustedCerts": "false",
            "resourceDetailsToSend": "all",
            "messagesToSend": "none",
            "detailedMessagesToSend": "none",
        },
    });
    if let Some(secret) = hook.secret() {
        let login = json!({"basicAuthUsername": USER, "basicAuthPassword": secret});
        put(&mut body["consumerInputs"], login);
    }
    body
}

/// Gives one that is there the secret, and has it post again where Azure has given it up.
async fn mend(host: &Host, hook: &Hook<'_>, found: &Value, mut body: Value) -> Result<(), Fault> {
    let status = found["status"].as_str().unwrap_or("enabled");
    if hook.secret.is_none() && status == "enabled" {
        return Ok(());
    }
    let Some(id) = found["id"].as_str() else {
        return Err("its subscriptions have no `id`".to_owned().into());
    };
    let mut inputs = found["consumerInputs"].clone();
    // It is masked, and would be what it is masked with.
    if hook.secret.is_none() && inputs["basicAuthPassword"].is_string() {
        let why = format!(
            "its subscription {id} is not enabled ({status}), and has a password that nobody is shown: enable it there"
        );
        return Err(why.into());
    }
    // Whatever else somebody has set stays.
    put(&mut inputs, body["consumerInputs"].clone());
    let own = json!({
        "id": id,
        "status": "enabled",
        "publisherInputs": found["publisherInputs"],
        "consumerInputs": inputs,
    });
    put(&mut body, own);
    let url = host.url(&[&SUBSCRIPTIONS[..], &[id]].concat(), &[VERSION])?;
    host.ask(Method::PUT, &url, Some(&body)).await.map(drop)
}
