//! Harness Code (apidocs.harness.io: *rawDiff*, *diffPullReq*), and Harness Open Source, which is the same by itself.
//!
//! | | a repository | its API | a token |
//! |---|---|---|---|
//! | Harness's own | `git.harness.io/ACCOUNT/ORG/PROJECT/NAME.git` | `app.harness.io/gateway/code/api/v1` | `x-api-key` |
//! | Open Source | `HOST/git/SPACE/…/NAME.git` | `HOST/api/v1` | `Bearer` |
//!
//! Neither pages the files of a change; what is too large an answer is refused.

use reqwest::Url;
use slipway_engine::gather::Change;

use super::host::{Known, Sent};
use super::place::Place;
use super::{Files, Host};
use crate::fault::Fault;

/// A file and its old name; both have the same where it was not renamed.
const NAMES: &[&str] = &["/path", "/old_path"];

/// The host of Harness's own repositories, and that of their API.
const OWN: (&str, &str) = ("git.harness.io", "app.harness.io");

/// Names of a repository's folders on Harness's own host, from the outside, as the API's query has them.
const SCOPES: [&str; 3] = ["accountIdentifier", "orgIdentifier", "projectIdentifier"];

/// A repository in the API of its host.
pub(crate) struct Repository {
    pub(crate) host: Host,
    /// The path of the repository below the API.
    own: Vec<String>,
    /// What names its folders, where the path does not.
    query: Vec<(&'static str, String)>,
}

impl Repository {
    /// The repository at a place, asked with a login.
    pub(crate) fn at(place: &Place, login: Option<Known>) -> Result<Self, Fault> {
        match place.name() == OWN.0 {
            true => Self::own(place, login),
            false => Self::open_source(place, login),
        }
    }

    fn own(place: &Place, login: Option<Known>) -> Result<Self, Fault> {
        let mut base = place.host.clone();
        let host = base.set_host(Some(OWN.1));
        host.map_err(|why| why.to_string())?;
        base.set_path("/gateway/code/api/v1");
        let host = Host::new(base, login, Sent::Named("x-api-key"))?;
        Self::own_at(host, place)
    }

    fn own_at(host: Host, place: &Place) -> Result<Self, Fault> {
        let (name, folders) = split(&place.path, 1..=SCOPES.len()).ok_or_else(|| {
            "its `url` is not that of an account, at most an organization and a project, and a repository"
                .to_owned()
        })?;
        Ok(Self {
            host,
            own: vec!["repos".to_owned(), name.to_owned()],
            query: SCOPES.into_iter().zip(folders.iter().cloned()).collect(),
        })
    }

    fn open_source(place: &Place, login: Option<Known>) -> Result<Self, Fault> {
        // Repositories are below `git`, which may be below the folder of the server.
        let at = place.path.iter().position(|part| part == "git");
        let (folder, path) = match at {
            Some(at) => (&place.path[..at], &place.path[at + 1..]),
            None => (&place.path[..0], place.path.as_slice()),
        };
        if split(path, 1..=usize::MAX).is_none() {
            return Err("its `url` is not that of a space and a repository"
                .to_owned()
                .into());
        }
        let mut base = place.host.clone();
        if let Ok(mut segments) = base.path_segments_mut() {
            segments.pop_if_empty().extend(folder).extend(["api", "v1"]);
        }
        // `+` ends the path of a repository.
        let own = ["repos"].into_iter().chain(path.iter().map(String::as_str));
        Ok(Self {
            host: Host::new(base, login, Sent::Bearer)?,
            own: own.chain(["+"]).map(str::to_owned).collect(),
            query: Vec::new(),
        })
    }

    /// An address below the repository.
    pub(crate) fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<Url, Fault> {
        let own = self.own.iter().map(String::as_str);
        let path: Vec<&str> = own.chain(segments.iter().copied()).collect();
        let named = self
            .query
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let query: Vec<(&str, &str)> = named.chain(query.iter().copied()).collect();
        self.host.url(&path, &query)
    }
}

pub(super) async fn ask(
    place: &Place,
    login: Option<Known>,
    change: &Change,
    files: &mut Files,
) -> Result<(), Fault> {
    read(&Repository::at(place, login)?, change, files).await
}

/// The name of a repository and its folders, of which there are so many.
fn split(path: &[String], many: std::ops::RangeInclusive<usize>) -> Option<(&str, &[String])> {
    let (name, folders) = path.split_last()?;
    many.contains(&folders.len())
        .then_some((name.as_str(), folders))
}

async fn read(of: &Repository, change: &Change, files: &mut Files) -> Result<(), Fault> {
    let what = match change {
        Change::PullRequest(number) => {
            vec!["pullreq".to_owned(), number.to_string(), "diff".to_owned()]
        }
        // Two dots: what is between them, and not what is behind where they met.
        Change::Push { before, after } => vec!["diff".to_owned(), format!("{before}..{after}")],
    };
    let what: Vec<&str> = what.iter().map(String::as_str).collect();
    let (answer, _) = of.host.get(&of.url(&what, &[])?).await?;
    if !answer.is_array() && !answer.is_null() {
        return Err(
            "its answer is no list of files: check the connector's address"
                .to_owned()
                .into(),
        );
    }
    files.take_all(&answer, NAMES);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::extract::Request;
    use serde_json::json;

    use super::*;

    /// Harness's own host is asked for a repository of each scope. Its name is the only thing that this test changes.
    #[tokio::test]
    async fn a_repository_of_harness_is_named_by_its_scope() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!(
            "http://{}/gateway/code/api/v1",
            listener.local_addr().unwrap()
        );
        let host = || Host::new(Url::parse(&at).unwrap(), None, Sent::Named("x-api-key")).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let app = Router::new().fallback(move |request: Request| {
            seen.lock().unwrap().push(request.uri().to_string());
            async { axum::Json(json!([{"path": "a", "old_path": "a", "status": "MODIFIED"}])) }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        let push = Change::Push {
            before: "a1".to_owned(),
            after: "b2".to_owned(),
        };
        for (path, change, expected) in [
            (
                "acc/org/web/shop",
                &push,
                "repos/shop/diff/a1..b2?accountIdentifier=acc&orgIdentifier=org&projectIdentifier=web",
            ),
            (
                "acc/org/shop",
                &push,
                "repos/shop/diff/a1..b2?accountIdentifier=acc&orgIdentifier=org",
            ),
            (
                "acc/shop",
                &Change::PullRequest(7),
                "repos/shop/pullreq/7/diff?accountIdentifier=acc",
            ),
        ] {
            let place = Place {
                host: Url::parse("https://git.harness.io/").unwrap(),
                path: path.split('/').map(str::to_owned).collect(),
            };
            let mut files = Files::default();
            let of = Repository::own_at(host(), &place).unwrap();
            read(&of, change, &mut files).await.unwrap();
            assert_eq!(files.paths.iter().collect::<Vec<_>>(), ["a"]);
            let asked = asked.lock().unwrap().pop();
            assert_eq!(asked.unwrap(), format!("/gateway/code/api/v1/{expected}"));
        }
        let place = Place {
            host: Url::parse("https://git.harness.io/").unwrap(),
            path: vec!["shop".to_owned()],
        };
        let refused = Repository::own_at(host(), &place).err();
        assert!(refused.unwrap().why.contains("an account"));
    }
}
