//! Changed files of AWS CodeCommit and Harness Code, at servers that answer as their APIs do.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use slipway_engine::gather::{Change, HostApi, SourceReader, WantedChange};
use slipway_model::id::{AccountId, Scope};
use slipway_plan::ConnectorPlan;

use crate::feed_host::{Asked, Host, page, patient};
use crate::support::{TOKEN, source_of};

const OLD: &str = "a1b2c3";
const NEW: &str = "b2c3d4";

fn push() -> Change {
    Change::Push {
        before: OLD.to_owned(),
        after: NEW.to_owned(),
    }
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

/// A connector of CodeCommit with keys of its own.
fn code_commit(url: &str) -> Value {
    let keys = json!({"accessKey": "AKIDCONNECTOR", "secretKeyRef": "account.token"});
    let way = json!({"type": "AWSCredentials", "spec": keys});
    json!({"url": url, "type": "Repo", "authentication": {"type": "HTTPS", "spec": way}})
}

/// What the account at an address says of a change of CodeCommit.
async fn told_by(account: &str, wanted: &WantedChange) -> String {
    let source = source_of(account, false, Duration::from_secs(30));
    match source.changed_files(wanted).await {
        Ok(told) => format!("{} {}", told.files.join(" "), told.complete),
        Err(fault) => {
            let message = fault.message;
            let known = !message.contains(TOKEN) && message.contains("account.code");
            assert!(known, "{message}");
            format!("{message} {}", fault.passing)
        }
    }
}

fn differences(names: &[(Option<&str>, Option<&str>)], next: Option<&str>) -> Response {
    let blob = |path: &Option<&str>| {
        path.map(|path| json!({"blobId": "1", "path": path, "mode": "100644"}))
    };
    let list = names.iter().map(|(before, after)| {
        let kind = match (before, after) {
            (None, _) => "A",
            (_, None) => "D",
            _ => "M",
        };
        let mut difference = json!({"changeType": kind});
        for (field, blob) in [("beforeBlob", blob(before)), ("afterBlob", blob(after))] {
            if let Some(blob) = blob {
                difference[field] = blob;
            }
        }
        difference
    });
    let mut answer = json!({"differences": list.collect::<Vec<_>>()});
    if let Some(next) = next {
        answer["NextToken"] = json!(next);
    }
    (
        [("content-type", "application/x-amz-json-1.1")],
        answer.to_string(),
    )
        .into_response()
}

fn refusal(status: u16, code: &str) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let body = json!({"__type": code, "message": format!("it is {code}")});
    let kind = [("content-type", "application/x-amz-json-1.1")];
    (status, kind, body.to_string()).into_response()
}

/// What is asked, once its signature is seen to be the connector's in the region of the repository.
fn request(asked: &Asked) -> Value {
    assert_eq!(
        asked.header("x-amz-target"),
        "CodeCommit_20150413.GetDifferences"
    );
    let signed = asked.header("authorization");
    let scope = "/eu-central-1/codecommit/aws4_request";
    let whose = signed.contains("Credential=AKIDCONNECTOR/") && signed.contains(scope);
    assert!(whose, "{signed}");
    serde_json::from_str(&asked.body).expect("a document")
}

#[tokio::test]
async fn codecommit_is_asked_page_by_page_with_the_connectors_keys() {
    let account = Host::new(|asked| {
        let request = request(asked);
        assert_eq!(request["repositoryName"], "shop");
        assert_eq!(request["beforeCommitSpecifier"], OLD);
        assert_eq!(request["afterCommitSpecifier"], NEW);
        match request["NextToken"].as_str() {
            None => differences(
                &[(None, Some("src/new")), (Some("a"), Some("a"))],
                Some("two"),
            ),
            Some("two") => differences(&[(Some("gone"), None)], None),
            Some(other) => panic!("nobody gave {other}"),
        }
    })
    .await;
    let repo = "https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop";
    let ssh = "ssh://APKA@git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop";
    for url in [repo, ssh] {
        let one = wanted("Codecommit", code_commit(url), push());
        assert_eq!(told_by(&account.address, &one).await, "a gone src/new true");
    }
    assert_eq!(account.times(), 4);
    // A connector of a region is one of all its repositories.
    for host in ["", "/v1/repos"] {
        let mut region = code_commit(&format!(
            "https://git-codecommit.eu-central-1.amazonaws.com{host}"
        ));
        region["type"] = json!("Region");
        let mut one = wanted("Codecommit", region, push());
        let refused = told_by(&account.address, &one).await;
        assert!(refused.contains("`repoName`"), "{refused}");
        one.repository = Some("shop".to_owned());
        assert_eq!(told_by(&account.address, &one).await, "a gone src/new true");
    }
}

