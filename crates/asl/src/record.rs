//! What the journal keeps besides history: machines, activities, and executions with their branches.
//!
//! Records are JSON. A field that a later version adds must have a default, or [`crate::journal::FORMAT`]
//! must grow.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::effect::{InvokeSettings, ServiceCall};

/// A state machine, current revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) arn: String,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) revision: String,
    pub(crate) created_ms: i64,
    /// Logging, tracing and encryption settings: kept and shown, without effect here.
    pub(crate) settings: Map<String, Value>,
    /// An express machine.
    #[serde(default)]
    pub(crate) express: bool,
}

/// One revision of a machine's definition; executions keep the one they started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Revision {
    pub(crate) machine: String,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) definition: String,
    pub(crate) updated_ms: i64,
    pub(crate) settings: Map<String, Value>,
    #[serde(default)]
    pub(crate) express: bool,
}

/// A run of a distributed `Map`, as `DescribeMapRun` shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MapRunRecord {
    pub(crate) arn: String,
    pub(crate) execution: String,
    pub(crate) machine: String,
    pub(crate) start_ms: i64,
    pub(crate) stop_ms: Option<i64>,
    pub(crate) status: Status,
    pub(crate) max_concurrency: usize,
    pub(crate) tolerated_count: u64,
    pub(crate) tolerated_percentage: f64,
    pub(crate) items: usize,
    pub(crate) children: usize,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    /// [`MapRun::started`], which children that it started, or started again, have in [`Parent::attempt`].
    #[serde(default)]
    pub(crate) started: u64,
    #[serde(default, skip_serializing_if = "Redrives::is_none")]
    pub(crate) redrives: Redrives,
}

/// How often an execution or a map run was redriven.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Redrives {
    pub(crate) count: u32,
    /// When it was redriven last.
    pub(crate) last_ms: Option<i64>,
    /// Client tokens of the last redrives of an execution with the time of each, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tokens: Vec<(String, i64)>,
}

impl Redrives {
    pub(crate) fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Counts one more.
    pub(crate) fn add(&mut self, at_ms: i64) {
        self.count += 1;
        self.last_ms = Some(at_ms);
    }
}

/// An activity.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Activity {
    pub(crate) arn: String,
    pub(crate) name: String,
    pub(crate) created_ms: i64,
}

/// Status of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Aborted,
}

impl Status {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Running, "RUNNING"),
        (Self::Succeeded, "SUCCEEDED"),
        (Self::Failed, "FAILED"),
        (Self::TimedOut, "TIMED_OUT"),
        (Self::Aborted, "ABORTED"),
    ];

    /// The name on the wire.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(s, _)| *s)
    }
}

/// An execution, as it was started and as it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Execution {
    pub(crate) arn: String,
    pub(crate) name: String,
    pub(crate) machine: String,
    pub(crate) machine_name: String,
    pub(crate) role: String,
    pub(crate) revision: String,
    /// As the caller wrote it.
    pub(crate) input: String,
    pub(crate) status: Status,
    pub(crate) start_ms: i64,
    pub(crate) stop_ms: Option<i64>,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) cause: Option<String>,
    /// The task that started it, if it was one.
    pub(crate) parent: Option<Parent>,
    /// X-Ray header of the caller, given back by DescribeExecution.
    pub(crate) trace: Option<String>,
    /// An express execution.
    #[serde(default)]
    pub(crate) express: bool,
    /// For a child of a distributed `Map`: the machine of the definition that it runs.
    #[serde(default)]
    pub(crate) processor: Option<usize>,
    /// The map run that it belongs to.
    #[serde(default)]
    pub(crate) map_run: Option<String>,
    #[serde(default, skip_serializing_if = "Redrives::is_none")]
    pub(crate) redrives: Redrives,
}

impl Execution {
    /// The ARN under which the execution is listed: its map run's, or its machine's.
    pub(crate) fn listed_under(&self) -> &str {
        self.map_run.as_deref().unwrap_or(&self.machine)
    }
}

/// The task of another execution that started this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parent {
    pub(crate) execution: u64,
    pub(crate) branch: u32,
    /// Id of the `TaskScheduled` event: tells attempts apart.
    pub(crate) attempt: u64,
    /// Whether the task waits for this execution, so that it dies with its parent.
    pub(crate) waits: bool,
}

