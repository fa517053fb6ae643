//! Payloads from `tests/payloads`: each file is a delivery, and variants of it with what becomes of them.

use std::path::Path;

use serde_json::Value;
use slipway_model::id::EntityId;
use slipway_trigger::webhook::{self, Heard};
use slipway_trigger::{
    ChangedFiles, Delivery, Event, Provider, Refusal, Source, Texts, Trigger, WebhookSpec, decide,
};

/// Every event and action that a trigger can listen to (FEATURES 16); `""` where an event has no actions.
pub const SCHEMA: &[(Provider, &str, &[&str])] = &[
    (
        Provider::Github,
        "PullRequest",
        &[
            "Close",
            "Edit",
            "Open",
            "Reopen",
            "Label",
            "Unlabel",
            "Synchronize",
            "ReadyForReview",
        ],
    ),
    (Provider::Github, "Push", &[""]),
    (
        Provider::Github,
        "IssueComment",
        &["Create", "Edit", "Delete"],
    ),
    (
        Provider::Github,
        "Release",
        &[
            "Create",
            "Edit",
            "Delete",
            "Prerelease",
            "Publish",
            "Release",
            "Unpublish",
        ],
    ),
    (Provider::Github, "Create", &[""]),
    (Provider::Github, "Delete", &[""]),
    (
        Provider::Github,
        "PullRequestReview",
        &["Submitted", "Edited", "Dismissed"],
    ),
    (Provider::Github, "MergeQueue", &[""]),
    (
        Provider::Gitlab,
        "MergeRequest",
        &["Open", "Close", "Reopen", "Merge", "Update", "Sync"],
    ),
    (Provider::Gitlab, "Push", &[""]),
    (Provider::Gitlab, "MRComment", &["Create"]),
    (Provider::Gitlab, "Tag", &[""]),
    (Provider::Gitlab, "PipelineHook", &[""]),
    (
        Provider::Bitbucket,
        "PullRequest",
        &["Create", "Update", "Merge", "Decline"],
    ),
    (Provider::Bitbucket, "Push", &[""]),
    (
        Provider::Bitbucket,
        "PRComment",
        &["Create", "Edit", "Delete"],
    ),
    (
        Provider::AzureRepo,
        "PullRequest",
        &["Create", "Update", "Merge"],
    ),
    (Provider::AzureRepo, "Push", &[""]),
    (
        Provider::AzureRepo,
        "IssueComment",
        &["Create", "Edit", "Delete"],
    ),
    (Provider::AwsCodeCommit, "Push", &[""]),
    (
        Provider::Harness,
        "PullRequest",
        &["Create", "Update", "Reopen", "Merge", "Comment"],
    ),
    (Provider::Harness, "Push", &[""]),
    (Provider::Harness, "Branch", &["Create", "Delete"]),
    (Provider::Harness, "Tag", &["Create", "Delete"]),
    (Provider::Harness, "MergeQueue", &[""]),
    (
        Provider::HarnessArtifactRegistry,
        "Artifact",
        &["ArtifactCreation", "ArtifactDeletion"],
    ),
    (Provider::Custom, "", &[""]),
];

/// A delivery and what becomes of it.
#[derive(Clone)]
pub struct Recorded {
    /// The file, and which of its variants: `github_push#1`; without a number the first.
    pub name: String,
    /// Who sent it.
    pub provider: Provider,
    /// Its headers by name.
    pub headers: Value,
    /// Its body.
    pub body: Value,
    /// The events of it: `PullRequest Open`.
    pub is: Vec<String>,
    /// A part of the reason where it has none.
    pub ignored: Option<String>,
}

impl Recorded {
    /// The same with another value at a path of names.
    pub fn with(&self, path: &str, value: Value) -> Self {
        let mut changed = self.clone();
        put(&mut changed.body, path, value);
        changed
    }

    /// As it is posted.
    pub fn delivery(&self) -> Delivery {
        delivery(&self.headers, &self.body)
    }

    /// What it tells.
    pub fn heard(&self) -> Result<Heard, String> {
        self.heard_of(&self.body)
    }

    /// What it would tell with another body.
    pub fn heard_of(&self, body: &Value) -> Result<Heard, String> {
        match self.provider {
            Provider::AwsCodeCommit => webhook::read_event_bridge(body),
            provider => webhook::read(provider, &delivery(&self.headers, body)),
        }
    }

    /// What another delivery of it tells.
    pub fn heard_as(&self, delivery: &Delivery) -> Result<Heard, String> {
        match self.provider {
            Provider::AwsCodeCommit => self.heard(),
            provider => webhook::read(provider, delivery),
        }
    }
}

