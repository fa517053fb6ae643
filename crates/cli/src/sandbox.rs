//! `slipway sandbox`: the sandbox account as a process of its own, for the `aws` CLI, SDKs and tests of other tools.
//!
//! What is signed for S3, DynamoDB or Secrets Manager goes to the embedded store, so that functions find their packages.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::{Router, serve};
use slipway_clock::Clock;
use slipway_sandbox::{Pace, Sandbox, SandboxConfig};
use slipway_store::Layout;
use slipway_store::embedded::Embedded;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::args::{PaceArg, SandboxArgs};
use crate::exit::Exit;
use crate::local::documents::HttpDocuments;
use crate::local::objects::EmbeddedObjects;
use crate::local::port::{local, signed_for};
use crate::local::{data_dir::DataDir, interrupted, place};

/// Serves the account until Ctrl-C or SIGTERM. Without a folder it lives in memory.
///
/// # Errors
/// When the folder or the port cannot be had.
pub async fn serve_account(clock: &Clock, args: &SandboxArgs) -> anyhow::Result<Exit> {
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("listening on {}: is another service there?", args.listen))?;
    let address = listener.local_addr().context("asking for the port")?;
    // Held until the end: a second process on the folder is refused.
    let folder = args.folder.as_deref().map(DataDir::open).transpose()?;
    let store = match &folder {
        Some(folder) => Embedded::open(&folder.join("store"))?,
        None => Embedded::temporary()?,
    };
    let file = folder.as_ref().map(|folder| folder.join("sandbox.redb"));
    let account = account(clock, args, file.as_deref())?;
    account.read_objects_from(Arc::new(EmbeddedObjects {
        client: store.s3(),
        own_bucket: Layout::local().bucket,
    }));
    account.read_documents_with(Arc::new(HttpDocuments));
    // Removed at the end, where the account lives in memory.
    let temporary = tempfile::tempdir().context("making a folder for functions")?;
    let code = match &folder {
        Some(folder) => folder.join("functions"),
        None => temporary.path().join("functions"),
    };
    account
        .run_functions_in(&code)
        .with_context(|| format!("emptying the folder {}", code.display()))?;
    let router = router(account.router(), store.router(), address.ip().is_loopback());
    let stop = CancellationToken::new();
    let moves = tokio::spawn({
        let (account, stop) = (account.clone(), stop.clone());
        stop.run_until_cancelled_owned(async move { account.run().await })
    });
    crate::output::line(&format!("listening on http://{address}"))?;
    anstream::eprintln!(
        "what exists: http://{address}/ · aws --endpoint-url http://{address} --region {} … (`aws s3` wants the key pair slipway / \
         slipway-local, the rest takes any)",
        args.region
    );
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let served = serve(listener, service).with_graceful_shutdown(stop.clone().cancelled_owned());
    let served = tokio::spawn(served.into_future());
    interrupted().await?;
    stop.cancel();
    served.await?.context("serving the port")?;
    moves.await?;
    Ok(Exit::Succeeded)
}

fn account(clock: &Clock, args: &SandboxArgs, file: Option<&Path>) -> anyhow::Result<Sandbox> {
    let config = SandboxConfig {
        clock: clock.clone(),
        region: args.region.clone(),
        account: place::AWS_ACCOUNT.to_owned(),
        pace: match args.pace {
            PaceArg::Brisk => Pace::brisk(),
            PaceArg::Realistic => Pace::realistic(),
        },
    };
    Ok(Sandbox::open(file, config)?)
}

/// The account, and beside it what it reads from.
fn router(account: Router, store: Router, loopback: bool) -> Router {
    Router::new().fallback(move |request: Request| {
        let target = match signed_for(request.headers()).as_deref() {
            Some("dynamodb" | "s3" | "secretsmanager") => store.clone(),
            _ => account.clone(),
        };
        async move {
            if !loopback || !local(&request) {
                let why =
                    "the sandbox is answered on loopback addresses only: it verifies no signatures";
                return (StatusCode::FORBIDDEN, why).into_response();
            }
            target.oneshot(request).await.into_response()
        }
    })
}
