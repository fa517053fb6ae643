//! Whether triggers start runs: each condition, and what its refusal says.
#![expect(clippy::panic, reason = "what a test needs and lacks fails it")]

use serde_json::{Value, json};
use slipway_expr::{Limits, parse};
use slipway_model::id::EntityId;
use slipway_trigger::facts::{TriggerContext, of_event};
use slipway_trigger::webhook::{Heard, read};
use slipway_trigger::{
    ChangedFiles, Condition, Delivery, Event, Operator, Outcome, Provider, Refusal, Source, Texts,
    Trigger, WebhookSpec, decide,
};

fn event() -> Event {
    let body = json!({
        "ref": "refs/heads/main",
        "before": "1".repeat(40),
        "after": "2".repeat(40),
        "repository": {"full_name": "shop/cart", "html_url": "https://github.com/shop/cart", "pushed_at": 1_769_860_800},
        "sender": {"login": "ann"},
        "head_commit": {"message": "fix: prices [skip ci]", "author": {"name": "Ann", "email": "ann@shop.example"}},
        "commits": [{"added": ["src/new.rs"], "removed": [], "modified": ["ci/build.yml", "src/new.rs"]}],
        "callback_url": "http://169.254.169.254/latest/meta-data",
        "count": 7,
        "flag": false,
        "none": null,
    });
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let delivery = Delivery {
        headers: vec![
            header("X-GitHub-Event", "push"),
            header("X-GitHub-Delivery", "d-1"),
            header("X-Hub-Signature-256", "sha256=secret"),
            header("Authorization", "secret"),
        ],
        body: body.to_string().into_bytes(),
    };
    match read(Provider::Github, &delivery) {
        Ok(Heard::Event(event)) => *event,
        other => panic!("{other:?}"),
    }
}

fn spec() -> WebhookSpec {
    WebhookSpec {
        provider: Provider::Github,
        relay: None,
        event: "Push".to_owned(),
        connector: None,
        repo_name: None,
        registry: None,
        actions: Vec::new(),
        auto_abort: false,
        header_conditions: Vec::new(),
        payload_conditions: Vec::new(),
        jexl: None,
    }
}

fn trigger(spec: &WebhookSpec) -> Trigger {
    Trigger {
        identifier: EntityId::new("on_push"),
        name: "on push".to_owned(),
        pipeline: None,
        enabled: true,
        secret: None,
        input_sets: Texts::default(),
        inputs_yaml: None,
        branch: None,
        stages: Texts::default(),
        poll_interval: None,
        source: Source::Webhook(spec.clone()),
    }
}

fn decided(spec: &WebhookSpec, event: &Event) -> Result<(), Refusal> {
    decide::webhook(&trigger(spec), spec, event, None, None)
}

fn condition(key: &str, operator: Operator, value: &str) -> Condition {
    Condition {
        key: key.to_owned(),
        operator,
        value: value.to_owned(),
    }
}

fn with(key: &str, operator: Operator, value: &str) -> WebhookSpec {
    WebhookSpec {
        payload_conditions: vec![condition(key, operator, value)],
        ..spec()
    }
}

#[test]
fn conditions_are_about_what_the_event_has() {
    let event = event();
    let rows = [
        ("targetBranch", Operator::Equals, "main", true),
        ("targetBranch", Operator::In, "develop, main", true),
        ("branch", Operator::Equals, "main", true),
        ("<+trigger.branch>", Operator::Equals, "main", true),
        ("sourceBranch", Operator::Equals, "main", false),
        ("sourceBranch", Operator::NotEquals, "main", true),
        (
            "<+trigger.payload.head_commit.message>",
            Operator::DoesNotContain,
            "[skip ci]",
            false,
        ),
        (
            "<+eventPayload.head_commit.author.name>",
            Operator::Equals,
            "Ann",
            true,
        ),
        (
            "<+trigger.payload.commits[0].modified[0]>",
            Operator::EndsWith,
            ".yml",
            true,
        ),
        ("trigger.payload.count", Operator::Equals, "7", true),
        ("<+trigger.payload.flag>", Operator::Equals, "false", true),
        ("<+trigger.payload.none>", Operator::Equals, "null", false),
        ("<+trigger.payload.none>", Operator::NotIn, "a", true),
        (
            "<+trigger.payload.head_commit.no.such.thing>",
            Operator::Contains,
            "",
            false,
        ),
        (
            "<+trigger.payload.head_commit.no.such.thing>",
            Operator::DoesNotContain,
            "x",
            true,
        ),
        ("<+trigger.gitUser>", Operator::Regex, "an+", true),
        ("<+trigger.event>", Operator::Equals, "PUSH", true),
        (
            "<+trigger.header['x-github-EVENT']>",
            Operator::Equals,
            "push",
            true,
        ),
        // What authenticates is not to be had.
        (
            "<+trigger.header['X-Hub-Signature-256']>",
            Operator::StartsWith,
            "sha256",
            false,
        ),
        (
            "<+trigger.header['authorization']>",
            Operator::Equals,
            "secret",
            false,
        ),
        ("changedFiles", Operator::In, "ci/*", true),
        ("changedFiles", Operator::Equals, "src/new.rs", true),
        ("changedFiles", Operator::StartsWith, "docs/", false),
        ("changedFiles", Operator::NotIn, "src/*", false),
        ("<+trigger.payload.>", Operator::Equals, "x", false),
        ("<+secrets.getValue('a')>", Operator::Equals, "x", false),
    ];
    for (key, operator, value, expected) in rows {
        let found = decided(&with(key, operator, value), &event);
        assert_eq!(
            found.is_ok(),
            expected,
            "{key} {} {value}: {found:?}",
            operator.name()
        );
    }
}