/// One thread of control of an execution: the whole of it, a branch of `Parallel`, or an iteration of `Map`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Branch {
    /// The branch that waits for this one, and the place of this one's output in its result.
    pub(crate) parent: Option<(u32, usize)>,
    /// Number of the machine in the definition.
    pub(crate) machine: usize,
    pub(crate) state: String,
    pub(crate) input: Value,
    /// The `Map` item that this iteration runs for.
    pub(crate) item: Option<Value>,
    /// Variables assigned in this scope.
    pub(crate) variables: Map<String, Value>,
    /// The event that the next one follows.
    pub(crate) previous: u64,
    /// Id of the state's `Entered` event, and the id before it.
    pub(crate) entered: u64,
    pub(crate) before: u64,
    pub(crate) entered_ms: i64,
    /// Retries so far, by retrier.
    pub(crate) retries: Vec<u32>,
    pub(crate) phase: Phase,
}

/// What a branch is doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Is to enter its state.
    Enter,
    /// Is to run its state (again, after a retry's delay).
    Run,
    /// A `Wait`, until then.
    Wait { until_ms: i64 },
    /// A retry's delay, until then.
    Backoff { until_ms: i64 },
    /// A task with somebody else.
    Task(Box<TaskPhase>),
    /// A `Parallel` or `Map` whose children run.
    Children(Children),
    /// A distributed `Map` whose children are executions of their own.
    MapRun(Box<MapRun>),
    /// A child that has ended, until all have.
    Done { output: Value },
}

/// A task that waits for an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskPhase {
    /// Id of the scheduling event.
    pub(crate) attempt: u64,
    pub(crate) deadline_ms: Option<i64>,
    pub(crate) timeout_seconds: Option<i64>,
    pub(crate) heartbeat_seconds: Option<i64>,
    pub(crate) heartbeat_ms: Option<i64>,
    /// Secret part of the token, for tasks that end by token.
    pub(crate) nonce: Option<String>,
    pub(crate) awaited: Awaited,
}

/// Whose answer a task waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Awaited {
    /// A function's result. Invoked again if the process died meanwhile.
    Function {
        name: String,
        payload: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<Box<InvokeSettings>>,
    },
    /// A function that passes the token on, and then the token.
    FunctionThenToken {
        name: String,
        payload: Value,
        submitted: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<Box<InvokeSettings>>,
    },
    /// An activity worker.
    Worker {
        activity: String,
        input: Value,
        started: bool,
        /// Who took it, by the name that it gave.
        #[serde(default)]
        worker: Option<String>,
    },
    /// Another execution: its start, and its end if `waits`.
    Child {
        machine: String,
        name: String,
        input: String,
        waits: bool,
        child: Option<u64>,
    },
    /// The token alone: the start has been answered.
    Token,
    /// An action of a service: its answer, or where it is a job that the task waits for, first the answer
    /// to its submission and then its end.
    Service {
        call: ServiceCall,
        submitted: Option<Value>,
    },
}

/// A distributed `Map` under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MapRun {
    /// The branch that it belongs to.
    pub(crate) branch: u32,
    pub(crate) arn: String,
    /// Id of the event that it began with or was redriven with, which tells runs of one branch apart.
    pub(crate) started: u64,
    pub(crate) start_ms: i64,
    /// Inputs of the children; `None` while they are being read.
    pub(crate) inputs: Option<Vec<Value>>,
    /// Items in the inputs, which batches hold several of.
    pub(crate) items: usize,
    pub(crate) max_concurrency: usize,
    pub(crate) tolerated_count: Option<u64>,
    pub(crate) tolerated_percentage: Option<f64>,
    /// The results are being written to where the definition says.
    pub(crate) writing: bool,
    #[serde(default, skip_serializing_if = "Redrives::is_none")]
    pub(crate) redrives: Redrives,
}

/// What a `Parallel` or `Map` keeps while its children run. How far they are is seen from the children.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Children {
    /// Inputs of a `Map`'s iterations; empty for `Parallel`.
    pub(crate) items: Vec<Value>,
    /// How many children there will be.
    pub(crate) total: usize,
    pub(crate) max_concurrency: usize,
}
