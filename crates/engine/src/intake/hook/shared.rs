//! What the triggers of one repository want of its webhooks together, and at which URL each webhook is.

use std::collections::{BTreeMap, BTreeSet};

use slipway_model::id::{AccountId, Scope};
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;
use slipway_store::TriggerPlace;
use slipway_store::record::{HookRecord, HookResult};
use slipway_trigger::decide::is_same_repository;
use slipway_trigger::repository::name_of;
use slipway_trigger::{Trigger, WebhookSpec};

use super::{Tried, WantedHook};
use crate::error::{Doing, RunError};
use crate::intake::handle::Starting;
use crate::intake::listen::{find_trigger, of_provider, read_trigger};
use crate::intake::narrow::{self, Said};
use crate::intake::verdict::repository;
use crate::intake::{digest, hex, secret_key};
use crate::runs::Runs;

/// A trigger and its repository.
pub(super) struct Of<'a> {
    pub(super) place: &'a TriggerPlace,
    pub(super) trigger: &'a Trigger,
    pub(super) spec: &'a WebhookSpec,
    /// The URL that triggers are shown with.
    pub(super) plain: String,
    pub(super) repository: String,
}

/// What another trigger of the repository wants.
struct Beside {
    place: TriggerPlace,
    secret: String,
    events: Vec<String>,
}

/// What triggers that name no secret share.
const OPEN: &str = "";

fn secret_of(scope: &Scope, secret: Option<&str>) -> String {
    match secret.filter(|secret| !secret.is_empty()) {
        Some(secret) => secret_key(scope, secret),
        None => OPEN.to_owned(),
    }
}

impl Of<'_> {
    pub(super) async fn register(
        &self,
        on: Starting<'_>,
        connector: ConnectorPlan,
        how: &str,
    ) -> Result<Tried, RunError> {
        let runs = on.runs;
        let secret = secret_of(&self.place.scope, self.trigger.secret.as_deref());
        let beside = self.beside(runs).await?;
        let (url, there) = self.url(runs, &secret, &beside).await?;
        let same = beside.iter().filter(|one| one.secret == secret);
        let mut events: BTreeSet<String> = same.flat_map(|one| one.events.clone()).collect();
        events.insert(self.spec.event.clone());
        let wanted = WantedHook {
            connector,
            scope: self.place.scope.clone(),
            repository: self.spec.repo_name.clone(),
            url,
            events,
            secret: self.trigger.secret.clone(),
        };
        let done = on.sources.register_hook(&wanted).await;
        let record = |result, message, url| HookRecord {
            result,
            message,
            tried_ms: runs.clock.now_ms(),
            repository: Some(self.repository.clone()),
            url,
        };
        let Err(Failure { error, message, .. }) = done else {
            let done = record(HookResult::Success, None, Some(wanted.url));
            return Ok(Tried::Done(done));
        };
        // One that was there stays there.
        let failed = |result, why: String| record(result, Some(why), there);
        Ok(match error {
            ErrorType::Timeout => Tried::Later(failed(HookResult::Timeout, message)),
            ErrorType::Connectivity => Tried::Later(failed(HookResult::Error, message)),
            _ => Tried::Done(failed(HookResult::Failed, format!("{message}; or {how}"))),
        })
    }

    /// The other enabled triggers of the repository, by what their list says of them.
    async fn beside(&self, runs: &Runs) -> Result<Vec<Beside>, RunError> {
        let source = of_provider(self.spec.provider);
        let listed = runs
            .store
            .listeners_now(&self.place.scope.account, &source)
            .await;
        let listed = listed.doing(|| format!("list the triggers on {}", self.repository))?;
        let names: BTreeSet<String> = name_of(&self.repository).into_iter().collect();
        let mut known = BTreeMap::new();
        let mut found = Vec::new();
        for (place, said) in narrow::of_names(runs, &names, &listed).await? {
            if place == *self.place {
                continue;
            }
            let Some(said) = exactly(runs, &place, said).await? else {
                continue;
            };
            let events = said.events.clone().unwrap_or_default();
            if events.is_empty() || !self.is_own(runs, &place, &said.named(), &mut known).await? {
                continue;
            }
            found.push(Beside {
                secret: secret_of(&place.scope, said.secrets.first().map(String::as_str)),
                place,
                events,
            });
        }
        Ok(found)
    }

    /// Whether a trigger is of the same repository.
    async fn is_own(
        &self,
        runs: &Runs,
        place: &TriggerPlace,
        (connector, name): &(Option<String>, Option<String>),
        known: &mut BTreeMap<(String, Option<String>), bool>,
    ) -> Result<bool, RunError> {
        let Some(reference) = connector else {
            return Ok(false);
        };
        let key = (secret_key(&place.scope, reference), name.clone());
        if let Some(known) = known.get(&key) {
            return Ok(*known);
        }
        let named = (Some(reference.as_str()), name.as_deref());
        let found = repository(runs, &place.scope, named).await?.ok().flatten();
        let own = found.is_some_and(|(url, _)| is_same_repository(&url, &self.repository));
        known.insert(key, own);
        Ok(own)
    }

    /// The URL of the webhook with a secret, and where the trigger has had it already. The plain one is whoever's had it
    /// first; nobody's secret is put in the place of another's.
    async fn url(
        &self,
        runs: &Runs,
        secret: &str,
        beside: &[Beside],
    ) -> Result<(String, Option<String>), RunError> {
        let account: &AccountId = &self.place.scope.account;
        let records = runs.store.list_hooks(account).await;
        let records = records.doing(|| format!("list the webhooks of account {account}"))?;
        let has = |place: &TriggerPlace| {
            let mut of = records.iter().filter(|(of, _)| of == place);
            let (_, record) = of.next()?;
            let repository = record.repository.as_deref()?;
            let url = record.url.as_deref()?;
            is_same_repository(repository, &self.repository).then_some(url)
        };
        let own = has(self.place).map(str::to_owned);
        let other = format!(
            "{}&webhookIdentifier={}",
            self.plain,
            &hex(&digest(&[secret]))[..12]
        );
        let shares = |one: &&Beside| one.secret == secret;
        let taken = beside
            .iter()
            .filter(|one| !shares(one))
            .any(|one| has(&one.place) == Some(&self.plain));
        let parted = beside
            .iter()
            .filter(shares)
            .map(|one| has(&one.place))
            .chain([own.as_deref()])
            .any(|url| url == Some(&other));
        Ok(match taken || parted {
            true => (other, own),
            false => (self.plain.clone(), own),
        })
    }
}

/// What the list says of a trigger, or the trigger itself where that says less. `None` where it is gone.
async fn exactly(runs: &Runs, place: &TriggerPlace, said: Said) -> Result<Option<Said>, RunError> {
    if said.events.is_some() {
        return Ok(Some(said));
    }
    let stored = find_trigger(runs, place).await?;
    let trigger = stored.and_then(|record| read_trigger(&record).ok());
    Ok(trigger.map(|trigger| Said::of(&trigger)))
}
