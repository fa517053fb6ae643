//! Templates: versions below a template, one of which is the stable one.
//!
//! Each version is an entity of its own. Beside them the template itself is a record whose text is the label
//! of its stable version: that is what lists show and what a reference without a version means. It is
//! written after the version that it names.

mod ng;
mod v1;

use std::collections::BTreeMap;

use axum::Router;
use slipway_model::entity::Kind;
use slipway_model::id::{EntityId, Scope};
use slipway_model::inputs;
use slipway_store::StoreError;
use slipway_store::record::EntityRecord;

use crate::auth::Caller;
use crate::entity::{self, Draft, Filter, Place, Saved};
use crate::error::{ApiError, ApiResult};
use crate::git::{Wanted, entity as in_git};
use crate::page::Page;
use crate::{Deps, flat};

pub(crate) fn routes() -> Router<Deps> {
    Router::new().merge(ng::routes()).merge(v1::routes())
}

/// Versions of a template at most: a sign of something else.
const MOST_VERSIONS: usize = 1_000;

/// Times that a change of the stable version is tried against others who change it.
const TRIES: usize = 5;

/// A version, and whether it is the stable one.
struct Version {
    record: EntityRecord,
    stable: bool,
}

impl Version {
    /// The identifier of the template.
    fn template(&self) -> &str {
        let parent = self.record.parent.as_ref();
        parent.map_or_else(|| self.record.id.as_str(), |id| id.as_str())
    }

    fn scope_name(&self) -> &'static str {
        let scope = &self.record.scope;
        match (&scope.org, &scope.project) {
            (Some(_), Some(_)) => "project",
            (Some(_), None) => "org",
            _ => "account",
        }
    }

    /// The type of a step or stage that a template is of.
    fn child_type(&self) -> Option<String> {
        let parsed = flat::parsed(Kind::Template, &self.record.yaml)?;
        let spec = parsed.body().get("spec")?;
        spec.get_text("type").map(str::to_owned)
    }

    /// What the template asks those for who use it.
    fn inputs(&self) -> Option<String> {
        let parsed = flat::parsed(Kind::Template, &self.record.yaml)?;
        let asked = inputs::template(&parsed.tree)?;
        Some(slipway_model::emit::to_yaml(&asked))
    }
}

/// The place of a template's record.
fn head_place(scope: Scope, id: &str) -> ApiResult<Place> {
    Place::of(scope, Kind::Template, id)
}

/// The place of a version.
fn version_place(scope: Scope, id: &str, label: &str) -> ApiResult<Place> {
    Ok(Place {
        parent: Some(crate::identifier::entity(id)?),
        id: crate::place::version(label)?,
        ..head_place(scope, id)?
    })
}

/// The label of the stable version; 404 when there is no such template.
async fn stable_label(deps: &Deps, scope: &Scope, id: &str) -> ApiResult<String> {
    let head = entity::get(deps, &head_place(scope.clone(), id)?).await?;
    Ok(head.yaml.trim().to_owned())
}

/// A version; without a label the stable one.
async fn find(deps: &Deps, scope: Scope, id: &str, label: Option<&str>) -> ApiResult<Version> {
    let stable = stable_label(deps, &scope, id).await?;
    let label = label.unwrap_or(&stable);
    let record = entity::get(deps, &version_place(scope, id, label)?).await?;
    let stable = stable == label;
    Ok(Version { record, stable })
}

/// Every version of a template, in order of their labels.
async fn versions(deps: &Deps, scope: &Scope, id: &EntityId) -> ApiResult<Vec<EntityRecord>> {
    let all = Page {
        index: 0,
        size: MOST_VERSIONS,
    };
    let everything = Filter::default();
    let found = entity::list(deps, scope, Kind::Template, Some(id), &everything, all).await?;
    Ok(found.0)
}

/// How a version is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It must be new; `stable` also makes it the stable one. The first one of a template always is.
    Create {
        stable: bool,
    },
    Update {
        stable: bool,
    },
}

async fn store(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    how: How,
    git: &Wanted,
) -> ApiResult<(Saved, bool)> {
    check_kind(deps, &draft).await?;
    let saved = match how {
        How::Create { .. } => in_git::create(deps, caller, draft, git).await?,
        How::Update { .. } => in_git::update(deps, caller, draft, git).await?,
    };
    let (How::Create { stable: wanted } | How::Update { stable: wanted }) = how;
    let stable = point(deps, &saved.record, wanted).await?;
    Ok((saved, stable))
}

/// Takes a version over that is in Git already: of the template and, where one is named, with the label that the request
/// says. `file` is what the request calls the file.
async fn take(
    deps: &Deps,
    caller: &Caller,
    scope: Scope,
    (wanted, file): (&Wanted, &str),
    (id, label): (&str, Option<&str>),
) -> ApiResult<Version> {
    let draft = |yaml: String| {
        let draft = Draft::of_yaml(scope.clone(), Kind::Template, yaml)?;
        let own = draft.place.id.clone();
        v1::check_same(&draft, id, label.unwrap_or(own.as_str()))?;
        Ok(draft)
    };
    let draft = in_git::import(deps, (wanted, &scope), wanted.file(file)?, draft).await?;
    check_kind(deps, &draft).await?;
    let record = entity::create(deps, caller, draft).await?.record;
    let stable = point(deps, &record, false).await?;
    Ok(Version { record, stable })
}

/// `apply` of a `template:` document: a version is created or updated; `stableTemplate: true` in it makes it
/// the stable one.
pub(crate) async fn apply(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    git: &Wanted,
) -> ApiResult<Saved> {
    check_kind(deps, &draft).await?;
    let wanted = flat::parsed(Kind::Template, &draft.yaml)
        .is_some_and(|parsed| parsed.body().get_text("stableTemplate") == Some("true"));
    let saved = in_git::upsert(deps, caller, draft, git).await?;
    point(deps, &saved.record, wanted).await?;
    Ok(saved)
}

