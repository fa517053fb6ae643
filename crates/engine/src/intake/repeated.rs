//! Pushes of providers that do not say when: from A to B, back, and to B again are three, and the third has the key of the
//! first. It is told from another delivery of the first by what the ref points at: after the second that is A, from where
//! only a new push gets to B.

use std::time::Duration;

use slipway_store::record::EventRecord;
use slipway_store::{Accept, AcceptOfRef, RefMove, StoreError, TriggerPlace};

use super::{Happening, Offer, digest, hex, offered};
use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// How often an event is offered while others of its ref come.
const ATTEMPTS: u32 = 6;

/// Time before the second attempt; twice as long before each of the next.
const PAUSE: Duration = Duration::from_millis(20);

/// A commit whose date is later than its push, by more than clocks differ, says nothing of time. In milliseconds.
const CLOCKS_APART_MS: i64 = 5 * 60 * 1000;

/// What an offer makes of a ref, where its provider does not say when.
pub(super) fn of(offer: &Offer, now_ms: i64) -> Option<RefMove> {
    let Happening::Webhook {
        event,
        to,
        signed,
        by_hand,
        ..
    } = &offer.happening
    else {
        return None;
    };
    let moves = ["Push", "Tag", "Branch"].contains(&event.name.as_str());
    if !moves || event.happened_ms.is_some() || event.key.is_none() {
        return None;
    }
    let to = to.as_ref().map(TriggerPlace::key).unwrap_or_default();
    let of = [
        offer.account.as_str(),
        event.provider.name(),
        &event.repository,
        // A tag that is pushed is two events.
        &event.name,
        event.git_ref.as_deref()?,
        &to,
    ];
    Some(RefMove {
        of: hex(&digest(&of)[..16]),
        commit: event.commit.clone()?,
        base: event.base_commit.clone(),
        committed_ms: event
            .committed_ms
            .filter(|at| *at <= now_ms.saturating_add(CLOCKS_APART_MS)),
        after: None,
        signed: *by_hand || !signed.is_empty(),
    })
}

/// Keeps such an event, once.
pub(super) async fn accept(
    runs: &Runs,
    offer: Offer,
    moved: RefMove,
) -> Result<(EventRecord, Accept), RunError> {
    let first = offered(runs, offer)?;
    let (mut record, mut moved) = (first.clone(), moved);
    let mut pause = PAUSE;
    let mut attempt = 0;
    loop {
        attempt += 1;
        let doing = || format!("keep event {}", record.id);
        let accepted = runs.store.accept_event_of_ref(&record, &moved).await;
        match accepted {
            Ok(AcceptOfRef::Settled(accept)) => return Ok((record, accept)),
            Ok(AcceptOfRef::Repeated(head)) => match head {
                Some(head)
                    if moved.after.is_none() && moved.base.as_ref() == Some(&head.commit) =>
                {
                    let again = digest(&[&first.id, "again", &head.event]);
                    record.id = hex(&again[..16]);
                    moved.after = Some(head.event);
                    continue;
                }
                _ => {
                    let noted = runs.store.note_delivery(&record).await;
                    noted.doing(doing)?;
                    let id = record.id.clone();
                    return Ok((record, Accept::Known(id)));
                }
            },
            // Two events of a ref at one moment: DynamoDB takes one of them.
            Err(StoreError::Throttled { .. }) if attempt < ATTEMPTS => {}
            Ok(AcceptOfRef::Moved) if attempt < ATTEMPTS => {}
            Ok(AcceptOfRef::Moved) => {
                let what = doing();
                return Err(StoreError::Conflict { what }).doing(doing);
            }
            Err(why) => return Err(why).doing(doing),
        }
        runs.clock.sleep(pause).await;
        pause = pause.saturating_mul(2);
        record.id.clone_from(&first.id);
        moved.after = None;
    }
}
