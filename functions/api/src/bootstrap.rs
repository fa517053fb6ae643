//! What an empty store needs before anybody can use it.

use slipway_clock::Clock;
use slipway_model::entity::Kind;
use slipway_model::id::{AccountId, EntityId, OrgId, Scope};
use slipway_store::record::EntityRecord;
use slipway_store::{Store, StoreError};

/// Organization and project that are made first.
const DEFAULT: &str = "default";

/// The project that a new Harness account has, and that most published pipelines name.
const HARNESS_DEFAULT: &str = "default_project";

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Whether the organization is new: then this is the first start on this store.
    pub first_start: bool,
}

/// The store could not be prepared.
#[derive(Debug, thiserror::Error)]
#[error("preparing the store: creating the {what}")]
pub struct BootstrapError {
    what: &'static str,
    #[source]
    source: StoreError,
}

/// Makes the organization `default` with the projects `default` and `default_project`, where they are not
/// there yet.
///
/// # Errors
/// When the store cannot be written.
pub async fn bootstrap(
    store: &Store,
    clock: &Clock,
    account: &AccountId,
) -> Result<Bootstrap, BootstrapError> {
    let now_ms = clock.now_ms();
    let account_scope = Scope::account(account.clone());
    let yaml = format!("organization:\n  name: {DEFAULT}\n  identifier: {DEFAULT}\n");
    let organization = record(account_scope, Kind::Organization, DEFAULT, yaml, now_ms);
    let first_start = put(store, &organization, "organization `default`").await?;
    for id in [DEFAULT, HARNESS_DEFAULT] {
        let scope = Scope::org(account.clone(), OrgId::new(DEFAULT));
        let yaml =
            format!("project:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: {DEFAULT}\n");
        let project = record(scope, Kind::Project, id, yaml, now_ms);
        put(store, &project, "first projects").await?;
    }
    Ok(Bootstrap { first_start })
}

fn record(scope: Scope, kind: Kind, id: &str, yaml: String, now_ms: i64) -> EntityRecord {
    EntityRecord {
        scope,
        kind: kind.key().to_owned(),
        parent: None,
        id: EntityId::new(id),
        name: id.to_owned(),
        description: None,
        tags: Vec::new(),
        entity_type: None,
        yaml,
        version: 0,
        created_ms: now_ms,
        updated_ms: now_ms,
        connection: None,
        git: None,
        saved_by: None,
    }
}

/// Whether it is new.
async fn put(
    store: &Store,
    record: &EntityRecord,
    what: &'static str,
) -> Result<bool, BootstrapError> {
    match store.put_entity(record, None).await {
        Ok(_) => Ok(true),
        Err(StoreError::AlreadyExists { .. }) => Ok(false),
        Err(source) => Err(BootstrapError { what, source }),
    }
}
