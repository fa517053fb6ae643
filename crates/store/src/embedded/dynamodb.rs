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
    let tokens = Arc::default();
    let service = Service {
        database,
        sync,
        tokens,
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
    let done = {
        let _write = service.writes_entities(operation, &body);
        dispatch(&service, operation, &body)
    };
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
fn dispatch(service: &Service, operation: &str, body: &[u8]) -> Result<Vec<u8>, DynoxideError> {
    let database = &service.database;
    match operation {
        "BatchGetItem" => call(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => call(body, |request| database.batch_write_item(request)),
        "CreateTable" => call(body, |request| database.create_table(request)),
        "DeleteItem" => call(body, |request| database.delete_item(request)),
        "DescribeTable" => call(body, |request| database.describe_table(request)),
        "DescribeTimeToLive" => call(body, |request| database.describe_time_to_live(request)),
        "ExecuteStatement" => call(body, |request| database.execute_statement(request)),
        "GetItem" => call(body, |request| database.get_item(request)),
        "ListTables" => call(body, |request| database.list_tables(request)),
        "PutItem" => call(body, |request| database.put_item(request)),
        "Query" => call(body, |request| database.query(request)),
        "Scan" => call(body, |request| database.scan(request)),
        "TransactGetItems" => call(body, |request| database.transact_get_items(request)),
        "TransactWriteItems" => call(body, |request| transact(service, request, body)),
        "UpdateItem" => call(body, |request| database.update_item(request)),
        other => Err(DynoxideError::ValidationException(format!(
            "The embedded DynamoDB does not have the operation {other:?}"
        ))),
    }
}

/// A transaction, done once for its token.
fn transact(
    service: &Service,
    mut request: TransactWriteItemsRequest,
    body: &[u8],
) -> Result<TransactWriteItemsResponse, DynoxideError> {
    let database = &service.database;
    // Who asks what it cost is told that again, which only the database can do; it also refuses what is no token.
    let is_usual = |token: &mut String| (1..=LONGEST_TOKEN).contains(&token.len());
    let token = match request.return_consumed_capacity {
        None => request.client_request_token.take_if(is_usual),
        Some(_) => None,
    };
    let Some(token) = token else {
        return database.transact_write_items(request);
    };
    let digest = tokens::digest(body)
        .map_err(|error| DynoxideError::SerializationException(error.to_string()))?;
    let mut known = service.tokens.lock();
    if known.was_done(&token, digest, Instant::now())? {
        return Ok(TransactWriteItemsResponse::default());
    }
    let done = database.transact_write_items(request)?;
    known.note(&token, digest, Instant::now());
    Ok(done)
}

fn call<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<Vec<u8>, DynoxideError> {
    let refused =
        |error: serde_json::Error| DynoxideError::SerializationException(error.to_string());
    let request = serde_json::from_slice(body).map_err(refused)?;
    let answer = operation(request)?;
    serde_json::to_vec(&answer)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
