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
//!
//! A file that was renamed counts under both names, as in payloads of pushes. Pages, bytes and time are bounded; where a
//! provider lists only so many files, the answer says that these may not be all.

mod azure;
mod bitbucket;
mod github;
mod gitlab;
mod host;
mod place;

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_engine::gather::{ChangedPaths, WantedChange};
use slipway_model::status::ErrorType;
use slipway_steps::secrets::Secrets;

use crate::fault::Fault;
use host::Host;

/// Most pages of a list.
const MOST_PAGES: usize = 50;
/// Most files of a change.
const MOST_FILES: usize = 10_000;

/// The files of a change.
///
/// # Errors
/// Why they cannot be had. Holds no secret.
pub(crate) async fn files(
    wanted: &WantedChange,
    secrets: &mut Secrets<'_>,
) -> Result<ChangedPaths, Fault> {
    let connector = &wanted.connector;
    let of = |fault: Fault| {
        let name = &connector.reference;
        fault.told(|why| {
            format!("the changed files cannot be read with the connector {name}: {why}")
        })
    };
    let place = place::of(connector, wanted.repository.as_deref()).map_err(Fault::from);
    let place = place.map_err(of)?;
    let login = host::login(connector, &wanted.scope, secrets).await;
    let login = login.map_err(of)?;
    let mut files = Files::default();
    let asked = match connector.kind.as_str() {
        "Github" => github::ask(&place, login, wanted, &mut files).await,
        "Gitlab" => gitlab::ask(&place, login, &wanted.change, &mut files).await,
        "Bitbucket" => bitbucket::ask(&place, login, &wanted.change, &mut files).await,
        "AzureRepo" => azure::ask(&place, login, &wanted.change, &mut files).await,
        other => Err(format!(
            "nobody knows which API a host with a connector of type {other} has: use one of type Github, Gitlab, Bitbucket \
             or AzureRepo, or leave out the condition on changed files"
        )
        .into()),
    };
    asked.map_err(of)?;
    Ok(ChangedPaths {
        files: files.paths.into_iter().collect(),
        complete: !files.cut,
    })
}

/// What is said where nobody answers in time.
pub(crate) fn late(wanted: &WantedChange, seconds: u64) -> Fault {
    let why = format!(
        "the changed files cannot be read with the connector {}: no answer within {seconds} s: check its address and the \
         network",
        wanted.connector.reference
    );
    Fault::new(ErrorType::Timeout, why)
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
