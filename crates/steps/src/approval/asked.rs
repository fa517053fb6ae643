//! Whether there is anybody whom an approval asks, and enough of them. Harness fails the step where none of its user groups
//! is there; where some are, they are asked, and the run warns of the others.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use slipway_engine::user_group::{self, Found};
use slipway_model::status::{ErrorType, Failure};

use super::Approval;
use crate::context::{StepContext, run_failure, store_failure};

/// What a step notes of it: a group that is deleted later does not end a wait that has begun.
#[derive(Default, Serialize, Deserialize)]
struct Checked {
    #[serde(default)]
    groups: bool,
}

/// Looks the user groups up, once for each attempt.
///
/// # Errors
/// Where nobody is asked, with the names of the groups that are not there; where fewer may answer than `count`.
pub(super) async fn check(
    cx: &mut StepContext<'_>,
    approval: &Approval,
    count: usize,
) -> Result<(), Failure> {
    let groups = approval.groups();
    if groups.is_empty() && !approval.accounts().is_empty() || cx.saved::<Checked>()?.groups {
        return Ok(());
    }
    let mut missing = Vec::new();
    let mut everybody = false;
    let mut members = HashSet::new();
    for group in &groups {
        let found = user_group::find(cx.store(), &cx.plan().scope, group).await;
        match found.map_err(|error| run_failure("read whom the approval asks", &error))? {
            Found::Missing => missing.push(format!("`{group}`")),
            Found::Everybody => everybody = true,
            Found::Group(group) => members.extend(group.users),
        }
    }
    let nobody = missing.len() == groups.len() && approval.accounts().is_empty();
    if nobody && !approval.is_automatic() {
        return Err(nobody_asked(cx, &missing));
    }
    if !everybody && !approval.is_automatic() {
        let able = may_answer(cx, approval, members).await? + approval.accounts().len();
        if able < count {
            return Err(too_few(cx, able, count));
        }
    }
    if !missing.is_empty() {
        let names = missing.join(", ");
        cx.tell_run(&format!(
            "{} asks user groups that are not there: {names}; nobody of them can answer",
            cx.step().identifier
        ))
        .await?;
    }
    // Groups that are always there need no second look to be saved.
    match everybody && missing.is_empty() && groups.len() == 1 {
        true => Ok(()),
        false => cx.note(&Checked { groups: true }),
    }
}

/// How many members of the groups may answer.
async fn may_answer(
    cx: &StepContext<'_>,
    approval: &Approval,
    members: HashSet<String>,
) -> Result<usize, Failure> {
    let executor = match approval.bars_executor() {
        true => {
            let run = cx.store().get_run(cx.run()).await;
            let run = run.map_err(|error| store_failure("read who started the run", &error))?;
            let email = user_group::email(&run.triggered_by);
            Some((run.triggered_by.to_string(), email))
        }
        false => None,
    };
    let started = |user: &str| {
        executor.as_ref().is_some_and(|(name, email)| {
            user.eq_ignore_ascii_case(name) || user.eq_ignore_ascii_case(email)
        })
    };
    let members = members
        .into_iter()
        .filter(|user| !approval.bars(user) && !started(user))
        .map(|user| user.to_lowercase());
    Ok(members.collect::<HashSet<_>>().len())
}

fn too_few(cx: &StepContext<'_>, able: usize, count: usize) -> Failure {
    let step = &cx.step().identifier;
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Approval {step} waits for {count} people, and {able} may answer. Add members to its user groups, or ask for fewer \
             in approvers.minimumCount."
        ),
        left_behind: None,
    }
}

fn nobody_asked(cx: &StepContext<'_>, missing: &[String]) -> Failure {
    let step = &cx.step().identifier;
    let why = match missing {
        [] => "approvers.userGroups names no user group".to_owned(),
        [one] => format!("there is no user group {one}"),
        several => format!("there are no user groups {}", several.join(", ")),
    };
    Failure {
        error: ErrorType::Unknown,
        message: format!(
            "Approval {step} asks nobody: {why}. Create the user group in the scope that the reference names \
             (`slipway apply` a userGroup, or POST /ng/api/user-groups), or name another in approvers.userGroups."
        ),
        left_behind: None,
    }
}
