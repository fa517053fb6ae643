//! Bitbucket Cloud (developer.atlassian.com: *Webhooks* of the group *Repositories*), and its own server, Data Center
//! (*Repository: webhooks*).

use reqwest::{Method, Url};
use serde_json::{Value, json};
use slipway_plan::ConnectorPlan;

use super::{Hook, Words, put};
use crate::changed::MOST_PAGES;
use crate::changed::bitbucket::{Api, api};
use crate::changed::host::{Host, Known};
use crate::changed::place::{self, Place};
use crate::fault::Fault;

/// What people read in the list of webhooks.
const NAME: &str = "Slipway";

/// Cloud and server call what they post differently.
pub(super) fn words(connector: &ConnectorPlan) -> Words {
    let place = place::of(connector, Some("any"));
    match place.is_ok_and(|place| place.is_bitbucket_cloud()) {
        true => of_cloud,
        false => of_server,
    }
}

fn of_cloud(event: &str) -> &'static [&'static str] {
    match event {
        "Push" => &["repo:push"],
        "PullRequest" => &[
            "pullrequest:created",
            "pullrequest:updated",
            "pullrequest:fulfilled",
            "pullrequest:rejected",
        ],
        "PRComment" => &[
            "pullrequest:comment_created",
            "pullrequest:comment_updated",
            "pullrequest:comment_deleted",
        ],
        _ => &[],
    }
}

fn of_server(event: &str) -> &'static [&'static str] {
    match event {
        "Push" => &["repo:refs_changed"],
        "PullRequest" => &[
            "pr:opened",
            "pr:modified",
            "pr:from_ref_updated",
            "pr:merged",
            "pr:declined",
        ],
        "PRComment" => &[
            "pr:comment:added",
            "pr:comment:edited",
            "pr:comment:deleted",
        ],
        _ => &[],
    }
}

pub(super) async fn register(
    place: &Place,
    login: Option<Known>,
    hook: &Hook<'_>,
) -> Result<(), Fault> {
    match api(place, login)? {
        Api::Cloud(host, own) => in_cloud(&host, own, hook).await,
        Api::Server(host, own) => on_server(&host, own, hook).await,
    }
}

async fn in_cloud(host: &Host, [workspace, name]: [&str; 2], hook: &Hook<'_>) -> Result<(), Fault> {
    let hooks = ["repositories", workspace, name, "hooks"];
    let mut body = json!({
        "description": NAME,
        "url": hook.url,
        "active": true,
        "skip_cert_verification": false,
        "events": hook.events,
    });
    if let Some(secret) = hook.secret() {
        put(&mut body, json!({"secret": secret}));
    }
    let Some(found) = find_in_cloud(host, &hooks, hook).await? else {
        let url = host.url(&hooks, &[])?;
        let (made, _) = host.ask(Method::POST, &url, Some(&body)).await?;
        return hook.is_made(&made["url"]);
    };
    let events = hook.lacking(&found["events"]);
    let right = found["active"] == true && found["skip_cert_verification"] == false;
    if hook.secret.is_none() && events.is_none() && right {
        return Ok(());
    }
    let events = events.map_or_else(|| found["events"].clone(), Value::from);
    put(
        &mut body,
        json!({"description": found["description"], "events": events}),
    );
    let Some(id) = found["uuid"].as_str() else {
        return Err("its webhooks have no `uuid`".to_owned().into());
    };
    let url = host.url(&[&hooks[..], &[id]].concat(), &[])?;
    host.ask(Method::PUT, &url, Some(&body)).await.map(drop)
}

async fn find_in_cloud(
    host: &Host,
    hooks: &[&str],
    hook: &Hook<'_>,
) -> Result<Option<Value>, Fault> {
    let mut url = host.url(hooks, &[("pagelen", "100")])?;
    for _ in 0..MOST_PAGES {
        let (answer, _) = host.get(&url).await?;
        let mut listed = answer["values"].as_array().into_iter().flatten();
        if let Some(found) = listed.find(|one| hook.is_at(&one["url"])) {
            return Ok(Some(found.clone()));
        }
        let Some(next) = answer["next"].as_str() else {
            return Ok(None);
        };
        url = Url::parse(next)
            .ok()
            .filter(|next| host.owns(next))
            .ok_or_else(|| "its list goes on at an address that is not its own".to_owned())?;
    }
    Err("it has more webhooks than anybody reads".to_owned().into())
}

async fn on_server(host: &Host, [project, name]: [&str; 2], hook: &Hook<'_>) -> Result<(), Fault> {
    let hooks = ["projects", project, "repos", name, "webhooks"];
    let mut body = json!({
        "name": NAME,
        "url": hook.url,
        "active": true,
        "sslVerificationRequired": true,
        "events": hook.events,
        "configuration": {},
    });
    let found = find_on_server(host, &hooks, hook).await?;
    let events = found
        .as_ref()
        .and_then(|found| hook.lacking(&found["events"]));
    if let Some(found) = &found {
        // Servers before 8.0 verify always, and do not say so.
        let right = found["active"] == true && found["sslVerificationRequired"] != false;
        if hook.secret.is_none() && events.is_none() && right {
            return Ok(());
        }
        let events = events.map_or_else(|| found["events"].clone(), Value::from);
        let configuration = &found["configuration"];
        put(
            &mut body,
            json!({"name": found["name"], "events": events, "configuration": configuration}),
        );
    }
    if let Some(secret) = hook.secret() {
        put(&mut body, json!({"configuration": {"secret": secret}}));
    }
    let Some(found) = found else {
        let url = host.url(&hooks, &[])?;
        let (made, _) = host.ask(Method::POST, &url, Some(&body)).await?;
        return hook.is_made(&made["url"]);
    };
    let Some(id) = found["id"].as_u64().map(|id| id.to_string()) else {
        return Err("its webhooks have no `id`".to_owned().into());
    };
    let url = host.url(&[&hooks[..], &[id.as_str()]].concat(), &[])?;
    host.ask(Method::PUT, &url, Some(&body)).await.map(drop)
}

