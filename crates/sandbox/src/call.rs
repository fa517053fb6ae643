//! The log of recent calls.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

/// Calls remembered at most.
const MOST: usize = 10_000;
/// Longest operation name that is remembered whole, bytes.
const LONGEST: usize = 100;

/// A call to one of the account's APIs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Signing name of the service: `ecs`, `ecr`, `elasticloadbalancing`, `application-autoscaling`, `lambda`, `sts`.
    pub service: &'static str,
    /// Operation, such as `UpdateService`.
    pub operation: String,
    /// ARN of the caller; empty when the credentials were refused.
    pub principal: String,
    /// When it came.
    pub at: Timestamp,
    /// Code of the error that was answered, if one was.
    pub error: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct CallLog(Mutex<VecDeque<Call>>);

impl CallLog {
    pub(crate) fn push(&self, mut call: Call) {
        if call.operation.len() > LONGEST {
            call.operation = call.operation.chars().take(LONGEST / 4).collect();
        }
        let mut calls = self.lock();
        if calls.len() == MOST {
            calls.pop_front();
        }
        calls.push_back(call);
    }

    pub(crate) fn list(&self) -> Vec<Call> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
