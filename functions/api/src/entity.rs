//! What all kinds of entities share: a draft is checked, then created, updated or both; found; listed;
//! deleted. Controllers only translate between their wire form and this.

use axum::response::Response;
use serde_json::Value;
use slipway_engine::error_name::ErrorName;
use slipway_engine::intake::{hook, listen};
use slipway_engine::{form, written};
use slipway_model::entity::{self, Kind, Parsed};
use slipway_model::id::{EntityId, PrincipalId, Scope};
use slipway_model::{Diagnostic, Severity};
use slipway_steps::registry::STEP_TYPES;
use slipway_store::record::{EntityRecord, GitPlace};
use slipway_store::{Page as StorePage, StoreError};

use crate::Deps;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::{envelope, flat, scope};

pub(crate) use crate::place::{Place, noun};

/// Entities of one kind in one scope that a list looks at; more are a sign of something else.
const MOST_LISTED: usize = 20_000;

/// Entities fetched from the store at a time.
const STORE_PAGE: usize = 200;

/// An entity that passed the checks and can be stored.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) place: Place,
    /// `identifier`, which clients know it by; for most kinds also that of its place.
    pub(crate) identifier: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) entity_type: Option<String>,
    pub(crate) yaml: String,
    /// Where its YAML is kept.
    pub(crate) kept: Kept,
    /// What its author should look at.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Where the YAML of a draft is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Where it was; here for a new one.
    #[default]
    AsBefore,
    /// Here.
    Here,
    /// In Git, where it has been written already.
    InGit(GitPlace),
}

impl Kept {
    fn git(self, before: Option<&EntityRecord>) -> Option<GitPlace> {
        match self {
            Self::AsBefore => before.and_then(|before| before.git.clone()),
            Self::Here => None,
            Self::InGit(place) => Some(place),
        }
    }
}

/// An entity that was stored.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(crate) record: EntityRecord,
    pub(crate) change: Change,
    /// What its author should look at.
    pub(crate) warnings: Vec<Diagnostic>,
}

impl Saved {
    /// The answer to a request that saved something; its warnings stand in `metaData`.
    pub(crate) fn answer(&self, render: impl FnOnce(&EntityRecord) -> Value) -> Response {
        envelope::success_with(render(&self.record), &self.warnings)
    }
}

/// What storing a draft did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Created,
    Updated,
    Unchanged,
}

impl Draft {
    /// A draft of a YAML text that the language accepts. Identifiers of organization and project in the
    /// text must not contradict `scope`.
    pub(crate) fn of_yaml(scope: Scope, kind: Kind, yaml: String) -> ApiResult<Self> {
        let parsed = entity::parse(kind.key(), &yaml)
            .map_err(|found| ApiError::diagnostics(ErrorName::InvalidRequest, &found))?;
        Self::of_parsed(scope, kind, &parsed, yaml)
    }

    /// A draft of a text that was parsed before.
    pub(crate) fn of_parsed(
        scope: Scope,
        kind: Kind,
        parsed: &Parsed,
        yaml: String,
    ) -> ApiResult<Self> {
        let head = &parsed.head;
        if head.kind != kind {
            return Err(ApiError::invalid(format!(
                "The YAML must have the root key `{}`, not `{}`",
                kind.key(),
                head.kind.key()
            )));
        }
        agree(
            "orgIdentifier",
            head.org.as_ref().map(|o| o.as_str()),
            org_of(&scope, kind),
        )?;
        agree(
            "projectIdentifier",
            head.project.as_ref().map(|p| p.as_str()),
            project_of(&scope),
        )?;
        let scope_of_runs = scope.clone();
        Ok(Self {
            place: Place::of_parsed(scope, parsed)?,
            identifier: head.identifier.to_string(),
            name: head.name.clone(),
            description: head.description.clone(),
            tags: head.tags.clone(),
            entity_type: match kind {
                Kind::InputSet => Some("INPUT_SET".to_owned()),
                Kind::OverlayInputSet => Some("OVERLAY_INPUT_SET".to_owned()),
                _ => head.entity_type.clone(),
            },
            yaml,
            kept: Kept::default(),
            warnings: warnings_of(parsed, &scope_of_runs),
        })
    }