async fn find_on_server(
    host: &Host,
    hooks: &[&str],
    hook: &Hook<'_>,
) -> Result<Option<Value>, Fault> {
    let mut start = "0".to_owned();
    for _ in 0..MOST_PAGES {
        let url = host.url(hooks, &[("limit", "500"), ("start", start.as_str())])?;
        let (answer, _) = host.get(&url).await?;
        let mut listed = answer["values"].as_array().into_iter().flatten();
        if let Some(found) = listed.find(|one| hook.is_at(&one["url"])) {
            return Ok(Some(found.clone()));
        }
        match answer["nextPageStart"].as_u64() {
            Some(next) if answer["isLastPage"] == false => start = next.to_string(),
            _ => return Ok(None),
        }
    }
    Err("it has more webhooks than anybody reads".to_owned().into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::body::to_bytes;
    use axum::extract::Request;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use secrecy::SecretString;

    use super::*;
    use crate::changed::host::Sent;

    const HOOKS: &str = "/2.0/repositories/acme/shop/hooks";

    /// The webhooks of a repository in the cloud, of which each page has one, and the requests that changed one.
    async fn cloud(hooks: Vec<Value>) -> (Host, Arc<Mutex<Vec<(String, Value)>>>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = format!("http://{}", listener.local_addr().unwrap());
        let base = Url::parse(&format!("{own}/2.0")).unwrap();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let (hooks, seen) = (Arc::new(Mutex::new(hooks)), Arc::clone(&changes));
        let app = Router::new().fallback(move |request: Request| {
            let (own, hooks, seen) = (own.clone(), Arc::clone(&hooks), Arc::clone(&seen));
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, 1 << 20).await.unwrap();
                let path = parts.uri.path().to_owned();
                if parts.method == Method::GET {
                    assert_eq!(path, HOOKS);
                    let query = parts.uri.query().unwrap_or_default();
                    let page: usize = query
                        .split("page=")
                        .nth(1)
                        .map_or(0, |it| it.parse().unwrap());
                    let hooks = hooks.lock().unwrap();
                    let values: Vec<_> = hooks.get(page).into_iter().collect();
                    let mut answer = json!({"values": values});
                    if page + 1 < hooks.len() {
                        put(
                            &mut answer,
                            json!({"next": format!("{own}{HOOKS}?page={}", page + 1)}),
                        );
                    }
                    return axum::Json(answer).into_response();
                }
                let body: Value = serde_json::from_slice(&body).unwrap();
                seen.lock()
                    .unwrap()
                    .push((format!("{} {path}", parts.method), body.clone()));
                let mut made = body;
                put(
                    &mut made,
                    json!({"uuid": "{7}", "secret": null, "secret_set": true}),
                );
                hooks
                    .lock()
                    .unwrap()
                    .retain(|one| one["url"] != made["url"]);
                hooks.lock().unwrap().push(made.clone());
                (StatusCode::CREATED, axum::Json(made)).into_response()
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        (Host::new(base, None, Sent::Bearer).unwrap(), changes)
    }

    fn hook(events: &[&'static str], secret: Option<&str>) -> Hook<'static> {
        Hook {
            url: "https://slipway.example/hook?a=1",
            events: events.iter().copied().collect::<BTreeSet<_>>(),
            secret: secret.map(SecretString::from),
        }
    }

    #[tokio::test]
    async fn a_webhook_of_the_cloud_is_made_once_and_mended() {
        let other = json!({"uuid": "{1}", "url": "https://ci.example/", "events": ["repo:push"], "active": true});
        let (host, changes) = cloud(vec![other.clone(), other]).await;
        let own = ["acme", "shop"];
        let push = hook(&["repo:push"], Some("s3cret"));
        in_cloud(&host, own, &push).await.unwrap();
        let (how, made) = changes.lock().unwrap().pop().unwrap();
        assert_eq!(how, format!("POST {HOOKS}"));
        assert_eq!(
            (
                &made["active"],
                &made["skip_cert_verification"],
                &made["secret"]
            ),
            (&json!(true), &json!(false), &json!("s3cret"))
        );
        // What nobody can read is written each time; it stays one.
        in_cloud(&host, own, &push).await.unwrap();
        let (how, _) = changes.lock().unwrap().pop().unwrap();
        assert_eq!(how, format!("PUT {HOOKS}/%7B7%7D"));
        in_cloud(&host, own, &hook(&["repo:push"], None))
            .await
            .unwrap();
        assert!(changes.lock().unwrap().is_empty());
        let more = of_cloud("PRComment");
        in_cloud(&host, own, &hook(more, None)).await.unwrap();
        let (_, mended) = changes.lock().unwrap().pop().unwrap();
        assert_eq!(mended["events"].as_array().unwrap().len(), 4);
        assert_eq!(mended["events"][3], "repo:push");
        assert!(mended.get("secret").is_none(), "{mended}");
    }
}
