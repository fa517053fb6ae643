//! What people see of a pipeline before it runs: the inputs that a run asks for, and the pipeline with its
//! templates put in.

use slipway_model::id::Scope;
use slipway_model::{Parsed, Tree};
use slipway_plan::{Reference, Snapshot};

use crate::error::RunError;
use crate::runs::Runs;
use crate::start::{MOST_ROUNDS, StepTypes, fetch, request};

/// The pipeline's YAML with only the fields that ask for an input, those of the services, environments,
/// infrastructures and templates that it names included; `None` when nothing is asked for.
///
/// # Errors
/// When the store cannot be read, or something that the pipeline names cannot.
pub async fn form(
    runs: &Runs,
    scope: &Scope,
    pipeline: &Parsed,
    steps: &StepTypes,
) -> Result<Option<Tree>, RunError> {
    let ask = |known: &Snapshot| slipway_plan::form(&request(scope, pipeline, &[], steps, known));
    let known = gathered(runs, |known| ask(known).references).await?;
    Ok(ask(&known).template)
}

/// The pipeline with every template put in, its inputs still open.
///
/// # Errors
/// Faults of its templates, and as [`form`].
pub async fn expanded(
    runs: &Runs,
    scope: &Scope,
    pipeline: &Parsed,
    steps: &StepTypes,
) -> Result<Parsed, RunError> {
    let ask = |known: &Snapshot| {
        slipway_plan::template_references(&request(scope, pipeline, &[], steps, known))
    };
    let known = gathered(runs, ask).await?;
    let request = request(scope, pipeline, &[], steps, &known);
    slipway_plan::expanded(&request).map_err(RunError::faulty)
}

/// What `ask` asks for, fetched until nothing new appears.
async fn gathered(
    runs: &Runs,
    ask: impl Fn(&Snapshot) -> Vec<Reference>,
) -> Result<Snapshot, RunError> {
    let mut known = Snapshot::default();
    for _ in 0..MOST_ROUNDS {
        let wanted = known.unknown(ask(&known));
        if wanted.is_empty() {
            break;
        }
        for reference in wanted {
            let found = fetch(runs, &reference).await?;
            known.put(reference, found);
        }
    }
    Ok(known)
}
