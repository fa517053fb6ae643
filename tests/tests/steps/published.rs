//! What Slipway publishes as an identity provider, as the account's STS finds it.

use futures::FutureExt;
use futures::future::BoxFuture;
use slipway_model::id::AccountId;
use slipway_sandbox::{Documents, Unreachable};
use slipway_steps::aws::oidc::Issuer;

/// The documents of an issuer, under the addresses that they have in the world.
pub(crate) struct Published(pub(crate) Issuer);

impl Documents for Published {
    fn read(&self, url: String) -> BoxFuture<'static, Result<String, Unreachable>> {
        let issuer = self.0.clone();
        async move {
            let account = AccountId::new("acme");
            let base = issuer.url(&account);
            let document = match url.strip_prefix(&base) {
                Some("/.well-known/openid-configuration") => issuer.configuration(&account),
                Some("/.well-known/jwks") => issuer.jwks().await.expect("keys"),
                _ => return Err(Unreachable(format!("404 Not Found: {url}"))),
            };
            Ok(document.to_string())
        }
        .boxed()
    }
}
