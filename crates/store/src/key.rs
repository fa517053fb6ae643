//! Keys of items. Every part that a user chose is escaped, so that no identifier can reach into
//! another key.

use sha2::{Digest, Sha256};
use slipway_model::id::{AccountId, EntityId, NodeId, PrincipalId, RunId, Scope, StageId};

use crate::error::StoreError;

/// DynamoDB's limit of a partition key, in bytes.
const LONGEST_PK: usize = 2048;
/// DynamoDB's limit of a sort key, in bytes.
const LONGEST_SK: usize = 1024;

/// Which table an item is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Entities,
    Runs,
    Instances,
}

/// Where an item is.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) table: Table,
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Key {
    pub(crate) fn new(table: Table, pk: String, sk: impl Into<String>) -> Self {
        Self {
            table,
            pk,
            sk: sk.into(),
        }
    }

    /// For people, in errors.
    pub(crate) fn what(&self) -> String {
        if self.sk.is_empty() {
            self.pk.clone()
        } else {
            format!("{} {}", self.pk, self.sk)
        }
    }

    /// Refuses keys that DynamoDB would refuse.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let why = if self.pk.len() > LONGEST_PK || self.sk.len() > LONGEST_SK {
            "its identifiers are too long"
        } else if self.sk.is_empty() {
            "its identifier is empty"
        } else {
            return Ok(());
        };
        let what = self.what().chars().take(100).collect();
        Err(StoreError::Invalid { what, why })
    }
}

/// `text` without the characters that separate parts of a key.
pub(crate) fn part(text: &str) -> String {
    if !text.contains(['/', '#', '%', '~']) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '/' => out.push_str("%2F"),
            '#' => out.push_str("%23"),
            '%' => out.push_str("%25"),
            '~' => out.push_str("%7E"),
            other => out.push(other),
        }
    }
    out
}

/// A scope as a part of a key: `account/org/project`.
pub(crate) fn scope(scope: &Scope) -> String {
    let org = scope
        .org
        .as_ref()
        .map(|o| part(o.as_str()))
        .unwrap_or_default();
    let project = scope
        .project
        .as_ref()
        .map(|p| part(p.as_str()))
        .unwrap_or_default();
    format!("{}/{org}/{project}", part(scope.account.as_str()))
}

/// Partition of the entities of one kind in one place.
pub(crate) fn entities(place: &Scope, kind: &str, parent: Option<&EntityId>) -> String {
    let parent = parent.map(|p| part(p.as_str())).unwrap_or_default();
    format!("entity#{}#{}#{parent}", scope(place), part(kind))
}

pub(crate) fn entity(place: &Scope, kind: &str, parent: Option<&EntityId>, id: &EntityId) -> Key {
    Key::new(Table::Entities, entities(place, kind, parent), id.as_str())
}

pub(crate) fn token(hash: &str) -> Key {
    Key::new(Table::Entities, format!("token#{}", part(hash)), "token")
}

/// Partition of the people of an account.
pub(crate) fn people(account: &AccountId) -> String {
    format!("person#{}", part(account.as_str()))
}

pub(crate) fn person(account: &AccountId, who: &PrincipalId) -> Key {
    Key::new(Table::Entities, people(account), who.as_str())
}

pub(crate) fn blob(digest: &str) -> Key {
    Key::new(Table::Runs, format!("blob#{}", part(digest)), "blob")
}

pub(crate) fn sequence(place: &Scope, pipeline: &EntityId) -> Key {
    Key::new(
        Table::Runs,
        format!("sequence#{}#{}", scope(place), part(pipeline.as_str())),
        "sequence",
    )
}

/// Partitions that spread what is listed for a whole installation.
pub(crate) const SHARDS: u8 = 16;

/// The partition of those that a scope belongs to.
pub(crate) fn shard(place: &Scope) -> u8 {
    Sha256::digest(scope(place))
        .first()
        .map_or(0, |byte| byte % SHARDS)
}

/// Partition of the runs of some scopes that were accepted and have not begun.
pub(crate) fn unstarted(shard: u8) -> String {
    format!("unstarted#{shard:02}")
}

