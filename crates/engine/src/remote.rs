//! Entities whose YAML is kept in Git: read at the newest commit of a branch, and written as commits. What the store has
//! of one is where it is and what was read last; a commit that cannot be read changes nothing of that.

use serde_json::Value;
use sha1::{Digest, Sha1};
use slipway_model::entity::Parsed;
use slipway_model::id::{EntityId, PrincipalId, Scope};
use slipway_model::{Kind, entity};
use slipway_plan::{ConnectorPlan, GitVersion, RemoteFiles, RemotePlace};
use slipway_store::StoreError;
use slipway_store::record::{EntityRecord, GitPlace};

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::gather::SourceReader;
use crate::runs::Runs;

/// Largest file that is read for an entity, in bytes.
const LARGEST: usize = 1 << 20;

/// Longest path in a repository, in bytes.
const LONGEST_PATH: usize = 1024;

/// Types of connectors that lead to Git repositories.
const CODE_HOSTS: &[&str] = &["Git", "Github", "Gitlab", "Bitbucket", "AzureRepo"];

/// What is to be written into a repository, and what its author had seen of it.
#[derive(Clone, Debug)]
pub struct GitChange {
    /// Says how to get there.
    pub connector: ConnectorPlan,
    /// Where the connector's reference was written.
    pub scope: Scope,
    /// Which repository, where the connector is for several.
    pub repository: Option<String>,
    /// The branch that gets the commit; the default branch for `None`.
    pub branch: Option<String>,
    /// Whether the branch is a new one.
    pub fresh: bool,
    /// The branch that a new one begins at; the default branch for `None`.
    pub base: Option<String>,
    /// The file.
    pub path: String,
    /// Its new content.
    pub content: String,
    /// What the commit says.
    pub message: String,
    /// Who asks for it.
    pub author: PrincipalId,
    /// What the file must be for the change to fit.
    pub seen: Seen,
}

/// What somebody who changes a file had seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// That there is none.
    Nothing,
    /// The object with this id, in this commit where that is known.
    Object {
        /// Id of the blob.
        object: String,
        /// The commit that it was read at, for messages.
        commit: Option<String>,
    },
    /// Everything up to this commit, conflicts resolved.
    Commit(String),
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSaved {
    /// Its id.
    pub commit: String,
    /// The branch that it is on.
    pub branch: String,
}

/// Why a commit was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitFault {
    /// Somebody else changed the file: both commits are named.
    Conflict(String),
    /// Anything else. Holds no secret.
    Failed(String),
}

/// A file as Git has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitFile {
    /// Its content.
    pub text: String,
    /// Where it was read: the branch, commit and object that it was.
    pub place: GitPlace,
}

