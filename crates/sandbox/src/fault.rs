//! Faults on request: what the account does wrong, to whom, and how often.
//!
//! Faults live in memory only; opening the account again starts without any.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// A fault for calls that match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Signing name of the service: `ecs`, `ecr`, `elasticloadbalancing`, `application-autoscaling`, `lambda`, `sts`. Any when absent.
    #[serde(default)]
    pub service: Option<String>,
    /// Operation, such as `UpdateService`. Any when absent.
    #[serde(default)]
    pub operation: Option<String>,
    /// Matching calls that go through first.
    #[serde(default)]
    pub skip: u32,
    /// Matching calls that are hit then; until removed when absent.
    #[serde(default)]
    pub count: Option<u32>,
    /// What happens to them.
    pub effect: FaultEffect,
}

/// What a fault does to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultEffect {
    /// `ThrottlingException`, "Rate exceeded"; of Lambda `TooManyRequestsException`.
    Throttle,
    /// `AccessDeniedException`.
    AccessDenied,
    /// `AccessDeniedException` by a service control policy of the organization.
    ServiceControlPolicy,
    /// The account is closed: nobody knows the caller.
    AccountClosed,
    /// `SubscriptionRequiredException`; of EC2 `OptInRequired`.
    NotSubscribed,
    /// `ServerException`, HTTP 500.
    ServerError,
    /// `ExpiredTokenException`.
    ExpiredCredentials,
    /// The call is answered later than usual.
    Latency {
        /// By how many milliseconds.
        millis: u64,
    },
    /// The connection is cut instead of an answer.
    Cut {
        /// Whether the call was carried out all the same.
        #[serde(default)]
        after: bool,
    },
}

/// A fault in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActiveFault {
    /// Names the fault to [`Faults::remove`].
    pub id: u64,
    /// The fault, with what is left of its counts.
    pub fault: Fault,
}

/// The faults in force. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    active: Vec<ActiveFault>,
}

impl Faults {
    /// Puts a fault in force; of several that match a call the oldest hits it.
    pub fn add(&self, fault: Fault) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        let id = state.next;
        state.active.push(ActiveFault { id, fault });
        id
    }

    /// Takes a fault back. Says whether there was one.
    pub fn remove(&self, id: u64) -> bool {
        let mut state = self.lock();
        let before = state.active.len();
        state.active.retain(|one| one.id != id);
        state.active.len() < before
    }

    /// Takes all faults back.
    pub fn clear(&self) {
        self.lock().active.clear();
    }

    /// Faults in force, oldest first.
    pub fn list(&self) -> Vec<ActiveFault> {
        self.lock().active.clone()
    }

    /// The effect on a call, which counts as hit.
    pub(crate) fn hit(&self, service: &str, operation: &str) -> Option<FaultEffect> {
        let mut state = self.lock();
        let matches = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        let mut hit = None;
        for one in &mut state.active {
            let fault = &mut one.fault;
            if !matches(&fault.service, service) || !matches(&fault.operation, operation) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            if let Some(count) = &mut fault.count {
                *count = count.saturating_sub(1);
            }
            hit = Some(fault.effect.clone());
            break;
        }
        state.active.retain(|one| one.fault.count != Some(0));
        hit
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_then_hits_then_ends() {
        let faults = Faults::default();
        faults.add(Fault {
            service: Some("ecs".into()),
            operation: Some("UpdateService".into()),
            skip: 1,
            count: Some(2),
            effect: FaultEffect::Throttle,
        });
        let hits: Vec<bool> = ["UpdateService", "ListTasks", "UpdateService"]
            .into_iter()
            .chain(["UpdateService", "UpdateService"])
            .map(|operation| faults.hit("ecs", operation).is_some())
            .collect();
        assert_eq!(hits, [false, false, true, true, false]);
        assert!(faults.list().is_empty());
    }
}
