//! What a trigger makes of something that happened: it fires, and with what, or not, and why.

use slipway_model::id::Scope;
use slipway_model::status::Status;
use slipway_model::{Kind, entity};
use slipway_plan::ConnectorPlan;
use slipway_store::TriggerPlace;
use slipway_store::record::{EntityRecord, EventRecord, RunRecord};
use slipway_trigger::feed::{self, Build};
use slipway_trigger::{
    Event, Outcome, Provider, Refusal, Source, SystemEvent, Trigger, WebhookSpec, condition,
    decide, facts,
};

use super::files::{self, Asked, Decided};
use super::fire::{Shot, State};
use super::handle::Starting;
use super::listen::{feed_of, specs_of};
use super::pull::{self, Told};
use super::{Happening, facts_of_schedule, secret_key};
use crate::error::{Doing, RunError};
use crate::runs::Runs;

/// An event that waited longer than this starts nothing: what it asks for was overtaken by what people did meanwhile.
const LONGEST_WAIT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// A schedule's time that was missed by more than this (the service did not run) starts nothing.
const LATEST_MS: i64 = 60 * 60 * 1000;

/// What is kept of a run that the end of another started: the pipelines before it, the first one first.
const AFTER: &str = "after";

/// What a trigger makes of an event.
pub(super) enum Verdict {
    Fires(Box<Shot>),
    Refuses(Refusal),
    /// What it needs to know cannot be had now.
    Waits(Refusal),
    /// It is about something that the trigger has nothing to do with.
    Elsewhere,
}

pub(super) async fn decided(
    on: Starting<'_>,
    asked: &Asked,
    (event, happening): (&EventRecord, &Happening),
    (place, trigger, record): (&TriggerPlace, &Trigger, &EntityRecord),
) -> Result<Verdict, RunError> {
    let runs = on.runs;
    let waited = runs.clock.now_ms().saturating_sub(event.received_ms);
    if waited > LONGEST_WAIT_MS {
        let message = "the event waited for more than 7 days: it is too old to start anything";
        return Ok(refuses(Outcome::TargetDidNotExecute, message.to_owned()));
    }
    if !trigger.enabled {
        let message = format!("trigger {} is disabled", trigger.identifier);
        return Ok(refuses(Outcome::NoEnabledTriggerForProject, message));
    }
    match (happening, &trigger.source) {
        (
            Happening::Webhook {
                event,
                signed,
                to,
                by_hand,
                ..
            },
            Source::Webhook(spec),
        ) => {
            let named = (spec.connector.as_deref(), spec.repo_name.as_deref());
            let found = match repository(runs, &place.scope, named).await? {
                Ok(found) => found,
                Err(refusal) => return Ok(Verdict::Refuses(refusal)),
            };
            let (url, connector) = found.unzip();
            // First: what is about another repository is signed with another secret, and no news to this trigger.
            if decide::concerns(spec, event, url.as_deref()).is_err() {
                return Ok(Verdict::Elsewhere);
            }
            if let Some(secret) = &trigger.secret
                && !signed.contains(&secret_key(&place.scope, secret))
                // A URL that only those know who were told it is as good, and so is EventBridge.
                && to.is_none()
                && !by_hand
                && spec.provider != Provider::AwsCodeCommit
            {
                let message = unsigned(runs, &place.scope, secret).await?;
                return Ok(refuses(Outcome::TriggerAuthenticationFailed, message));
            }
            let url = url.as_deref();
            let own = (connector.as_ref(), url);
            let mut verdict = of_webhook((on, asked), own, (place, trigger, spec), event).await;
            if let (true, Verdict::Fires(shot)) = (by_hand, &mut verdict)
                && let Some((_, state)) = &mut shot.newest
            {
                *state = State::default();
            }
            Ok(verdict)
        }
        (Happening::Scheduled { at_ms, .. }, Source::Scheduled { .. }) => {
            let late = runs.clock.now_ms().saturating_sub(*at_ms);
            if late > LATEST_MS {
                let message = format!(
                    "the time of the schedule was missed by {} minutes: it runs at its next time",
                    late / 60_000
                );
                return Ok(refuses(Outcome::TargetDidNotExecute, message));
            }
            Ok(fires(Shot {
                trigger_type: "SCHEDULER_CRON",
                by: trigger.name.clone(),
                facts: facts_of_schedule(*at_ms),
                about: Default::default(),
                newest: None,
                auto_abort: false,
                missing: None,
            }))
        }
        (
            Happening::Feed { feed, build, .. },
            Source::Artifact(_) | Source::Manifest(_) | Source::MultiRegion { .. },
        ) => Ok(of_build((feed, build), trigger, place)),
        (Happening::PipelineEnded { run }, Source::SystemEvent(spec)) => {
            let run = runs.run(run).await?;
            Ok(of_run(&run, spec, (place, record)))
        }
        // It was another trigger when it was listed.
        _ => Ok(Verdict::Elsewhere),
    }
}