/// The id that Git gives to a file of this content.
pub fn object_id(content: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A path in a repository that an entity may have.
///
/// # Errors
/// Why it cannot be one.
pub fn path(written: &str) -> Result<String, String> {
    let path = written.trim();
    let path = path
        .strip_prefix("./")
        .unwrap_or(path)
        .trim_start_matches('/');
    let refused = |why: &str| {
        Err(format!(
            "`{}` is no path for an entity: {why}",
            written.escape_debug()
        ))
    };
    if path.is_empty()
        || path.len() > LONGEST_PATH
        || path.contains(|sign: char| sign.is_control() || sign == '\\')
    {
        return refused("it is empty, too long, or has characters that no path should have");
    }
    for part in path.split('/') {
        let reserved = part.to_ascii_lowercase();
        if ["", ".", ".."].contains(&part) {
            return refused("it must lead from the root of the repository to a file below it");
        }
        // Also as Windows and macOS would understand it (CVE-2014-9390).
        if reserved.trim_end_matches(['.', ' ']) == ".git" || reserved.starts_with("git~") {
            return refused("`.git` is Git's own");
        }
    }
    match path.ends_with(".yaml") || path.ends_with(".yml") {
        true => Ok(path.to_owned()),
        false => refused("it must end in .yaml or .yml"),
    }
}

/// A connector to a Git repository, as it is stored.
///
/// # Errors
/// Where there is none, or it leads elsewhere.
pub async fn connector(
    runs: &Runs,
    scope: &Scope,
    reference: &str,
) -> Result<ConnectorPlan, RunError> {
    let (owner, id) = scope.resolve(reference);
    let kind = Kind::Connector.key();
    let found = runs.store.find_entity(&owner, kind, None, &id).await;
    let found = found.doing(|| format!("read connector {reference}"))?;
    let Some(record) = found else {
        let message = format!("there is no connector {reference}: it says where the repository is");
        return Err(RunError::refused(ErrorName::NotFound, message));
    };
    let parsed = entity::parse(&format!("connector {reference}"), &record.yaml);
    let parsed = parsed.map_err(RunError::faulty)?;
    let kind = parsed
        .body()
        .get_text("type")
        .unwrap_or_default()
        .to_owned();
    if !CODE_HOSTS.contains(&kind.as_str()) {
        let message = format!(
            "connector {reference} is of type {kind}: entities are kept in Git repositories, by connectors of type {}",
            CODE_HOSTS.join(", ")
        );
        return Err(RunError::refused(ErrorName::InvalidRequest, message));
    }
    let spec = parsed
        .body()
        .get("spec")
        .map_or(Value::Null, |spec| spec.to_json());
    Ok(ConnectorPlan {
        reference: reference.to_owned(),
        kind,
        spec,
    })
}

/// The file of an entity at a branch; at the one of its place where none is named.
///
/// # Errors
/// Where the connector, the repository, the branch or the file cannot be read, with the reason.
pub async fn file(
    runs: &Runs,
    sources: &dyn SourceReader,
    scope: &Scope,
    place: &GitPlace,
    branch: Option<&str>,
) -> Result<GitFile, RunError> {
    let connector = connector(runs, scope, &place.connector).await?;
    let branch = branch.or(place.branch.as_deref());
    let wanted = RemoteFiles {
        connector,
        scope: scope.clone(),
        place: RemotePlace::Git {
            repository: place.repository.clone(),
            version: match branch {
                Some(branch) => GitVersion::Branch(branch.to_owned()),
                None => GitVersion::Default,
            },
        },
        paths: vec![place.path.clone()],
    };
    let refused = |why: String| {
        let message = format!("{} cannot be read from Git: {why}", place.path);
        RunError::refused(ErrorName::InvalidRequest, message)
    };
    let mut found = sources.fetch_files(std::slice::from_ref(&wanted)).await;
    let fetched = found
        .pop()
        .unwrap_or_else(|| Err("nobody answered".to_owned()));
    let fetched = fetched.map_err(refused)?;
    let text = match fetched.files.as_slice() {
        [(name, text)] if *name == place.path => text.to_string(),
        _ => return Err(refused("it is a folder".to_owned())),
    };
    if text.len() > LARGEST {
        return Err(refused(format!(
            "it has {} bytes, and an entity at most {LARGEST}",
            text.len()
        )));
    }
    if text.starts_with("version https://git-lfs.github.com/") {
        return Err(refused("it is a pointer of Git LFS, and what it points to is not fetched: keep entities out of LFS".to_owned()));
    }
    Ok(GitFile {
        place: GitPlace {
            branch: fetched.branch.or(branch.map(str::to_owned)),
            commit: fetched.commit,
            object: Some(object_id(&text)),
            ..place.clone()
        },
        text,
    })
}

/// An entity as Git has it at a branch; one that is not kept in Git as it is.
///
/// # Errors
/// As [`file`]; faults of the YAML with file, commit, line and column; another entity in the place of this one.
pub async fn read(
    runs: &Runs,
    sources: &dyn SourceReader,
    record: &EntityRecord,
    branch: Option<&str>,
) -> Result<EntityRecord, RunError> {
    let Some(place) = &record.git else {
        return Ok(record.clone());
    };
    let file = file(runs, sources, &record.scope, place, branch).await?;
    of_file(record, file)
}

/// What a file of Git makes of the record of its entity.
///
/// # Errors
/// As [`read`].
pub fn of_file(record: &EntityRecord, file: GitFile) -> Result<EntityRecord, RunError> {
    let name = label(&file.place);
    let parsed = entity::parse(&name, &file.text).map_err(RunError::faulty)?;
    let head = &parsed.head;
    let same_kind = head.kind.key() == record.kind
        || (head.kind == Kind::OverlayInputSet && record.kind == Kind::InputSet.key());
    let id = match head.kind {
        Kind::Template => head.version_label.clone().unwrap_or_default(),
        Kind::Overrides => overrides_key(&parsed),
        _ => head.identifier.to_string(),
    };
    let environment = match head.kind {
        Kind::Infrastructure | Kind::Overrides => head.env_ref.as_ref(),
        _ => None,
    };
    let elsewhere = environment
        .zip(record.parent.as_ref())
        .filter(|(named, own)| {
            let of = |id: &EntityId| record.scope.resolve(id.as_str());
            of(named) != of(own)
        });
    if let Some((named, own)) = elsewhere {
        let message = format!(
            "{name} is of the environment {named}, and not of {own}: put its file back, or save it from here"
        );
        return Err(RunError::refused(ErrorName::InvalidRequest, message));
    }
    if !same_kind || id != record.id.as_str() {
        let message = format!(
            "{name} holds {} {id}, and not {} {}: put its file back, or save it from here",
            head.kind.key(),
            record.kind,
            record.id
        );
        return Err(RunError::refused(ErrorName::InvalidRequest, message));
    }
    Ok(EntityRecord {
        name: head.name.clone(),
        description: head.description.clone(),
        tags: head.tags.clone(),
        yaml: file.text,
        git: Some(file.place),
        ..record.clone()
    })
}

/// The key of overrides below their environment, as the plan looks for them: `<type>/<service>/<infrastructure>`, or with a
/// cluster at its end.
pub fn overrides_key(parsed: &Parsed) -> String {
    let text = |field: &str| parsed.body().get_text(field).unwrap_or_default().trim();
    let kind = match text("type") {
        "" => "ENV_GLOBAL_OVERRIDE",
        kind => kind,
    };
    let target = match text("clusterIdentifier") {
        "" => text("infraIdentifier"),
        cluster => cluster,
    };
    format!("{kind}/{}/{target}", text("serviceRef"))
}

/// The name of an entity's document in messages.
pub(crate) fn name(record: &EntityRecord) -> String {
    match &record.git {
        Some(place) => label(place),
        None => record.id.to_string(),
    }
}

/// The name of a file in messages: where in the repository it is, and the commit that was read.
fn label(place: &GitPlace) -> String {
    let commit = place
        .commit
        .as_deref()
        .map(|commit| format!(" at {commit}"));
    format!("{}{}", place.path, commit.unwrap_or_default())
}

/// Keeps what was read of the branch of an entity, so that lists show it and drift is told from it. What others keep
/// meanwhile stands.
///
/// # Errors
/// When the store cannot be reached.
pub async fn keep(runs: &Runs, before: &EntityRecord, now: &EntityRecord) -> Result<(), RunError> {
    let branch = |record: &EntityRecord| record.git.as_ref().and_then(|git| git.branch.clone());
    if before == now || branch(before) != branch(now) {
        return Ok(());
    }
    let newer = EntityRecord {
        updated_ms: runs.clock.now_ms(),
        ..now.clone()
    };
    match runs.store.put_entity(&newer, Some(before.version)).await {
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error).doing(|| format!("keep {} {} as it was read", now.kind, now.id)),
    }
}

