//! What freezes tell of by themselves, outside of runs: that a person enabled one, that a window of it has opened, and
//! that it kept a trigger from starting a run (developer-hub, *Freeze deployments*, "Notify users of freeze window
//! events").
//!
//! As with runs, each message is an execution of the machine `notify`, named by what it tells. A window that opens later
//! is watched by one more execution, which waits until then, tells of it, and starts the watch for the next window. All
//! of them know which save of the freeze they are about: a newer one has watches of its own.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_model::entity;
use slipway_model::id::{EntityId, PrincipalId, Scope};
use slipway_store::record::EntityRecord;

use super::receivers;
use crate::error::{Doing, RunError};
use crate::freeze::{Freeze, Occurrence, notification_rules};
use crate::name;
use crate::runs::Runs;

/// Longest that a watch waits in one execution, in milliseconds: 300 days, as Step Functions ends every execution after a
/// year (*Service quotas*).
const LONGEST_WATCH_MS: i64 = 300 * 24 * 3_600_000;

/// A freeze as it was saved at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedFreeze {
    /// Where it lives.
    pub scope: Scope,
    /// The freeze.
    pub freeze_id: EntityId,
    /// When it was saved, in milliseconds since the start of 1970: `updated_ms` of its record.
    pub saved_ms: i64,
}

/// What happened. The names are those of `notificationRules[].events[].type`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all_fields = "camelCase")]
pub enum FreezeEvent {
    /// A person enabled it.
    OnEnableFreezeWindow {
        /// Who.
        who: PrincipalId,
    },
    /// A window opened while it was enabled, or was open when it was enabled.
    FreezeWindowEnabled {
        /// When the window opened, in milliseconds since the start of 1970.
        starts_ms: i64,
        /// First millisecond after it.
        ends_ms: i64,
    },
    /// It kept a run from being accepted that no person asked for.
    TriggerInvocationRejectedDueToFreeze {
        /// The pipeline.
        pipeline: EntityId,
        /// What asked for the run: `WEBHOOK_CUSTOM`, ….
        trigger: String,
        /// On whose behalf.
        who: PrincipalId,
        /// When, in milliseconds since the start of 1970.
        at_ms: i64,
        /// What was said to whoever asked.
        message: String,
    },
}

/// One message of a rule of a freeze about one event to one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FreezeNotice {
    /// The freeze.
    #[serde(flatten)]
    pub freeze: SavedFreeze,
    /// The rule: its place in the freeze, from 0.
    pub rule: usize,
    /// The receiver: its place in the rule, from 0.
    pub receiver: usize,
    /// What happened.
    #[serde(flatten)]
    pub event: FreezeEvent,
}

/// Waits for the next window of a freeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FreezeWatch {
    /// The freeze.
    #[serde(flatten)]
    pub freeze: SavedFreeze,
    /// Always true: by it the machine knows that it waits.
    pub watch: bool,
    /// When to look. The machine waits until then.
    pub until: Timestamp,
    /// Windows that opened up to here are told, or are not to be told.
    pub after: Timestamp,
}

impl FreezeEvent {
    /// The name of its type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OnEnableFreezeWindow { .. } => "OnEnableFreezeWindow",
            Self::FreezeWindowEnabled { .. } => "FreezeWindowEnabled",
            Self::TriggerInvocationRejectedDueToFreeze { .. } => {
                "TriggerInvocationRejectedDueToFreeze"
            }
        }
    }

    /// Whether a rule that names `wish` tells of it. A trigger that is rejected is a deployment that is.
    fn is_meant_by(&self, wish: &str) -> bool {
        let also = match self {
            Self::TriggerInvocationRejectedDueToFreeze { .. } => "DeploymentRejectedDueToFreeze",
            _ => self.name(),
        };
        wish == self.name() || wish == also
    }

    /// What tells it from others of its type about the same save of a freeze.
    fn occurrence(&self) -> String {
        match self {
            Self::OnEnableFreezeWindow { .. } => String::new(),
            Self::FreezeWindowEnabled { starts_ms, .. } => format!("-{starts_ms}"),
            Self::TriggerInvocationRejectedDueToFreeze {
                pipeline, at_ms, ..
            } => format!("-{pipeline}-{at_ms}"),
        }
    }
}

