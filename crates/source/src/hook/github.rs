//! GitHub (docs.github.com: *REST API endpoints for repository webhooks*).

use reqwest::Method;
use serde_json::{Value, json};
use slipway_engine::gather::HostApi;

use super::{Hook, put};
use crate::changed::host::{Host, Known, has_next};
use crate::changed::place::Place;
use crate::changed::{MOST_PAGES, github};
use crate::fault::Fault;

pub(super) fn words(event: &str) -> &'static [&'static str] {
    match event {
        "Push" => &["push"],
        "PullRequest" => &["pull_request"],
        "IssueComment" => &["issue_comment"],
        "Release" => &["release"],
        "Create" => &["create"],
        "Delete" => &["delete"],
        "PullRequestReview" => &["pull_request_review"],
        "MergeQueue" => &["merge_group"],
        _ => &[],
    }
}

pub(super) async fn register(
    place: &Place,
    login: Option<Known>,
    hook: &Hook<'_>,
) -> Result<(), Fault> {
    let (host, own) = github::api(place, login, HostApi::OfConnector)?;
    let hooks = [&own[..], &["hooks"]].concat();
    let Some(found) = find(&host, &hooks, hook).await? else {
        let mut body =
            json!({"name": "web", "active": true, "events": hook.events, "config": config(hook)});
        put(&mut body["config"], json!({"url": hook.url}));
        let url = host.url(&hooks, &[])?;
        let (made, _) = host.ask(Method::POST, &url, Some(&body)).await?;
        return hook.is_made(&made["config"]["url"]);
    };
    let Some(id) = found["id"].as_u64().map(|id| id.to_string()) else {
        return Err("its webhooks have no `id`".to_owned().into());
    };
    let one = [&hooks[..], &[id.as_str()]].concat();
    let all = found["events"] == json!(["*"]);
    let events = hook.lacking(&found["events"]).filter(|_| !all);
    if events.is_some() || found["active"] == Value::Bool(false) {
        let mut body = json!({"active": true});
        if let Some(events) = events {
            put(&mut body, json!({"events": events}));
        }
        host.ask(Method::PATCH, &host.url(&one, &[])?, Some(&body))
            .await?;
    }
    let set = &found["config"];
    let right =
        set["content_type"] == "json" && (set["insecure_ssl"] == "0" || set["insecure_ssl"] == 0);
    if hook.secret.is_some() || !right {
        // There, and only there, a secret that is not named stays.
        let url = host.url(&[&one[..], &["config"]].concat(), &[])?;
        host.ask(Method::PATCH, &url, Some(&config(hook))).await?;
    }
    Ok(())
}

fn config(hook: &Hook<'_>) -> Value {
    let mut config = json!({"content_type": "json", "insecure_ssl": "0"});
    if let Some(secret) = hook.secret() {
        put(&mut config, json!({"secret": secret}));
    }
    config
}

async fn find(host: &Host, hooks: &[&str], hook: &Hook<'_>) -> Result<Option<Value>, Fault> {
    for page in 1..=MOST_PAGES {
        let page = page.to_string();
        let url = host.url(hooks, &[("per_page", "100"), ("page", page.as_str())])?;
        let (answer, headers) = host.get(&url).await?;
        let mut listed = answer.as_array().into_iter().flatten();
        if let Some(found) = listed.find(|one| hook.is_at(&one["config"]["url"])) {
            return Ok(Some(found.clone()));
        }
        if !has_next(&headers) {
            return Ok(None);
        }
    }
    Err("it has more webhooks than anybody reads".to_owned().into())
}
