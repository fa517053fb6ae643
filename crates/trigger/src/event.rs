//! What a delivery tells, in the words of Slipway, whoever sent it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who sends webhooks (`v0/trigger`: the `type` of a webhook source).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Provider {
    /// GitHub, and GitHub Enterprise.
    Github,
    /// GitLab.
    Gitlab,
    /// Bitbucket Cloud and Bitbucket Server.
    Bitbucket,
    /// Azure Repos.
    AzureRepo,
    /// AWS CodeCommit, by EventBridge only.
    AwsCodeCommit,
    /// Harness Code.
    Harness,
    /// Harness Artifact Registry.
    HarnessArtifactRegistry,
    /// Anything that posts JSON to the URL of one trigger.
    Custom,
}

impl Provider {
    /// As the schema spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Github => "Github",
            Self::Gitlab => "Gitlab",
            Self::Bitbucket => "Bitbucket",
            Self::AzureRepo => "AzureRepo",
            Self::AwsCodeCommit => "AwsCodeCommit",
            Self::Harness => "Harness",
            Self::HarnessArtifactRegistry => "HarnessArtifactRegistry",
            Self::Custom => "Custom",
        }
    }
}

/// The files that a change touches, where the sender says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangedFiles {
    /// All of them, each once, in order.
    Known(Vec<String>),
    /// The delivery does not list them (a pull request), or not all of them (a push of many commits): they must be asked
    /// for.
    #[default]
    Unknown,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Who told of it.
    pub provider: Provider,
    /// `Push`, `PullRequest`, …: the `type` of a trigger's event spec for this provider; empty for [`Provider::Custom`].
    pub name: String,
    /// `Open`, `Synchronize`, …: as triggers spell the actions of this event; `None` where the event has none.
    pub action: Option<String>,
    /// The repository, as its provider names it: `owner/name`, or the path of the project.
    pub repository: String,
    /// All URLs of the repository that the delivery has (https, ssh, web), to find the connector's among.
    pub urls: Vec<String>,
    /// The full ref: `refs/heads/main`, `refs/tags/v1`.
    pub git_ref: Option<String>,
    /// `<+trigger.branch>`: the branch of a push, the target of a pull request.
    pub branch: Option<String>,
    /// `<+trigger.sourceBranch>`.
    pub source_branch: Option<String>,
    /// `<+trigger.targetBranch>`.
    pub target_branch: Option<String>,
    /// `<+trigger.tag>`.
    pub tag: Option<String>,
    /// `<+trigger.commitSha>`: what the ref points at now.
    pub commit: Option<String>,
    /// `<+trigger.baseCommitSha>`: what it pointed at before, or what a pull request goes into.
    pub base_commit: Option<String>,
    /// `<+trigger.prNumber>`.
    pub pr_number: Option<u64>,
    /// `<+trigger.prTitle>`.
    pub pr_title: Option<String>,
    /// `<+trigger.gitUser>`: the login of who did it.
    pub user: Option<String>,
    /// The e-mail address of who did it.
    pub email: Option<String>,
    /// The files of a push.
    pub changed_files: ChangedFiles,
    /// When it happened, epoch milliseconds, where the delivery says so.
    pub happened_ms: Option<i64>,
    /// What the newest commit of a push says of its own time, epoch milliseconds, where nothing says when it was pushed.
    /// Whoever makes a commit chooses it: it says little of when the ref came to point at it.
    #[serde(default)]
    pub committed_ms: Option<i64>,
    /// Equal for all deliveries of one happening, different for different ones: provider, repository, event, action, ref,
    /// commits and time. `None` where the provider's payload has no such thing (custom webhooks): then
    /// [`Event::delivery`] decides.
    pub key: Option<String>,
    /// The sender's id of the delivery, equal when it is sent again.
    pub delivery: Option<String>,
    /// The body, read.
    pub payload: Value,
    /// The headers without those that authenticate, names in lower case.
    pub headers: Vec<(String, String)>,
}
