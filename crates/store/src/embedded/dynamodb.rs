//! The embedded DynamoDB: dynoxide on a SQLite file, behind DynamoDB's own protocol (awsJson1.0).

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use dynoxide::actions::transact_write_items::{
    TransactWriteItemsRequest, TransactWriteItemsResponse,
};
use dynoxide::{Database, DynoxideError};
use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::OpenError;
use super::desk::Desk;
use super::sync::GroupSync;
use super::tokens::{self, Tokens};
use crate::Layout;
use crate::known::{UnderWay, Writes};
use crate::layout::TableDefinition;

/// DynamoDB's largest request.
const LARGEST_REQUEST: usize = 16 * 1024 * 1024;
/// DynamoDB's longest `ClientRequestToken`, in characters.
const LONGEST_TOKEN: usize = 36;

#[derive(Clone)]
struct Service {
    database: Database,
    /// None where nothing needs to outlive the process.
    sync: Option<GroupSync>,
    tokens: Arc<Tokens>,
    /// Who is at the database.
    desk: Desk,
    /// Name of the table of entities, and its writes.
    entities: (Arc<str>, Arc<Writes>),
}

impl Service {
    /// Notes a request that may write entities.
    fn writes_entities(&self, operation: &str, body: &[u8]) -> Option<UnderWay> {
        let (table, entities) = &self.entities;
        // JSON can also spell a name in other ways than itself.
        let contains = |part: &[u8]| memmem::find(body, part).is_some();
        let may = writes(operation) && (contains(table.as_bytes()) || contains(b"\\u"));
        may.then(|| entities.begin())
    }
}

/// Opens the database file, makes the tables that are missing and serves them.
/// Writes of the table of entities are noted in `entities`.
pub(super) fn open(
    file: &Path,
    layout: &Layout,
    entities: Arc<Writes>,
) -> Result<Router, OpenError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|source| OpenError::Io {
            path: folder.to_path_buf(),
            source,
        })?;
    }
    let failed = |source| OpenError::Database {
        path: file.to_path_buf(),
        source,
    };
    let database = Database::new(&file.to_string_lossy()).map_err(failed)?;
    // SQLite then leaves it to us when a commit is on the disk, and `GroupSync` does that for many at once.
    database.disable_bulk_loading().map_err(failed)?;
    for (name, definition) in layout.tables() {
        create_table(&database, name, definition)?;
    }
    let sync = Some(GroupSync::new(file));
    Ok(serve(
        database,
        sync,
        (layout.entities.as_str().into(), entities),
    ))
}

/// Serves tables that are in memory only: no request waits for a disk or for another thread.
pub(super) fn in_memory(layout: &Layout, entities: Arc<Writes>) -> Result<Router, OpenError> {
    let database = Database::memory().map_err(|source| OpenError::Database {
        path: ":memory:".into(),
        source,
    })?;
    for (name, definition) in layout.tables() {
        create_table(&database, name, definition)?;
    }
    Ok(serve(
        database,
        None,
        (layout.entities.as_str().into(), entities),
    ))
}

fn serve(database: Database, sync: Option<GroupSync>, entities: (Arc<str>, Arc<Writes>)) -> Router {
    let service = Service {
        database,
        sync,
        tokens: Arc::default(),
        desk: Desk::default(),
        entities,
    };
    Router::new()
        .route("/", post(answer))
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(service)
}

fn create_table(
    database: &Database,
    name: &str,
    definition: TableDefinition,
) -> Result<(), OpenError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| OpenError::Table {
        table: name.to_owned(),
        source,
    };
    let TableDefinition {
        partition_key,
        sort_key,
        time_to_live,
        ..
    } = definition;
    let request = json!({
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": partition_key, "AttributeType": "S"},
            {"AttributeName": sort_key, "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": partition_key, "KeyType": "HASH"},
            {"AttributeName": sort_key, "KeyType": "RANGE"},
        ],
    });
    let request = serde_json::from_value(request).map_err(|error| failed(error.into()))?;
    match database.create_table(request) {
        Ok(_) => {}
        Err(DynoxideError::ResourceInUseException(_)) => return Ok(()),
        Err(error) => return Err(failed(error.into())),
    }
    let ttl = json!({
        "TableName": name,
        "TimeToLiveSpecification": {"Enabled": true, "AttributeName": time_to_live},
    });
    let ttl = serde_json::from_value(ttl).map_err(|error| failed(error.into()))?;
    database
        .update_time_to_live(ttl)
        .map(drop)
        .map_err(|error| failed(error.into()))
}

async fn answer(State(service): State<Service>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers
        .get("x-amz-target")
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let operation = target
        .strip_prefix("DynamoDB_20120810.")
        .unwrap_or_default();
    let done = dispatch(&service, operation, &body).await;
    let done = match (done, &service.sync) {
        (Ok(done), Some(sync)) if writes(operation) => match sync.wait().await {
            Ok(()) => Ok(done),
            Err(error) => {
                let why = format!("the disk did not take the write: {error}");
                Err(DynoxideError::InternalServerError(why))
            }
        },
        (done, _) => done,
    };
    match done {
        Ok(json) => respond(StatusCode::OK, json),
        Err(error) => {
            let status = StatusCode::from_u16(error.status_code());
            respond(
                status.unwrap_or(StatusCode::BAD_REQUEST),
                error.to_json().into_bytes(),
            )
        }
    }
}

fn respond(status: StatusCode, json: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/x-amz-json-1.0");
    headers.insert(header::CONTENT_TYPE, kind);
    if let Ok(id) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()) {
        headers.insert("x-amzn-requestid", id);
    }
    response
}

