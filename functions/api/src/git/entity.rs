//! Reads and saves entities that are kept in Git. The commit comes first and the record after it: whoever is interrupted
//! between the two says the same again, and the commit that is there already is taken.

use serde_json::Value;
use slipway_engine::error::RunError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::remote::{self, GitChange, GitFault, Seen};
use slipway_model::entity::Kind;
use slipway_store::record::{EntityRecord, GitPlace};

use super::{Wanted, shown};
use crate::Deps;
use crate::auth::Caller;
use crate::entity::{self, Change, Draft, Kept, Saved, noun};
use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// An entity as Git has it.
pub(crate) struct Shown {
    /// Its record, with the YAML and the place that were read.
    pub(crate) record: EntityRecord,
    /// What is wrong with the YAML; the record then has it as it is, and everything else of what was read before.
    pub(crate) fault: Option<String>,
}

impl Shown {
    /// It as it was read or saved last.
    pub(crate) fn kept(record: &EntityRecord) -> Self {
        Self {
            record: record.clone(),
            fault: None,
        }
    }
}

/// An entity as it is, at a branch where it is kept in Git.
pub(crate) async fn current(
    deps: &Deps,
    record: &EntityRecord,
    branch: Option<&str>,
) -> ApiResult<EntityRecord> {
    Ok(remote::read(&deps.runs, &*deps.sources, record, branch).await?)
}

/// As [`current`], for people who may have to mend it: YAML that cannot be read is shown with what is wrong. `fallback` is
/// whether the entity's own branch will do where the one that is asked for cannot be read.
pub(crate) async fn show(
    deps: &Deps,
    record: &EntityRecord,
    branch: Option<&str>,
    fallback: bool,
) -> ApiResult<Shown> {
    let Some(place) = &record.git else {
        return Ok(Shown::kept(record));
    };
    let read = |branch| remote::file(&deps.runs, &*deps.sources, &record.scope, place, branch);
    let file = match read(branch).await {
        Err(RunError::Refused { .. }) if fallback && branch.is_some() => read(None).await?,
        file => file?,
    };
    match remote::of_file(record, file.clone()) {
        Ok(record) => Ok(Shown {
            record,
            fault: None,
        }),
        Err(error @ (RunError::Faulty { .. } | RunError::Refused { .. })) => Ok(Shown {
            record: EntityRecord {
                yaml: file.text,
                git: Some(file.place),
                ..record.clone()
            },
            fault: Some(error.to_string()),
        }),
        Err(error) => Err(error.into()),
    }
}

/// As [`show`], at the branch that a request names, or as it was read last where that is what it wants.
pub(crate) async fn shown(deps: &Deps, query: &Query, before: &EntityRecord) -> ApiResult<Shown> {
    let says = |field: &str| Ok::<_, ApiError>(query.one(field)? == Some("true"));
    if says("loadFromCache")? {
        return Ok(Shown::kept(before));
    }
    let (branch, fallback) = (super::branch(query)?, says("loadFromFallbackBranch")?);
    show(deps, before, branch.as_deref(), fallback).await
}

/// As [`show`], for a v1 request, with its `git_details`.
pub(crate) async fn show_in_v1(
    deps: &Deps,
    query: &Query,
    before: &EntityRecord,
) -> ApiResult<(Shown, Value)> {
    let branch = super::branch(query)?;
    let fallback = query.one("load_from_fallback_branch")? == Some("true");
    let found = show(deps, before, branch.as_deref(), fallback).await?;
    let git = found.record.git.as_ref();
    let details = git.map(|git| shown::with_drift(before, git));
    let details = shown::in_v1(&details.unwrap_or_default(), &found.record);
    Ok((found, details))
}

