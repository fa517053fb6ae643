//! GitLab (docs.gitlab.com: *Project webhooks API*).

use reqwest::Method;
use serde_json::{Value, json};

use super::{Hook, put};
use crate::changed::host::{Host, Known, has_next};
use crate::changed::place::Place;
use crate::changed::{MOST_PAGES, gitlab};
use crate::fault::Fault;

/// All that a trigger may listen to: what is not named when a webhook is made is as GitLab likes.
const ALL: [&str; 5] = [
    "push_events",
    "tag_push_events",
    "merge_requests_events",
    "note_events",
    "pipeline_events",
];

pub(super) fn words(event: &str) -> &'static [&'static str] {
    match event {
        "Push" => &["push_events"],
        "Tag" => &["tag_push_events"],
        "MergeRequest" => &["merge_requests_events"],
        "MRComment" => &["note_events"],
        "PipelineHook" => &["pipeline_events"],
        _ => &[],
    }
}

pub(super) async fn register(
    place: &Place,
    login: Option<Known>,
    hook: &Hook<'_>,
) -> Result<(), Fault> {
    let host = gitlab::api(place, login)?;
    let project = place.path.join("/");
    let hooks = ["projects", &project, "hooks"];
    let found = find(&host, &hooks, hook).await?;
    let mut body = json!({"url": hook.url, "enable_ssl_verification": true});
    for event in ALL {
        let posted = found.as_ref().is_some_and(|found| found[event] == true);
        let wanted = hook.events.contains(event);
        put(&mut body, json!({event: posted || wanted}));
    }
    let Some(found) = found else {
        if let Some(secret) = hook.secret() {
            put(&mut body, json!({"token": secret}));
        }
        let url = host.url(&hooks, &[])?;
        let (made, _) = host.ask(Method::POST, &url, Some(&body)).await?;
        return hook.is_made(&made["url"]);
    };
    // The address of a webhook is written as it stands there: with another one GitLab forgets its token.
    put(&mut body, json!({"url": found["url"]}));
    let members = body.as_object().into_iter().flatten();
    let right = members.clone().all(|(name, value)| found[name] == *value);
    if let Some(secret) = hook.secret() {
        put(&mut body, json!({"token": secret}));
    } else if right {
        return Ok(());
    }
    let Some(id) = found["id"].as_u64().map(|id| id.to_string()) else {
        return Err("its webhooks have no `id`".to_owned().into());
    };
    let url = host.url(&[&hooks[..], &[id.as_str()]].concat(), &[])?;
    host.ask(Method::PUT, &url, Some(&body)).await.map(drop)
}

async fn find(host: &Host, hooks: &[&str], hook: &Hook<'_>) -> Result<Option<Value>, Fault> {
    for page in 1..=MOST_PAGES {
        let page = page.to_string();
        let url = host.url(hooks, &[("per_page", "100"), ("page", page.as_str())])?;
        let (answer, headers) = host.get(&url).await?;
        let mut listed = answer.as_array().into_iter().flatten();
        if let Some(found) = listed.find(|one| hook.is_at(&one["url"])) {
            return Ok(Some(found.clone()));
        }
        if !has_next(&headers) {
            return Ok(None);
        }
    }
    Err("it has more webhooks than anybody reads".to_owned().into())
}
