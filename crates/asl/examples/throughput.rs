//! What durable orchestration costs: time per Lambda task, alone and with 64 executions at once, bytes
//! and commits per execution, and the time to open the file again after a kill.
//!
//! ```text
//! cargo run --release -p slipway-asl --example throughput -- /dev/shm 5
//! ```
//!
//! The first argument is the folder of the journal, the second how many interleaved rounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use slipway_asl::{Engine, EngineConfig, Lambda, LambdaError};
use slipway_clock::Clock;
use tower::ServiceExt as _;

/// Lambda tasks in a chain.
const TASKS: usize = 50;
/// Executions at once.
const CROWD: usize = 64;

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
    let folder: PathBuf = arguments.next().context("give a folder")?.into();
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let path = folder.join("throughput.db");
    let _ = std::fs::remove_file(&path);
    let (mut alone, mut crowd, mut probes) = (Vec::new(), Vec::new(), Vec::new());
    let mut service = open(&path)?;
    let long = service.create("long", TASKS).await?;
    let none = service.create("none", 0).await?;
    for round in 0..rounds {
        probes.push(fsync_probe(&folder)?);
        let chain = service.time(&long, &format!("a{round}"), 1).await?;
        let empty = service.time(&none, &format!("b{round}"), 1).await?;
        alone.push((chain.saturating_sub(empty)) / u32::try_from(TASKS)?);
        let all = service.time(&long, &format!("c{round}"), CROWD).await?;
        crowd.push(all / u32::try_from(TASKS * CROWD)?);
    }
    println!("fsync probe           {:?}", median(&mut probes));
    println!("task, alone           {:?}", median(&mut alone));
    println!("task, {CROWD} at once     {:?}", median(&mut crowd));
    println!("counters              {:?}", service.engine.counters());
    println!(
        "file                  {} KiB",
        std::fs::metadata(&path)?.len() / 1024
    );
    service.engine.shutdown().await;
    let started = Instant::now();
    service = open(&path)?;
    println!("opened after close    {:?}", started.elapsed());
    for round in 0..10_000 / 64 {
        service.time(&none, &format!("many{round}"), 64).await?;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!("resident after 10,000 {} KiB", resident_kib()?);
    println!(
        "file after 10,000     {} KiB",
        std::fs::metadata(&path)?.len() / 1024
    );
    // A copy of the open file is what a kill leaves behind.
    let copy = folder.join("throughput-killed.db");
    for suffix in ["", "-wal"] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        std::fs::copy(with(&path), with(&copy))?;
    }
    let started = Instant::now();
    drop(open(&copy)?);
    println!("opened after kill     {:?}", started.elapsed());
    std::fs::remove_file(copy)?;
    std::fs::remove_file(path)?;
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn fsync_probe(folder: &Path) -> anyhow::Result<Duration> {
    use std::io::Write as _;
    let path = folder.join("throughput.probe");
    let mut file = std::fs::File::create(&path)?;
    let started = Instant::now();
    for _ in 0..20 {
        file.write_all(&[1; 4096])?;
        file.sync_data()?;
    }
    std::fs::remove_file(path)?;
    Ok(started.elapsed() / 20)
}

fn resident_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .context("no VmRSS")?;
    Ok(line
        .split_whitespace()
        .nth(1)
        .context("no number")?
        .parse()?)
}

struct Service {
    engine: Engine,
}

fn open(path: &Path) -> anyhow::Result<Service> {
    let config = EngineConfig {
        clock: Clock::system(),
        region: "us-east-1".to_owned(),
        account: "000000000000".to_owned(),
        begin_at_once: None,
    };
    let engine = Engine::open(path, config, Arc::new(Echo))?;
    engine.resume();
    Ok(Service { engine })
}

impl Service {
    async fn call(&self, operation: &str, request: Value) -> anyhow::Result<Value> {
        let request = Request::post("/")
            .header("x-amz-target", format!("AWSStepFunctions.{operation}"))
            .body(Body::from(request.to_string()))?;
        let Ok(response) = self.engine.router().oneshot(request).await;
        let is_ok = response.status().is_success();
        let body = to_bytes(response.into_body(), usize::MAX).await?;
        let value: Value = serde_json::from_slice(&body)?;
        if is_ok {
            Ok(value)
        } else {
            Err(anyhow!("{operation}: {value}"))
        }
    }

    /// A machine of `tasks` Lambda tasks in a chain.
    async fn create(&self, name: &str, tasks: usize) -> anyhow::Result<String> {
        let mut states = json!({"End": {"Type": "Succeed"}});
        for i in 0..tasks {
            let next = if i + 1 < tasks {
                format!("T{}", i + 1)
            } else {
                "End".to_owned()
            };
            states[format!("T{i}")] = json!({
                "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Next": next,
                "Arguments": {"FunctionName": "echo", "Payload": {"runId": "{% $states.input.runId %}"}},
                "Output": "{% $states.result.Payload %}", "TimeoutSeconds": 60,
                "Retry": [{"ErrorEquals": ["Lambda.ServiceException"]}],
            });
        }
        let start = if tasks == 0 { "End" } else { "T0" };
        let definition = json!({"QueryLanguage": "JSONata", "StartAt": start, "States": states});
        let created = self
            .call(
                "CreateStateMachine",
                json!({"name": name,
            "definition": definition.to_string(), "roleArn": "arn:aws:iam::000000000000:role/x"}),
            )
            .await?;
        Ok(created["stateMachineArn"]
            .as_str()
            .context("no ARN")?
            .to_owned())
    }

    /// Runs `count` executions at once; gives the time until all have ended.
    async fn time(&self, machine: &str, prefix: &str, count: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        for i in 0..count {
            self.call(
                "StartExecution",
                json!({"stateMachineArn": machine,
                "name": format!("{prefix}-{i}"), "input": "{\"runId\":\"0123456789\"}"}),
            )
            .await?;
        }
        while self.engine.counters().open > 0 {
            tokio::time::sleep(Duration::from_micros(50)).await;
        }
        Ok(started.elapsed())
    }
}
