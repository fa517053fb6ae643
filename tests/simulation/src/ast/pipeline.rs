//! Pipelines, as trees.

use slipway_model::status::ErrorType;

/// A pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Stages side by side, one such group after the other.
    pub groups: Vec<Vec<Stage>>,
    /// Its time limit.
    pub timeout: Option<u64>,
}

/// A stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its identifier.
    pub id: String,
    /// What it deploys, if it does.
    pub deploys: Option<Image>,
    /// When it runs.
    pub when: When,
    /// Its steps.
    pub steps: Vec<Node>,
    /// What undoes them.
    pub rollback: Vec<Node>,
    /// Its failure strategies.
    pub strategies: Vec<Strategy>,
    /// Its time limit.
    pub timeout: Option<u64>,
    /// How often it is run; such a stage has no others beside it.
    pub turns: Option<Turns>,
}

/// What an image of the sandbox does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// It runs.
    Good,
    /// It cannot be pulled.
    Missing,
}

impl Image {
    /// The service that it is of.
    pub fn service(self) -> &'static str {
        match self {
            Self::Good => "shop",
            Self::Missing => "missing",
        }
    }
}

/// Something in a list of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A step.
    Step(Step),
    /// A step group.
    Group(Group),
    /// Steps and groups side by side.
    Parallel(Vec<Node>),
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its identifier.
    pub id: String,
    /// What it does.
    pub kind: Kind,
    /// Its time limit.
    pub timeout: u64,
    /// When it runs.
    pub when: When,
    /// Its failure strategies.
    pub strategies: Vec<Strategy>,
    /// How often it is run.
    pub turns: Option<Turns>,
}

/// A step group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its identifier.
    pub id: String,
    /// Its steps.
    pub nodes: Vec<Node>,
    /// What undoes them.
    pub rollback: Vec<Node>,
    /// When it runs.
    pub when: When,
    /// Its failure strategies.
    pub strategies: Vec<Strategy>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Lets time pass.
    Wait(u64),
    /// A script on a delegate.
    Script(Script),
    /// Asks so many people.
    Approval(usize),
    /// Meets the other places of this barrier.
    Barrier(String),
    /// Waits for its turn with this key; to the end of the run, or else of the stage.
    Queue {
        /// The key.
        key: String,
        /// Whether it is held to the end of the run.
        run: bool,
    },
    /// Asks a server.
    Http(Http),
    /// Runs a pipeline of its own, the only step of its stage.
    Chained(Child),
    /// `EcsRollingDeploy`.
    Deploy,
    /// `EcsRollingRollback`.
    Undo,
}

/// What a request is, and what the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http {
    /// `POST`, which is never sent twice, or else `GET`.
    pub posts: bool,
    /// Whether the answer is as the step wants it.
    pub good: bool,
}

/// A pipeline that a stage runs: it waits, and then succeeds or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// How long it waits.
    pub time: u64,
    /// Whether it succeeds.
    pub good: bool,
}

/// What a script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// It succeeds.
    Good,
    /// It fails.
    Bad,
    /// It fails before this attempt, counted from 0.
    BadUntil(u32),
    /// The delegate takes it and is never heard of again.
    Vanishes,
}

/// A looping strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// How it is written.
    pub how: Loop,
    /// How many turns.
    pub count: usize,
    /// How many at a time; 0 for no limit.
    pub at_once: usize,
}

/// How a loop is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// `repeat`, with items.
    Repeat,
    /// `matrix`, with an axis of so many values and another of one.
    Matrix,
    /// `parallelism`.
    Parallelism,
}

impl Turns {
    /// What stands behind the identifier in each turn.
    pub fn postfixes(self) -> impl Iterator<Item = String> {
        (0..self.count).map(|turn| format!("_{turn}"))
    }
}

/// `when`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// `stageStatus` or `pipelineStatus`.
    pub status: Wanted,
    /// `condition`, if there is one: whether it holds.
    pub condition: Option<bool>,
}

impl When {
    /// What holds where nothing is written.
    pub const DEFAULT: Self = Self {
        status: Wanted::Success,
        condition: None,
    };
}

/// What must have come before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// No failure.
    Success,
    /// A failure.
    Failure,
    /// Anything.
    All,
}

/// An entry of `failureStrategies`.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// The error types; none for all.
    pub errors: Vec<ErrorType>,
    /// What is done.
    pub action: Action,
}

/// What is done about a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Counts as no failure.
    Ignore,
    /// Counts as a success.
    MarkAsSuccess,
    /// Stays a failure.
    MarkAsFailure,
    /// Rolls the stage back.
    StageRollback,
    /// Rolls the group back.
    StepGroupRollback,
    /// Rolls every stage of the run back.
    PipelineRollback,
    /// Aborts the run.
    Abort,
    /// Tries the step, or the group, again.
    Retry {
        /// The group.
        group: bool,
        /// How often.
        count: u32,
        /// After how long.
        after: u64,
        /// What if that does not help.
        then: Box<Action>,
    },
    /// Asks a person.
    Ask {
        /// How long.
        timeout: u64,
        /// What if nobody answers.
        then: Box<Action>,
    },
}
