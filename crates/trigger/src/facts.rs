//! What `<+trigger.…>` and `<+eventPayload.…>` see of an event.

use std::cell::Cell;

use serde_json::{Map, Value as Json, json};
use slipway_expr::{Context, Segment, Value};

use crate::{Event, Provider};

/// The facts of a webhook's event, as one document: it is kept with the run, and expressions are evaluated against it.
/// What the event does not have is not in it, so that an expression that asks for it is told so.
pub fn of_event(event: &Event) -> Json {
    let mut facts = head(event);
    if !event.payload.is_null() {
        facts.insert("payload".to_owned(), event.payload.clone());
    }
    Json::Object(facts)
}

/// The facts without the payload, which may be large.
pub(crate) fn head(event: &Event) -> Map<String, Json> {
    let mut facts = Map::new();
    let mut say = |name: &str, value: Json| {
        if !value.is_null() {
            facts.insert(name.to_owned(), value);
        }
    };
    say("type", Json::from("Webhook"));
    say("event", Json::from(kind(event)));
    say("action", event.action.clone().into());
    say("branch", event.branch.clone().into());
    say("sourceBranch", event.source_branch.clone().into());
    say("targetBranch", event.target_branch.clone().into());
    say("prNumber", event.pr_number.into());
    say("prTitle", event.pr_title.clone().into());
    say("commitSha", event.commit.clone().into());
    say("baseCommitSha", event.base_commit.clone().into());
    say("tag", event.tag.clone().into());
    say("gitUser", event.user.clone().into());
    say("repoUrl", repo_url(event).into());
    say("sourceRepo", Json::from(event.provider.name()));
    say("header", headers(event));
    facts
}

/// Whether an event may have a fact of this name.
pub(crate) fn is_name(word: &str) -> bool {
    const NAMES: [&str; 14] = [
        "sourceBranch",
        "targetBranch",
        "branch",
        "tag",
        "prTitle",
        "type",
        "event",
        "action",
        "prNumber",
        "commitSha",
        "baseCommitSha",
        "gitUser",
        "repoUrl",
        "sourceRepo",
    ];
    NAMES.contains(&word)
}

/// `<+trigger.event>`: `PR` and `PUSH` are Harness's words, the others are the names of events written like them.
fn kind(event: &Event) -> String {
    match event.name.as_str() {
        "PullRequest" | "MergeRequest" => "PR".to_owned(),
        "" => "CUSTOM".to_owned(),
        "MRComment" => "MR_COMMENT".to_owned(),
        "PRComment" => "PR_COMMENT".to_owned(),
        name => {
            let mut word = String::new();
            for (at, c) in name.chars().enumerate() {
                if at > 0 && c.is_ascii_uppercase() {
                    word.push('_');
                }
                word.push(c.to_ascii_uppercase());
            }
            word
        }
    }
}

/// The address that people open: the first that is http, without what only Git wants.
fn repo_url(event: &Event) -> Option<String> {
    if event.provider == Provider::Custom {
        return None;
    }
    let web = event.urls.iter().find(|url| url.starts_with("http"));
    web.or_else(|| event.urls.first()).cloned()
}

/// Headers by their names in lower case. Of one that comes twice the first counts here as nowhere else: conditions may read
/// it, authentication has not.
fn headers(event: &Event) -> Json {
    let mut headers = Map::new();
    for (name, value) in &event.headers {
        headers
            .entry(name.to_ascii_lowercase())
            .or_insert_with(|| json!(value));
    }
    Json::Object(headers)
}

/// Facts as a context of expressions: `trigger.…`, where names of headers are found whatever their case, and
/// `eventPayload.…`, which is the same as `trigger.payload.…`.
#[derive(Clone, Copy, Debug)]
pub struct TriggerContext<'a>(pub &'a Json);

impl Context for TriggerContext<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let found = find(&|name| self.0.get(name), path);
        found.map(Value::from_json).or_else(|| whole(self.0, path))
    }
}

/// `<+trigger>` itself.
fn whole(facts: &Json, path: &[Segment]) -> Option<Value> {
    matches!(path, [only] if key(only) == Some("trigger")).then(|| Value::from_json(facts))
}

/// The same for an event whose payload is not copied, for one evaluation.
pub(crate) struct EventContext<'a> {
    pub(crate) head: &'a Map<String, Json>,
    payload: &'a Json,
    /// Names in the path that was looked for last and is not there. The evaluator asks for its shorter beginnings next, to
    /// look in them: that would copy the payload only to find again that it is not there.
    missing: Cell<usize>,
}

impl<'a> EventContext<'a> {
    pub(crate) fn new(head: &'a Map<String, Json>, payload: &'a Json) -> Self {
        Self {
            head,
            payload,
            missing: Cell::new(0),
        }
    }
}

impl Context for EventContext<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let shorter = path.len() + 1 == self.missing.get();
        let of_facts = |name: &str| match name {
            "payload" => Some(self.payload),
            name => self.head.get(name),
        };
        let found = (!shorter).then(|| find(&of_facts, path)).flatten();
        self.missing
            .set(if found.is_none() { path.len() } else { 0 });
        found.map(Value::from_json)
    }
}

/// What a path names, of facts that are known by name.
fn find<'j>(facts: &dyn Fn(&str) -> Option<&'j Json>, path: &[Segment]) -> Option<&'j Json> {
    match path {
        [first, part, name, rest @ ..]
            if key(first) == Some("trigger") && key(part) == Some("header") =>
        {
            let header = facts("header")?.get(key(name)?.to_ascii_lowercase())?;
            descend(header, rest)
        }
        [first, name, rest @ ..] if key(first) == Some("trigger") => {
            descend(facts(key(name)?)?, rest)
        }
        [first, rest @ ..] if key(first) == Some("eventPayload") => {
            descend(facts("payload")?, rest)
        }
        _ => None,
    }
}

fn key(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Key(key) => Some(key),
        Segment::Index(_) => None,
    }
}

fn descend<'j>(from: &'j Json, path: &[Segment]) -> Option<&'j Json> {
    path.iter()
        .try_fold(from, |value, segment| match (value, segment) {
            (Json::Array(items), Segment::Index(at)) => items.get(*at),
            (Json::Array(items), Segment::Key(key)) => items.get(key.parse::<usize>().ok()?),
            (Json::Object(map), Segment::Key(key)) => map.get(key.as_str()),
            (Json::Object(map), Segment::Index(at)) => map.get(&at.to_string()),
            _ => None,
        })
}
