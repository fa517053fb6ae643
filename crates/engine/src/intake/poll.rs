//! Asks registries for new versions: each feed once, however many triggers watch it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use slipway_model::id::Scope;
use slipway_model::{Kind, duration, entity};
use slipway_plan::ConnectorPlan;
use slipway_store::record::FeedRecord;
use slipway_store::{Due, Store, StoreError, TriggerPlace};
use slipway_trigger::Trigger;
use slipway_trigger::feed::{Feed, new_builds, remember};

use super::handle::{Starting, handle_by_id};
use super::listen::{connector_of, feed_of, of_feed};
use super::{Happening, Offer, accept};
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::gather::FeedAnswer;
use crate::runs::Runs;

/// What [`Due::what`] of feeds begins with.
const FEED: &str = "feed/";

/// Time between two looks at a feed whose trigger says none.
const INTERVAL: Duration = Duration::from_secs(60);

/// A registry is not asked more often than this.
const SHORTEST: Duration = Duration::from_secs(30);

/// A registry that fails is asked less and less often, but not less than this.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A feed that is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Watched {
    feed: Feed,
    /// Where its connector's reference was written.
    scope: Scope,
    connector: Option<String>,
    every_s: u64,
}

/// What a poll did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Feeds that were asked.
    pub asked: usize,
    /// Feeds that could not be asked.
    pub failed: usize,
    /// New versions.
    pub new: usize,
}

/// Notes that the feed of a trigger is asked from now on.
///
/// # Errors
/// When the store cannot be written.
pub(super) async fn watch(
    runs: &Runs,
    trigger: &Trigger,
    place: &TriggerPlace,
) -> Result<(), RunError> {
    let Some((spec, feed)) = feed_of(trigger, &place.scope) else {
        return Ok(());
    };
    let every = trigger.poll_interval.as_deref();
    let every = every.and_then(|text| duration::parse(text).ok());
    let every = every.unwrap_or(INTERVAL).clamp(SHORTEST, LONGEST);
    let watched = Watched {
        connector: connector_of(spec).map(str::to_owned),
        scope: place.scope.clone(),
        every_s: every.as_secs(),
        feed,
    };
    let due = due(&watched, runs.clock.now_ms())?;
    let put = runs.store.put_due(&shard(&watched), &due, None).await;
    put.doing(|| format!("note that the feed of trigger {} is asked", place.trigger))
}

/// The list that a feed is due in: that of its account, as triggers of several projects may watch it.
fn shard(watched: &Watched) -> Scope {
    Scope::account(watched.scope.account.clone())
}

fn due(watched: &Watched, at_ms: i64) -> Result<Due, RunError> {
    let body = serde_json::to_string(watched).map_err(|why| {
        RunError::refused(
            ErrorName::InvalidRequest,
            format!("a feed cannot be kept: {why}"),
        )
    })?;
    Ok(Due {
        what: format!("{FEED}{}", watched.feed.key()),
        at_ms,
        body,
    })
}

/// Asks each feed whose time came. Two at once do no harm.
///
/// # Errors
/// When the store cannot be read.
pub async fn poll(on: Starting<'_>) -> Result<Polled, RunError> {
    let mut polled = Polled::default();
    let now_ms = on.runs.clock.now_ms();
    for list in 0..Store::INTAKE_LISTS {
        let found = on.runs.store.list_due(list, now_ms).await;
        for due in found.doing(|| "list the feeds whose time came".to_owned())? {
            let Some(watched) = read(&due) else { continue };
            if let Err(why) = Box::pin(ask(on, &due, &watched, &mut polled)).await {
                polled.failed += 1;
                tracing::warn!(feed = due.what, error = %why.full_text(), "a feed waits for the next poll");
            }
        }
    }
    Ok(polled)
}

fn read(due: &Due) -> Option<Watched> {
    due.what.strip_prefix(FEED)?;
    serde_json::from_str(&due.body).ok()
}