#[tokio::test]
async fn what_codecommit_refuses_is_told_and_what_passes_is_asked_again() {
    for (status, code, passing) in [
        (400, "RepositoryDoesNotExistException", false),
        (400, "CommitDoesNotExistException", false),
        (400, "AccessDeniedException", false),
        (400, "UnrecognizedClientException", false),
        (400, "ThrottlingException", true),
        (500, "InternalFailure", true),
    ] {
        let account = Host::new(move |_| refusal(status, code)).await;
        let url = "https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop";
        let refused = told_by(
            &account.address,
            &wanted("Codecommit", code_commit(url), push()),
        )
        .await;
        let end = passing.to_string();
        let told = refused.contains(code) && refused.contains("shop in eu-central-1");
        assert!(told && refused.ends_with(&end), "{refused}");
    }
    let nobody = Host::new(|_| panic!("nothing is to be asked")).await;
    let own = "https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop";
    let mut keyless = code_commit(own);
    keyless["authentication"]["spec"]["type"] = json!("Other");
    let mut unknown = code_commit(own);
    unknown["authentication"]["spec"]["spec"]["secretKeyRef"] = json!("account.gone");
    for (spec, change, why) in [
        (keyless, push(), "no keys of AWS"),
        (unknown, push(), "there is no secret account.gone"),
        (code_commit(own), Change::PullRequest(7), "no pull requests"),
        (
            code_commit("https://git.example.com/v1/repos/shop"),
            push(),
            "not one of CodeCommit",
        ),
        (
            code_commit("https://git-codecommit.nowhere-9.evil.com/v1/repos/shop"),
            push(),
            "not one of CodeCommit",
        ),
        (
            code_commit("https://git-codecommit.evil.com#.amazonaws.com/v1/repos/shop"),
            push(),
            "not one of CodeCommit",
        ),
        (
            code_commit("https://git-codecommit.mars.amazonaws.com/v1/repos/shop"),
            push(),
            "mars",
        ),
        (
            code_commit("https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/a/b"),
            push(),
            "one repository",
        ),
    ] {
        let refused = told_by(&nobody.address, &wanted("Codecommit", spec, change)).await;
        assert!(
            refused.contains(why) && refused.ends_with("false"),
            "{refused}"
        );
    }
    assert_eq!(nobody.times(), 0);
}

#[tokio::test]
async fn a_list_of_codecommit_that_never_ends_is_left() {
    let account = Host::new(|asked| {
        let number = asked.number.to_string();
        let names: Vec<String> = (0..10).map(|at| format!("{number}/{at}")).collect();
        let names: Vec<_> = names
            .iter()
            .map(|name| (None, Some(name.as_str())))
            .collect();
        differences(&names, Some(&number))
    })
    .await;
    let url = "https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop";
    let source = source_of(&account.address, false, Duration::from_secs(30));
    let wanted = wanted("Codecommit", code_commit(url), push());
    let told = source.changed_files(&wanted).await;
    let told = told.expect("files");
    assert_eq!((told.files.len(), told.complete), (1_000, false));
    assert_eq!(account.times(), 100, "pages are bounded");
}

