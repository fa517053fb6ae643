//! F9: what DynamoDB may answer beside what was asked for, and what is never asked of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use serde_json::{Value, json};
use slipway_model::id::{LaneId, NodeId, PrincipalId, StageId};
use slipway_model::status::Status;
use slipway_store::embedded::{Embedded, in_process};
use slipway_store::record::{NodeRecord, SignalRecord};
use slipway_store::{NodeEnd, Page, Store, StoreError};
use tower::ServiceExt;

use crate::{clock, id, noise, run, runs::record, scope};

/// DynamoDB's limit of an item.
const LARGEST_ITEM: usize = 400 * 1024;

/// Requests that were made: operation and body.
type Made = Arc<Mutex<Vec<(String, Value)>>>;

/// What is answered in the place of the service.
type Instead = Arc<dyn Fn(&str, usize) -> Option<Refusal> + Send + Sync>;

/// An answer that is no success, and whether the request is carried out all the same.
#[derive(Clone)]
struct Refusal {
    code: &'static str,
    message: String,
    done: bool,
}

fn refusal(code: &'static str, message: &str) -> Refusal {
    Refusal {
        code,
        message: message.to_owned(),
        done: false,
    }
}

/// A store over a DynamoDB that answers `instead`, which is asked with the operation and how often it was tried.
fn store_with(
    embedded: &Embedded,
    instead: impl Fn(&str, usize) -> Option<Refusal> + Send + Sync + 'static,
) -> (Store, Made) {
    let made = Made::default();
    let (seen, instead, service) = (
        Arc::clone(&made),
        Arc::new(instead) as Instead,
        embedded.router(),
    );
    let router = Router::new().fallback(move |request: Request| {
        let (seen, instead, service) = (Arc::clone(&seen), Arc::clone(&instead), service.clone());
        async move { answer(&seen, &instead, service, request).await }
    });
    let client = in_process(router);
    let dynamodb = embedded.dynamodb().config().to_builder();
    let s3 = embedded.s3().config().to_builder();
    let store = Store::new(
        aws_sdk_dynamodb::Client::from_conf(dynamodb.http_client(client.clone()).build()),
        aws_sdk_s3::Client::from_conf(s3.http_client(client).build()),
        slipway_store::Layout::local(),
        clock(),
    );
    (store, made)
}

async fn answer(made: &Made, instead: &Instead, service: Router, request: Request) -> Response {
    let target = request.headers().get("x-amz-target");
    let target = target.and_then(|target| target.to_str().ok());
    let Some(operation) = target.and_then(|target| target.rsplit('.').next()) else {
        return service.oneshot(request).await.expect("an answer");
    };
    let operation = operation.to_owned();
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 26).await.expect("a body");
    let tried = {
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        let before = made.iter().filter(|(known, _)| *known == operation);
        let tried = before.count();
        made.push((
            operation.clone(),
            serde_json::from_slice(&body).expect("JSON"),
        ));
        tried
    };
    let refusal = instead(&operation, tried);
    let carried_out = refusal.as_ref().is_none_or(|refusal| refusal.done);
    let answered = match carried_out {
        true => Some(
            service
                .oneshot(Request::from_parts(head, Body::from(body)))
                .await
                .expect("an answer"),
        ),
        false => None,
    };
    match (refusal, answered) {
        (None, Some(answered)) => answered,
        (refusal, _) => {
            let Refusal { code, message, .. } = refusal.expect("one of both");
            let status = if code == "InternalServerError" {
                500
            } else {
                400
            };
            let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
            let body = json!({"__type": kind, "message": message}).to_string();
            let response = Response::builder().status(status);
            let response = response.header("content-type", "application/x-amz-json-1.0");
            response.body(Body::from(body)).expect("a response")
        }
    }
}

fn requests(made: &Made) -> Vec<(String, Value)> {
    made.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotFound { .. } => "NotFound",
        StoreError::AlreadyExists { .. } => "AlreadyExists",
        StoreError::Conflict { .. } => "Conflict",
        StoreError::Throttled { .. } => "Throttled",
        StoreError::TooLarge { .. } => "TooLarge",
        StoreError::Invalid { .. } => "Invalid",
        StoreError::Unreadable { .. } => "Unreadable",
        StoreError::Unavailable { .. } => "Unavailable",
    }
}