    fn record(self, before: Option<&EntityRecord>, now_ms: i64) -> EntityRecord {
        EntityRecord {
            scope: self.place.scope,
            kind: self.place.kind.key().to_owned(),
            parent: self.place.parent,
            id: self.place.id,
            name: self.name,
            description: self.description,
            tags: self.tags,
            entity_type: self.entity_type,
            yaml: self.yaml,
            version: before.map_or(0, |b| b.version),
            created_ms: before.map_or(now_ms, |b| b.created_ms),
            updated_ms: now_ms,
            connection: None,
            git: self.kept.git(before),
            saved_by: before.and_then(|b| b.saved_by.clone()),
        }
    }

    fn equals(&self, record: &EntityRecord) -> bool {
        self.yaml == record.yaml
            && self.name == record.name
            && self.description == record.description
            && self.tags == record.tags
            && self.entity_type == record.entity_type
            && self.kept.clone().git(Some(record)) == record.git
    }
}

/// What the author of an entity should look at: also what a run would be refused for, as Harness keeps drafts that
/// cannot run yet.
fn warnings_of(parsed: &Parsed, scope: &Scope) -> Vec<Diagnostic> {
    let nothing = slipway_plan::Snapshot::default();
    let of_runs = written::faults(parsed, scope, &nothing, &STEP_TYPES);
    let own = parsed.warnings.iter().cloned();
    own.chain(of_runs.into_iter().map(Diagnostic::warning))
        .collect()
}

/// An organization's own YAML may name itself; the scope that it lives in has none.
fn org_of(scope: &Scope, kind: Kind) -> Option<Option<&str>> {
    match kind {
        Kind::Organization => None,
        _ => Some(scope.org.as_ref().map(|o| o.as_str())),
    }
}

fn project_of(scope: &Scope) -> Option<Option<&str>> {
    Some(scope.project.as_ref().map(|p| p.as_str()))
}

fn agree(field: &str, in_yaml: Option<&str>, in_scope: Option<Option<&str>>) -> ApiResult<()> {
    let (Some(yaml), Some(given)) = (in_yaml, in_scope) else {
        return Ok(());
    };
    if given == Some(yaml) {
        return Ok(());
    }
    let given = given.map_or_else(|| "names none".to_owned(), |id| format!("names `{id}`"));
    Err(ApiError::field(
        field,
        format!("the YAML says `{yaml}`, the request {given}"),
    ))
}

/// The entity, or 404.
pub(crate) async fn get(deps: &Deps, place: &Place) -> ApiResult<EntityRecord> {
    find(deps, place).await?.ok_or_else(|| place.not_found())
}

/// The entity, if it is there.
pub(crate) async fn find(deps: &Deps, place: &Place) -> ApiResult<Option<EntityRecord>> {
    let Place {
        scope,
        kind,
        parent,
        id,
    } = place;
    Ok(deps
        .store
        .find_entity(scope, kind.key(), parent.as_ref(), id)
        .await?)
}