async fn ask(
    on: Starting<'_>,
    found: &Due,
    watched: &Watched,
    polled: &mut Polled,
) -> Result<(), RunError> {
    let store = &on.runs.store;
    let key = watched.feed.key();
    let account = &watched.scope.account;
    let listening = store.listeners(account, &of_feed(&key)).await;
    let listening = listening.doing(|| format!("list the triggers on feed {key}"))?;
    if listening.is_empty() {
        let forgotten = store.forget_due(&shard(watched), &found.what).await;
        return forgotten.doing(|| format!("forget feed {key}"));
    }
    let known = store.find_feed(&key).await;
    let known = known
        .doing(|| format!("read feed {key}"))?
        .unwrap_or_default();
    polled.asked += 1;
    let (record, wait) = match answer(on, watched, known.state.as_deref()).await? {
        Ok(FeedAnswer::Unchanged) => (healthy(known, on), None),
        Ok(FeedAnswer::Builds { builds, state }) => {
            let seen = known.seen.as_deref().unwrap_or_default();
            for build in new_builds(seen, &builds) {
                polled.new += 1;
                let offer = Offer {
                    account: account.clone(),
                    body: build.version.clone().into_bytes(),
                    happening: Happening::Feed {
                        feed: key.clone(),
                        build,
                    },
                    delivery: None,
                };
                let (event, _) = accept(on.runs, offer).await?;
                // By its id: where it was accepted before, what was kept then counts.
                Box::pin(handle_by_id(on, &event.id)).await?;
            }
            let seen = Some(remember(seen, &builds));
            let record = FeedRecord {
                seen,
                state,
                ..healthy(known, on)
            };
            (record, None)
        }
        Err((why, wait)) => {
            polled.failed += 1;
            tracing::warn!(
                feed = key,
                failures = known.failures,
                "a feed cannot be asked: {why}"
            );
            let record = FeedRecord {
                failures: known.failures.saturating_add(1),
                why: Some(why),
                ..known
            };
            (record, wait)
        }
    };
    let every = next(watched, record.failures, wait);
    match store.put_feed(&key, &record).await {
        // Another poll was faster, and accepted the same.
        Ok(()) | Err(StoreError::Conflict { .. }) => {}
        Err(why) => return Err(why).doing(|| format!("note what feed {key} has")),
    }
    let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
    let at_ms = on.runs.clock.now_ms().saturating_add(every);
    let moved = store
        .put_due(&shard(watched), &due(watched, at_ms)?, Some(found.at_ms))
        .await;
    match moved {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(why) => Err(why).doing(|| format!("note when feed {key} is asked again")),
    }
}

fn healthy(known: FeedRecord, on: Starting<'_>) -> FeedRecord {
    FeedRecord {
        asked_ms: Some(on.runs.clock.now_ms()),
        failures: 0,
        why: None,
        ..known
    }
}

/// Twice as long after each failure; as long as the registry wants, within bounds.
fn next(watched: &Watched, failures: u32, wait: Option<Duration>) -> Duration {
    let every = Duration::from_secs(watched.every_s);
    let backed_off = every.saturating_mul(1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX));
    backed_off
        .max(wait.unwrap_or_default())
        .min(LONGEST)
        .max(every)
}

/// What the feed says, or why it says nothing.
type Said = Result<FeedAnswer, (String, Option<Duration>)>;

async fn answer(
    on: Starting<'_>,
    watched: &Watched,
    state: Option<&str>,
) -> Result<Said, RunError> {
    let connector = match &watched.connector {
        None => None,
        Some(reference) => match connector(on.runs, &watched.scope, reference).await? {
            Ok(found) => Some(found),
            Err(why) => return Ok(Err((why, None))),
        },
    };
    let polled = on
        .sources
        .poll_feed(&watched.feed, connector.as_ref(), &watched.scope, state)
        .await;
    Ok(polled.map_err(|fault| (fault.message, fault.wait)))
}

async fn connector(
    runs: &Runs,
    from: &Scope,
    reference: &str,
) -> Result<Result<ConnectorPlan, String>, RunError> {
    let (scope, id) = from.resolve(reference);
    let found = runs
        .store
        .find_entity(&scope, Kind::Connector.key(), None, &id);
    let found = found
        .await
        .doing(|| format!("read connector {reference}"))?;
    let Some(record) = found else {
        return Ok(Err(format!(
            "the connector `{reference}` does not exist: create it, or name another one"
        )));
    };
    let parsed = match entity::parse(id.as_str(), &record.yaml) {
        Ok(parsed) => parsed.to_json(),
        Err(faults) => return Ok(Err(RunError::faulty(faults).to_string())),
    };
    Ok(Ok(ConnectorPlan {
        reference: reference.to_owned(),
        kind: parsed["type"].as_str().unwrap_or_default().to_owned(),
        spec: parsed["spec"].clone(),
    }))
}
