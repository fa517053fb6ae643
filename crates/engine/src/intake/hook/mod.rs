//! Webhooks at providers: what the trigger of a repository listens to, its provider must post. Who saves a trigger notes that
//! its webhook is due, and the function `trigger` registers it, outside of the request; what came of it is in the trigger's
//! status.
//!
//! The triggers of a repository that name one secret share one webhook, which posts what any of them listens to. Those with
//! another secret have a webhook of their own, as a provider signs with one: its URL says more, and nobody reads that.

mod shared;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use serde::{Deserialize, Serialize};
use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use slipway_store::record::{HookRecord, HookResult};
use slipway_store::{Due, StoreError, TriggerPlace};
use slipway_trigger::repository::name_of;
use slipway_trigger::{Provider, Source, Trigger, WebhookSpec};

use super::handle::Starting;
use super::listen::{find_trigger, read_trigger};
use super::url;
use super::verdict::repository;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::runs::Runs;
use shared::Of;

/// What [`Due::what`] of webhooks begins with.
const HOOK: &str = "hook/";

/// Time to save the trigger: until then only who saved it has its webhook registered.
const SAVED_MS: i64 = 10_000;

/// A provider that is away is asked so often.
const MOST_ATTEMPTS: u32 = 5;

/// Time until it is asked a second time; each further one is four times as long.
const AGAIN_MS: i64 = 60_000;

/// So long nobody else registers webhooks of the same repository: longer than a provider may take.
const LEASE: Duration = Duration::from_secs(90);

/// Providers that a sweep asks at once, and how long it begins to ask more.
const AT_ONCE: usize = 16;
const BEGIN_MS: i64 = 15_000;

/// A webhook that a repository should have.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedHook {
    /// The connector of the repository, and the login for its API.
    pub connector: ConnectorPlan,
    /// Where the connector's reference, and that of the secret, were written.
    pub scope: Scope,
    /// The repository, where the connector has several.
    pub repository: Option<String>,
    /// Where its provider posts to: what a webhook is known by.
    pub url: String,
    /// What it posts, as triggers call it: `Push`, `PullRequest`, ….
    pub events: BTreeSet<String>,
    /// The secret that it signs with. Without one, whatever a webhook that is there signs with stays.
    pub secret: Option<String>,
}

/// A webhook that is due.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    place: TriggerPlace,
    #[serde(default)]
    attempts: u32,
}

/// What a trigger wants its provider to post; `None` where it wants nothing, or there is nobody to register it with.
pub fn wanted(trigger: &Trigger) -> Option<&WebhookSpec> {
    let Source::Webhook(spec) = &trigger.source else {
        return None;
    };
    let registers = matches!(
        spec.provider,
        Provider::Github
            | Provider::Gitlab
            | Provider::Bitbucket
            | Provider::AzureRepo
            | Provider::Harness
    );
    (trigger.enabled && registers).then_some(spec)
}

/// What became of the webhook of a trigger; `None` before anybody tried.
///
/// # Errors
/// When the store cannot be read.
pub async fn standing(runs: &Runs, place: &TriggerPlace) -> Result<Option<HookRecord>, RunError> {
    let found = runs.store.find_hook(place).await;
    found.doing(|| format!("read the webhook of trigger {}", place.trigger))
}

/// Notes that the webhook of a trigger which is about to be saved, or saved again, is due.
///
/// # Errors
/// When the store cannot be written.
pub async fn before_saving(
    runs: &Runs,
    trigger: &Trigger,
    place: &TriggerPlace,
) -> Result<(), RunError> {
    if wanted(trigger).is_none() {
        return Ok(());
    }
    let asked = Asked {
        place: place.clone(),
        attempts: 0,
    };
    let due = due(&asked, runs.clock.now_ms().saturating_add(SAVED_MS))?;
    let put = runs.store.put_due(&place.scope, &due, None).await;
    put.doing(|| format!("note that the webhook of trigger {} is due", place.trigger))
}

/// Forgets what became of the webhook of a trigger that wants none any more. The provider keeps it: somebody may have made
/// it by hand, or use it for something else.
pub(super) async fn after_saving(
    runs: &Runs,
    place: &TriggerPlace,
    now: Option<&Trigger>,
) -> Result<(), RunError> {
    if now.and_then(wanted).is_some() {
        return Ok(());
    }
    let forgotten = runs.store.forget_hook(place).await;
    forgotten.doing(|| format!("forget the webhook of trigger {}", place.trigger))
}

