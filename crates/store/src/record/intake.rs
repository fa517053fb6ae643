//! What is kept of events that may start runs, and of what came of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::id::{AccountId, RunId};

use crate::intake::TriggerPlace;

/// Something that happened and may start runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Made of what happened: two deliveries of one happening have one id.
    pub id: String,
    /// The account that it is for.
    pub account: AccountId,
    /// When it came, epoch milliseconds.
    pub received_ms: i64,
    /// The sender's id of the delivery.
    pub delivery: Option<String>,
    /// Digest of the body as it was sent.
    pub digest: String,
    /// The event of the same happening that came first, where this one lets triggers fire that could not by that one.
    #[serde(default)]
    pub first: Option<FirstEvent>,
    /// The event of the same ref that is about a later state of it and came before this one, where nobody says when they
    /// happened and it is known.
    #[serde(default)]
    pub overtaken_by: Option<String>,
    /// Its place among those of its ref, where nobody says when they happened and it was the last of them when it came.
    #[serde(default)]
    pub in_ref: Option<InRef>,
    /// What happened; `slipway_engine::intake` knows its form.
    pub body: Value,
}

/// The place of an event among those that moved a ref, in the order in which they were accepted: clocks of functions differ,
/// and two may come in one millisecond.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InRef {
    /// As [`RefMove::of`](crate::RefMove::of).
    pub of: String,
    /// From 1.
    pub number: u64,
}

/// The event by which a happening was heard of first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstEvent {
    /// Its id.
    pub id: String,
    /// When it came, epoch milliseconds.
    pub received_ms: i64,
}

/// What became of an event for a trigger: a row of the trigger's event history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeRecord {
    /// The trigger.
    pub place: TriggerPlace,
    /// The event.
    pub event: String,
    /// When the event came, epoch milliseconds.
    pub received_ms: i64,
    /// When this was decided, epoch milliseconds.
    pub decided_ms: i64,
    /// The source's type: `Webhook`, `Scheduled`, ….
    pub source: String,
    /// `finalStatus` as the API spells it.
    pub status: String,
    /// Why, for people.
    pub message: String,
    /// The run that was started.
    pub run: Option<RunId>,
    /// The runtime inputs that the run was given, or would have been.
    #[serde(default)]
    pub inputs: Option<String>,
}

/// The newest happening of a ref that a trigger took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewestRecord {
    /// The event.
    pub event: String,
    /// When it happened, epoch milliseconds, where the sender says.
    pub happened_ms: Option<i64>,
    /// What its newest commit says of its own time, epoch milliseconds, where the sender does not say when it happened.
    #[serde(default)]
    pub committed_ms: Option<i64>,
    /// As [`EventRecord::overtaken_by`].
    #[serde(default)]
    pub overtaken_by: Option<String>,
    /// As [`EventRecord::in_ref`].
    #[serde(default)]
    pub in_ref: Option<InRef>,
    /// When it came, epoch milliseconds.
    #[serde(default)]
    pub received_ms: i64,
    /// What the ref pointed at after it.
    pub commit: Option<String>,
    /// What the ref pointed at before it.
    pub base: Option<String>,
    /// The run that it starts.
    pub run: RunId,
    /// The run of the one that it took the place of.
    #[serde(default)]
    pub replaces: Option<RunId>,
}

impl NewestRecord {
    /// Takes over what is known of the state from the one before, where this one tells of none.
    pub(crate) fn follow(&mut self, before: &Self) {
        if self.happened_ms.is_none() && self.commit.is_none() && self.base.is_none() {
            self.happened_ms = before.happened_ms;
            self.committed_ms = before.committed_ms;
            self.commit.clone_from(&before.commit);
            self.base.clone_from(&before.base);
        }
    }