/// A plain Git connector, which is what there is for Harness Code.
fn harness(url: &str, change: Change) -> WantedChange {
    let login = json!({"username": "bot", "passwordRef": "account.token"});
    let spec = json!({"url": url, "connectionType": "Repo", "type": "Http", "spec": login});
    WantedChange {
        api: HostApi::HarnessCode,
        ..wanted("Git", spec, change)
    }
}

async fn told(wanted: &WantedChange) -> String {
    match patient().changed_files(wanted).await {
        Ok(told) => format!("{} {}", told.files.join(" "), told.complete),
        Err(fault) => {
            assert!(!fault.message.contains(TOKEN), "{}", fault.message);
            format!("{} {}", fault.message, fault.passing)
        }
    }
}

#[tokio::test]
async fn harness_code_is_asked_for_the_diff_of_a_pull_request_and_of_a_push() {
    let host = Host::new(|asked| {
        assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
        assert_eq!(asked.header("accept"), "application/json");
        let file = |path: &str, old: &str, status: &str| json!({"sha": "1", "path": path, "old_path": old, "status": status, "is_binary": false});
        match asked.path.as_str() {
            "/api/v1/repos/acme/web/shop/+/pullreq/7/diff" => {
                page(&json!([file("src/a", "src/a", "MODIFIED"), file("new", "old", "RENAMED")]))
            }
            "/api/v1/repos/acme/web/shop/+/diff/a1b2c3..b2c3d4" => page(&json!([file("gone", "gone", "DELETED")])),
            "/code/api/v1/repos/acme/shop/+/pullreq/7/diff" => page(&json!([])),
            "/api/v1/repos/acme/odd/+/pullreq/7/diff" => page(&json!({"message": "hello"})),
            "/api/v1/repos/acme/busy/+/pullreq/7/diff" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            "/api/v1/repos/acme/closed/+/pullreq/7/diff" => StatusCode::FORBIDDEN.into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await;
    let at = |path: &str| format!("{}{path}", host.address);
    let pull = || Change::PullRequest(7);
    for (path, change, expected) in [
        ("/git/acme/web/shop.git", pull(), "new old src/a true"),
        ("/git/acme/web/shop.git", push(), "gone true"),
        ("/acme/web/shop", push(), "gone true"),
        ("/code/git/acme/shop.git", pull(), " true"),
    ] {
        assert_eq!(told(&harness(&at(path), change)).await, expected, "{path}");
    }
    for (path, why, end) in [
        ("/git/acme/odd.git", "no list of files", "false"),
        ("/git/acme/busy.git", "(503)", "true"),
        ("/git/acme/closed.git", "(403)", "false"),
        ("/git/acme/gone.git", "(404)", "false"),
        ("/git/shop.git", "a space and a repository", "false"),
    ] {
        let refused = told(&harness(&at(path), pull())).await;
        assert!(refused.contains(why) && refused.ends_with(end), "{refused}");
    }
    // A key for SSH says nothing to an API.
    let mut ssh = harness(&at("/git/acme/web/shop.git"), push());
    ssh.connector.spec["type"] = json!("Ssh");
    ssh.connector.spec["spec"] = json!({"sshKeyRef": "account.key"});
    let refused = told(&ssh).await;
    assert!(refused.contains("logs in over SSH"), "{refused}");
}

#[tokio::test]
async fn a_token_of_harness_goes_to_no_other_host() {
    let elsewhere = Host::new(|_| page(&json!([]))).await;
    let there = format!("{}/login", elsewhere.address);
    let host =
        Host::new(move |_| (StatusCode::FOUND, [("location", there.clone())], "").into_response())
            .await;
    let url = format!("{}/git/acme/shop.git", host.address);
    let refused = told(&harness(&url, push())).await;
    assert!(refused.contains("another address (302)"), "{refused}");
    assert_eq!((host.times(), elsewhere.times()), (1, 0));
    let plain = told(&harness("http://git.example.com/git/acme/shop.git", push())).await;
    assert!(plain.contains("not sent over http"), "{plain}");
}
