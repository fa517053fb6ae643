//! Versions of a package of Azure Artifacts, of an organization of Azure DevOps or a collection of a server (docs: Azure
//! DevOps Services REST API, *Artifact Details*).

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;
use slipway_steps::secrets::Secrets;

use super::super::client::basic;
use super::server::{Server, json};
use super::{Answer, Poll, Trouble, build, in_order};
use crate::fault::Fault;
use crate::git::login::Login;

/// The version of the API: what servers know as well, which are older than the cloud.
const API: &str = "6.0-preview.1";

/// Packages of one page.
const PAGE: usize = 1_000;

/// Most pages of packages whose names contain the one that is looked for.
const MOST_PAGES: usize = 20;

/// What to check where there is nothing.
const CHECK: &str = "`feed` and `project` (a feed of the whole organization has no `project`), and that the \
                     connector's token may read packages";

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let name = match poll.text("packageName") {
        Some(_) => poll.must("packageName")?,
        None => poll.must("package")?,
    };
    let feed = poll.must("feed")?;
    let kind = protocol(poll.must("packageType")?)?;
    let address = api(poll.address("azureArtifactsUrl")?);
    let authorization = authorization(poll, secrets).await?;
    let server = Server::at(poll, &address, Some(authorization), CHECK)?;
    let project = match poll.text("project") {
        Some(_) => Some(poll.must("project")?),
        None => None,
    };
    let mut at: Vec<&str> = project.into_iter().collect();
    at.extend(["_apis", "packaging", "Feeds", feed, "Packages"]);
    let Some(package) = package(&server, &at, (name, kind)).await? else {
        let why = format!(
            "{}: feed {feed} has no {kind} package {name}: check `packageName`, with its group for Maven (`com.acme:web`), \
             and `packageType`",
            server.name()
        );
        return Err(why.into());
    };
    at.extend([package.as_str(), "versions"]);
    let mut url = server.url(&at)?;
    url.query_pairs_mut()
        .append_pair("isDeleted", "false")
        .append_pair("includeUrls", "false")
        .append_pair("api-version", API);
    let answer = json(&server, &server.get(&url).await?)?;
    let versions = list(&server, &answer)?.iter().filter_map(|found| {
        // One of NuGet that is not listed is only had by who knows it.
        let listed = found["isListed"] != false && found["deletedDate"].is_null();
        let version = found["version"].as_str().filter(|_| listed)?;
        let published: Option<Timestamp> =
            found["publishDate"].as_str().and_then(|at| at.parse().ok());
        let told = [
            ("version", Some(version.to_owned())),
            ("package", Some(name.to_owned())),
            ("packageType", Some(kind.to_ascii_lowercase())),
            ("feed", Some(feed.to_owned())),
            ("project", project.map(str::to_owned)),
        ];
        let at = published.map_or(0, Timestamp::as_millisecond);
        Some((at, build(version, told)))
    });
    let builds = in_order(versions.collect()).into_iter();
    let builds: Vec<_> = builds.map(|(_, build)| build).collect();
    Ok(Answer::All(builds.into()))
}

/// The id of a package; names of packages do not lead to their versions.
async fn package(
    server: &Server<'_>,
    at: &[&str],
    (name, kind): (&str, &str),
) -> Result<Option<String>, Trouble> {
    for number in 0..MOST_PAGES {
        let mut url = server.url(at)?;
        url.query_pairs_mut()
            .append_pair("protocolType", kind)
            .append_pair("packageNameQuery", name)
            .append_pair("includeUrls", "false")
            .append_pair("$top", &PAGE.to_string())
            .append_pair("$skip", &(number * PAGE).to_string())
            .append_pair("api-version", API);
        let answer = json(server, &server.get(&url).await?)?;
        let packages = list(server, &answer)?;
        // The query finds what contains it.
        let mut same = packages.iter().filter(|package| {
            let found = package["name"].as_str().unwrap_or_default();
            found.eq_ignore_ascii_case(name)
        });
        if let Some(id) = same.find_map(|package| package["id"].as_str()) {
            return Ok(Some(id.to_owned()));
        }
        if packages.len() < PAGE {
            return Ok(None);
        }
    }
    Ok(None)
}

fn list<'a>(server: &Server<'_>, answer: &'a Value) -> Result<&'a [Value], Fault> {
    let list = answer["value"].as_array().map(Vec::as_slice);
    list.ok_or_else(|| {
        let why = "its answer has no `value`: check the connector's address";
        format!("{}: {why}", server.name()).into()
    })
}

/// What Azure calls a type of packages.
fn protocol(written: &str) -> Result<&'static str, Fault> {
    Ok(match written {
        "maven" => "Maven",
        "nuget" => "NuGet",
        "npm" => "Npm",
        "upack" => "UPack",
        "pypi" => "PyPi",
        other => {
            return Err(format!(
                "packages of type {other} are not polled by this version: those are maven, nuget, npm, upack and pypi"
            )
            .into());
        }
    })
}

/// Where the API of feeds is: at hosts of its own in the cloud, at the server's own address elsewhere.
fn api(written: &str) -> String {
    let written = written.trim().trim_end_matches('/');
    let Some((scheme, rest)) = written.split_once("://") else {
        return written.to_owned();
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match host.strip_suffix(".visualstudio.com") {
        Some(organization) if !organization.contains('.') => {
            format!("{organization}.feeds.visualstudio.com")
        }
        _ if host == "dev.azure.com" => "feeds.dev.azure.com".to_owned(),
        _ => return written.to_owned(),
    };
    format!("{scheme}://{host}/{path}")
}

/// The login of the connector: a personal access token, which is a password without a user.
async fn authorization(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<SecretString, Fault> {
    let (scope, _) = poll.scope.resolve(&poll.connector.reference);
    let auth = &poll.connector.spec["auth"];
    let inner = [&auth["spec"]["spec"], &auth["spec"]];
    let reference = inner.into_iter().find_map(|spec| spec["tokenRef"].as_str());
    let Some(reference) = reference.filter(|reference| !reference.is_empty()) else {
        return Err(Fault::login(
            "it has no `tokenRef`: give it the personal access token of somebody who may read packages",
        ));
    };
    let password = secrets.value_in(&scope, reference).await?;
    Ok(basic(&Login {
        user: String::new(),
        password,
    }))
}

#[cfg(test)]
mod tests {
    use super::api;

    #[test]
    fn feeds_of_the_cloud_have_hosts_of_their_own() {
        for (written, expected) in [
            (
                "https://dev.azure.com/acme/",
                "https://feeds.dev.azure.com/acme",
            ),
            (
                "https://acme.visualstudio.com",
                "https://acme.feeds.visualstudio.com/",
            ),
            (
                "https://tfs.example.com/tfs/Shop",
                "https://tfs.example.com/tfs/Shop",
            ),
            (
                "https://dev.azure.com.evil.example/acme",
                "https://dev.azure.com.evil.example/acme",
            ),
        ] {
            assert_eq!(api(written), expected);
        }
    }
}
