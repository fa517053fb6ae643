//! What can be typed after `slipway`.

mod run;
mod trigger;
mod word;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use run::{
    FollowArgs, InputArgs, NoteArgs, RerunArgs, RetryArgs, RollbackArgs, RunArgs, StageArgs,
};
pub use trigger::{DeliveryArgs, TriggerArgs, TriggerCommand};
pub use word::{AbortArgs, AnswerArgs, ApproveArgs, AskedArgs, FailArgs, StartArgs};

/// Continuous delivery with Harness pipelines, on one machine or on AWS.
#[derive(Debug, Parser)]
#[command(
    name = "slipway",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Where the service is and who asks.
    #[command(flatten)]
    pub connection: Connection,
    /// How to print results; tables for people and JSON for pipes when not given.
    #[arg(long, short = 'o', global = true, value_enum)]
    pub output: Option<Format>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// A table.
    Table,
    /// SARIF 2.1.0, for code-scanning tools; only `slipway validate` has it.
    Sarif,
}

/// Where the service is and who asks.
#[derive(Clone, Debug, Args)]
pub struct Connection {
    /// Base URL of the service.
    #[arg(
        long,
        global = true,
        env = "SLIPWAY_URL",
        default_value = "http://127.0.0.1:7880"
    )]
    pub url: String,
    /// API token; without it the one that `slipway local` wrote into the data directory is used.
    #[arg(long, global = true, env = "SLIPWAY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Organization.
    #[arg(long, global = true, env = "SLIPWAY_ORG", default_value = "default")]
    pub org: String,
    /// Project.
    #[arg(
        long,
        global = true,
        env = "SLIPWAY_PROJECT",
        default_value = "default"
    )]
    pub project: String,
    /// Level that entities live at which do not name their own organization and project.
    #[arg(
        long,
        global = true,
        env = "SLIPWAY_LEVEL",
        value_enum,
        default_value_t = Level::Project
    )]
    pub level: Level,
    /// Data directory of local mode.
    #[arg(
        long,
        global = true,
        env = "SLIPWAY_DATA_DIR",
        default_value = ".slipway"
    )]
    pub data_dir: PathBuf,
}

/// A level that entities live at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// The account.
    Account,
    /// The organization.
    Org,
    /// The project.
    Project,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a rolling deployment, a failure and its rollback in a sandbox account; leaves nothing behind.
    Demo(DemoArgs),
    /// Run the whole service on this machine.
    Local(LocalArgs),
    /// Serve the sandbox account alone: an AWS account in a process, for the `aws` CLI, SDKs and other tools.
    Sandbox(SandboxArgs),
    /// Check files or folders of Harness YAML, without a server.
    Validate(ValidateArgs),
    /// Print the JSON Schema of Harness YAML, for editors.
    Schema(SchemaArgs),
    /// Create or update entities from files or folders of Harness YAML.
    Apply(ApplyArgs),
    /// Show what a run of a pipeline would do, without starting it.
    Plan(PlanArgs),
    /// Start a pipeline.
    Run(RunArgs),
    /// Start a run that repeats another, with the pipeline as it is now
    Rerun(RerunArgs),
    /// Take a failed run up again at the stage that failed; what came before is taken over
    Retry(RetryArgs),
    /// Roll back what a run deployed, after it: its rollback steps run, those of the last stage first
    Rollback(RollbackArgs),
    /// Write something about a run, for people to read
    Note(NoteArgs),
    /// Show one entity or run.
    Get(GetArgs),
    /// List entities or runs.
    List(ListArgs),
    /// List the versions of an artifact of a service.
    Artifact(ArtifactArgs),
    /// Test the connection of a connector.
    Connector(ConnectorArgs),
    /// List triggers, see what came of their events, and try or send deliveries.
    Trigger(TriggerArgs),
    /// Make a token with which somebody else uses the API.
    Token(TokenArgs),
    /// List the people of the account, remove who left it, and bring them back
    User(UserArgs),
    /// Print the logs of a run.
    Logs(LogsArgs),
    /// Stop a run.
    Abort(AbortArgs),
    /// Begin no new step of a run until `slipway resume`
    Pause(RunArg),
    /// Let a paused run go on
    Resume(RunArg),
    /// Approve what a run waits for (HarnessApproval)
    Approve(ApproveArgs),
    /// Reject what a run waits for
    Reject(ApproveArgs),
    /// Answer a failure of a run that waits for a person (ManualIntervention)
    Answer(AnswerArgs),
    /// Give a step of a run the inputs that it asks for (`executionInput()`), or show what it asks for
    Input(AskedArgs),
    /// Start a stage of a run that waits for it (`runMode: Manual`)
    Start(StartArgs),
    /// Mark what runs as failed: its failure strategies decide what follows
    Fail(FailArgs),
    /// Print everything that people wrote in the account, for `slipway import` elsewhere. Values of secrets are no part of it
    Export,
    /// Take in what `slipway export` printed: all of it, or nothing with a list of what does not fit
    Import(ImportArgs),
    /// Take over what is in Git already: a pipeline, an input set, a template, a service, an environment, an infrastructure
    ImportGit(ImportGitArgs),
    /// Work as a delegate: run scripts for a service elsewhere.
    Delegate(DelegateArgs),
}

