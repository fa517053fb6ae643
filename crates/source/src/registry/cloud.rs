//! Registries of Google and Azure: what they are called, and how the accounts of these clouds log in to them. Both speak the
//! OCI distribution API and take the key of a service account and the secret of a service principal as a password, so that
//! no SDK of theirs is needed.

use reqwest::Url;
use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use slipway_steps::secrets::Secrets;

use super::client::is_loopback;
use crate::fault::Fault;
use crate::git::login::Login;

/// Names of Google's registries. Its key is sent to no other.
pub(super) const GOOGLE: &[&str] = &["gcr.io", ".gcr.io", "-docker.pkg.dev"];
/// Names of Azure's registries.
pub(super) const AZURE: &[&str] = &[".azurecr.io", ".azurecr.cn", ".azurecr.us"];

/// Names of the registries that a connector's cloud has; `None` where it is the connector of no cloud.
pub(super) fn names(connector: &ConnectorPlan) -> Option<&'static [&'static str]> {
    match connector.kind.as_str() {
        "Gcp" => Some(GOOGLE),
        "Azure" => Some(AZURE),
        _ => None,
    }
}

/// The address of a registry of a cloud. Who may write a trigger or a service must not have the cloud's key sent elsewhere.
pub(super) fn address(host: &str, names: &[&str]) -> Result<String, Fault> {
    let bare = host.trim_start_matches("https://").trim_end_matches('/');
    let url = Url::parse(&format!("https://{bare}")).ok();
    let name = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let is_bare = url
        .as_ref()
        .is_some_and(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty());
    if url.as_ref().is_some_and(is_loopback) && is_bare {
        // As Docker does it.
        return Ok(format!("http://{bare}"));
    }
    let known = names
        .iter()
        .any(|known| match known.strip_prefix(['.', '-']) {
            Some(_) => name.ends_with(known) && name.len() > known.len(),
            None => name == *known,
        });
    match is_bare && known {
        true => Ok(format!("https://{bare}")),
        false => Err(format!(
            "`{host:.100}` is no registry of the cloud that the connector is for: those end with {}",
            names.join(", ")
        )
        .into()),
    }
}

/// What proves who a connector of a cloud is.
struct Proof<'c> {
    user: &'c str,
    reference: &'c str,
}

impl<'c> Proof<'c> {
    /// A service account logs in with its key (docs: Artifact Registry, *Configure authentication to Artifact Registry for
    /// Docker*), a service principal with its id and secret (docs: Azure Container Registry, *Authenticate with service
    /// principals*).
    fn of(connector: &'c ConnectorPlan) -> Result<Self, &'static str> {
        let credential = &connector.spec["credential"];
        let (is_manual, spec) = (credential["type"] == "ManualConfig", &credential["spec"]);
        let found = match connector.kind.as_str() {
            "Gcp" => spec["secretKeyRef"].as_str().map(|key| ("_json_key", key)),
            _ => {
                let secret = spec["auth"]["spec"]["secretRef"].as_str();
                spec["applicationId"].as_str().zip(secret)
            }
        };
        match found.filter(|_| is_manual) {
            Some((user, reference)) => Ok(Self { user, reference }),
            None if connector.kind == "Gcp" => Err(
                "it logs in without a key of a service account, which this version does not: use ManualConfig",
            ),
            None => Err(
                "it logs in without a secret of a service principal, which this version does not: use ManualConfig with \
                 a Secret",
            ),
        }
    }
}

/// Why a connector's way of logging in is none that is supported.
pub(super) fn unsupported(connector: &ConnectorPlan) -> Option<&'static str> {
    names(connector)?;
    Proof::of(connector).err()
}

/// The login of a connector of a cloud that lives in `scope`.
pub(super) async fn login(
    connector: &ConnectorPlan,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<Login, Fault> {
    let proof = Proof::of(connector).map_err(Fault::login)?;
    let password = secrets.value_in(scope, proof.reference).await;
    Ok(Login {
        user: proof.user.to_owned(),
        password: password?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_clouds_go_to_their_registries_only() {
        let table = [
            ("gcr.io", GOOGLE, Some("https://gcr.io")),
            ("eu.gcr.io", GOOGLE, Some("https://eu.gcr.io")),
            ("https://us.gcr.io/", GOOGLE, Some("https://us.gcr.io")),
            (
                "europe-west1-docker.pkg.dev",
                GOOGLE,
                Some("https://europe-west1-docker.pkg.dev"),
            ),
            ("shop.azurecr.io", AZURE, Some("https://shop.azurecr.io")),
            ("127.0.0.1:5000", GOOGLE, Some("http://127.0.0.1:5000")),
            ("evil-gcr.io", GOOGLE, None),
            ("gcr.io.evil.com", GOOGLE, None),
            (".gcr.io", GOOGLE, None),
            ("-docker.pkg.dev", GOOGLE, None),
            ("gcr.io@evil.com", GOOGLE, None),
            ("evil.com#.gcr.io", GOOGLE, None),
            ("evil.com/.gcr.io", GOOGLE, None),
            ("evil.com?x=.gcr.io", GOOGLE, None),
            ("shop.azurecr.io", GOOGLE, None),
            ("169.254.169.254", AZURE, None),
            ("", AZURE, None),
        ];
        for (host, names, expected) in table {
            assert_eq!(address(host, names).ok().as_deref(), expected, "{host}");
        }
    }
}
