//! A pipeline as the simulation thinks of it: small enough to be shrunk and read. All times are in seconds.

use slipway_model::status::{ErrorType, Status};

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Where it came from.
    pub seed: u64,
    /// What runs.
    pub pipeline: Pipeline,
    /// When its runs are started; the first one at 0.
    pub starts: Vec<u64>,
    /// What people say meanwhile.
    pub words: Vec<Said>,
    /// What goes wrong meanwhile.
    pub faults: Vec<Fault>,
}

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
    /// `EcsRollingDeploy`.
    Deploy,
    /// `EcsRollingRollback`.
    Undo,
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

/// `repeat`, with so many items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// How many turns.
    pub count: usize,
    /// How many at a time; 0 for no limit.
    pub at_once: usize,
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

/// What somebody says.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// When.
    pub at: u64,
    /// About which run, by number.
    pub run: usize,
    /// What.
    pub word: Word,
}

/// What can be said.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// Stops the run.
    Abort,
    /// Begins nothing new.
    Pause,
    /// Goes on.
    Resume,
    /// All that runs has failed.
    MarkAsFailed,
    /// All that runs is out of time.
    Expire,
    /// This step has failed.
    MarkNode(String),
    /// Approves, or rejects.
    Vote {
        /// The step.
        node: String,
        /// Who.
        who: String,
        /// Whether they approve.
        approves: bool,
    },
    /// Answers a failure.
    Answer {
        /// The step.
        node: String,
        /// The action.
        action: &'static str,
    },
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// At the n-th request of functions to this service.
    Request {
        /// The service.
        place: slipway_world::tap::Place,
        /// Which request, from 1.
        number: u64,
        /// What becomes of it.
        verdict: slipway_world::tap::Verdict,
    },
    /// At the n-th invocation of a function.
    Invocation {
        /// Which invocation, from 1.
        number: u64,
        /// What becomes of it.
        becomes: slipway_world::tap::Invocation,
    },
    /// Step Functions restarts at this time.
    Restart {
        /// The time.
        at: u64,
    },
    /// The clock jumps ahead at this time: the process was suspended.
    Jump {
        /// The time.
        at: u64,
        /// By how much.
        by: u64,
    },
}

/// How a run, its stages and its nodes came out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Story {
    /// The run.
    pub run: Option<String>,
    /// Stages and nodes by id, with the number of the newest attempt.
    pub nodes: std::collections::BTreeMap<String, (u32, String)>,
}

impl Story {
    /// Notes how a node stands in its newest attempt.
    pub fn note(&mut self, id: &str, attempt: u32, status: Status) {
        self.nodes
            .insert(id.to_owned(), (attempt, format!("{status:?}")));
    }

    /// For people, a line each.
    pub fn told(&self) -> String {
        let mut lines = vec![format!("run {}", self.run.as_deref().unwrap_or("?"))];
        let nodes = self.nodes.iter();
        lines.extend(nodes.map(|(id, (attempt, status))| format!("{id} #{attempt} {status}")));
        lines.join("\n")
    }
}

impl Pipeline {
    /// All stages in order.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.groups.iter().flatten()
    }

    /// Node id and step of every step, loops as one.
    pub fn steps(&self) -> Vec<(String, &Step)> {
        let mut found = Vec::new();
        for stage in self.stages() {
            for (part, nodes) in [("steps", &stage.steps), ("rollbackSteps", &stage.rollback)] {
                collect(&list_id(&stage.id, part), nodes, &mut found);
            }
        }
        found
    }

    /// Whether some step is at a barrier.
    pub fn barriers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, step) in self.steps() {
            if let Kind::Barrier(name) = &step.kind
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    }
}

/// The id of a stage's list of steps.
pub fn list_id(stage: &str, part: &str) -> String {
    format!("stages.{stage}.spec.execution.{part}")
}

fn collect<'c>(list: &str, nodes: &'c [Node], found: &mut Vec<(String, &'c Step)>) {
    for node in nodes {
        match node {
            Node::Step(step) => found.push((format!("{list}.{}", step.id), step)),
            Node::Group(group) => {
                let id = format!("{list}.{}", group.id);
                collect(&format!("{id}.steps"), &group.nodes, found);
                collect(&format!("{id}.rollbackSteps"), &group.rollback, found);
            }
            Node::Parallel(branches) => collect(list, branches, found),
        }
    }
}
