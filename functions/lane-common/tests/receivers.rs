//! Who gets notices that are not to an address of their rule, and messages that templates word; on the real machines, to
//! servers on real sockets.

use slipway_engine::name::notify_execution;
use slipway_engine::signal::{Word, say, warnings};
use slipway_model::id::{NodeId, PrincipalId};
use slipway_model::status::Status;
use slipway_world::receiver::Receiver;
use slipway_world::yaml::{pipeline, script, stage, webhook, with_rules};
use slipway_world::{World, minutes};

#[tokio::test(start_paused = true)]
async fn user_groups_are_told_where_their_settings_say() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let group = format!(
        "userGroup:\n  name: Ops\n  identifier: ops\n  orgIdentifier: default\n  projectIdentifier: shop\n  users: \
         [sam]\n  notificationConfigs:\n    - {{type: SLACK, slackWebhookUrl: '{}'}}\n    - {{type: PAGERDUTY, \
         pagerDutyKey: '<+secrets.getValue(\"pager\")>'}}\n",
        receiver.url("slack-of-ops")
    );
    world.apply(&group).await;
    let end = "{type: PipelineEnd}";
    let rules = [
        (
            end,
            format!(
                "{{type: Slack, spec: {{webhookUrl: '{}', userGroups: [ops, gone]}}}}",
                receiver.url("slack")
            ),
        ),
        (
            end,
            "{type: PagerDuty, spec: {userGroups: ['<+pipeline.variables.team>']}}".to_owned(),
        ),
        (end, "{type: MsTeams, spec: {userGroups: [ops]}}".to_owned()),
    ];
    let text = with_rules(&[stage("build", &script("a", "ok", ""), "", "")], &rules);
    let text = text.replacen(
        "  stages:",
        "  variables: [{name: team, type: String, value: ops}]\n  stages:",
        1,
    );
    world.apply(&text).await;
    let run = world.start("release").await;
    world.finish(&run).await;
    minutes(&world, 10).await;
    let mut got = receiver.got();
    got.sort_by(|a, b| a.path.cmp(&b.path));
    let paths: Vec<&str> = got.iter().map(|got| got.path.as_str()).collect();
    assert_eq!(paths, ["pagerduty", "slack", "slack-of-ops"]);
    assert_eq!(got[0].body["routing_key"], "hidden-pager");
    assert_eq!(got[1].body, got[2].body);
    for (notice, expected) in [
        ("PipelineEnd-0-2", "there is no user group `gone`"),
        (
            "PipelineEnd-2-0",
            "the user group `ops` has no setting for MsTeams",
        ),
    ] {
        let notice = notify_execution(&run, notice);
        let reason = world.reasons("notify", &notice).await;
        assert!(reason.contains(expected), "{reason}");
    }
    world.assert_clean(&run).await;
}