/// Stores a new entity; 400 `DUPLICATE_FIELD` when it is there already.
pub(crate) async fn create(deps: &Deps, caller: &Caller, mut draft: Draft) -> ApiResult<Saved> {
    check_parents(deps, &draft.place).await?;
    check_links(deps, &mut draft).await?;
    let (place, warnings) = (draft.place.clone(), std::mem::take(&mut draft.warnings));
    let mut record = draft.record(None, deps.clock.now_ms());
    record.saved_by = owner(caller, &place);
    tell(deps, caller, None, &record).await;
    if place.kind == Kind::Trigger {
        listen::before_saving(&deps.runs, &record).await?;
    }
    match deps.store.put_entity(&record, None).await {
        Ok(record) => {
            register(deps, &record).await;
            audit(caller, "created", &place);
            Ok(Saved {
                record,
                change: Change::Created,
                warnings,
            })
        }
        Err(StoreError::AlreadyExists { .. }) => Err(duplicate(&place)),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn duplicate(place: &Place) -> ApiError {
    let noun = noun(place.kind);
    let scope = scope::describe(&place.scope);
    let message = format!(
        "{noun} with identifier [{}] in {scope} already exists",
        place.id
    );
    ApiError::new(ErrorName::AlreadyExists, message)
}

/// What a draft is refused for before anything is written anywhere.
pub(crate) async fn check_new(deps: &Deps, draft: &Draft) -> ApiResult<()> {
    check_parents(deps, &draft.place).await?;
    check_links(deps, &mut draft.clone()).await
}

/// Stores a new version of an entity that is there.
pub(crate) async fn update(deps: &Deps, caller: &Caller, draft: Draft) -> ApiResult<Saved> {
    let before = get(deps, &draft.place).await?;
    replace(deps, caller, draft, before).await
}

/// Creates or updates.
pub(crate) async fn upsert(deps: &Deps, caller: &Caller, draft: Draft) -> ApiResult<Saved> {
    match find(deps, &draft.place).await? {
        Some(before) => replace(deps, caller, draft, before).await,
        None => create(deps, caller, draft).await,
    }
}

async fn replace(
    deps: &Deps,
    caller: &Caller,
    mut draft: Draft,
    before: EntityRecord,
) -> ApiResult<Saved> {
    check_links(deps, &mut draft).await?;
    let warnings = std::mem::take(&mut draft.warnings);
    if before.git.is_some() && draft.kept == Kept::AsBefore {
        let message = format!(
            "{} [{}] is kept in Git: save it with `slipway apply`, or commit there",
            noun(draft.place.kind),
            before.id
        );
        return Err(ApiError::invalid(message));
    }
    let place = draft.place.clone();
    let owner = owner(caller, &place);
    // The same trigger, saved by somebody else, is theirs from then on.
    if draft.equals(&before) && before.saved_by == owner {
        register_again(deps, &before).await?;
        return Ok(Saved {
            record: before,
            change: Change::Unchanged,
            warnings,
        });
    }
    let mut record = draft.record(Some(&before), deps.clock.now_ms());
    record.saved_by = owner;
    tell(deps, caller, Some(&before), &record).await;
    if place.kind == Kind::Trigger {
        listen::before_saving(&deps.runs, &record).await?;
    }
    let record = deps.store.put_entity(&record, Some(before.version)).await?;
    if place.kind == Kind::Trigger {
        listen::after_saving(&deps.runs, &before, Some(&record)).await?;
    }
    register(deps, &record).await;
    audit(caller, "updated", &place);
    Ok(Saved {
        record,
        change: Change::Updated,
        warnings,
    })
}

/// In whose name an entity that is saved now acts; only triggers do anything by themselves.
fn owner(caller: &Caller, place: &Place) -> Option<PrincipalId> {
    (place.kind == Kind::Trigger).then(|| caller.principal.clone())
}

/// Has the webhook of a trigger that was saved registered at its provider, without waiting for it.
async fn register(deps: &Deps, record: &EntityRecord) {
    if record.kind != Kind::Trigger.key() {
        return;
    }
    let trigger = listen::read_trigger(record);
    if trigger.is_ok_and(|trigger| hook::wanted(&trigger).is_some())
        && let Some(intake) = &deps.intake
    {
        intake.register(&listen::place_of(record)).await;
    }
}

/// The same for one that was saved as it was: who mended its connector saves it once more.
async fn register_again(deps: &Deps, record: &EntityRecord) -> ApiResult<()> {
    if record.kind == Kind::Trigger.key()
        && let Ok(trigger) = listen::read_trigger(record)
    {
        hook::before_saving(&deps.runs, &trigger, &listen::place_of(record)).await?;
        register(deps, record).await;
    }
    Ok(())
}

/// Tells those who want to know of what is about to be saved: freezes have notification rules.
async fn tell(deps: &Deps, caller: &Caller, before: Option<&EntityRecord>, record: &EntityRecord) {
    if record.kind == Kind::Freeze.key() {
        let who = &caller.principal;
        deps.runs.tell_saved(before, record, who).await;
    }
}

/// Looks at what a draft gives to the templates that it links to: what does not fit is refused, what is missing
/// is told.
async fn check_links(deps: &Deps, draft: &mut Draft) -> ApiResult<()> {
    if !draft.yaml.contains("templateRef") {
        return Ok(());
    }
    let Some(parsed) = flat::parsed(draft.place.kind, &draft.yaml) else {
        return Ok(());
    };
    let found = form::links(&deps.runs, &draft.place.scope, &parsed).await?;
    if found.iter().any(|one| one.severity == Severity::Error) {
        return Err(ApiError::diagnostics(ErrorName::InvalidRequest, &found));
    }
    draft.warnings.extend(found);
    Ok(())
}

/// Deletes an entity; 404 when it is not there.
pub(crate) async fn delete(deps: &Deps, caller: &Caller, place: &Place) -> ApiResult<()> {
    let before = get(deps, place).await?;
    let Place {
        scope,
        kind,
        parent,
        id,
    } = place;
    deps.store
        .delete_entity(scope, kind.key(), parent.as_ref(), id, Some(before.version))
        .await?;
    if *kind == Kind::Trigger {
        listen::after_saving(&deps.runs, &before, None).await?;
    }
    audit(caller, "deleted", place);
    Ok(())
}

async fn check_parents(deps: &Deps, place: &Place) -> ApiResult<()> {
    scope::check_exists(deps, &place.scope).await?;
    let Some(owner) = &place.parent else {
        return Ok(());
    };
    match place.kind {
        Kind::Infrastructure | Kind::Overrides => {
            check_referred(deps, &place.scope, Kind::Environment, owner).await
        }
        Kind::ServiceOverrides => {
            check_referred(deps, &place.scope, Kind::Environment, owner).await?;
            check_referred(deps, &place.scope, Kind::Service, &place.id).await
        }
        Kind::InputSet | Kind::Trigger => {
            check_referred(deps, &place.scope, Kind::Pipeline, owner).await
        }
        _ => Ok(()),
    }
}

/// 404 when what a reference names is not there.
async fn check_referred(
    deps: &Deps,
    from: &Scope,
    kind: Kind,
    reference: &EntityId,
) -> ApiResult<()> {
    let (scope, id) = from.resolve(reference.as_str());
    let place = Place {
        scope,
        kind,
        parent: None,
        id,
    };
    get(deps, &place).await.map(drop)
}

/// One line for each change: who, what, where.
fn audit(caller: &Caller, action: &str, place: &Place) {
    tracing::info!(
        target: "slipway::audit",
        principal = %caller.principal,
        token.id = %caller.token.id,
        account = %caller.account,
        scope = %scope::describe(&place.scope),
        kind = place.kind.key(),
        identifier = %place.id,
        action,
        "{} {} `{}`", caller.principal, action, place.id
    );
}

/// What a list leaves out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Part of the name or identifier, in any case.
    pub(crate) search: Option<String>,
    /// Only these identifiers, unless empty.
    pub(crate) identifiers: Vec<String>,
    /// Only these types, unless empty.
    pub(crate) types: Vec<String>,
}

impl Filter {
    fn keeps(&self, record: &EntityRecord) -> bool {
        let id = record.id.as_str();
        let found = self.search.as_ref().is_none_or(|text| {
            let text = text.to_lowercase();
            id.to_lowercase().contains(&text) || record.name.to_lowercase().contains(&text)
        });
        let listed =
            |list: &[String], value: &str| list.is_empty() || list.iter().any(|v| v == value);
        found
            && listed(&self.identifiers, id)
            && listed(
                &self.types,
                record.entity_type.as_deref().unwrap_or_default(),
            )
    }
}

/// The entities of a page, and how many there are in all.
pub(crate) async fn list(
    deps: &Deps,
    scope: &Scope,
    kind: Kind,
    parent: Option<&EntityId>,
    filter: &Filter,
    page: Page,
) -> ApiResult<(Vec<EntityRecord>, usize)> {
    let mut after = None;
    let (mut kept, mut total, mut seen) = (Vec::new(), 0, 0);
    loop {
        let part = StorePage {
            limit: STORE_PAGE,
            after,
        };
        let listing = deps
            .store
            .list_entities(scope, kind.key(), parent, part)
            .await?;
        seen += listing.items.len();
        for record in listing
            .items
            .into_iter()
            .filter(|record| filter.keeps(record))
        {
            if total >= page.start() && kept.len() < page.size {
                kept.push(record);
            }
            total += 1;
        }
        after = listing.next;
        if after.is_none() || seen >= MOST_LISTED {
            return Ok((kept, total));
        }
    }
}
