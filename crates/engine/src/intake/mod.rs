//! Intake: what happens outside starts runs, once each.
//!
//! A [`Happening`] is accepted ([`accept`]) under an id that is made of what happened, before anybody is answered. It is
//! handled later ([`handle`](handle::handle)): the triggers that listen decide, and each that fires starts a run whose id is made of the
//! event and the trigger. So all of it may be repeated, by whoever was interrupted and by [`sweep`](sweep::sweep), which also looks
//! at what has a time. What became of an event is in the history of each trigger that it was for.

pub mod again;
pub mod aws;
mod errand;
mod files;
pub mod fire;
pub mod handle;
pub mod handler;
pub mod hook;
pub mod listen;
pub mod narrow;
pub mod owner;
pub mod poll;
mod pull;
mod repeated;
pub mod sweep;
pub mod url;
mod verdict;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use slipway_model::id::{AccountId, RunId, Scope};
use slipway_store::record::{EventRecord, FirstEvent, RunRecord};
use slipway_store::{Accept, TriggerPlace};
use slipway_trigger::Event;
use slipway_trigger::feed::Build;

use self::handler::Handler;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::runs::Runs;

/// Events that happened longer ago start nothing: whoever sends one plays an old one again, and what was kept of it to
/// tell may be gone.
pub const OLDEST_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// Something that happened and may start runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Happening {
    /// A webhook was called.
    Webhook {
        /// What it told.
        event: Box<Event>,
        /// The only trigger that it is for; all that listen where it is `None`.
        to: Option<TriggerPlace>,
        /// The projects whose triggers may fire, where the URL named one.
        within: Option<Scope>,
        /// The secrets that the delivery was signed with, by [`secret_key`].
        signed: Vec<String>,
        /// Whether a person who may start runs sent it: it needs no signature, and is not too old for what came before.
        #[serde(default)]
        by_hand: bool,
    },
    /// The time of a schedule came.
    Scheduled {
        /// Its trigger.
        to: TriggerPlace,
        /// The time, epoch milliseconds.
        at_ms: i64,
    },
    /// A registry has a new version.
    Feed {
        /// The key of its feed.
        feed: String,
        /// The version.
        build: Build,
        /// When the feed was asked before, epoch milliseconds: triggers that joined later do not hear of it.
        #[serde(default)]
        after_ms: Option<i64>,
    },
    /// A run of a pipeline ended.
    PipelineEnded {
        /// The run.
        run: RunId,
    },
}

/// How a trigger's secret is called in [`Happening::Webhook`]: unlike that of any other secret.
pub fn secret_key(scope: &Scope, reference: &str) -> String {
    let (scope, id) = scope.resolve(reference);
    let part = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let org = part(scope.org.as_ref().map(|it| it.as_str()));
    let project = part(scope.project.as_ref().map(|it| it.as_str()));
    format!("{}/{org}/{project}/{id}", scope.account)
}

/// What was offered, before it is accepted.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The account that it is for.
    pub account: AccountId,
    /// What happened.
    pub happening: Happening,
    /// The sender's id of the delivery.
    pub delivery: Option<String>,
    /// What was sent, for its digest.
    pub body: Vec<u8>,
}

/// Keeps what happened, once. Answers with the event, and whether it is new or was known.
///
/// One happening may be told by several senders: two webhooks of a repository, or a stranger. A delivery that is signed with
/// a secret, or came by the URL of a project, that those before had not, is an event of its own, so that the triggers fire
/// that want it. Each fires once ([`run_of`]).
///
/// # Errors
/// When the store cannot be written: the sender must try again.
pub async fn accept(runs: &Runs, offer: Offer) -> Result<(EventRecord, Accept), RunError> {
    let (record, accepted) = match repeated::of(&offer, runs.clock.now_ms()) {
        Some(moved) => repeated::accept(runs, offer, moved).await?,
        None => {
            let record = offered(runs, offer)?;
            let accepted = runs.store.accept_event(&record).await;
            let accepted = accepted.doing(|| format!("keep event {}", record.id))?;
            (record, accepted)
        }
    };
    let Accept::Known(first) = &accepted else {
        return Ok((record, accepted));
    };
    let Some(record) = beyond(runs, first, &record).await? else {
        return Ok((record, accepted));
    };
    let accepted = runs.store.accept_event(&record).await;
    let accepted = accepted.doing(|| format!("keep event {}", record.id))?;
    Ok((record, accepted))
}

