//! Servers that hold many repositories of many formats, JFrog Artifactory and Sonatype Nexus, and those that hold one of Helm
//! charts.

use std::time::Duration;

use reqwest::Method;
use secrecy::SecretString;
use serde_json::Value;
use slipway_model::id::Scope;
use slipway_model::status::ErrorType;
use slipway_plan::ConnectorPlan;
use slipway_steps::http::address;
use slipway_steps::http::request::Request;
use slipway_steps::secrets::Secrets;

use super::client::{basic, is_loopback};
use super::login::login;
use crate::fault::Fault;

/// Most of a list of repositories that is read, bytes.
const LARGEST: usize = 4 << 20;

/// Lists the repositories of an Artifactory or Nexus, which whoever reads artifacts from it may do, or reads the index of a
/// repository of Helm charts.
///
/// # Errors
/// What keeps it from being read.
pub(crate) async fn test(
    connector: &ConnectorPlan,
    scope: &Scope,
    limit: Duration,
    secrets: &mut Secrets<'_>,
) -> Result<(), Fault> {
    let spec = &connector.spec;
    // Nexus 2 has an API of its own.
    let old = spec["version"]
        .as_str()
        .is_some_and(|version| version.starts_with('2'));
    let (field, path) = match connector.kind.as_str() {
        "Artifactory" => ("artifactoryServerUrl", "api/repositories"),
        "HttpHelmRepo" => ("helmRepoUrl", "index.yaml"),
        _ if old => ("nexusServerUrl", "service/local/repositories"),
        _ => ("nexusServerUrl", "service/rest/v1/repositories"),
    };
    let written = spec[field].as_str().map(str::trim).unwrap_or_default();
    let server = written.trim_end_matches('/');
    let of = |why: String| format!("the {} {server}: {why}", connector.kind);
    let url = address::url(server).map_err(|why| format!("its `{field}`: {why}"))?;
    let (scope, _) = scope.resolve(&connector.reference);
    let login = login(connector, &scope, secrets).await;
    let login = login.map_err(Fault::login)?;
    if login.is_some() && url.scheme() == "http" && !is_loopback(&url) {
        let why = "a login is not sent over http: give the connector an https address";
        return Err(of(why.to_owned()).into());
    }
    let is_helm = connector.kind == "HttpHelmRepo";
    let (accept, what) = match is_helm {
        true => ("*/*", "index of charts"),
        false => ("application/json", "list of repositories"),
    };
    let mut headers = vec![("accept".to_owned(), SecretString::from(accept))];
    headers.extend(
        login
            .as_ref()
            .map(|login| ("authorization".to_owned(), basic(login))),
    );
    let address = SecretString::from(format!("{server}/{path}"));
    let request = Request::new(Method::GET, &address, headers, None).map_err(of)?;
    let answer = request.keeping(LARGEST).send(limit).await;
    let advised = |why: String| of(format!("{why} Check the address and the network."));
    let answer = answer.map_err(|failure| Fault::from(failure).told(advised))?;
    let is_good = match is_helm {
        true => is_index(&answer.body),
        // A list that is longer is one.
        false => answer.truncated || is_list(&answer.body),
    };
    let fault = match answer.code {
        200 if is_good => return Ok(()),
        401 | 403 => Fault::login(match login {
            Some(_) => {
                "it does not accept the connector's login: check its user and password, and that they may see repositories"
            }
            None => "it asks for a login, and the connector has none",
        }),
        429 | 500.. => Fault::new(
            ErrorType::Connectivity,
            format!("it answers {}: try again later", answer.code),
        ),
        code => Fault::from(format!(
            "it answers {code} with what is no {what}: check `{field}`"
        )),
    };
    Err(fault.told(of))
}

fn is_list(body: &str) -> bool {
    let read = serde_json::from_str::<Value>(body);
    read.is_ok_and(|list| list.is_array() || list.is_object())
}

/// Whether a text, which may be cut, is the index of a chart repository (docs: helm.sh, *The Chart Repository Guide*).
fn is_index(body: &str) -> bool {
    let has = |name: &str| body.lines().any(|line| line.trim_end().starts_with(name));
    has("entries:") || has("apiVersion:") || body.trim_start().starts_with("{\"apiVersion\"")
}
