//! Asks registries for new versions: each feed once, however many triggers watch it, one after the other of each host, and
//! several hosts side by side, so that one that is slow holds no other up. Scripts are asked by delegates (`errand.rs`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use serde::{Deserialize, Serialize};
use slipway_model::id::Scope;
use slipway_model::{Kind, duration, entity};
use slipway_plan::ConnectorPlan;
use slipway_store::record::FeedRecord;
use slipway_store::{Due, Store, StoreError, TriggerPlace};
use slipway_trigger::Trigger;
use slipway_trigger::feed::{Feed, everywhere, new_builds, remember};

use super::errand::{self, Script, Scripts};
use super::handle::{Starting, handle_by_id};
use super::listen::{Region, connector_of, feed_of, of_feed, regions_of};
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

/// A registry that fails is asked less and less often, but not less than this, or than a trigger wants.
const LONGEST: Duration = Duration::from_secs(3_600);

/// So long after something happened a registry surely tells of it: times of events have no parts of seconds, and clocks
/// differ.
const SETTLED_MS: i64 = 2_000;

/// Hosts that are asked at once.
const AT_ONCE: usize = 16;

/// Fields of connectors with the address of a registry.
const ADDRESSES: [&str; 7] = [
    "dockerRegistryUrl",
    "artifactoryServerUrl",
    "nexusServerUrl",
    "azureArtifactsUrl",
    "jenkinsUrl",
    "bambooUrl",
    "helmRepoUrl",
];

/// A feed that is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Watched {
    pub(super) feed: Feed,
    /// Where its connector's reference was written.
    pub(super) scope: Scope,
    connector: Option<String>,
    every_s: u64,
}

/// What is noted of a trigger that listens to a feed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Listener {
    /// How often it wants the feed to be asked; `None` while it is disabled.
    every_s: Option<u64>,
    /// When it joined, epoch milliseconds: it does not hear of what was there before.
    since_ms: i64,
}

impl Listener {
    /// As it was noted. An earlier version noted nothing.
    fn of(about: &str) -> Self {
        serde_json::from_str(about).unwrap_or(Self {
            every_s: Some(INTERVAL.as_secs()),
            since_ms: 0,
        })
    }

    /// Whether it hears of what a feed had not when it was asked then.
    fn hears(self, asked_ms: Option<i64>) -> bool {
        asked_ms.is_none_or(|asked_ms| self.since_ms <= asked_ms)
    }
}

/// How often a trigger wants its feed to be asked; `None` where it wants nothing to be asked.
pub(super) fn interval(trigger: &Trigger) -> Option<Duration> {
    let written = trigger.poll_interval.as_deref().unwrap_or_default().trim();
    match duration::parse_from_zero(written) {
        _ if written == "0" => None,
        Ok(every) if every.is_zero() => None,
        Ok(every) => Some(every.max(SHORTEST)),
        Err(_) => Some(INTERVAL),
    }
}

/// What is noted of a trigger on its feed, which it may have joined before.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn joined(
    runs: &Runs,
    trigger: &Trigger,
    (place, feed): (&TriggerPlace, &str),
) -> Result<String, RunError> {
    let listening = runs
        .store
        .listeners(&place.scope.account, &of_feed(feed))
        .await;
    let listening = listening.doing(|| format!("list the triggers on feed {feed}"))?;
    let before = listening.iter().find(|(known, _)| known == place);
    let before = before.map(|(_, about)| Listener::of(about));
    let every = interval(trigger).filter(|_| trigger.enabled);
    let listener = Listener {
        every_s: every.map(|every| every.as_secs()),
        since_ms: match before {
            Some(before) if before.every_s.is_some() => before.since_ms,
            _ => runs.clock.now_ms(),
        },
    };
    serde_json::to_string(&listener).map_err(|why| {
        let message = format!("what trigger {} wants cannot be kept: {why}", place.trigger);
        RunError::refused(ErrorName::InvalidRequest, message)
    })
}

/// Whether a trigger hears of what its feed had not when it was asked at that time.
pub(super) fn hears(about: &str, asked_ms: Option<i64>) -> bool {
    Listener::of(about).hears(asked_ms)
}

