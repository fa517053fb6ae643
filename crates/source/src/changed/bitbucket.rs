//! Bitbucket Cloud (developer.atlassian.com: *diffstat*), and its own server, Data Center (*Pull requests: changes*).

use reqwest::Url;
use serde_json::Value;
use slipway_engine::gather::Change;

use super::host::{Known, Sent};
use super::place::Place;
use super::{Files, Host, MOST_PAGES};
use crate::fault::Fault;

/// The APIs that a Bitbucket may have, with the names of a repository there.
pub(crate) enum Api<'p> {
    /// Of a workspace, in the cloud.
    Cloud(Host, [&'p str; 2]),
    /// Of a project, on a server.
    Server(Host, [&'p str; 2]),
}

/// The API of a repository.
pub(crate) fn api(place: &Place, login: Option<Known>) -> Result<Api<'_>, Fault> {
    let has_user = login.as_ref().is_some_and(|login| login.has_user);
    let sent = if has_user { Sent::Basic } else { Sent::Bearer };
    match place.is_bitbucket_cloud() {
        true => {
            let (host, own) = cloud(place, (login, sent))?;
            Ok(Api::Cloud(host, own))
        }
        false => {
            let (host, own) = server(place, (login, sent))?;
            Ok(Api::Server(host, own))
        }
    }
}

pub(super) async fn ask(
    place: &Place,
    login: Option<Known>,
    change: &Change,
    files: &mut Files,
) -> Result<(), Fault> {
    match api(place, login)? {
        Api::Cloud(host, [workspace, name]) => {
            cloud_at(&host, (workspace, name), change, files).await
        }
        Api::Server(host, own) => server_at(&host, own, change, files).await,
    }
}

fn cloud(place: &Place, (login, sent): (Option<Known>, Sent)) -> Result<(Host, [&str; 2]), Fault> {
    let [workspace, name] = place.path.as_slice() else {
        return Err("its `url` is not that of a workspace and a repository"
            .to_owned()
            .into());
    };
    let mut base = place.host.clone();
    let host = base.set_host(Some("api.bitbucket.org"));
    host.map_err(|why| why.to_string())?;
    base.set_path("/2.0");
    Ok((Host::new(base, login, sent)?, [workspace, name]))
}

async fn cloud_at(
    host: &Host,
    (workspace, name): (&str, &str),
    change: &Change,
    files: &mut Files,
) -> Result<(), Fault> {
    let own = ["repositories", workspace, name];
    let query = [("pagelen", "100")];
    let mut url = match change {
        Change::PullRequest(number) => {
            let number = number.to_string();
            let rest = ["pullrequests", &number, "diffstat"];
            host.url(&[&own[..], &rest].concat(), &query)?
        }
        // The newer one stands first.
        Change::Push { before, after } => {
            let range = format!("{after}..{before}");
            host.url(&[&own[..], &["diffstat", &range]].concat(), &query)?
        }
    };
    for _ in 0..MOST_PAGES {
        let (answer, _) = host.get(&url).await?;
        let room = files.take_all(&answer["values"], &["/new/path", "/old/path"]);
        let Some(next) = answer["next"].as_str().filter(|_| room) else {
            return Ok(());
        };
        url = Url::parse(next)
            .ok()
            .filter(|next| host.owns(next))
            .ok_or_else(|| "its list goes on at an address that is not its own".to_owned())?;
    }
    files.cut = true;
    Ok(())
}

fn server(place: &Place, (login, sent): (Option<Known>, Sent)) -> Result<(Host, [&str; 2]), Fault> {
    // Over https a repository is below `scm`, which may be below the folder of the server.
    let at = place.path.iter().position(|part| part == "scm");
    let (folder, path) = match at {
        Some(at) => (&place.path[..at], &place.path[at + 1..]),
        None => (&place.path[..0], place.path.as_slice()),
    };
    let [project, name] = path else {
        return Err("its `url` is not that of a project and a repository"
            .to_owned()
            .into());
    };
    let mut base = place.host.clone();
    if let Ok(mut segments) = base.path_segments_mut() {
        segments
            .pop_if_empty()
            .extend(folder)
            .extend(["rest", "api", "1.0"]);
    }
    Ok((Host::new(base, login, sent)?, [project, name]))
}

async fn server_at(
    host: &Host,
    [project, name]: [&str; 2],
    change: &Change,
    files: &mut Files,
) -> Result<(), Fault> {
    let own = ["projects", project, "repos", name];
    let mut start = "0".to_owned();
    for _ in 0..MOST_PAGES {
        let page = [("limit", "500"), ("start", start.as_str())];
        let url = match change {
            Change::PullRequest(number) => {
                let number = number.to_string();
                let rest = ["pull-requests", &number, "changes"];
                host.url(&[&own[..], &rest].concat(), &page)?
            }
            Change::Push { before, after } => {
                let range = [("from", after.as_str()), ("to", before.as_str())];
                host.url(
                    &[&own[..], &["compare", "changes"]].concat(),
                    &[&range[..], &page].concat(),
                )?
            }
        };
        let (answer, _) = host.get(&url).await?;
        let room = files.take_all(&answer["values"], &["/path/toString", "/srcPath/toString"]);
        let next = answer["nextPageStart"].as_u64();
        match next.filter(|_| room && answer["isLastPage"] == Value::Bool(false)) {
            Some(next) => start = next.to_string(),
            None => return Ok(()),
        }
    }
    files.cut = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::extract::Request;
    use axum::response::IntoResponse;
    use axum::response::Redirect;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_list_of_the_cloud_is_followed_on_its_own_host_only() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = Url::parse(&format!("http://{}/2.0", listener.local_addr().unwrap())).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (own, seen) = (base.to_string(), Arc::clone(&asked));
        let app = Router::new().fallback(move |request: Request| {
            let path = request
                .uri()
                .path_and_query()
                .map(ToString::to_string)
                .unwrap_or_default();
            seen.lock().unwrap().push(path.clone());
            let diff = format!("{own}/repositories/acme/shop/diffstat/x");
            let file =
                |name: &str| json!({"status": "modified", "new": {"path": name}, "old": null});
            async move {
                let page = match path
                    .strip_prefix("/2.0/repositories/acme/shop/")
                    .unwrap_or_default()
                {
                    // As the cloud does it.
                    "pullrequests/7/diffstat?pagelen=100" => {
                        return Redirect::to(&diff).into_response();
                    }
                    "diffstat/x" => {
                        json!({"values": [file("a")], "next": format!("{diff}?page=2")})
                    }
                    "diffstat/x?page=2" => {
                        json!({"values": [{"new": {"path": "new"}, "old": {"path": "old"}}]})
                    }
                    "diffstat/b..a?pagelen=100" => {
                        json!({"values": [file("b")], "next": "https://elsewhere.example/"})
                    }
                    _ => json!({}),
                };
                axum::Json(page).into_response()
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        let host = Host::new(base, None, Sent::Bearer).unwrap();
        let mut files = Files::default();
        let pull = Change::PullRequest(7);
        cloud_at(&host, ("acme", "shop"), &pull, &mut files)
            .await
            .unwrap();
        assert_eq!(files.paths.iter().collect::<Vec<_>>(), ["a", "new", "old"]);
        let push = Change::Push {
            before: "a".to_owned(),
            after: "b".to_owned(),
        };
        let elsewhere = cloud_at(&host, ("acme", "shop"), &push, &mut files).await;
        assert!(elsewhere.unwrap_err().why.contains("not its own"));
        assert_eq!(asked.lock().unwrap().len(), 4);
    }
}
