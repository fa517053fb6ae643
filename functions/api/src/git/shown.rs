//! What answers say of Git.

use serde_json::{Value, json};
use slipway_store::record::{EntityRecord, GitPlace};

/// `storeType` of an entity.
pub(crate) fn store_type(record: &EntityRecord) -> &'static str {
    match record.git {
        Some(_) => "REMOTE",
        None => "INLINE",
    }
}

/// `connectorRef` of an entity; null where it is kept here.
pub(crate) fn connector(record: &EntityRecord) -> Option<&str> {
    record.git.as_ref().map(|git| git.connector.as_str())
}

/// `gitDetails` of an entity; null where it is kept here.
pub(crate) fn details(record: &EntityRecord) -> Value {
    record.git.as_ref().map_or(Value::Null, of_place)
}

/// `gitDetails` of a file.
pub(crate) fn of_place(git: &GitPlace) -> Value {
    json!({
        "objectId": git.object,
        "branch": git.branch,
        "filePath": git.path,
        "repoName": git.repository,
        "commitId": git.commit,
        "fileUrl": null,
        "repoUrl": null,
        "repoIdentifier": git.repository,
        "rootFolder": null,
        "isHarnessCodeRepo": false,
        "parentEntityConnectorRef": null,
        "parentEntityRepoName": null,
    })
}

/// `gitDetails` of what was read just now, with what of it was read or saved before: where the two objects differ, somebody
/// has changed the file since.
pub(crate) fn with_drift(before: &EntityRecord, now: &GitPlace) -> Value {
    let mut shown = of_place(now);
    let last = before.git.as_ref();
    let same_branch = last.is_some_and(|last| last.branch == now.branch);
    shown["lastReadObjectId"] = json!(last.and_then(|last| last.object.as_ref()));
    shown["lastReadCommitId"] = json!(last.and_then(|last| last.commit.as_ref()));
    shown["drift"] =
        json!(same_branch && last.and_then(|last| last.object.as_ref()) != now.object.as_ref());
    shown
}

/// `git_details` of a v1 answer, of what the other form of it says (`gitDetails`).
pub(crate) fn in_v1(details: &Value, record: &EntityRecord) -> Value {
    if details.is_null() {
        return Value::Null;
    }
    json!({
        "object_id": details["objectId"],
        "branch_name": details["branch"],
        "file_path": details["filePath"],
        "repo_name": details["repoName"],
        "commit_id": details["commitId"],
        "file_url": null,
        "repo_url": null,
        "connector_ref": connector(record),
        "store_type": store_type(record),
        "drift": details["drift"],
    })
}
