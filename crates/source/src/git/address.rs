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
    /// A host that speaks Git over SSH.
    Ssh(SshAddress),
    /// A folder of this machine: a repository, or plain files.
    Local(PathBuf),
}

/// A repository behind SSH. Nothing in it can be taken for an option of a program or for two words of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SshAddress {
    /// Where the address names one.
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// As the host understands it: from its root, or from where its user's repositories are.
    pub(crate) path: String,
}

impl std::fmt::Display for SshAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, path, .. } = self;
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "ssh://{host}{port}/{}", path.trim_start_matches('/'))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http(url) => write!(f, "{url}"),
            Self::Ssh(address) => write!(f, "{address}"),
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
    if written.contains("::") {
        return Err("its `url` names a program to fetch with, which is never started".to_owned());
    }
    let scp = !written.contains("://") && written.contains(':');
    if scp || written.starts_with("ssh://") {
        return ssh(written, &parts).map(Address::Ssh);
    }
    if logs_in_over_ssh(spec) {
        let why = "it authenticates with an SSH key, but its `url` is no SSH address: write git@HOST:PATH or ssh://git@HOST/PATH";
        return Err(why.to_owned());
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

/// Whether a connector says that it authenticates with an SSH key.
pub(crate) fn logs_in_over_ssh(spec: &Value) -> bool {
    let kinds = [&spec["authentication"]["type"], &spec["type"]];
    kinds.iter().any(|kind| *kind == "Ssh")
}

/// `ssh://USER@HOST:PORT/PATH` or `USER@HOST:PATH`. Every part is one that `ssh` can take for nothing else.
fn ssh(written: &str, parts: &[&str]) -> Result<SshAddress, String> {
    let wrong = |what: &str| format!("its `url` is no SSH address: {what}");
    let (place, path) = match written.strip_prefix("ssh://") {
        Some(rest) => {
            let slash = rest
                .find('/')
                .ok_or_else(|| wrong("it names no repository"))?;
            rest.split_at(slash)
        }
        // `[` opens an address of IPv6, whose colons are its own.
        None => {
            let from = written.find(']').unwrap_or_default();
            let colon = written[from..].find(':').map(|at| at + from);
            let colon = colon.ok_or_else(|| wrong("it names no repository"))?;
            (&written[..colon], &written[colon + 1..])
        }
    };
    let (user, place) = match place.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, place),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err(
            "its `url` holds a password: put it into the connector's authentication".to_owned(),
        );
    }
    let (host, port) = match place.rsplit_once(':').filter(|_| !place.ends_with(']')) {
        Some((host, port)) => {
            let port = port.parse().map_err(|_| wrong("its port is no number"))?;
            (host, Some(port))
        }
        None => (place, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let plain = |text: &str, more: &[char]| {
        let fits = |sign: char| sign.is_ascii_alphanumeric() || more.contains(&sign);
        !text.is_empty() && !text.starts_with('-') && text.chars().all(fits)
    };
    if !plain(host, &['.', '-', ':']) {
        return Err(wrong("its host is no name of a host"));
    }
    if user.is_some_and(|user| !plain(user, &['.', '-', '_'])) {
        return Err(wrong("its user is no name of a user"));
    }
    let bracketed = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let as_url = Url::parse(&format!("https://{bracketed}/"));
    let as_url = as_url.map_err(|_| wrong("its host is no name of a host"))?;
    check(&as_url).map_err(|why| format!("its `url` is not used: {why}"))?;
    let mut path = path.trim_end_matches('/').to_owned();
    for part in parts {
        path = format!("{path}/{part}");
    }
    // It is quoted for the shell of the host; what would end the quotes has no place in it.
    let strange = |sign: char| sign.is_control() || "'\"\\`$!".contains(sign);
    let bad = path.trim_matches('/').is_empty()
        || path.starts_with('-')
        || path.contains(strange)
        || path
            .split('/')
            .any(|part| part == ".." || part.starts_with('-'));
    if bad {
        return Err(wrong("its path is no path of a repository"));
    }
    Ok(SshAddress {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        port,
        path,
    })
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
            (
                "Git",
                "Repo",
                "git@github.com:acme/shop.git",
                None,
                "ssh://github.com/acme/shop.git",
            ),
            (
                "Git",
                "Account",
                "git@github.com:acme",
                Some("shop"),
                "ssh://github.com/acme/shop",
            ),
            (
                "Git",
                "Repo",
                "ssh://git@host:2222/srv/shop",
                None,
                "ssh://host:2222/srv/shop",
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
            (
                "Repo",
                "ssh://-oProxyCommand=sh/x",
                None,
                "no name of a host",
            ),
            ("Repo", "-oProxyCommand=sh:x", None, "no name of a host"),
            ("Repo", "ssh://-lroot@host/x", None, "no name of a user"),
            ("Repo", "ssh://jo:s3cret@host/x", None, "holds a password"),
            (
                "Repo",
                "git@host:x'; touch s3cret'",
                None,
                "no path of a repository",
            ),
            (
                "Repo",
                "git@host:--upload-pack=s3cret",
                None,
                "no path of a repository",
            ),
            (
                "Repo",
                "git@host:a/../../s3cret",
                None,
                "no path of a repository",
            ),
            ("Repo", "git@169.254.169.254:x", None, "link-local"),
            ("Repo", "ssh://host:port/x", None, "no number"),
            ("Repo", "ssh://host", None, "names no repository"),
            ("Repo", "git@host:", None, "no path of a repository"),
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
            ("Repo", "ext::sh -c s3cret", None, "never started"),
            ("Repo", "fd::17", None, "never started"),
            ("Repo", "file://host/x", None, "names another host"),
        ];
        for (extent, url, repository, expected) in table {
            let found = of("Git", json!({"url": url, "type": extent}), repository);
            assert!(found.starts_with("no: "), "{url}: {found}");
            assert!(found.contains(expected), "{url}: {found}");
            assert!(!found.contains("s3cret"), "{found}");
        }
        let spec = json!({"url": "https://x/y", "authentication": {"type": "Ssh"}});
        assert!(of("Github", spec, None).contains("no SSH address"));
        let connector = ConnectorPlan {
            reference: "code".to_owned(),
            kind: "Git".to_owned(),
            spec: json!({"url": "file:///etc", "type": "Repo"}),
        };
        let why = address(&connector, None, false).unwrap_err();
        assert!(why.contains("only `slipway local`"), "{why}");
    }
}
