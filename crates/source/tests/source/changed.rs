//! Changed files, at servers that answer as the APIs of the providers do.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use slipway_engine::gather::{
    Change, ChangeFault, ChangedPaths, HostApi, PullRequest, SourceReader, WantedChange,
};
use slipway_model::id::{AccountId, Scope};
use slipway_plan::ConnectorPlan;

use crate::feed_host::{Asked, BASIC, Host, page, patient};
use crate::support::{TOKEN, source};

const OLD: &str = "a1b2c3";
const NEW: &str = "b2c3d4";

fn token(url: &str) -> Value {
    let login =
        json!({"type": "UsernameToken", "spec": {"username": "bot", "tokenRef": "account.token"}});
    json!({"url": url, "type": "Repo", "authentication": {"type": "Http", "spec": login}})
}

fn wanted(kind: &str, spec: Value, change: Change) -> WantedChange {
    WantedChange {
        connector: ConnectorPlan {
            reference: "account.code".to_owned(),
            kind: kind.to_owned(),
            spec,
        },
        scope: Scope::account(AccountId::new("acme")),
        repository: None,
        change,
        api: HostApi::OfConnector,
    }
}

fn push() -> Change {
    Change::Push {
        before: OLD.to_owned(),
        after: NEW.to_owned(),
    }
}

async fn ask(wanted: &WantedChange) -> Result<ChangedPaths, ChangeFault> {
    let told = patient().changed_files(wanted).await;
    if let Err(fault) = &told {
        let message = &fault.message;
        assert!(
            !message.contains(TOKEN) && message.contains("account.code"),
            "{message}"
        );
    }
    told
}

async fn told(wanted: &WantedChange) -> String {
    match ask(wanted).await {
        Ok(told) => format!("{} {}", told.files.join(" "), told.complete),
        Err(fault) => format!("{} {}", fault.message, fault.passing),
    }
}

fn bearer(asked: &Asked) {
    assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
}

fn linked(asked: &Asked, last: usize, list: &Value) -> Response {
    let number: usize = of(asked, "page").parse().expect("a page");
    match number < last {
        true => (
            [("link", "<https://elsewhere/?page=2>; rel=\"next\"")],
            list.to_string(),
        )
            .into_response(),
        false => page(list),
    }
}

/// A parameter of a query.
fn of(asked: &Asked, name: &str) -> String {
    let pairs = asked
        .query
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(known, _)| *known == name || *known == format!("%24{name}"));
    found
        .next()
        .map(|(_, value)| value.to_owned())
        .unwrap_or_default()
}