/// Options of `slipway demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the data directory, print where it is, and go on serving it until Ctrl-C.
    #[arg(long)]
    pub keep: bool,
}

/// Options of `slipway local`.
#[derive(Clone, Debug, Args)]
pub struct LocalArgs {
    /// Address and port to listen on. AWS protocols are answered on loopback addresses only.
    #[arg(long, default_value = "127.0.0.1:7880")]
    pub listen: std::net::SocketAddr,
    /// Where deployment steps go.
    #[arg(long, value_enum, default_value_t = Target::Sandbox)]
    pub target: Target,
    /// How fast the sandbox account works.
    #[arg(long, value_enum, default_value_t = PaceArg::Brisk)]
    pub pace: PaceArg,
    /// Scripts that the embedded delegate runs at once; 0 for no embedded delegate.
    #[arg(long, default_value_t = 8)]
    pub delegate_tasks: usize,
    /// Tag of the embedded delegate, which `delegateSelectors` may name; may be repeated. Its name, `local`, is one.
    #[arg(long = "delegate-tag", value_name = "TAG", value_delimiter = ',')]
    pub delegate_tags: Vec<String>,
}

/// Options of `slipway connector`.
#[derive(Debug, Args)]
pub struct ConnectorArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: ConnectorCommand,
}

/// What can be done with artifacts.
#[derive(Debug, Subcommand)]
pub enum ArtifactCommand {
    /// List the versions that there are, the newest first
    List {
        /// The service; --level says where it is.
        service: String,
        /// Which of its artifact sources or sidecars; the primary one without it.
        #[arg(long)]
        artifact: Option<String>,
        /// Which page, from 0.
        #[arg(long, default_value_t = 0)]
        page: u32,
        /// Versions of one page.
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
}

/// Options of `slipway artifact`.
#[derive(Debug, Args)]
pub struct ArtifactArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: ArtifactCommand,
}

/// Options of `slipway token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Print a new token of somebody; it is shown once. Who has it may do everything in the account
    Create {
        /// Who uses it: a name, or an e-mail address, as user groups name their members.
        #[arg(long, value_name = "NAME")]
        user: String,
        /// What it is for.
        #[arg(long, default_value = "cli")]
        name: String,
        /// Days after which it is refused; without it never.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
    },
}

/// Options of `slipway user`.
#[derive(Debug, Args)]
pub struct UserArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: UserCommand,
}

/// What can be done with the people of an account.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Show who there is, and who was removed
    List,
    /// Refuse somebody's tokens from now on; triggers that they saved last start nothing until somebody else saves them
    Remove {
        /// The name, as `slipway user list` shows it.
        #[arg(value_name = "NAME")]
        user: String,
    },
    /// Bring somebody back who was removed, with their tokens and triggers; or add somebody, who gets no token by that
    Restore {
        /// The name or e-mail address.
        #[arg(value_name = "NAME")]
        user: String,
    },
}

/// What can be done with a connector.
#[derive(Debug, Subcommand)]
pub enum ConnectorCommand {
    /// Try its credentials, and keep what came of it: AWS, Docker, Artifactory and Nexus, Git hosts, Jira, ServiceNow
    Test {
        /// Its identifier; --level says where it is.
        #[arg(value_name = "CONNECTOR")]
        id: String,
    },
}

/// Options of `slipway sandbox`.
#[derive(Clone, Debug, Args)]
pub struct SandboxArgs {
    /// Address and port to listen on; a loopback address, because no signature is verified.
    #[arg(long, default_value = "127.0.0.1:4566")]
    pub listen: std::net::SocketAddr,
    /// Folder that keeps the account; without one it ends with the process.
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Region of requests whose signature names none.
    #[arg(long, default_value = "us-east-1")]
    pub region: String,
    /// How fast the account works.
    #[arg(long, value_enum, default_value_t = PaceArg::Brisk)]
    pub pace: PaceArg,
}