/// The pipeline of a request: that of Git where it is kept there, at the branch that is asked for.
///
/// # Errors
/// `NotFound` without one; as [`read`].
pub async fn pipeline(
    runs: &Runs,
    sources: &dyn SourceReader,
    (scope, id): (&Scope, &EntityId),
    branch: Option<&str>,
) -> Result<EntityRecord, RunError> {
    let found = runs
        .store
        .find_entity(scope, Kind::Pipeline.key(), None, id)
        .await;
    let found = found.doing(|| format!("read pipeline {id}"))?;
    let Some(record) = found else {
        let message = format!("there is no pipeline {id} in this scope");
        return Err(RunError::refused(ErrorName::NotFound, message));
    };
    let now = read(runs, sources, &record, branch).await?;
    keep(runs, &record, &now).await?;
    Ok(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_id_that_git_gives_it() {
        // `printf 'hello\n' | git hash-object --stdin`
        assert_eq!(
            object_id("hello\n"),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
    }

    #[test]
    fn paths_of_entities_lead_to_files_below_the_root() {
        for (written, expected) in [
            (".harness/p.yaml", Some(".harness/p.yaml")),
            ("/a/b.yml", Some("a/b.yml")),
            ("./a.yaml", Some("a.yaml")),
            ("../a.yaml", None),
            ("a/../../b.yaml", None),
            ("a//b.yaml", None),
            (".git/hooks/x.yaml", None),
            ("a/.GIT/x.yaml", None),
            ("GIT~1/x.yaml", None),
            ("a\nb.yaml", None),
            ("a\\b.yaml", None),
            ("a.txt", None),
            ("", None),
        ] {
            assert_eq!(path(written).ok().as_deref(), expected, "{written:?}");
        }
    }
}