/// Stores a new entity: in Git where the request says so.
pub(crate) async fn create(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    wanted: &Wanted,
) -> ApiResult<Saved> {
    if !wanted.remote {
        if let Some(branch) = &wanted.branch {
            let message = format!(
                "`{branch}`: what is kept here has no branches: say storeType=REMOTE, or leave the branch out"
            );
            return Err(ApiError::field("branch", message));
        }
        return entity::create(deps, caller, draft).await;
    }
    let place = place(wanted, &draft)?;
    entity::check_new(deps, &draft).await?;
    if entity::find(deps, &draft.place).await?.is_some() {
        return Err(entity::duplicate(&draft.place));
    }
    let write = Write {
        scope: draft.place.scope.clone(),
        path: place.path.clone(),
        content: draft.yaml.clone(),
        seen: Seen::Nothing,
        base: base(wanted, None),
        message: message(wanted, "Add", &draft),
    };
    let place = commit(deps, caller, wanted, place, write).await?;
    let draft = Draft {
        kept: Kept::InGit(place),
        ..draft
    };
    entity::create(deps, caller, draft).await
}

/// Stores a new version of an entity that is there: in Git where it is kept there.
pub(crate) async fn update(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    wanted: &Wanted,
) -> ApiResult<Saved> {
    let before = entity::get(deps, &draft.place).await?;
    let Some(known) = before.git.clone() else {
        if wanted.remote || wanted.branch.is_some() {
            let noun = noun(draft.place.kind);
            let message = format!(
                "{noun} [{}] is kept here, and not in Git: move it first (`move-config`)",
                before.id
            );
            return Err(ApiError::invalid(message));
        }
        return entity::update(deps, caller, draft).await;
    };
    entity::check_new(deps, &draft).await?;
    let branch = wanted.branch.clone().or_else(|| known.branch.clone());
    let own = branch == known.branch && !wanted.fresh;
    let seen = seen(wanted, &known, own)?;
    let target = GitPlace {
        branch,
        ..known.clone()
    };
    let write = Write {
        scope: before.scope.clone(),
        path: known.path.clone(),
        content: draft.yaml.clone(),
        seen,
        base: base(wanted, known.branch.as_deref()),
        message: message(wanted, "Change", &draft),
    };
    let place = commit(deps, caller, wanted, target, write).await?;
    if own {
        let draft = Draft {
            kept: Kept::InGit(place),
            ..draft
        };
        return entity::update(deps, caller, draft).await;
    }
    // What is on another branch is no part of what is kept of the entity's own.
    let record = EntityRecord {
        yaml: draft.yaml,
        git: Some(place),
        ..before
    };
    Ok(Saved {
        record,
        change: Change::Updated,
        warnings: draft.warnings,
    })
}

/// Creates or updates.
pub(crate) async fn upsert(
    deps: &Deps,
    caller: &Caller,
    draft: Draft,
    wanted: &Wanted,
) -> ApiResult<Saved> {
    match entity::find(deps, &draft.place).await? {
        Some(_) => update(deps, caller, draft, wanted).await,
        None => create(deps, caller, draft, wanted).await,
    }
}

/// A draft of an entity that is in Git already, to be taken over from there.
pub(crate) async fn import(
    deps: &Deps,
    (wanted, scope): (&Wanted, &slipway_model::id::Scope),
    path: &str,
    draft: impl FnOnce(String) -> ApiResult<Draft>,
) -> ApiResult<Draft> {
    let connector = connector(wanted)?;
    let place = GitPlace {
        connector,
        repository: wanted.repository.clone(),
        path: path.to_owned(),
        branch: wanted.branch.clone(),
        commit: None,
        object: None,
    };
    let file = remote::file(&deps.runs, &*deps.sources, scope, &place, None).await?;
    Ok(Draft {
        kept: Kept::InGit(file.place),
        ..draft(file.text)?
    })
}

/// Moves an entity into Git, or out of it.
pub(crate) async fn move_config(
    deps: &Deps,
    caller: &Caller,
    record: EntityRecord,
    draft: Draft,
    (wanted, into): (&Wanted, bool),
) -> ApiResult<Saved> {
    let kept = match (into, &record.git) {
        (true, None) => {
            let place = place(wanted, &draft)?;
            let write = Write {
                scope: record.scope.clone(),
                path: place.path.clone(),
                content: draft.yaml.clone(),
                seen: Seen::Nothing,
                base: base(wanted, None),
                message: message(wanted, "Add", &draft),
            };
            Kept::InGit(commit(deps, caller, wanted, place, write).await?)
        }
        (false, Some(_)) => Kept::Here,
        (true, Some(_)) => {
            return Err(ApiError::invalid(format!(
                "{} is kept in Git already",
                record.id
            )));
        }
        (false, None) => {
            return Err(ApiError::invalid(format!(
                "{} is not kept in Git",
                record.id
            )));
        }
    };
    entity::update(deps, caller, Draft { kept, ..draft }).await
}

