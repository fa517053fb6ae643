//! What a notice says, before a channel gives it its form.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slipway_engine::link;
use slipway_engine::notify::{Event, Notice};
use slipway_expr::{Piece, SecretText};
use slipway_model::status::{Failure, Status};
use slipway_plan::StagePlan;
use slipway_steps::approval::{Verdict, activities};

use crate::Facts;
use crate::custom::Custom;
use crate::fact::Record;

/// Longest text of a failure that is sent, in characters.
const LONGEST_FAILURE: usize = 2_000;

/// How grave it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Severity {
    Info,
    Success,
    Warning,
    Error,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// The same for a message that is sent again.
    pub(crate) id: String,
    /// Identifies the run: messages with the same subject belong together.
    pub(crate) run: String,
    pub(crate) at: Timestamp,
    pub(crate) severity: Severity,
    /// One line.
    pub(crate) headline: String,
    /// Names and values, one line each but the failure.
    pub(crate) facts: Vec<(Cow<'static, str>, String)>,
    pub(crate) link: Option<String>,
    /// What webhooks get: Harness's `eventData`.
    pub(crate) data: Value,
    /// The message as a template of the rule words it, which takes the place of the standard one.
    pub(crate) custom: Option<Custom>,
}

/// What an event is about: names, times, and how it ended.
struct Subject<'f> {
    stage: Option<&'f StagePlan>,
    step: Option<(&'f str, &'f str)>,
    status: Status,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    failure: Option<&'f Failure>,
    at_ms: i64,
    who: Option<&'f str>,
}

impl Message {
    pub(crate) fn of(
        facts: &Facts,
        notice: &Notice,
        record: Record<'_>,
        url: Option<&str>,
    ) -> Self {
        let event = &notice.event;
        let subject = subject(facts, event, record);
        let link = url.map(|url| link::of_run(url, &facts.run));
        Self {
            id: notice.id(),
            run: facts.run.id.to_string(),
            at: time(subject.at_ms),
            severity: severity(event, subject.status),
            headline: one_line(&headline(facts, event, &subject)),
            facts: approval_rows(facts, event)
                .into_iter()
                .chain(rows(facts, &subject))
                .map(named)
                .collect(),
            data: data(facts, event, &subject, link.as_deref()),
            link,
            custom: None,
        }
    }

    /// The whole message as text, plain unless a template words it.
    pub(crate) fn text(&self) -> String {
        if let Some(custom) = &self.custom {
            return custom.text.clone();
        }
        let mut text = self.headline.clone();
        for (name, value) in &self.facts {
            text.push_str(&format!("\n{name}: {value}"));
        }
        if let Some(link) = &self.link {
            text.push_str(&format!("\n{link}"));
        }
        text
    }
}

