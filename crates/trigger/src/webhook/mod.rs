//! What deliveries say, provider by provider. Pure reading: a payload that is not as its provider documents it is an error
//! with the path of what is wrong, never a panic and never a guess.

mod azure_repo;
mod bitbucket;
mod bitbucket_server;
mod code_commit;
mod custom;
mod field;
mod github;
mod gitlab;
mod harness;
mod harness_registry;

pub use code_commit::read_event_bridge;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{ChangedFiles, Delivery, Event, Provider, payload, signature};
use field::Fields;

/// What a delivery tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// One thing happened.
    Event(Box<Event>),
    /// Several did: a push of more than one ref, or what counts as two kinds of event (a tag that is pushed).
    Several(Vec<Event>),
    /// Nothing that a trigger can listen to, and why.
    Ignored(String),
}

impl Heard {
    /// The events of it, in the order of the delivery.
    pub fn events(self) -> Vec<Event> {
        match self {
            Self::Event(event) => vec![*event],
            Self::Several(events) => events,
            Self::Ignored(_) => Vec::new(),
        }
    }

    fn of(mut events: Vec<Event>, nothing: &str) -> Self {
        match (events.len(), events.pop()) {
            (1, Some(event)) => Self::Event(Box::new(event)),
            (_, Some(last)) => {
                events.push(last);
                Self::Several(events)
            }
            (_, None) => Self::Ignored(nothing.to_owned()),
        }
    }
}

/// Who sends this, by the headers that only that provider has, or for Azure, which has none, by the body. `None` where
/// nobody known does, or two do at once.
///
/// Gitea and Forgejo send what GitHub sends, under the same header, and count as it.
pub fn provider_of(delivery: &Delivery) -> Option<Provider> {
    let has = |name: &str| delivery.header(name).is_some();
    let harness = HARNESS_TRIGGER
        .iter()
        .find_map(|name| delivery.header(name));
    let claims = [
        has("x-github-event").then_some(Provider::Github),
        has("x-gitlab-event").then_some(Provider::Gitlab),
        has("x-event-key").then_some(Provider::Bitbucket),
        harness.map(|trigger| match trigger.starts_with("artifact_") {
            true => Provider::HarnessArtifactRegistry,
            false => Provider::Harness,
        }),
    ];
    let mut claims = claims.into_iter().flatten();
    match (claims.next(), claims.next()) {
        (Some(provider), None) => Some(provider),
        (None, _) if is_azure(delivery) => Some(Provider::AzureRepo),
        _ => None,
    }
}

/// Where Harness Code says what happened.
const HARNESS_TRIGGER: [&str; 2] = ["x-harness-trigger", "x-gitness-trigger"];

/// Most bytes that are read only to find out whether Azure sent them: its payloads have a few kilobytes.
const MOST_UNKNOWN: usize = 1024 * 1024;

fn is_azure(delivery: &Delivery) -> bool {
    if delivery.body.len() > MOST_UNKNOWN {
        return false;
    }
    payload::of(delivery).is_ok_and(|body| {
        body["publisherId"] == "tfs"
            && body["eventType"].is_string()
            && body["resource"].is_object()
    })
}

/// Reads a delivery of a provider.
///
/// # Errors
/// What of the payload is missing or not of the kind that its provider documents, by its path.
pub fn read(provider: Provider, delivery: &Delivery) -> Result<Heard, String> {
    let body = payload::of(delivery)?;
    let post = Post {
        delivery,
        body: Fields::of(&body),
    };
    let heard = match provider {
        Provider::Github => github::read(&post),
        Provider::Gitlab => gitlab::read(&post),
        Provider::Bitbucket => bitbucket::read(&post),
        Provider::AzureRepo => azure_repo::read(&post),
        Provider::AwsCodeCommit => {
            Err("events of AWS CodeCommit come from EventBridge, never over HTTP".to_owned())
        }
        Provider::Harness => harness::read(&post),
        Provider::HarnessArtifactRegistry => harness_registry::read(&post),
        Provider::Custom => custom::read(&post),
    }?;
    finished(heard, delivery, body)
}

/// Most bytes of payloads that the events of one delivery have together, as each has its own.
const MOST_COPIED: usize = 64 * 1024 * 1024;

/// Adds what all events of a delivery have, and checks what all must keep to.
fn finished(heard: Heard, delivery: &Delivery, body: Value) -> Result<Heard, String> {
    let headers = delivery
        .headers
        .iter()
        .filter(|(name, _)| !signature::is_credential(name));
    let headers: Vec<(String, String)> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .collect();
    let finish = |mut event: Event, payload: Value| {
        checked(&event)?;
        event.payload = payload;
        event.headers.clone_from(&headers);
        Ok::<Event, String>(event)
    };
    Ok(match heard {
        Heard::Event(event) => Heard::Event(Box::new(finish(*event, body)?)),
        Heard::Several(events) if events.len() * delivery.body.len() > MOST_COPIED => {
            let count = events.len();
            let size = delivery.body.len();
            return Err(format!(
                "the push moves {count} refs in a body of {size} bytes: push fewer at a time"
            ));
        }
        Heard::Several(events) => {
            let events = events.into_iter();
            let events = events.map(|event| finish(event, body.clone()));
            Heard::Several(events.collect::<Result<_, _>>()?)
        }
        ignored => ignored,
    })
}

