//! What a lane's state machine is told to do next: the names are those of the states in
//! `statemachines/lane.asl.json`.

use serde::{Deserialize, Serialize};
use slipway_model::status::Status;

/// Answer of `Advance`. Serialized as `{"directive": "Sleep", …}`; carries ids only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "directive")]
pub enum Directive {
    /// Come back after so many seconds: nothing ends it.
    Sleep {
        /// 1: what is said meanwhile must be heard within about a second.
        seconds: u64,
    },
    /// Come back after so many seconds, or as soon as an abort or a signal completes the token of the wait.
    Pause {
        /// At least 1; a wait for time alone has more.
        seconds: u64,
    },
    /// A delegate has work: run the activity and come back.
    AwaitDelegate {
        /// Id of the delegate task; the activity's input.
        task: String,
        /// Limit of the wait, in seconds.
        #[serde(rename = "timeoutSeconds")]
        timeout_seconds: u64,
        /// Longest silence of the delegate, in seconds; less than the limit.
        #[serde(rename = "heartbeatSeconds")]
        heartbeat_seconds: u64,
    },
    /// Run these child lanes side by side and come back.
    Fork {
        /// The parallel block; handed back to `Advance`, so that it knows that the branches were walked.
        node: String,
        /// How many run at once; 0 is no limit.
        concurrency: u32,
        /// One entry per child lane.
        lanes: Vec<ChildLane>,
    },
    /// Go on in another execution of the lane's machine: the history of this one is getting long.
    Continue {
        /// Name of that execution: a repeated start is refused by the service.
        execution: String,
    },
    /// The lane has ended well.
    Done {
        /// How.
        status: Status,
    },
    /// The lane has ended otherwise.
    Failed {
        /// How.
        status: Status,
    },
}

impl Directive {
    /// Names of all directives: those of the states that `Route` leads to.
    pub const NAMES: &'static [&'static str] = &[
        "AwaitDelegate",
        "Continue",
        "Done",
        "Failed",
        "Fork",
        "Pause",
        "Sleep",
    ];

    /// Whether the lane has ended.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Failed { .. })
    }

    /// The directive that ends a lane with `status`.
    pub fn end(status: Status) -> Self {
        if status.is_good() {
            Self::Done { status }
        } else {
            Self::Failed { status }
        }
    }
}

/// A directive as the machine carries it from one `Advance` to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// What to do.
    #[serde(flatten)]
    pub directive: Directive,
    /// How many directives this execution has been given.
    #[serde(default)]
    pub turn: u32,
    /// Which execution of the lane this is, from 0; in a [`Directive::Continue`] the number of the next.
    #[serde(default)]
    pub part: u32,
    /// How much people had said about the run when this was decided.
    #[serde(default)]
    pub heard: usize,
}

/// Most directives of one execution. Each is at most 200 events of its history (a delegate's work that 20 delegates
/// were unsuitable for, and an `Advance` that was tried 36 times), and a history has at most 25,000 (AWS documentation,
/// *Step Functions service quotas*).
pub const MOST_TURNS: u32 = 120;

/// Kind of the wait of a lane that is paused ([`Directive::Pause`]).
pub const PAUSE_WAIT: &str = "pause";

/// A child lane of a fork.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildLane {
    /// Name of the child execution: a repeated start is refused by the service.
    pub execution: String,
    /// Lane id, the input of the child.
    pub lane_id: String,
    /// From where the executions that the child goes on in are counted.
    pub part: u32,
}
