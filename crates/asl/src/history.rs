//! History events: how they are kept, and how `GetExecutionHistory` shows them.
//!
//! Kept as a JSON tuple with the payloads unquoted, which is less than half of the wire form. Types,
//! ids and details follow what Step Functions records (API reference, `HistoryEvent`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Details of an event, by the names of the API; payloads are plain JSON here and text on the wire.
pub(crate) type Details = Map<String, Value>;

/// One history event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event(
    /// Id, from 1 without gaps.
    pub(crate) u64,
    /// Id of the event that led here; 0 for none.
    pub(crate) u64,
    /// Milliseconds since the epoch.
    pub(crate) i64,
    pub(crate) EventType,
    pub(crate) Option<Details>,
);

macro_rules! event_types {
    ($($name:ident),* $(,)?) => {
        /// The event types that this engine records.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) enum EventType { $($name),* }

        impl EventType {
            /// The name on the wire.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

event_types!(
    ActivityFailed,
    ActivityScheduled,
    ActivityStarted,
    ActivitySucceeded,
    ActivityTimedOut,
    ChoiceStateEntered,
    ChoiceStateExited,
    EvaluationFailed,
    ExecutionAborted,
    ExecutionFailed,
    ExecutionRedriven,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionTimedOut,
    FailStateEntered,
    LambdaFunctionFailed,
    LambdaFunctionScheduled,
    LambdaFunctionStarted,
    LambdaFunctionSucceeded,
    LambdaFunctionTimedOut,
    MapIterationAborted,
    MapIterationFailed,
    MapIterationStarted,
    MapIterationSucceeded,
    MapRunAborted,
    MapRunFailed,
    MapRunRedriven,
    MapRunStarted,
    MapRunSucceeded,
    MapStateAborted,
    MapStateEntered,
    MapStateExited,
    MapStateFailed,
    MapStateStarted,
    MapStateSucceeded,
    ParallelStateAborted,
    ParallelStateEntered,
    ParallelStateExited,
    ParallelStateFailed,
    ParallelStateStarted,
    ParallelStateSucceeded,
    PassStateEntered,
    PassStateExited,
    SucceedStateEntered,
    SucceedStateExited,
    TaskFailed,
    TaskScheduled,
    TaskStarted,
    TaskStateAborted,
    TaskStateEntered,
    TaskStateExited,
    TaskSubmitFailed,
    TaskSubmitted,
    TaskSucceeded,
    TaskTimedOut,
    WaitStateAborted,
    WaitStateEntered,
    WaitStateExited,
);

impl EventType {
    /// The member of `HistoryEvent` that holds the details of this type.
    fn details_key(self) -> String {
        let name = self.name();
        if name.ends_with("StateEntered") {
            return "stateEnteredEventDetails".to_owned();
        }
        if name.ends_with("StateExited") {
            return "stateExitedEventDetails".to_owned();
        }
        let mut key = String::with_capacity(name.len() + 12);
        key.push_str(&name[..1].to_ascii_lowercase());
        key.push_str(&name[1..]);
        key.push_str("EventDetails");
        key
    }
}

/// Details whose values are payloads: text on the wire, left out when the caller asks for no data.
const PAYLOADS: [&str; 3] = ["input", "output", "parameters"];

impl Event {
    /// The event as `GetExecutionHistory` gives it. `data` is `includeExecutionData`.
    pub(crate) fn wire(&self, data: bool) -> Value {
        let Self(id, previous, at_ms, kind, details) = self;
        let mut event = json!({
            "timestamp": seconds(*at_ms),
            "type": kind.name(),
            "id": id,
            "previousEventId": previous,
        });
        if let (Some(details), Some(event)) = (details, event.as_object_mut()) {
            event.insert(kind.details_key(), wire_details(details, data));
        }
        event
    }
}

fn wire_details(details: &Details, data: bool) -> Value {
    let mut shown = Map::new();
    for (key, value) in details {
        if PAYLOADS.contains(&key.as_str()) {
            if data {
                shown.insert(key.clone(), Value::String(value.to_string()));
                if key != "parameters" {
                    shown.insert(format!("{key}Details"), json!({"truncated": false}));
                }
            }
        } else if key == "assignedVariables" {
            if let (true, Some(variables)) = (data, value.as_object()) {
                let texts: Map<String, Value> = variables
                    .iter()
                    .map(|(name, value)| (name.clone(), Value::String(value.to_string())))
                    .collect();
                shown.insert(key.clone(), Value::Object(texts));
                shown.insert(format!("{key}Details"), json!({"truncated": false}));
            }
        } else {
            shown.insert(key.clone(), value.clone());
        }
    }
    Value::Object(shown)
}

/// A time as the awsJson protocols write it: seconds since the epoch, with a fraction.
pub(crate) fn seconds(ms: i64) -> Value {
    // Milliseconds of any date that jiff can hold fit the 53 bits of a double exactly.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let seconds = ms as f64 / 1000.0;
    json!(seconds)
}

/// Builds [`Details`] from pairs, without the absent ones.
pub(crate) fn details<const N: usize>(pairs: [(&str, Option<Value>); N]) -> Option<Details> {
    Some(
        pairs
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect(),
    )
}

/// A time as payloads write it: UTC with milliseconds.
pub(crate) fn iso(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
        .unwrap_or_default()
}