/// What says that a value is not something must not hold because nobody knows the value.
#[test]
fn what_cannot_be_known_is_refused_whatever_the_operator() {
    let comment = Event {
        name: "IssueComment".to_owned(),
        action: Some("Create".to_owned()),
        pr_number: Some(7),
        branch: None,
        source_branch: None,
        target_branch: None,
        git_ref: None,
        ..event()
    };
    let rows = [
        ("targetBranch", "pull request 7 has a `targetBranch`"),
        ("sourceBranch", "pull request 7 has a `sourceBranch`"),
        ("<+trigger.targetBranch>", "Github must be asked for it"),
        ("trigger.branch", "Github must be asked for it"),
        ("targetBranhc", "no event has it"),
        ("ref", "no event has it"),
        ("payload.ref", "no event has it"),
        ("<+pipeline.name>", "no event has it"),
        ("<+trigger>", "no event has it"),
        ("X-GitHub-Event", "no event has it"),
        ("<+trigger.header['X-My-Token']>", "looks like a credential"),
        ("trigger.header.authorization", "looks like a credential"),
    ];
    assert!(
        decide::reads("a <+trigger.branch>", "branch")
            && !decide::reads("trigger.branches", "branch")
    );
    for (key, part) in rows {
        for operator in [
            Operator::NotEquals,
            Operator::NotIn,
            Operator::DoesNotContain,
            Operator::Equals,
        ] {
            let spec = WebhookSpec {
                event: "IssueComment".to_owned(),
                ..with(key, operator, "production")
            };
            let refused = decided(&spec, &comment).expect_err(key);
            assert!(refused.message.contains(part), "{}", refused.message);
            let spec = WebhookSpec {
                header_conditions: spec.payload_conditions,
                payload_conditions: Vec::new(),
                ..spec
            };
            let refused = decided(&spec, &comment).expect_err(key);
            assert!(refused.message.contains(part), "{}", refused.message);
        }
    }
    // What can be decided comes first, and an expression of which the unknown part does not matter is decided.
    let both = WebhookSpec {
        event: "IssueComment".to_owned(),
        jexl: Some("<+trigger.action> == 'Edit'".to_owned()),
        ..with("targetBranch", Operator::Equals, "main")
    };
    let refused = decided(&both, &comment).expect_err("an edit");
    assert_eq!(
        refused.outcome,
        Outcome::NoMatchingTriggerForJexlConditions,
        "{}",
        refused.message
    );
    let jexl = |text: &str| WebhookSpec {
        payload_conditions: Vec::new(),
        jexl: Some(text.to_owned()),
        ..both.clone()
    };
    let either = "<+trigger.action> == 'Create' || <+trigger.targetBranch> == 'main'";
    assert!(decided(&jexl(either), &comment).is_ok());
    let needed = jexl("<+trigger.targetBranch> == 'main'");
    let refused = decided(&needed, &comment).expect_err("not known");
    assert_eq!(refused.outcome, Outcome::FailedToFetchPrDetails);
    let told = Event {
        target_branch: Some("main".to_owned()),
        ..comment.clone()
    };
    assert!(decided(&needed, &told).is_ok());
    assert_eq!(
        decide::untold(&told),
        ["sourceBranch", "branch"],
        "commits are those of the push that it is made from"
    );
    // A push of a tag has no branch, which is known.
    let tag = Event {
        target_branch: None,
        ..event()
    };
    assert!(decided(&with("targetBranch", Operator::NotEquals, "main"), &tag).is_ok());
}

