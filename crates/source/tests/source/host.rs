//! A Git host in this process: `git upload-pack` behind HTTP, and logins as hosts ask for them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;

#[derive(Clone)]
pub struct Host {
    folder: PathBuf,
    /// What `authorization` must be; anything where it is `None`.
    authorization: Option<String>,
    packs: Arc<AtomicUsize>,
    address: SocketAddr,
}

impl Host {
    /// Serves the repository in `folder` at `/acme/shop`.
    pub async fn start(folder: PathBuf, authorization: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = Self {
            folder,
            authorization,
            packs: Arc::default(),
            address: listener.local_addr().expect("an address"),
        };
        let router = host.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        host
    }

    /// What it answers, to be served beside something else.
    pub fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Packs and lists of references that were asked for.
    pub fn posts(&self) -> usize {
        self.packs.load(Ordering::SeqCst)
    }

    async fn serve(&self, service: &str, more: &[&str], protocol: &str, body: Bytes) -> Vec<u8> {
        let mut child = Command::new("git")
            .args([service.trim_start_matches("git-"), "--stateless-rpc"])
            .args(more)
            .arg(&self.folder)
            .env("GIT_PROTOCOL", protocol)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        tokio::spawn(async move { stdin.write_all(&body).await });
        child.wait_with_output().await.expect("it ends").stdout
    }
}

async fn answer(State(host): State<Host>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let given = text(&head.headers, header::AUTHORIZATION.as_str());
    if host
        .authorization
        .as_ref()
        .is_some_and(|wanted| *wanted != given)
    {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")];
        return (StatusCode::UNAUTHORIZED, challenge, "who are you?").into_response();
    }
    let protocol = text(&head.headers, "git-protocol");
    match head.uri.path() {
        // As GitLab names it.
        "/acme/short/info/refs" => {
            let query = head.uri.query().unwrap_or_default();
            let place = format!("/acme/shop/info/refs?{query}");
            (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, place)]).into_response()
        }
        "/acme/shop/info/refs" => {
            let query = head.uri.query().unwrap_or_default();
            let service = query.trim_start_matches("service=");
            let refs = host.serve(service, &["--advertise-refs"], &protocol, Bytes::new());
            let first = format!("# service={service}\n");
            let mut body = format!("{:04x}{first}0000", first.len() + 4).into_bytes();
            body.extend(refs.await);
            let kind = format!("application/x-{service}-advertisement");
            ([(header::CONTENT_TYPE, kind)], body).into_response()
        }
        "/acme/shop/git-receive-pack" => {
            let sent = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
            let told = host.serve("git-receive-pack", &[], &protocol, sent).await;
            let kind = "application/x-git-receive-pack-result";
            ([(header::CONTENT_TYPE, kind)], told).into_response()
        }
        "/acme/shop/git-upload-pack" => {
            host.packs.fetch_add(1, Ordering::SeqCst);
            let asked = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
            let pack = host.serve("git-upload-pack", &[], &protocol, asked).await;
            let kind = "application/x-git-upload-pack-result";
            ([(header::CONTENT_TYPE, kind)], pack).into_response()
        }
        "/forbidden/info/refs" => StatusCode::FORBIDDEN.into_response(),
        "/silent/info/refs" => std::future::pending().await,
        "/endless/info/refs" => {
            let chunks = futures::stream::repeat_with(|| {
                Ok::<_, std::convert::Infallible>(Bytes::from_static(&[b'0'; 4096]))
            });
            let kind = "application/x-git-upload-pack-advertisement";
            ([(header::CONTENT_TYPE, kind)], Body::from_stream(chunks)).into_response()
        }
        "/page/info/refs" => "<html>sign in</html>".into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
