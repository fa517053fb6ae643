//! What a schedule does every minute: events that were accepted and not handled, and times that came.

use slipway_store::{AcceptedEvent, Due, Store, TriggerPlace};
use slipway_trigger::Source;

use super::handle::{Starting, give_up, handle, handle_by_id};
use super::listen::{due, find_trigger, next_time, read_trigger, scheduled};
use super::{Happening, Offer, accept, hook};
use crate::error::{Doing, RunError};

/// An event that came so recently may be about to be handled by whoever accepted it.
const UNDER_WAY_MS: i64 = 20_000;

/// Most events of one list that are handled in one go; the next sweep goes on.
const AT_ONCE: usize = 200;

/// After so many failures an event is given up, until a person wants it to be tried again.
const MOST_ATTEMPTS: u32 = 5;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Events that were handled.
    pub handled: usize,
    /// Events that could not be handled and stay listed.
    pub failed: usize,
    /// Events that were given up.
    pub dead: usize,
    /// Times of schedules that came.
    pub due: usize,
    /// Webhooks that were registered at their providers, or refused.
    pub hooks: usize,
}

/// Handles what was left, and accepts an event for each schedule whose time came. Two at once do no harm.
///
/// # Errors
/// When the store cannot be read.
pub async fn sweep(on: Starting<'_>) -> Result<Swept, RunError> {
    let mut swept = Swept::default();
    let (now_ms, mut hooks) = (on.runs.clock.now_ms(), Vec::new());
    for list in 0..Store::INTAKE_LISTS {
        let found = on.runs.store.list_due(list, now_ms).await;
        for due in found.doing(|| "list the schedules whose time came".to_owned())? {
            if let Some(asked) = hook::read(&due) {
                hooks.push((due, asked));
                continue;
            }
            match Box::pin(tick(on, &due)).await {
                Ok(true) => swept.due += 1,
                Ok(false) => {}
                Err(why) => {
                    tracing::warn!(due = due.what, error = %why.full_text(), "a schedule waits for the next sweep");
                }
            }
        }
    }
    for list in 0..Store::INTAKE_LISTS {
        let before_ms = now_ms.saturating_sub(UNDER_WAY_MS);
        let listed = on.runs.store.list_accepted(list, before_ms, AT_ONCE).await;
        for entry in listed.doing(|| "list the events that are not handled".to_owned())? {
            finish(on, &entry, &mut swept).await?;
        }
    }
    // Last: providers may be slow, and nothing that starts runs waits for them.
    swept.hooks = hook::register_all(on, hooks).await;
    Ok(swept)
}

async fn finish(
    on: Starting<'_>,
    entry: &AcceptedEvent,
    swept: &mut Swept,
) -> Result<(), RunError> {
    let store = &on.runs.store;
    let found = store.find_event(&entry.event).await;
    let Some(event) = found.doing(|| format!("read event {}", entry.event))? else {
        return Ok(());
    };
    let Err(why) = Box::pin(handle(on, &event)).await else {
        swept.handled += 1;
        return Ok(());
    };
    let why = why.full_text();
    tracing::warn!(
        event.id = entry.event,
        error = why,
        "an event could not be handled"
    );
    if entry.attempts.saturating_add(1) >= MOST_ATTEMPTS
        && let Err(why) = Box::pin(give_up(on, &event, &why)).await
    {
        let why = why.full_text();
        tracing::warn!(
            event.id = entry.event,
            error = why,
            "no trigger was told that its event is given up"
        );
    }
    let noted = store
        .not_handled(entry, &event.account, &why, MOST_ATTEMPTS)
        .await;
    match noted.doing(|| format!("note that event {} failed", entry.event))? {
        true => swept.dead += 1,
        false => swept.failed += 1,
    }
    Ok(())
}

/// The time of something came; whether it was a schedule's.
async fn tick(on: Starting<'_>, found: &Due) -> Result<bool, RunError> {
    let Some(place) = scheduled(found) else {
        return Ok(false);
    };
    let record = find_trigger(on.runs, &place).await?;
    let trigger = record.and_then(|record| read_trigger(&record).ok());
    let trigger = trigger
        .filter(|trigger| trigger.enabled && matches!(trigger.source, Source::Scheduled { .. }));
    let Some(trigger) = trigger else {
        return forget(on, &place, found).await.map(|()| false);
    };
    let offer = Offer {
        account: place.scope.account.clone(),
        happening: Happening::Scheduled {
            to: place.clone(),
            at_ms: found.at_ms,
        },
        delivery: None,
        body: found.at_ms.to_be_bytes().to_vec(),
    };
    let (event, _) = accept(on.runs, offer).await?;
    match next_time(&trigger, on.runs.clock.now_ms()) {
        Some(at_ms) => {
            let next = due(&place, at_ms)?;
            let moved = on
                .runs
                .store
                .put_due(&place.scope, &next, Some(found.at_ms));
            match moved.await {
                // Another sweep did, or the schedule was changed.
                Ok(()) | Err(slipway_store::StoreError::Conflict { .. }) => {}
                Err(why) => {
                    return Err(why).doing(|| format!("note the next time of {}", place.trigger));
                }
            }
        }
        None => forget(on, &place, found).await?,
    }
    // By its id: where another sweep accepted it, what that one kept counts.
    Box::pin(handle_by_id(on, &event.id)).await?;
    Ok(true)
}

async fn forget(on: Starting<'_>, place: &TriggerPlace, found: &Due) -> Result<(), RunError> {
    let forgotten = on.runs.store.forget_due(&place.scope, &found.what).await;
    forgotten.doing(|| format!("forget the schedule of trigger {}", place.trigger))
}