#[tokio::test]
async fn github_is_asked_page_by_page_and_for_what_a_push_compares() {
    let host = Host::new(|asked| {
        bearer(asked);
        let file = |name: &str| json!({"filename": name, "status": "modified"});
        match asked.path.as_str() {
            "/api/v3/repos/acme/shop/pulls/7/files" => {
                assert_eq!(of(asked, "per_page"), "100");
                let number = of(asked, "page");
                let renamed = json!({"filename": format!("new{number}"), "previous_filename": "old", "status": "renamed"});
                linked(asked, 3, &json!([file("src/a"), renamed]))
            }
            "/api/v3/repos/acme/shop/compare/a1b2c3...b2c3d4" => page(&json!({"files": [file("b"), file("a")]})),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let spec = token(&format!("{}/acme/shop.git", host.address));
    let pull = wanted("Github", spec.clone(), Change::PullRequest(7));
    assert_eq!(told(&pull).await, "new1 new2 new3 old src/a true");
    assert_eq!(host.times(), 3);
    assert_eq!(
        told(&wanted("Github", spec.clone(), push())).await,
        "a b true"
    );
    let gone = told(&wanted("Github", spec, Change::PullRequest(8))).await;
    assert!(gone.contains("(404)") && gone.ends_with("false"), "{gone}");
}

#[tokio::test]
async fn gitea_has_an_api_of_its_own_and_files_in_its_commits() {
    let host = Host::new(|asked| {
        bearer(asked);
        let files = |names: &[&str]| {
            names
                .iter()
                .map(|name| json!({"filename": name}))
                .collect::<Vec<_>>()
        };
        match asked.path.as_str() {
            "/api/v1/repos/acme/shop/pulls/7/files" => linked(asked, 1, &json!(files(&["src/a"]))),
            "/api/v1/repos/acme/shop/compare/a1b2c3...b2c3d4" => page(&json!({
                "total_commits": 2, "commits": [{"files": files(&["a"])}, {"files": files(&["b"])}],
            })),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let spec = token(&format!("{}/acme/shop", host.address));
    for (change, expected) in [(Change::PullRequest(7), "src/a true"), (push(), "a b true")] {
        let wanted = WantedChange {
            api: HostApi::Gitea,
            ..wanted("Github", spec.clone(), change)
        };
        assert_eq!(told(&wanted).await, expected);
    }
}

#[tokio::test]
async fn gitlab_is_asked_by_the_path_of_the_project() {
    let host = Host::new(|asked| {
        bearer(asked);
        let file = |old: &str, new: &str| json!({"old_path": old, "new_path": new, "diff": "…"});
        match asked.path.as_str() {
            "/api/v4/projects/group%2Fteam%2Fshop/merge_requests/7/diffs" => linked(
                asked,
                2,
                &json!([file("src/a", "src/a"), file("old", "new")]),
            ),
            "/api/v4/projects/group%2Fteam%2Fshop/repository/compare" => {
                assert_eq!(
                    (of(asked, "from"), of(asked, "to")),
                    (OLD.to_owned(), NEW.to_owned())
                );
                page(&json!({"diffs": [file("a", "a")], "compare_timeout": true}))
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let mut spec = token(&host.address);
    spec["type"] = json!("Account");
    for (change, expected) in [
        (Change::PullRequest(7), "new old src/a true"),
        // GitLab gave up before it had compared everything.
        (push(), "a false"),
    ] {
        let wanted = WantedChange {
            repository: Some("group/team/shop".to_owned()),
            ..wanted("Gitlab", spec.clone(), change)
        };
        assert_eq!(told(&wanted).await, expected);
    }
}

#[tokio::test]
async fn bitbucket_server_is_asked_below_its_folder() {
    let host = Host::new(|asked| {
        assert_eq!(asked.header("authorization"), BASIC);
        let own = "/git/rest/api/1.0/projects/PRJ/repos/shop";
        let file = |name: &str| json!({"path": {"components": [name], "toString": name}});
        let path = asked.path.strip_prefix(own).unwrap_or_default();
        match (path, of(asked, "start").as_str()) {
            ("/pull-requests/7/changes", "0") => {
                let moved = json!({"path": {"toString": "new"}, "srcPath": {"toString": "old"}});
                page(
                    &json!({"values": [file("a"), moved], "isLastPage": false, "nextPageStart": 2}),
                )
            }
            ("/pull-requests/7/changes", "2") => {
                page(&json!({"values": [file("b")], "isLastPage": true, "nextPageStart": null}))
            }
            ("/compare/changes", "0") => {
                assert_eq!(
                    (of(asked, "from"), of(asked, "to")),
                    (NEW.to_owned(), OLD.to_owned())
                );
                page(&json!({"values": [file("c")], "isLastPage": true}))
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let spec = token(&format!("{}/git/scm/PRJ/shop.git", host.address));
    let pull = wanted("Bitbucket", spec.clone(), Change::PullRequest(7));
    assert_eq!(told(&pull).await, "a b new old true");
    assert_eq!(told(&wanted("Bitbucket", spec, push())).await, "c true");
}

#[tokio::test]
async fn azure_is_asked_for_the_last_iteration() {
    let host = Host::new(|asked| {
        assert_eq!(asked.header("authorization"), BASIC);
        assert_eq!(of(asked, "api-version"), "7.0");
        let own = "/acme/web/_apis/git/repositories/shop";
        let file = |name: &str| json!({"item": {"path": name, "gitObjectType": "blob"}, "changeType": "edit"});
        match asked.path.strip_prefix(own).unwrap_or_default() {
            "/pullRequests/7/iterations" => page(&json!({"value": [{"id": 1}, {"id": 3}, {"id": 2}], "count": 3})),
            "/pullRequests/7/iterations/3/changes" => match of(asked, "skip").as_str() {
                "0" => page(&json!({"changeEntries": (0..2000).map(|at| file(&format!("/f{at}"))).collect::<Vec<_>>()})),
                "2000" => page(&json!({"changeEntries": [{"item": {"path": "/new"}, "originalPath": "/old", "changeType": "rename"}]})),
                _ => StatusCode::NOT_FOUND.into_response(),
            },
            "/diffs/commits" => {
                assert_eq!((of(asked, "baseVersion"), of(asked, "targetVersion")), (OLD.to_owned(), NEW.to_owned()));
                page(&json!({"changes": [{"item": {"path": "/src", "isFolder": true, "gitObjectType": "tree"}}, file("/src/a")]}))
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let spec = token(&format!("{}/acme/web/_git/shop", host.address));
    let pull = ask(&wanted("AzureRepo", spec.clone(), Change::PullRequest(7))).await;
    let pull = pull.expect("files");
    assert_eq!((pull.files.len(), pull.complete), (2002, true));
    assert!(pull.files.contains(&"old".to_owned()));
    assert_eq!(told(&wanted("AzureRepo", spec, push())).await, "src/a true");
}

#[tokio::test]
async fn what_may_go_away_is_told_apart_from_what_does_not() {
    for (status, header, passing) in [
        (500, "x-other", true),
        (503, "retry-after", true),
        (429, "retry-after", true),
        (403, "retry-after", true),
        (403, "x-other", false),
        (401, "x-other", false),
        (404, "x-other", false),
        (418, "x-other", false),
    ] {
        let host = Host::new(move |_| {
            let status = StatusCode::from_u16(status).expect("a status");
            (status, [(header, "1")], "no").into_response()
        })
        .await;
        let spec = token(&format!("{}/acme/shop", host.address));
        let fault = ask(&wanted("Github", spec, push()))
            .await
            .expect_err("a fault");
        assert_eq!(
            fault.passing, passing,
            "{status} {header}: {}",
            fault.message
        );
    }
    // Nobody is there; nobody answers.
    let spec = token("http://127.0.0.1:1/acme/shop");
    let fault = ask(&wanted("Github", spec, push()))
        .await
        .expect_err("a fault");
    assert!(fault.passing, "{}", fault.message);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let spec = token(&format!(
        "http://{}/acme/shop",
        listener.local_addr().expect("an address")
    ));
    let impatient = source(false, Duration::from_millis(50));
    let late = impatient
        .changed_files(&wanted("Github", spec, push()))
        .await;
    assert!(late.expect_err("a fault").passing);
}

#[tokio::test]
async fn a_login_is_for_the_api_and_goes_nowhere_else() {
    let host = Host::new(|asked| {
        bearer(asked);
        page(&json!({"files": [{"filename": "a"}]}))
    })
    .await;
    let url = format!("{}/acme/shop", host.address);
    // SSH says nothing to an API; `apiAccess` does, and has the last word.
    let ssh = json!({"url": url, "type": "Repo", "authentication": {"type": "Ssh", "spec": {"sshKeyRef": "account.key"}}});
    let refused = told(&wanted("Github", ssh.clone(), push())).await;
    assert!(
        refused.contains("apiAccess") && refused.ends_with("false"),
        "{refused}"
    );
    let mut with = ssh;
    with["apiAccess"] = json!({"type": "Token", "spec": {"tokenRef": "account.token"}});
    assert_eq!(told(&wanted("Github", with, push())).await, "a true");
    let far = token("http://git.example.com/acme/shop");
    let refused = told(&wanted("Github", far, push())).await;
    assert!(refused.contains("not sent over http"), "{refused}");
    for (kind, url, why) in [
        ("Github", "https://169.254.169.254/a/b", "link-local"),
        ("Github", "https://github.com/a", "owner and a repository"),
        ("Git", "https://github.com/a/b", "which API"),
        ("Github", "file:///srv/shop", "no address"),
    ] {
        let refused = told(&wanted(kind, token(url), push())).await;
        assert!(
            refused.contains(why) && refused.ends_with("false"),
            "{refused}"
        );
    }
}

/// GitLab's token has a header of its own, which no client takes out on the way to another host.
#[tokio::test]
async fn a_token_does_not_follow_a_redirect_to_another_host() {
    let elsewhere = Host::new(|_| page(&json!({"diffs": []}))).await;
    let there = format!("{}/login", elsewhere.address);
    let host = Host::new(move |asked| {
        assert_eq!(asked.header("private-token"), TOKEN);
        (StatusCode::FOUND, [("location", there.clone())], "").into_response()
    })
    .await;
    let mut spec = token(&format!("{}/acme/shop", host.address));
    let login = json!({"username": "bot", "passwordRef": "account.token"});
    spec["authentication"]["spec"] = json!({"type": "UsernamePassword", "spec": login});
    let refused = told(&wanted("Gitlab", spec, push())).await;
    assert!(refused.contains("another address (302)"), "{refused}");
    assert_eq!((host.times(), elsewhere.times()), (1, 0));
}

#[tokio::test]
async fn more_files_than_are_read_are_said_to_be_more() {
    let host = Host::new(|asked| {
        let number = of(asked, "page");
        let files = (0..100).map(|at| json!({"filename": format!("{number}/{at}")}));
        let list = json!(files.collect::<Vec<_>>());
        (
            [("link", "<https://elsewhere/>; rel=\"next\"")],
            list.to_string(),
        )
            .into_response()
    })
    .await;
    let spec = token(&format!("{}/acme/shop", host.address));
    let told = ask(&wanted("Github", spec, Change::PullRequest(7)))
        .await
        .expect("files");
    assert_eq!((told.files.len(), told.complete), (5_000, false));
    assert_eq!(host.times(), 50, "pages are bounded");
}

async fn told_of_pull(wanted: &WantedChange) -> String {
    let told = patient().pull_request(wanted).await;
    let shown = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
    match told {
        Ok(PullRequest {
            source_branch,
            target_branch,
            commit,
            base_commit,
        }) => [source_branch, target_branch, commit, base_commit]
            .map(shown)
            .join(" "),
        Err(fault) => {
            let message = &fault.message;
            assert!(
                !message.contains(TOKEN) && message.contains("account.code"),
                "{message}"
            );
            format!("{message} {}", fault.passing)
        }
    }
}

/// The payload of a comment has addresses; none of them is asked, but the API of the connector's repository.
#[tokio::test]
async fn a_pull_request_is_asked_for_at_the_connectors_repository() {
    let host = Host::new(|asked| {
        bearer(asked);
        let end = |name: &str, sha: &str| json!({"ref": name, "sha": sha, "repo": null});
        let pull = json!({"number": 7, "title": "t", "head": end("topic", NEW), "base": end("main", OLD)});
        match asked.path.as_str() {
            "/api/v3/repos/acme/shop/pulls/7" | "/api/v1/repos/acme/shop/pulls/7" => page(&pull),
            // Of a fork that is gone.
            "/api/v3/repos/acme/shop/pulls/8" => page(&json!({"head": null, "base": {"ref": "main", "sha": 7}})),
            "/api/v3/repos/acme/shop/pulls/9" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            "/api/v3/repos/acme/shop/pulls/10" => page(&json!([])),
            "/api/v3/repos/acme/shop/pulls/11" => {
                let elsewhere = [("location", "http://localhost:1/login")];
                (StatusCode::FOUND, elsewhere, "").into_response()
            }
            "/api/v4/projects/acme%2Fshop/merge_requests/7" => page(&json!({
                "source_branch": "topic", "target_branch": "main", "sha": NEW, "diff_refs": {"base_sha": OLD},
            })),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let spec = token(&format!("{}/acme/shop", host.address));
    let of = |kind: &str, number| wanted(kind, spec.clone(), Change::PullRequest(number));
    let known = format!("topic main {NEW} {OLD}");
    assert_eq!(told_of_pull(&of("Github", 7)).await, known);
    let gitea = WantedChange {
        api: HostApi::Gitea,
        ..of("Github", 7)
    };
    assert_eq!(told_of_pull(&gitea).await, known);
    assert_eq!(told_of_pull(&of("Gitlab", 7)).await, known);
    assert_eq!(told_of_pull(&of("Github", 8)).await, "- main - -");
    assert_eq!(told_of_pull(&of("Github", 10)).await, "- - - -");
    for (kind, number, why, end) in [
        ("Github", 9, "(503)", "true"),
        ("Github", 11, "another address (302)", "false"),
        ("Github", 12, "(404)", "false"),
        ("Bitbucket", 7, "of type Bitbucket are not asked", "false"),
    ] {
        let refused = told_of_pull(&of(kind, number)).await;
        assert!(refused.contains(why) && refused.ends_with(end), "{refused}");
        assert!(refused.starts_with("the pull request cannot"), "{refused}");
    }
    let pushed = told_of_pull(&wanted("Github", spec.clone(), push())).await;
    assert!(pushed.contains("a push is none"), "{pushed}");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let silent = token(&format!("http://{address}/acme/shop"));
    let silent = wanted("Github", silent, Change::PullRequest(7));
    let late = source(false, Duration::from_millis(50))
        .pull_request(&silent)
        .await;
    assert!(late.expect_err("a fault").passing);
}
