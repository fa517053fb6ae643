//! Payloads as every provider sends them, against every trigger that could listen: what starts and what does not. The
//! shapes are those of the providers' documentation, the values are made up.
#![expect(clippy::panic, reason = "what a test needs and lacks fails it")]

mod broken;
mod recorded;

use std::collections::BTreeSet;

use recorded::{Recorded, SCHEMA, decided, delivery, listening, recorded, told};
use serde_json::{Value, json};
use slipway_trigger::webhook::{self, Heard};
use slipway_trigger::{ChangedFiles, Condition, Event, Operator, Outcome, Provider, WebhookSpec};

/// The one event of a payload.
fn only(one: &Recorded) -> Event {
    match one.heard() {
        Ok(Heard::Event(event)) => *event,
        other => panic!("{}: {other:?}", one.name),
    }
}

fn named(name: &str) -> Recorded {
    let found = recorded().into_iter().find(|one| one.name == name);
    found.unwrap_or_else(|| panic!("no payload {name}"))
}

#[test]
fn each_payload_starts_the_triggers_that_it_should_and_no_others() {
    let mut heard = BTreeSet::new();
    for one in recorded() {
        let found = one
            .heard()
            .unwrap_or_else(|why| panic!("{}: {why}", one.name));
        if let Heard::Ignored(why) = &found {
            let expected = one
                .ignored
                .as_deref()
                .unwrap_or_else(|| panic!("{} is ignored: {why}", one.name));
            assert!(why.contains(expected), "{}: {why}", one.name);
        }
        let events = found.events();
        let is: Vec<String> = events.iter().map(told).collect();
        assert_eq!(is, one.is, "{}", one.name);
        if !matches!(one.provider, Provider::Custom | Provider::AwsCodeCommit) {
            let known = webhook::provider_of(&one.delivery());
            assert_eq!(known, Some(one.provider), "{}", one.name);
        }
        for (event, is) in events.iter().zip(&is) {
            heard.insert((event.provider, is.clone()));
            for (provider, name, action, spec) in listening() {
                let wanted = format!("{name} {action}");
                let starts = decided(&spec, event, None).is_ok();
                let should = provider == event.provider && wanted.trim() == is;
                assert_eq!(starts, should, "{}: {} {wanted}", one.name, provider.name());
            }
        }
    }
    let all: BTreeSet<_> = SCHEMA
        .iter()
        .flat_map(|(provider, name, actions)| {
            actions
                .iter()
                .map(move |action| (*provider, format!("{name} {action}").trim().to_owned()))
        })
        .collect();
    assert_eq!(heard, all);
}