/// The event that a delivery of a known happening makes, where it may let triggers fire that the first could not.
async fn beyond(
    runs: &Runs,
    first: &str,
    offered: &EventRecord,
) -> Result<Option<EventRecord>, RunError> {
    let found = runs.store.find_event(first).await;
    let Some(first) = found.doing(|| format!("read event {first}"))? else {
        return Ok(None);
    };
    let (
        Happening::Webhook {
            signed: known,
            within: reached,
            ..
        },
        Happening::Webhook { signed, within, .. },
    ) = (read(&first)?, read(offered)?)
    else {
        return Ok(None);
    };
    let is_reached = match (&reached, &within) {
        (None, _) => true,
        (Some(reached), Some(within)) => handle::holds(reached, within),
        (Some(_), None) => false,
    };
    if is_reached && signed.iter().all(|secret| known.contains(secret)) {
        return Ok(None);
    }
    let mut signed: Vec<&str> = signed.iter().map(String::as_str).collect();
    signed.sort_unstable();
    let reach = within
        .map(|scope| secret_key(&scope, ""))
        .unwrap_or_default();
    let parts: Vec<&str> = [first.id.as_str(), &reach]
        .into_iter()
        .chain(signed)
        .collect();
    Ok(Some(EventRecord {
        id: hex(&digest(&parts)[..16]),
        delivery: None,
        overtaken_by: first.overtaken_by,
        in_ref: first.in_ref,
        first: Some(FirstEvent {
            id: first.id,
            received_ms: first.received_ms,
        }),
        ..offered.clone()
    }))
}

/// What happened as it would be kept.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn offered(runs: &Runs, offer: Offer) -> Result<EventRecord, RunError> {
    let id = id_of(&offer);
    let unreadable = |why: serde_json::Error| {
        let message = format!("event {id} cannot be kept: {why}");
        RunError::refused(ErrorName::InvalidRequest, message)
    };
    Ok(EventRecord {
        body: serde_json::to_value(&offer.happening).map_err(unreadable)?,
        account: offer.account,
        received_ms: runs.clock.now_ms(),
        delivery: offer.delivery,
        digest: hex(&Sha256::digest(&offer.body)),
        id: id.clone(),
        first: None,
        overtaken_by: None,
        in_ref: None,
    })
}

/// The id of what happened: a digest, so that nothing of a payload gets into keys.
fn id_of(offer: &Offer) -> String {
    let (of, to) = match &offer.happening {
        Happening::Webhook { event, to, .. } => {
            let key = event.key.clone().or_else(|| offer.delivery.clone());
            // Without a name for it, each delivery is a happening of its own.
            let key = key.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
            (
                format!("webhook\n{}\n{key}", event.provider.name()),
                to.as_ref(),
            )
        }
        Happening::Scheduled { to, at_ms } => (format!("schedule\n{at_ms}"), Some(to)),
        Happening::Feed { feed, build, .. } => (format!("feed\n{feed}\n{}", build.version), None),
        Happening::PipelineEnded { run } => (format!("ended\n{run}"), None),
    };
    let to = to.map(TriggerPlace::key).unwrap_or_default();
    hex(&digest(&[offer.account.as_str(), &of, &to])[..16])
}

/// The event by which the happening of an event was heard of first: its id, and when it came.
pub(crate) fn first_of(event: &EventRecord) -> (&str, i64) {
    match &event.first {
        Some(first) => (&first.id, first.received_ms),
        None => (&event.id, event.received_ms),
    }
}

/// The id of the run that an event starts by a trigger: the same whenever it is asked for, and by whichever event of the
/// same happening.
pub(crate) fn run_of(event: &EventRecord, place: &TriggerPlace) -> RunId {
    let (first, received_ms) = first_of(event);
    let digest = digest(&[first, &place.key()]);
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    let at = u64::try_from(received_ms).unwrap_or(0);
    let id = uuid::Builder::from_unix_timestamp_millis(at, &random).into_uuid();
    RunId::new(id.to_string())
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Tells the triggers that wait for the end of a run, where there are any: at once, or where that fails at the next sweep.
pub(crate) async fn tell_ended(
    runs: &Runs,
    run: &RunRecord,
    handler: &Handler,
) -> Result<(), RunError> {
    let account = &run.scope.account;
    let source = listen::of_project(&run.scope);
    let listed = runs.store.listeners(account, &source).await;
    let listed = listed.doing(|| format!("list the triggers on the end of run {}", run.id))?;
    if listed.is_empty() {
        return Ok(());
    }
    let offer = Offer {
        account: account.clone(),
        happening: Happening::PipelineEnded {
            run: run.id.clone(),
        },
        delivery: None,
        body: Vec::new(),
    };
    // Also where it is known: whoever accepted it may have died before this.
    let (event, _) = accept(runs, offer).await?;
    handler.wake(&event.id).await;
    Ok(())
}

/// Reads what happened.
pub(crate) fn read(event: &EventRecord) -> Result<Happening, RunError> {
    Happening::deserialize(&event.body).map_err(|why| {
        let message = format!("event {} cannot be read: {why}", event.id);
        RunError::refused(ErrorName::StoreUnreadable, message)
    })
}

/// What `<+trigger.…>` stands for in a run that a schedule starts.
pub(crate) fn facts_of_schedule(at_ms: i64) -> Value {
    serde_json::json!({"type": "Scheduled", "scheduledTime": at_ms})
}