/// Where deployment steps go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// The AWS account inside this process.
    Sandbox,
    /// Real AWS, with the credentials that connectors name.
    Aws,
}

/// How fast the sandbox account works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PaceArg {
    /// A task starts in a fraction of a second.
    Brisk,
    /// As slow as AWS.
    Realistic,
}

/// Options of `slipway validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Files or folders (searched for .yaml and .yml, hidden ones left out); `-` for standard input.
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub files: Vec<PathBuf>,
}

/// Options of `slipway schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Root key of the YAML, `pipeline` for instance; without it any entity.
    pub kind: Option<String>,
}

/// Options of `slipway apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// Files or folders (searched for .yaml and .yml, hidden ones left out); `-` for standard input.
    #[arg(short = 'f', long = "file", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Where pipelines, input sets, templates, services, environments and infrastructures among them are kept in Git.
    #[command(flatten)]
    pub git: GitArgs,
}

/// How `slipway apply` saves what is kept in Git.
#[derive(Clone, Debug, Default, Args)]
pub struct GitArgs {
    /// Keep what is new in Git: in the repository of this connector
    #[arg(long, value_name = "CONNECTOR")]
    pub git_connector: Option<String>,
    /// With --git-connector: which repository, where the connector is for several
    #[arg(long, value_name = "NAME", requires = "git_connector")]
    pub repo: Option<String>,
    /// With --git-connector: the file, where one document is applied; without it .harness/IDENTIFIER.yaml
    #[arg(long, value_name = "FILE", requires = "git_connector")]
    pub git_path: Option<String>,
    /// The branch to save to; without it the one that an entity was saved to before, or the default branch
    #[arg(long)]
    pub branch: Option<String>,
    /// Make the branch, from this one
    #[arg(long, value_name = "BRANCH", requires = "branch")]
    pub new_branch_from: Option<String>,
    /// What the commits say
    #[arg(long, short = 'm', value_name = "TEXT")]
    pub commit_message: Option<String>,
    /// The object that a change on another branch is made of (`objectId`), where one document is applied
    #[arg(long, value_name = "ID")]
    pub last_object: Option<String>,
}

/// Options of `slipway plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Identifier of the pipeline.
    pub pipeline: String,
    /// Its runtime inputs.
    #[command(flatten)]
    pub given: InputArgs,
    /// Only this stage and others that are named; may be repeated.
    #[arg(long = "stage", value_name = "IDENTIFIER")]
    pub stages: Vec<String>,
    /// Show only what is different from the plan of the last run.
    #[arg(long)]
    pub diff: bool,
    /// Read a pipeline that is kept in Git, and its input sets, from this branch.
    #[arg(long)]
    pub branch: Option<String>,
}

/// What `get` and `list` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// An organization.
    #[value(alias = "orgs", alias = "org", alias = "organizations")]
    Organization,
    /// A project.
    #[value(alias = "projects")]
    Project,
    /// A service.
    #[value(alias = "services")]
    Service,
    /// An environment.
    #[value(alias = "environments", alias = "env")]
    Environment,
    /// An infrastructure definition; wants --environment.
    #[value(alias = "infrastructures", alias = "infra")]
    Infrastructure,
    /// A connector.
    #[value(alias = "connectors")]
    Connector,
    /// A secret, without its value.
    #[value(alias = "secrets")]
    Secret,
    /// A pipeline.
    #[value(alias = "pipelines")]
    Pipeline,
    /// An input set; wants --pipeline. The list has overlays too.
    #[value(alias = "input-sets", alias = "inputset")]
    InputSet,
    /// An overlay of input sets; wants --pipeline.
    #[value(alias = "overlays", alias = "overlay-input-set")]
    Overlay,
    /// A template; --version-label for one that is not the stable version.
    #[value(alias = "templates")]
    Template,
    /// A group of environments.
    #[value(alias = "environment-groups", alias = "env-group")]
    EnvironmentGroup,
    /// Overrides of services in environments.
    #[value(alias = "override", alias = "service-overrides")]
    Overrides,
    /// A variable of the account, organization or project.
    #[value(alias = "variables")]
    Variable,
    /// A file or folder of the file store.
    #[value(alias = "files")]
    File,
    /// A trigger; wants --pipeline.
    #[value(alias = "triggers")]
    Trigger,
    /// A freeze window.
    #[value(alias = "freezes")]
    Freeze,
    /// A group of people who approve and are told.
    #[value(alias = "user-groups", alias = "usergroup")]
    UserGroup,
    /// A run of a pipeline.
    #[value(alias = "runs", alias = "execution", alias = "executions")]
    Run,
    /// Running instances of what was deployed.
    #[value(alias = "instances")]
    Instance,
}

