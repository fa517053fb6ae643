//! The people of an account: known, listed, removed and brought back. Tests that begin with an id are cases of
//! `docs/hostile.md`.

use serde_json::{Value, json};
use slipway_model::id::{AccountId, PrincipalId};
use slipway_model::status::Status;
use slipway_store::record::{PersonRecord, TokenRecord};

use super::execution::node;
use super::{Api, SCOPE};
use crate::{NewToken, Permission, mint_token};

const ACCOUNT: &str = "accountIdentifier=acme";

impl Api {
    /// A token of somebody.
    async fn token_of(&self, who: &str, permission: Permission) -> String {
        let new = NewToken {
            account: AccountId::new("acme"),
            principal: PrincipalId::new(who),
            name: "test".to_owned(),
            permission,
            now_ms: self.clock.now_ms(),
            valid_to_ms: 0,
        };
        mint_token(&self.store, new).await.expect("a token")
    }

    async fn people(&self, more: &str) -> Value {
        let path = format!("/ng/api/user/aggregate?{ACCOUNT}{more}");
        self.call("POST", &path, "", "").await.data()
    }

    async fn names(&self, more: &str) -> Vec<String> {
        let page = self.people(more).await;
        let all = page["content"].as_array().expect("a list").iter();
        all.map(|one| one["user"]["uuid"].as_str().expect("a name").to_owned())
            .collect()
    }

    async fn remove(&self, who: &str) -> super::Answer {
        self.delete(&format!("/ng/api/user/{who}?{ACCOUNT}")).await
    }

    async fn add(&self, emails: Value) -> super::Answer {
        let path = format!("/ng/api/user/users?{ACCOUNT}");
        let body = json!({"emails": emails, "userGroups": [], "roleBindings": []});
        self.post(&path, &body).await
    }

    /// The status of a call with a token.
    async fn status(&mut self, token: &str, path: &str) -> u16 {
        let own = std::mem::replace(&mut self.token, token.to_owned());
        let answer = self.get(path).await;
        self.token = own;
        answer.status.as_u16()
    }
}

const ME: &str = "/ng/api/user/currentUser";

#[tokio::test(start_paused = true)]
async fn a9_the_tokens_of_one_who_was_removed_are_refused_until_they_are_back() {
    let mut api = Api::new().await;
    let ann = api.token_of("ann", Permission::Admin).await;
    let delegate = api.token_of("ann", Permission::Delegate).await;
    let sam = api.token_of("sam", Permission::Admin).await;
    let task = "/slipway/api/delegate/tasks/t";
    assert_eq!(api.status(&ann, ME).await, 200);
    let before = api.status(&delegate, task).await;
    assert_ne!(before, 401);

    assert_eq!(api.remove("ann").await.data(), json!(true));
    assert_eq!(api.status(&ann, ME).await, 401);
    assert_eq!(api.status(&delegate, task).await, 401);
    assert_eq!(api.status(&sam, ME).await, 200);
    // She says no more of herself to those who ask than anybody unknown.
    let path = format!("/ng/api/token/validate?{ACCOUNT}");
    let validated = api.call("POST", &path, "text/plain", &ann).await;
    assert_eq!(validated.refusal().0, 401);
    // Nobody makes a token for her meanwhile.
    let token = json!({"name": "x", "apiKeyType": "USER", "parentIdentifier": "ann"});
    let path = format!("/ng/api/token?{ACCOUNT}");
    let (status, _, message) = api.post(&path, &token).await.refusal();
    assert!(
        status == 400 && message.contains("slipway user restore ann"),
        "{message}"
    );

    let added = api
        .add(json!(["ann", "sam", "new@example.com"]))
        .await
        .data();
    let expected = json!({
        "ann": "USER_ADDED_SUCCESSFULLY",
        "sam": "USER_ALREADY_ADDED",
        "new@example.com": "USER_ADDED_SUCCESSFULLY",
    });
    assert_eq!(added["addUserResponseMap"], expected);
    assert_eq!(api.status(&ann, ME).await, 200);
    assert_eq!(api.status(&delegate, task).await, before);
}

