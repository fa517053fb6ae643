//! Keys of the journal; the table is in the module above.

use crate::record::Status;

fn text(prefix: u8, text: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() + 18);
    key.push(prefix);
    key.extend_from_slice(text.as_bytes());
    key
}

fn numbered(prefix: u8, execution: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(18);
    key.push(prefix);
    key.extend_from_slice(&execution.to_be_bytes());
    key
}

pub(crate) fn machine(arn: &str) -> Vec<u8> {
    text(b'm', arn)
}

pub(crate) fn revision(id: &str) -> Vec<u8> {
    text(b'r', id)
}

pub(crate) fn activity(arn: &str) -> Vec<u8> {
    text(b'a', arn)
}

/// Tags of a machine or an activity.
pub(crate) fn tags(arn: &str) -> Vec<u8> {
    text(b't', arn)
}

pub(crate) fn map_run(arn: &str) -> Vec<u8> {
    text(b'p', arn)
}

/// Start of the keys that list the map runs of an execution.
pub(crate) fn map_runs(execution_arn: &str) -> Vec<u8> {
    let mut key = text(b'q', execution_arn);
    key.push(0);
    key
}

pub(crate) fn map_run_of(execution_arn: &str, arn: &str) -> Vec<u8> {
    let mut key = map_runs(execution_arn);
    key.extend_from_slice(arn.as_bytes());
    key
}

pub(crate) fn name(execution_arn: &str) -> Vec<u8> {
    text(b'n', execution_arn)
}

pub(crate) fn execution(execution: u64) -> Vec<u8> {
    let mut key = numbered(b'x', execution);
    key.push(0);
    key
}

/// Start of the keys of an execution's branches.
pub(crate) fn branches(execution: u64) -> Vec<u8> {
    let mut key = numbered(b'x', execution);
    key.push(1);
    key
}

pub(crate) fn branch(execution: u64, branch: u32) -> Vec<u8> {
    let mut key = branches(execution);
    key.extend_from_slice(&branch.to_be_bytes());
    key
}

/// Key of the events whose first is `event`.
pub(crate) fn events(execution: u64, event: u64) -> Vec<u8> {
    let mut key = numbered(b'x', execution);
    key.push(2);
    key.extend_from_slice(&event.to_be_bytes());
    key
}

/// Start of the keys of what is left of an execution that ended without success.
pub(crate) fn remains(execution: u64) -> Vec<u8> {
    let mut key = numbered(b'x', execution);
    key.push(3);
    key
}

pub(crate) fn remain(execution: u64, branch: u32) -> Vec<u8> {
    let mut key = remains(execution);
    key.extend_from_slice(&branch.to_be_bytes());
    key
}

/// Start of all keys of an execution's own.
pub(crate) fn all_of(execution: u64) -> Vec<u8> {
    numbered(b'x', execution)
}

pub(crate) fn open(execution: u64) -> Vec<u8> {
    numbered(b'o', execution)
}

/// Start of the keys that list a machine's executions, all or those of one status.
pub(crate) fn list(machine: &str, status: Option<Status>) -> Vec<u8> {
    let mut key = text(if status.is_some() { b's' } else { b'l' }, machine);
    key.push(0);
    if let Some(status) = status {
        key.push(status as u8);
    }
    key
}

pub(crate) fn listed(machine: &str, status: Option<Status>, execution: u64) -> Vec<u8> {
    let mut key = list(machine, status);
    key.extend_from_slice(&execution.to_be_bytes());
    key
}