/// How the feed of a trigger was when it was last asked; `None` where it has none, or it was never asked.
///
/// # Errors
/// When the store cannot be read.
pub async fn standing(
    runs: &Runs,
    trigger: &Trigger,
    place: &TriggerPlace,
) -> Result<Option<FeedRecord>, RunError> {
    let Some((_, feed)) = feed_of(trigger, &place.scope) else {
        return Ok(None);
    };
    let found = runs.store.find_feed(&feed.key()).await;
    found.doing(|| format!("read the feed of trigger {}", place.trigger))
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

impl Watched {
    /// The connectors of the feed, or of its regions: by what feeds call them, with their references.
    fn connectors(&self) -> Vec<(String, String)> {
        let of = |feed: &Feed, reference: &Option<String>| {
            Some((feed.connector.clone(), reference.clone()?))
        };
        match regions_of(&self.feed) {
            Some(regions) => {
                let all = regions.iter();
                all.filter_map(|region| of(&region.feed, &region.connector))
                    .collect()
            }
            None => of(&self.feed, &self.connector).into_iter().collect(),
        }
    }
}

impl Polled {
    fn and(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            failed: self.failed + other.failed,
            new: self.new + other.new,
        }
    }
}

/// The connectors of feeds, by what [`Feed::connector`] says, or why there is none.
type Connectors = BTreeMap<String, Result<ConnectorPlan, String>>;

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
    let Some(every) = interval(trigger).filter(|_| trigger.enabled) else {
        return Ok(());
    };
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
    let now_ms = on.runs.clock.now_ms();
    let mut connectors = Connectors::new();
    let mut hosts: BTreeMap<String, Vec<(Due, Watched)>> = BTreeMap::new();
    for list in 0..Store::INTAKE_LISTS {
        let found = on.runs.store.list_due(list, now_ms).await;
        for due in found.doing(|| "list the feeds whose time came".to_owned())? {
            let Some(watched) = read(&due) else { continue };
            know(on.runs, &watched, &mut connectors).await?;
            let host = host(&watched, &connectors);
            hosts.entry(host).or_default().push((due, watched));
        }
    }
    let connectors = &connectors;
    let polls = hosts.into_values().map(|feeds| async move {
        let mut polled = Polled::default();
        for (due, watched) in feeds {
            let asked = ask(on, &due, &watched, connectors, &mut polled);
            if let Err(why) = Box::pin(asked).await {
                polled.failed += 1;
                tracing::warn!(feed = due.what, error = %why.full_text(), "a feed waits for the next poll");
            }
        }
        polled
    });
    let polls = stream::iter(polls).buffer_unordered(AT_ONCE);
    Ok(polls
        .fold(Polled::default(), async |all, one| all.and(one))
        .await)
}

/// Reads the connectors of a feed that are not known yet.
async fn know(runs: &Runs, watched: &Watched, connectors: &mut Connectors) -> Result<(), RunError> {
    for (key, reference) in watched.connectors() {
        if let Entry::Vacant(unknown) = connectors.entry(key) {
            unknown.insert(connector(runs, &watched.scope, &reference).await?);
        }
    }
    Ok(())
}

/// What is asked by one at a time: the registry's host, or of a cloud its region.
fn host(watched: &Watched, connectors: &Connectors) -> String {
    let Feed {
        kind,
        connector,
        place,
    } = &watched.feed;
    let known = connectors.get(connector).and_then(|it| it.as_ref().ok());
    let addresses = ADDRESSES
        .iter()
        .filter_map(|field| known?.spec[*field].as_str());
    let address = addresses.map(str::trim).find(|address| !address.is_empty());
    if let Some(address) = address {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        return host.to_ascii_lowercase();
    }
    let named = ["registryHostname", "registry", "region"];
    let named = named.iter().find_map(|field| place[*field].as_str());
    format!("{kind} {connector} {}", named.unwrap_or_default())
}