#[tokio::test(start_paused = true)]
async fn a9_one_who_was_removed_approves_nothing() {
    let mut api = Api::new().await;
    let ann = api.token_of("ann", Permission::Admin).await;
    let run = api.run_golden().await;
    let ask = "stages.deploy.spec.execution.steps.ask";
    let mut record = node(&run, ask, "HarnessApproval", Status::ApprovalWaiting);
    record.spec = json!({
        "approvalMessage": "ship it?",
        "approvers": {"minimumCount": 1, "userGroups": ["_project_all_users"]},
    });
    api.store.start_node(&record).await.expect("a node");
    let path = format!("/pipeline/api/approvals/{run}.{ask}.0/harness/activity?{SCOPE}");
    let yes = json!({"action": "APPROVE", "comments": "", "approverInputs": []});
    api.remove("ann").await.data();
    let jo = std::mem::replace(&mut api.token, ann.clone());
    assert_eq!(api.post(&path, &yes).await.refusal().0, 401);
    api.token = jo;
    api.add(json!(["ann"])).await.data();
    api.token = ann;
    let answer = api.post(&path, &yes).await.data();
    let activities = &answer["details"]["approvalActivities"];
    assert_eq!(activities.as_array().map(Vec::len), Some(1), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn people_are_listed_found_and_shown_as_clients_read_them() {
    let api = Api::new().await;
    for who in ["ann", "sam", "zoe@example.com"] {
        api.token_of(who, Permission::Admin).await;
    }
    // Neither is a person of the account.
    api.token_of("runner", Permission::Delegate).await;
    api.token_of("reader", Permission::Logs).await;
    let all = ["ann", "jo@example.com", "sam", "zoe@example.com"];
    assert_eq!(api.names("").await, all);
    assert_eq!(
        api.names("&pageIndex=1&pageSize=3").await,
        ["zoe@example.com"]
    );
    assert_eq!(
        api.names("&searchTerm=EXAMPLE").await,
        ["jo@example.com", "zoe@example.com"]
    );
    let path = format!("/ng/api/user/aggregate?{ACCOUNT}");
    let filtered = api.post(&path, &json!({"searchTerm": "sa"})).await.data();
    assert_eq!(filtered["content"][0]["user"]["uuid"], "sam");
    let none = api.people("&searchTerm=nobody").await;
    assert_eq!(
        (&none["empty"], &none["totalItems"]),
        (&json!(true), &json!(0))
    );

    let one = api.get(&format!("/ng/api/user/ann?{ACCOUNT}")).await.data();
    insta::assert_json_snapshot!(one, @r#"
    {
      "uuid": "ann",
      "name": "ann",
      "email": "ann@localhost",
      "locked": false,
      "disabled": false,
      "externallyManaged": false,
      "twoFactorAuthenticationEnabled": false,
      "createdAt": 1767225600000,
      "removedAt": null,
      "removedBy": null
    }
    "#);
    let aggregate = api
        .get(&format!("/ng/api/user/aggregate/ann?{ACCOUNT}"))
        .await;
    assert_eq!(
        aggregate.data(),
        json!({"user": one, "roleAssignmentMetadata": []})
    );

    api.remove("ann").await.data();
    assert_eq!(
        api.names("").await,
        ["jo@example.com", "sam", "zoe@example.com"]
    );
    assert_eq!(api.names("&includeRemoved=true").await, all);
    let gone = &api.people("&includeRemoved=true&searchTerm=ann").await["content"][0]["user"];
    let said = (&gone["disabled"], &gone["removedBy"], &gone["removedAt"]);
    assert_eq!(
        said,
        (
            &json!(true),
            &json!("jo@example.com"),
            &json!(api.clock.now_ms())
        )
    );
    for path in ["user/ann", "user/aggregate/ann"] {
        let (status, _, message) = api
            .get(&format!("/ng/api/{path}?{ACCOUNT}"))
            .await
            .refusal();
        assert!(status == 404 && message.contains("restore"), "{message}");
    }
    // An address that is made of a name is that name.
    let added = api.add(json!(["ann@localhost"])).await.data();
    assert_eq!(
        added["addUserResponseMap"]["ann@localhost"],
        "USER_ADDED_SUCCESSFULLY"
    );
    assert_eq!(api.names("").await, all);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_to_people_is_refused_with_the_reason() {
    let api = Api::new().await;
    api.token_of("ann", Permission::Admin).await;
    let long = "x".repeat(2_000);
    for (who, status, why) in [
        ("nobody", 404, "slipway user list"),
        ("jo@example.com", 400, "nobody removes themselves"),
        (long.as_str(), 404, "known as"),
        ("%00", 404, "known as"),
    ] {
        let (told, _, message) = api.remove(who).await.refusal();
        assert!(
            told == status && message.contains(why),
            "{who}: {told} {message}"
        );
    }
    // Not of a part of the account, where she would be of all the rest.
    let (status, _, message) = api
        .delete(&format!("/ng/api/user/ann?{SCOPE}"))
        .await
        .refusal();
    assert!(status == 400 && message.contains("as a whole"), "{message}");
    api.remove("ann").await.data();
    assert_eq!(api.remove("ann").await.refusal().0, 404, "once");
    let path = format!("/ng/api/user/users?{ACCOUNT}");
    let many: Vec<String> = (0..101).map(|at| format!("p{at}")).collect();
    for (body, why) in [
        (json!({}), "emails"),
        (json!({"emails": []}), "emails"),
        (json!({"emails": [""]}), "emails"),
        (json!({"emails": [7]}), "emails"),
        (json!({"emails": ["a\nb"]}), "emails"),
        (json!({"emails": ["trigger:x"]}), "triggers are called so"),
        (json!({"emails": many}), "100"),
        (
            json!({"emails": ["eve"], "userGroups": ["leads"]}),
            "userGroups",
        ),
    ] {
        let (status, _, message) = api.post(&path, &body).await.refusal();
        assert!(status == 400 && message.contains(why), "{body}: {message}");
    }
    // Of what was refused nobody was added.
    assert_eq!(
        api.names("&includeRemoved=true").await,
        ["ann", "jo@example.com"]
    );
}

#[tokio::test(start_paused = true)]
async fn somebody_with_a_token_of_an_earlier_version_is_known_from_their_first_call() {
    let mut api = Api::new().await;
    let old = |who: &str| TokenRecord {
        account: AccountId::new("acme"),
        principal: PrincipalId::new(who),
        id: "t".to_owned(),
        name: "laptop".to_owned(),
        permissions: vec!["admin".to_owned()],
        valid_from_ms: 0,
        valid_to_ms: 0,
    };
    for (text, who) in [("pat.acme.t.old", "old"), ("sat.acme.t.bot", "bot")] {
        api.store.put_token(text, &old(who)).await.expect("stored");
    }
    assert_eq!(api.names("").await, ["jo@example.com"]);
    let (status, _, message) = api.remove("old").await.refusal();
    assert!(
        status == 404 && message.contains("earlier version"),
        "{message}"
    );
    assert_eq!(api.status("pat.acme.t.old", ME).await, 200);
    // A service account is nobody.
    assert_eq!(api.status("sat.acme.t.bot", ME).await, 200);
    assert_eq!(api.names("").await, ["jo@example.com", "old"]);
    // Noted once; and what is known is not read again while nothing is written.
    let (writes, reads) = (api.store.writes(), api.store.reads());
    assert_eq!(api.status("pat.acme.t.old", ME).await, 200);
    assert_eq!(api.store.writes(), writes);
    assert_eq!(api.status("pat.acme.t.old", ME).await, 200);
    assert!(
        api.store.reads() - reads <= 2,
        "the token and its person, at most once"
    );
    api.remove("old").await.data();
    assert_eq!(api.status("pat.acme.t.old", ME).await, 401);
}

#[tokio::test(start_paused = true)]
async fn who_was_removed_in_one_account_is_there_in_another() {
    let mut api = Api::new().await;
    let there = api.mint("other", Permission::Admin, 0).await;
    api.token_of("boss", Permission::Admin).await;
    let removed = PersonRecord {
        account: AccountId::new("acme"),
        principal: PrincipalId::new("jo@example.com"),
        since_ms: 0,
        removed: Some(slipway_store::record::Removal {
            at_ms: 0,
            by: PrincipalId::new("boss"),
        }),
    };
    api.store.put_person(&removed).await.expect("kept");
    let here = api.token.clone();
    assert_eq!(api.status(&here, ME).await, 401);
    assert_eq!(api.status(&there, ME).await, 200);
}
