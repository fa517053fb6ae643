//! Options of the commands that say something about a run that goes on.

use clap::Args;

/// Options of `slipway abort`.
#[derive(Debug, Args)]
pub struct AbortArgs {
    /// Id of the run.
    pub run: String,
    /// Only this stage, with its turn behind it (`deploy_0`) where it loops. Stages beside it go on, those after it do
    /// not begin.
    #[arg(long)]
    pub stage: Option<String>,
    /// Stay until the run has ended.
    #[arg(long)]
    pub follow: bool,
}

/// Options of `slipway approve` and `slipway reject`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// Id of the run.
    pub run: String,
    /// The approval's step, where the run waits at several: the id that `slipway get run` shows.
    #[arg(long)]
    pub step: Option<String>,
    /// Why.
    #[arg(long, default_value = "")]
    pub comment: String,
    /// An input that the approval asks for; may be repeated.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub inputs: Vec<String>,
}

/// Options of `slipway answer`.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// Id of the run.
    pub run: String,
    /// The step that failed: its identifier, or its id where several have that.
    pub step: String,
    /// What to do about it.
    #[arg(value_parser = ["Retry", "Ignore", "MarkAsSuccess", "MarkAsFailure", "StageRollback", "StepGroupRollback", "PipelineRollback", "Abort"])]
    pub action: String,
}

/// Options of `slipway input`.
#[derive(Debug, Args)]
pub struct AskedArgs {
    /// Id of the run.
    pub run: String,
    /// The step that asks: its identifier, or its id where several have that; the stage or step group, where its variables
    /// are asked for.
    pub step: String,
    /// A value for a field; may be repeated. Fields that are left out get their defaults; without any, and without
    /// `--defaults`, what the step asks for is shown.
    #[arg(long = "input", value_name = "FIELD=VALUE")]
    pub inputs: Vec<String>,
    /// Go on with the defaults of all fields.
    #[arg(long, conflicts_with = "inputs")]
    pub defaults: bool,
}

/// Options of `slipway start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Id of the run.
    pub run: String,
    /// The stage: its identifier, with its turn behind it (`deploy_0`) where it loops.
    pub stage: String,
}

/// Options of `slipway fail`.
#[derive(Debug, Args)]
pub struct FailArgs {
    /// Id of the run.
    pub run: String,
    /// Only this step: its identifier, or its id where several have that.
    #[arg(long)]
    pub step: Option<String>,
    /// Only this stage, with its turn behind it (`deploy_0`) where it loops.
    #[arg(long, conflicts_with = "step")]
    pub stage: Option<String>,
    /// Roll back what fails so, whatever its failure strategies say.
    #[arg(long, conflicts_with = "step")]
    pub roll_back: bool,
}
