//! Notification rules in whole runs, on the real machines, to servers on real sockets.

#![expect(clippy::expect_used, reason = "what a test needs and lacks fails it")]

use std::collections::HashSet;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slipway_engine::name::notify_execution;
use slipway_engine::signal::{Word, say};
use slipway_model::id::{NodeId, PrincipalId, RunId};
use slipway_model::status::Status;
use slipway_world::receiver::Receiver;
use slipway_world::yaml::{ROLL_BACK, script, stage, together, wait, webhook, with_rules};
use slipway_world::{World, minutes};

async fn says(world: &World, run: &RunId, word: Word) {
    let who = PrincipalId::new("sam");
    say(&world.runs, run, &who, &word).await.expect("said");
}

#[tokio::test(start_paused = true)]
async fn every_event_is_told_once_to_those_who_asked_for_it() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let asks = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        {type: \
                ManualIntervention, spec: {timeout: 2h, onTimeout: {action: {type: Abort}}}}\n";
    let again = "failureStrategies:\n  - onFailure:\n      errors: [AllErrors]\n      action:\n        {type: Retry, \
                 spec: {retryCount: 2, retryIntervals: [1m], onRetryFailure: {action: {type: MarkAsFailure}}}}\n";
    let stages = [
        stage("build", &script("again", "fail until 1", again), "", ""),
        stage(
            "deploy",
            &(script("quiet", "ok", "") + &script("asks", "fail", asks)),
            &script("undo", "ok", ""),
            "",
        ),
        stage("after", &script("never", "ok", ""), "", ""),
    ];
    let rules = [
        (
            "{type: AllEvents}, {type: PipelineEnd}",
            webhook(&receiver.url("all")),
        ),
        (
            "{type: StageSuccess, forStages: [build]}, {type: StageFailed, forStages: [build]}",
            webhook(&receiver.url("build")),
        ),
        (
            "{type: StageFailed, forStages: [AllStages]}",
            webhook(&receiver.url("stages")),
        ),
        (
            "{type: StepFailed, forSteps: [quiet]}",
            webhook(&receiver.url("quiet")),
        ),
        (
            "{type: StepFailed, forSteps: [asks]}",
            webhook(&receiver.url("asks")),
        ),
        ("{type: PipelineSuccess}", webhook(&receiver.url("good"))),
        (
            "{type: PipelinePaused}, {type: PipelineResumed}",
            webhook(&receiver.url("pauses")),
        ),
    ];
    world.apply(&with_rules(&stages, &rules)).await;
    let run = world.start("release").await;
    minutes(&world, 10).await;
    says(&world, &run, Word::Pause).await;
    minutes(&world, 10).await;
    says(&world, &run, Word::Resume).await;
    minutes(&world, 10).await;
    let asks = NodeId::new("stages.deploy.spec.execution.steps.asks");
    let action = "StageRollback".to_owned();
    says(&world, &run, Word::Answer { node: asks, action }).await;
    let record = world.finish(&run).await;
    minutes(&world, 60).await;

    assert_eq!(record.status, Status::Failed);
    assert_eq!(
        receiver.events("all"),
        [
            "PipelineEnd",
            "PipelineFailed",
            "PipelinePaused",
            "PipelineResumed",
            "PipelineStart",
            "StageFailed deploy",
            "StageStart build",
            "StageStart deploy",
            "StageSuccess build",
            "StepFailed deploy asks",
            "WaitingForUserAction deploy asks",
        ]
    );
    assert_eq!(receiver.events("build"), ["StageSuccess build"]);
    assert_eq!(receiver.events("stages"), ["StageFailed deploy"]);
    assert_eq!(receiver.events("quiet"), [""; 0]);
    assert_eq!(receiver.events("asks"), ["StepFailed deploy asks"]);
    assert_eq!(receiver.events("good"), [""; 0]);
    assert_eq!(
        receiver.events("pauses"),
        ["PipelinePaused", "PipelineResumed"]
    );
    world.assert_clean(&run).await;
    let got = receiver.got();
    let failed = got
        .iter()
        .find(|got| got.path == "asks")
        .expect("a message");
    let mut data = failed.body["eventData"].clone();
    for field in ["planExecutionId", "executionUrl"] {
        let text = data[field].as_str().expect("a text");
        data[field] = text.replace(run.as_str(), "RUN").into();
    }
    insta::assert_json_snapshot!(data, @r##"
    {
      "accountIdentifier": "acme",
      "orgIdentifier": "default",
      "projectIdentifier": "shop",
      "pipelineIdentifier": "release",
      "pipelineName": "release",
      "planExecutionId": "RUN",
      "stageIdentifier": "deploy",
      "stageName": "deploy",
      "stepIdentifier": "asks",
      "stepName": "asks",
      "executionUrl": "https://slipway.example.com/pipeline/api/pipelines/execution/v2/RUN?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop",
      "eventType": "StepFailed",
      "nodeStatus": "failed",
      "triggeredBy": {
        "triggerType": "MANUAL",
        "name": "alex"
      },
      "startTime": "Thu Jan 01 00:01:00 GMT 2026",
      "startTs": 1767225660,
      "endTime": "Thu Jan 01 00:30:00 GMT 2026",
      "endTs": 1767227400,
      "errorMessage": "Shell Script execution failed. The script ended with exit code 1. Please check execution logs."
    }
    "##);
    let id = failed.headers["x-slipway-notification-id"].to_str();
    assert!(
        id.expect("an id")
            .starts_with(&format!("{run}-StepFailed-4-0-"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_rule_reads_the_turn_of_a_loop_over_what_the_run_brought_forth() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let output = "      outputVariables:\n        - name: words\n          type: String\n          value: words\n";
    let says = script("say", "'words=x,y'", "").replacen(
        "      source:",
        &format!("{output}      source:"),
        1,
    );
    let each = "strategy:\n  repeat:\n    items: <+execution.steps.say.output.outputVariables.words.split(\",\")>\n";
    let steps = says + &script("each", "fail", each);
    let method = format!(
        "{{type: Webhook, spec: {{webhookUrl: '{}', headers: {{x-turn: '<+step.identifier> <+repeat.item>'}}}}}}",
        receiver.url("turns")
    );
    let rules = [("{type: StepFailed}", method)];
    world
        .apply(&with_rules(&[stage("build", &steps, "", "")], &rules))
        .await;
    let run = world.start("release").await;
    let record = world.finish(&run).await;
    minutes(&world, 10).await;
    assert_eq!(record.status, Status::Failed);
    let got = receiver.got();
    let turn = |got: &slipway_world::receiver::Got| {
        let turn = got.headers["x-turn"].to_str();
        turn.expect("a text").to_owned()
    };
    let mut turns: Vec<String> = got.iter().map(turn).collect();
    turns.sort();
    assert_eq!(turns, ["each_0 x", "each_1 y"]);
}

#[tokio::test(start_paused = true)]
async fn f20_a_receiver_that_is_away_holds_no_run_up_and_gets_its_message_later() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let stages = [stage("build", &script("a", "ok", ""), "", "")];
    // Nobody listens at the second address.
    let rules = [
        ("{type: PipelineStart}", webhook(&receiver.url("start"))),
        ("{type: AllEvents}", webhook("http://127.0.0.1:1/")),
    ];
    world.apply(&with_rules(&stages, &rules)).await;
    receiver.go_away(8);
    let began = world.runs.clock.now_ms();
    let run = world.start("release").await;
    let record = world.finish(&run).await;
    assert_eq!(record.status, Status::Success);
    assert!(record.ended_ms.expect("an end") - began < 5_000);

    minutes(&world, 60).await;
    assert_eq!(receiver.refused(), 8);
    assert_eq!(receiver.events("start"), ["PipelineStart"]);
    assert_eq!(world.engine.counters().open, 1, "one message tries for all");
    minutes(&world, 60 * 48).await;
    world.assert_clean(&run).await;
    // The one that tried gave up after a day, the others were kept for it.
    let mut given_up = 0;
    for event in [
        "PipelineStart",
        "StageStart-build",
        "StageSuccess-build",
        "PipelineEnd",
        "PipelineSuccess",
    ] {
        let (event, what) = event.split_once('-').unwrap_or((event, ""));
        let dash = if what.is_empty() { "" } else { "-" };
        let name = format!("{run}-{event}-1-0{dash}{what}");
        match world.path("notify", &name).await.as_str() {
            "Due Send TellRun NotSent" => given_up += 1,
            path => assert_eq!(path, "Due Send Sent", "{name}"),
        }
    }
    assert_eq!(given_up, 1);
}

#[tokio::test(start_paused = true)]
async fn f20_a_receiver_that_was_down_for_two_hours_gets_one_digest() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let stages = [stage("build", &script("a", "ok", ""), "", "")];
    let rules = [
        ("{type: AllEvents}", webhook(&receiver.url("all"))),
        ("{type: PipelineSuccess}", webhook(&receiver.url("ends"))),
    ];
    world.apply(&with_rules(&stages, &rules)).await;
    receiver.go_away(usize::MAX);
    let mut ended = Vec::new();
    for _ in 0..4 {
        let run = world.start("release").await;
        let run = world.finish(&run).await;
        assert_eq!(run.status, Status::Success);
        assert!(run.ended_ms.expect("an end") - run.started_ms < 5_000);
        ended.push(run.id);
        minutes(&world, 30).await;
    }
    assert_eq!(receiver.got().len(), 0);
    // One execution for each receiver and rule, however many messages and however long.
    assert_eq!(world.engine.counters().open, 2);
    receiver.go_away(0);
    minutes(&world, 70).await;
    assert_eq!(world.engine.counters().open, 0);
    for id in &ended {
        world.assert_clean(id).await;
    }
    let digests = receiver.got();
    let told: Vec<_> = digests
        .iter()
        .map(|got| (got.path.as_str(), &got.body["eventData"]))
        .map(|(path, data)| (path, data["eventType"].as_str(), data["missed"].as_u64()))
        .collect();
    let (mut told, digest) = (told, Some("Digest"));
    told.sort_unstable();
    assert_eq!(told, [("all", digest, Some(20)), ("ends", digest, Some(4))]);
    let all = digests.iter().find(|got| got.path == "all").expect("one");
    let events = all.body["eventData"]["events"].as_array().expect("events");
    let of = |kind: &str| {
        let events = events.iter();
        events.filter(|event| event["eventType"] == kind).count()
    };
    assert_eq!((of("PipelineStart"), of("PipelineSuccess")), (4, 4));

    // From now on it gets each by itself.
    receiver.empty();
    let run = world.start("release").await;
    world.finish(&run).await;
    minutes(&world, 5).await;
    assert_eq!(receiver.events("ends"), ["PipelineSuccess"]);
    assert_eq!(receiver.events("all").len(), 5);
    // One that is down for a moment gets what it missed as it is.
    receiver.empty();
    receiver.go_away(1);
    let run = world.start("release").await;
    world.finish(&run).await;
    minutes(&world, 5).await;
    let got = receiver.got();
    let ids: HashSet<_> = got
        .iter()
        .map(|got| &got.headers["x-slipway-notification-id"])
        .collect();
    assert_eq!(ids.len(), got.len(), "no message comes twice");
}

/// Kills each invocation at each request to the store while the receiver is away and when it is back.
#[tokio::test(start_paused = true)]
async fn f20_a_crash_anywhere_loses_nothing_that_was_missed() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let stages = [stage("build", &script("a", "ok", ""), "", "")];
    let rules = [(
        "{type: StageStart}, {type: StageSuccess}, {type: PipelineSuccess}",
        webhook(&receiver.url("all")),
    )];
    world.apply(&with_rules(&stages, &rules)).await;
    for request in 1.. {
        receiver.empty();
        receiver.go_away(usize::MAX);
        let run = world.start("release").await;
        world.finish(&run).await;
        let after = request % 2 == 0;
        world.crash.arm(request, after);
        minutes(&world, 60).await;
        receiver.go_away(0);
        minutes(&world, 200).await;
        let mut seen: Vec<String> = Vec::new();
        for got in receiver.got() {
            let data = &got.body["eventData"];
            let own = data["events"].as_array().cloned();
            for event in own.unwrap_or_else(|| vec![data.clone()]) {
                seen.push(event["eventType"].as_str().expect("a type").to_owned());
            }
        }
        seen.sort_unstable();
        // A crash after the receiver took it sends the same again; nothing is lost.
        seen.dedup();
        assert_eq!(
            seen,
            ["PipelineSuccess", "StageStart", "StageSuccess"],
            "crash at {request}"
        );
        assert_eq!(world.engine.counters().open, 0, "crash at {request}");
        if world.crash.is_armed() {
            assert!(request > 10, "only {request} requests");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_for_others_asks_nobody() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let turn = "- step:\n    name: turn\n    identifier: turn\n    type: Queue\n    timeout: 1h\n    spec: {key: k, scope: Stage}\n";
    let stages = [
        stage("a", &(turn.to_owned() + &wait("work", "10m")), "", ""),
        stage("b", &(wait("later", "1m") + turn), "", ""),
    ];
    let rules = [("{type: AllEvents}", webhook(&receiver.url("all")))];
    let whole = with_rules(&[together(&stages)], &rules);
    world.apply(&whole).await;
    let run = world.start("release").await;
    let record = world.finish(&run).await;
    minutes(&world, 1).await;

    assert_eq!(record.status, Status::Success);
    let minutes = (record.ended_ms.expect("an end") - record.started_ms) / 60_000;
    assert_eq!(minutes, 10, "b waited for its turn");
    let machine = "arn:aws:states:us-east-1:123456789012:stateMachine:notify";
    let sent = world
        .sfn
        .list_executions()
        .state_machine_arn(machine)
        .send();
    let sent = sent.await.expect("the notices");
    let names: Vec<_> = sent.executions().iter().map(|one| one.name()).collect();
    let asks = |name: &&str| name.contains("WaitingForUserAction");
    assert_eq!(names.iter().copied().filter(asks).count(), 0, "{names:?}");
    assert!(names.len() > 4, "{names:?}");
    world.assert_clean(&run).await;
}

/// Kills each invocation at each request to the store, before it and after it.
#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_neither_loses_nor_doubles_a_message() {
    let steps = script("a", "ok", "") + &script("b", "fail", ROLL_BACK);
    let stages = [stage("deploy", &steps, &script("undo", "ok", ""), "")];
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let rules = [("{type: AllEvents}", webhook(&receiver.url("all")))];
    world.apply(&with_rules(&stages, &rules)).await;
    for request in 1.. {
        // Every other crash comes after the request was carried out, and nobody hears of it.
        let after = request % 2 == 0;
        receiver.empty();
        world.crash.arm(request, after);
        let run = world.start("release").await;
        let record = world.finish(&run).await;
        minutes(&world, 10).await;
        assert_eq!(record.status, Status::Failed);
        assert_eq!(
            receiver.events("all"),
            [
                "PipelineEnd",
                "PipelineFailed",
                "PipelineStart",
                "StageFailed deploy",
                "StageStart deploy",
                "StepFailed deploy b",
            ],
            "crash at request {request}, done: {after}"
        );
        world.assert_clean(&run).await;
        if world.crash.is_armed() {
            assert!(request > 30, "only {request} requests");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_method_has_its_form() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let stages = [stage("deploy", &script("b", "fail", ""), "", "")];
    let at = |path: &str| receiver.url(path);
    let end = "{type: PipelineFailed}";
    let rules = [
        (
            end,
            format!(
                "{{type: Slack, spec: {{userGroups: [ops], webhookUrl: '{}'}}}}",
                at("slack")
            ),
        ),
        (
            end,
            format!(
                "{{type: MsTeams, spec: {{msTeamKeys: ['{}', '{}']}}}}",
                at("one"),
                at("two")
            ),
        ),
        (
            end,
            "{type: PagerDuty, spec: {integrationKey: '<+secrets.getValue(\"pager\")>'}}"
                .to_owned(),
        ),
        (
            end,
            format!(
                "{{type: Datadog, spec: {{url: '{}', apiKey: '<+secrets.getValue(\"dog\")>'}}}}",
                at("dog")
            ),
        ),
    ];
    world.apply(&with_rules(&stages, &rules)).await;
    let run = world.start("release").await;
    let record = world.finish(&run).await;
    minutes(&world, 10).await;
    assert_eq!(record.status, Status::Failed);

    let mut told = String::new();
    let mut got = receiver.got();
    got.sort_by(|a, b| a.path.cmp(&b.path));
    let of = |path: &str| got.iter().find(|got| got.path == path);
    let both = [of("one"), of("two")].map(|got| got.map(|got| &got.body));
    assert_eq!(both[0], both[1]);
    for one in got.iter().filter(|got| got.path != "two") {
        let key = one.headers.get("dd-api-key");
        let key = key.map_or("", |key| key.to_str().expect("a key"));
        let body = serde_json::to_string_pretty(&one.body).expect("JSON");
        told.push_str(&format!("{} {key}\n{body}\n", one.path));
    }
    insta::assert_snapshot!(told.replace(run.as_str(), "RUN"), @r##"
    dog hidden-dog
    {
      "title": "Pipeline release failed",
      "text": "Pipeline release failed\nRun: #1 RUN\nStarted by: alex (MANUAL)\nStarted: 2026-01-01 00:00:00 UTC\nEnded: 2026-01-01 00:00:00 UTC\nDuration: 0 s\nError: Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.\nhttps://slipway.example.com/pipeline/api/pipelines/execution/v2/RUN?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop",
      "alert_type": "error",
      "aggregation_key": "RUN",
      "date_happened": 1767225600,
      "tags": [
        "source:slipway"
      ]
    }
    one 
    {
      "type": "message",
      "attachments": [
        {
          "contentType": "application/vnd.microsoft.card.adaptive",
          "content": {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "fallbackText": "Pipeline release failed",
            "body": [
              {
                "type": "RichTextBlock",
                "inlines": [
                  {
                    "type": "TextRun",
                    "text": "Pipeline release failed",
                    "weight": "bolder",
                    "size": "medium",
                    "color": "attention"
                  }
                ]
              },
              {
                "type": "RichTextBlock",
                "inlines": [
                  {
                    "type": "TextRun",
                    "text": "Run: ",
                    "weight": "bolder"
                  },
                  {
                    "type": "TextRun",
                    "text": "#1 RUN"
                  }
                ]
              },
              {
                "type": "RichTextBlock",
                "inlines": [
                  {
                    "type": "TextRun",
                    "text": "Started by: ",
                    "weight": "bolder"
                  },
                  {
                    "type": "TextRun",
                    "text": "alex (MANUAL)"
                  }
                ]
              },
              {
                "type": "RichTextBlock",
                "inlines": [
                  {
                    "type": "TextRun",
                    "text": "Started: ",
                    "weight": "bolder"
                  },
                  {
                    "type": "TextRun",
                    "text": "2026-01-01 00:00:00 UTC"
                  }
                ]
              },
              {
                "type": "RichTextBlock",
                "inlines": [
                  {
                    "type": "TextRun",
                    "text": "Ended: ",
                    "weight": "bolder"
                  },
                  {
                    "type": "TextRun",
                    "text": "2026-01-01 00:00:00 UTC"
                  }
                ]
              },
              {
                "type": "RichTextBlock",
                "inlines": [
                  {
                    "type": "TextRun",
                    "text": "Duration: ",
                    "weight": "bolder"
                  },
                  {
                    "type": "TextRun",
                    "text": "0 s"
                  }
                ]
              },
              {
                "type": "RichTextBlock",
                "inlines": [
                  {
                    "type": "TextRun",
                    "text": "Error: ",
                    "weight": "bolder"
                  },
                  {
                    "type": "TextRun",
                    "text": "Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs."
                  }
                ]
              }
            ],
            "actions": [
              {
                "type": "Action.OpenUrl",
                "title": "Details",
                "url": "https://slipway.example.com/pipeline/api/pipelines/execution/v2/RUN?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop"
              }
            ]
          }
        }
      ]
    }
    pagerduty 
    {
      "routing_key": "hidden-pager",
      "event_action": "trigger",
      "dedup_key": "RUN-PipelineFailed-2-0",
      "client": "Slipway",
      "links": [
        {
          "href": "https://slipway.example.com/pipeline/api/pipelines/execution/v2/RUN?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop",
          "text": "Details"
        }
      ],
      "payload": {
        "summary": "Pipeline release failed",
        "source": "RUN",
        "severity": "error",
        "timestamp": "2026-01-01T00:00:00Z",
        "custom_details": {
          "Run": "#1 RUN",
          "Started by": "alex (MANUAL)",
          "Started": "2026-01-01 00:00:00 UTC",
          "Ended": "2026-01-01 00:00:00 UTC",
          "Duration": "0 s",
          "Error": "Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs."
        }
      }
    }
    slack 
    {
      "text": "Pipeline release failed",
      "attachments": [
        {
          "color": "#e01e5a",
          "fallback": "Pipeline release failed",
          "text": "*Run:* #1 RUN\n*Started by:* alex (MANUAL)\n*Started:* 2026-01-01 00:00:00 UTC\n*Ended:* 2026-01-01 00:00:00 UTC\n*Duration:* 0 s\n*Error:* Step b: Shell Script execution failed. The script ended with exit code 1. Please check execution logs.\n<https://slipway.example.com/pipeline/api/pipelines/execution/v2/RUN?accountIdentifier=acme&amp;orgIdentifier=default&amp;projectIdentifier=shop|Details>",
          "mrkdwn_in": [
            "text"
          ],
          "ts": 1767225600
        }
      ]
    }
    "##);
    world.assert_clean(&run).await;
}

#[tokio::test(start_paused = true)]
async fn a_mail_goes_to_all_who_are_named() {
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let stages = [stage("deploy", &script("b", "fail", ""), "", "")];
    let mail =
        |to: &str| format!("{{type: Email, spec: {{recipients: [{to}], userGroups: [ops]}}}}");
    let rules = [
        (
            "{type: StepFailed}",
            mail("'a@example.com, Bo <b@example.com>', c@example.com"),
        ),
        ("{type: StepFailed}", mail("'no address'")),
    ];
    world.apply(&with_rules(&stages, &rules)).await;
    // The kernel delays the small packets of SMTP by real milliseconds, which paused time would not wait for.
    tokio::time::resume();
    let run = world.start("release").await;
    let mut patience = 1_000;
    while world.engine.counters().open > 0 && patience > 0 {
        patience -= 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.assert_clean(&run).await;

    let mails = receiver.mails();
    assert_eq!(mails.len(), 1, "{mails:?}");
    let mail = mails[0].replace("=\n", "").replace(run.as_str(), "RUN");
    for line in [
        "MAIL FROM:<slipway@example.com>",
        "RCPT TO:<a@example.com>",
        "RCPT TO:<b@example.com>",
        "RCPT TO:<c@example.com>",
        "Subject: Step b of pipeline release failed",
        "Message-ID: <RUN-StepFailed-0-0-",
        "Content-Type: text/plain; charset=utf-8",
        "Started by: alex (MANUAL)",
        "Stage: deploy",
        "Error: Shell Script execution failed. The script ended with exit code 1.",
    ] {
        assert!(mail.contains(line), "{line} is not in\n{mail}");
    }
    let node = "stages.deploy.spec.execution.steps.b-0";
    let wrong = notify_execution(&run, &format!("StepFailed-1-0-{node}"));
    assert_eq!(
        world.path("notify", &wrong).await,
        "Due Send TellRun NotSent"
    );
    let reason = world.reasons("notify", &wrong).await;
    assert!(
        reason.contains("notification rule `rule1`: its recipients: `no address` is no address"),
        "{reason}"
    );
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("the log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_reach_their_receiver_and_nothing_else() {
    let log = Log::default();
    let writer = log.clone();
    // Of all tests of this file: the secrets are this one's.
    tracing_subscriber::fmt()
        .with_env_filter("debug")
        .with_writer(move || writer.clone())
        .init();
    let receiver = Receiver::new().await;
    let world = World::with_receiver(&receiver).await;
    let stages = [stage("build", &script("a", "ok", ""), "", "")];
    let method = |path: &str| {
        format!(
            "{{type: Webhook, spec: {{webhookUrl: '{}/<+secrets.getValue(\"account.hook\")>', headers: {{x-key: \
             'Bearer <+secrets.getValue(\"key\")>', x-run: '<+pipeline.executionId>', Content-Encoding: gzip}}}}}}",
            receiver.url(path)
        )
    };
    let rules = [
        ("{type: PipelineEnd}", method("take")),
        ("{type: PipelineEnd}", method("refuse")),
        (
            "{type: PipelineEnd}",
            webhook("http://169.254.169.254/latest"),
        ),
    ];
    world.apply(&with_rules(&stages, &rules)).await;
    let run = world.start("release").await;
    world.finish(&run).await;
    minutes(&world, 10).await;

    let got = receiver.got();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].path, "take/hidden-account.hook");
    assert_eq!(got[0].headers["x-key"], "Bearer hidden-key");
    assert_eq!(got[0].headers["x-run"], run.as_str());
    assert!(!got[0].headers.contains_key("content-encoding"));
    let log = String::from_utf8(log.0.lock().expect("the log").clone()).expect("text");
    assert!(log.contains("notification sent"), "there is a log");
    let mut seen = log;
    for rule in [1, 2] {
        let name = format!("{run}-PipelineEnd-{rule}-0");
        assert_eq!(
            world.path("notify", &name).await,
            "Due Send TellRun NotSent"
        );
        seen.push_str(&world.reasons("notify", &name).await);
    }
    assert!(
        seen.contains("answered HTTP 400: no:"),
        "the reason is told"
    );
    assert!(seen.contains("its address is link-local"));
    assert!(
        !seen.contains("hidden-"),
        "a secret is in the log or in a history"
    );
    world.assert_clean(&run).await;
}
