//! Steps of Jira.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_expr::secret::{SecretRef, SecretText};
use slipway_model::status::{ErrorType, Status};
use slipway_steps::Progress;

use super::{pass, run, waits, world_of};
use crate::common::call;
use crate::world::{PASSWORD, World};
use slipway_world::ticket::Server;
use slipway_world::ticket::jira::Jira;

fn create(issue_type: &str, more: &[(&str, &str)]) -> Value {
    let mut fields = vec![json!({"name": "Summary", "value": "Release 7"})];
    fields.extend(
        more.iter()
            .map(|(name, value)| json!({"name": name, "value": value})),
    );
    json!({"connectorRef": "account.tracker", "projectKey": "SHOP", "issueType": issue_type, "fields": fields})
}

async fn jira(system: Jira) -> (Server<Jira>, World) {
    let server = Server::start(system).await;
    let world = world_of("Jira", &server).await;
    (server, world)
}

#[tokio::test]
async fn an_issue_is_created_with_its_fields_and_read_back() {
    let (server, world) = jira(Jira::default()).await;
    let secret = SecretText::secret(SecretRef::new("account.password").expect("a reference"));
    let spec = create(
        "task",
        &[
            ("Priority", "High"),
            ("Story Points", "3"),
            ("Reporter", "sam@acme.example"),
            ("Go Live", "2026-02-03T10:00:00Z"),
            ("Labels", "release"),
            ("customer name", &format!("p: {}", secret.encode())),
            ("Comment", "made by Slipway"),
        ],
    );
    let outputs = run(&world, &server, "JiraCreate", &spec)
        .await
        .expect("an issue");
    let issue = &outputs["issue"];
    assert_eq!(issue["key"], "SHOP-1");
    assert_eq!(issue["url"], format!("{}/browse/SHOP-1", server.url));
    assert_eq!(issue["Status"], "To Do");
    assert_eq!(issue["Story Points"], 3);
    assert!(!outputs.to_string().contains(PASSWORD), "{outputs}");
    assert!(!world.everything_stored().await.contains(PASSWORD));
    server.with(|jira| {
        let issue = &jira.issues["SHOP-1"];
        assert_eq!(issue["customfield_10001"], format!("p: {PASSWORD}"));
        assert_eq!(issue["reporter"], json!({"accountId": "5b10"}));
        assert_eq!(issue["priority"], json!({"id": "1"}));
        assert_eq!(issue["customfield_10003"], "2026-02-03T10:00:00.000+0000");
        let labels = issue["labels"].as_array().expect("labels");
        assert_eq!(labels[0], "release");
        assert!(
            labels[1]
                .as_str()
                .is_some_and(|mark| mark.starts_with("slipway-")),
            "{labels:?}"
        );
        assert_eq!(jira.comments, ["made by Slipway"]);
    });
}