fn connector(wanted: &Wanted) -> ApiResult<String> {
    wanted
        .connector
        .clone()
        .ok_or_else(|| ApiError::field("connectorRef", "must name the connector of the repository"))
}

/// Where a new entity is kept.
fn place(wanted: &Wanted, draft: &Draft) -> ApiResult<GitPlace> {
    let of = &draft.place;
    let owner = of.parent.as_ref().map(|owner| format!("{owner}_"));
    let name = format!("{}{}", owner.unwrap_or_default(), of.id);
    // A service may have the name of a pipeline.
    let (folder, name) = match of.kind {
        Kind::Service => ("services/", name),
        Kind::Environment => ("environments/", name),
        Kind::Infrastructure => ("infrastructures/", name),
        Kind::Overrides => ("overrides/", draft.identifier.clone()),
        _ => ("", name),
    };
    let path = format!(".harness/{folder}{name}.yaml");
    Ok(GitPlace {
        connector: connector(wanted)?,
        repository: wanted.repository.clone(),
        path: wanted.path.clone().unwrap_or(path),
        branch: wanted.branch.clone(),
        commit: None,
        object: None,
    })
}

/// What the author of a change had seen: what the request says, or on the entity's own branch what was read last.
fn seen(wanted: &Wanted, known: &GitPlace, own: bool) -> ApiResult<Seen> {
    if let Some(commit) = &wanted.resolved {
        return Ok(Seen::Commit(commit.clone()));
    }
    let (object, commit) = match (&wanted.object, own || wanted.fresh) {
        (Some(object), _) => (Some(object), &wanted.commit),
        (None, true) => (known.object.as_ref(), &known.commit),
        (None, false) => (None, &None),
    };
    let object = object.ok_or_else(|| {
        let message = "must be the `objectId` that the entity was read with: what others have changed since is not overwritten";
        ApiError::field("lastObjectId", message)
    })?;
    Ok(Seen::Object {
        object: object.clone(),
        commit: commit.clone(),
    })
}

/// The branch that a new one begins at.
fn base(wanted: &Wanted, own: Option<&str>) -> Option<String> {
    wanted.base.clone().or_else(|| own.map(str::to_owned))
}

fn message(wanted: &Wanted, verb: &str, draft: &Draft) -> String {
    let id = match draft.place.kind {
        Kind::Overrides => draft.identifier.as_str(),
        _ => draft.place.id.as_str(),
    };
    let told = format!("{verb} {} {id}", noun(draft.place.kind).to_lowercase());
    wanted.message.clone().unwrap_or(told)
}

/// What is written where.
struct Write {
    scope: slipway_model::id::Scope,
    path: String,
    content: String,
    seen: Seen,
    base: Option<String>,
    message: String,
}

/// Makes the commit; answers with where the file is now.
async fn commit(
    deps: &Deps,
    caller: &Caller,
    wanted: &Wanted,
    place: GitPlace,
    write: Write,
) -> ApiResult<GitPlace> {
    if wanted.fresh && place.branch.is_none() {
        return Err(ApiError::field("branch", "must name the new branch"));
    }
    let connector = remote::connector(&deps.runs, &write.scope, &place.connector).await?;
    let object = remote::object_id(&write.content);
    let change = GitChange {
        connector,
        scope: write.scope,
        repository: place.repository.clone(),
        branch: place.branch.clone(),
        fresh: wanted.fresh,
        base: write.base,
        path: write.path,
        content: write.content,
        message: write.message,
        author: caller.principal.clone(),
        seen: write.seen,
    };
    let saved = deps
        .sources
        .save_file(&change)
        .await
        .map_err(|fault| match fault {
            GitFault::Conflict(why) => ApiError::new(ErrorName::Conflict, why),
            GitFault::Failed(why) => {
                ApiError::invalid(format!("{} was not saved to Git: {why}", place.path))
            }
        })?;
    Ok(GitPlace {
        branch: Some(saved.branch),
        commit: Some(saved.commit),
        object: Some(object),
        ..place
    })
}