fn writes(operation: &str) -> bool {
    const READS: [&str; 8] = [
        "BatchGetItem",
        "DescribeTable",
        "DescribeTimeToLive",
        "GetItem",
        "ListTables",
        "Query",
        "Scan",
        "TransactGetItems",
    ];
    !READS.contains(&operation)
}

/// The operations that Slipway uses, and those that help to look around.
async fn dispatch(
    service: &Service,
    operation: &str,
    body: &[u8],
) -> Result<Vec<u8>, DynoxideError> {
    let on = (service, body, service.writes_entities(operation, body));
    match operation {
        "BatchGetItem" => call(on, Database::batch_get_item).await,
        "BatchWriteItem" => call(on, Database::batch_write_item).await,
        "CreateTable" => call(on, Database::create_table).await,
        "DeleteItem" => call(on, Database::delete_item).await,
        "DescribeTable" => call(on, Database::describe_table).await,
        "DescribeTimeToLive" => call(on, Database::describe_time_to_live).await,
        "ExecuteStatement" => call(on, Database::execute_statement).await,
        "GetItem" => call(on, Database::get_item).await,
        "ListTables" => call(on, Database::list_tables).await,
        "PutItem" => call(on, Database::put_item).await,
        "Query" => call(on, Database::query).await,
        "Scan" => call(on, Database::scan).await,
        "TransactGetItems" => call(on, Database::transact_get_items).await,
        "TransactWriteItems" => {
            // Before its turn: it takes as long as reading the request.
            let digest = tokens::digest(body).map_err(unreadable)?;
            let tokens = service.tokens.clone();
            call(on, move |database, request| {
                transact(database, &tokens, request, digest)
            })
            .await
        }
        "UpdateItem" => call(on, Database::update_item).await,
        other => Err(DynoxideError::ValidationException(format!(
            "The embedded DynamoDB does not have the operation {other:?}"
        ))),
    }
}

/// A transaction, done once for its token.
fn transact(
    database: &Database,
    tokens: &Tokens,
    mut request: TransactWriteItemsRequest,
    digest: tokens::Digest,
) -> Result<TransactWriteItemsResponse, DynoxideError> {
    // Who asks what it cost is told that again, which only the database can do; it also refuses what is no token.
    let is_usual = |token: &mut String| (1..=LONGEST_TOKEN).contains(&token.len());
    let token = match request.return_consumed_capacity {
        None => request.client_request_token.take_if(is_usual),
        Some(_) => None,
    };
    let Some(token) = token else {
        return database.transact_write_items(request);
    };
    let mut known = tokens.lock();
    if known.was_done(&token, digest, Instant::now())? {
        return Ok(TransactWriteItemsResponse::default());
    }
    let done = database.transact_write_items(request)?;
    known.note(&token, digest, Instant::now());
    Ok(done)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "what `map_err` gives to a function"
)]
fn unreadable(error: serde_json::Error) -> DynoxideError {
    DynoxideError::SerializationException(error.to_string())
}

/// Reads what is asked for, has it done when its turn comes, and writes the answer.
async fn call<Q, A>(
    (service, body, write): (&Service, &[u8], Option<UnderWay>),
    operation: impl FnOnce(&Database, Q) -> Result<A, DynoxideError> + Send + 'static,
) -> Result<Vec<u8>, DynoxideError>
where
    Q: DeserializeOwned + Send + 'static,
    A: Serialize + Send + 'static,
{
    let request = serde_json::from_slice(body).map_err(unreadable)?;
    let database = service.database.clone();
    let failed = |why: String| DynoxideError::InternalServerError(why);
    let done = service.desk.run(move || {
        // It is under way until it is done, also where nobody waits for it any more.
        let _write = write;
        operation(&database, request)
    });
    let answer = done.await.ok_or_else(|| {
        let why = "the request was not done to its end, as the process stops or the database failed: send it again";
        failed(why.to_owned())
    })??;
    serde_json::to_vec(&answer).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn put(layout: &Layout) -> (HeaderMap, Bytes) {
        let target = HeaderValue::from_static("DynamoDB_20120810.PutItem");
        let headers = HeaderMap::from_iter([("x-amz-target".parse().unwrap(), target)]);
        let entities = layout.tables()[0].1;
        let (pk, sk) = (entities.partition_key, entities.sort_key);
        let body = json!({"TableName": layout.entities, "Item": {pk: {"S": "a"}, sk: {"S": "b"}}});
        (headers, body.to_string().into())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_write_that_nobody_waits_for_is_noted_when_it_is_done() {
        let (layout, entities) = (Layout::local(), Arc::<Writes>::default());
        let database = Database::memory().unwrap();
        for (name, definition) in layout.tables() {
            create_table(&database, name, definition).unwrap();
        }
        let service = Service {
            database,
            sync: None,
            tokens: Arc::default(),
            desk: Desk::default(),
            entities: (layout.entities.as_str().into(), entities.clone()),
        };
        let (go, waits) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel::<()>();
        let desk = service.desk.clone();
        let before = tokio::spawn(async move {
            let work = move || {
                drop(begun);
                let _ = waits.recv();
            };
            desk.run(work).await
        });
        let _ = begins.recv();

        let (headers, body) = put(&layout);
        let mut write = Box::pin(answer(State(service.clone()), headers, body));
        assert!(futures::poll!(&mut write).is_pending());
        drop(write);
        assert_eq!(entities.quiet(), None, "it is done later");
        drop(go);
        before.await.unwrap();
        // Behind it in the line.
        service.desk.run(|| ()).await;
        assert_eq!(entities.quiet(), Some(1));
    }
}