/// A name of ours and its value.
pub(crate) fn named((name, value): (&'static str, String)) -> (Cow<'static, str>, String) {
    (Cow::Borrowed(name), value)
}

fn subject<'f>(facts: &'f Facts, event: &Event, record: Record<'f>) -> Subject<'f> {
    let mut stages = facts.plan.groups.iter().flatten();
    let stage = stages.find(|stage| Some(&stage.id) == event.stage());
    let run = &facts.run;
    let ended = matches!(
        event,
        Event::PipelineEnd | Event::PipelineSuccess | Event::PipelineFailed
    );
    let of_run = Subject {
        stage,
        step: None,
        status: run.status,
        started_ms: Some(run.started_ms),
        ended_ms: run.ended_ms.filter(|_| ended),
        failure: run.failure.as_ref().filter(|_| ended),
        at_ms: run.ended_ms.filter(|_| ended).unwrap_or(run.started_ms),
        who: None,
    };
    match record {
        Record::Run => of_run,
        Record::Signal(signal) => Subject {
            at_ms: signal.at_ms,
            who: Some(signal.who.as_str()),
            ..of_run
        },
        Record::Stage(summary) => {
            let ended = !matches!(event, Event::StageStart { .. });
            let ended_ms = summary.ended_ms.filter(|_| ended);
            Subject {
                status: summary.status,
                started_ms: summary.started_ms,
                ended_ms,
                failure: summary.failure.as_ref().filter(|_| ended),
                at_ms: ended_ms.or(summary.started_ms).unwrap_or(run.started_ms),
                ..of_run
            }
        }
        Record::Step(node) => Subject {
            step: Some((node.identifier.as_str(), &node.name)),
            status: node.status,
            started_ms: Some(node.started_ms),
            ended_ms: node.ended_ms,
            failure: node.failure.as_ref(),
            at_ms: node.ended_ms.or(node.asked_ms).unwrap_or(node.started_ms),
            ..of_run
        },
    }
}

fn headline(facts: &Facts, event: &Event, subject: &Subject<'_>) -> String {
    let pipeline = &facts.run.name;
    let stage = subject.stage.map_or("", |stage| stage.name.as_str());
    let step = subject.step.map_or("", |(_, name)| name);
    match event {
        Event::PipelineStart => format!("Pipeline {pipeline} started"),
        Event::PipelineSuccess => format!("Pipeline {pipeline} succeeded"),
        Event::PipelineFailed => format!("Pipeline {pipeline} failed"),
        Event::PipelineEnd => format!("Pipeline {pipeline} ended: {:?}", subject.status),
        Event::PipelinePaused { .. } => format!("Pipeline {pipeline} was paused"),
        Event::PipelineResumed { .. } => format!("Pipeline {pipeline} goes on"),
        Event::StageStart { .. } => format!("Stage {stage} of pipeline {pipeline} started"),
        Event::StageSuccess { .. } => format!("Stage {stage} of pipeline {pipeline} succeeded"),
        Event::StageFailed { .. } => format!("Stage {stage} of pipeline {pipeline} failed"),
        Event::StepFailed { .. } => format!("Step {step} of pipeline {pipeline} failed"),
        Event::ApprovalRequired { .. } => {
            format!("Approval {step} of pipeline {pipeline} waits for you")
        }
        Event::ApprovalAnswered { .. } if subject.failure.is_some() => {
            format!("Approval {step} of pipeline {pipeline} was rejected")
        }
        Event::ApprovalAnswered { .. } => {
            format!("Approval {step} of pipeline {pipeline} was given")
        }
        Event::DeploymentRejectedDueToFreeze { .. } => {
            format!("Stage {stage} of pipeline {pipeline} did not begin: deployments are frozen")
        }
        Event::WaitingForUserAction { .. } => {
            let what = match subject.status {
                Status::InterventionWaiting => "an answer to its failure",
                Status::InputWaiting => "an input",
                _ => "an approval",
            };
            format!("Step {step} of pipeline {pipeline} waits for {what}")
        }
    }
}

fn severity(event: &Event, status: Status) -> Severity {
    match event {
        Event::PipelineFailed | Event::StageFailed { .. } | Event::StepFailed { .. } => {
            Severity::Error
        }
        Event::ApprovalAnswered { .. } if status.is_good() => Severity::Success,
        Event::ApprovalAnswered { .. } => Severity::Error,
        Event::PipelinePaused { .. }
        | Event::ApprovalRequired { .. }
        | Event::WaitingForUserAction { .. }
        | Event::DeploymentRejectedDueToFreeze { .. } => Severity::Warning,
        Event::PipelineSuccess | Event::StageSuccess { .. } => Severity::Success,
        Event::PipelineEnd if status.is_good() => Severity::Success,
        Event::PipelineEnd if status == Status::Aborted => Severity::Warning,
        Event::PipelineEnd => Severity::Error,
        Event::PipelineStart | Event::PipelineResumed { .. } | Event::StageStart { .. } => {
            Severity::Info
        }
    }
}

fn rows(facts: &Facts, subject: &Subject<'_>) -> Vec<(&'static str, String)> {
    let run = &facts.run;
    let stage = subject.stage;
    let mut rows = vec![
        ("Run", format!("#{} {}", run.sequence, run.id)),
        (
            "Started by",
            format!("{} ({})", run.starter(), run.trigger_type),
        ),
    ];
    let mut add = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("By", subject.who.map(str::to_owned));
    add("Stage", stage.map(|stage| stage.name.clone()));
    add("Step", subject.step.map(|(_, name)| name.to_owned()));
    let service = stage.and_then(|stage| stage.service.as_ref());
    add("Service", service.map(|service| service.name.clone()));
    let environment = stage.and_then(|stage| stage.environment.as_ref());
    add(
        "Environment",
        environment.map(|environment| environment.name.clone()),
    );
    let infrastructure = stage.and_then(|stage| stage.infrastructure.as_ref());
    add(
        "Infrastructure",
        infrastructure.map(|place| place.name.clone()),
    );
    add("Started", subject.started_ms.map(|ms| shown(time(ms))));
    add("Ended", subject.ended_ms.map(|ms| shown(time(ms))));
    let took = subject.started_ms.zip(subject.ended_ms);
    add("Duration", took.map(|(from, to)| duration(to - from)));
    for (_, value) in &mut rows {
        *value = one_line(value);
    }
    rows.extend(
        subject
            .failure
            .map(|failure| ("Error", error_text(failure))),
    );
    rows
}

/// What approvers want to know first: what they are asked, and what others said.
fn approval_rows(facts: &Facts, event: &Event) -> Vec<(&'static str, String)> {
    let (node, attempt) = match (event, event.step()) {
        (Event::ApprovalRequired { .. } | Event::ApprovalAnswered { .. }, Some(step)) => step,
        _ => return Vec::new(),
    };
    let mut nodes = facts.nodes.iter();
    let record = nodes.find(|known| known.id == *node && known.attempt == attempt);
    let message = record.and_then(|record| record.spec["approvalMessage"].as_str());
    let shown = message.map(|text| ("Message", plain(text)));
    let said = activities(&facts.run.signals, node, attempt).into_iter();
    let said = said.map(|one| {
        let what = match one.verdict {
            Verdict::Approve => "approved",
            Verdict::Reject => "rejected",
        };
        let text = format!("{} {what}: {}", one.who, one.comments);
        ("Answer", one_line(text.trim_end_matches([':', ' '])))
    });
    shown.into_iter().chain(said).collect()
}

/// The text of a spec on one line, without the secrets in it.
fn plain(text: &str) -> String {
    let pieces = SecretText::decode(text);
    let shown = pieces.pieces().iter().map(|piece| match piece {
        Piece::Plain(text) => text.as_str(),
        Piece::Secret(_) => "******",
    });
    one_line(&shown.collect::<String>())
}

/// The failure as it is shown: what went wrong, and what a person must look at.
fn error_text(failure: &Failure) -> String {
    let left = failure.left_behind.as_ref();
    let left = left.map_or_else(String::new, |left| format!(" Left behind: {left}"));
    let text = format!("{}{left}", failure.message);
    match text.char_indices().nth(LONGEST_FAILURE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Harness's `eventData` (developer-hub, *Add a pipeline notification strategy*, "JSON for webhook notifications").
fn data(facts: &Facts, event: &Event, subject: &Subject<'_>, link: Option<&str>) -> Value {
    let run = &facts.run;
    let mut data = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            data.insert(name.to_owned(), value);
        }
    };
    let text = |text: &str| Some(Value::from(text));
    add("accountIdentifier", text(run.scope.account.as_str()));
    add(
        "orgIdentifier",
        run.scope.org.as_ref().map(|id| id.as_str().into()),
    );
    add(
        "projectIdentifier",
        run.scope.project.as_ref().map(|id| id.as_str().into()),
    );
    add("pipelineIdentifier", text(run.pipeline.as_str()));
    add("pipelineName", text(&run.name));
    add("planExecutionId", text(run.id.as_str()));
    add(
        "stageIdentifier",
        subject.stage.map(|stage| stage.identifier.as_str().into()),
    );
    add(
        "stageName",
        subject.stage.map(|stage| stage.name.clone().into()),
    );
    add(
        "stepIdentifier",
        subject.step.map(|(identifier, _)| identifier.into()),
    );
    // Harness gives the stage's name here where the event is the stage's.
    let stage_name = subject.stage.map(|stage| stage.name.as_str());
    add(
        "stepName",
        subject
            .step
            .map(|(_, name)| name)
            .or(stage_name)
            .map(Value::from),
    );
    add("executionUrl", link.map(Value::from));
    add("eventType", text(event.name()));
    add("nodeStatus", text(node_status(event, subject.status)));
    add(
        "triggeredBy",
        Some(json!({"triggerType": run.trigger_type, "name": run.starter()})),
    );
    add(
        "startTime",
        subject.started_ms.map(|ms| harness_time(ms).into()),
    );
    add(
        "startTs",
        subject.started_ms.map(|ms| ms.div_euclid(1_000).into()),
    );
    add(
        "endTime",
        subject.ended_ms.map(|ms| harness_time(ms).into()),
    );
    add(
        "endTs",
        subject.ended_ms.map(|ms| ms.div_euclid(1_000).into()),
    );
    add(
        "errorMessage",
        subject.failure.map(|failure| error_text(failure).into()),
    );
    Value::Object(data)
}

fn node_status(event: &Event, status: Status) -> &'static str {
    match event {
        Event::PipelineStart | Event::StageStart { .. } => "started",
        Event::PipelineSuccess | Event::StageSuccess { .. } => "completed",
        Event::PipelineFailed | Event::StageFailed { .. } | Event::StepFailed { .. } => "failed",
        Event::PipelineEnd if status == Status::Aborted => "aborted",
        Event::PipelineEnd => "completed",
        Event::PipelinePaused { .. } => "paused",
        Event::PipelineResumed { .. } => "resumed",
        Event::ApprovalRequired { .. } => "waiting",
        Event::ApprovalAnswered { .. } if status.is_good() => "completed",
        Event::ApprovalAnswered { .. } => "failed",
        Event::DeploymentRejectedDueToFreeze { .. } => "aborted",
        Event::WaitingForUserAction { .. } => "waiting",
    }
}

pub(crate) fn time(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub(crate) fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `Tue Aug 20 08:14:46 GMT 2024`.
pub(crate) fn harness_time(ms: i64) -> String {
    time(ms).strftime("%a %b %d %H:%M:%S GMT %Y").to_string()
}

fn duration(ms: i64) -> String {
    let seconds = (ms / 1_000).max(0);
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A text on one line: names are chosen by users, and headers of mails end at a line's end.
pub(crate) fn one_line(text: &str) -> String {
    let spaced = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    spaced.collect()
}
