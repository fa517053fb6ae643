//! A repository, or a plain folder, of this machine.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use gix::bstr::ByteSlice;
use slipway_plan::{Fetched, GitVersion};

use super::because;
use super::commit::{Commit, commit_id, full_name, missing};
use crate::folder::Folder;
use crate::tree::pick;

/// The repository of a folder; `None` where it has none and is read as it lies.
pub(super) fn open(folder: &Path) -> Result<Option<gix::Repository>, String> {
    let place = format!("the folder {}", folder.display());
    if !folder.is_dir() {
        return Err(format!("{place} does not exist on this machine"));
    }
    match gix::open_opts(folder, gix::open::Options::isolated()) {
        Ok(repository) => Ok(Some(repository)),
        Err(_) if !folder.join(".git").exists() && !folder.join("HEAD").exists() => Ok(None),
        Err(why) => Err(format!("{place} is a broken repository: {}", because(&why))),
    }
}

/// Reads the commit of a repository, or the files of a folder that is none as they lie. The repository's own
/// settings are not obeyed.
pub(super) fn read(
    folder: &Path,
    version: &GitVersion,
    asked: &[&[String]],
    stop: &AtomicBool,
) -> Result<Vec<Result<Fetched, String>>, String> {
    let place = format!("the folder {}", folder.display());
    full_name(version)?;
    let Some(repository) = open(folder)? else {
        let tree = Folder::new(folder);
        let files = asked.iter().map(|paths| {
            let files = pick(&tree, paths, &place, stop)?;
            Ok(Fetched {
                commit: None,
                branch: None,
                files,
            })
        });
        return Ok(files.collect());
    };
    let place = format!("the repository {}", folder.display());
    let (object, branch) = head(&repository, version, &place)?;
    let branch = branch.filter(|_| *version == GitVersion::Default);
    let commit = Commit::of(&repository, object).map_err(|why| format!("in {place} {why}"))?;
    let files = asked.iter().map(|paths| {
        let files = pick(&commit, paths, &format!("{place} at {}", commit.id), stop)?;
        Ok(Fetched {
            commit: Some(commit.id.clone()),
            branch: branch.clone(),
            files,
        })
    });
    Ok(files.collect())
}

/// What a version of a repository is, and the name of its default branch.
pub(super) fn head(
    repository: &gix::Repository,
    version: &GitVersion,
    place: &str,
) -> Result<(gix::ObjectId, Option<String>), String> {
    let default = repository.head_name().ok().flatten();
    let default = default.and_then(|name| name.as_bstr().to_str().ok().map(str::to_owned));
    let full = match version {
        GitVersion::Default => default.clone().map(Some),
        other => Some(full_name(other)?),
    };
    let full = full.ok_or_else(|| format!("{place} has no default branch: name one"))?;
    let object = match (&full, version) {
        (Some(full), _) => {
            let found = repository.try_find_reference(full.as_str());
            let found = found.map_err(|why| format!("cannot read {full}: {}", because(&why)))?;
            let Some(mut found) = found else {
                let names = names(repository);
                return Err(missing(version, place, names.iter().map(String::as_str)));
            };
            let peeled = found.peel_to_id();
            peeled
                .map_err(|why| format!("cannot follow {full}: {}", because(&why)))?
                .detach()
        }
        (None, GitVersion::Branch(name) | GitVersion::Commit(name)) => {
            commit_id(name).ok_or_else(|| format!("`{name}` is no commit id"))?
        }
        (None, GitVersion::Default) => {
            return Err(format!("{place} has no default branch: name one"));
        }
    };
    let default = default.and_then(|full| full.strip_prefix("refs/heads/").map(str::to_owned));
    Ok((object, default))
}

/// The full names of branches and tags; none where they cannot be told.
fn names(repository: &gix::Repository) -> Vec<String> {
    let Ok(all) = repository.references() else {
        return Vec::new();
    };
    let all = all.all().into_iter().flatten().filter_map(Result::ok);
    all.map(|reference| reference.name().as_bstr().to_string())
        .collect()
}