impl SavedFreeze {
    /// The freeze of a record.
    pub fn of(record: &EntityRecord) -> Self {
        Self {
            scope: record.scope.clone(),
            freeze_id: record.id.clone(),
            saved_ms: record.updated_ms,
        }
    }

    /// The name of an execution about it.
    fn execution(&self, what: &str) -> String {
        let level = |id: Option<&str>| id.unwrap_or("-").to_owned();
        let scope = [
            self.scope.account.as_str().to_owned(),
            level(self.scope.org.as_ref().map(|id| id.as_str())),
            level(self.scope.project.as_ref().map(|id| id.as_str())),
        ];
        let (freeze, saved) = (&self.freeze_id, self.saved_ms);
        name::freeze_execution(&format!("{}/{freeze}/{saved}/{what}", scope.join("/")))
    }
}

impl FreezeNotice {
    /// Name of its execution: the same for the same notice, and its id for receivers.
    pub fn id(&self) -> String {
        let (event, what) = (self.event.name(), self.event.occurrence());
        let (rule, receiver) = (self.rule, self.receiver);
        let told = format!("{event}-{rule}-{receiver}{what}");
        self.freeze.execution(&told)
    }
}

impl FreezeWatch {
    fn id(&self) -> String {
        let until = self.until.as_millisecond();
        self.freeze.execution(&format!("watch-{until}"))
    }
}

/// What a watch finds when its time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// What is to be told now.
    pub notices: Vec<FreezeNotice>,
    /// The next watch, where a window comes.
    pub next: Option<FreezeWatch>,
}

/// A record whose freeze is enabled, and what it says; `None` for others, and for what cannot be read: nobody knows when
/// its windows open.
fn enabled(record: &EntityRecord) -> Option<Freeze> {
    let parsed = entity::parse(record.id.as_str(), &record.yaml).ok()?;
    let body = parsed.to_json();
    let on = body.get("status").and_then(Value::as_str) == Some("Enabled");
    let freeze = on.then(|| Freeze::read(record.id.as_str(), &body).ok());
    freeze.flatten()
}

/// Whether a stored freeze is enabled.
pub fn is_enabled(record: &EntityRecord) -> bool {
    enabled(record).is_some()
}

/// The notices of an event by the rules of a freeze.
fn notices(record: &EntityRecord, event: &FreezeEvent) -> Vec<FreezeNotice> {
    let mut all = Vec::new();
    for (rule, plan) in notification_rules(record).iter().enumerate() {
        let mut wishes = plan.events.iter();
        if !plan.enabled || !wishes.any(|wish| event.is_meant_by(&wish.kind)) {
            continue;
        }
        all.extend((0..receivers(plan)).map(|receiver| FreezeNotice {
            freeze: SavedFreeze::of(record),
            rule,
            receiver,
            event: event.clone(),
        }));
    }
    all
}

/// Looks at the windows of a freeze when a watch is over. A freeze that was saved anew, disabled or deleted meanwhile has
/// nothing to tell, and neither has a window that is over.
pub fn look(watch: &FreezeWatch, stored: Option<&EntityRecord>, now: Timestamp) -> Looked {
    let nothing = Looked {
        notices: Vec::new(),
        next: None,
    };
    let stored = stored.filter(|record| SavedFreeze::of(record) == watch.freeze);
    let Some((record, freeze)) = stored.and_then(|record| Some((record, enabled(record)?))) else {
        return nothing;
    };
    // A clock that is behind must not start this watch again.
    let now = now.max(watch.until);
    let open = freeze.open(now).into_iter();
    let opened = open.filter(|window| window.start > watch.after);
    let told = opened.flat_map(|window: Occurrence| {
        let event = FreezeEvent::FreezeWindowEnabled {
            starts_ms: window.start.as_millisecond(),
            ends_ms: window.end.as_millisecond(),
        };
        notices(record, &event)
    });
    Looked {
        notices: told.collect(),
        next: next_watch(record, &freeze, now),
    }
}