/// Asks a feed at once because something happened in it; what it had when it was asked later than that is known.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) async fn hurry(
    on: Starting<'_>,
    scope: &Scope,
    feed: &Feed,
    happened_ms: i64,
    polled: &mut Polled,
) -> Result<(), RunError> {
    let (store, key) = (&on.runs.store, feed.key());
    let doing = || format!("read feed {key}");
    let known = store.find_feed(&key).await.doing(doing)?;
    let asked = known.filter(|known| known.failures == 0);
    if asked.and_then(|known| known.asked_ms) >= Some(happened_ms.saturating_add(SETTLED_MS)) {
        return Ok(());
    }
    let account = Scope::account(scope.account.clone());
    let due = store.find_due(&account, &format!("{FEED}{key}")).await;
    let Some(due) = due.doing(doing)? else {
        return Ok(());
    };
    let Some(watched) = read(&due) else {
        return Ok(());
    };
    let mut connectors = Connectors::new();
    know(on.runs, &watched, &mut connectors).await?;
    Box::pin(ask(on, &due, &watched, &connectors, polled)).await
}

fn read(due: &Due) -> Option<Watched> {
    due.what.strip_prefix(FEED)?;
    serde_json::from_str(&due.body).ok()
}

/// A feed that is asked, for who listens to it.
pub(super) struct Asked<'a> {
    found: &'a Due,
    pub(super) watched: &'a Watched,
    pub(super) key: &'a str,
    listening: &'a [Listener],
    connectors: &'a Connectors,
}

/// What scripts list, by the key of the feed or the region.
pub(super) type Listed = BTreeMap<String, FeedAnswer>;

async fn ask(
    on: Starting<'_>,
    found: &Due,
    watched: &Watched,
    connectors: &Connectors,
    polled: &mut Polled,
) -> Result<(), RunError> {
    let store = &on.runs.store;
    let key = watched.feed.key();
    let account = &watched.scope.account;
    let listening = store.listeners(account, &of_feed(&key)).await;
    let listening = listening.doing(|| format!("list the triggers on feed {key}"))?;
    let listening: Vec<Listener> = listening
        .iter()
        .map(|(_, about)| Listener::of(about))
        .collect();
    let shortest = listening.iter().filter_map(|one| one.every_s).min();
    let Some(every_s) = shortest else {
        let forgotten = store.forget_due(&shard(watched), &found.what).await;
        return forgotten.doing(|| format!("forget feed {key}"));
    };
    let asked = Asked {
        found,
        watched: &Watched {
            every_s,
            ..watched.clone()
        },
        key: &key,
        listening: &listening,
        connectors,
    };
    let known = store.find_feed(&key).await;
    let known = known
        .doing(|| format!("read feed {key}"))?
        .unwrap_or_default();
    polled.asked += 1;
    // What comes while it answers may not be in the answer.
    let began_ms = on.runs.clock.now_ms();
    let said = match regions_of(&watched.feed) {
        None => match on.sources.errand(&watched.feed, &watched.scope) {
            Ok(Some(work)) => {
                let scripts = Scripts::Feed(&work);
                return errand::ask(on, &asked, scripts, known, polled).await;
            }
            Ok(None) => {
                let of = (&watched.feed, &watched.scope);
                one(on, of, connectors, known.state.as_deref()).await
            }
            Err(fault) => Err((fault.message, fault.wait)),
        },
        Some(regions) => match scripts_of(on, &regions, &watched.scope) {
            Ok(scripts) if scripts.is_empty() => asked.everywhere(on, &Listed::new()).await,
            Ok(scripts) => {
                let scripts = Scripts::Regions(&scripts);
                return errand::ask(on, &asked, scripts, known, polled).await;
            }
            Err(why) => Err(why),
        },
    };
    let (record, wait) = asked.settle(on, known, began_ms, said, polled).await?;
    let every = asked.next(record.failures, wait);
    // Where another poll was faster, it accepted the same.
    asked.note(on, &record).await?;
    let at_ms = on.runs.clock.now_ms().saturating_add(every);
    asked.again(on, at_ms).await
}

/// The regions that are scripts, each once.
fn scripts_of(on: Starting<'_>, regions: &[Region], scope: &Scope) -> Result<Vec<Script>, Why> {
    let mut found: Vec<Script> = Vec::new();
    for region in regions {
        let of = &region.feed;
        let work = on.sources.errand(of, scope);
        let work = work.map_err(|fault| (fault.message, fault.wait))?;
        if let Some(work) = work
            && found.iter().all(|known| known.of != *of)
        {
            let of = of.clone();
            found.push(Script { of, work });
        }
    }
    Ok(found)
}

