//! Where a repository is: the connector's address and the store's `repoName`.

use std::path::PathBuf;

use reqwest::Url;
use serde_json::Value;
use slipway_plan::ConnectorPlan;
use slipway_steps::http::address::check;

/// A place that a repository is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A host that speaks Git over HTTP. Without a user or password in it.
    Http(Url),
    /// A folder of this machine: a repository, or plain files.
    Local(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http(url) => write!(f, "{url}"),
            Self::Local(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The address of a connector's repository. `repository` is the store's `repoName`, for connectors of an
/// account or project (docs: platform/connectors/code-repositories/connect-to-code-repo); one of a single
/// repository needs none. The reason why there is none never repeats the address, which may hold a secret.
pub(crate) fn address(
    connector: &ConnectorPlan,
    repository: Option<&str>,
    local_files: bool,
) -> Result<Address, String> {
    let spec = &connector.spec;
    let written = spec["url"].as_str().map(str::trim).unwrap_or_default();
    let extent = ["connectionType", "type"]
        .iter()
        .filter_map(|field| spec[*field].as_str())
        .find(|extent| ["Account", "Repo", "Project", "Region"].contains(extent))
        .unwrap_or("Repo");
    let parts = match (extent, repository) {
        ("Repo", _) => Vec::new(),
        (_, Some(name)) => below(&connector.kind, extent, name)?,
        (extent, None) => {
            return Err(format!(
                "it is for an {extent} with several repositories: name one in `repoName`"
            ));
        }
    };
    if written.is_empty() {
        return Err("it has no `url`".to_owned());
    }
    let folder = written
        .strip_prefix("file://")
        .or(written.starts_with('/').then_some(written));
    if let Some(folder) = folder {
        return local(folder, &parts, local_files);
    }
    if ssh(written, spec) {
        return Err(
            "it connects over SSH, which this version does not: a connector names no host key to check the host by; use an HTTPS address and a token".to_owned(),
        );
    }
    let mut url = Url::parse(written).map_err(|why| format!("its `url` is no address ({why})"))?;
    check(&url).map_err(|why| format!("its `url` is not used: {why}"))?;
    if url.password().is_some() {
        return Err(
            "its `url` holds a password: put it into the connector's authentication".to_owned(),
        );
    }
    // Azure's own addresses begin with `https://ORGANIZATION@`; who logs in is in the authentication.
    if url.set_username("").is_err() {
        return Err("its `url` has no host".to_owned());
    }
    url.set_query(None);
    url.set_fragment(None);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(parts);
    }
    Ok(Address::Http(url))
}

/// The parts of a path that `repoName` adds to the address.
fn below<'n>(host: &str, extent: &str, name: &'n str) -> Result<Vec<&'n str>, String> {
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    let strange = |part: &&str| {
        part.starts_with('-') || [".", ".."].contains(part) || part.contains(char::is_control)
    };
    if parts.is_empty() || parts.iter().any(strange) {
        return Err(format!(
            "`{}` is no name of a repository",
            name.escape_debug()
        ));
    }
    // Repositories of an Azure project stand below `_git`.
    let azure = host == "AzureRepo" && extent == "Project" && !parts.contains(&"_git");
    Ok(azure.then_some("_git").into_iter().chain(parts).collect())
}

fn ssh(written: &str, spec: &Value) -> bool {
    let kinds = [&spec["authentication"]["type"], &spec["type"]];
    let scp = !written.contains("://") && written.contains(':');
    written.starts_with("ssh://") || scp || kinds.iter().any(|kind| *kind == "Ssh")
}

