//! Options of the commands that start runs.

use std::path::PathBuf;

use clap::Args;

/// Options of `slipway run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Identifier of the pipeline.
    pub pipeline: String,
    /// Its runtime inputs.
    #[command(flatten)]
    pub given: InputArgs,
    /// The stages that run.
    #[command(flatten)]
    pub chosen: StageArgs,
    /// What people are told about the run.
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    /// Read a pipeline that is kept in Git, and its input sets, from this branch.
    #[arg(long)]
    pub branch: Option<String>,
    /// Whether to stay.
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Options of `slipway rerun`.
#[derive(Debug, Args)]
pub struct RerunArgs {
    /// Id of the run to repeat.
    pub run: String,
    /// Runtime inputs, over those of that run.
    #[command(flatten)]
    pub given: InputArgs,
    /// The stages that run; without any the same as in that run.
    #[command(flatten)]
    pub chosen: StageArgs,
    /// What people are told about the run.
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    /// Whether to stay.
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Options of `slipway retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Id of the run that failed.
    pub run: String,
    /// Stage to go on from; without it the one that failed. May be repeated for stages of one parallel block.
    #[arg(long, value_name = "STAGE")]
    pub from: Vec<String>,
    /// Also run the stages beside it again that succeeded.
    #[arg(long)]
    pub all_stages: bool,
    /// Runtime inputs, over those of that run.
    #[command(flatten)]
    pub given: InputArgs,
    /// What people are told about the run.
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    /// Whether to stay.
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Options of `slipway rollback`.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// Id of the run that deployed it.
    #[arg(required_unless_present = "service", conflicts_with = "service")]
    pub run: Option<String>,
    /// Only this stage of the run; may be repeated.
    #[arg(long = "stage", value_name = "STAGE", conflicts_with = "service")]
    pub stages: Vec<String>,
    /// Instead of a run: the newest deployment of this service.
    #[arg(long, requires = "environment")]
    pub service: Option<String>,
    /// With --service: in this environment.
    #[arg(long, requires = "service")]
    pub environment: Option<String>,
    /// With --service: on this infrastructure; without it the one that was deployed to last.
    #[arg(long, requires = "service")]
    pub infrastructure: Option<String>,
    /// What people are told about the run.
    #[arg(long, value_name = "TEXT", conflicts_with = "service")]
    pub notes: Option<String>,
    /// Whether to stay.
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Options of `slipway note`.
#[derive(Debug, Args)]
pub struct NoteArgs {
    /// Id of the run.
    pub run: String,
    /// The text, in the place of what was noted before; empty to take that away.
    pub text: String,
}

/// Which stages of a pipeline run.
#[derive(Clone, Debug, Default, Args)]
pub struct StageArgs {
    /// Run this stage, and no other that is not named; may be repeated. The pipeline must have
    /// `allowStageExecutions: true`.
    #[arg(long = "stage", value_name = "IDENTIFIER")]
    pub stages: Vec<String>,
    /// With --stage: the value of an expression that reads a stage which does not run.
    #[arg(
        long = "stage-value",
        requires = "stages",
        value_name = "EXPRESSION=VALUE"
    )]
    pub values: Vec<String>,
}

/// Whether a command stays with the run that it started.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct FollowArgs {
    /// Stay until the run ends, showing its progress.
    #[arg(long)]
    pub follow: bool,
    /// With --follow: end with exit code 3 as soon as the run waits for a person.
    #[arg(long, requires = "follow")]
    pub no_wait: bool,
    /// With --follow: give up following after so many seconds (exit code 124); the run goes on.
    #[arg(long, requires = "follow", value_name = "SECONDS")]
    pub wait_timeout: Option<u64>,
}

/// Runtime inputs of a pipeline: input sets, over them the file, over it the single ones.
#[derive(Clone, Debug, Default, Args)]
pub struct InputArgs {
    /// An input set or overlay of the pipeline; of several the later one wins.
    #[arg(long = "input-set", value_name = "IDENTIFIER")]
    pub input_sets: Vec<String>,
    /// Runtime inputs as Harness YAML (root `pipeline:`).
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// A runtime input, `path=value`: `tag=v2`, `variables.tag=v2`, or the full path in the pipeline.
    #[arg(long = "input", short = 'i', value_name = "PATH=VALUE")]
    pub inputs: Vec<String>,
}
