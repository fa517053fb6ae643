//! How connectors of registries log in.

use secrecy::ExposeSecret;
use slipway_model::id::Scope;
use slipway_plan::ConnectorPlan;
use slipway_steps::secrets::Secrets;

use crate::git::login::{self, Login};

/// The login of a connector that lives in `scope`; `None` when it has none.
///
/// # Errors
/// When a secret cannot be read, or the way of logging in is not supported. No secret is in the reason.
pub(super) async fn login(
    connector: &ConnectorPlan,
    scope: &Scope,
    secrets: &mut Secrets<'_>,
) -> Result<Option<Login>, String> {
    if connector.kind == "Github" {
        return login::login(connector, scope, secrets).await;
    }
    let auth = &connector.spec["auth"];
    match auth["type"].as_str().unwrap_or("Anonymous") {
        "Anonymous" => return Ok(None),
        "UsernamePassword" => {}
        other => {
            return Err(format!(
                "it logs in with {other}, which this version does not: use UsernamePassword or Anonymous"
            ));
        }
    }
    let filled = |name: &str| {
        let text = auth["spec"][name].as_str().map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let user = match (filled("username"), filled("usernameRef")) {
        (Some(user), _) => user,
        (None, Some(reference)) => {
            let value = secrets.value_in(scope, &reference).await;
            let value = value.map_err(|failure| failure.message)?;
            value.expose_secret().to_owned()
        }
        (None, None) => return Err("it has no `username`".to_owned()),
    };
    let Some(reference) = filled("passwordRef") else {
        return Err("it has no `passwordRef`".to_owned());
    };
    let password = secrets.value_in(scope, &reference).await;
    let password = password.map_err(|failure| failure.message)?;
    Ok(Some(Login { user, password }))
}
