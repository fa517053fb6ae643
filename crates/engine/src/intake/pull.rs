//! What an event does not tell of the pull request that it is about (comments on GitHub have no branches), asked for once
//! for all of its triggers.

use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use slipway_trigger::{Event, Outcome, Refusal, Texts, Trigger, WebhookSpec, decide};

use super::files::{Asked, api_of};
use super::handle::Starting;
use crate::gather::{Change, PullRequest, WantedChange};

/// What became of a question.
pub(super) enum Told {
    /// The event with what its pull request has.
    More(Box<Event>),
    /// The event must do as it is. Where something is missing that a pipeline might ask for, why.
    AsItIs(Option<String>),
    Refused(Refusal),
    /// It cannot be had now.
    Later(Refusal),
}

/// An event for one of its triggers, with what its pull request has, where that is missing and the trigger would fire: its
/// conditions or inputs may ask for it, or its pipeline.
pub(super) async fn told(
    on: Starting<'_>,
    asked: &Asked,
    (scope, connector): (&Scope, Option<&ConnectorPlan>),
    (trigger, spec, event): (&Trigger, &WebhookSpec, &Event),
    repository: Option<&str>,
) -> Told {
    let missing = decide::untold(event);
    let (Some(number), false) = (event.pr_number, missing.is_empty()) else {
        return Told::AsItIs(None);
    };
    let undecided = match decide::webhook(trigger, spec, event, repository, None) {
        Ok(()) => None,
        Err(refusal) => match refusal.outcome {
            Outcome::FailedToFetchPrDetails => Some(refusal),
            // All else holds.
            Outcome::NoMatchingTriggerForFilepathConditions if decide::wants_files(spec) => None,
            _ => return Told::AsItIs(None),
        },
    };
    let needed = undecided.is_some() || missing.iter().any(|name| gives(trigger, name));
    // The rest is known of most events, so that pipelines which do not say that they need it get on without.
    if !needed && event.target_branch.is_some() {
        return Told::AsItIs(None);
    }
    let Some(connector) = connector else {
        return match undecided {
            Some(refusal) => {
                let how = "give the trigger a `connectorRef` with which it can be";
                let why = format!("{}; {how}", refusal.message);
                Told::Refused(Refusal::new(refusal.outcome, why))
            }
            None => Told::AsItIs(None),
        };
    };
    let wanted = WantedChange {
        connector: connector.clone(),
        scope: scope.clone(),
        repository: spec.repo_name.clone(),
        api: api_of(event),
        change: Change::PullRequest(number),
    };
    let answer = on.sources.pull_request(&wanted);
    let fault = match asked.pulls.once(&wanted, answer).await {
        Ok(pull) => return Told::More(Box::new(with(event, pull))),
        Err(fault) => fault,
    };
    let refusal = |why| Refusal::new(Outcome::FailedToFetchPrDetails, why);
    match (needed, fault.passing) {
        (true, true) => Told::Later(refusal(format!(
            "{}; it is tried again, five times in all",
            fault.message
        ))),
        (true, false) => Told::Refused(refusal(fault.message)),
        (false, _) => Told::AsItIs(Some(format!(
            "branches and commits of pull request {number} are not known: {}",
            fault.message
        ))),
    }
}

/// Whether what a trigger gives to its run asks for a fact.
fn gives(trigger: &Trigger, fact: &str) -> bool {
    let lists = [&trigger.input_sets, &trigger.stages];
    let listed = lists.into_iter().flat_map(|texts| match texts {
        Texts::List(list) => list.as_slice(),
        Texts::Text(text) => std::slice::from_ref(text),
    });
    let own = trigger.inputs_yaml.iter().chain(&trigger.branch);
    listed.chain(own).any(|text| decide::reads(text, fact))
}

/// What the event says counts; what it does not is as the pull request is now.
fn with(event: &Event, pull: PullRequest) -> Event {
    let mut event = event.clone();
    event.source_branch = event.source_branch.or(pull.source_branch);
    event.target_branch = event.target_branch.or(pull.target_branch);
    event.branch = event.branch.or_else(|| event.target_branch.clone());
    event.commit = event.commit.or(pull.commit);
    event.base_commit = event.base_commit.or(pull.base_commit);
    event
}
