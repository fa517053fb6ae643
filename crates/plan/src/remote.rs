//! Files that users keep outside of Slipway: what a plan asks for, and what somebody who may do I/O answers.

use std::sync::Arc;

use slipway_model::id::Scope;

use crate::ConnectorPlan;

/// Most files that one store of a manifest or config file may give, those of its folders counted.
pub const MOST_FILES: usize = 500;

/// Most bytes that they may have together: half of what a plan may hold.
pub const MOST_BYTES: usize = 8 * 1024 * 1024;

/// What one store of a manifest or config file names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteFiles {
    /// Says how to get there; its expressions are evaluated, its secrets are references.
    pub connector: ConnectorPlan,
    /// Where the connector's reference was written.
    pub scope: Scope,
    /// Where the files are.
    pub place: RemotePlace,
    /// Files and folders below [`RemoteFiles::place`], without a leading `/` and without `..`; a folder stands
    /// for all files below it, the empty path for everything.
    pub paths: Vec<String>,
}

/// Where files are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RemotePlace {
    /// A Git repository.
    Git {
        /// `repoName`: which one, where the connector is for several.
        repository: Option<String>,
        /// Which version of the files.
        version: GitVersion,
    },
    /// A bucket.
    S3 {
        /// `bucketName`.
        bucket: String,
        /// `region`.
        region: String,
    },
}

/// Which version of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GitVersion {
    /// The newest commit of a branch.
    Branch(String),
    /// A commit, or a tag (docs: continuous-delivery/x-platform-cd-features/services/add-inline-manifests,
    /// "Specific Commit Id / Git Tag").
    Commit(String),
    /// The newest commit of the branch that the repository says is its default.
    Default,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The commit that was read; `None` where there are no versions.
    pub commit: Option<String>,
    /// The branch, where the default one was asked for.
    pub branch: Option<String>,
    /// Path and content, in the order of the paths that were asked for, below a folder in that of their paths.
    pub files: Vec<(String, Arc<str>)>,
}

/// A path as [`RemoteFiles::paths`] wants it, or why it cannot be one.
pub(crate) fn path(written: &str) -> Result<String, &'static str> {
    if written.contains(['\0', '\n', '\r']) {
        return Err("it has a character that no path has");
    }
    let parts = written.trim().split('/');
    let parts: Vec<&str> = parts
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err("`..` leads out of the store; write the path from its root");
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn paths_stay_inside_of_their_store() {
        let table = [
            ("a/b.yaml", Ok("a/b.yaml")),
            ("/a//b/", Ok("a/b")),
            (" ./a/./b ", Ok("a/b")),
            ("/", Ok("")),
            ("a..b/..c", Ok("a..b/..c")),
            ("../../etc/passwd", Err(())),
            ("a/../../b", Err(())),
            ("a\0b", Err(())),
        ];
        for (written, expected) in table {
            let found = path(written).map_err(|_| ());
            assert_eq!(found, expected.map(str::to_owned), "{written}");
        }
    }
}
