//! GitLab (docs.gitlab.com: *List merge request diffs*, *Compare branches, tags, or commits*).

use slipway_engine::gather::{Change, PullRequest};

use super::host::{Known, Sent, has_next};
use super::place::Place;
use super::{Files, Host, MOST_PAGES, text};
use crate::fault::Fault;

/// Most files of a change that GitLab lists, unless its administrator says otherwise.
const LISTED: usize = 1_000;

const NAMES: &[&str] = &["/new_path", "/old_path"];

/// The API of a host.
pub(crate) fn api(place: &Place, login: Option<Known>) -> Result<Host, Fault> {
    let mut base = place.host.clone();
    base.set_path("/api/v4");
    let is_password = login.as_ref().is_some_and(|login| login.is_password);
    // A password is taken by no API of GitLab; what is written there is a token.
    let sent = if is_password {
        Sent::Named("private-token")
    } else {
        Sent::Bearer
    };
    Host::new(base, login, sent)
}

/// What a merge request is (*Get single MR*).
pub(super) async fn pull(
    place: &Place,
    login: Option<Known>,
    number: u64,
) -> Result<PullRequest, Fault> {
    let host = api(place, login)?;
    let (project, number) = (place.path.join("/"), number.to_string());
    let path = ["projects", &project, "merge_requests", &number];
    let (answer, _) = host.get(&host.url(&path, &[])?).await?;
    Ok(PullRequest {
        source_branch: text(&answer, "/source_branch"),
        target_branch: text(&answer, "/target_branch"),
        commit: text(&answer, "/sha"),
        base_commit: text(&answer, "/diff_refs/base_sha"),
    })
}

pub(super) async fn ask(
    place: &Place,
    login: Option<Known>,
    change: &Change,
    files: &mut Files,
) -> Result<(), Fault> {
    let host = api(place, login)?;
    let project = place.path.join("/");
    match change {
        Change::PullRequest(number) => {
            let number = number.to_string();
            let path = ["projects", &project, "merge_requests", &number, "diffs"];
            for page in 1..=MOST_PAGES {
                let page = page.to_string();
                let url = host.url(&path, &[("per_page", "100"), ("page", page.as_str())])?;
                let (answer, headers) = host.get(&url).await?;
                if !files.take_all(&answer, NAMES) || !has_next(&headers) {
                    files.cut |= files.paths.len() >= LISTED;
                    return Ok(());
                }
            }
            files.cut = true;
        }
        Change::Push { before, after } => {
            let query = [
                ("from", before.as_str()),
                ("to", after.as_str()),
                ("straight", "true"),
            ];
            let url = host.url(&["projects", &project, "repository", "compare"], &query)?;
            let (answer, _) = host.get(&url).await?;
            files.take_all(&answer["diffs"], NAMES);
            files.cut |= answer["compare_timeout"] == true || files.paths.len() >= LISTED;
        }
    }
    Ok(())
}