fn what(place: &TriggerPlace) -> String {
    format!("{HOOK}{}", place.key())
}

fn due(asked: &Asked, at_ms: i64) -> Result<Due, RunError> {
    let body = serde_json::to_string(asked).map_err(|why| {
        let trigger = &asked.place.trigger;
        let message = format!("the webhook of trigger {trigger} cannot be noted: {why}");
        RunError::refused(ErrorName::InvalidRequest, message)
    })?;
    Ok(Due {
        what: what(&asked.place),
        at_ms,
        body,
    })
}

/// The webhook of something that is due; `None` where it is none.
pub(super) fn read(due: &Due) -> Option<Asked> {
    due.what.strip_prefix(HOOK)?;
    serde_json::from_str(&due.body).ok()
}

/// Registers the webhook of a trigger, where it is due; whether it was.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn register_of(on: Starting<'_>, place: &TriggerPlace) -> Result<bool, RunError> {
    let found = on.runs.store.find_due(&place.scope, &what(place)).await;
    let found = found.doing(|| format!("read whether the webhook of {} is due", place.trigger))?;
    match found.and_then(|due| read(&due).map(|asked| (due, asked))) {
        Some((due, asked)) => register(on, &due, &asked).await,
        None => Ok(false),
    }
}

/// Registers webhooks that are due, several at once; how many were tried. Those that there is no time for stay due.
pub(super) async fn register_all(on: Starting<'_>, dues: Vec<(Due, Asked)>) -> usize {
    let until_ms = on.runs.clock.now_ms().saturating_add(BEGIN_MS);
    let tries = dues.into_iter().map(|(due, asked)| async move {
        if on.runs.clock.now_ms() >= until_ms {
            return false;
        }
        let tried = Box::pin(register(on, &due, &asked)).await;
        tried.unwrap_or_else(|why| {
            tracing::warn!(due = due.what, error = %why.full_text(), "a webhook waits for the next sweep");
            false
        })
    });
    let tries = stream::iter(tries).buffer_unordered(AT_ONCE);
    tries
        .fold(0, async |all, tried| all + usize::from(tried))
        .await
}

/// What came of a try.
enum Tried {
    Done(HookRecord),
    /// The provider may take it later.
    Later(HookRecord),
    /// Somebody else is at the repository's webhooks.
    Busy,
}

/// Registers the webhook of a trigger as it is stored now, and notes what came of it; whether that was tried.
async fn register(on: Starting<'_>, due: &Due, asked: &Asked) -> Result<bool, RunError> {
    let (runs, place) = (on.runs, &asked.place);
    let stored = find_trigger(runs, place).await?;
    let trigger = stored.and_then(|record| read_trigger(&record).ok());
    let Some((trigger, spec)) = trigger
        .as_ref()
        .and_then(|trigger| Some((trigger, wanted(trigger)?)))
    else {
        after_saving(runs, place, None).await?;
        return settle(runs, due, place, None).await.map(|()| false);
    };
    let (record, again) = match tried(on, place, (trigger, spec)).await? {
        Tried::Busy => return Ok(false),
        Tried::Done(record) => (record, None),
        Tried::Later(record) => (record, Some(asked.attempts.saturating_add(1))),
    };
    let again = again.filter(|attempts| *attempts < MOST_ATTEMPTS);
    tracing::info!(
        trigger.id = %place.trigger,
        pipeline.id = %place.pipeline,
        result = record.result.name(),
        "webhook at {}: {}",
        spec.provider.name(),
        record.message.as_deref().unwrap_or("registered")
    );
    let noted = runs.store.put_hook(place, &record).await;
    noted.doing(|| format!("note the webhook of trigger {}", place.trigger))?;
    settle(runs, due, place, again).await.map(|()| true)
}

/// Takes a webhook off the list, or moves it on; not where the trigger was saved again meanwhile.
async fn settle(
    runs: &Runs,
    before: &Due,
    place: &TriggerPlace,
    attempts: Option<u32>,
) -> Result<(), RunError> {
    let doing = || {
        format!(
            "note that the webhook of trigger {} was tried",
            place.trigger
        )
    };
    let Some(attempts) = attempts else {
        let forgotten = runs.store.forget_due_of(&place.scope, before).await;
        return forgotten.map(drop).doing(doing);
    };
    let wait_ms = AGAIN_MS.saturating_mul(4_i64.saturating_pow(attempts.saturating_sub(1)));
    let asked = Asked {
        place: place.clone(),
        attempts,
    };
    let next = due(&asked, runs.clock.now_ms().saturating_add(wait_ms))?;
    let moved = runs
        .store
        .put_due(&place.scope, &next, Some(before.at_ms))
        .await;
    match moved {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(why) => Err(why).doing(doing),
    }
}

