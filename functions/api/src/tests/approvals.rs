//! Approvals as the clients list and answer them.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_model::id::{AccountId, PrincipalId};
use slipway_model::status::Status;

use super::execution::node;
use super::{Api, SCOPE};
use crate::{NewToken, Permission, mint_token};

const ASK: &str = "stages.deploy.spec.execution.steps.ask";

/// A run that waits for an approval; its id and the approval's.
async fn waiting(api: &Api, approvers: Value) -> (String, String) {
    let run = api.run_golden().await;
    let mut record = node(&run, ASK, "HarnessApproval", Status::ApprovalWaiting);
    record.spec = json!({
        "approvalMessage": "ship it?",
        "callbackId": "release",
        "includePipelineExecutionHistory": true,
        "approvers": approvers,
        "approverInputs": [{"name": "ticket", "required": true}],
    });
    api.store.start_node(&record).await.expect("a node");
    let id = format!("{run}.{ASK}.0");
    (run, id)
}

fn activity(id: &str) -> String {
    format!("/pipeline/api/approvals/{id}/harness/activity?{SCOPE}")
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_listed_answered_once_and_shown() {
    let mut api = Api::new().await;
    let approvers =
        json!({"minimumCount": 2, "disallowPipelineExecutor": false, "userGroups": ["leads"]});
    let (run, id) = waiting(&api, approvers).await;
    let list = format!("/pipeline/api/pipelines/execution/summary?{SCOPE}&status");
    let body = json!({"filterType": "PipelineExecution"});
    let asks = api.post(&format!("{list}=ApprovalWaiting"), &body).await;
    let asks = asks.data()["content"][0].clone();
    assert_eq!(asks["planExecutionId"], run);
    assert_eq!(asks["status"], "ApprovalWaiting");
    let runs = api.post(&format!("{list}=Running"), &body).await.data();
    assert_eq!(runs["totalElements"], 0);
    let groups = format!("/ng/api/user-groups?{SCOPE}");
    let leads = |users: Value| json!({"identifier": "leads", "name": "Leads", "users": users});
    let no = json!({"action": "REJECT"});
    let (status, _, message) = api.post(&activity(&id), &no).await.refusal();
    assert!(
        status == 403 && message.contains("there is no user group `leads`"),
        "{message}"
    );
    api.post(&groups, &leads(json!(["sam"]))).await.data();
    let (status, _, message) = api.post(&activity(&id), &no).await.refusal();
    assert!(
        status == 403
            && message.contains("jo@example.com is not among those who are asked: `leads`"),
        "{message}"
    );
    api.put(&groups, &leads(json!(["sam", "Jo@example.com"])))
        .await
        .data();
    let list = format!("/v1/orgs/default/projects/default/approvals/execution/{run}?{SCOPE}");
    let listed = api
        .get(&format!("{list}&approval_status=WAITING"))
        .await
        .json();
    assert_eq!(listed[0]["id"], id.as_str());
    assert_eq!(listed[0]["status"], "WAITING");
    assert_eq!(listed[0]["details"]["approvalMessage"], "ship it?");
    let none = api
        .get(&format!("{list}&approval_status=APPROVED"))
        .await
        .json();
    assert_eq!(none, json!([]));

    let detail = format!("/pipeline/api/pipelines/execution/v2/{run}?{SCOPE}");
    let detail = api.get(&detail).await.data();
    assert_eq!(
        detail["pipelineExecutionSummary"]["status"],
        "ApprovalWaiting"
    );

    let missing = json!({"action": "APPROVE", "comments": "yes"});
    let (status, _, message) = api.post(&activity(&id), &missing).await.refusal();
    assert!(
        status == 400 && message.contains("`ticket` is required"),
        "{message}"
    );
    let odd = json!({"action": "SHRUG"});
    assert_eq!(api.post(&activity(&id), &odd).await.refusal().0, 400);

    let yes = json!({"action": "APPROVE", "comments": "yes", "approverInputs": [{"name": "ticket", "value": "A-1"}]});
    let shown = api.post(&activity(&id), &yes).await.data();
    let said = &shown["details"]["approvalActivities"][0];
    assert_eq!(
        (&said["comments"], &said["action"]),
        (&json!("yes"), &json!("APPROVE"))
    );
    assert_eq!(
        api.post(&activity(&id), &yes).await.refusal().0,
        409,
        "twice by one person"
    );
    let elsewhere = format!("{run}.stages.deploy.spec.execution.steps.other.0");
    assert_eq!(api.post(&activity(&elsewhere), &yes).await.refusal().0, 404);

    api.token = token_of(&api, "sam").await;
    let shown = api.post(&activity(&id), &missing).await.data();
    let said = &shown["details"]["approvalActivities"][1];
    assert_eq!(
        (&said["user"], &said["approverInputs"]),
        (
            &json!({"name": "sam", "email": "sam@localhost"}),
            &json!([{"name": "ticket", "value": "A-1"}])
        ),
        "the next approver finds what the one before gave"
    );

    // Enough have answered, and the run has not gone on yet: who comes now is overtaken.
    api.clock.sleep(Duration::from_secs(1)).await;
    let more = leads(json!(["sam", "Jo@example.com", "kim"]));
    api.put(&groups, &more).await.data();
    api.token = token_of(&api, "kim").await;
    let (status, _, message) = api.post(&activity(&id), &no).await.refusal();
    assert!(
        status == 409 && message.contains("it is APPROVED: sam was faster"),
        "{message}"
    );
}

async fn token_of(api: &Api, who: &str) -> String {
    let token = NewToken {
        account: AccountId::new("acme"),
        principal: PrincipalId::new(who),
        name: "test".to_owned(),
        permission: Permission::Admin,
        now_ms: 0,
        valid_to_ms: 0,
    };
    mint_token(&api.store, token).await.expect("a token")
}

#[tokio::test(start_paused = true)]
async fn who_started_the_run_may_be_barred_and_what_ended_is_answered_no_more() {
    let api = Api::new().await;
    let approvers = json!({"minimumCount": 1, "disallowPipelineExecutor": true, "userGroups": ["nobody", "account._account_all_users"]});
    let (run, id) = waiting(&api, approvers).await;
    let yes = json!({"action": "APPROVE", "approver_inputs": [{"name": "ticket", "value": "A-1"}]});
    let (status, _, message) = api.post(&activity(&id), &yes).await.refusal();
    assert!(
        status == 403 && message.contains("started the run"),
        "{message}"
    );

    let callback = format!(
        "/pipeline/api/v1/orgs/default/projects/default/approvals/execution/{run}?{SCOPE}&callback_id=release"
    );
    let no = json!({"action": "REJECT", "comments": "not now"});
    let barred = api.post(&callback, &no).await.refusal();
    assert_eq!(barred.0, 403, "nor may they reject");

    let open = json!({"minimumCount": 1, "disallowPipelineExecutor": false});
    let (run, id) = waiting(&api, open).await;
    let abort =
        format!("/pipeline/api/pipeline/execute/interrupt/{run}?{SCOPE}&interruptType=AbortAll");
    api.call("PUT", &abort, "", "").await.data();
    let (status, _, message) = api.post(&activity(&id), &no).await.refusal();
    assert!(
        status == 409 && message.contains("being aborted"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_approval_by_a_ticket_is_listed_and_not_answered_by_hand() {
    let api = Api::new().await;
    let run = api.run_golden().await;
    let criteria = json!({"type": "Jexl", "spec": {"expression": "<+issue.Status> == \"Done\""}});
    let specs = [
        (
            "JiraApproval",
            json!({"connectorRef": "jira", "issueKey": "SHOP-7", "approvalCriteria": criteria}),
            json!({"key": "SHOP-7", "url": null}),
            "issue SHOP-7 of Jira decides it",
        ),
        (
            "ServiceNowApproval",
            json!({"connectorRef": "now", "ticketNumber": "CHG1", "ticketType": "change_request", "approvalCriteria": criteria}),
            json!({"key": "CHG1", "ticketType": "change_request", "url": null}),
            "ticket CHG1 of ServiceNow decides it",
        ),
        (
            "CustomApproval",
            json!({"scriptTimeout": "1m", "retryInterval": "30s", "approvalCriteria": criteria}),
            json!(null),
            "its script decides it",
        ),
    ];
    let list = format!("/v1/orgs/default/projects/default/approvals/execution/{run}?{SCOPE}");
    for (kind, spec, subject, decided) in specs {
        let id = format!("stages.deploy.spec.execution.steps.{kind}");
        let mut record = node(&run, &id, kind, Status::ApprovalWaiting);
        record.spec = spec;
        api.store.start_node(&record).await.expect("a node");
        let listed = api
            .get(&format!("{list}&approval_type={kind}"))
            .await
            .json();
        let approval = &listed[0];
        assert_eq!(
            (&approval["type"], &approval["status"]),
            (&json!(kind), &json!("WAITING"))
        );
        let details = &approval["details"];
        assert_eq!(details["approvalCriteria"], criteria, "{details}");
        let shown = details.get("issue").or(details.get("ticket"));
        assert_eq!(shown.unwrap_or(&json!(null)), &subject);

        let yes = json!({"action": "APPROVE", "comments": "yes"});
        let answered = api.post(&activity(&format!("{run}.{id}.0")), &yes).await;
        let (status, _, message) = answered.refusal();
        assert!(status == 400 && message.contains(decided), "{message}");
    }
    let all = api.get(&list).await.json();
    assert_eq!(all.as_array().map(Vec::len), Some(3));
    let none = api
        .get(&format!("{list}&approval_type=HarnessApproval"))
        .await
        .json();
    assert_eq!(none, json!([]));
}
