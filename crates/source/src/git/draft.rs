//! A commit that changes one file: what it is made of, whether it fits what its author had seen.

use gix::bstr::BString;
use gix::objs::tree::{Entry, EntryKind};
use slipway_engine::remote::{GitChange, GitFault, Seen};

use super::because;
use super::commit::commit_id;

/// Folders that a path may lead through.
const DEEPEST: usize = 64;

/// A commit with the objects that it brings.
pub(super) struct Draft {
    pub(super) commit: gix::ObjectId,
    /// Everything that is new, the commit last; empty where the branch has the content already.
    pub(super) objects: Vec<gix::ObjectId>,
}

fn failed(why: impl Into<String>) -> GitFault {
    GitFault::Failed(why.into())
}

/// The commit of a change on top of `head`; `head` itself where that has the content already.
pub(super) fn draft(
    repository: &gix::Repository,
    head: gix::ObjectId,
    change: &GitChange,
    (place, seconds): (&str, i64),
) -> Result<Draft, GitFault> {
    let broken = |why: gix::Error| failed(format!("{place} cannot be read: {}", because(&why)));
    let commit = repository.find_commit(head).map_err(broken)?;
    let root = commit.tree_id().map_err(broken)?.detach();
    let parts: Vec<&str> = change.path.split('/').collect();
    if parts.len() > DEEPEST {
        return Err(failed(format!(
            "{} leads through more than {DEEPEST} folders",
            change.path
        )));
    }
    let trees = open(repository, root, &parts, place)?;
    let there = trees
        .last()
        .and_then(|tree| find(tree, parts[parts.len() - 1]));
    let there = match there.map(|entry| (entry.mode.kind(), entry.oid)) {
        None => None,
        Some((EntryKind::Blob | EntryKind::BlobExecutable, id)) => Some(id),
        Some((kind, _)) => {
            return Err(failed(format!(
                "{} is {} in {place}",
                change.path,
                named(kind)
            )));
        }
    };
    let blob = repository
        .write_blob(change.content.as_bytes())
        .map_err(broken)?
        .detach();
    check(change, there, blob, head, place)?;
    if there == Some(blob) {
        return Ok(Draft {
            commit: head,
            objects: Vec::new(),
        });
    }
    let mut objects = vec![blob];
    let mut below = (EntryKind::Blob, blob);
    for (mut tree, name) in trees.into_iter().zip(&parts).rev() {
        put(&mut tree, name, below);
        let id = repository.write_object(&tree).map_err(broken)?.detach();
        objects.push(id);
        below = (EntryKind::Tree, id);
    }
    let who = signature(change, seconds);
    let made = gix::objs::Commit {
        tree: below.1,
        parents: std::iter::once(head).collect(),
        author: who.clone(),
        committer: who,
        encoding: None,
        message: change.message.as_str().into(),
        extra_headers: Vec::new(),
    };
    let commit = repository.write_object(&made).map_err(broken)?.detach();
    objects.push(commit);
    Ok(Draft { commit, objects })
}

/// Who makes the commit.
pub(super) fn signature(change: &GitChange, seconds: i64) -> gix::actor::Signature {
    gix::actor::Signature {
        name: name(change.author.as_str()).into(),
        email: "slipway@localhost".into(),
        time: gix::date::Time::new(seconds, 0),
    }
}

/// A name as a commit takes it: nothing in it ends a line or opens an address.
fn name(principal: &str) -> String {
    let name: String = principal
        .chars()
        .filter(|sign| !sign.is_control() && !"<>".contains(*sign))
        .collect();
    match name.trim() {
        "" => "slipway".to_owned(),
        name => name.to_owned(),
    }
}

/// The folders that a path leads through, from the root; those that are not there yet are empty.
fn open(
    repository: &gix::Repository,
    root: gix::ObjectId,
    parts: &[&str],
    place: &str,
) -> Result<Vec<gix::objs::Tree>, GitFault> {
    let mut trees = Vec::new();
    let mut next = Some(root);
    for (depth, part) in parts.iter().enumerate() {
        let tree = match next {
            Some(id) => {
                let broken =
                    |why: gix::Error| failed(format!("{place} cannot be read: {}", because(&why)));
                let tree = repository.find_tree(id).map_err(broken)?;
                let decoded = tree
                    .decode()
                    .map_err(|why| failed(format!("{place} has a broken folder: {why}")))?;
                gix::objs::Tree::from(decoded)
            }
            None => gix::objs::Tree {
                entries: Vec::new(),
            },
        };
        if depth + 1 < parts.len() {
            next = match find(&tree, part).map(|entry| (entry.mode.kind(), entry.oid)) {
                None => None,
                Some((EntryKind::Tree, id)) => Some(id),
                Some((kind, _)) => {
                    let folder = parts[..=depth].join("/");
                    return Err(failed(format!(
                        "{folder} is {} in {place}, and no folder",
                        named(kind)
                    )));
                }
            };
        }
        trees.push(tree);
    }
    Ok(trees)
}

fn named(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Tree => "a folder",
        EntryKind::Blob | EntryKind::BlobExecutable => "a file",
        EntryKind::Link => "a symbolic link",
        EntryKind::Commit => "a submodule",
    }
}

fn find<'t>(tree: &'t gix::objs::Tree, name: &str) -> Option<&'t Entry> {
    tree.entries.iter().find(|entry| entry.filename == name)
}

fn put(tree: &mut gix::objs::Tree, name: &str, (kind, oid): (EntryKind, gix::ObjectId)) {
    match tree.entries.iter_mut().find(|entry| entry.filename == name) {
        Some(entry) => entry.oid = oid,
        None => tree.entries.push(Entry {
            mode: kind.into(),
            filename: BString::from(name),
            oid,
        }),
    }
    // In the order of Git: folders as if their names ended in `/`.
    tree.entries.sort();
}

/// Whether the change fits what its author had seen.
fn check(
    change: &GitChange,
    there: Option<gix::ObjectId>,
    new: gix::ObjectId,
    head: gix::ObjectId,
    place: &str,
) -> Result<(), GitFault> {
    let path = &change.path;
    match (&change.seen, there) {
        (Seen::Nothing, None) => Ok(()),
        // Whoever died after the commit says the same again.
        (_, Some(there)) if there == new => Ok(()),
        (Seen::Nothing, Some(_)) => Err(GitFault::Conflict(format!(
            "{path} is there already in {place}, at commit {head}: import it, or choose another path"
        ))),
        (Seen::Object { object, .. }, Some(there)) if commit_id(object) == Some(there) => Ok(()),
        (Seen::Commit(commit), _) if commit_id(commit) == Some(head) => Ok(()),
        (Seen::Object { commit, .. }, there) => {
            let before = commit
                .as_deref()
                .map_or_else(String::new, |commit| format!(" at commit {commit}"));
            let now = match there {
                Some(_) => "changed",
                None => "deleted",
            };
            Err(GitFault::Conflict(format!(
                "{path} was read{before} and has been {now} since: the branch is at commit {head} now; nothing was written: read it again, put both changes together, and save that"
            )))
        }
        (Seen::Commit(commit), _) => Err(GitFault::Conflict(format!(
            "conflicts were resolved up to commit {commit}, and the branch is at commit {head} now; nothing was written: read it again"
        ))),
    }
}
