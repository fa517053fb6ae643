//! Steps of ServiceNow.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::status::{ErrorType, Status};
use slipway_steps::Progress;

use super::{pass, run, waits, world_of};
use crate::common::call;
use crate::world::{PASSWORD, World};
use slipway_world::ticket::Server;
use slipway_world::ticket::service_now::{ServiceNow, row};

async fn now(system: ServiceNow) -> (Server<ServiceNow>, World) {
    let server = Server::start(system).await;
    let world = world_of("ServiceNow", &server).await;
    (server, world)
}

fn create(table: &str) -> Value {
    json!({"connectorRef": "account.tracker", "ticketType": table, "createType": "Normal", "useServiceNowTemplate": false,
        "fields": [{"name": "short_description", "value": "Release 7"}]})
}

#[tokio::test]
async fn a_ticket_is_created_once_however_often_the_step_dies() {
    for after in [false, true] {
        for request in 1.. {
            let (server, world) = now(ServiceNow::default()).await;
            server.kill_at(request, after);
            let spec = create("CHANGE_REQUEST");
            let outputs = run(&world, &server, "ServiceNowCreate", &spec)
                .await
                .expect("a ticket");
            let ticket = &outputs["ticket"];
            assert_eq!(ticket["ticketNumber"], "NUM0000001");
            assert_eq!(
                ticket["state"],
                json!({"value": "-2", "displayValue": "Scheduled"})
            );
            assert!(
                ticket["url"]
                    .as_str()
                    .is_some_and(|url| url.contains("change_request.do")),
                "{ticket}"
            );
            let tickets = server.with(|now| now.tables["change_request"].len());
            assert_eq!(tickets, 1, "died at request {request}, after: {after}");
            assert!(!world.everything_stored().await.contains(PASSWORD));
            if server.spared() {
                assert!(request > 1, "{:?}", server.asked());
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_ticket_in_a_table_without_marks_is_not_created_twice() {
    let (server, world) = now(ServiceNow::default()).await;
    server.kill_at(1, true);
    let failure = run(&world, &server, "ServiceNowCreate", &create("u_bare"))
        .await
        .expect_err("unknown");
    assert!(
        failure.message.contains("no column correlation_id"),
        "{}",
        failure.message
    );
    assert_eq!(server.with(|now| now.tables["u_bare"].len()), 1);
}

#[tokio::test]
async fn a_standard_change_comes_from_its_template() {
    let (server, world) = now(ServiceNow::default()).await;
    let mut spec = create("change_request");
    spec["createType"] = json!("Standard");
    spec["templateName"] = json!("Reboot");
    let outputs = run(&world, &server, "ServiceNowCreate", &spec)
        .await
        .expect("a ticket");
    assert_eq!(outputs["ticket"]["short_description"]["value"], "Release 7");
    assert!(
        server
            .asked()
            .contains(&"POST /api/sn_chg_rest/change/standard/s2".to_owned()),
        "{:?}",
        server.asked()
    );
    world_refuses(
        &mut spec,
        "Reboot some",
        "no standard change template `Reboot some`",
    )
    .await;
}

async fn world_refuses(spec: &mut Value, template: &str, expected: &str) {
    let (server, world) = now(ServiceNow::default()).await;
    spec["templateName"] = json!(template);
    let failure = run(&world, &server, "ServiceNowCreate", spec)
        .await
        .expect_err("no template");
    assert!(failure.message.contains(expected), "{}", failure.message);
}

fn update() -> Value {
    json!({"connectorRef": "account.tracker", "ticketType": "change_request", "ticketNumber": "CHG0030001",
        "useServiceNowTemplate": false,
        "fields": [{"name": "state", "value": "-1"}, {"name": "work_notes", "value": "deployed"}]})
}

#[tokio::test]
async fn a_ticket_is_updated_once_however_often_the_step_dies() {
    for after in [false, true] {
        for request in 1.. {
            let (server, world) = now(ServiceNow::with_change("-2", ("", ""))).await;
            server.kill_at(request, after);
            let outputs = run(&world, &server, "ServiceNowUpdate", &update())
                .await
                .expect("an update");
            assert_eq!(outputs["ticket"]["state"]["displayValue"], "Implement");
            let notes =
                server.with(|now| now.column("change_request", "c1", "work_notes").to_string());
            assert_eq!(
                notes.matches("deployed").count(),
                1,
                "died at request {request}, after: {after}: {notes}"
            );
            if server.spared() {
                assert!(request > 2, "{:?}", server.asked());
                break;
            }
        }
    }
}

#[tokio::test]
async fn the_tasks_of_a_change_are_updated_together() {
    let mut spec = update();
    spec["ticketType"] = json!("change_task");
    spec.as_object_mut().expect("fields").remove("ticketNumber");
    let kinds = [("", vec!["CTASK1", "CTASK2"]), ("testing", vec!["CTASK2"])];
    for (kind, expected) in kinds {
        spec["updateMultiple"] = json!({"type": "CHANGE_TASK",
            "spec": {"changeRequestNumber": "CHG0030001", "changeTaskType": kind}});
        let (server, world) = now(ServiceNow::with_change("-2", ("", ""))).await;
        let outputs = run(&world, &server, "ServiceNowUpdate", &spec)
            .await
            .expect("an update");
        let tickets = outputs["tickets"].as_array().expect("tickets");
        let numbers: Vec<_> = tickets
            .iter()
            .map(|ticket| ticket["ticketNumber"].as_str().expect("a number"))
            .collect();
        assert_eq!(numbers, expected);
        assert_eq!(
            server.with(|now| now.column("change_task", "t3", "state").clone()),
            "",
            "of another change"
        );
    }
    spec["updateMultiple"]["spec"]["changeTaskType"] = json!("review");
    let (server, world) = now(ServiceNow::with_change("-2", ("", ""))).await;
    let failure = run(&world, &server, "ServiceNowUpdate", &spec)
        .await
        .expect_err("none");
    assert!(
        failure.message.contains("no change tasks of type review"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn what_service_now_refuses_is_told() {
    let (server, world) = now(ServiceNow::with_change("-2", ("", ""))).await;
    let failure = run(&world, &server, "ServiceNowCreate", &create("u_gone"))
        .await
        .expect_err("no table");
    assert!(
        failure.message.contains("HTTP 400: Invalid table u_gone"),
        "{}",
        failure.message
    );
    let mut spec = update();
    spec["ticketNumber"] = json!("CHG9");
    let failure = run(&world, &server, "ServiceNowUpdate", &spec)
        .await
        .expect_err("no ticket");
    assert!(
        failure
            .message
            .contains("no ticket CHG9 in table change_request"),
        "{}",
        failure.message
    );
    spec["ticketNumber"] = json!("CHG0030001^ORnumber=x");
    let (server, world) = now(ServiceNow::with_change("-2", ("", ""))).await;
    let failure = run(&world, &server, "ServiceNowUpdate", &spec)
        .await
        .expect_err("no number");
    assert!(
        failure.message.contains("ticketNumber"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn a_row_is_imported_once_and_tells_what_became_of_it() {
    let spec = |body: &str| {
        json!({"connectorRef": "account.tracker", "stagingTableName": "u_staging",
            "importData": {"type": "Json", "spec": {"jsonBody": body}}})
    };
    let (server, world) = now(ServiceNow::default()).await;
    let outputs = run(
        &world,
        &server,
        "ServiceNowImportSet",
        &spec("{\"description\": \"a\"}"),
    )
    .await
    .expect("a row");
    assert_eq!(outputs["output"]["importSetNumber"], "ISET0010001");
    assert_eq!(
        outputs["output"]["transformMapOutcomes"][0]["status"],
        "inserted"
    );

    let (server, world) = now(ServiceNow::default()).await;
    let failure = run(
        &world,
        &server,
        "ServiceNowImportSet",
        &spec("{\"u_bad\": \"a\"}"),
    )
    .await
    .expect_err("an error");
    assert!(
        failure.message.contains("To incident: no such caller"),
        "{}",
        failure.message
    );

    for after in [false, true] {
        let (server, world) = now(ServiceNow::default()).await;
        server.kill_at(1, after);
        let failure = run(&world, &server, "ServiceNowImportSet", &spec("{}"))
            .await
            .expect_err("unknown");
        assert!(
            failure.message.contains("interrupted"),
            "{}",
            failure.message
        );
        assert_eq!(server.asked().len(), 1);
    }
}

fn approval(window: bool) -> Value {
    let state = |value: &str| {
        json!({"type": "KeyValues", "spec": {"matchAnyCondition": true,
            "conditions": [{"key": "state", "operator": "equals", "value": value}]}})
    };
    let mut spec = json!({"connectorRef": "account.tracker", "ticketType": "change_request", "ticketNumber": "CHG0030001",
        "retryInterval": "2m", "approvalCriteria": state("Implement"), "rejectionCriteria": state("Canceled")});
    if window {
        spec["changeWindow"] = json!({"startField": "start_date", "endField": "end_date"});
    }
    spec
}

#[tokio::test]
async fn an_approval_waits_for_its_change_window() {
    // The clock of these tests begins at midnight.
    let (server, world) = now(ServiceNow::with_change(
        "-2",
        ("2026-01-01 00:05:00", "2026-01-01 01:00:00"),
    ))
    .await;
    let spec = approval(true);
    let first = call(&world, "ServiceNowApproval", &spec, None)
        .await
        .expect("a wait");
    assert_eq!(
        first,
        Progress::Hold {
            time: Duration::from_secs(120),
            status: Status::ApprovalWaiting
        }
    );
    server.with(|now| *now.column("change_request", "c1", "state") = "-1".into());
    let mut waited = 0;
    for _ in 0..2 {
        pass(Duration::from_secs(120)).await;
        waited += waits(&world, "ServiceNowApproval", &spec).await.as_secs();
    }
    assert!(
        (177..=180).contains(&waited),
        "two minutes, then what is left until the window: {waited}"
    );
    let outputs = run(&world, &server, "ServiceNowApproval", &spec)
        .await
        .expect("an approval");
    assert_eq!(outputs["ticket"]["ticketNumber"], "CHG0030001");
    let log = world.log("ServiceNowApproval", "Execute").await;
    assert!(
        log.contains("its change window begins at 2026-01-01T00:05:00Z"),
        "{log}"
    );
}

/// Whoever plans the change may do so after it was approved.
#[tokio::test]
async fn an_approval_waits_until_its_change_window_is_filled_in() {
    let (server, world) = now(ServiceNow::with_change("-1", ("", "2026-01-01 01:00:00"))).await;
    let spec = approval(true);
    let wait = waits(&world, "ServiceNowApproval", &spec).await;
    assert_eq!(wait.as_secs(), 120);
    let log = world.log("ServiceNowApproval", "Execute").await;
    assert!(
        log.contains("`start_date` of its change window is empty"),
        "{log}"
    );
    let start = "2026-01-01 00:00:00";
    server.with(|now| *now.column("change_request", "c1", "start_date") = start.into());
    pass(wait).await;
    let outputs = run(&world, &server, "ServiceNowApproval", &spec).await;
    assert_eq!(
        outputs.expect("an approval")["ticket"]["ticketNumber"],
        "CHG0030001"
    );
}

#[tokio::test]
async fn an_approval_is_rejected_or_comes_too_late() {
    let (server, world) = now(ServiceNow::with_change("-4", ("", ""))).await;
    let failure = run(&world, &server, "ServiceNowApproval", &approval(false))
        .await
        .expect_err("a rejection");
    assert_eq!(failure.error, ErrorType::ApprovalRejection);
    let (server, world) = now(ServiceNow::with_change(
        "-1",
        ("2025-12-31 10:00:00", "2025-12-31 11:00:00"),
    ))
    .await;
    let failure = run(&world, &server, "ServiceNowApproval", &approval(true))
        .await
        .expect_err("too late");
    assert!(
        failure.message.contains("was over at 2025-12-31T11:00:00Z"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn an_expression_reads_both_values_of_a_column() {
    let (server, world) = now(ServiceNow::with_change("-1", ("", ""))).await;
    let mut spec = approval(false);
    spec["approvalCriteria"] = json!({"type": "Jexl", "spec": {
        "expression": "<+ticket.state.displayValue> == \"Implement\" && <+ticket.state.value> == \"-1\" && <+ticket.ticketNumber> == \"CHG0030001\""}});
    run(&world, &server, "ServiceNowApproval", &spec)
        .await
        .expect("an approval");
}

#[tokio::test]
async fn a_refresh_token_is_changed_into_one_for_the_calls() {
    let (server, mut world) = now(ServiceNow {
        tables: [(
            "incident".to_owned(),
            vec![row(&[("sys_id", "i1"), ("number", "INC1")])],
        )]
        .into(),
    })
    .await;
    world.step_connector.as_mut().expect("a connector").spec = json!({"serviceNowUrl": server.url, "auth": {
        "type": "RefreshTokenGrantType", "spec": {"tokenUrl": format!("{}/oauth_token.do", server.url),
            "refreshTokenRef": "account.password", "clientIdRef": "account.password", "scope": "a b"}}});
    server.trouble((
        200,
        &[],
        json!({"access_token": "fresh-token", "expires_in": 1800}).to_string(),
    ));
    let mut spec = update();
    spec["ticketType"] = json!("incident");
    spec["ticketNumber"] = json!("INC1");
    // The system knows the password only: the token is refused, and is not shown.
    let failure = run(&world, &server, "ServiceNowUpdate", &spec)
        .await
        .expect_err("a login");
    assert_eq!(failure.error, ErrorType::Authentication);
    assert_eq!(server.asked()[0], "POST /oauth_token.do");
    assert!(!world.everything_stored().await.contains("fresh-token"));
    for _ in 0..2 {
        server.trouble((503, &[], "busy".to_owned()));
    }
    server.trouble((400, &[], json!({"error": "invalid_grant"}).to_string()));
    world.next_run();
    let failure = run(&world, &server, "ServiceNowUpdate", &spec)
        .await
        .expect_err("no token");
    assert!(
        failure
            .message
            .contains("its token server answered HTTP 400 and no token"),
        "{}",
        failure.message
    );
}