/// Options of `slipway get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// What it is.
    pub kind: Kind,
    /// Its identifier; for a run its id.
    pub id: String,
    /// Environment of an infrastructure.
    #[arg(long)]
    pub environment: Option<String>,
    /// Pipeline of an input set or a trigger.
    #[arg(long)]
    pub pipeline: Option<String>,
    /// Version of a template; without it the stable one.
    #[arg(long, value_name = "LABEL")]
    pub version_label: Option<String>,
    /// Show what is kept in Git as it is on this branch.
    #[arg(long)]
    pub branch: Option<String>,
}

/// Options of `slipway list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list.
    pub kind: Kind,
    /// Only infrastructures, or instances, of this environment.
    #[arg(long)]
    pub environment: Option<String>,
    /// Only runs, input sets or triggers of this pipeline.
    #[arg(long)]
    pub pipeline: Option<String>,
    /// At most so many; without it 50, and all instances.
    #[arg(long)]
    pub limit: Option<u32>,
}

/// Options of `slipway logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Id of the run.
    pub run: String,
    /// Only this step (identifier).
    #[arg(long)]
    pub step: Option<String>,
    /// Stay until the run ends, printing lines as they come.
    #[arg(long)]
    pub follow: bool,
}

/// A run.
#[derive(Debug, Args)]
pub struct RunArg {
    /// Id of the run.
    pub run: String,
}

/// Options of `slipway import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// What `slipway export` printed; `-` for standard input.
    pub file: PathBuf,
}

/// What `slipway import-git` takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InGit {
    /// A pipeline.
    Pipeline,
    /// An input set of a pipeline, or an overlay.
    InputSet,
    /// A version of a template.
    Template,
    /// A service.
    Service,
    /// An environment.
    Environment,
    /// An infrastructure definition of an environment.
    Infrastructure,
    /// Overrides of a service, an environment or an infrastructure, of version 2.
    Overrides,
}

/// Options of `slipway import-git`.
#[derive(Debug, Args)]
pub struct ImportGitArgs {
    /// What is in Git.
    pub kind: InGit,
    /// Its identifier, as its YAML has it.
    pub id: String,
    /// The connector of the repository.
    #[arg(long, value_name = "CONNECTOR")]
    pub git_connector: String,
    /// Which repository, where the connector is for several.
    #[arg(long, value_name = "NAME")]
    pub repo: Option<String>,
    /// The file in the repository; without it the one that `slipway apply` writes: .harness/IDENTIFIER.yaml,
    /// .harness/services/IDENTIFIER.yaml, … (docs/git.md).
    #[arg(long, value_name = "FILE")]
    pub git_path: Option<String>,
    /// The branch to read it from, and to save it to from then on; without it the default branch.
    #[arg(long)]
    pub branch: Option<String>,
    /// The pipeline of an input set.
    #[arg(long, required_if_eq("kind", "input-set"))]
    pub pipeline: Option<String>,
    /// The environment of an infrastructure.
    #[arg(long, required_if_eq("kind", "infrastructure"))]
    pub environment: Option<String>,
    /// The version of a template, where the file must not have another one.
    #[arg(long, value_name = "LABEL")]
    pub version_label: Option<String>,
}

/// Options of `slipway delegate`.
#[derive(Debug, Args)]
pub struct DelegateArgs {
    /// Name that runs and logs show.
    #[arg(long, default_value = "delegate")]
    pub name: String,
    /// Tag of this delegate, which `delegateSelectors` may name; may be repeated. Its name is one; `*` is all.
    #[arg(
        long = "tag",
        alias = "selector",
        env = "DELEGATE_TAGS",
        value_name = "TAG",
        value_delimiter = ','
    )]
    pub selectors: Vec<String>,
    /// Scripts that may run at once.
    #[arg(long, default_value_t = 8)]
    pub tasks: usize,
    /// Activity on AWS that tasks come from, with credentials from the environment; without it the one of
    /// the local mode at --url.
    #[arg(long, env = "SLIPWAY_ACTIVITY_ARN")]
    pub activity_arn: Option<String>,
    /// Folder for scripts and claims; must survive a restart of the delegate.
    #[arg(long, default_value = ".slipway-delegate")]
    pub work_dir: PathBuf,
}