/// A run that has not begun; in the order of acceptance.
pub(crate) fn unstarted_run(place: &Scope, started_ms: i64, run: &RunId) -> Key {
    let sk = format!("{started_ms:015}#{}", part(run.as_str()));
    Key::new(Table::Runs, unstarted(shard(place)), sk)
}

/// Partition of a run and all that belongs to it.
pub(crate) fn of_run(run: &RunId) -> String {
    format!("run#{}", part(run.as_str()))
}

pub(crate) fn run(run: &RunId) -> Key {
    Key::new(Table::Runs, of_run(run), "run")
}

/// Partition of the retries of a run and of theirs.
pub(crate) fn retries(root: &RunId) -> String {
    format!("retries#{}", part(root.as_str()))
}

/// The one retry of a run.
pub(crate) fn retry(root: &RunId, of: &RunId) -> Key {
    Key::new(Table::Runs, retries(root), part(of.as_str()))
}

/// What the sort keys of the rollbacks of a run's stages begin with.
pub(crate) const UNDOS: &str = "undo#";

/// The rollback of a stage of a run. Sorts behind all that a run is read with.
pub(crate) fn undo(of: &RunId, stage: &StageId) -> Key {
    let sk = format!("{UNDOS}{}", part(stage.as_str()));
    Key::new(Table::Runs, of_run(of), sk)
}

/// Partition of the list of runs of a scope, or of one pipeline.
pub(crate) fn runs(place: &Scope, pipeline: Option<&EntityId>) -> String {
    match pipeline {
        Some(pipeline) => format!("runs#{}#{}", scope(place), part(pipeline.as_str())),
        None => format!("runs#{}", scope(place)),
    }
}

/// Sorts directly behind a run's own item.
pub(crate) fn tags(run: &RunId, digest: &str) -> Key {
    Key::new(Table::Runs, of_run(run), format!("run#tags#{digest}"))
}

pub(crate) fn stage(run: &RunId, stage: &StageId) -> Key {
    Key::new(
        Table::Runs,
        of_run(run),
        format!("stage#{}", part(stage.as_str())),
    )
}

pub(crate) fn node(run: &RunId, node: &NodeId, attempt: u32) -> Key {
    let sk = format!("{}{attempt:06}", attempts(node));
    Key::new(Table::Runs, of_run(run), sk)
}

/// What the sort keys of all attempts of a node begin with.
pub(crate) fn attempts(node: &NodeId) -> String {
    format!("node#{}#", part(node.as_str()))
}

/// What the sort keys of the waits of a node's attempt begin with.
pub(crate) fn wait(run: &RunId, node: &NodeId, attempt: u32, kind: &str) -> Key {
    let sk = format!("wait#{}#{attempt:06}#{}", part(node.as_str()), part(kind));
    Key::new(Table::Runs, of_run(run), sk)
}

/// Sorts between a run's own item and its stages, so that one query reads all three.
pub(crate) fn signal(run: &RunId, node: &NodeId, attempt: u32, kind: &str) -> Key {
    let sk = format!("signal#{}#{attempt:06}#{}", part(node.as_str()), part(kind));
    Key::new(Table::Runs, of_run(run), sk)
}

pub(crate) fn delegate_task(id: &str) -> Key {
    Key::new(Table::Runs, format!("task#{}", part(id)), "task")
}

pub(crate) fn hold(key: &str) -> Key {
    Key::new(Table::Runs, format!("hold#{}", part(key)), "hold")
}

pub(crate) fn lease(name: &str) -> Key {
    Key::new(Table::Runs, format!("lease#{}", part(name)), "lease")
}

/// Partition of the log of a command unit.
pub(crate) fn log(run: &RunId, node: &NodeId, unit: &str) -> String {
    format!(
        "log#{}#{}#{}",
        part(run.as_str()),
        part(node.as_str()),
        part(unit)
    )
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn no_identifier_reaches_into_another_key() {
        assert_eq!(part("a#b/c%23~"), "a%23b%2Fc%2523%7E");
        assert_ne!(part("a#b"), part("a%23b"));
    }
}