fn put(body: &mut Value, path: &str, value: Value) {
    let mut place = body;
    for name in path.split('.') {
        place = &mut place[name];
    }
    *place = value;
}

/// A delivery of headers and a body.
pub fn delivery(headers: &Value, body: &Value) -> Delivery {
    let headers = headers.as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Delivery {
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), text(value)))
            .collect(),
        body: body.to_string().into_bytes(),
    }
}

/// All of them, in the order of their files.
pub fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/payloads");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = files.map(|file| file.path()).collect();
    files.sort();
    files.iter().flat_map(|file| variants(file)).collect()
}

fn variants(file: &Path) -> Vec<Recorded> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let file = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let read: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{file}: {why}"));
    let provider: Provider =
        serde_json::from_value(read["provider"].clone()).unwrap_or(Provider::Custom);
    let variants = read["variants"].as_array().into_iter().flatten();
    let one = |(at, variant): (usize, &Value)| {
        let (mut headers, mut body) = (read["headers"].clone(), read["body"].clone());
        for (path, value) in variant["set"].as_object().into_iter().flatten() {
            put(&mut body, path, value.clone());
        }
        for (name, value) in variant["headers"].as_object().into_iter().flatten() {
            headers[name] = value.clone();
        }
        let is = variant["is"].as_array().into_iter().flatten();
        Recorded {
            name: if at == 0 {
                file.clone()
            } else {
                format!("{file}#{at}")
            },
            provider,
            headers,
            body,
            is: is
                .map(|event| event.as_str().unwrap_or_default().to_owned())
                .collect(),
            ignored: variant["ignored"].as_str().map(str::to_owned),
        }
    };
    variants.enumerate().map(one).collect()
}

/// An event as the files name it.
pub fn told(event: &Event) -> String {
    let action = event.action.as_deref().unwrap_or_default();
    format!("{} {action}", event.name).trim().to_owned()
}

/// A trigger for each event and action: provider, event, action and spec.
pub fn listening() -> Vec<(Provider, &'static str, &'static str, WebhookSpec)> {
    let all = SCHEMA.iter().flat_map(|(provider, name, actions)| {
        actions
            .iter()
            .map(move |action| (*provider, *name, *action, spec(*provider, name, action)))
    });
    all.collect()
}

fn spec(provider: Provider, event: &str, action: &str) -> WebhookSpec {
    WebhookSpec {
        provider,
        relay: None,
        event: event.to_owned(),
        connector: None,
        repo_name: None,
        registry: None,
        actions: Some(action.to_owned())
            .filter(|action| !action.is_empty())
            .into_iter()
            .collect(),
        auto_abort: false,
        header_conditions: Vec::new(),
        payload_conditions: Vec::new(),
        jexl: None,
    }
}

/// What a trigger with that spec does.
pub fn decided(spec: &WebhookSpec, event: &Event, repository: Option<&str>) -> Result<(), Refusal> {
    let trigger = Trigger {
        identifier: EntityId::new("t"),
        name: "t".to_owned(),
        pipeline: None,
        enabled: true,
        secret: None,
        input_sets: Texts::default(),
        inputs_yaml: None,
        branch: None,
        stages: Texts::default(),
        poll_interval: None,
        source: Source::Webhook(spec.clone()),
    };
    decide::webhook(&trigger, spec, event, repository, None)
}

/// The same for all actions of a repository.
pub fn of_repository(spec: &WebhookSpec, event: &Event, url: &str) -> Result<(), Refusal> {
    let spec = WebhookSpec {
        actions: Vec::new(),
        ..spec.clone()
    };
    decided(&spec, event, Some(url))
}

/// What an event says, in a line.
pub fn line(event: &Event) -> String {
    let mut said = vec![told(event), event.repository.clone()];
    let mut say = |name: &str, value: Option<String>| {
        said.extend(value.map(|value| format!("{name}={value}")))
    };
    let short = |commit: &Option<String>| commit.as_ref().map(|it| it.chars().take(4).collect());
    say("ref", event.git_ref.clone());
    say("branch", event.branch.clone());
    say("from", event.source_branch.clone());
    say("to", event.target_branch.clone());
    say("tag", event.tag.clone());
    say("commit", short(&event.commit));
    say("base", short(&event.base_commit));
    say("pr", event.pr_number.map(|number| number.to_string()));
    say("title", event.pr_title.clone());
    say("user", event.user.clone());
    say("email", event.email.clone());
    say("at", event.happened_ms.map(|ms| ms.to_string()));
    say("committed", event.committed_ms.map(|ms| ms.to_string()));
    say("delivery", event.delivery.clone());
    if let ChangedFiles::Known(files) = &event.changed_files {
        say("files", Some(files.join(",")));
    }
    said.join(" ")
}
