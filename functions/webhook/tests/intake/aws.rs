//! What EventBridge brings: pushes to CodeCommit, images of ECR, objects of S3.

use serde_json::{Value, json};
use slipway_world::World;

use crate::feeds::registries;
use crate::{history, minutes, only_run, runs, said, trigger, world};

const ACCOUNT: &str = "connector:\n  name: account\n  identifier: account\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Aws\n  spec:\n    credential: {type: InheritFromDelegate}\n    delegateSelectors: []\n";

/// A push to `main` of the repository `shop` in Frankfurt.
pub(crate) fn push(id: &str, before: &str, after: &str, at: &str) -> Value {
    json!({
        "version": "0",
        "id": id,
        "detail-type": "CodeCommit Repository State Change",
        "source": "aws.codecommit",
        "account": "111122223333",
        "time": at,
        "region": "eu-central-1",
        "resources": ["arn:aws:codecommit:eu-central-1:111122223333:shop"],
        "detail": {
            "callerUserArn": "arn:aws:iam::111122223333:user/ann",
            "commitId": after.repeat(40),
            "oldCommitId": before.repeat(40),
            "event": "referenceUpdated",
            "referenceFullName": "refs/heads/main",
            "referenceName": "main",
            "referenceType": "branch",
            "repositoryId": "7dd1ff1e",
            "repositoryName": "shop",
        },
    })
}

fn image(repository: &str, region: &str, account: &str, at: i64) -> Value {
    json!({
        "version": "0",
        "id": format!("{repository}-{region}-{account}-{at}"),
        "detail-type": "ECR Image Action",
        "source": "aws.ecr",
        "account": account,
        "time": time(at),
        "region": region,
        "resources": [],
        "detail": {
            "result": "SUCCESS",
            "repository-name": repository,
            "image-digest": format!("sha256:{}", "7".repeat(64)),
            "action-type": "PUSH",
            "image-tag": "2.0",
        },
    })
}

fn object(bucket: &str, key: &str, at: i64) -> Value {
    json!({
        "version": "0",
        "id": format!("{bucket}-{key}"),
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": "111122223333",
        "time": time(at),
        "region": "eu-central-1",
        "resources": [format!("arn:aws:s3:::{bucket}")],
        "detail": {"version": "0", "bucket": {"name": bucket}, "object": {"key": key, "size": 5}, "reason": "PutObject"},
    })
}

/// Whole seconds, as EventBridge tells times.
fn time(at_ms: i64) -> String {
    let time = jiff::Timestamp::from_second(at_ms.div_euclid(1000));
    time.expect("a time").to_string()
}

fn messages(events: &[&Value]) -> Value {
    let records = events.iter().enumerate().map(|(number, event)| {
        json!({"messageId": format!("m-{number}"), "eventSource": "aws:sqs", "body": event.to_string()})
    });
    json!({"Records": records.collect::<Vec<_>>()})
}

fn on_push(id: &str, repository: &str) -> String {
    let source = format!(
        "type: Webhook\nspec:\n  type: AwsCodeCommit\n  spec:\n    type: Push\n    spec:\n      repoName: {repository}\n      payloadConditions:\n        - {{key: targetBranch, operator: Equals, value: main}}\n"
    );
    trigger(id, &source, "")
}

fn on_ecr(id: &str, image: &str, more: &str) -> String {
    let source = format!(
        "type: Artifact\nspec:\n  type: Ecr\n  spec:\n    connectorRef: account\n    region: eu-central-1\n    imagePath: {image}\n    tag: <+trigger.artifact.build>\n{more}"
    );
    trigger(id, &source, "")
}

fn on_bucket(id: &str, bucket: &str) -> String {
    let source = format!(
        "type: Artifact\nspec:\n  type: AmazonS3\n  spec:\n    connectorRef: account\n    region: eu-central-1\n    bucketName: {bucket}\n    filePathRegex: .*\n"
    );
    trigger(id, &source, "")
}

async fn now(world: &World) -> i64 {
    // The second that goes on is behind us, so that what is asked now is asked after it.
    minutes(world, 1).await;
    world.runs.clock.now_ms()
}

