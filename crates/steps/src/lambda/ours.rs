//! What the attempts of a release made of a function, to know what somebody else made of it
//! ([`crate::deployment::Foreign`]).

use std::collections::BTreeSet;

use serde_json::Value;

use super::function::Standing;
use super::release::{Phase, State};
use super::restore::digest;
use super::snapshot::Before;

/// The code and the configurations that a run put there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ours {
    /// Digests of code.
    code: BTreeSet<String>,
    /// Digests of configurations.
    configurations: BTreeSet<String>,
    /// Whether an attempt was cut off while it changed the code: what it put there is not known.
    code_unheard: bool,
    /// The same of the configuration.
    configuration_unheard: bool,
}

impl Ours {
    pub(super) fn of(attempts: &[State]) -> Self {
        let mut ours = Self::default();
        for state in attempts {
            let heard = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            ours.code.extend(heard(&state.sha256));
            ours.configurations.extend(heard(&state.configured));
            ours.code_unheard |= matches!(state.phase, Phase::Create | Phase::Code);
            ours.configuration_unheard |= matches!(state.phase, Phase::Create | Phase::Configure);
        }
        ours
    }

    /// What of a function is somebody else's, as a clause.
    pub(super) fn other(&self, now: &Value, before: Option<&Before>) -> Option<String> {
        let code = self.other_code(now, before);
        code.or_else(|| self.other_configuration(now))
    }

    /// The same of its code.
    pub(super) fn other_code(&self, now: &Value, before: Option<&Before>) -> Option<String> {
        let code = now["CodeSha256"].as_str().unwrap_or_default();
        let known = self.code_unheard
            || self.code.contains(code)
            || before.is_some_and(|before| before.sha256 == code);
        (!known).then(|| format!("its code has the digest {code}"))
    }

    /// The same of its configuration, where this run came to changing it. One that failed is brought back by AWS in part.
    pub(super) fn other_configuration(&self, now: &Value) -> Option<String> {
        let known = self.configuration_unheard
            || Standing::of(now) != Standing::Settled
            || self.configurations.contains(&digest(now));
        (!known).then(|| "it has another configuration".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(phase: Phase, sha256: &str, configuration: Option<&Value>) -> State {
        let mut state = State::default();
        state.phase = phase;
        sha256.clone_into(&mut state.sha256);
        state.configured = configuration.map(digest).unwrap_or_default();
        state
    }

    #[test]
    fn code_and_configuration_of_any_attempt_are_ours() {
        let now = |code: &str, timeout: i64| json!({"CodeSha256": code, "Timeout": timeout, "State": "Active"});
        let put = now("a", 5);
        let ours = Ours::of(&[
            state(Phase::Publish, "a", Some(&put)),
            state(Phase::CodeWait, "b", None),
        ]);
        assert_eq!(ours.other(&now("a", 5), None), None);
        assert_eq!(ours.other(&now("b", 5), None), None);
        assert_eq!(
            ours.other(&now("c", 5), None).as_deref(),
            Some("its code has the digest c")
        );
        assert_eq!(
            ours.other(&now("a", 6), None).as_deref(),
            Some("it has another configuration")
        );
        // Cut off while it changed something, it may be the one who did.
        let cut = Ours::of(&[state(Phase::Code, "", None)]);
        assert_eq!(cut.other_code(&now("c", 5), None), None);
        let cut = Ours::of(&[state(Phase::Configure, "a", None)]);
        assert_eq!(cut.other(&now("a", 6), None), None);
    }
}