/// All versions of a template are of one type.
async fn check_kind(deps: &Deps, draft: &Draft) -> ApiResult<()> {
    let Some(id) = &draft.place.parent else {
        return Ok(());
    };
    let head = head_place(draft.place.scope.clone(), id.as_str())?;
    let Some(head) = entity::find(deps, &head).await? else {
        return Ok(());
    };
    if head.entity_type == draft.entity_type {
        return Ok(());
    }
    let message = format!(
        "the template [{id}] is of type {}: its versions cannot be of another",
        head.entity_type.as_deref().unwrap_or("(none)")
    );
    Err(ApiError::field("type", message))
}

/// Brings the template's record in line with a version of it that was stored: it is made when there is none,
/// and follows the stable version. Answers whether the version is the stable one.
async fn point(deps: &Deps, version: &EntityRecord, wanted: bool) -> ApiResult<bool> {
    let template = version.parent.as_ref().unwrap_or(&version.id);
    let place = head_place(version.scope.clone(), template.as_str())?;
    for _ in 0..TRIES {
        let before = entity::find(deps, &place).await?;
        let label = version.id.as_str();
        let stable = before
            .as_ref()
            .is_none_or(|before| wanted || before.yaml.trim() == label);
        if !stable {
            return Ok(false);
        }
        let record = EntityRecord {
            parent: None,
            id: template.clone(),
            yaml: label.to_owned(),
            git: None,
            version: before.as_ref().map_or(0, |b| b.version),
            created_ms: before.as_ref().map_or(version.created_ms, |b| b.created_ms),
            ..version.clone()
        };
        let same = before.as_ref().is_some_and(|before| {
            EntityRecord {
                updated_ms: record.updated_ms,
                ..before.clone()
            } == record
        });
        if same {
            return Ok(true);
        }
        let expected = before.as_ref().map(|b| b.version);
        match deps.store.put_entity(&record, expected).await {
            Ok(_) => return Ok(true),
            // Somebody else changed it between reading and writing.
            Err(StoreError::Conflict { .. } | StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::Conflict {
        what: format!("the stable version of template {template}"),
    }
    .into())
}

/// Makes a version the stable one.
async fn make_stable(deps: &Deps, scope: Scope, id: &str, label: &str) -> ApiResult<Version> {
    let mut version = find(deps, scope, id, Some(label)).await?;
    version.stable = point(deps, &version.record, true).await?;
    Ok(version)
}

/// Deletes a version. The stable one goes only when it is the last: otherwise nobody would know what a
/// reference without a version means.
async fn remove_version(
    deps: &Deps,
    caller: &Caller,
    scope: Scope,
    id: &str,
    label: &str,
) -> ApiResult<()> {
    let place = version_place(scope.clone(), id, label)?;
    let stable = stable_label(deps, &scope, id).await?;
    let template = EntityId::new(id);
    let others = versions(deps, &scope, &template).await?;
    let last = others.iter().all(|other| other.id == place.id);
    if stable == label && !last {
        let message = format!(
            "Version [{label}] of template [{id}] is its stable version: make another one the stable version first"
        );
        return Err(ApiError::invalid(message));
    }
    entity::delete(deps, caller, &place).await?;
    if last {
        entity::delete(deps, caller, &head_place(scope, id)?).await?;
    }
    Ok(())
}

/// Deletes a template with all its versions; what is stable goes last.
async fn remove_all(deps: &Deps, caller: &Caller, scope: Scope, id: &str) -> ApiResult<()> {
    let head = head_place(scope.clone(), id)?;
    entity::get(deps, &head).await?;
    for version in versions(deps, &scope, &head.id).await? {
        let place = version_place(scope.clone(), id, version.id.as_str())?;
        entity::delete(deps, caller, &place).await?;
    }
    entity::delete(deps, caller, &head).await
}

/// Which versions a list shows of each template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Stable,
    LastUpdated,
    All,
}

/// The templates of a scope that a filter keeps, in order of identifier and label.
async fn list(
    deps: &Deps,
    scope: &Scope,
    filter: &Filter,
    shown: Shown,
    page: Page,
) -> ApiResult<(Vec<Version>, usize)> {
    let all = Page {
        index: 0,
        size: usize::from(u16::MAX),
    };
    if shown == Shown::Stable {
        // The records of templates say which version is meant: only those of the page are read.
        let (heads, total) = entity::list(deps, scope, Kind::Template, None, filter, page).await?;
        let mut found = Vec::with_capacity(heads.len());
        for head in heads {
            let place = version_place(scope.clone(), head.id.as_str(), head.yaml.trim())?;
            if let Some(record) = entity::find(deps, &place).await? {
                let stable = true;
                found.push(Version { record, stable });
            }
        }
        return Ok((found, total));
    }
    let (heads, _) = entity::list(deps, scope, Kind::Template, None, filter, all).await?;
    let mut found = BTreeMap::new();
    for head in heads {
        let mut of_template = versions(deps, scope, &head.id).await?;
        if shown == Shown::LastUpdated {
            of_template.sort_by_key(|version| std::cmp::Reverse(version.updated_ms));
            of_template.truncate(1);
        }
        for record in of_template {
            let stable = head.yaml.trim() == record.id.as_str();
            let key = (head.id.to_string(), record.id.to_string());
            found.insert(key, Version { record, stable });
        }
    }
    let total = found.len();
    Ok((page.cut(found.into_values().collect()), total))
}