fn local(folder: &str, parts: &[&str], allowed: bool) -> Result<Address, String> {
    if !allowed {
        return Err(
            "its `url` names a folder of this machine, which only `slipway local` on a loopback address reads".to_owned(),
        );
    }
    if !folder.starts_with('/') {
        return Err("its `file://` address names another host; write file:///folder".to_owned());
    }
    let mut path = PathBuf::from(folder);
    path.extend(parts);
    Ok(Address::Local(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(kind: &str, spec: Value, repository: Option<&str>) -> String {
        let connector = ConnectorPlan {
            reference: "code".to_owned(),
            kind: kind.to_owned(),
            spec,
        };
        match address(&connector, repository, true) {
            Ok(address) => address.to_string(),
            Err(why) => format!("no: {why}"),
        }
    }

    #[test]
    fn a_connector_and_a_name_make_an_address() {
        let table = [
            (
                "Github",
                "Repo",
                "https://github.com/acme/shop",
                Some("other"),
                "https://github.com/acme/shop",
            ),
            (
                "Github",
                "Account",
                "https://github.com/acme/",
                Some("shop"),
                "https://github.com/acme/shop",
            ),
            (
                "Gitlab",
                "Account",
                "https://gitlab.example:8443/",
                Some("group/sub/shop.git"),
                "https://gitlab.example:8443/group/sub/shop.git",
            ),
            (
                "AzureRepo",
                "Project",
                "https://dev.azure.com/acme/web",
                Some("shop"),
                "https://dev.azure.com/acme/web/_git/shop",
            ),
            (
                "AzureRepo",
                "Account",
                "https://dev.azure.com/acme",
                Some("web/_git/shop"),
                "https://dev.azure.com/acme/web/_git/shop",
            ),
            (
                "AzureRepo",
                "Repo",
                "https://acme@dev.azure.com/acme/web/_git/shop",
                None,
                "https://dev.azure.com/acme/web/_git/shop",
            ),
            (
                "Git",
                "Account",
                "https://git.example/x?a=b#c",
                Some("a b"),
                "https://git.example/x/a%20b",
            ),
            ("Git", "Repo", "file:///srv/shop", None, "/srv/shop"),
            ("Git", "Account", "/srv", Some("shop"), "/srv/shop"),
        ];
        for (kind, extent, url, repository, expected) in table {
            let spec = json!({"url": url, "type": extent});
            assert_eq!(of(kind, spec, repository), expected);
            let spec = json!({"url": url, "connectionType": extent, "type": "Http"});
            assert_eq!(of(kind, spec, repository), expected);
        }
    }

    #[test]
    fn an_address_that_is_not_used_says_why_and_repeats_no_secret() {
        let table = [
            (
                "Account",
                "https://github.com/acme",
                None,
                "name one in `repoName`",
            ),
            (
                "Account",
                "https://github.com/acme",
                Some("../../x"),
                "is no name of a repository",
            ),
            (
                "Account",
                "https://github.com/acme",
                Some("--upload-pack=x"),
                "is no name of a repository",
            ),
            ("Repo", "", None, "it has no `url`"),
            ("Repo", "git@github.com:acme/shop.git", None, "over SSH"),
            ("Repo", "ssh://-oProxyCommand=sh/x", None, "over SSH"),
            (
                "Repo",
                "https://jo:s3cret@github.com/acme/shop",
                None,
                "holds a password",
            ),
            ("Repo", "http://169.254.169.254/latest", None, "link-local"),
            (
                "Repo",
                "git://github.com/acme/shop",
                None,
                "`git` is not supported",
            ),
            ("Repo", "ext::sh -c s3cret", None, "over SSH"),
            ("Repo", "file://host/x", None, "names another host"),
        ];
        for (extent, url, repository, expected) in table {
            let found = of("Git", json!({"url": url, "type": extent}), repository);
            assert!(found.starts_with("no: "), "{url}: {found}");
            assert!(found.contains(expected), "{url}: {found}");
            assert!(!found.contains("s3cret"), "{found}");
        }
        let spec = json!({"url": "https://x/y", "authentication": {"type": "Ssh"}});
        assert!(of("Github", spec, None).contains("over SSH"));
        let connector = ConnectorPlan {
            reference: "code".to_owned(),
            kind: "Git".to_owned(),
            spec: json!({"url": "file:///etc", "type": "Repo"}),
        };
        let why = address(&connector, None, false).unwrap_err();
        assert!(why.contains("only `slipway local`"), "{why}");
    }
}
