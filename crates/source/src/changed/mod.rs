//! Which files a change touches, where the webhook that told of it does not say: asked for at the provider's API, with the
//! login of the trigger's connector (`apiAccess`, where it has any).
//!
//! | provider | pull request | push |
//! |---|---|---|
//! | GitHub | `pulls/N/files` | `compare/A...B` |
//! | Gitea, Forgejo | the same | the same, whose commits have files |
//! | GitLab | `merge_requests/N/diffs` | `repository/compare` |
//! | Bitbucket Cloud | `pullrequests/N/diffstat` | `diffstat/B..A` |
//! | Bitbucket Server | `pull-requests/N/changes` | `compare/changes` |
//! | Azure Repos | changes of the last of `pullRequests/N/iterations` | `diffs/commits` |
//! | AWS CodeCommit | has no such events | `GetDifferences` |
//! | Harness Code | `pullreq/N/diff` | `diff/A..B` |
//!
//! What a pull request is, where comments on it do not say so, is asked of GitHub, Gitea and Forgejo (`pulls/N`) and GitLab
//! (`merge_requests/N`) in the same way; the others say it.
//!
//! A file that was renamed counts under both names, as in payloads of pushes. Pages, bytes and time are bounded; where a
//! provider lists only so many files, the answer says that these may not be all.

pub(crate) mod azure;
pub(crate) mod bitbucket;
mod code_commit;
pub(crate) mod github;
pub(crate) mod gitlab;
pub(crate) mod harness;
pub(crate) mod host;
pub(crate) mod place;

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_engine::gather::{Change, ChangedPaths, HostApi, PullRequest, WantedChange};
use slipway_model::status::ErrorType;
use slipway_steps::aws::AwsTargets;
use slipway_steps::secrets::Secrets;

use crate::fault::Fault;
use crate::git::Allowed;
use host::{Host, Known};
use place::Place;

/// Most pages of a list.
pub(crate) const MOST_PAGES: usize = 50;
/// Most files of a change.
const MOST_FILES: usize = 10_000;

/// The files of a change.
///
/// # Errors
/// Why they cannot be had. Holds no secret.
pub(crate) async fn files(
    targets: &AwsTargets,
    wanted: &WantedChange,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<ChangedPaths, Fault> {
    let mut files = Files::default();
    let asked = match wanted.connector.kind.as_str() {
        // On the heap: calls of SDKs nest deeper than the compiler follows.
        "Codecommit" => Box::pin(code_commit::ask(targets, wanted, secrets, &mut files)).await,
        _ => by_http(wanted, allowed, secrets, &mut files).await,
    };
    asked.map_err(|fault| told(FILES, wanted, fault))?;
    Ok(ChangedPaths {
        files: files.paths.into_iter().collect(),
        complete: !files.cut,
    })
}

/// Asks a host that knows the connector's login itself.
async fn by_http(
    wanted: &WantedChange,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
    files: &mut Files,
) -> Result<(), Fault> {
    let (place, login) = reached(wanted, allowed, secrets).await?;
    if wanted.api == HostApi::HarnessCode {
        return harness::ask(&place, login, &wanted.change, files).await;
    }
    match wanted.connector.kind.as_str() {
        "Github" => github::ask(&place, login, wanted, files).await,
        "Gitlab" => gitlab::ask(&place, login, &wanted.change, files).await,
        "Bitbucket" => bitbucket::ask(&place, login, &wanted.change, files).await,
        "AzureRepo" => azure::ask(&place, login, &wanted.change, files).await,
        other => Err(format!(
            "nobody knows which API a host with a connector of type {other} has: use one of type Github, Gitlab, Bitbucket, \
             AzureRepo or Codecommit, or leave out the condition on changed files"
        )
        .into()),
    }
}

/// What a pull request is.
///
/// # Errors
/// Why it cannot be had. Holds no secret.
pub(crate) async fn pull_request(
    wanted: &WantedChange,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<PullRequest, Fault> {
    let of = |fault| told(PULL, wanted, fault);
    let Change::PullRequest(number) = wanted.change else {
        return Err(of("a push is none".to_owned().into()));
    };
    let (place, login) = reached(wanted, allowed, secrets).await.map_err(of)?;
    let asked = match wanted.connector.kind.as_str() {
        "Github" => github::pull(&place, login, (wanted, number)).await,
        "Gitlab" => gitlab::pull(&place, login, number).await,
        other => Err(format!(
            "hosts with a connector of type {other} are not asked for it: use one of type Github or Gitlab, or leave out \
             what the event does not tell"
        )
        .into()),
    };
    asked.map_err(of)
}

/// Where the API of the connector is, and its login.
async fn reached(
    wanted: &WantedChange,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<(Place, Option<Known>), Fault> {
    let connector = &wanted.connector;
    let place = place::of(connector, wanted.repository.as_deref()).map_err(Fault::from)?;
    let login = host::login(connector, &place, &wanted.scope, allowed, secrets).await?;
    Ok((place, login))
}

/// What [`files`] asks for, as faults call it.
pub(crate) const FILES: &str = "the changed files";
/// What [`pull_request`] asks for.
pub(crate) const PULL: &str = "the pull request";

fn told(what: &str, wanted: &WantedChange, fault: Fault) -> Fault {
    let name = &wanted.connector.reference;
    fault.told(|why| format!("{what} cannot be read with the connector {name}: {why}"))
}

/// What is said where nobody answers in time.
pub(crate) fn late(what: &str, wanted: &WantedChange, seconds: u64) -> Fault {
    let why = format!("no answer within {seconds} s: check its address and the network");
    told(what, wanted, Fault::new(ErrorType::Timeout, why))
}

/// Longest name of a branch or commit that is taken: Git's own files of refs have paths of less.
const LONGEST_NAME: usize = 4_096;

/// A name in an answer.
fn text(answer: &Value, at: &str) -> Option<String> {
    let found = answer.pointer(at).and_then(Value::as_str);
    found
        .filter(|text| !text.is_empty() && text.len() <= LONGEST_NAME)
        .map(str::to_owned)
}

/// The files that were told.
#[derive(Default)]
struct Files {
    paths: BTreeSet<String>,
    /// Whether these may not be all.
    cut: bool,
}

impl Files {
    /// Takes the names that an item of a list has; whether there is room for more.
    fn take(&mut self, item: &Value, names: &[&str]) -> bool {
        for name in names {
            let path = item.pointer(name).and_then(Value::as_str);
            let path = path.map(|path| path.trim_start_matches('/'));
            self.paths
                .extend(path.filter(|path| !path.is_empty()).map(str::to_owned));
        }
        let room = self.paths.len() < MOST_FILES;
        self.cut |= !room;
        room
    }

    /// Takes a list; whether there is room for more.
    fn take_all(&mut self, list: &Value, names: &[&str]) -> bool {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().all(|item| self.take(item, names))
    }
}
