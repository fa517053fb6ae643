//! Which of the triggers that listen to a provider may be about the repository of an event, by what their list says of
//! them: an account may have ten thousand triggers, and none of another repository is read.
//!
//! What is said of a trigger is written with it, and connectors are read when the event is handled, so that no trigger is
//! left out whose repository it is.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use slipway_model::id::{EntityId, Scope};
use slipway_model::{Kind, entity};
use slipway_store::TriggerPlace;
use slipway_trigger::repository::{name_of, names_of};
use slipway_trigger::{Event, Source, Trigger};

use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// What the list of a provider's triggers says of one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The secrets that its deliveries may be signed with, as the trigger refers to them. An empty one is none: the trigger
    /// believes everybody.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// `repoName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository: Option<String>,
    /// `connectorRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connector: Option<String>,
    /// What it listens to: nothing while it is disabled. `None` where only the trigger says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) events: Option<Vec<String>>,
}

impl Said {
    pub(super) fn of(trigger: &Trigger) -> Self {
        let (repository, connector, event) = match &trigger.source {
            Source::Webhook(spec) => {
                let event = trigger.enabled.then(|| spec.event.clone());
                (spec.repo_name.clone(), spec.connector.clone(), event)
            }
            _ => (None, None, None),
        };
        Self {
            secrets: vec![trigger.secret.clone().unwrap_or_default()],
            repository,
            connector,
            events: Some(event.into_iter().collect()),
        }
    }

    /// While a trigger becomes another one, either may be what is stored: it is read whatever its repository.
    pub(super) fn either(one: Self, other: Self) -> Self {
        let mut secrets = one.secrets;
        secrets.extend(other.secrets);
        Self {
            secrets,
            ..Self::default()
        }
    }

    /// Its `connectorRef` and `repoName`.
    pub(super) fn named(&self) -> (Option<String>, Option<String>) {
        (self.connector.clone(), self.repository.clone())
    }

    pub(super) fn written(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`crate::intake::listen`] wrote. An earlier version wrote the secret alone.
    pub fn read(written: &str) -> Self {
        serde_json::from_str(written).unwrap_or_else(|_| Self {
            secrets: vec![written.to_owned()],
            ..Self::default()
        })
    }
}

/// Those of the listed triggers that may be about the repository of an event.
pub(super) async fn of_repository(
    runs: &Runs,
    event: &Event,
    listed: &[(TriggerPlace, String)],
) -> Result<Vec<TriggerPlace>, RunError> {
    let found = of_names(runs, &names_of(event), listed).await?;
    Ok(found.into_iter().map(|(place, _)| place).collect())
}

/// Those of the listed triggers that may be about a repository with one of these names ([`name_of`]), or any without.
pub(super) async fn of_names(
    runs: &Runs,
    names: &BTreeSet<String>,
    listed: &[(TriggerPlace, String)],
) -> Result<Vec<(TriggerPlace, Said)>, RunError> {
    let may_be =
        |name: Option<String>| name.is_none_or(|name| names.is_empty() || names.contains(&name));
    let mut known = BTreeMap::<(Scope, EntityId), Named>::new();
    let mut found = Vec::new();
    for (place, said) in listed {
        let said = Said::read(said);
        let own = said.repository.as_deref().and_then(name_of);
        let about = match &said.connector {
            Some(reference) if own.is_none() || !may_be(own.clone()) => {
                let at = place.scope.resolve(reference);
                let named = match known.entry(at) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => {
                        let of = named(runs, unknown.key()).await?;
                        unknown.insert(of)
                    }
                };
                match named {
                    Named::One(url) => may_be(name_of(url)),
                    // Why it is nothing is told in the history of the trigger.
                    Named::Nothing => true,
                    Named::Many => may_be(own),
                }
            }
            _ => may_be(own),
        };
        if about {
            found.push((place.clone(), said));
        }
    }
    Ok(found)
}

/// What a connector is of.
enum Named {
    /// One repository, by its URL.
    One(String),
    /// Many: who refers to it names one of them.
    Many,
    /// It is not there, or cannot be read.
    Nothing,
}

async fn named(runs: &Runs, (scope, id): &(Scope, EntityId)) -> Result<Named, RunError> {
    let kind = Kind::Connector.key();
    let found = runs.store.find_entity(scope, kind, None, id).await;
    let found = found.doing(|| format!("read connector {id}"))?;
    let parsed = found.and_then(|record| entity::parse(id.as_str(), &record.yaml).ok());
    let Some(parsed) = parsed.map(|parsed| parsed.to_json()) else {
        return Ok(Named::Nothing);
    };
    let spec = &parsed["spec"];
    Ok(match spec["url"].as_str() {
        Some(url) if spec["type"] == "Repo" => Named::One(url.to_owned()),
        Some(_) => Named::Many,
        None => Named::Nothing,
    })
}
