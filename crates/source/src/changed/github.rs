//! GitHub (docs.github.com: *List pull requests files*, *Compare two commits*), and Gitea and Forgejo, whose API is alike.

use slipway_engine::gather::{Change, HostApi, PullRequest, WantedChange};

use super::host::{Known, Sent, has_next};
use super::place::Place;
use super::{Files, Host, MOST_PAGES, text};
use crate::fault::Fault;

/// Most files of a pull request that GitHub lists.
const LISTED: usize = 3_000;
/// Most files of a comparison that GitHub lists.
const COMPARED: usize = 300;

/// A file and its old name, as both call them.
const NAMES: &[&str] = &["/filename", "/previous_filename"];

/// The API of a repository, and the path of the repository there.
pub(crate) fn api(
    place: &Place,
    login: Option<Known>,
    of: HostApi,
) -> Result<(Host, [&str; 3]), Fault> {
    let [owner, name] = place.path.as_slice() else {
        return Err("its `url` is not that of an owner and a repository"
            .to_owned()
            .into());
    };
    let mut base = place.host.clone();
    match (place.name(), of == HostApi::Gitea) {
        ("github.com" | "www.github.com", _) => {
            let host = base.set_host(Some("api.github.com"));
            host.map_err(|why| why.to_string())?;
        }
        (_, true) => base.set_path("/api/v1"),
        (_, false) => base.set_path("/api/v3"),
    }
    let is_password = login.as_ref().is_some_and(|login| login.is_password);
    let sent = if is_password {
        Sent::Basic
    } else {
        Sent::Bearer
    };
    Ok((Host::new(base, login, sent)?, ["repos", owner, name]))
}

/// What a pull request is (*Get a pull request*).
pub(super) async fn pull(
    place: &Place,
    login: Option<Known>,
    (wanted, number): (&WantedChange, u64),
) -> Result<PullRequest, Fault> {
    let (host, own) = api(place, login, wanted.api)?;
    let number = number.to_string();
    let url = host.url(&[&own[..], &["pulls", &number]].concat(), &[])?;
    let (answer, _) = host.get(&url).await?;
    Ok(PullRequest {
        source_branch: text(&answer, "/head/ref"),
        target_branch: text(&answer, "/base/ref"),
        commit: text(&answer, "/head/sha"),
        base_commit: text(&answer, "/base/sha"),
    })
}

pub(super) async fn ask(
    place: &Place,
    login: Option<Known>,
    wanted: &WantedChange,
    files: &mut Files,
) -> Result<(), Fault> {
    let (host, own) = api(place, login, wanted.api)?;
    match &wanted.change {
        Change::PullRequest(number) => {
            let number = number.to_string();
            let path = [&own[..], &["pulls", &number, "files"]].concat();
            for page in 1..=MOST_PAGES {
                let page = page.to_string();
                // `limit` is Gitea's word.
                let query = [
                    ("per_page", "100"),
                    ("limit", "50"),
                    ("page", page.as_str()),
                ];
                let (answer, headers) = host.get(&host.url(&path, &query)?).await?;
                if !files.take_all(&answer, NAMES) || !has_next(&headers) {
                    files.cut |= files.paths.len() >= LISTED;
                    return Ok(());
                }
            }
            files.cut = true;
        }
        Change::Push { before, after } => {
            let range = format!("{before}...{after}");
            let url = host.url(&[&own[..], &["compare", &range]].concat(), &[])?;
            let (answer, _) = host.get(&url).await?;
            files.take_all(&answer["files"], NAMES);
            let compared = answer["files"].as_array().map_or(0, Vec::len);
            files.cut |= compared >= COMPARED;
            if wanted.api == HostApi::Gitea {
                let commits = answer["commits"].as_array().map(Vec::as_slice);
                let commits = commits.unwrap_or_default();
                for commit in commits {
                    files.take_all(&commit["files"], NAMES);
                }
                let total = answer["total_commits"].as_u64();
                files.cut |= total.is_some_and(|total| total > commits.len() as u64);
            }
        }
    }
    Ok(())
}