/// Registers the webhook of a trigger, where that can be done from here.
async fn tried(
    on: Starting<'_>,
    place: &TriggerPlace,
    (trigger, spec): (&Trigger, &WebhookSpec),
) -> Result<Tried, RunError> {
    let runs = on.runs;
    let by_hand = |result, why: String| {
        Ok(Tried::Done(HookRecord {
            result,
            message: Some(why),
            tried_ms: runs.clock.now_ms(),
            repository: None,
            url: None,
        }))
    };
    let account = &place.scope.account;
    let base = match public(runs.url.as_deref().unwrap_or_default()) {
        Ok(base) => base,
        Err(why) => return by_hand(HookResult::Unavailable, why + &url::of_account(account)),
    };
    let plain = format!("{base}{}", url::of_account(account));
    let how = format!("add it by hand, with the URL {plain} and JSON as its content");
    let named = (spec.connector.as_deref(), spec.repo_name.as_deref());
    let (repository, connector) = match repository(runs, &place.scope, named).await? {
        Ok(Some(found)) => found,
        Ok(None) => {
            let why = format!(
                "without a `connectorRef` nobody can register it: give the trigger one, or {how}"
            );
            return by_hand(HookResult::Unavailable, why);
        }
        Err(refusal) => return by_hand(HookResult::Error, refusal.message),
    };
    let provider = spec.provider.name();
    let wanted = match spec.provider {
        // Its repositories have no type of connectors.
        Provider::Harness => "Git",
        _ => provider,
    };
    if connector.kind != wanted {
        let why = format!(
            "a connector of type {} has no API of {provider}: use one of type {wanted}, or {how}",
            connector.kind
        );
        return by_hand(HookResult::Unavailable, why);
    }
    let of = Of {
        place,
        trigger,
        spec,
        plain,
        repository,
    };
    alone(on, &of, connector, &how).await
}

/// Registers the webhook of a trigger while nobody else is at those of its repository.
async fn alone(
    on: Starting<'_>,
    of: &Of<'_>,
    connector: ConnectorPlan,
    how: &str,
) -> Result<Tried, RunError> {
    let store = &on.runs.store;
    // By the last part of its name: one repository may be written in several ways.
    let name = name_of(&of.repository).unwrap_or_default();
    let (account, provider) = (&of.place.scope.account, of.spec.provider.name());
    let lease = format!("{HOOK}{account}/{provider}/{name}");
    let holder = uuid::Uuid::new_v4().to_string();
    let taken = store.take_lease(&lease, &holder, LEASE).await;
    if !taken.doing(|| format!("register webhooks of {name} alone"))? {
        return Ok(Tried::Busy);
    }
    let done = of.register(on, connector, how).await;
    let released = store.release_lease(&lease, &holder).await;
    released.doing(|| format!("leave the webhooks of {name} to others"))?;
    done
}

/// Where providers reach Slipway, or why they do not, up to the path of the URL.
fn public(base: &str) -> Result<&str, String> {
    let base = base.trim_end_matches('/');
    let (_, rest) = base.split_once("://").unwrap_or(("", base));
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let address: Option<std::net::IpAddr> = host.parse().ok();
    let own = host == "localhost"
        || host.ends_with(".localhost")
        || address.is_some_and(|it| it.is_loopback() || it.is_unspecified());
    match host.is_empty() || own {
        false => Ok(base),
        true => Err(format!(
            "it was not registered, because no provider reaches `{base}`: start Slipway with its public address in \
             SLIPWAY_PUBLIC_URL and save the trigger again, or add it by hand, with JSON as its content and the URL \
             <public address>"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_not_public() {
        for (url, public_too) in [
            ("http://127.0.0.1:7879", false),
            ("http://localhost:7879", false),
            ("http://[::1]:7879", false),
            ("http://0.0.0.0:7879", false),
            ("", false),
            ("https://slipway.example.com/", true),
            ("http://10.0.0.7:7879", true),
            ("http://[2001:db8::1]:7879", true),
        ] {
            assert_eq!(public(url).is_ok(), public_too, "{url}");
        }
    }
}