impl Asked<'_> {
    /// What all regions have, by what those list that are scripts. Each of the others is asked for all of it: what one has
    /// anew may be there in the others for long.
    pub(super) async fn everywhere(&self, on: Starting<'_>, listed: &Listed) -> Said {
        let mut all = Vec::new();
        for region in regions_of(&self.watched.feed).unwrap_or_default() {
            let known = listed.get(&region.feed.key()).cloned();
            let said = match known {
                Some(known) => known,
                None => {
                    let of = (&region.feed, &self.watched.scope);
                    one(on, of, self.connectors, None).await?
                }
            };
            match said {
                FeedAnswer::Builds { builds, .. } => all.push(builds),
                // Nobody said what it had before.
                FeedAnswer::Unchanged => {
                    return Err(("a region does not say what it has".to_owned(), None));
                }
            }
        }
        Ok(FeedAnswer::Builds {
            builds: everywhere(&all),
            state: None,
        })
    }

    /// Has runs started for what is new, and says what is known then, and how long the registry wants to be left alone.
    pub(super) async fn settle(
        &self,
        on: Starting<'_>,
        known: FeedRecord,
        began_ms: i64,
        said: Said,
        polled: &mut Polled,
    ) -> Result<(FeedRecord, Option<Duration>), RunError> {
        let key = self.key;
        match said {
            Ok(FeedAnswer::Unchanged) => Ok((healthy(known, began_ms), None)),
            Ok(FeedAnswer::Builds { builds, state }) => {
                let seen = known.seen.as_deref().unwrap_or_default();
                // Where nobody watched, what came meanwhile is nothing new to those who begin to.
                let is_heard = self.listening.iter().any(|one| one.hears(known.asked_ms));
                let new = new_builds(seen, &builds).into_iter();
                for build in new.filter(|_| is_heard) {
                    polled.new += 1;
                    let offer = Offer {
                        account: self.watched.scope.account.clone(),
                        body: build.version.clone().into_bytes(),
                        happening: Happening::Feed {
                            feed: key.to_owned(),
                            build,
                            after_ms: known.asked_ms,
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
                    ..healthy(known, began_ms)
                };
                Ok((record, None))
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
                Ok((record, wait))
            }
        }
    }

    /// Notes what is known of the feed now, and says whether nobody else did meanwhile.
    pub(super) async fn note(
        &self,
        on: Starting<'_>,
        record: &FeedRecord,
    ) -> Result<bool, RunError> {
        match on.runs.store.put_feed(self.key, record).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(why) => Err(why).doing(|| format!("note what feed {} has", self.key)),
        }
    }

    /// Notes when the feed is asked again.
    pub(super) async fn again(&self, on: Starting<'_>, at_ms: i64) -> Result<(), RunError> {
        let (of, due) = (shard(self.watched), due(self.watched, at_ms)?);
        let moved = on.runs.store.put_due(&of, &due, Some(self.found.at_ms));
        match moved.await {
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(why) => Err(why).doing(|| format!("note when feed {} is asked again", self.key)),
        }
    }

    /// Milliseconds between two questions, after so many failures.
    pub(super) fn next(&self, failures: u32, wait: Option<Duration>) -> i64 {
        let every = next(self.watched, failures, wait);
        i64::try_from(every.as_millis()).unwrap_or(i64::MAX)
    }
}

fn healthy(known: FeedRecord, began_ms: i64) -> FeedRecord {
    FeedRecord {
        asked_ms: Some(began_ms),
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
pub(super) type Said = Result<FeedAnswer, Why>;

/// Why a feed says nothing, and how long it wants to be left alone.
pub(super) type Why = (String, Option<Duration>);

async fn one(
    on: Starting<'_>,
    (feed, scope): (&Feed, &Scope),
    connectors: &Connectors,
    state: Option<&str>,
) -> Said {
    let connector = match connectors.get(&feed.connector) {
        None => None,
        Some(Ok(found)) => Some(found),
        Some(Err(why)) => return Err((why.clone(), None)),
    };
    let polled = on.sources.poll_feed(feed, connector, scope, state).await;
    polled.map_err(|fault| (fault.message, fault.wait))
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
