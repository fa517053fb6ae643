//! Which triggers an event is for: each is listed under what it listens to, and under when it is due.
//!
//! The list is written before the trigger and corrected after it, so that it may name too many triggers and never too
//! few: whoever reads it reads the trigger too.

use serde::{Deserialize, Serialize};
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Kind, entity};
use slipway_store::record::EntityRecord;
use slipway_store::{Due, TriggerPlace};
use slipway_trigger::feed::{Feed, in_region};
use slipway_trigger::{FeedSpec, Provider, Schedule, Source, Trigger, draft};

use super::narrow::Said;
use super::{aws, hook, poll, secret_key};
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::runs::Runs;

/// What [`Due::what`] of schedules begins with.
const SCHEDULE: &str = "schedule/";

/// The place of a stored trigger.
pub fn place_of(record: &EntityRecord) -> TriggerPlace {
    TriggerPlace {
        scope: record.scope.clone(),
        pipeline: record.parent.clone().unwrap_or_else(|| EntityId::new("")),
        trigger: record.id.clone(),
    }
}

/// A stored trigger, read.
///
/// # Errors
/// `PlanRefused` with the faults of its YAML.
pub fn read_trigger(record: &EntityRecord) -> Result<Trigger, RunError> {
    let parsed = entity::parse(record.id.as_str(), &record.yaml).map_err(RunError::faulty)?;
    Trigger::of(&parsed).map_err(|why| {
        let message = format!("trigger {} cannot be read: {why}", record.id);
        RunError::refused(ErrorName::PlanRefused, message)
    })
}

/// A trigger as it is stored now; `None` when it is gone.
pub(crate) async fn find_trigger(
    runs: &Runs,
    place: &TriggerPlace,
) -> Result<Option<EntityRecord>, RunError> {
    let (kind, parent) = (Kind::Trigger.key(), Some(&place.pipeline));
    let store = &runs.store;
    let found = store.find_entity(&place.scope, kind, parent, &place.trigger);
    let found = found.await;
    found.doing(|| format!("read trigger {}", place.trigger))
}

/// What webhooks of a provider are listed under.
pub fn of_provider(provider: Provider) -> String {
    format!("webhook/{}", provider.name())
}

/// What ends of runs of a project are listed under. The schema of such a trigger names no pipeline: it hears of all others
/// of its project, and its payload conditions choose.
pub(crate) fn of_project(scope: &Scope) -> String {
    let org = scope.org.as_ref().map(|it| it.as_str());
    let project = scope.project.as_ref().map(|it| it.as_str());
    let [org, project] = [org, project].map(Option::unwrap_or_default);
    format!("ended/{org}/{project}")
}

/// What new versions of a feed are listed under.
pub(crate) fn of_feed(feed: &str) -> String {
    format!("feed/{feed}")
}

/// What an artifact or manifest trigger watches: its spec and the feed of it; `None` for other triggers.
pub(crate) fn feed_of<'t>(trigger: &'t Trigger, scope: &Scope) -> Option<(&'t FeedSpec, Feed)> {
    match &trigger.source {
        Source::Artifact(spec) | Source::Manifest(spec) => {
            Some((spec, Feed::of(spec, &connector_key(spec, scope))))
        }
        Source::MultiRegion { sources, feed } if !sources.is_empty() => {
            let regions = sources.iter().map(|source| {
                let spec = in_region(feed, source);
                Region {
                    feed: Feed::of(&spec, &connector_key(&spec, scope)),
                    connector: connector_of(&spec).map(str::to_owned),
                }
            });
            let regions: Vec<Region> = regions.collect();
            let all = Feed {
                kind: MULTI_REGION.to_owned(),
                connector: secret_key(scope, "-"),
                place: serde_json::to_value(regions).ok()?,
            };
            Some((feed, all))
        }
        _ => None,
    }
}

/// What the feed of several regions is called.
const MULTI_REGION: &str = "MultiRegionArtifact";

/// One of several regions that must have a version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Region {
    pub(crate) feed: Feed,
    /// As its connector was written.
    pub(crate) connector: Option<String>,
}

