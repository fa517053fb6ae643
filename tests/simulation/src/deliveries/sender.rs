//! What senders post: bodies and headers as each provider documents them, signed as it signs.

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::Sha256;

use super::script::Told;

/// The secret of the triggers that have one.
pub(super) const SECRET: &str = "It's a Secret to Everybody";

/// Who tells of what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sender {
    /// GitHub, of pushes to `acme/shop`.
    Github,
    /// GitHub, of pushes to `acme/billing`.
    GithubOther,
    /// GitHub, of pull requests of `acme/shop`.
    GithubPulls,
    Gitlab,
    Bitbucket,
    /// Bitbucket Server: one delivery tells of pushes to two branches.
    BitbucketServer,
    Azure,
    Harness,
    Custom,
}

impl Sender {
    pub(super) const ALL: [Self; 9] = [
        Self::Github,
        Self::GithubOther,
        Self::GithubPulls,
        Self::Gitlab,
        Self::Bitbucket,
        Self::BitbucketServer,
        Self::Azure,
        Self::Harness,
        Self::Custom,
    ];

    /// How many events one delivery tells of.
    pub(super) fn at_once(self) -> usize {
        if self == Self::BitbucketServer { 2 } else { 1 }
    }

    /// Whether the same may come under another id, as from the webhook of the organization beside that of the repository.
    /// Of a custom webhook only the id says that it is the same.
    pub(super) fn has_keys(self) -> bool {
        self != Self::Custom
    }
}

/// Whether a trigger starts a run for what happened.
type Wants = fn(&Told) -> bool;

/// The triggers, each with what it listens to.
pub(super) const TRIGGERS: [(&str, Wants); 10] = [
    ("hub", |told| told.sender == Sender::Github),
    ("hub_main", |told| {
        told.sender == Sender::Github && told.line == 0
    }),
    ("pulls", |told| told.sender == Sender::GithubPulls),
    ("billing", |told| told.sender == Sender::GithubOther),
    ("lab", |told| told.sender == Sender::Gitlab),
    ("bucket", |told| told.sender == Sender::Bitbucket),
    ("server", |told| told.sender == Sender::BitbucketServer),
    ("azure", |told| told.sender == Sender::Azure),
    ("code", |told| told.sender == Sender::Harness),
    ("called", |told| told.sender == Sender::Custom),
];

/// YAML of all triggers.
pub(super) fn triggers() -> Vec<String> {
    let on = |id: &str, provider: &str, event: &str, more: &str, secret: bool| {
        let secret = if secret {
            "  encryptedWebhookSecretIdentifier: hook\n"
        } else {
            ""
        };
        let spec = match event {
            "" => more.to_owned(),
            event => format!("        type: {event}\n        spec:\n{more}"),
        };
        format!(
            "trigger:\n  name: {id}\n  identifier: {id}\n  orgIdentifier: default\n  projectIdentifier: shop\n  \
             pipelineIdentifier: release\n{secret}  source:\n    type: Webhook\n    spec:\n      type: {provider}\n      \
             spec:\n{spec}"
        )
    };
    let of = |repository: &str| format!("          repoName: {repository}\n");
    let main = "          payloadConditions:\n            - {key: targetBranch, operator: Equals, value: main}\n";
    vec![
        on("hub", "Github", "Push", &of("shop"), true),
        on("hub_main", "Github", "Push", &(of("shop") + main), true),
        on("pulls", "Github", "PullRequest", &of("shop"), true),
        on("billing", "Github", "Push", &of("billing"), true),
        on("lab", "Gitlab", "Push", &of("shop"), true),
        on("bucket", "Bitbucket", "Push", &of("shop"), true),
        on("server", "Bitbucket", "Push", &of("depot"), true),
        on("azure", "AzureRepo", "Push", &of("shop"), false),
        on("code", "Harness", "Push", &of("shop"), true),
        on(
            "called",
            "Custom",
            "",
            "        payloadConditions: []\n",
            false,
        ),
    ]
}

