//! An export taken in: all of it, or nothing with a list of what does not fit.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_engine::error_name::ErrorName;
use slipway_engine::intake::listen;
use slipway_model::entity::{self as language, Kind};
use slipway_model::id::{AccountId, EntityId};
use slipway_store::StoreError;
use slipway_store::record::EntityRecord;

use super::{FORMAT, LISTS};
use crate::Deps;
use crate::body::LargeBody;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::place::NODES;
use crate::scope::describe;

/// Most faults that are told of one import.
const MOST_FAULTS: usize = 200;

/// What an import is given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Import {
    records: Vec<Value>,
    #[serde(default)]
    secrets_without_value: Vec<String>,
    #[serde(rename = "format")]
    _format: u64,
    #[serde(default, rename = "version")]
    _version: String,
}

pub(in crate::slipway) async fn import(Call(deps, caller, _): Call, body: LargeBody) -> ApiResult {
    let body = body.into_inner().object()?;
    let format = body.get("format");
    if format.and_then(Value::as_u64) != Some(FORMAT) {
        let found = format.map_or("none".to_owned(), Value::to_string);
        let message = format!(
            "the export has the format {found}, and this version reads {FORMAT} only: import it with the version that wrote it, or a newer one"
        );
        return Err(ApiError::new(ErrorName::Unsupported, message));
    }
    let import: Import = serde_json::from_value(body)
        .map_err(|error| ApiError::invalid(format!("the export cannot be read: {error}")))?;
    let (records, mut faults) = read_all(import.records, &caller.account);
    let mut new = Vec::new();
    let mut unchanged = 0_usize;
    for record in records {
        match find(&deps, &record).await? {
            None => new.push(record),
            Some(there) if same(&there, &record) => unchanged += 1,
            Some(_) => faults.push(format!(
                "{}: it is there and says something else; delete it, or leave it out",
                place(&record)
            )),
        }
    }
    if !faults.is_empty() {
        return Err(refused(&faults));
    }
    for record in &new {
        put(&deps, record).await?;
    }
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        records = new.len(),
        action = "import",
        "{} imported {} records", caller.principal, new.len()
    );
    Ok(success(json!({
        "imported": new.len(),
        "unchanged": unchanged,
        "secretsWithoutValue": import.secrets_without_value,
    })))
}

/// The records of an export that can be read, in this account, and what is wrong with the others.
fn read_all(given: Vec<Value>, account: &AccountId) -> (Vec<EntityRecord>, Vec<String>) {
    let mut faults = Vec::new();
    let mut records = Vec::with_capacity(given.len());
    let mut places = BTreeSet::new();
    for (number, record) in given.into_iter().enumerate() {
        match read(record) {
            Ok(mut record) => {
                record.scope.account = account.clone();
                if !places.insert(place(&record)) {
                    faults.push(format!("{}: it is there twice", place(&record)));
                }
                records.push(record);
            }
            Err(fault) => faults.push(format!("records[{number}]: {fault}")),
        }
    }
    (records, faults)
}

/// Writes a record that was not there. Where somebody imports the same at the same time, what that one wrote counts.
async fn put(deps: &Deps, record: &EntityRecord) -> ApiResult<()> {
    if record.kind == Kind::Trigger.key() {
        listen::before_saving(&deps.runs, record).await?;
    }
    match deps.store.put_entity(record, None).await {
        Ok(_) => Ok(()),
        Err(StoreError::AlreadyExists { .. }) => {
            let there = find(deps, record).await?;
            match there.is_some_and(|there| same(&there, record)) {
                true => Ok(()),
                false => {
                    let message = format!("{} was changed meanwhile: import again", place(record));
                    Err(ApiError::new(ErrorName::Conflict, message))
                }
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// A record that this version can read, with what it says.
fn read(record: Value) -> Result<EntityRecord, String> {
    const FIELDS: &[&str] = &[
        "scope",
        "kind",
        "parent",
        "id",
        "name",
        "description",
        "tags",
        "entity_type",
        "yaml",
        "version",
        "created_ms",
        "updated_ms",
    ];
    let fields = record.as_object().into_iter().flatten();
    let unknown: Vec<_> = fields
        .map(|(name, _)| name.as_str())
        .filter(|name| !FIELDS.contains(name))
        .collect();
    if !unknown.is_empty() {
        return Err(format!(
            "it has fields that this version does not know: {}",
            unknown.join(", ")
        ));
    }
    let record: EntityRecord = serde_json::from_value(record).map_err(|error| error.to_string())?;
    let of = |fault: String| format!("{}: {fault}", place(&record));
    let kind = kinds().find(|kind| kind.key() == record.kind);
    let Some(kind) = kind else {
        return Err(of(format!(
            "this version knows no entities of the kind `{}`",
            record.kind
        )));
    };
    if !is_document(kind, record.parent.as_ref()) {
        return Ok(record);
    }
    match language::parse(&record.kind, &record.yaml) {
        Ok(_) => Ok(record),
        Err(found) => {
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            Err(of(found.join("; ")))
        }
    }
}

fn kinds() -> impl Iterator<Item = Kind> {
    let above = [Kind::Organization, Kind::Project];
    above.into_iter().chain(LISTS.iter().map(|(kind, _)| *kind))
}

/// Whether the text of a record is a document: others are the content of a file, the label of a template's stable
/// version, or where overrides with an identifier are.
fn is_document(kind: Kind, parent: Option<&EntityId>) -> bool {
    match kind {
        Kind::File => parent.is_some_and(|parent| parent.as_str() == NODES),
        Kind::Template | Kind::Overrides => parent.is_some(),
        _ => true,
    }
}

async fn find(deps: &Deps, record: &EntityRecord) -> ApiResult<Option<EntityRecord>> {
    let parent = record.parent.as_ref();
    let found = deps
        .store
        .find_entity(&record.scope, &record.kind, parent, &record.id);
    Ok(found.await?)
}

/// Whether two records say the same, whenever they were written.
fn same(there: &EntityRecord, record: &EntityRecord) -> bool {
    let said = |record: &EntityRecord| EntityRecord {
        version: 0,
        created_ms: 0,
        updated_ms: 0,
        ..record.clone()
    };
    said(there) == said(record)
}

fn place(record: &EntityRecord) -> String {
    let below = record.parent.as_ref();
    let below = below.map_or(String::new(), |parent| format!(" of {parent}"));
    let (kind, id) = (&record.kind, &record.id);
    format!("{kind} {id}{below} in {}", describe(&record.scope))
}

fn refused(faults: &[String]) -> ApiError {
    let told = faults.iter().take(MOST_FAULTS).cloned();
    let left = faults.len().saturating_sub(MOST_FAULTS);
    let more = (left > 0).then(|| format!("and {left} more"));
    let told: Vec<String> = told.chain(more).collect();
    ApiError::invalid(format!("nothing was imported:\n{}", told.join("\n")))
}
