//! Serves an engine on a port, with a Lambda that echoes: for trying `aws stepfunctions --endpoint-url`.
//!
//! ```text
//! cargo run -p slipway-asl --example step_functions -- 127.0.0.1:8083 journal.db
//! ```

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use serde_json::Value;
use slipway_asl::{Engine, EngineConfig, Lambda, LambdaError};
use slipway_clock::Clock;

struct Echo;

#[async_trait]
impl Lambda for Echo {
    async fn invoke(&self, _: &str, payload: Value) -> Result<Value, LambdaError> {
        Ok(payload)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().context("give an address to listen on")?;
    let path = arguments.next().context("give a file for the journal")?;
    let config = EngineConfig {
        clock: Clock::system(),
        region: "us-east-1".to_owned(),
        account: "000000000000".to_owned(),
        begin_at_once: None,
    };
    let engine = Engine::open(Path::new(&path), config, Arc::new(Echo))?;
    engine.resume();
    let listener = tokio::net::TcpListener::bind(&address).await?;
    axum::serve(listener, engine.router()).await?;
    Ok(())
}