/// The regions of a feed that has several.
pub(crate) fn regions_of(feed: &Feed) -> Option<Vec<Region>> {
    let several = feed.kind == MULTI_REGION;
    several.then(|| Vec::deserialize(&feed.place).unwrap_or_default())
}

/// What a version must pass: the filters of each region, and the conditions.
pub(crate) fn specs_of(trigger: &Trigger) -> Vec<FeedSpec> {
    match &trigger.source {
        Source::Artifact(spec) | Source::Manifest(spec) => vec![spec.clone()],
        Source::MultiRegion { sources, feed } => {
            let regions = sources.iter();
            regions.map(|source| in_region(feed, source)).collect()
        }
        _ => Vec::new(),
    }
}

fn connector_key(spec: &FeedSpec, scope: &Scope) -> String {
    secret_key(scope, connector_of(spec).unwrap_or("-"))
}

/// The connector of a feed: of a chart, that of its store.
pub(crate) fn connector_of(spec: &FeedSpec) -> Option<&str> {
    let own = spec.spec["connectorRef"].as_str();
    let found = own.or_else(|| spec.spec["store"]["spec"]["connectorRef"].as_str());
    found.filter(|reference| !reference.is_empty())
}

/// What a trigger listens to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Listening {
    /// A list.
    To(String, String),
    /// New versions of a feed, by its key.
    Feed(String),
    /// A time.
    At(i64),
    /// The URL of its own names it, or it wants nothing to be asked.
    Named,
}

fn schedule_of(trigger: &Trigger) -> Result<Option<Schedule>, String> {
    match &trigger.source {
        Source::Scheduled {
            expression,
            quartz,
            time_zone,
        } => Schedule::of(expression, *quartz, time_zone.as_deref()).map(Some),
        _ => Ok(None),
    }
}

/// When a trigger's schedule comes next after a time; `None` without one, or when it never does.
pub fn next_time(trigger: &Trigger, after_ms: i64) -> Option<i64> {
    schedule_of(trigger).ok()??.next_after(after_ms)
}

fn listening(trigger: &Trigger, place: &TriggerPlace, now_ms: i64) -> Listening {
    match &trigger.source {
        Source::Webhook(spec) if spec.provider != Provider::Custom => {
            Listening::To(of_provider(spec.provider), Said::of(trigger).written())
        }
        Source::Scheduled { .. } if trigger.enabled => {
            next_time(trigger, now_ms).map_or(Listening::Named, Listening::At)
        }
        Source::Artifact(_) | Source::Manifest(_) | Source::MultiRegion { .. }
            if poll::interval(trigger).is_none() =>
        {
            Listening::Named
        }
        Source::Artifact(_) | Source::Manifest(_) | Source::MultiRegion { .. } => {
            match feed_of(trigger, &place.scope) {
                Some((_, feed)) => Listening::Feed(feed.key()),
                None => Listening::Named,
            }
        }
        Source::SystemEvent(_) => Listening::To(of_project(&place.scope), String::new()),
        _ => Listening::Named,
    }
}

fn due_of(place: &TriggerPlace) -> String {
    format!("{SCHEDULE}{}", place.key())
}

/// The trigger of something that is due; `None` where it is no schedule.
pub(crate) fn scheduled(due: &Due) -> Option<TriggerPlace> {
    due.what.strip_prefix(SCHEDULE)?;
    serde_json::from_str(&due.body).ok()
}

/// Something that is due: a schedule's next time.
pub(crate) fn due(place: &TriggerPlace, at_ms: i64) -> Result<Due, RunError> {
    let body = serde_json::to_string(place).map_err(|why| {
        let message = format!(
            "the place of trigger {} cannot be kept: {why}",
            place.trigger
        );
        RunError::refused(ErrorName::InvalidRequest, message)
    })?;
    Ok(Due {
        what: due_of(place),
        at_ms,
        body,
    })
}

