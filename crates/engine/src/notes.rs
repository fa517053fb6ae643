//! What people write about a run, at its start, while it runs and after it (docs platform/pipelines/
//! add-note-during-pipeline-execution).

use slipway_model::id::RunId;

use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::runs::Runs;

/// Most characters of the notes of a run.
pub const LONGEST: usize = 4_000;

/// Puts notes in the place of those that a run has.
///
/// # Errors
/// `TooLarge` for more than [`LONGEST`] characters, `NotFound` without that run.
pub async fn set(runs: &Runs, run: &RunId, notes: &str) -> Result<(), RunError> {
    check(notes)?;
    let set = runs.store.set_notes(run, notes).await;
    set.doing(|| format!("note something about run {run}"))
}

pub(crate) fn check(notes: &str) -> Result<(), RunError> {
    let length = notes.chars().count();
    if length <= LONGEST {
        return Ok(());
    }
    let message = format!("notes of {length} characters are too long: {LONGEST} is the limit");
    Err(RunError::refused(ErrorName::TooLarge, message))
}
