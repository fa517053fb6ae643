//! Webhooks of repositories, made and mended at their providers with the login of the trigger's connector (`apiAccess`, where
//! it has any).
//!
//! | provider | its webhooks | what the login must be allowed |
//! |---|---|---|
//! | GitHub | `repos/OWNER/NAME/hooks` | `admin:repo_hook`; of a fine-grained token and of an app *Webhooks: write* |
//! | GitLab | `projects/PATH/hooks` | `api`, as a maintainer |
//! | Bitbucket Cloud | `repositories/WORKSPACE/NAME/hooks` | `webhook`, as an administrator |
//! | Bitbucket Server | `projects/KEY/repos/NAME/webhooks` | as an administrator of the repository |
//! | Azure Repos | `hooks/subscriptions`, one for each event | *Edit subscriptions* |
//! | Harness Code (a connector of type `Git`) | `repos/NAME/webhooks` | to edit the repository |
//!
//! A webhook is known by its URL: one that is there is changed where it does not do what is wanted, and never made twice. What
//! else it posts stays. No provider shows its secret, so that it is written each time; without one, what was there stays.

mod azure;
mod bitbucket;
mod github;
mod gitlab;
mod harness;

use std::collections::BTreeSet;

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use slipway_engine::intake::hook::WantedHook;
use slipway_model::status::ErrorType;
use slipway_plan::ConnectorPlan;
use slipway_steps::secrets::Secrets;

use crate::changed::{host, place};
use crate::fault::Fault;
use crate::git::Allowed;

/// What a provider is asked for.
struct Hook<'a> {
    url: &'a str,
    /// What it posts, as the provider calls it.
    events: BTreeSet<&'static str>,
    secret: Option<SecretString>,
}

/// Sees to it that a repository has a webhook.
///
/// # Errors
/// Why it has none. Holds no secret.
pub(crate) async fn register(
    wanted: &WantedHook,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<(), Fault> {
    let done = at_provider(wanted, allowed, secrets).await;
    done.map_err(|fault| told(wanted, fault))
}

async fn at_provider(
    wanted: &WantedHook,
    allowed: Allowed<'_>,
    secrets: &mut Secrets<'_>,
) -> Result<(), Fault> {
    let connector = &wanted.connector;
    let (words, may) = at(connector)?;
    let place = place::of(connector, wanted.repository.as_deref()).map_err(Fault::from)?;
    let login = host::login(connector, &place, &wanted.scope, allowed, secrets).await?;
    if login.is_none() {
        let why = "it logs in nowhere, and nobody makes webhooks without: give it `apiAccess`";
        return Err(Fault::login(why));
    }
    let secret = match wanted.secret.as_deref() {
        Some(reference) => Some(secrets.value(reference).await.map_err(|failure| {
            let why = format!("the secret of the trigger: {}", failure.message);
            Fault::from(why)
        })?),
        None => None,
    };
    let events = wanted.events.iter().flat_map(|event| words(event));
    let hook = Hook {
        url: &wanted.url,
        events: events.copied().collect(),
        secret,
    };
    let done = match connector.kind.as_str() {
        "Github" => github::register(&place, login, &hook).await,
        "Gitlab" => gitlab::register(&place, login, &hook).await,
        "Bitbucket" => bitbucket::register(&place, login, &hook).await,
        "Git" => harness::register(&place, login, &hook).await,
        _ => azure::register(&place, login, &hook).await,
    };
    done.map_err(|fault| match fault.kind {
        // Where a login may not do it, some hosts say that there is nothing.
        ErrorType::Authentication | ErrorType::Unknown => {
            fault.told(|why| format!("{why}. Its login needs {may}"))
        }
        _ => fault,
    })
}

/// What a provider calls what a trigger listens to.
type Words = fn(&str) -> &'static [&'static str];

/// The words of a connector's provider, and what it must allow to who makes webhooks.
fn at(connector: &ConnectorPlan) -> Result<(Words, &'static str), Fault> {
    Ok(match connector.kind.as_str() {
        "Github" => (
            github::words,
            "`admin:repo_hook`, or *Webhooks: write* of a fine-grained token or an app",
        ),
        "Gitlab" => (gitlab::words, "`api`, of a maintainer of the project"),
        "Bitbucket" => (
            bitbucket::words(connector),
            "to administer the repository (in the cloud: the scope `webhook`)",
        ),
        "AzureRepo" => (
            azure::words,
            "*Edit subscriptions* of the project's service hooks",
        ),
        // Only triggers of Harness Code have webhooks registered by such a connector.
        "Git" => (harness::words, "to edit the repository"),
        other => {
            let why = "nobody knows how a host takes webhooks whose connector is of type";
            return Err(format!("{why} {other}").into());
        }
    })
}

fn told(wanted: &WantedHook, fault: Fault) -> Fault {
    let name = &wanted.connector.reference;
    fault.told(|why| format!("the webhook cannot be registered with the connector {name}: {why}"))
}

/// What is said where nobody answers in time.
pub(crate) fn late(wanted: &WantedHook, seconds: u64) -> Fault {
    let why = format!("no answer within {seconds} s: check its address and the network");
    told(wanted, Fault::new(ErrorType::Timeout, why))
}

impl Hook<'_> {
    fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.expose_secret())
    }

    /// Whether a webhook's URL is the one; hosts write it anew.
    fn is_at(&self, url: &Value) -> bool {
        let Some(found) = url.as_str() else {
            return false;
        };
        let read = |url: &str| Url::parse(url).ok();
        found == self.url || (read(found).is_some() && read(found) == read(self.url))
    }

    /// What it posts and what is wanted, where something is missing.
    fn lacking(&self, posted: &Value) -> Option<Vec<String>> {
        let posted = posted.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut all: BTreeSet<&str> = posted.iter().filter_map(Value::as_str).collect();
        let before = all.len();
        all.extend(&self.events);
        (all.len() > before).then(|| all.into_iter().map(str::to_owned).collect())
    }

    /// Whether the answer to what made it is it: where a host sends a request on, the answer may be another page.
    fn is_made(&self, url: &Value) -> Result<(), Fault> {
        match self.is_at(url) {
            true => Ok(()),
            false => Err(
                "its answer is not the webhook that it was asked to make: check the connector's address"
                    .to_owned()
                    .into(),
            ),
        }
    }
}

/// Members of one object in another.
fn put(object: &mut Value, members: Value) {
    if let (Value::Object(object), Value::Object(members)) = (object, members) {
        object.extend(members);
    }
}
