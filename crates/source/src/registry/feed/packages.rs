//! Versions of a package of GitHub, by its REST API: it tells when each was made, which its registries do not.

use jiff::Timestamp;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_steps::http::address;
use slipway_steps::secrets::Secrets;
use slipway_trigger::feed::Build;

use super::super::{login, oci};
use super::server::{Server, json, validators_of};
use super::{Answer, Listed, Poll, Trouble, build, from_floor};
use crate::fault::Fault;

/// Most pages of a hundred versions each, the newest first.
const MOST_PAGES: usize = 10;

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let package = poll.must("packageName")?;
    let kind = poll.text("packageType").unwrap_or("container");
    if !["container", "npm", "maven", "rubygems", "nuget"].contains(&kind) {
        return Err(format!(
            "packages of type {kind} are not known: those are container, npm, maven, rubygems and nuget"
        )
        .into());
    }
    let (api, owner) = api(poll.address("url")?)?;
    let token = token(poll, secrets).await?;
    let check = "`packageName`, `packageType` and `org` of the trigger, and that the token may read packages";
    let mut server = Server::at(poll, &api, Some(token), check)?;
    server.accept = "application/vnd.github+json";
    let (of, owner) = match poll.text("org") {
        Some(org) => ("orgs", org.to_owned()),
        None => (
            "users",
            owner.ok_or_else(|| "`org` of the trigger is missing".to_owned())?,
        ),
    };
    let mut url = server.url(&[of, &owner, "packages", kind, package, "versions"])?;
    url.query_pairs_mut().append_pair("per_page", "100");
    let Some(mut reply) = server.changed(&url).await? else {
        return Ok(Answer::Same);
    };
    // What is new is on the first page, so that its tag tells of all.
    let (etag, modified) = validators_of(&reply.headers);
    let mut all = Vec::new();
    let mut is_cut = false;
    for page in 1.. {
        let answer = json(&server, &reply)?;
        let Some(versions) = answer.as_array() else {
            let why = "its answer is no list of versions: check the connector's address";
            return Err(format!("{}: {why}", server.name()).into());
        };
        for version in versions {
            all.extend(builds(package, version));
        }
        let next = oci::next(&url, &reply.headers)?;
        match next.filter(|next| server.owns(next)) {
            None => break,
            Some(_) if page >= MOST_PAGES => {
                is_cut = true;
                break;
            }
            Some(next) => {
                reply = server.get(&next).await?;
                url = next;
            }
        }
    }
    Ok(Answer::All(Listed {
        etag,
        modified,
        ..from_floor(all, is_cut, poll.known.floor)
    }))
}

/// The address of the API of a connector's host, and the owner that the connector names.
fn api(written: &str) -> Result<(String, Option<String>), Fault> {
    let url: Url = address::url(written).map_err(|why| format!("the connector's `url`: {why}"))?;
    let owner = url.path_segments().and_then(|mut path| path.next());
    let owner = owner.filter(|owner| !owner.is_empty()).map(str::to_owned);
    let origin = url.origin().ascii_serialization();
    let api = match url.host_str() {
        Some("github.com" | "www.github.com") => "https://api.github.com".to_owned(),
        // GitHub Enterprise has it below its own name.
        _ => format!("{origin}/api/v3"),
    };
    Ok((api, owner))
}

/// GitHub gives packages to nobody without a token.
async fn token(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<SecretString, Fault> {
    let (scope, _) = poll.scope.resolve(&poll.connector.reference);
    let login = login::login(poll.connector, &scope, secrets).await;
    let Some(login) = login.map_err(Fault::login)? else {
        return Err(Fault::login(
            "GitHub lists packages for those who log in only: give the connector a token that may read packages",
        ));
    };
    let text = format!("Bearer {}", login.password.expose_secret());
    Ok(SecretString::from(text))
}

/// A version; of a container it has as many names as it has tags, and those without are none.
fn builds(package: &str, version: &Value) -> Vec<(i64, Build)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let time = |name: &str| {
        let at: Option<Timestamp> = version[name].as_str().and_then(|at| at.parse().ok());
        at.map(Timestamp::as_millisecond)
    };
    let tags = version["metadata"]["container"]["tags"].as_array();
    let names: Vec<String> = match tags {
        Some(tags) => tags.iter().filter_map(text).collect(),
        None => text(&version["name"]).into_iter().collect(),
    };
    // A tag that is put on an old version is new.
    let at = match tags {
        Some(_) => time("updated_at").or_else(|| time("created_at")),
        None => time("created_at"),
    };
    let digest = tags.and_then(|_| text(&version["name"]));
    let named = names.into_iter().map(|name| {
        let told = [
            ("image", tags.map(|_| format!("{package}:{name}"))),
            ("tag", Some(name.clone())),
            ("SHA", digest.clone()),
            ("url", text(&version["html_url"])),
        ];
        (at.unwrap_or_default(), build(&name, told))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_that_of_the_connectors_host() {
        let told = |url: &str| api(url).ok();
        let of = |api: &str, owner: Option<&str>| Some((api.to_owned(), owner.map(str::to_owned)));
        assert_eq!(
            told("https://github.com/acme"),
            of("https://api.github.com", Some("acme"))
        );
        assert_eq!(
            told("https://github.com/"),
            of("https://api.github.com", None)
        );
        assert_eq!(
            told("https://git.example:8443/acme/web.git"),
            of("https://git.example:8443/api/v3", Some("acme"))
        );
        assert_eq!(told("git@github.com:acme/web"), None);
        assert_eq!(told("http://169.254.169.254/acme"), None);
    }
}
