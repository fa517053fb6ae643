//! What people see of a pipeline before it runs: the inputs that a run asks for, and the pipeline with its
//! templates put in.

use slipway_model::id::Scope;
use slipway_model::{Diagnostic, Parsed, Tree};
use slipway_plan::{Reference, Snapshot, Wanted};

use crate::error::RunError;
use crate::gather::gathered;
use crate::runs::Runs;
use crate::start::{StepTypes, request};

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
    let known = gathered(runs, None, |known| entities(ask(known).references)).await?;
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
        let request = request(scope, pipeline, &[], steps, known);
        entities(slipway_plan::template_references(&request))
    };
    let known = gathered(runs, None, ask).await?;
    let request = request(scope, pipeline, &[], steps, &known);
    slipway_plan::expanded(&request).map_err(RunError::faulty)
}

/// What is wrong with an entity's links to templates: inputs that do not fit as errors; templates that do not
/// exist and inputs that are not given as warnings.
///
/// # Errors
/// When the store cannot be read, or a template cannot.
pub async fn links(
    runs: &Runs,
    scope: &Scope,
    entity: &Parsed,
) -> Result<Vec<Diagnostic>, RunError> {
    let ask = |known: &Snapshot| slipway_plan::template::links(entity, scope, known);
    let known = gathered(runs, None, |known| entities(ask(known).references)).await?;
    Ok(ask(&known).found)
}

/// What only names entities; a form and templates need no files.
pub(crate) fn entities(references: Vec<Reference>) -> Wanted {
    Wanted {
        references,
        files: Vec::new(),
        artifacts: Vec::new(),
    }
}
