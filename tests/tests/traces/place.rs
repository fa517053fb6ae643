//! Where a story plays: in virtual time, or in a real process.

use async_trait::async_trait;
use serde_json::Value;

/// A request to the REST API.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
}

impl Call {
    pub(crate) fn get(path: String) -> Self {
        Self {
            method: "GET",
            path,
            body: None,
        }
    }

    pub(crate) fn put(path: String) -> Self {
        Self {
            method: "PUT",
            path,
            body: None,
        }
    }

    pub(crate) fn post(path: String, body: Option<Value>) -> Self {
        Self {
            method: "POST",
            path,
            body,
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// An earlier try of it found nobody, or its answer was lost: it may have been carried out before.
    pub(crate) again: bool,
}

/// A place.
#[async_trait(?Send)]
pub(crate) trait Place {
    /// Asks until there is an answer. A request that is not `repeated` is given up when its answer is lost: the answer
    /// has status 0.
    async fn call(&self, who: &str, call: &Call, repeated: bool) -> Answer;

    /// Calls ECS in the account that is deployed to.
    async fn ecs(&self, operation: &str, body: &Value) -> Value;

    /// Lets a little time pass before the next look.
    async fn pass(&self);

    /// The time, in epoch milliseconds.
    fn now_ms(&self) -> i64;

    /// The moment before somebody says something, which was waited for.
    async fn about_to_say(&self) {}

    /// The moment after it.
    async fn has_said(&self) {}

    /// The moment that the story names for a kill.
    async fn kill(&self) {}

    /// Whether kills that the story names happen here.
    fn kills(&self) -> bool {
        false
    }
}