/// Why a delivery is not signed as a trigger wants it.
async fn unsigned(runs: &Runs, scope: &Scope, secret: &str) -> Result<String, RunError> {
    let (scope, id) = scope.resolve(secret);
    let kind = Kind::Secret.key();
    let found = runs.store.find_entity(&scope, kind, None, &id).await;
    Ok(match found.doing(|| format!("read secret {secret}"))? {
        Some(_) => format!(
            "the delivery is not signed with the secret `{secret}` of the trigger: set it in the webhook of the repository"
        ),
        None => format!(
            "the trigger's secret `{secret}` does not exist: create it, or name another one"
        ),
    })
}

fn fires(shot: Shot) -> Verdict {
    Verdict::Fires(Box::new(shot))
}

fn refuses(outcome: Outcome, message: String) -> Verdict {
    Verdict::Refuses(Refusal::new(outcome, message))
}

async fn of_webhook(
    (on, asked): (Starting<'_>, &Asked),
    (connector, url): (Option<&ConnectorPlan>, Option<&str>),
    (place, trigger, spec): (&TriggerPlace, &Trigger, &WebhookSpec),
    event: &Event,
) -> Verdict {
    let own = (&place.scope, connector);
    let told = Box::pin(pull::told(on, asked, own, (trigger, spec, event), url));
    let (more, missing) = match told.await {
        Told::More(event) => (Some(event), None),
        Told::AsItIs(missing) => (None, missing),
        Told::Later(refusal) => return Verdict::Waits(refusal),
        Told::Refused(refusal) => return Verdict::Refuses(refusal),
    };
    let event = more.as_deref().unwrap_or(event);
    match files::decided(on, asked, own, (trigger, spec, event), url).await {
        Decided::Holds => {}
        Decided::Later(refusal) => return Verdict::Waits(refusal),
        Decided::Refused(refusal) => return Verdict::Refuses(refusal),
    }
    let facts = facts::of_event(event);
    let custom = spec.provider == Provider::Custom;
    fires(Shot {
        trigger_type: if custom { "WEBHOOK_CUSTOM" } else { "WEBHOOK" },
        by: event.user.clone().unwrap_or_else(|| trigger.name.clone()),
        about: about(event),
        newest: line_of(event),
        auto_abort: spec.auto_abort,
        facts,
        missing,
    })
}

/// What is said about a pull request and changes nothing of what it would merge.
const REMARKS: [&str; 5] = ["Assign", "Unassign", "Label", "Unlabel", "ReviewRequested"];

/// What happens one after the other, and which of it is the newest: the states of a ref or of a pull request. What else
/// happens to a pull request (comments, labels) has an order too, for the runs that are to be aborted, but nothing of it is
/// too old to be answered.
fn line_of(event: &Event) -> Option<(String, State)> {
    let (of, is_state) = match (event.name.as_str(), event.pr_number, &event.git_ref) {
        ("PullRequest" | "MergeRequest", Some(number), _) => {
            let action = event.action.as_deref().unwrap_or_default();
            (format!("pr/{number}"), !REMARKS.contains(&action))
        }
        (_, Some(number), _) => (format!("pr/{number}"), false),
        ("Push" | "Tag", None, Some(name)) => (name.clone(), true),
        _ => return None,
    };
    let state = match is_state {
        true => State {
            happened_ms: event.happened_ms,
            committed_ms: event.committed_ms,
            commit: event.commit.clone(),
            base: event
                .base_commit
                .clone()
                .filter(|_| event.pr_number.is_none()),
        },
        false => State::default(),
    };
    Some((format!("{}/{of}", event.repository), state))
}

/// What lists of runs show of an event.
fn about(event: &Event) -> std::collections::BTreeMap<String, String> {
    let number = event.pr_number.map(|number| number.to_string());
    let named = [
        (
            "event",
            Some(event.name.clone()).filter(|name| !name.is_empty()),
        ),
        ("action", event.action.clone()),
        (
            "repository",
            Some(event.repository.clone()).filter(|name| !name.is_empty()),
        ),
        ("branch", event.branch.clone()),
        ("sourceBranch", event.source_branch.clone()),
        ("targetBranch", event.target_branch.clone()),
        ("tag", event.tag.clone()),
        ("commitSha", event.commit.clone()),
        ("prNumber", number),
        ("prTitle", event.pr_title.clone()),
        ("user", event.user.clone()),
    ];
    let known = named
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    known.collect()
}

/// The URL of the repository that a trigger listens to: its connector's, with `repoName` where that is one of an account
/// or a project. `None` where it names no connector.
pub(super) async fn repository(
    runs: &Runs,
    scope: &Scope,
    (connector, repo_name): (Option<&str>, Option<&str>),
) -> Result<Result<Option<(String, ConnectorPlan)>, Refusal>, RunError> {
    let Some(reference) = connector else {
        return Ok(Ok(None));
    };
    let invalid = |why: String| Ok(Err(Refusal::new(Outcome::ValidationFailedForTrigger, why)));
    let (scope, id) = scope.resolve(reference);
    let kind = Kind::Connector.key();
    let found = runs.store.find_entity(&scope, kind, None, &id).await;
    let Some(record) = found.doing(|| format!("read connector {reference}"))? else {
        return invalid(format!(
            "the trigger's connector `{reference}` does not exist: create it, or name another one"
        ));
    };
    let parsed = match entity::parse(id.as_str(), &record.yaml) {
        Ok(parsed) => parsed.to_json(),
        Err(faults) => return invalid(RunError::faulty(faults).to_string()),
    };
    let spec_of = &parsed["spec"];
    let (url, kind) = (&spec_of["url"], spec_of.get("connectionType"));
    // A plain Git connector says there how it logs in.
    let kind = kind.unwrap_or(&spec_of["type"]);
    let Some(url) = url.as_str() else {
        return invalid(format!(
            "the trigger's connector `{reference}` has no `url`"
        ));
    };
    let connector = ConnectorPlan {
        reference: reference.to_owned(),
        kind: parsed["type"].as_str().unwrap_or_default().to_owned(),
        spec: parsed["spec"].clone(),
    };
    if kind == "Repo" {
        return Ok(Ok(Some((url.to_owned(), connector))));
    }
    let Some(name) = repo_name else {
        return invalid(format!(
            "the connector `{reference}` is one of many repositories: the trigger must say `repoName`"
        ));
    };
    let url = url.trim_end_matches('/');
    // A connector of a region of CodeCommit has the host alone.
    let folder = match connector.kind == "Codecommit" && !url.ends_with("/repos") {
        true => "/v1/repos",
        false => "",
    };
    Ok(Ok(Some((format!("{url}{folder}/{name}"), connector))))
}

/// Whether a new version is what a trigger listens to.
fn of_build((feed, build): (&str, &Build), trigger: &Trigger, place: &TriggerPlace) -> Verdict {
    let own = feed_of(trigger, &place.scope);
    if own.is_none_or(|(_, own)| own.key() != feed) {
        return Verdict::Elsewhere;
    }
    let specs = specs_of(trigger);
    let mut decided = specs.iter();
    let refused = decided.find_map(|spec| feed::decide(spec, build, condition::holds).err());
    if let Some(refusal) = refused {
        return Verdict::Refuses(refusal);
    }
    // Where there are several regions it is told of the first.
    let Some(spec) = specs.first() else {
        return Verdict::Elsewhere;
    };
    let charts = matches!(trigger.source, Source::Manifest(_));
    fires(Shot {
        trigger_type: if charts { "MANIFEST" } else { "ARTIFACT" },
        by: trigger.name.clone(),
        facts: feed::facts(spec, build),
        about: [("version".to_owned(), build.version.clone())].into(),
        newest: None,
        auto_abort: false,
        missing: None,
    })
}

/// Whether the end of a run is what a trigger listens to.
fn of_run(
    run: &RunRecord,
    spec: &SystemEvent,
    (place, record): (&TriggerPlace, &EntityRecord),
) -> Verdict {
    let succeeded = matches!(run.status, Status::Success | Status::IgnoreFailed);
    // One that a person or a freeze stopped did neither.
    let failed = matches!(
        run.status,
        Status::Failed | Status::Errored | Status::Expired | Status::ApprovalRejected
    );
    let is_its = if spec.success { succeeded } else { failed };
    if !is_its || run.pipeline == place.pipeline || run.parent.is_some() {
        return Verdict::Elsewhere;
    }
    let before = run.trigger.as_ref().and_then(|by| by.about.get(AFTER));
    let before = before.map(String::as_str).unwrap_or_default();
    if before.split(' ').any(|id| id == place.pipeline.as_str()) {
        let why = format!(
            "the run followed on one of {} itself: two pipelines that start each other would never end",
            place.pipeline
        );
        return refuses(Outcome::TargetDidNotExecute, why);
    }
    let after = format!("{before} {}", run.pipeline);
    let mut facts = serde_json::Map::new();
    let event = if succeeded {
        "PipelineSuccess"
    } else {
        "PipelineFailure"
    };
    facts.insert("type".to_owned(), "SystemEvent".into());
    facts.insert("event".to_owned(), event.into());
    let payload = serde_json::json!({
        "pipelineIdentifier": run.pipeline,
        "planExecutionId": run.id,
        "status": run.status,
        "runSequence": run.sequence,
    });
    facts.insert("payload".to_owned(), payload);
    if let Err(refusal) = decide::payload(&spec.conditions, &facts) {
        return Verdict::Refuses(refusal);
    }
    fires(Shot {
        trigger_type: "SYSTEM_EVENT",
        by: record.name.clone(),
        facts: facts.into(),
        about: [(AFTER.to_owned(), after.trim().to_owned())].into(),
        newest: None,
        auto_abort: false,
        missing: None,
    })
}
