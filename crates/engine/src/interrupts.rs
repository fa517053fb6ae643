//! What people said about a run that goes on, as its nodes show it afterwards (`interruptHistories`): pauses, aborts, words
//! that stopped an attempt, answers to failures.

use slipway_model::id::{NodeId, PrincipalId};
use slipway_model::status::Status;
use slipway_store::record::{NodeRecord, RunRecord, SignalRecord};

use crate::abort::FAILURE_STRATEGY;
use crate::begin::stage_node;
use crate::signal::{ANSWER, PAUSE, STOP};
use crate::stage_word::{ABORT, GIVE_UP};

/// Where what is said about the whole run is shown.
pub const WHOLE: &str = "pipeline";

/// A word that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The step, the stage as `stages.<id>`, or [`WHOLE`].
    pub node: NodeId,
    /// Which attempt of it, or the number of a pause.
    pub attempt: u32,
    /// What, as the API spells it: `ABORT_ALL`, `USER_MARKED_FAILURE`, ….
    pub kind: String,
    /// Who said it; `None` where a failure strategy did.
    pub who: Option<PrincipalId>,
    /// When it took effect, in epoch milliseconds.
    pub at_ms: i64,
}

/// The interrupts of a run, oldest first. `nodes` are its attempts, as many as are known.
pub fn of_run(run: &RunRecord, nodes: &[NodeRecord]) -> Vec<Interrupt> {
    let mut found: Vec<Interrupt> = run
        .signals
        .iter()
        .filter_map(|signal| of_signal(signal, nodes))
        .collect();
    let abort = run.abort.as_ref();
    if let Some((who, said_ms)) = abort {
        found.push(interrupt(
            (NodeId::new(WHOLE), 0),
            "ABORT_ALL",
            who,
            *said_ms,
        ));
    }
    for node in nodes.iter().filter(|node| node.status == Status::Aborted) {
        let ended_ms = node.ended_ms.unwrap_or(node.started_ms);
        let stage = stage_node(&node.stage);
        let mut signals = run.signals.iter();
        let of_stage = signals.find(|signal| signal.kind == ABORT && signal.node == stage);
        let of_stage = of_stage.map(|signal| (&signal.who, signal.at_ms));
        let of_run = abort.map(|(who, at_ms)| (who, *at_ms));
        let said = of_stage.into_iter().chain(of_run);
        if let Some((who, _)) = said.min_by_key(|(_, at_ms)| *at_ms) {
            let of = (node.id.clone(), node.attempt);
            found.push(interrupt(of, "ABORT_ALL", who, ended_ms));
        }
    }
    found.sort_by_key(|one| one.at_ms);
    found
}

fn interrupt(
    (node, attempt): (NodeId, u32),
    kind: &str,
    who: &PrincipalId,
    at_ms: i64,
) -> Interrupt {
    Interrupt {
        node,
        attempt,
        kind: kind.to_owned(),
        who: (who.as_str() != FAILURE_STRATEGY).then(|| who.clone()),
        at_ms,
    }
}

fn of_signal(signal: &SignalRecord, nodes: &[NodeRecord]) -> Option<Interrupt> {
    let says = signal.says.as_str();
    let kind = match (signal.kind.as_str(), says) {
        (PAUSE, "pause") => "PAUSE_ALL".to_owned(),
        (PAUSE, _) => "RESUME_ALL".to_owned(),
        (ABORT, _) => "ABORT_ALL".to_owned(),
        (STOP | GIVE_UP, "expire") => "EXPIRE_ALL".to_owned(),
        (STOP, "rollback") => "STAGE_ROLLBACK".to_owned(),
        (STOP, _) => "USER_MARKED_FAILURE".to_owned(),
        (GIVE_UP, _) => "USER_MARKED_FAIL_ALL".to_owned(),
        (ANSWER, action) => in_capitals(action),
        _ => return None,
    };
    let node = match signal.kind.as_str() {
        PAUSE => NodeId::new(WHOLE),
        _ => signal.node.clone(),
    };
    // What stops a step has stopped it when it ends; an answer counts from when it is given.
    let mut stopped = nodes.iter().filter(|known| {
        signal.kind == STOP && known.id == signal.node && known.attempt == signal.attempt
    });
    let ended_ms = stopped.find_map(|known| known.ended_ms);
    let at_ms = ended_ms.unwrap_or(signal.at_ms).max(signal.at_ms);
    Some(interrupt((node, signal.attempt), &kind, &signal.who, at_ms))
}

/// `MarkAsSuccess` as `MARK_AS_SUCCESS`.
fn in_capitals(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for (index, letter) in name.chars().enumerate() {
        if index > 0 && letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::in_capitals;

    #[test]
    fn answers_are_spelt_as_other_interrupts() {
        let names = ["Retry", "MarkAsSuccess", "StepGroupRollback", ""];
        let told = names.map(in_capitals);
        assert_eq!(
            told,
            ["RETRY", "MARK_AS_SUCCESS", "STEP_GROUP_ROLLBACK", ""]
        );
    }
}