#[test]
fn events_say_what_triggers_ask_for() {
    let mut lines = Vec::new();
    for one in recorded() {
        for event in one
            .heard()
            .unwrap_or_else(|why| panic!("{}: {why}", one.name))
            .events()
        {
            lines.push(format!("{}: {}", one.name, recorded::line(&event)));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn an_event_of_another_repository_starts_nothing() {
    for one in recorded() {
        let Ok(heard) = one.heard() else { continue };
        for event in heard.events() {
            if matches!(
                event.provider,
                Provider::Custom | Provider::HarnessArtifactRegistry
            ) {
                continue;
            }
            let (_, _, _, spec) = listening()
                .into_iter()
                .find(|(provider, name, _, _)| *provider == event.provider && *name == event.name)
                .expect("a trigger");
            for url in &event.urls {
                let found = recorded::of_repository(&spec, &event, url);
                assert!(found.is_ok(), "{} {url}: {found:?}", one.name);
                for other in [
                    format!(
                        "{}-evil",
                        url.trim_end_matches(".git").trim_end_matches("/browse")
                    ),
                    url.replace("cart", "basket"),
                    url.replace(".com", ".com.evil")
                        .replace(".io/", ".io.evil/")
                        .replace(".example", ".evil"),
                ] {
                    let found = recorded::of_repository(&spec, &event, &other);
                    let same = other == *url;
                    assert_eq!(found.is_ok(), same, "{} {other}: {found:?}", one.name);
                    if let Err(refused) = found {
                        assert_eq!(refused.outcome, Outcome::NoMatchingTriggerForRepo);
                    }
                }
            }
        }
    }
    // Of a pull request from a fork, the fork is not the repository.
    let event = only(&named("github_pull_request"));
    assert!(
        event.urls.iter().all(|url| !url.contains("bob")),
        "{:?}",
        event.urls
    );
}

/// As Atlassian's documentation shows them, and as 5.9 sends them.
#[test]
fn a_repository_of_bitbucket_server_without_links_is_found_by_project_and_slug() {
    for (name, is, links) in [
        ("bitbucket_server_push", "Push", "repository.links"),
        (
            "bitbucket_server_pull_request",
            "PullRequest",
            "pullRequest.toRef.repository.links",
        ),
    ] {
        let event = only(&named(name).with(links, Value::Null));
        assert_eq!(event.urls, Vec::<String>::new());
        let (.., spec) = listening()
            .into_iter()
            .find(|(provider, event, ..)| *provider == Provider::Bitbucket && *event == is)
            .expect("a trigger");
        let of = |url: &str| recorded::of_repository(&spec, &event, url).is_ok();
        for own in [
            "https://git.shop.example/scm/shop/cart.git",
            "https://git.shop.example:8443/bitbucket/scm/SHOP/cart",
            "ssh://git@git.shop.example:7999/shop/cart.git",
            "https://git.shop.example/projects/SHOP/repos/cart/browse",
        ] {
            assert!(of(own), "{own}");
        }
        for other in [
            "https://git.shop.example/scm/shop/basket.git",
            "https://git.shop.example/scm/workshop/cart.git",
            "https://git.shop.example/scm/other/cart.git",
            "https://bitbucket.org/shop/cart.git",
        ] {
            assert!(!of(other), "{other}");
        }
    }
}

#[test]
fn one_happening_has_one_key_and_another_has_another() {
    let mut keys = BTreeSet::new();
    let mut count = 0;
    for one in recorded() {
        let Ok(heard) = one.heard() else { continue };
        let mut again = one.delivery();
        for (name, value) in &mut again.headers {
            if name.contains("delivery") || name.contains("uuid") {
                value.push_str("-again");
            }
        }
        let repeated = one.heard_as(&again).map(Heard::events);
        let repeated: Vec<_> = repeated
            .into_iter()
            .flatten()
            .map(|event| event.key)
            .collect();
        let events = heard.events();
        let first: Vec<_> = events.iter().map(|event| event.key.clone()).collect();
        assert_eq!(first, repeated, "{}", one.name);
        if one.provider == Provider::Custom {
            assert!(first.iter().all(Option::is_none));
            continue;
        }
        // Nothing of it says when it was reopened: each delivery counts for itself.
        if one.name == "harness_older#1" {
            assert_eq!(first, [None]);
            continue;
        }
        // What two variants of a payload differ in may be no part of what happened.
        let same = [
            "github_pull_request#8",
            "gitlab_push#1",
            "gitea_push#1",
            "bitbucket_pull_request#4",
            "bitbucket_server_pull_request#2",
            "harness_pull_request#2",
            "azure_push#2",
            "bitbucket_push#2",
            "bitbucket_server_push#2",
        ];
        if !same.contains(&one.name.as_str()) {
            count += first.len();
            for key in first.iter().flatten() {
                assert!(!keys.contains(key), "{}: {key}", one.name);
            }
            keys.extend(
                first
                    .into_iter()
                    .map(|key| key.unwrap_or_else(|| panic!("{} has no key", one.name))),
            );
        }
    }
    assert_eq!(keys.len(), count);
}

#[test]
fn going_back_to_a_commit_and_forth_is_two_happenings() {
    let (a, b) = ("1".repeat(40), "2".repeat(40));
    let pushed = |before: &str, after: &str, at: i64| {
        let one = named("github_push")
            .with("before", json!(before))
            .with("after", json!(after));
        only(&one.with("repository.pushed_at", json!(at))).key
    };
    let keys = [pushed(&a, &b, 1), pushed(&b, &a, 2), pushed(&a, &b, 3)];
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    assert_eq!(pushed(&a, &b, 1), keys[0]);
    let one = named("github_pull_request").with("action", json!("labeled"));
    let label = |name: &str| only(&one.with("label", json!({"name": name}))).key;
    assert_ne!(label("deploy"), label("urgent"));
    let edited = named("github_pull_request#2");
    let changed = |from: &str| only(&edited.with("changes", json!({"title": {"from": from}}))).key;
    assert_ne!(changed("Round"), changed("round"));
    let request = named("gitlab_merge_request#4");
    let changed = |label: &str| only(&request.with("changes", json!({"labels": [label]}))).key;
    assert_ne!(changed("deploy"), changed("urgent"));
    let again = |status: &str| {
        only(&named("gitlab_pipeline").with("builds", json!([{"status": status}]))).key
    };
    assert_ne!(again("running"), again("success"));
    // A server that does not say when a release was edited: each delivery counts for itself.
    let release = named("github_release#2").with("release.updated_at", Value::Null);
    assert_eq!(only(&release).key, None);
    assert!(only(&named("github_release#2")).key.is_some());
    let at = |time: &str| only(&one.with("pull_request.updated_at", json!(time))).key;
    assert_ne!(at("2026-01-31T12:00:00Z"), at("2026-01-31T12:00:01Z"));
}

#[test]
fn what_tells_events_apart_is_short() {
    let long = |letter: &str| {
        let one = named("github_push").with("repository.full_name", json!(letter.repeat(100_000)));
        let mut sent = one.delivery();
        sent.headers[1].1 = letter.repeat(10_000);
        match one.heard_as(&sent) {
            Ok(Heard::Event(event)) => (event.key.expect("a key"), event.delivery.expect("an id")),
            other => panic!("{other:?}"),
        }
    };
    let (key, id) = long("a");
    assert!(key.len() <= 512 && id.len() <= 512, "{key} {id}");
    assert_eq!((key, id), long("a"));
    assert!(long("a").0 != long("b").0 && long("a").1 != long("b").1);
}

#[test]
fn files_are_known_where_the_sender_lists_all() {
    let files = |one: &Recorded| only(one).changed_files;
    let push = named("github_push");
    let listed = ["src/old.rs", "src/price.rs", "src/round.rs"].map(str::to_owned);
    assert_eq!(files(&push), ChangedFiles::Known(listed.to_vec()));
    assert_eq!(files(&push.with("size", json!(2))), ChangedFiles::Unknown);
    assert_eq!(
        files(&push.with("commits", json!([]))),
        ChangedFiles::Unknown
    );
    assert_eq!(
        files(&push.with("commits", json!([{"id": "1"}]))),
        ChangedFiles::Unknown
    );
    let many = |count: usize| {
        json!(vec![
            json!({"added": ["a"], "removed": [], "modified": []});
            count
        ])
    };
    assert_eq!(
        files(&push.with("commits", many(19))),
        ChangedFiles::Known(vec!["a".to_owned()])
    );
    assert_eq!(
        files(&push.with("commits", many(21))),
        ChangedFiles::Unknown
    );
    assert_eq!(files(&named("gitlab_push#1")), ChangedFiles::Unknown);
    assert_eq!(files(&named("gitea_push#1")), ChangedFiles::Unknown);
    assert_eq!(files(&named("github_pull_request")), ChangedFiles::Unknown);
}

/// GitHub does not say between which branches the pull request of a comment is; Gitea does.
#[test]
fn comments_have_branches_where_the_payload_says_them() {
    let of = |one: &Recorded| {
        let event = only(one);
        [
            event.source_branch,
            event.target_branch,
            event.branch,
            event.commit,
        ]
    };
    let plain = named("github_issue_comment");
    assert_eq!(of(&plain), [None, None, None, None]);
    let pull = json!({"head": {"ref": "topic", "sha": "b2"}, "base": {"ref": "main", "sha": "a1"}});
    let told = plain.with("pull_request", pull);
    let expected = ["topic", "main", "main", "b2"].map(|name| Some(name.to_owned()));
    assert_eq!(of(&told), expected);
    assert_eq!(only(&told).key, only(&plain).key, "it is the same comment");
}

#[test]
fn a_trigger_as_people_write_it_decides() {
    let trigger = |conditions: &str| {
        let text = format!(
            r#"
trigger:
  name: On merge request
  identifier: on_merge_request
  enabled: true
  orgIdentifier: default
  projectIdentifier: shop
  pipelineIdentifier: deploy
  source:
    type: Webhook
    spec:
      type: Gitlab
      spec:
        type: MergeRequest
        spec:
          connectorRef: gitlab
          autoAbortPreviousExecutions: true
          payloadConditions:
            - key: <+trigger.payload.user.username>
              operator: In
              value: john, ann
            - key: sourceBranch
              operator: Regex
              value: ^(rounding|fix/.*)$
          headerConditions:
            - key: <+trigger.header['X-Gitlab-Event']>
              operator: Equals
              value: Merge Request Hook
          jexlCondition: {conditions}
          actions: [Open, Sync]
"#
        );
        let parsed = slipway_model::entity::parse("trigger.yaml", &text).expect("a trigger");
        slipway_trigger::Trigger::of(&parsed).expect("a trigger")
    };
    let starts = |trigger: &slipway_trigger::Trigger, one: &str, repository: &str| {
        let slipway_trigger::Source::Webhook(spec) = &trigger.source else {
            panic!("no webhook")
        };
        let event = only(&named(one));
        slipway_trigger::decide::webhook(trigger, spec, &event, Some(repository), None)
            .map_err(|why| why.outcome)
    };
    let own = "git@gitlab.com:shop/cart.git";
    let jexl = r#"(<+trigger.payload.user.username> == "ann" || <+trigger.prNumber> == 1) && <+trigger.targetBranch> == "main""#;
    let ann = trigger(jexl);
    assert_eq!(starts(&ann, "gitlab_merge_request", own), Ok(()));
    assert_eq!(starts(&ann, "gitlab_merge_request#5", own), Ok(()));
    let other_action = Err(Outcome::NoMatchingTriggerForEventAction);
    assert_eq!(starts(&ann, "gitlab_merge_request#1", own), other_action);
    assert_eq!(starts(&ann, "gitlab_push", own), other_action);
    let other_repository = Err(Outcome::NoMatchingTriggerForRepo);
    assert_eq!(
        starts(&ann, "gitlab_merge_request", "https://gitlab.com/bob/cart"),
        other_repository
    );
    let nobody = trigger(r#"<+trigger.payload.user.username> == "eve""#);
    let other_person = Err(Outcome::NoMatchingTriggerForJexlConditions);
    assert_eq!(starts(&nobody, "gitlab_merge_request", own), other_person);
}

#[test]
fn w20_pings_and_events_that_nobody_knows_are_ignored_with_the_reason() {
    let ignored = recorded().into_iter().filter(|one| one.is.is_empty());
    let mut seen = 0;
    for one in ignored {
        match one.heard() {
            Ok(Heard::Ignored(why)) => assert!(!why.is_empty() && why.len() < 250, "{why}"),
            other => panic!("{}: {other:?}", one.name),
        }
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
    let one = named("github_push");
    let mut sent = one.delivery();
    sent.headers[0].1 = "x\n".repeat(10_000);
    match one.heard_as(&sent) {
        Ok(Heard::Ignored(why)) => assert!(why.len() < 500 && !why.contains('\n'), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_delivery_whose_sender_cannot_be_known_is_of_nobody() {
    let push = named("github_push").delivery();
    let mut both = push.clone();
    both.headers
        .push(("x-gitlab-event".to_owned(), "Push Hook".to_owned()));
    assert_eq!(webhook::provider_of(&both), None);
    let mut twice = push.clone();
    twice
        .headers
        .push(("x-github-event".to_owned(), "push".to_owned()));
    assert_eq!(webhook::provider_of(&twice), None);
    let mut none = push;
    none.headers.clear();
    assert_eq!(webhook::provider_of(&none), None);
    // The shape of an event of EventBridge over HTTP is of nobody.
    let event = delivery(&json!({}), &named("code_commit").body);
    assert_eq!(webhook::provider_of(&event), None);
    assert!(webhook::read(Provider::AwsCodeCommit, &event).is_err());
}

#[test]
fn w21_a_branch_that_only_looks_like_another_starts_nothing() {
    let wanted = |operator| Condition {
        key: "targetBranch".to_owned(),
        operator,
        value: "main".to_owned(),
    };
    let push = |(provider, name, ..): &(Provider, &str, &str, WebhookSpec)| {
        *provider == Provider::Github && *name == "Push"
    };
    let (_, _, _, mut spec) = listening().into_iter().find(push).expect("a trigger");
    for operator in [Operator::Equals, Operator::In, Operator::Regex] {
        spec.payload_conditions = vec![wanted(operator)];
        for (branch, same) in [
            ("main", true),
            ("main-evil", false),
            ("main%0a", false),
            ("x/main", false),
        ] {
            let event =
                only(&named("github_push").with("ref", json!(format!("refs/heads/{branch}"))));
            let found = decided(&spec, &event, None);
            assert_eq!(found.is_ok(), same, "{branch}: {found:?}");
        }
    }
    for branch in [
        "main\n",
        "main\r",
        "\nmain",
        "main\u{0}",
        "ma in",
        "main~1",
        "a:b",
    ] {
        let found = named("github_push")
            .with("ref", json!(format!("refs/heads/{branch}")))
            .heard();
        assert!(found.is_err(), "{branch:?}: {found:?}");
    }
    // Nor does a tag of that name.
    let event = only(&named("github_push").with("ref", json!("refs/tags/main")));
    assert!(decided(&spec, &event, None).is_err());
}

#[test]
fn w22_a_ref_of_a_megabyte_is_refused() {
    let long = "a".repeat(1 << 20);
    for (name, path) in [
        ("github_push", "ref"),
        ("github_pull_request", "pull_request.head.ref"),
        ("github_release", "release.tag_name"),
        ("gitlab_push", "ref"),
        ("gitlab_merge_request", "object_attributes.target_branch"),
        ("bitbucket_pull_request", "pullrequest.source.branch.name"),
        ("bitbucket_server_pull_request", "pullRequest.fromRef.id"),
        ("azure_pull_request", "resource.sourceRefName"),
        ("harness_branch", "ref.name"),
        ("code_commit", "detail.referenceFullName"),
    ] {
        let why = named(name)
            .with(path, json!(format!("refs/heads/{long}")))
            .heard()
            .expect_err(name);
        assert!(
            why.contains("more than 255 are not accepted"),
            "{name}: {why}"
        );
    }
}

#[test]
fn a_push_of_too_many_refs_is_refused() {
    let change = |at: usize| json!({"new": {"type": "branch", "name": format!("b{at}"), "target": {"hash": "1".repeat(40)}}});
    let push = |count: usize| {
        let changes: Vec<Value> = (0..count).map(change).collect();
        named("bitbucket_push")
            .with("push.changes", json!(changes))
            .heard()
    };
    assert_eq!(push(200).map(|heard| heard.events().len()), Ok(200));
    let why = push(2000).expect_err("too many");
    assert!(why.contains("2000 refs"), "{why}");
}

#[test]
fn a_registry_is_found_by_its_name() {
    let event = only(&named("harness_registry"));
    let (.., mut spec) = listening()
        .into_iter()
        .find(|(.., action, _)| *action == "ArtifactCreation")
        .expect("a trigger");
    for (registry, same) in [("images", true), ("image", false), ("", false)] {
        spec.registry = Some(registry.to_owned());
        assert_eq!(decided(&spec, &event, None).is_ok(), same, "{registry}");
    }
}

#[test]
fn w24_a_callback_url_is_data() {
    let one = named("custom_docker_hub");
    let event = only(&one);
    assert!(event.urls.is_empty(), "{:?}", event.urls);
    assert_eq!(
        event.payload["callback_url"],
        "http://169.254.169.254/latest/meta-data/iam"
    );
}