/// Most bytes of a name of a ref: what Git hosts allow.
const LONGEST_REF: usize = 255;

/// Refuses refs that cannot be any: too long, or with characters that Git allows in none.
fn checked(event: &Event) -> Result<(), String> {
    let refs = [
        ("ref", &event.git_ref),
        ("branch", &event.branch),
        ("source branch", &event.source_branch),
        ("target branch", &event.target_branch),
        ("tag", &event.tag),
    ];
    for (what, name) in refs {
        let Some(name) = name else { continue };
        if name.len() > LONGEST_REF {
            let size = name.len();
            return Err(format!(
                "the name of the {what} has {size} bytes: more than {LONGEST_REF} are not accepted"
            ));
        }
        if name.is_empty()
            || name
                .chars()
                .any(|c| c.is_control() || " ~^:?*[\\".contains(c))
        {
            return Err(format!(
                "the {what} {:?} is no name that Git allows",
                crate::text::shown(name)
            ));
        }
    }
    Ok(())
}

/// A delivery and its body.
struct Post<'d> {
    delivery: &'d Delivery,
    body: Fields<'d>,
}

impl Post<'_> {
    /// An event of a provider with nothing known of it yet but which delivery told.
    fn event(&self, provider: Provider, name: &str, repository: String) -> Event {
        // Bitbucket Server's id of a delivery is what proxies call the request that others are part of.
        let ours = |name: &&&str| **name != "x-request-id" || provider == Provider::Bitbucket;
        let sent = DELIVERY_IDS
            .iter()
            .filter(ours)
            .find_map(|name| self.delivery.header(name));
        Event {
            delivery: sent.map(|id| short(id.to_owned())),
            ..blank(provider, name, repository)
        }
    }
}

/// Headers with the sender's id of a delivery.
const DELIVERY_IDS: [&str; 9] = [
    "x-github-delivery",
    "x-gitea-delivery",
    "idempotency-key",
    "x-gitlab-event-uuid",
    "x-request-uuid",
    "x-request-id",
    "webhook-id",
    "x-harness-delivery",
    "x-nexus-webhook-delivery",
];

fn blank(provider: Provider, name: &str, repository: String) -> Event {
    Event {
        provider,
        name: name.to_owned(),
        action: None,
        repository,
        urls: Vec::new(),
        git_ref: None,
        branch: None,
        source_branch: None,
        target_branch: None,
        tag: None,
        commit: None,
        base_commit: None,
        pr_number: None,
        pr_title: None,
        user: None,
        email: None,
        changed_files: ChangedFiles::Unknown,
        happened_ms: None,
        committed_ms: None,
        key: None,
        delivery: None,
        payload: Value::Null,
        headers: Vec::new(),
    }
}

impl Event {
    /// Says that the event is about a full ref, what that points at, and what it pointed at before. A branch is also the
    /// target branch, which is how triggers name the branch of a push.
    fn about_ref(mut self, git_ref: &str, commit: Option<String>, before: Option<String>) -> Self {
        let branch = git_ref.strip_prefix("refs/heads/").map(str::to_owned);
        self.tag = git_ref.strip_prefix("refs/tags/").map(str::to_owned);
        self.target_branch.clone_from(&branch);
        self.branch = branch;
        self.git_ref = Some(git_ref.to_owned());
        self.commit = commit;
        self.base_commit = before.filter(|commit| !is_nothing(commit));
        self
    }

    /// Says between which branches it is.
    fn between(mut self, source: Option<String>, target: Option<String>) -> Self {
        self.branch.clone_from(&target);
        self.source_branch = source;
        self.target_branch = target;
        self
    }

    /// Gives it the key of its happening: what it is, and whatever else tells it from others of its kind.
    fn keyed(mut self, parts: &[&str]) -> Self {
        let own = [
            self.provider.name(),
            &self.repository,
            &self.name,
            self.action.as_deref().unwrap_or_default(),
            self.git_ref.as_deref().unwrap_or_default(),
            self.source_branch.as_deref().unwrap_or_default(),
            self.target_branch.as_deref().unwrap_or_default(),
            self.commit.as_deref().unwrap_or_default(),
            self.base_commit.as_deref().unwrap_or_default(),
        ];
        let all: Vec<&str> = own.into_iter().chain(parts.iter().copied()).collect();
        // As JSON, so that no part can pretend to be two.
        self.key = serde_json::to_string(&all).ok().map(short);
        self
    }
}

/// Most bytes of what tells events apart: less than any store allows for a key.
const LONGEST_KEY: usize = 512;

/// A text that tells events apart, or its digest where it is long.
fn short(text: String) -> String {
    if text.len() <= LONGEST_KEY {
        return text;
    }
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold("sha256:".to_owned(), |text, byte| {
        text + &format!("{byte:02x}")
    })
}

/// Whether a commit stands for none: all zeros, as Git writes it.
fn is_nothing(commit: &str) -> bool {
    commit.bytes().all(|byte| byte == b'0')
}

/// What triggers cannot listen to.
fn ignored(what: &str, value: &str) -> Result<Heard, String> {
    let value = crate::text::shown(value);
    Ok(Heard::Ignored(format!(
        "{what} `{value}` starts no pipelines"
    )))
}
