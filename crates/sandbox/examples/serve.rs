//! Serves a sandbox account on a loopback port, for trying it with other clients:
//!
//! ```text
//! cargo run -p slipway-sandbox --example serve -- 4510 [account.redb]
//! aws ecs create-cluster --cluster-name demo --endpoint-url http://127.0.0.1:4510
//! ```

use std::path::PathBuf;

use slipway_clock::Clock;
use slipway_sandbox::{Pace, Sandbox, SandboxConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().as_deref().unwrap_or("4510").parse()?;
    let file = arguments.next().map(PathBuf::from);
    let config = SandboxConfig {
        clock: Clock::system(),
        region: "us-east-1".to_owned(),
        account: "123456789012".to_owned(),
        pace: Pace::brisk(),
    };
    let sandbox = Sandbox::open(file.as_deref(), config)?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let served = axum::serve(listener, sandbox.router());
    tokio::select! {
        result = served.into_future() => result?,
        () = sandbox.run() => {}
    }
    Ok(())
}
