//! The changed files of an event whose payload does not list them, asked for once for all of its triggers.

use std::collections::BTreeMap;

use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use slipway_trigger::{
    ChangedFiles, Event, Outcome, Provider, Refusal, Trigger, WebhookSpec, decide,
};
use tokio::sync::Mutex;

use super::handle::Starting;
use super::owner::Owners;
use super::secret_key;
use crate::gather::{Change, ChangeFault, ChangedPaths, HostApi, PullRequest, WantedChange};

/// What was asked while an event is handled.
#[derive(Default)]
pub(super) struct Asked {
    files: Answers<ChangedPaths>,
    pub(super) pulls: Answers<PullRequest>,
    pub(super) owners: Owners,
}

/// Answers by connector and repository.
pub(super) struct Answers<T>(Mutex<BTreeMap<String, Result<T, ChangeFault>>>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// What became of a trigger's conditions.
pub(super) enum Decided {
    Holds,
    Refused(Refusal),
    /// The files cannot be had now.
    Later(Refusal),
}

/// A trigger on an event: whether it fires is decided with the files, where that is all that is missing.
pub(super) async fn decided(
    on: Starting<'_>,
    asked: &Asked,
    (scope, connector): (&Scope, Option<&ConnectorPlan>),
    (trigger, spec, event): (&Trigger, &WebhookSpec, &Event),
    repository: Option<&str>,
) -> Decided {
    let refusal = match decide::webhook(trigger, spec, event, repository, None) {
        Ok(()) => return Decided::Holds,
        Err(refusal) => refusal,
    };
    let unknown = event.changed_files == ChangedFiles::Unknown
        && refusal.outcome == Outcome::NoMatchingTriggerForFilepathConditions;
    if !unknown {
        return Decided::Refused(refusal);
    }
    let not_asked = |why: &str| {
        let outcome = Outcome::NoMatchingTriggerForFilepathConditions;
        Decided::Refused(Refusal::new(outcome, format!("{}: {why}", refusal.message)))
    };
    let Some(connector) = connector else {
        return not_asked("give the trigger a `connectorRef` with which they can be");
    };
    let Some(change) = change(event) else {
        return not_asked(
            "there is nothing to compare it with: a new branch or tag has no commit before it",
        );
    };
    let wanted = WantedChange {
        connector: connector.clone(),
        scope: scope.clone(),
        repository: spec.repo_name.clone(),
        api: api_of(event),
        change,
    };
    let answer = on.sources.changed_files(&wanted);
    let changed = match asked.files.once(&wanted, answer).await {
        Ok(changed) => changed,
        Err(fault) => {
            let outcome = match event.pr_number {
                Some(_) => Outcome::FailedToFetchPrDetails,
                None => Outcome::ScmServiceConnectionFailed,
            };
            return match fault.passing {
                true => {
                    let why = format!("{}; it is tried again, five times in all", fault.message);
                    Decided::Later(Refusal::new(outcome, why))
                }
                false => Decided::Refused(Refusal::new(outcome, fault.message)),
            };
        }
    };
    let decided = decide::webhook(trigger, spec, event, repository, Some(&changed.files));
    match decided {
        Ok(()) if changed.complete || !decide::denies_files(spec) => Decided::Holds,
        Err(refusal) if changed.complete => Decided::Refused(refusal),
        _ => {
            let outcome = Outcome::NoMatchingTriggerForFilepathConditions;
            let why = format!(
                "{} changed files are known, which are not all that changed, and do not decide the conditions on changed files",
                changed.files.len()
            );
            Decided::Refused(Refusal::new(outcome, why))
        }
    }
}

/// What is compared; `None` where there is nothing before it.
fn change(event: &Event) -> Option<Change> {
    if let Some(number) = event.pr_number {
        return Some(Change::PullRequest(number));
    }
    Some(Change::Push {
        before: event.base_commit.clone()?,
        after: event.commit.clone()?,
    })
}

/// Whose API the host of an event has.
pub(super) fn api_of(event: &Event) -> HostApi {
    match event.provider {
        Provider::Harness => HostApi::HarnessCode,
        _ if is_gitea(event) => HostApi::Gitea,
        _ => HostApi::OfConnector,
    }
}

/// Whether an event that says that it is GitHub's came from Gitea or Forgejo.
fn is_gitea(event: &Event) -> bool {
    let names = [
        "x-gitea-event",
        "x-gitea-delivery",
        "x-forgejo-event",
        "x-gogs-event",
    ];
    let mut headers = event.headers.iter();
    event.provider == Provider::Github && headers.any(|(name, _)| names.contains(&name.as_str()))
}

impl<T: Clone> Answers<T> {
    /// The answer, of which nobody is asked twice.
    pub(super) async fn once(
        &self,
        wanted: &WantedChange,
        answer: impl Future<Output = Result<T, ChangeFault>>,
    ) -> Result<T, ChangeFault> {
        let connector = secret_key(&wanted.scope, &wanted.connector.reference);
        let repository = wanted.repository.as_deref().unwrap_or_default();
        let key = format!("{connector}\n{repository}");
        // Held while it is asked: the triggers of an event decide one after the other anyway.
        let mut known = self.0.lock().await;
        if let Some(found) = known.get(&key) {
            return found.clone();
        }
        let found = answer.await;
        known.insert(key, found.clone());
        found
    }
}
