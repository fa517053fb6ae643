//! Harness Code and Harness Open Source (apidocs.harness.io: *createRepoWebhook*, *updateRepoWebhook*).

use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Hook, put};
use crate::changed::MOST_PAGES;
use crate::changed::harness::Repository;
use crate::changed::host::Known;
use crate::changed::place::Place;
use crate::fault::Fault;

/// Webhooks of one page.
const PAGE: usize = 100;

pub(super) fn words(event: &str) -> &'static [&'static str] {
    match event {
        "Push" => &[
            "branch_created",
            "branch_updated",
            "tag_created",
            "tag_updated",
        ],
        "Branch" => &["branch_created", "branch_deleted"],
        "Tag" => &["tag_created", "tag_deleted"],
        "PullRequest" => &[
            "pullreq_created",
            "pullreq_updated",
            "pullreq_branch_updated",
            "pullreq_reopened",
            "pullreq_merged",
            "pullreq_comment_created",
        ],
        "MergeQueue" => &["merge_queue_checks_requested"],
        _ => &[],
    }
}

pub(super) async fn register(
    place: &Place,
    login: Option<Known>,
    hook: &Hook<'_>,
) -> Result<(), Fault> {
    let of = Repository::at(place, login)?;
    let Some(found) = find(&of, hook).await? else {
        let name = format!("slipway-{}", digest(hook.url));
        let mut body = json!({
            "identifier": name,
            "display_name": "Slipway",
            "url": hook.url,
            "enabled": true,
            "insecure": false,
            "triggers": hook.events,
        });
        if let Some(secret) = hook.secret() {
            put(&mut body, json!({"secret": secret}));
        }
        let url = of.url(&["webhooks"], &[])?;
        let (made, _) = of.host.ask(Method::POST, &url, Some(&body)).await?;
        return hook.is_made(&made["url"]);
    };
    let mut body = json!({});
    for (name, wanted) in [("enabled", true), ("insecure", false)] {
        if found[name] != wanted {
            put(&mut body, json!({name: wanted}));
        }
    }
    // One that names no events posts all of them.
    let posts_all = found["triggers"].as_array().is_none_or(Vec::is_empty);
    if let Some(triggers) = hook.lacking(&found["triggers"]).filter(|_| !posts_all) {
        put(&mut body, json!({"triggers": triggers}));
    }
    if let Some(secret) = hook.secret() {
        put(&mut body, json!({"secret": secret}));
    }
    if body == json!({}) {
        return Ok(());
    }
    // Older servers know a webhook by its number.
    let number = found["id"].as_u64().map(|id| id.to_string());
    let Some(name) = found["identifier"].as_str().or(number.as_deref()) else {
        return Err("its webhooks have no `identifier`".to_owned().into());
    };
    let url = of.url(&["webhooks", name], &[])?;
    let changed = of.host.ask(Method::PATCH, &url, Some(&body)).await;
    changed.map(drop)
}

/// A name for a URL, of which a repository has one webhook at most.
fn digest(url: &str) -> String {
    let digest = Sha256::digest(url);
    digest[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

async fn find(of: &Repository, hook: &Hook<'_>) -> Result<Option<Value>, Fault> {
    for page in 1..=MOST_PAGES {
        let (page, limit) = (page.to_string(), PAGE.to_string());
        let url = of.url(&["webhooks"], &[("page", &page), ("limit", &limit)])?;
        let (answer, headers) = of.host.get(&url).await?;
        let listed = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(found) = listed.iter().find(|one| hook.is_at(&one["url"])) {
            return Ok(Some(found.clone()));
        }
        // It names the next page; a full one is followed by another also where a proxy takes that away.
        if !headers.contains_key("x-next-page") && listed.len() < PAGE {
            return Ok(None);
        }
    }
    Err("it has more webhooks than anybody reads".to_owned().into())
}