#[tokio::test]
async fn an_issue_is_created_once_however_often_the_step_dies() {
    for data_center in [false, true] {
        for after in [false, true] {
            for request in 1.. {
                let (server, world) = jira(Jira {
                    lag: 2,
                    data_center,
                    ..Jira::default()
                })
                .await;
                server.kill_at(request, after);
                let outputs = run(&world, &server, "JiraCreate", &create("Task", &[]))
                    .await
                    .expect("an issue");
                assert_eq!(outputs["issue"]["key"], "SHOP-1");
                let issues = server.with(|jira| jira.issues.len());
                assert_eq!(
                    issues,
                    1,
                    "died at request {request}, after: {after}: {:?}",
                    server.asked()
                );
                if server.spared() {
                    assert!(request > 5, "{:?}", server.asked());
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn an_issue_without_labels_is_not_created_twice() {
    let (server, world) = jira(Jira::default()).await;
    let spec = create("Bare", &[]);
    // Types, three pages of fields, then the request itself.
    server.kill_at(5, true);
    let failure = run(&world, &server, "JiraCreate", &spec)
        .await
        .expect_err("unknown");
    assert!(
        failure.message.contains("interrupted"),
        "{}",
        failure.message
    );
    assert_eq!(server.with(|jira| jira.issues.len()), 1);
}

#[tokio::test]
async fn what_jira_refuses_is_told() {
    let table = [
        (
            create("Task", &[("Colour", "red")]),
            "Jira has no field `Colour`",
        ),
        (
            create("Task", &[("Story Points", "many")]),
            "wants a number",
        ),
        (
            create("Task", &[("Reporter", "nobody")]),
            "knows no user nobody",
        ),
        (create("Epic", &[]), "no issue type Epic; it has Task, Bare"),
        (
            json!({"connectorRef": "x", "projectKey": "SHOP", "issueType": "Task", "fields": []}),
            "HTTP 400: summary: You must specify a summary",
        ),
    ];
    for (spec, expected) in table {
        let (server, world) = jira(Jira::default()).await;
        let failure = run(&world, &server, "JiraCreate", &spec)
            .await
            .expect_err("a refusal");
        assert!(failure.message.contains(expected), "{}", failure.message);
        assert_eq!(server.with(|jira| jira.issues.len()), 0);
    }
}

fn update() -> Value {
    json!({"connectorRef": "account.tracker", "issueKey": "SHOP-1",
        "fields": [{"name": "Story Points", "value": "5"}, {"name": "Comment", "value": "deployed"}],
        "transitionTo": {"status": "In Review", "transitionName": ""}})
}

#[tokio::test]
async fn an_issue_is_updated_once_however_often_the_step_dies() {
    for after in [false, true] {
        for request in 1.. {
            let (server, world) = jira(Jira::with("SHOP-1", "To Do")).await;
            server.kill_at(request, after);
            let outputs = run(&world, &server, "JiraUpdate", &update())
                .await
                .expect("an update");
            assert_eq!(outputs["issue"]["Status"], "In Review");
            assert_eq!(outputs["issue"]["Story Points"], 5);
            let comments = server.with(|jira| jira.comments.clone());
            assert_eq!(
                comments,
                ["deployed"],
                "died at request {request}, after: {after}"
            );
            if server.spared() {
                assert!(request > 6, "{:?}", server.asked());
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_status_that_the_workflow_does_not_offer_is_refused() {
    let (server, world) = jira(Jira::with("SHOP-1", "In Review")).await;
    let mut spec = update();
    spec["fields"] = json!([]);
    spec["transitionTo"] = json!({"status": "Released", "transitionName": ""});
    let failure = run(&world, &server, "JiraUpdate", &spec)
        .await
        .expect_err("no way");
    assert!(
        failure
            .message
            .contains("its workflow offers Accept to Done, Back to To Do"),
        "{}",
        failure.message
    );
    spec["issueKey"] = json!("SHOP-9");
    let (server, world) = jira(Jira::with("SHOP-1", "In Review")).await;
    let failure = run(&world, &server, "JiraUpdate", &spec)
        .await
        .expect_err("no issue");
    assert!(
        failure.message.contains("Issue does not exist"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn a_busy_jira_is_asked_again_and_a_broken_one_given_up() {
    let (server, world) = jira(Jira::with("SHOP-1", "To Do")).await;
    server.trouble((429, &[("retry-after", "7")], String::new()));
    assert_eq!(
        waits(&world, "JiraUpdate", &update()).await,
        Duration::from_secs(7)
    );
    assert!(
        waits(&world, "JiraUpdate", &update()).await <= Duration::from_secs(7),
        "called too early"
    );
    assert_eq!(server.asked().len(), 1);
    for _ in 0..3 {
        server.trouble((503, &[], "down".to_owned()));
    }
    pass(Duration::from_secs(7)).await;
    run(&world, &server, "JiraUpdate", &update())
        .await
        .expect("an update");

    let (server, world) = jira(Jira::default()).await;
    for _ in 0..6 {
        server.trouble((500, &[], json!({"message": "out of order"}).to_string()));
    }
    let failure = run(&world, &server, "JiraCreate", &create("Task", &[]))
        .await
        .expect_err("a broken server");
    assert_eq!(failure.error, ErrorType::Connectivity);
    assert!(
        failure.message.contains("HTTP 500: out of order"),
        "{}",
        failure.message
    );
}

/// An approval with conditions on the status.
pub(super) fn approval(key: &str) -> Value {
    let status = |value: &str| {
        json!({"type": "KeyValues", "spec": {"matchAnyCondition": false,
            "conditions": [{"key": "Status", "operator": "equals", "value": value}]}})
    };
    json!({"connectorRef": "account.tracker", "issueKey": key, "retryInterval": "30s",
        "approvalCriteria": status("Done"), "rejectionCriteria": status("Won't Do")})
}

#[tokio::test]
async fn an_approval_waits_for_the_status_and_survives_trouble() {
    let (server, world) = jira(Jira::with("SHOP-1", "To Do")).await;
    let spec = approval("SHOP-1");
    let first = call(&world, "JiraApproval", &spec, None)
        .await
        .expect("a wait");
    assert_eq!(
        first,
        Progress::Hold {
            time: Duration::from_secs(30),
            status: Status::ApprovalWaiting
        }
    );
    // Woken by somebody who speaks of something else, it does not ask again.
    waits(&world, "JiraApproval", &spec).await;
    assert_eq!(server.asked().len(), 1);
    let troubles = [
        (503, "down".to_owned()),
        (500, String::new()),
        (429, String::new()),
        (408, "x".repeat(1024 * 1024)),
    ];
    for (code, body) in troubles {
        pass(Duration::from_secs(30)).await;
        server.trouble((code, &[("retry-after", "90")], body));
        let wait = waits(&world, "JiraApproval", &spec).await;
        assert_eq!(wait, Duration::from_secs(90), "{code}");
        pass(Duration::from_secs(60)).await;
    }
    // The page of a proxy or of a login, once the address has shown to be right.
    for code in [200, 302] {
        pass(Duration::from_secs(30)).await;
        server.trouble((code, &[], "<html>Back soon</html>".to_owned()));
        let wait = waits(&world, "JiraApproval", &spec).await;
        assert_eq!(wait, Duration::from_secs(30), "{code}");
    }
    server.with(|jira| jira.status("SHOP-1", "Done"));
    let outputs = run(&world, &server, "JiraApproval", &spec)
        .await
        .expect("an approval");
    assert_eq!(outputs["issue"]["Status"], "Done");
    let log = world.log("JiraApproval", "Execute").await;
    assert_eq!(log.matches("Status is `To Do`").count(), 1, "{log}");
    assert!(!log.contains(PASSWORD));
}

#[tokio::test]
async fn an_approval_is_rejected_by_its_criteria() {
    let (server, world) = jira(Jira::with("SHOP-1", "Won't Do")).await;
    let failure = run(&world, &server, "JiraApproval", &approval("SHOP-1"))
        .await
        .expect_err("a rejection");
    assert_eq!(failure.error, ErrorType::ApprovalRejection);
    assert!(
        failure.message.contains("Status is `Won't Do`"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn an_approval_by_expression_reads_fields_with_spaces() {
    let (server, world) = jira(Jira::with("SHOP-1", "To Do")).await;
    server.with(|jira| {
        jira.issues.get_mut("SHOP-1").expect("the issue")["customfield_10001"] = json!("Acme")
    });
    let mut spec = approval("SHOP-1");
    spec["approvalCriteria"] = json!({"type": "Jexl", "spec": {
        "expression": "<+issue.\"Customer Name\"> == \"Acme\" && <+issue.Status> != \"Done\" && <+issue.key> == \"SHOP-1\""}});
    run(&world, &server, "JiraApproval", &spec)
        .await
        .expect("an approval");
}

#[tokio::test]
async fn what_will_not_change_by_waiting_ends_an_approval() {
    let long = "x".repeat(5 * 1024 * 1024);
    let deep = "[".repeat(100_000);
    let echo = json!({"errorMessages": [format!("your password is {PASSWORD}")]}).to_string();
    let table = [
        (
            (401, &[][..], echo),
            ErrorType::Authentication,
            "Check the login of connector account.tracker",
        ),
        (
            (403, &[][..], "<html>".to_owned()),
            ErrorType::Authorization,
            "may not do this",
        ),
        (
            (404, &[][..], String::new()),
            ErrorType::Unknown,
            "HTTP 404",
        ),
        (
            (
                302,
                &[("location", "http://169.254.169.254/")][..],
                String::new(),
            ),
            ErrorType::Connectivity,
            "link-local",
        ),
        (
            (200, &[][..], "<html>log in</html>".to_owned()),
            ErrorType::Unknown,
            "no JSON",
        ),
        (
            (200, &[][..], long),
            ErrorType::Unknown,
            "longer than 4 MiB",
        ),
        ((200, &[][..], deep), ErrorType::Unknown, "no JSON"),
        (
            (200, &[][..], "{}".to_owned()),
            ErrorType::Unknown,
            "has no key",
        ),
    ];
    for ((code, headers, body), error, expected) in table {
        let (server, world) = jira(Jira::with("SHOP-1", "Done")).await;
        server.trouble((code, headers, body));
        let looked = call(&world, "JiraApproval", &approval("SHOP-1"), None).await;
        if code == 302 {
            // A redirect may be a passing fault of a proxy: it is not followed there, and asked again.
            assert!(matches!(looked, Ok(Progress::Hold { .. })), "{looked:?}");
            assert!(
                world
                    .log("JiraApproval", "Execute")
                    .await
                    .contains(expected)
            );
            continue;
        }
        let failure = looked.expect_err("an end");
        assert_eq!(failure.error, error, "{}", failure.message);
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_connector_that_cannot_log_in_is_refused_with_words() {
    let (_server, mut world) = jira(Jira::with("SHOP-1", "Done")).await;
    let url = world.step_connector.as_ref().expect("a connector").spec["jiraUrl"].clone();
    let table = [
        (
            json!({"jiraUrl": url, "auth": {"type": "OAuth", "spec": {}}}),
            "its login of type `OAuth` is not supported",
        ),
        (
            json!({"jiraUrl": url, "auth": {"type": "PersonalAccessToken", "spec": {}}}),
            "its login has no patRef",
        ),
        (
            json!({"jiraUrl": url, "username": "sam", "passwordRef": "account.gone"}),
            "There is no secret account.gone",
        ),
        (
            json!({"jiraUrl": "http://169.254.169.254", "username": "sam", "passwordRef": "account.password"}),
            "link-local",
        ),
        (json!({"username": "sam"}), "it has no jiraUrl"),
    ];
    for (spec, expected) in table {
        world.next_run();
        world.step_connector.as_mut().expect("a connector").spec = spec;
        let failure = call(&world, "JiraApproval", &approval("SHOP-1"), None)
            .await
            .expect_err("a refusal");
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
    // The user in the spec itself, as connectors have long had it.
    world.next_run();
    world.step_connector.as_mut().expect("a connector").spec =
        json!({"jiraUrl": url, "username": "sam", "passwordRef": "account.password"});
    let ended = call(&world, "JiraApproval", &approval("SHOP-1"), None).await;
    assert!(matches!(ended, Ok(Progress::Done(_))), "{ended:?}");
}

#[tokio::test]
async fn a_silent_jira_is_left_after_half_a_minute_and_asked_again() {
    let (server, world) = jira(Jira::with("SHOP-1", "To Do")).await;
    let mut spec = approval("SHOP-1");
    spec["delegateSelectors"] = json!(["linux"]);
    server.kill_at(1, false);
    let silence = async {
        server.hung().await;
        pass(Duration::from_secs(31)).await;
    };
    let (looked, ()) = tokio::join!(call(&world, "JiraApproval", &spec, None), silence);
    assert!(matches!(looked, Ok(Progress::Hold { .. })), "{looked:?}");
    let log = world.log("JiraApproval", "Execute").await;
    assert!(log.contains("timed out"), "{log}");
    assert_eq!(log.matches("not by a delegate").count(), 1, "{log}");
}

#[tokio::test]
async fn an_issue_of_any_size_is_judged_and_what_is_stored_of_it_stays_small() {
    let (server, world) = jira(Jira::with("SHOP-1", "To Do")).await;
    server.with(|jira| {
        jira.issues.get_mut("SHOP-1").expect("the issue")["description"] =
            "long ".repeat(300_000).into();
    });
    let mut spec = approval("SHOP-1");
    spec["approvalCriteria"] =
        json!({"type": "Jexl", "spec": {"expression": "<+issue.Status> == \"Done\""}});
    spec["rejectionCriteria"]["spec"]["conditions"][0]["key"] = json!("Description");
    waits(&world, "JiraApproval", &spec).await;
    spec["approvalCriteria"] = json!({"type": "KeyValues", "spec": {"matchAnyCondition": true,
        "conditions": [{"key": "Description", "operator": "equals", "value": "short"}]}});
    pass(Duration::from_secs(31)).await;
    waits(&world, "JiraApproval", &spec).await;
    let stored = world.everything_stored().await;
    assert!(stored.len() < 20_000, "{}", stored.len());
    server.with(|jira| jira.status("SHOP-1", "Done"));
    spec["approvalCriteria"] =
        json!({"type": "Jexl", "spec": {"expression": "<+issue.Status> == \"Done\""}});
    let outputs = run(&world, &server, "JiraApproval", &spec)
        .await
        .expect("an approval");
    assert!(outputs.to_string().len() < 20_000);
    let log = world.log("JiraApproval", "Execute").await;
    assert!(
        log.contains("too large for outputs were left out: Description"),
        "{log}"
    );
}
