//! What people say to an approval.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_engine::user_group::email;
use slipway_model::id::{NodeId, PrincipalId};
use slipway_store::record::SignalRecord;

use super::KIND;
use super::spec::Approval;

/// Longest comment, in characters.
const LONGEST_COMMENT: usize = 4_096;

/// Approve or reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Yes.
    #[serde(rename = "APPROVE")]
    Approve,
    /// No.
    #[serde(rename = "REJECT")]
    Reject,
}

/// What one person said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Yes or no.
    pub verdict: Verdict,
    /// Why.
    pub comments: String,
    /// The approver inputs.
    pub inputs: Map<String, Value>,
    /// Who. Known from the signal.
    #[serde(skip)]
    pub who: String,
    /// When, in epoch milliseconds. Known from the signal.
    #[serde(skip)]
    pub at_ms: i64,
}

/// Why somebody's word does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They may not say it.
    NotAllowed(String),
    /// What they said is wrong.
    Invalid(String),
}

impl Activity {
    pub(super) fn told(&self) -> String {
        match self.comments.as_str() {
            "" => format!("It was rejected by {}.", self.who),
            comments => format!("It was rejected by {}: {comments}", self.who),
        }
    }

    /// As expressions and clients read it.
    pub fn shown(&self) -> Value {
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        json!({
            "user": {"name": self.who, "email": email(&PrincipalId::new(self.who.as_str()))},
            "action": self.verdict,
            "comments": self.comments,
            "approverInputs": inputs,
            "approvedAt": self.at_ms,
        })
    }
}

/// What was said to an attempt of an approval, oldest first.
pub fn activities(signals: &[SignalRecord], node: &NodeId, attempt: u32) -> Vec<Activity> {
    let of_this = |signal: &&SignalRecord| {
        signal.node == *node && signal.attempt == attempt && signal.kind.starts_with(KIND)
    };
    let said = signals.iter().filter(of_this).filter_map(|signal| {
        let read: Activity = serde_json::from_str(&signal.says).ok()?;
        Some(Activity {
            who: signal.who.to_string(),
            at_ms: signal.at_ms,
            ..read
        })
    });
    said.collect()
}

/// Which of these words, oldest first, decides an approval that wants `count` people: the first that rejects, or the
/// approval that makes enough. What is said after it does not count, whoever was about to say it.
pub fn deciding(said: &[Activity], count: usize) -> Option<usize> {
    let rejects = said.iter().position(|one| one.verdict == Verdict::Reject);
    let enough = count.max(1) - 1;
    match rejects {
        Some(at) if at <= enough => Some(at),
        _ => (said.len() > enough).then_some(enough),
    }
}

/// Decides whether somebody's word counts, and what it is then.
///
/// # Errors
/// Why it does not.
pub fn admit(
    approval: &Approval,
    executor: &str,
    who: &str,
    verdict: Verdict,
    comments: &str,
    given: &IndexMap<String, String>,
) -> Result<Activity, Refusal> {
    if approval.bars_executor() && who == executor {
        let message = format!("{who} started the run, and this approval is for others to give");
        return Err(Refusal::NotAllowed(message));
    }
    if approval.bars(who) {
        return Err(Refusal::NotAllowed(format!(
            "{who} may not answer this approval"
        )));
    }
    if comments.chars().count() > LONGEST_COMMENT {
        let message = format!("the comment is longer than {LONGEST_COMMENT} characters");
        return Err(Refusal::Invalid(message));
    }
    let inputs = match verdict {
        Verdict::Reject => Map::new(),
        Verdict::Approve => approval.filled(given).map_err(|faults| {
            Refusal::Invalid(format!("approver inputs: {}", faults.join("; ")))
        })?,
    };
    Ok(Activity {
        verdict,
        comments: comments.to_owned(),
        inputs,
        who: who.to_owned(),
        at_ms: 0,
    })
}