/// Lists a trigger that is about to be saved.
///
/// # Errors
/// When its YAML cannot be read, or the store cannot be written.
pub async fn before_saving(runs: &Runs, record: &EntityRecord) -> Result<(), RunError> {
    let (trigger, place) = (read_trigger(record)?, place_of(record));
    let parsed = entity::parse(record.id.as_str(), &record.yaml).map_err(RunError::faulty)?;
    let refused = draft::refused(&parsed);
    if !refused.is_empty() {
        return Err(RunError::faulty(refused));
    }
    let doing = || format!("list trigger {}", place.trigger);
    if let Some(source) = aws::source_of(&trigger) {
        let listed = runs.store.listen_everywhere(&source, &place).await;
        listed.doing(doing)?;
    }
    match listening(&trigger, &place, runs.clock.now_ms()) {
        Listening::To(source, about) => {
            let about = until_saved(runs, &place, about).await?;
            let listed = runs.store.listen(&source, &place, &about).await;
            listed.doing(doing)?;
            hook::before_saving(runs, &trigger, &place).await
        }
        Listening::Feed(feed) => {
            let about = poll::joined(runs, &trigger, (&place, &feed)).await?;
            let listed = runs.store.listen(&of_feed(&feed), &place, &about).await;
            listed.doing(doing)?;
            poll::watch(runs, &trigger, &place).await
        }
        Listening::At(at_ms) => {
            let due = due(&place, at_ms)?;
            let listed = runs.store.put_due(&place.scope, &due, None).await;
            listed.doing(doing)
        }
        Listening::Named => Ok(()),
    }
}

/// What is said of a webhook's trigger until it is saved: what is true of it as it is stored and as it will be.
async fn until_saved(runs: &Runs, place: &TriggerPlace, about: String) -> Result<String, RunError> {
    let stored = find_trigger(runs, place).await?;
    let stored = stored.and_then(|record| read_trigger(&record).ok());
    Ok(match stored {
        Some(stored) if matches!(stored.source, Source::Webhook(_)) => {
            Said::either(Said::of(&stored), Said::read(&about)).written()
        }
        _ => about,
    })
}

/// Takes a trigger off the lists that it was on before it was saved as `now`, or deleted (`None`).
///
/// # Errors
/// When the store cannot be written: that it is on too many lists does no harm.
pub async fn after_saving(
    runs: &Runs,
    before: &EntityRecord,
    now: Option<&EntityRecord>,
) -> Result<(), RunError> {
    let Ok(trigger) = read_trigger(before) else {
        return Ok(());
    };
    let place = place_of(before);
    let now = now.and_then(|record| read_trigger(record).ok());
    let list_of = |trigger: &Trigger| listening(trigger, &place, 0);
    if hook::wanted(&trigger).is_some() {
        hook::after_saving(runs, &place, now.as_ref()).await?;
    }
    let old = list_of(&trigger);
    let new = now.as_ref().map(list_of);
    let doing = || format!("take trigger {} off its list", place.trigger);
    if let Some(source) = aws::source_of(&trigger)
        && now.as_ref().and_then(aws::source_of).as_ref() != Some(&source)
    {
        let store = &runs.store;
        let stopped = store.stop_listening_everywhere(&source, &place).await;
        stopped.doing(doing)?;
    }
    match (old, new) {
        (Listening::To(old, _), Some(Listening::To(new, about))) if old == new => {
            runs.store.listen(&new, &place, &about).await.doing(doing)
        }
        (Listening::To(old, _), _) => runs.store.stop_listening(&old, &place).await.doing(doing),
        (Listening::Feed(old), Some(Listening::Feed(new))) if old == new => Ok(()),
        // That it is due is forgotten when nobody listens any more.
        (Listening::Feed(old), _) => {
            let stopped = runs.store.stop_listening(&of_feed(&old), &place).await;
            stopped.doing(doing)
        }
        (Listening::At(_), Some(Listening::At(_))) => Ok(()),
        (Listening::At(_), _) => {
            let forgotten = runs.store.forget_due(&place.scope, &due_of(&place)).await;
            forgotten.doing(doing)
        }
        (Listening::Named, _) => Ok(()),
    }
}
