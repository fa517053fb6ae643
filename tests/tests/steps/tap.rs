//! A tap on the wire to a target: lets calls through until it is told to lose or refuse them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use tokio::sync::Notify;

/// What happens to calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They go through.
    Open,
    /// The process dies after this many more calls: the last of them is carried out, its answer is lost.
    DieAfter(u32),
    /// After this many more calls every call is refused.
    RefuseAfter(u32),
}

/// The tap; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Tap(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: SharedHttpClient,
    mode: Mutex<Mode>,
    calls: AtomicU32,
    died: Notify,
}

impl Tap {
    pub(crate) fn new(client: SharedHttpClient) -> Self {
        Self(Arc::new(Inner {
            client,
            mode: Mutex::new(Mode::Open),
            calls: AtomicU32::new(0),
            died: Notify::new(),
        }))
    }

    pub(crate) fn client(&self) -> SharedHttpClient {
        SharedHttpClient::new(self.clone())
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.0.mode.lock().expect("no panic holds it") = mode;
        self.0.calls.store(0, Ordering::SeqCst);
    }

    /// Calls since the mode was set.
    pub(crate) fn calls(&self) -> u32 {
        self.0.calls.load(Ordering::SeqCst)
    }

    /// Returns when the process has died.
    pub(crate) async fn died(&self) {
        self.0.died.notified().await;
    }
}

impl HttpClient for Tap {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Line {
            tap: self.clone(),
            connector: self.0.client.http_connector(settings, components),
        })
    }
}

#[derive(Debug)]
struct Line {
    tap: Tap,
    connector: SharedHttpConnector,
}

impl HttpConnector for Line {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        // The Query protocol has no such header, and answers in XML.
        let json = request.headers().contains_key("x-amz-target");
        let mode = *self.tap.0.mode.lock().expect("no panic holds it");
        let call = self.tap.0.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let through = self.connector.call(request);
        let tap = self.tap.clone();
        HttpConnectorFuture::new(async move {
            match mode {
                Mode::RefuseAfter(last) if call > last => Ok(refusal(json)),
                Mode::DieAfter(last) if call >= last => {
                    if call == last {
                        through.await?;
                    }
                    tap.0.died.notify_one();
                    std::future::pending().await
                }
                _ => through.await,
            }
        })
    }
}

fn refusal(json: bool) -> aws_smithy_runtime_api::client::orchestrator::HttpResponse {
    let message = "User is not authorized to perform this action with an explicit deny in an identity-based policy";
    let body = match json {
        true => format!(r#"{{"__type":"AccessDeniedException","message":"{message}"}}"#),
        false => format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{message}</Message></Error>\
             <RequestId>r</RequestId></ErrorResponse>"
        ),
    };
    let status = StatusCode::try_from(400).expect("a status");
    aws_smithy_runtime_api::client::orchestrator::HttpResponse::new(status, SdkBody::from(body))
}