#[test]
fn refusals_say_the_condition_and_what_the_event_has() {
    let event = event();
    let told = |spec: WebhookSpec| {
        let Refusal { outcome, message } = decided(&spec, &event).expect_err("a refusal");
        format!("{}: {message}", outcome.name())
    };
    let mut said = vec![
        told(with("targetBranch", Operator::In, "develop, release/.*")),
        told(with("sourceBranch", Operator::Equals, "main")),
        told(with("changedFiles", Operator::StartsWith, "docs/")),
        told(with("targetBranch", Operator::Regex, "(")),
        told(with("<+trigger.payload.>", Operator::Equals, "x")),
        told(with(
            "<+trigger.payload.head_commit.message>",
            Operator::Equals,
            &"x".repeat(500),
        )),
        told(WebhookSpec {
            provider: Provider::Gitlab,
            ..spec()
        }),
        told(WebhookSpec {
            event: "PullRequest".to_owned(),
            ..spec()
        }),
        told(WebhookSpec {
            repo_name: Some("basket".to_owned()),
            ..spec()
        }),
        told(WebhookSpec {
            jexl: Some("<+trigger.payload.count> > 9".to_owned()),
            ..spec()
        }),
        told(WebhookSpec {
            jexl: Some("<+trigger.payload.nothing> == 9".to_owned()),
            ..spec()
        }),
        told(WebhookSpec {
            jexl: Some("<+trigger.branch> in [\"main\"]".to_owned()),
            ..spec()
        }),
        told(WebhookSpec {
            header_conditions: vec![condition(
                "<+trigger.header['X-GitHub-Event']>",
                Operator::NotEquals,
                "push",
            )],
            ..spec()
        }),
    ];
    let off = Trigger {
        enabled: false,
        ..trigger(&spec())
    };
    let refused = decide::webhook(&off, &spec(), &event, None, None).expect_err("a refusal");
    said.push(format!("{}: {}", refused.outcome.name(), refused.message));
    let other = Some("https://ann:password@github.com/shop/basket.git");
    let refused =
        decide::webhook(&trigger(&spec()), &spec(), &event, other, None).expect_err("a refusal");
    said.push(format!("{}: {}", refused.outcome.name(), refused.message));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn jexl_conditions_decide_over_payload_and_headers() {
    let event = event();
    for (jexl, expected) in [
        (
            "<+trigger.payload.head_commit.message>.contains(\"prices\")",
            true,
        ),
        (
            "<+trigger.payload.count> == 7 && <+trigger.header['X-GitHub-Event']> == \"push\"",
            true,
        ),
        (
            "<+trigger.payload.count> == 8 || <+trigger.branch> == \"main\"",
            true,
        ),
        ("<+trigger.payload.flag>", false),
        ("<+trigger.branch> != \"main\"", false),
    ] {
        let spec = WebhookSpec {
            jexl: Some(jexl.to_owned()),
            ..spec()
        };
        assert_eq!(decided(&spec, &event).is_ok(), expected, "{jexl}");
    }
}

#[test]
fn files_that_nobody_knows_are_asked_for_when_all_else_holds() {
    let mut event = event();
    event.changed_files = ChangedFiles::Unknown;
    let mut spec = with("changedFiles", Operator::In, "src/**");
    assert!(decide::wants_files(&spec));
    let refused = decided(&spec, &event).expect_err("a refusal");
    assert_eq!(
        refused.outcome,
        Outcome::NoMatchingTriggerForFilepathConditions
    );
    assert!(
        refused.message.contains("must be asked for"),
        "{}",
        refused.message
    );
    let asked = |files: &[&str], spec: &WebhookSpec| {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        decide::webhook(&trigger(spec), spec, &event, None, Some(&files)).is_ok()
    };
    assert!(asked(&["src/a.rs"], &spec));
    assert!(!asked(&["docs/a.md"], &spec));
    assert!(!asked(&[], &spec));
    // Nobody is asked for an event that starts nothing anyway.
    spec.payload_conditions
        .push(condition("targetBranch", Operator::Equals, "develop"));
    let refused = decided(&spec, &event).expect_err("a refusal");
    assert_eq!(
        refused.outcome,
        Outcome::NoMatchingTriggerForPayloadConditions
    );
}

#[test]
fn expressions_of_inputs_see_the_same() {
    let event = event();
    let facts = of_event(&event);
    let context = TriggerContext(&facts);
    let value = |text: &str| {
        let template = parse(text).expect("an expression");
        template
            .evaluate(&context, &Limits::default())
            .map(|value| value.to_shown_json())
            .ok()
    };
    for (text, expected) in [
        ("<+trigger.type>", json!("Webhook")),
        ("<+trigger.event>", json!("PUSH")),
        ("<+trigger.sourceRepo>", json!("Github")),
        ("<+trigger.commitSha>", json!("2".repeat(40))),
        ("<+trigger.baseCommitSha>", json!("1".repeat(40))),
        ("<+trigger.repoUrl>", json!("https://github.com/shop/cart")),
        ("<+trigger.payload.count>", json!(7)),
        (
            "<+<+trigger.payload.head_commit.author.name>.toLowerCase()>",
            json!("ann"),
        ),
        ("<+eventPayload.repository.full_name>", json!("shop/cart")),
        ("<+trigger.header['X-GitHub-Delivery']>", json!("d-1")),
        (
            "<+trigger.header>",
            json!({"x-github-event": "push", "x-github-delivery": "d-1"}),
        ),
        (
            "<+trigger.payload.callback_url>",
            json!("http://169.254.169.254/latest/meta-data"),
        ),
    ] {
        assert_eq!(value(text), Some(expected), "{text}");
    }
    assert_eq!(value("<+trigger.tag>"), None);
    assert_eq!(value("<+trigger.payload.nothing>"), None);
    assert!(!facts.to_string().contains("secret"), "{facts}");
    assert!(facts["payload"] != Value::Null);
}
