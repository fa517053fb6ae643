//! The roles that a task runs with.

use serde_json::Value;

use super::task_definition::TaskDefinition;
use crate::account::Account;
use crate::iam::trust;

/// Who tasks' roles are passed to, and who assumes them.
pub(super) const SERVICE: &str = "ecs-tasks.amazonaws.com";

/// Members of a task definition that name a role.
pub(super) const MEMBERS: [&str; 2] = ["executionRoleArn", "taskRoleArn"];

/// Why no task of the definition can be launched, in AWS's words: a role of it does not let [`SERVICE`] assume it, or is not
/// there. `RegisterTaskDefinition` does not look. Where nobody created a role for tasks, they run with any: definitions of other
/// accounts run too.
pub(super) fn refused(account: &Account, definition: &TaskDefinition) -> Option<String> {
    let document: Value = serde_json::from_str(&definition.document).ok()?;
    let named = MEMBERS
        .iter()
        .filter_map(|member| document[*member].as_str());
    let mut roles = named.filter(|role| !role.is_empty());
    let role = roles.find(|role| trust::distrusts(account, role, SERVICE))?;
    Some(format!(
        "ECS was unable to assume the role '{role}' that was provided for this task. Please verify that the role \
         being passed has the proper trust relationship and permissions and that your IAM user has permissions to \
         pass this role"
    ))
}
