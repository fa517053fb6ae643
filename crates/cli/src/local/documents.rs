//! How the sandbox account's STS reads what identity providers publish: over HTTP, as AWS's does.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::redirect::Policy;
use slipway_sandbox::{Documents, Unreachable};

/// Time for one document.
const LIMIT: Duration = Duration::from_secs(5);

/// Largest document; AWS takes no more keys than fit into far less.
const LARGEST: usize = 1 << 20;

/// Reads documents over HTTP. Nobody is asked whom the account has no provider for.
#[derive(Default)]
pub(crate) struct HttpDocuments;

impl Documents for HttpDocuments {
    fn read(&self, url: String) -> BoxFuture<'static, Result<String, Unreachable>> {
        let failed = |error: reqwest::Error| Unreachable(error.to_string());
        async move {
            let client = reqwest::Client::builder()
                .redirect(Policy::none())
                .timeout(LIMIT)
                .build()
                .map_err(failed)?;
            let answer = client.get(url).send().await;
            let mut answer = answer
                .and_then(reqwest::Response::error_for_status)
                .map_err(failed)?;
            let mut body = Vec::new();
            while let Some(part) = answer.chunk().await.map_err(failed)? {
                if body.len() + part.len() > LARGEST {
                    return Err(Unreachable(format!("it is larger than {LARGEST} bytes")));
                }
                body.extend_from_slice(&part);
            }
            String::from_utf8(body).map_err(|_| Unreachable("it is no text".to_owned()))
        }
        .boxed()
    }
}
