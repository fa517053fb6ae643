//! The runtime inputs that a run of a pipeline asks for.

use slipway_model::id::Scope;
use slipway_model::{Parsed, Tree};
use slipway_plan::Snapshot;

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
    let mut snapshot = Snapshot::default();
    let mut template = None;
    for _ in 0..MOST_ROUNDS {
        let form = slipway_plan::form(&request(scope, pipeline, &[], steps, &snapshot));
        template = form.template;
        let wanted = snapshot.unknown(form.references);
        if wanted.is_empty() {
            break;
        }
        for reference in wanted {
            let found = fetch(runs, &reference).await?;
            snapshot.put(reference, found);
        }
    }
    Ok(template)
}
