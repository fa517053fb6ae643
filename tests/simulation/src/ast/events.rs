//! What people say, and what goes wrong.

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
    /// Stops this stage.
    AbortStage(String),
    /// Stops what runs in this stage, and lets its failure strategies decide, or rolls it back.
    StopStage(String, Stop),
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

/// How what runs is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has failed.
    Fail,
    /// It is out of time.
    Expire,
    /// It has failed, and its stage is rolled back.
    RollBack,
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
        /// How many in a row.
        often: u64,
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
    /// At the n-th completion of a token, whoever sends it.
    Token {
        /// Which completion, from 1.
        number: u64,
        /// What becomes of it.
        verdict: slipway_world::tap::Verdict,
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