    /// Whether it is about a later state of the ref than `other`, which came after it.
    ///
    /// It is where it happened later, and where nothing says when, where it follows directly on what `other` made, or came
    /// later: what was overtaken on its way is known by [`EventRecord::overtaken_by`].
    pub fn is_newer_than(&self, other: &Self) -> bool {
        if let (Some(own), Some(others)) = (self.happened_ms, other.happened_ms)
            && own != others
        {
            return own > others;
        }
        let follows =
            |later: &Self, earlier: &Self| later.base.is_some() && later.base == earlier.commit;
        match (follows(self, other), follows(other, self)) {
            (true, follows_back) => !follows_back,
            (false, true) => false,
            (false, false) => {
                let dates = self.committed_ms.zip(other.committed_ms);
                let is_later = dates.is_some_and(|(own, others)| own > others);
                match (&self.overtaken_by, &other.overtaken_by) {
                    // Dates are all that is known of what follows on nothing.
                    (_, Some(newer)) => self.event == *newer || is_later,
                    (Some(_), None) => is_later,
                    (None, None) => match (&self.in_ref, &other.in_ref) {
                        (Some(own), Some(others)) if own.of == others.of => {
                            own.number > others.number
                        }
                        _ => self.received_ms > other.received_ms,
                    },
                }
            }
        }
    }
}

/// What a ref pointed at after the last event of it, as far as can be told. Where one was signed, the last that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefRecord {
    /// The commit.
    pub commit: String,
    /// What it pointed at before.
    pub base: Option<String>,
    /// What the commit says of its own time, epoch milliseconds.
    pub committed_ms: Option<i64>,
    /// The event.
    pub event: String,
    /// As [`RefMove::signed`](crate::RefMove::signed).
    #[serde(default)]
    pub signed: bool,
    /// [`InRef::number`] of the event.
    #[serde(default)]
    pub number: u64,
}

/// What a feed of artifacts or charts had when it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeedRecord {
    /// Changes with every write.
    #[serde(skip)]
    pub version: u64,
    /// Versions that were seen; `None` before it was asked for the first time.
    pub seen: Option<Vec<String>>,
    /// What the registry wants to be told the next time (an `ETag`).
    #[serde(default)]
    pub state: Option<String>,
    /// When it was last asked with success, epoch milliseconds.
    #[serde(default)]
    pub asked_ms: Option<i64>,
    /// How often asking failed since.
    #[serde(default)]
    pub failures: u32,
    /// Why it failed the last time.
    #[serde(default)]
    pub why: Option<String>,
    /// The errand of a delegate by which it is asked, of a feed that is a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errand: Option<ErrandRecord>,
}

/// Work of a delegate that no run waits for, as who gave it out knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrandRecord {
    /// Its task, and the name of its execution.
    pub task: String,
    /// When it was given out, epoch milliseconds.
    pub given_ms: i64,
    /// When it is given up, epoch milliseconds.
    pub until_ms: i64,
    /// Whether what came of it is known, or it was given up.
    #[serde(default)]
    pub over: bool,
}

/// What became of registering the webhook of a trigger at its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// How it went.
    pub result: HookResult,
    /// Why, for people, where it is not there. Holds no secret.
    pub message: Option<String>,
    /// When it was tried, epoch milliseconds.
    pub tried_ms: i64,
    /// The repository that has it, as the trigger's connector writes it.
    pub repository: Option<String>,
    /// Where the repository posts to, since the webhook was there for the first time.
    pub url: Option<String>,
}

/// `registrationResult` of Harness's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HookResult {
    /// The repository has it.
    Success,
    /// The provider refuses it.
    Failed,
    /// Nobody could ask the provider.
    Error,
    /// The provider did not answer in time.
    Timeout,
    /// It is for a person to add.
    Unavailable,
}

impl HookResult {
    /// As the API spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
            Self::Error => "ERROR",
            Self::Timeout => "TIMEOUT",
            Self::Unavailable => "UNAVAILABLE",
        }
    }

    /// Whether something went wrong that a person should look at.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Error | Self::Timeout)
    }
}