#[tokio::test(start_paused = true)]
async fn approvers_are_told_that_they_are_asked_and_what_was_answered() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let group = |id: &str, settings: &str| {
        format!(
            "userGroup:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: shop\n  users: \
             [sam]\n  notificationConfigs: [{settings}]\n"
        )
    };
    let slack = format!(
        "{{type: SLACK, slackWebhookUrl: '{}'}}",
        receiver.url("leads")
    );
    let pager = "{type: PAGERDUTY, pagerDutyKey: k}";
    let groups = [group("leads", &slack), group("quiet", pager)];
    world.apply(&groups.join("---\n")).await;
    let ask = "- step:\n    name: ask\n    identifier: ask\n    type: HarnessApproval\n    spec:\n      approvalMessage: Ship \
               <+pipeline.name>?\n      includePipelineExecutionHistory: true\n      approvers:\n        minimumCount: \
               1\n        disallowPipelineExecutor: false\n        userGroups: [quiet, leads, _project_all_users, gone]\n";
    world.apply(&pipeline(&[stage("gate", ask, "", "")])).await;
    for (verdict, status) in [
        ("APPROVE", Status::Success),
        ("REJECT", Status::ApprovalRejected),
    ] {
        receiver.empty();
        let run = world.start("release").await;
        // A step of ten minutes would have expired.
        minutes(&world, 300).await;
        assert_eq!(receiver.got().len(), 1);
        let word = Word::Step {
            node: NodeId::new("stages.gate.spec.execution.steps.ask"),
            attempt: 0,
            kind: "approval:sam".to_owned(),
            says: format!(
                "{{\"verdict\": \"{verdict}\", \"comments\": \"well\", \"inputs\": {{}}}}"
            ),
        };
        let sam = PrincipalId::new("sam");
        say(&world.runs, &run, &sam, &word).await.expect("said");
        let record = world.finish(&run).await;
        assert_eq!(record.status, status);
        minutes(&world, 10).await;
        let got = receiver.got();
        let text = |number: usize| {
            let body = &got[number].body;
            format!("{}\n{}", body["text"], body["attachments"][0]["text"])
                .replace(run.as_str(), "RUN")
        };
        assert_eq!(got.len(), 2);
        match verdict {
            "APPROVE" => insta::assert_snapshot!(format!("{}\n{}", text(0), text(1)), @r#"
            "Approval ask of pipeline release waits for you"
            "*Message:* Ship release?\n*Run:* #1 RUN\n*Started by:* alex (MANUAL)\n*Stage:* gate\n*Step:* ask\n*Started:* 2026-01-01 00:00:00 UTC\n<https://slipway.example.com/pipeline/api/pipelines/execution/v2/RUN?accountIdentifier=acme&amp;orgIdentifier=default&amp;projectIdentifier=shop|Details>"
            "Approval ask of pipeline release was given"
            "*Message:* Ship release?\n*Answer:* sam approved: well\n*Run:* #1 RUN\n*Started by:* alex (MANUAL)\n*Stage:* gate\n*Step:* ask\n*Started:* 2026-01-01 00:00:00 UTC\n*Ended:* 2026-01-01 05:00:00 UTC\n*Duration:* 5 h 0 min\n<https://slipway.example.com/pipeline/api/pipelines/execution/v2/RUN?accountIdentifier=acme&amp;orgIdentifier=default&amp;projectIdentifier=shop|Details>"
            "#),
            _ => assert!(text(1).contains("was rejected"), "{}", text(1)),
        }
        world.assert_clean(&run).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_words_the_message() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let template = |id: &str, kind: &str, content: &str| {
        format!(
            "template:\n  name: {id}\n  identifier: {id}\n  versionLabel: v1\n  type: Notification\n  orgIdentifier: \
             default\n  projectIdentifier: shop\n  spec:\n    body:\n      type: {kind}\n      content: '{content}'\n"
        )
    };
    let json = template(
        "card",
        "JSON",
        "{\"text\": \"<+pipeline.name> <+pipeline.variables.nope> <+pipeline.sequenceId>\"}",
    );
    let plain = template("line", "STRING", "<+input>");
    world.apply(&[json, plain].join("---\n")).await;
    let receivers = ["json", "text", "slack"].map(|path| receiver.url(path));
    let [to_json, to_text, to_slack] = receivers;
    let rules = [
        ("{type: PipelineEnd}", webhook(&to_json)),
        ("{type: StageSuccess}", webhook(&to_text)),
        (
            "{type: StageSuccess}",
            format!("{{type: Slack, spec: {{webhookUrl: '{to_slack}'}}}}"),
        ),
    ];
    let text = with_rules(&[stage("build", &script("a", "ok", ""), "", "")], &rules);
    let line = "template: {templateRef: line, versionLabel: v1, templateInputs: {body: {content: \"<+stage.name> ends\"}}}";
    let card = "template: {templateRef: card, versionLabel: v1}";
    let text = text
        .replacen("name: rule0,", &format!("name: rule0, {card},"), 1)
        .replacen("name: rule1,", &format!("name: rule1, {line},"), 1)
        .replacen("name: rule2,", &format!("name: rule2, {line},"), 1);
    world.apply(&text).await;
    let run = world.start("release").await;
    world.finish(&run).await;
    minutes(&world, 10).await;
    let mut got = receiver.got();
    got.sort_by(|a, b| a.path.cmp(&b.path));
    let told: Vec<String> = got
        .iter()
        .map(|got| {
            format!(
                "{} {:?} {}",
                got.path, got.headers["content-type"], got.body
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    json "application/json" {"text":"release  1"}
    slack "application/json" {"text":"build ends"}
    text "text/plain; charset=utf-8" "build ends"
    "#);
}

/// Found by a tester: such a template was sent as it was written, or refused the run.
#[tokio::test(start_paused = true)]
async fn a_template_that_words_nothing_is_a_warning_and_the_standard_message_is_sent() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let template = |id: &str, kind: &str, content: &str| {
        format!(
            "template:\n  name: {id}\n  identifier: {id}\n  versionLabel: v1\n  type: Notification\n  orgIdentifier: \
             default\n  projectIdentifier: shop\n  spec:\n    body:\n      type: {kind}\n      content: '{content}'\n"
        )
    };
    let json = template("json", "JSON", "{\"text\": \"<+pipeline.name>\"");
    let fine = template("fine", "STRING", "<+pipeline.name> goes on");
    world.apply(&[json, fine].join("---\n")).await;
    let to = receiver.url("slack");
    let rule = || {
        let method = format!("{{type: Slack, spec: {{webhookUrl: '{to}'}}}}");
        ("{type: PipelineStart}, {type: PipelineSuccess}", method)
    };
    let mut text = with_rules(
        &[stage("build", &script("a", "ok", ""), "", "")],
        &[rule(), rule(), rule()],
    );
    for (number, named) in ["fine", "json", "gone"].into_iter().enumerate() {
        let name = format!("name: rule{number},");
        let link = format!("{name} template: {{templateRef: {named}, versionLabel: v1}},");
        text = text.replacen(&name, &link, 1);
    }
    world.apply(&text).await;
    let run = world.start("release").await;
    let run = world.finish(&run).await;
    assert_eq!(run.status, Status::Success);
    minutes(&world, 10).await;
    let got = receiver.got();
    let standard = ["Pipeline release started", "Pipeline release succeeded"];
    for text in standard {
        let sent = got.iter().filter(|got| got.body["text"] == text).count();
        assert_eq!(sent, 2, "{text}");
    }
    let own = got
        .iter()
        .filter(|got| got.body["text"] == "release goes on");
    assert_eq!((own.count(), got.len()), (2, 6));
    let run = world.store.get_run(&run.id).await.expect("the run");
    let mut told: Vec<_> = warnings(&run)
        .into_iter()
        .map(|one| one.says.as_str())
        .collect();
    told.sort_unstable();
    insta::assert_snapshot!(told.join("\n"), @"
    The notification rule `rule1` sends the standard message: its template is no JSON when its expressions are filled in: EOF while parsing an object at line 1 column 18
    The notification rule `rule2` sends the standard message: the template `gone` version v1 does not exist in project `shop` of organization `default`
    ");
    world.assert_clean(&run.id).await;
}