/// A request as it is posted.
pub(super) struct Post {
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

/// What a sender posts about something that happened (or two things, see [`Sender::at_once`]), under an id. `called` is the
/// path of the custom trigger.
pub(super) fn post(told: &[&Told], id: &str, called: &str) -> Post {
    let sender = told[0].sender;
    let body = body(told).to_string();
    let path = match sender {
        Sender::Custom => called.to_owned(),
        _ => "/ng/api/webhook?accountIdentifier=acme".to_owned(),
    };
    let signed = |prefix: &str| format!("{prefix}{}", mac(&body));
    let id = id.to_owned();
    let text = str::to_owned;
    let headers = match sender {
        Sender::Github | Sender::GithubOther | Sender::GithubPulls => {
            let event = if sender == Sender::GithubPulls {
                "pull_request"
            } else {
                "push"
            };
            vec![
                ("x-github-event", text(event)),
                ("x-github-delivery", id),
                ("x-hub-signature-256", signed("sha256=")),
            ]
        }
        Sender::Gitlab => vec![
            ("x-gitlab-event", text("Push Hook")),
            ("x-gitlab-event-uuid", id),
            ("x-gitlab-token", text(SECRET)),
        ],
        Sender::Bitbucket => vec![
            ("x-event-key", text("repo:push")),
            ("x-request-uuid", id),
            ("x-hub-signature", signed("sha256=")),
        ],
        Sender::BitbucketServer => vec![
            ("x-event-key", text("repo:refs_changed")),
            ("x-request-id", id),
            ("x-hub-signature", signed("sha256=")),
        ],
        Sender::Azure => vec![("x-request-id", id)],
        Sender::Harness => vec![
            ("x-harness-trigger", text("branch_updated")),
            ("x-harness-delivery", id),
            ("x-harness-signature", signed("")),
        ],
        Sender::Custom => vec![("webhook-id", id)],
    };
    Post {
        path,
        headers,
        body,
    }
}

fn mac(body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key");
    mac.update(body.as_bytes());
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn body(told: &[&Told]) -> Value {
    let first = told[0];
    let (commit, before, branch) = (first.commit(), first.before(), first.branch());
    let git_ref = format!("refs/heads/{branch}");
    let time = Timestamp::from_second(first.at_s)
        .expect("a time")
        .to_string();
    let commits = json!([{
        "id": commit, "message": "change", "timestamp": time, "added": [], "removed": [], "modified": ["src/a"],
    }]);
    match first.sender {
        Sender::Github | Sender::GithubOther => json!({
            "ref": git_ref, "before": before, "after": commit, "created": false, "deleted": false, "forced": false,
            "repository": github(first.repository(), Some(first.at_s)),
            "pusher": {"name": "alex"}, "sender": {"id": 7, "login": "alex"}, "commits": commits,
        }),
        Sender::GithubPulls => json!({
            "action": if first.number == 0 { "opened" } else { "synchronize" },
            "number": first.line + 1,
            "pull_request": {
                "number": first.line + 1, "title": "Change", "updated_at": time,
                "head": {"ref": "change", "sha": commit}, "base": {"ref": "main", "sha": "b".repeat(40)},
            },
            "repository": github(first.repository(), None), "sender": {"id": 7, "login": "alex"},
        }),
        Sender::Gitlab => json!({
            "object_kind": "push", "ref": git_ref, "before": before, "after": commit, "checkout_sha": commit,
            "user_username": "alex",
            "project": {"path_with_namespace": "acme/shop", "web_url": "https://gitlab.example.com/acme/shop"},
            "commits": commits, "total_commits_count": 1,
        }),
        Sender::Bitbucket => {
            let at = |hash: String| {
                json!({
                    "type": "branch", "name": branch, "target": {"type": "commit", "hash": hash, "date": time},
                })
            };
            json!({
                "actor": {"nickname": "alex"},
                "repository": {
                    "full_name": "acme/shop", "links": {"html": {"href": "https://bitbucket.org/acme/shop"}},
                },
                "push": {"changes": [{"old": at(before), "new": at(commit)}]},
            })
        }
        Sender::BitbucketServer => {
            let change = |told: &&Told| {
                json!({
                    "type": "UPDATE", "fromHash": told.before(), "toHash": told.commit(),
                    "ref": {"id": format!("refs/heads/{}", told.branch())},
                })
            };
            json!({
                "date": time, "actor": {"name": "alex"},
                "repository": {
                    "slug": "depot", "project": {"key": "ACME"},
                    "links": {"clone": [{"href": "https://git.example.com/scm/acme/depot.git"}]},
                },
                "changes": told.iter().map(change).collect::<Vec<_>>(),
            })
        }
        Sender::Azure => json!({
            "id": commit, "publisherId": "tfs", "eventType": "git.push", "createdDate": time,
            "resource": {
                "pushId": first.unique, "date": time, "pushedBy": {"displayName": "alex"},
                "refUpdates": [{"name": git_ref, "oldObjectId": before, "newObjectId": commit}],
                "repository": {
                    "name": "shop", "project": {"name": "acme"},
                    "remoteUrl": "https://dev.azure.com/acme/acme/_git/shop",
                },
            },
        }),
        Sender::Harness => json!({
            "repo": {"path": "acme/shop", "git_url": "https://git.harness.example.com/acme/shop.git"},
            "principal": {"uid": "alex"}, "ref": {"name": git_ref}, "sha": commit, "old_sha": before,
            "head_commit": {"committer": {"when": time}}, "commits": commits, "total_commits_count": 1,
        }),
        Sender::Custom => json!({"commit": commit}),
    }
}

fn github(name: &str, pushed_s: Option<i64>) -> Value {
    json!({
        "id": 1, "name": name, "full_name": format!("acme/{name}"),
        "html_url": format!("https://github.com/acme/{name}"),
        "clone_url": format!("https://github.com/acme/{name}.git"),
        "pushed_at": pushed_s,
    })
}