/// The watch for the next window that opens after `now`, where a rule wants to know.
fn next_watch(record: &EntityRecord, freeze: &Freeze, now: Timestamp) -> Option<FreezeWatch> {
    let wanted = notification_rules(record).iter().any(|rule| {
        let mut wishes = rule.events.iter();
        rule.enabled && wishes.any(|wish| wish.kind == "FreezeWindowEnabled")
    });
    let start = freeze.next_start(now).filter(|_| wanted)?;
    let latest = now.as_millisecond().saturating_add(LONGEST_WATCH_MS);
    let latest = Timestamp::from_millisecond(latest).unwrap_or(Timestamp::MAX);
    Some(FreezeWatch {
        freeze: SavedFreeze::of(record),
        watch: true,
        until: start.min(latest),
        after: now,
    })
}

impl Runs {
    /// Tells that a freeze is being saved: that it was enabled, and of its windows, the one that is open included unless
    /// it was open before. Called before the record is written, as nobody comes back to it afterwards: what tells waits
    /// until it is there. Neither fails nor waits, as [`Runs::tell`].
    pub async fn tell_saved(
        &self,
        before: Option<&EntityRecord>,
        saved: &EntityRecord,
        who: &PrincipalId,
    ) {
        let Some(freeze) = enabled(saved) else {
            return;
        };
        let now = self.clock.now();
        let before = before.and_then(enabled);
        if before.is_none() {
            let event = FreezeEvent::OnEnableFreezeWindow { who: who.clone() };
            self.start_freeze_notices(notices(saved, &event)).await;
        }
        let known: Vec<Occurrence> = before.iter().flat_map(|freeze| freeze.open(now)).collect();
        let opened = freeze.open(now).into_iter();
        let opened = opened.filter(|window| !known.contains(window));
        let told = opened.flat_map(|window| {
            let event = FreezeEvent::FreezeWindowEnabled {
                starts_ms: window.start.as_millisecond(),
                ends_ms: window.end.as_millisecond(),
            };
            notices(saved, &event)
        });
        self.start_freeze_notices(told.collect()).await;
        if let Some(watch) = next_watch(saved, &freeze, now)
            && let Err(error) = self.start_watch(&watch).await
        {
            lost(&watch.freeze, "FreezeWindowEnabled", &error);
        }
    }

    /// Carries out what a watch has found.
    ///
    /// # Errors
    /// When Step Functions cannot be reached: the watch may be repeated.
    pub async fn follow(&self, looked: &Looked) -> Result<(), RunError> {
        if let Some(next) = &looked.next {
            self.start_watch(next).await?;
        }
        for notice in &looked.notices {
            self.start_telling(&notice.id(), notice).await?;
        }
        Ok(())
    }

    /// Tells that freezes kept a trigger from starting a run. Neither fails nor waits.
    pub(crate) async fn tell_rejected(&self, freezes: &[EntityRecord], event: &FreezeEvent) {
        let told = freezes.iter().flat_map(|record| notices(record, event));
        self.start_freeze_notices(told.collect()).await;
    }

    async fn start_freeze_notices(&self, notices: Vec<FreezeNotice>) {
        for notice in notices {
            if let Err(error) = self.start_telling(&notice.id(), &notice).await {
                lost(&notice.freeze, notice.event.name(), &error);
            }
        }
    }

    async fn start_watch(&self, watch: &FreezeWatch) -> Result<(), RunError> {
        self.start_telling(&watch.id(), watch).await
    }

    async fn start_telling(&self, id: &str, input: &impl Serialize) -> Result<(), RunError> {
        match &self.notify_machine {
            Some(machine) => self.start_named(machine, id, input).await,
            None => Ok(()),
        }
    }

    /// The freeze as it is stored now.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn stored_freeze(
        &self,
        freeze: &SavedFreeze,
    ) -> Result<Option<EntityRecord>, RunError> {
        let SavedFreeze {
            scope, freeze_id, ..
        } = freeze;
        let kind = slipway_model::Kind::Freeze.key();
        let found = self.store.find_entity(scope, kind, None, freeze_id).await;
        found.doing(|| format!("read the freeze {freeze_id}"))
    }
}

fn lost(freeze: &SavedFreeze, event: &'static str, error: &RunError) {
    tracing::error!(
        freeze.id = %freeze.freeze_id,
        notification.event = event,
        error = %error.full_text(),
        "a notification is lost: it could not be started"
    );
}

#[cfg(test)]
#[path = "of_freeze_tests.rs"]
mod tests;