#[tokio::test(start_paused = true)]
async fn f9_each_reason_of_a_cancelled_transaction_is_told_apart() {
    let embedded = Embedded::temporary().expect("embedded services");
    let table = [
        ("[ConditionalCheckFailed, None]", "AlreadyExists"),
        // That one condition fails is true whatever befell the other parts.
        ("[ThrottlingError, ConditionalCheckFailed]", "AlreadyExists"),
        ("[None, TransactionConflict]", "Throttled"),
        ("[ProvisionedThroughputExceeded, None]", "Throttled"),
        ("[ThrottlingError]", "Throttled"),
        ("[None, ItemCollectionSizeLimitExceeded]", "Invalid"),
        ("[ValidationError, None]", "Invalid"),
        ("[AccessDenied]", "Unavailable"),
    ];
    for (codes, expected) in table {
        let message = format!(
            "Transaction cancelled, please refer cancellation reasons for specific reasons {codes}"
        );
        let (store, _) = store_with(&embedded, move |operation, _| {
            (operation == "TransactWriteItems")
                .then(|| refusal("TransactionCanceledException", &message))
        });
        let error = store.create_run(&record("r1", 10)).await;
        let error = error.expect_err("it was cancelled");
        assert_eq!(kind(&error), expected, "{codes}: {error}");
    }
    let store = embedded.store(clock());
    let left = store.list_unstarted(Store::shard_of(&scope()), i64::MAX, 9);
    assert_eq!(left.await.expect("listed"), []);
    assert_eq!(store.find_run(&run("r1")).await.expect("read"), None);
}