#[tokio::test(start_paused = true)]
async fn a_push_to_codecommit_starts_one_run_however_often_it_is_told() {
    let world = world().await;
    world.apply(&on_push("pushed", "shop")).await;
    world.apply(&on_push("other", "billing")).await;
    let (_, sources) = registries(&world).await;
    let first = push("e-1", "0", "a", "2026-01-01T00:00:00Z");
    for _ in 0..3 {
        let heard = world.hear(&sources, first.clone()).await.expect("heard");
        assert_eq!(heard, json!({"heard": "1 runs"}));
    }
    // EventBridge may tell one thing twice under two ids.
    let again = push("e-2", "0", "a", "2026-01-01T00:00:00Z");
    world.hear(&sources, again).await;
    let run = world.finish(&only_run(&world).await).await;
    assert_eq!(
        said(&world, &run.id).await,
        format!("main {}", "a".repeat(40))
    );
    assert_eq!(run.triggered_by.as_str(), "trigger:pushed");
    let by = run.trigger.expect("a trigger");
    assert_eq!(by.about["user"], "ann");
    assert!(history(&world, "other").await.is_empty());

    // The push before, which comes after, does not deploy over it.
    minutes(&world, 1).await;
    let newer = push("e-4", "b", "c", "2026-01-01T00:02:00Z");
    let older = push("e-3", "a", "b", "2026-01-01T00:01:00Z");
    let answer = world.hear(&sources, messages(&[&newer, &older])).await;
    assert_eq!(answer, Some(json!({"batchItemFailures": []})));
    assert_eq!(runs(&world).await.len(), 2);
    let rows = history(&world, "pushed").await;
    let late = rows.iter().find(|row| row.run.is_none()).expect("a row");
    assert_eq!(late.status, "TARGET_DID_NOT_EXECUTE");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_on_a_repository_of_a_regional_connector_hears_its_pushes() {
    let world = world().await;
    world
        .apply("connector:\n  name: code\n  identifier: code\n  orgIdentifier: default\n  projectIdentifier: shop\n  type: Codecommit\n  spec:\n    url: https://git-codecommit.eu-central-1.amazonaws.com\n    type: Region\n    authentication: {type: HTTPS, spec: {type: AWSCredentials, spec: {accessKey: AKIA, secretKeyRef: hook}}}\n")
        .await;
    let with = |id: &str, repository: &str| {
        on_push(id, repository).replace("repoName", "connectorRef: code\n          repoName")
    };
    world.apply(&with("pushed", "shop")).await;
    world.apply(&with("other", "shopping")).await;
    let (_, sources) = registries(&world).await;
    let pushed = push("e-1", "0", "a", "2026-01-01T00:00:00Z");
    world.hear(&sources, pushed).await;
    let mut elsewhere = push("e-2", "a", "b", "2026-01-01T00:01:00Z");
    elsewhere["region"] = json!("eu-west-1");
    world.hear(&sources, elsewhere).await;
    let run = only_run(&world).await;
    assert_eq!(history(&world, "pushed").await[0].run, Some(run));
    assert!(history(&world, "other").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_new_image_has_its_feed_asked_at_once_and_starts_one_run() {
    let world = world().await;
    world.apply(ACCOUNT).await;
    let (has, sources) = registries(&world).await;
    for name in ["shop", "api"] {
        has.has(name, &["1.0"]);
    }
    world.apply(&on_ecr("images", "shop", "")).await;
    world.apply(&on_ecr("more", "shop", "")).await;
    world
        .apply(&on_ecr(
            "elsewhere",
            "shop",
            "    registryId: \"999999999999\"\n",
        ))
        .await;
    world.apply(&on_ecr("api", "api", "")).await;
    world.poll(&sources).await;
    has.asked();
    has.has("shop", &["1.0", "2.0"]);
    let at = now(&world).await;
    // Another repository, region or account, and what is no push.
    let mut pulled = image("shop", "eu-central-1", "111122223333", at);
    pulled["detail"]["action-type"] = json!("DELETE");
    for other in [
        image("web", "eu-central-1", "111122223333", at),
        image("shop", "eu-west-1", "111122223333", at),
        pulled,
        json!({"source": "aws.ecs", "detail-type": "ECS Task State Change"}),
    ] {
        world.hear(&sources, other).await;
    }
    assert_eq!((has.asked(), runs(&world).await.len()), (0, 0));
    // Three tags of one push, told together, and again.
    let told = image("shop", "eu-central-1", "111122223333", at);
    let heard = world.hear(&sources, messages(&[&told, &told, &told])).await;
    assert_eq!(heard, Some(json!({"batchItemFailures": []})));
    assert_eq!(has.asked(), 1, "the feed of two triggers, and no other");
    assert_eq!(runs(&world).await.len(), 2, "one run of each trigger");
    // Told late it is asked for once more: nobody knows which was first within a second. Then it was asked since.
    for expected in [1, 0] {
        minutes(&world, 1).await;
        world.hear(&sources, told.clone()).await;
        assert_eq!(has.asked(), expected);
    }
    // What polling sees as well starts nothing; what is in the registry of another account only polling sees.
    for _ in 0..2 {
        minutes(&world, 1).await;
        world.poll(&sources).await;
    }
    assert_eq!(runs(&world).await.len(), 3);
    assert_eq!(history(&world, "elsewhere").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_came_before_its_event_starts_nothing_twice() {
    let world = world().await;
    world.apply(ACCOUNT).await;
    let (has, sources) = registries(&world).await;
    has.has("builds", &["a.zip"]);
    world.apply(&on_bucket("objects", "builds")).await;
    world.poll(&sources).await;
    let at = now(&world).await;
    has.has("builds", &["a.zip", "b.zip", "c.zip"]);
    world.poll(&sources).await;
    assert_eq!(runs(&world).await.len(), 2);
    has.asked();
    // The events are late, and out of order.
    for key in ["c.zip", "b.zip"] {
        world.hear(&sources, object("builds", key, at)).await;
    }
    assert_eq!(runs(&world).await.len(), 2);
    // A trigger that is off has nothing asked.
    let off = on_bucket("off", "other").replace("  source:", "  enabled: false\n  source:");
    world.apply(&off).await;
    has.asked();
    let at = now(&world).await;
    world.hear(&sources, object("other", "d.zip", at)).await;
    assert_eq!(has.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn events_that_are_none_come_again_and_hold_no_others_up() {
    let world = world().await;
    world.apply(&on_push("pushed", "shop")).await;
    let (_, sources) = registries(&world).await;
    let good = push("e-1", "0", "a", "2026-01-01T00:00:00Z");
    let mut broken = push("e-2", "a", "b", "2026-01-01T00:00:00Z");
    broken["detail"]["commitId"] = json!(7);
    let mut asked = messages(&[&broken, &good, &good, &good]);
    asked["Records"][2]["body"] = json!("{");
    asked["Records"][3] = json!({"messageId": "m-3", "body": json!({"source": "aws.ecr", "detail-type": "ECR Image Action", "detail": {"action-type": "PUSH", "result": "SUCCESS"}}).to_string()});
    let answer = world.hear(&sources, asked).await.expect("an answer");
    let failed = ["m-0", "m-2", "m-3"].map(|id| json!({"itemIdentifier": id}));
    assert_eq!(answer, json!({"batchItemFailures": failed}));
    only_run(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_while_an_event_of_aws_is_heard_starts_one_run() {
    for request in 1.. {
        let mut reached = false;
        for after in [false, true] {
            let world = world().await;
            world.apply(&on_push("pushed", "shop")).await;
            let (_, sources) = registries(&world).await;
            let pushed = push("e-1", "0", "a", "2026-01-01T00:00:00Z");
            world.crash.arm(request, after);
            // The queue gives a message again that nobody took off it.
            for _ in 0..3 {
                let told = messages(&[&pushed]);
                if world.hear(&sources, told).await == Some(json!({"batchItemFailures": []})) {
                    break;
                }
            }
            reached |= !world.crash.is_armed();
            world.crash.disarm();
            minutes(&world, 1).await;
            world.take_in().await;
            let run = only_run(&world).await;
            let rows = history(&world, "pushed").await;
            assert_eq!(rows.len(), 1, "request {request}, after {after}");
            assert_eq!(rows[0].run.as_ref(), Some(&run));
        }
        if !reached {
            assert!(request > 8, "{request} requests");
            return;
        }
    }
}
