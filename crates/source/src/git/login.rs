//! How a connector logs in to its host.

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use slipway_steps::secrets::Secrets;

use super::Allowed;
use super::app::App;

/// A user and what proves that it is them.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: SecretString,
}

/// The login of a connector that lives in `scope` to a repository; `None` when it has none.
///
/// # Errors
/// As [`login`]; when a GitHub app gets no token.
pub(crate) async fn to_repository(
    connector: &ConnectorPlan,
    repository: &Url,
    scope: &Scope,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<Option<Login>, String> {
    let way = &connector.spec["authentication"]["spec"];
    match way["type"].as_str() {
        Some("GithubApp" | "GitHubApp") => {
            let login = of_app(repository, &way["spec"], scope, allowed, secrets).await;
            login.map(Some)
        }
        _ => login(connector, scope, secrets).await,
    }
}

/// The login of a connector that lives in `scope`; `None` when it has none.
///
/// # Errors
/// When a secret cannot be read, or the way of logging in is not supported. No secret is in the reason.
pub(crate) async fn login(
    connector: &ConnectorPlan,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<Option<Login>, String> {
    let spec = &connector.spec;
    // Connectors of code hosts wrap what a plain Git connector has at the top.
    let (kind, fields) = match spec["authentication"]["spec"]["type"].as_str() {
        Some(kind) => (kind, &spec["authentication"]["spec"]["spec"]),
        None if spec["spec"].is_object() => ("UsernamePassword", &spec["spec"]),
        None => ("Anonymous", &Value::Null),
    };
    let proof = match kind {
        "Anonymous" => return Ok(None),
        "UsernamePassword" => "passwordRef",
        "UsernameToken" | "EmailAndApiToken" | "AccessToken" | "OAuth" => "tokenRef",
        other => {
            return Err(format!(
                "it logs in with {other}, which this version does not: use UsernameToken"
            ));
        }
    };
    let Some(reference) = filled(fields, proof) else {
        // An open repository needs no login, and a plain Git connector cannot say so otherwise.
        return match kind {
            "UsernamePassword" if filled(fields, "username").is_none() => Ok(None),
            _ => Err(format!("it has no `{proof}`")),
        };
    };
    let user = user(connector, kind, fields, scope, secrets).await?;
    let password = secrets.value_in(scope, reference).await;
    let password = password.map_err(|failure| failure.message)?;
    Ok(Some(Login { user, password }))
}

/// The login of a GitHub app: the token of its installation.
async fn of_app(
    repository: &Url,
    fields: &Value,
    scope: &Scope,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<Login, String> {
    let application = told_or_kept(fields, "applicationId", scope, secrets).await?;
    let installation = told_or_kept(fields, "installationId", scope, secrets).await?;
    let key = filled(fields, "privateKeyRef").ok_or("it has no `privateKeyRef`")?;
    let key = secrets.value_in(scope, key).await;
    let app = App {
        repository,
        application,
        installation,
        key: key.map_err(|failure| failure.message)?,
    };
    let token = allowed.apps.token(&app, allowed.clock).await?;
    secrets.hide(token.expose_secret());
    Ok(Login {
        user: "x-access-token".to_owned(),
        password: token,
    })
}

/// A field that is written, or kept as a secret that `<name>Ref` names.
async fn told_or_kept(
    fields: &Value,
    name: &str,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<String, String> {
    if let Some(written) = filled(fields, name) {
        return Ok(written.to_owned());
    }
    let reference = filled(fields, &format!("{name}Ref"));
    let reference = reference.ok_or_else(|| format!("it has no `{name}`"))?;
    let value = secrets.value_in(scope, reference).await;
    let value = value.map_err(|failure| failure.message)?;
    Ok(value.expose_secret().trim().to_owned())
}

async fn user(
    connector: &ConnectorPlan,
    kind: &str,
    fields: &Value,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<String, String> {
    for field in ["username", "email"] {
        if let Some(user) = filled(fields, field) {
            return Ok(user.to_owned());
        }
    }
    for field in ["usernameRef", "emailRef"] {
        if let Some(reference) = filled(fields, field) {
            let value = secrets.value_in(scope, reference).await;
            let value = value.map_err(|failure| failure.message)?;
            return Ok(value.expose_secret().to_owned());
        }
    }
    // What hosts take as the user of a bare token, each in its own documentation of Git over HTTPS.
    Ok(match (connector.kind.as_str(), kind) {
        ("Gitlab", _) => "oauth2",
        ("Bitbucket", _) => "x-token-auth",
        _ => "x-access-token",
    }
    .to_owned())
}

fn filled<'v>(fields: &'v Value, name: &str) -> Option<&'v str> {
    fields[name]
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::json;
    use slipway_model::id::AccountId;
    use slipway_model::status::{ErrorType, Failure};
    use slipway_steps::secrets::SecretSource;

    use super::*;
    use crate::git::app::AppTokens;
    use crate::git::ssh::SshConfig;

    /// Every secret but `gone` is there, and its value is its name in brackets.
    struct Named;

    #[async_trait]
    impl SecretSource for Named {
        async fn value(&self, _scope: &Scope, reference: &str) -> Result<SecretString, Failure> {
            match reference {
                "gone" => Err(Failure {
                    error: ErrorType::Authentication,
                    message: "there is no secret gone".to_owned(),
                    left_behind: None,
                }),
                name => Ok(SecretString::from(format!("<{name}>"))),
            }
        }
    }

    async fn told(kind: &str, spec: Value) -> String {
        let scope = Scope::account(AccountId::new("acme"));
        let connector = ConnectorPlan {
            reference: "code".to_owned(),
            kind: kind.to_owned(),
            spec,
        };
        let mut secrets = Secrets::new(&Named, &scope);
        let repository = Url::parse("https://code.example/acme/shop").expect("a URL");
        let allowed = Allowed {
            local_files: false,
            limit: std::time::Duration::from_secs(1),
            clock: &slipway_clock::Clock::system(),
            apps: &AppTokens::default(),
            known: &std::sync::Arc::default(),
            ssh: &SshConfig::default(),
        };
        match to_repository(&connector, &repository, &scope, allowed, &mut secrets).await {
            Ok(Some(login)) => format!("{} {}", login.user, login.password.expose_secret()),
            Ok(None) => "nobody".to_owned(),
            Err(why) => format!("no: {why}"),
        }
    }

    #[tokio::test]
    async fn every_way_of_logging_in_gives_a_user_and_a_proof_or_says_why_not() {
        let hosted = |kind: &str, spec: Value| json!({"authentication": {"type": "Http", "spec": {"type": kind, "spec": spec}}});
        let table = [
            (
                "Github",
                hosted("UsernameToken", json!({"username": "jo", "tokenRef": "t"})),
                "jo <t>",
            ),
            (
                "Github",
                hosted(
                    "UsernameToken",
                    json!({"usernameRef": "u", "tokenRef": "t"}),
                ),
                "<u> <t>",
            ),
            (
                "Github",
                hosted(
                    "UsernamePassword",
                    json!({"username": "jo", "passwordRef": "p"}),
                ),
                "jo <p>",
            ),
            (
                "Bitbucket",
                hosted(
                    "EmailAndApiToken",
                    json!({"email": "jo@x", "tokenRef": "t"}),
                ),
                "jo@x <t>",
            ),
            (
                "Bitbucket",
                hosted("AccessToken", json!({"tokenRef": "t"})),
                "x-token-auth <t>",
            ),
            (
                "Gitlab",
                hosted("OAuth", json!({"tokenRef": "t"})),
                "oauth2 <t>",
            ),
            (
                "Github",
                hosted("OAuth", json!({"tokenRef": "t"})),
                "x-access-token <t>",
            ),
            ("Github", hosted("Anonymous", json!({})), "nobody"),
            (
                "Git",
                json!({"type": "Http", "spec": {"username": "jo", "passwordRef": "p"}}),
                "jo <p>",
            ),
            ("Git", json!({"type": "Http", "spec": {}}), "nobody"),
            ("Git", json!({"type": "Http"}), "nobody"),
            (
                "Git",
                json!({"type": "Http", "spec": {"username": "jo"}}),
                "no: it has no `passwordRef`",
            ),
            (
                "Github",
                hosted("UsernameToken", json!({"username": "jo"})),
                "no: it has no `tokenRef`",
            ),
            (
                "Github",
                hosted(
                    "UsernameToken",
                    json!({"username": "jo", "tokenRef": "gone"}),
                ),
                "no: there is no secret gone",
            ),
            (
                "Github",
                hosted("GithubApp", json!({"privateKeyRef": "k"})),
                "no: it has no `applicationId`",
            ),
            (
                "Github",
                hosted(
                    "GithubApp",
                    json!({"applicationId": "1", "installationId": "2", "privateKeyRef": "gone"}),
                ),
                "no: there is no secret gone",
            ),
            (
                "Github",
                hosted(
                    "GithubApp",
                    json!({"applicationId": "1", "installationIdRef": "i", "privateKeyRef": "k"}),
                ),
                "no: its `installationId` is no id of GitHub",
            ),
            (
                "Git",
                hosted("Kerberos", json!({"kerberosKeyRef": "k"})),
                "no: it logs in with Kerberos, which this version does not: use UsernameToken",
            ),
        ];
        for (kind, spec, expected) in table {
            assert_eq!(told(kind, spec.clone()).await, expected, "{spec}");
        }
    }
}