#[tokio::test(start_paused = true)]
async fn f9_each_refusal_of_one_item_is_told_apart() {
    let embedded = Embedded::temporary().expect("embedded services");
    let table = [
        (
            "ProvisionedThroughputExceededException",
            "slow down",
            "Throttled",
        ),
        ("ThrottlingException", "slow down", "Throttled"),
        ("RequestLimitExceeded", "slow down", "Throttled"),
        (
            "TransactionConflictException",
            "another one writes it",
            "Throttled",
        ),
        (
            "TransactionInProgressException",
            "the first is at work",
            "Throttled",
        ),
        (
            "IdempotentParameterMismatchException",
            "another request",
            "Throttled",
        ),
        (
            "ValidationException",
            "Item size has exceeded the maximum allowed size",
            "Invalid",
        ),
        ("ResourceNotFoundException", "no such table", "Unavailable"),
        ("AccessDeniedException", "not you", "Unavailable"),
        ("InternalServerError", "sorry", "Unavailable"),
    ];
    for (code, message, expected) in table {
        let (store, _) = store_with(&embedded, move |operation, _| {
            (operation == "UpdateItem").then(|| refusal(code, message))
        });
        let error = store.next_sequence(&scope(), &id("deploy")).await;
        let error = error.expect_err("it was refused");
        assert_eq!(kind(&error), expected, "{code}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn f9_a_throttled_table_is_asked_again() {
    let embedded = Embedded::temporary().expect("embedded services");
    let (store, made) = store_with(&embedded, |operation, tried| {
        let busy = operation == "UpdateItem" && tried < 2;
        busy.then(|| refusal("ProvisionedThroughputExceededException", "slow down"))
    });
    let sequence = store.next_sequence(&scope(), &id("deploy")).await;
    assert_eq!(sequence.expect("a number").number, 1);
    assert_eq!(requests(&made).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn f9_a_transaction_whose_answer_was_lost_is_repeated_under_the_same_token() {
    let embedded = Embedded::temporary().expect("embedded services");
    let (store, made) = store_with(&embedded, |operation, tried| {
        let lost = operation == "TransactWriteItems" && tried == 0;
        lost.then(|| Refusal {
            done: true,
            ..refusal("InternalServerError", "the answer is lost")
        })
    });
    // DynamoDB knows the token and says yes; one that does not says that it is there already. It is, either way.
    match store.create_run(&record("r1", 10)).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => {}
        Err(other) => panic!("{other}"),
    }
    let made = requests(&made);
    let tokens: Vec<&Value> = made
        .iter()
        .map(|(_, body)| &body["ClientRequestToken"])
        .collect();
    assert_eq!(tokens.len(), 2);
    assert!(tokens[0].is_string(), "{tokens:?}");
    assert_eq!(tokens[0], tokens[1]);
    assert!(store.find_run(&run("r1")).await.expect("read").is_some());
}

#[tokio::test(start_paused = true)]
async fn f9_of_many_who_write_one_item_at_once_one_wins() {
    let embedded = Embedded::temporary().expect("embedded services");
    let store = embedded.store(clock());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..32 {
        let store = store.clone();
        let signal = SignalRecord {
            run: run("r1"),
            node: NodeId::new("stages.a"),
            attempt: 0,
            kind: "answer".to_owned(),
            says: n.to_string(),
            who: PrincipalId::new("sam"),
            at_ms: n,
        };
        tasks.spawn(async move { store.put_signal(&signal).await });
    }
    let results = tasks.join_all().await;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1);
    for lost in results.into_iter().filter_map(Result::err) {
        assert_eq!(kind(&lost), "AlreadyExists", "{lost}");
    }
}

fn node(stage: &str, large: &Value) -> NodeRecord {
    NodeRecord {
        run: run("r1"),
        id: NodeId::new(format!("stages.{stage}")),
        stage: StageId::new(stage),
        lane: LaneId::new("steps"),
        attempt: 0,
        identifier: id(stage),
        name: stage.to_owned(),
        node_type: "ShellScript".to_owned(),
        status: Status::Running,
        started_ms: 1,
        ended_ms: None,
        failure: None,
        spec: large.clone(),
        outputs: Value::Null,
        progress: Value::Null,
        units: Vec::new(),
        delegate: None,
        asked_ms: None,
        round: 0,
        base: 0,
        refused: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn f9_no_item_comes_near_the_limit_and_no_read_is_weak_or_of_an_index() {
    let embedded = Embedded::temporary().expect("embedded services");
    let (store, made) = store_with(&embedded, |_, _| None);
    // It does not compress, and so nothing is as large as it.
    let large = json!({"text": noise(1_000_000)});
    store.create_run(&record("r1", 10)).await.expect("created");
    let node = node("a", &large);
    store.start_node(&node).await.expect("started");
    let progress = store.save_progress(&node.run, &node.id, 0, &large);
    progress.await.expect("saved");
    let end = NodeEnd {
        run: node.run.clone(),
        node: node.id.clone(),
        attempt: 0,
        status: Status::Success,
        failure: None,
        outputs: large.clone(),
        refused: Vec::new(),
        units: Vec::new(),
        progress: Some(large.clone()),
    };
    store.end_node(&end).await.expect("ended");
    let read = store.get_node(&node.run, &node.id).await.expect("read");
    assert_eq!(read.map(|node| node.outputs), Some(large));
    store.list_nodes(&node.run, None).await.expect("listed");
    store.get_run(&node.run).await.expect("read");
    let listed = store.list_runs(&scope(), None, Page::first(9)).await;
    assert_eq!(listed.expect("listed").items.len(), 1);
    store.list_waits(&node.run).await.expect("listed");
    store.list_deployed().await.expect("listed");
    let scope = scope();
    let entities = store.list_entities(&scope, "pipeline", None, Page::first(9));
    entities.await.expect("listed");

    let mut reads = 0;
    for (operation, body) in requests(&made) {
        match operation.as_str() {
            "GetItem" | "Query" => {
                reads += 1;
                assert_eq!(body["ConsistentRead"], true, "{operation} {body}");
                assert_eq!(body["IndexName"], Value::Null, "{operation} {body}");
            }
            "PutItem" | "UpdateItem" | "TransactWriteItems" | "DeleteItem" => {
                let size = body.to_string().len();
                assert!(size < LARGEST_ITEM, "{operation} has {size} bytes");
            }
            // Batches may be carried out in part; scans see what nobody asked for.
            other => panic!("{other} is not one of the access patterns"),
        }
    }
    assert!(reads > 10, "only {reads} reads");
    for (name, _) in store.layout().tables() {
        let described = embedded.dynamodb().describe_table().table_name(name);
        let described = described.send().await.expect("a table").table;
        let described = described.expect("its description");
        assert_eq!(described.global_secondary_indexes(), [], "{name}");
    }
}

/// DynamoDB deletes what has expired within days, and shows it until then.
#[tokio::test(start_paused = true)]
async fn f9_what_has_expired_and_is_still_there_counts_by_its_time_alone() {
    let embedded = Embedded::temporary().expect("embedded services");
    let clock = clock();
    let store = embedded.store(clock.clone());
    let minute = Duration::from_secs(60);
    let take = async |holder: &str| store.take_lease("sweep", holder, minute).await;
    assert!(take("a").await.expect("free"));
    // Past its time to live from the first second on.
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let expire = embedded.dynamodb().update_item();
    let expire = expire.table_name(&store.layout().runs);
    let expire = expire
        .key("pk", text("lease#sweep"))
        .key("sk", text("lease"));
    let expire = expire.update_expression("SET expires = :then");
    let expire = expire.condition_expression("attribute_exists(pk)");
    let then = AttributeValue::N("1".to_owned());
    expire
        .expression_attribute_values(":then", then)
        .send()
        .await
        .expect("changed");
    assert!(!take("b").await.expect("read"), "it is held");
    clock.sleep(minute).await;
    assert!(take("b").await.expect("read"), "its time is over");
}
