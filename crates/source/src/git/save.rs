//! Writes a change of one file as a commit onto a branch.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};
use slipway_engine::remote::{GitChange, GitFault, GitSaved};
use slipway_plan::GitVersion;
use slipway_steps::secrets::Secrets;

use super::address::address;
use super::commit::full_name;
use super::draft::{draft, signature};
use super::known::Known;
use super::push::{Push, Refused, push};
use super::remote::{Remote, Way, repository};
use super::{Allowed, Place, Stopper, because, local, place};

/// How often a commit is made anew where the branch has moved and the file has not changed.
const ATTEMPTS: usize = 4;

/// Longest message of a commit, in bytes.
const LONGEST_MESSAGE: usize = 64 << 10;

/// Makes the commit.
///
/// # Errors
/// Why it was not made; nothing is overwritten.
pub(crate) async fn save(
    change: &GitChange,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<GitSaved, GitFault> {
    let connector = &change.connector;
    let of = |why: String| {
        let message = format!(
            "the connector {} cannot be used: {why}",
            connector.reference
        );
        GitFault::Failed(message)
    };
    if change.message.len() > LONGEST_MESSAGE || change.message.contains('\0') {
        return Err(GitFault::Failed(
            "the message of the commit is too long, or has a NUL".to_owned(),
        ));
    }
    let repository = change.repository.as_deref();
    let address = address(connector, repository, allowed.local_files).map_err(of)?;
    let place = place(connector, address, &change.scope, allowed, secrets).await;
    let place = place.map_err(of)?;
    let stop = Arc::new(AtomicBool::new(false));
    // Dropped with this call, also when its caller gives up: the thread then ends by itself.
    let _stopper = Stopper(Arc::clone(&stop));
    let (limit, seconds) = (allowed.limit, allowed.clock.now().as_second());
    let change = change.clone();
    let thread = tokio::task::spawn_blocking(move || match place {
        Place::Local(folder) => into_folder(&folder, &change, seconds),
        Place::Remote(way) => to_host(way, limit, &change, seconds, &stop),
    });
    let saved = thread.await;
    saved.unwrap_or_else(|why| Err(GitFault::Failed(format!("writing it broke: {why}"))))
}

/// The branch that the commit goes to, and the version that it is made on.
fn branches(change: &GitChange) -> Result<(Option<String>, GitVersion), String> {
    let named = |name: &String| GitVersion::Branch(name.clone());
    let version = match change.fresh {
        true => change.base.as_ref(),
        false => change.branch.as_ref(),
    };
    let full = change.branch.as_ref().map(named);
    let full = full
        .map(|version| full_name(&version))
        .transpose()?
        .flatten();
    Ok((full, version.map_or(GitVersion::Default, named)))
}

fn given_up(place: &str) -> GitFault {
    GitFault::Conflict(format!(
        "{place} moves faster than commits can be made on it: try again"
    ))
}

fn to_host(
    way: Way,
    limit: Duration,
    change: &GitChange,
    seconds: i64,
    stop: &Arc<AtomicBool>,
) -> Result<GitSaved, GitFault> {
    let (wanted, version) = branches(change).map_err(GitFault::Failed)?;
    let shown = format!("the repository {way}");
    let remote = Remote {
        way,
        version: &version,
        known: &Known::default(),
        limit,
    };
    for _ in 0..ATTEMPTS {
        let folder = tempfile::tempdir();
        let folder = folder
            .map_err(|why| GitFault::Failed(format!("cannot make a temporary folder: {why}")))?;
        let copy = repository(&folder.path().join("copy")).map_err(GitFault::Failed)?;
        let (head, default) = remote
            .fetch(&copy, &shown, stop, &|_| false)
            .map_err(GitFault::Failed)?;
        let full = match (&wanted, default) {
            (Some(full), _) => full.clone(),
            (None, Some(name)) => format!("refs/heads/{name}"),
            (None, None) => {
                return Err(GitFault::Failed(format!(
                    "{shown} has no default branch: name one"
                )));
            }
        };
        let made = draft(&copy, head, change, (&shown, seconds))?;
        let saved = GitSaved {
            commit: made.commit.to_string(),
            branch: full.trim_start_matches("refs/heads/").to_owned(),
        };
        let fresh = change.fresh;
        if made.objects.is_empty() && !fresh {
            return Ok(saved);
        }
        let asked = Push {
            full: &full,
            old: (!fresh).then_some(head),
            new: made.commit,
            objects: &made.objects,
        };
        match push(&remote.way, limit, &copy, &asked, stop) {
            Ok(()) => return Ok(saved),
            Err(Refused::Moved) if fresh => return Err(exists(&saved.branch, &shown)),
            // Whether the change still fits is looked at again.
            Err(Refused::Moved) => {}
            Err(Refused::Because(why)) => {
                return Err(GitFault::Failed(format!("cannot push to {shown}: {why}")));
            }
        }
    }
    Err(given_up(&shown))
}

fn exists(branch: &str, place: &str) -> GitFault {
    GitFault::Conflict(format!(
        "there is a branch {branch} already in {place}: save to it, or choose another name"
    ))
}

fn into_folder(folder: &Path, change: &GitChange, seconds: i64) -> Result<GitSaved, GitFault> {
    let (wanted, version) = branches(change).map_err(GitFault::Failed)?;
    let shown = format!("the repository {}", folder.display());
    let Some(repository) = local::open(folder).map_err(GitFault::Failed)? else {
        let message = format!(
            "the folder {} is no repository: run `git init` in it, or save there by hand",
            folder.display()
        );
        return Err(GitFault::Failed(message));
    };
    for _ in 0..ATTEMPTS {
        let (head, default) =
            local::head(&repository, &version, &shown).map_err(GitFault::Failed)?;
        let full = match (&wanted, &default) {
            (Some(full), _) => full.clone(),
            (None, Some(name)) => format!("refs/heads/{name}"),
            (None, None) => {
                return Err(GitFault::Failed(format!(
                    "{shown} has no default branch: name one"
                )));
            }
        };
        let branch = full.trim_start_matches("refs/heads/").to_owned();
        let checked_out = repository.workdir().is_some() && default.as_ref() == Some(&branch);
        if checked_out {
            let message = format!(
                "{branch} is checked out in {shown}, whose files would fall behind: save to another branch, or use a bare repository"
            );
            return Err(GitFault::Failed(message));
        }
        let fresh = change.fresh;
        let there = repository.try_find_reference(full.as_str());
        if fresh && there.is_ok_and(|found| found.is_some()) {
            return Err(exists(&branch, &shown));
        }
        let made = draft(&repository, head, change, (&shown, seconds))?;
        let saved = GitSaved {
            commit: made.commit.to_string(),
            branch,
        };
        if made.objects.is_empty() && !fresh {
            return Ok(saved);
        }
        let name = FullName::try_from(full.as_str());
        let name = name
            .map_err(|why| GitFault::Failed(format!("`{full}` is no name of a branch: {why}")))?;
        let edit = RefEdit {
            change: Change::Update {
                log: LogChange {
                    mode: RefLog::AndReference,
                    force_create_reflog: false,
                    message: "slipway: save".into(),
                },
                expected: match fresh {
                    true => PreviousValue::MustNotExist,
                    false => PreviousValue::MustExistAndMatch(Target::Object(head)),
                },
                new: Target::Object(made.commit),
            },
            name,
            deref: false,
        };
        let (who, mut time) = (
            signature(change, seconds),
            gix::date::parse::TimeBuf::default(),
        );
        match repository.edit_references_as(Some(edit), Some(who.to_ref(&mut time))) {
            Ok(_) => return Ok(saved),
            Err(_)
                if fresh
                    && repository
                        .try_find_reference(full.as_str())
                        .is_ok_and(|found| found.is_some()) =>
            {
                return Err(exists(&saved.branch, &shown));
            }
            Err(why) => {
                let moved = repository.find_reference(full.as_str()).ok();
                let moved =
                    moved.and_then(|mut found| found.peel_to_id().ok().map(|id| id.detach()));
                if moved == Some(head) || fresh {
                    let message = format!("cannot write to {shown}: {}", because(&why));
                    return Err(GitFault::Failed(message));
                }
            }
        }
    }
    Err(given_up(&shown))
}
