//! Azure Repos (learn.microsoft.com: *Pull Request Iteration Changes*, *Diffs*).

use serde_json::Value;
use slipway_engine::gather::Change;

use super::host::{Known, Sent};
use super::place::Place;
use super::{Files, Host, MOST_PAGES};
use crate::fault::Fault;

/// The version of the API that is asked for.
pub(crate) const VERSION: (&str, &str) = ("api-version", "7.0");

/// Changes of one page.
const PAGE: usize = 2_000;

/// The API of the organization of a repository, and the project and the name of the repository.
pub(crate) fn api(place: &Place, login: Option<Known>) -> Result<(Host, String, String), Fault> {
    let path: Vec<&str> = place.path.iter().map(String::as_str).collect();
    // Of ssh the path is `v3/ORGANIZATION/PROJECT/REPOSITORY`; a repository may stand below `_git`, and one with the name
    // of its project alone.
    let path = match path.as_slice() {
        ["v3", rest @ ..] => rest.to_vec(),
        _ => path,
    };
    let mut host = place.host.clone();
    let (folder, project, name) = match path.as_slice() {
        [folder, "_git", name] if place.name() == "dev.azure.com" => {
            (std::slice::from_ref(folder), *name, *name)
        }
        [folder @ .., project, "_git", name] => (folder, *project, *name),
        [folder @ .., name] if folder.last() == Some(&"_git") => {
            (&folder[..folder.len() - 1], *name, *name)
        }
        [folder @ .., project, name] => (folder, *project, *name),
        _ => {
            return Err("its `url` is not that of a repository of a project"
                .to_owned()
                .into());
        }
    };
    if host.host_str() == Some("ssh.dev.azure.com") {
        let set = host.set_host(Some("dev.azure.com"));
        set.map_err(|why| why.to_string())?;
    }
    if let Ok(mut segments) = host.path_segments_mut() {
        segments.pop_if_empty().extend(folder);
    }
    let host = Host::new(host, login, Sent::Basic)?;
    Ok((host, project.to_owned(), name.to_owned()))
}

pub(super) async fn ask(
    place: &Place,
    login: Option<Known>,
    change: &Change,
    files: &mut Files,
) -> Result<(), Fault> {
    let (host, project, name) = api(place, login)?;
    let own = [project.as_str(), "_apis", "git", "repositories", &name];
    match change {
        Change::PullRequest(number) => {
            let number = number.to_string();
            let iterations = [&own[..], &["pullRequests", &number, "iterations"]].concat();
            let (answer, _) = host.get(&host.url(&iterations, &[VERSION])?).await?;
            let ids = answer["value"].as_array().into_iter().flatten();
            let last = ids.filter_map(|one| one["id"].as_u64()).max();
            let Some(last) = last.map(|id| id.to_string()) else {
                return Err("the pull request has no iterations".to_owned().into());
            };
            let path = [&iterations[..], &[last.as_str(), "changes"]].concat();
            listed(&host, &path, &[], "changeEntries", files).await
        }
        Change::Push { before, after } => {
            let query = [
                ("baseVersion", before.as_str()),
                ("baseVersionType", "commit"),
                ("targetVersion", after.as_str()),
                ("targetVersionType", "commit"),
            ];
            let path = [&own[..], &["diffs", "commits"]].concat();
            listed(&host, &path, &query, "changes", files).await
        }
    }
}

async fn listed(
    host: &Host,
    path: &[&str],
    query: &[(&str, &str)],
    field: &str,
    files: &mut Files,
) -> Result<(), Fault> {
    let size = PAGE.to_string();
    for page in 0..MOST_PAGES {
        let from = (page * PAGE).to_string();
        let all = [
            query,
            &[VERSION, ("$top", size.as_str()), ("$skip", from.as_str())],
        ]
        .concat();
        let (answer, _) = host.get(&host.url(path, &all)?).await?;
        let items = answer[field]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for item in items {
            let folder = item["item"]["gitObjectType"] == "tree"
                || item["item"]["isFolder"] == Value::Bool(true);
            let names = ["/item/path", "/originalPath", "/sourceServerItem"];
            if !folder && !files.take(item, &names) {
                return Ok(());
            }
        }
        if items.len() < PAGE {
            return Ok(());
        }
    }
    files.cut = true;
    Ok(())
}
