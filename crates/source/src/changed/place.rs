//! Where the API of a repository is: beside the repository, whatever way the connector reaches that.

use reqwest::Url;
use serde_json::Value;
use slipway_plan::ConnectorPlan;

/// A repository on its host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Scheme, host and port.
    pub(crate) host: Url,
    /// The folders and the name of the repository, without `.git`.
    pub(crate) path: Vec<String>,
}

impl Place {
    /// The name of the host.
    pub(crate) fn name(&self) -> &str {
        self.host.host_str().unwrap_or_default()
    }

    /// Whether it is in Bitbucket's cloud, and on no server.
    pub(crate) fn is_bitbucket_cloud(&self) -> bool {
        matches!(self.name(), "bitbucket.org" | "www.bitbucket.org")
    }
}

/// The place of a connector's repository; `repository` is its name where the connector has several.
pub(crate) fn of(connector: &ConnectorPlan, repository: Option<&str>) -> Result<Place, String> {
    let spec = &connector.spec;
    let written = spec["url"].as_str().map(str::trim).unwrap_or_default();
    if written.is_empty() {
        return Err("it has no `url`".to_owned());
    }
    let (host, path) = split(written)?;
    let mut path: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    let kinds = ["connectionType", "type"].map(|field| &spec[field]);
    let several = kinds
        .into_iter()
        .filter_map(Value::as_str)
        .any(|kind| matches!(kind, "Account" | "Project" | "Region"));
    if several {
        let name = repository.ok_or(
            "it is for several repositories: name one in `repoName` of the trigger".to_owned(),
        )?;
        path.extend(
            name.split('/')
                .filter(|part| !part.is_empty())
                .map(str::to_owned),
        );
    }
    if let Some(last) = path.last_mut()
        && let Some(bare) = last.strip_suffix(".git")
    {
        *last = bare.to_owned();
    }
    if path.iter().any(|part| [".", ".."].contains(&part.as_str())) {
        return Err("its `url` and `repoName` are no path of a repository".to_owned());
    }
    Ok(Place { host, path })
}

/// Host and path of an address of Git. Over ssh the port is that of ssh: the API is at the usual one of https.
fn split(written: &str) -> Result<(Url, String), String> {
    let why = "its `url` is no address of a repository on a host";
    let web = |host: &str| Url::parse(&format!("https://{host}/")).map_err(|_| why.to_owned());
    if !written.contains("://") {
        let (host, path) = written.split_once(':').ok_or(why)?;
        let host = host.rsplit('@').next().unwrap_or_default();
        return Ok((web(host)?, path.to_owned()));
    }
    let mut url = Url::parse(written).map_err(|_| why.to_owned())?;
    let path = url.path().to_owned();
    match url.scheme() {
        "http" | "https" => {
            // Azure's addresses begin with `https://ORGANIZATION@`.
            let cleared = url.set_username("").and_then(|()| url.set_password(None));
            cleared.map_err(|()| why.to_owned())?;
            url.set_path("/");
            url.set_query(None);
            url.set_fragment(None);
            Ok((url, path))
        }
        "ssh" => Ok((web(url.host_str().ok_or(why)?)?, path)),
        _ => Err(why.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_api_is_on_the_host_of_the_repository() {
        for (kind, url, name, expected) in [
            (
                "Repo",
                "https://github.com/acme/shop.git",
                None,
                "https://github.com/ acme/shop",
            ),
            (
                "Account",
                "https://github.com/acme/",
                Some("shop"),
                "https://github.com/ acme/shop",
            ),
            (
                "Repo",
                "git@github.com:acme/shop.git",
                None,
                "https://github.com/ acme/shop",
            ),
            (
                "Repo",
                "ssh://git@git.local:7999/prj/shop.git",
                None,
                "https://git.local/ prj/shop",
            ),
            (
                "Repo",
                "http://git.local:3000/acme/shop",
                None,
                "http://git.local:3000/ acme/shop",
            ),
            (
                "Project",
                "https://me:pw@dev.azure.com/acme/web",
                Some("shop"),
                "https://dev.azure.com/ acme/web/shop",
            ),
        ] {
            let connector = ConnectorPlan {
                reference: "code".to_owned(),
                kind: "Github".to_owned(),
                spec: json!({"url": url, "type": kind}),
            };
            let place = of(&connector, name).unwrap();
            assert_eq!(format!("{} {}", place.host, place.path.join("/")), expected);
        }
        for (kind, url, name) in [
            ("Account", "https://github.com/acme", None),
            ("Account", "https://github.com/acme", Some("../other")),
            ("Repo", "", None),
            ("Repo", "/srv/shop", None),
            ("Repo", "file:///srv/shop", None),
            ("Repo", "http://[::", None),
        ] {
            let connector = ConnectorPlan {
                reference: "code".to_owned(),
                kind: "Github".to_owned(),
                spec: json!({"url": url, "type": kind}),
            };
            assert!(of(&connector, name).is_err(), "{url}");
        }
    }
}
