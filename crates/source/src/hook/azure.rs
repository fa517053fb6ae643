//! Azure Repos (learn.microsoft.com: *Hooks: Subscriptions*, *Service hooks events*). A subscription is of one event: a
//! webhook of several is several.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Hook, put};
use crate::changed::azure::{VERSION, api};
use crate::changed::host::Known;
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
    let subscriptions = ["_apis", "hooks", "subscriptions"];
    let of_hooks = [
        VERSION,
        ("publisherId", "tfs"),
        ("consumerId", "webHooks"),
        ("consumerActionId", "httpRequest"),
    ];
    let (listed, _) = host.get(&host.url(&subscriptions, &of_hooks)?).await?;
    let listed = listed["value"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for event in &hook.events {
        let publisher = json!({"projectId": project, "repository": id});
        let mut found = listed.iter().filter(|one| {
            let of = &one["publisherInputs"];
            one["eventType"] == *event
                && hook.is_at(&one["consumerInputs"]["url"])
                && of["projectId"] == publisher["projectId"]
                && of["repository"] == publisher["repository"]
        });
        let mut body = json!({
            "publisherId": "tfs",
            "eventType": event,
            "resourceVersion": if *event == COMMENT { "2.0" } else { "1.0" },
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
        let Some(found) = found.next() else {
            let url = host.url(&subscriptions, &[VERSION])?;
            let (made, _) = host.ask(Method::POST, &url, Some(&body)).await?;
            hook.is_made(&made["consumerInputs"]["url"])?;
            continue;
        };
        let enabled = found["status"]
            .as_str()
            .is_none_or(|status| status == "enabled");
        if hook.secret.is_none() && enabled {
            continue;
        }
        let Some(subscription) = found["id"].as_str() else {
            return Err("its subscriptions have no `id`".to_owned().into());
        };
        // Whatever else somebody has set stays; the password that is there is not shown, and stays only if it is not sent.
        let mut inputs = found["consumerInputs"].clone();
        if let Some(inputs) = inputs.as_object_mut() {
            inputs.remove("basicAuthPassword");
        }
        put(&mut inputs, body["consumerInputs"].clone());
        put(
            &mut body,
            json!({"id": subscription, "status": "enabled", "publisherInputs": found["publisherInputs"], "consumerInputs": inputs}),
        );
        let url = host.url(&[&subscriptions[..], &[subscription]].concat(), &[VERSION])?;
        host.ask(Method::PUT, &url, Some(&body)).await?;
    }
    Ok(())
}
