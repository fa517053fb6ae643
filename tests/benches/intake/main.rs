//! `cargo xtask bench`: deliveries of webhooks, measured on this machine, judged by nobody.
//!
//! Deliveries of 8 KiB over 16 connections: accepted ones (verified, kept once; the rate until all are handled, too, where no
//! run is started), and rejected ones (a wrong signature), against the same HTTP server answering 200 to everything (the floor), and against `webhook`
//! of Debian (`apt-get install webhook`; left out where it is not there). That one is measured as it is (it answers, and
//! runs a command that does nothing meanwhile), and with a command that keeps each delivery once, on disk, before it is
//! answered. Blocks are interleaved (A B C C B A), so that a drift of the machine falls on all. `SLIPWAY_BENCH_BINARY`
//! names another build of `slipway`.
//!
//! Then pushes, one after the other, until the first step of their run begins; and polls of artifact triggers, counted.

mod load;
mod other;
mod payload;
mod polls;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use serde_json::{Value, json};
use slipway_cli::args::{Connection, Level};
use slipway_cli::client::{Body, Client};
use slipway_cli::commands::graph;
use slipway_tests::LocalProcess;
use slipway_tests::process::{cpu, places};

use load::{Block, load};
use other::Other;
use payload::push;

/// Rounds of blocks, each there and back.
const ROUNDS: usize = 3;

/// Deliveries of one block; `SLIPWAY_BENCH_DELIVERIES` says otherwise. A tenth of it are pushes that start a run.
fn deliveries() -> usize {
    let told = std::env::var("SLIPWAY_BENCH_DELIVERIES").ok();
    told.and_then(|number| number.parse().ok()).unwrap_or(2_000)
}

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const ENTITIES: &str = "secret:
  type: SecretText
  name: hook
  identifier: hook
  orgIdentifier: default
  projectIdentifier: default
  spec: {secretManagerIdentifier: harnessSecretManager, valueType: Inline, value: SECRET}
---
pipeline:
  name: release
  identifier: release
  orgIdentifier: default
  projectIdentifier: default
  stages:
    - stage:
        name: build
        identifier: build
        type: Custom
        spec:
          execution:
            steps:
              - step: {name: first, identifier: first, type: Wait, spec: {duration: 1s}}
---
trigger:
  name: never
  identifier: never
  orgIdentifier: default
  projectIdentifier: default
  pipelineIdentifier: release
  encryptedWebhookSecretIdentifier: hook
  source:
    type: Webhook
    spec:
      type: Github
      spec:
        type: Push
        spec:
          repoName: shop
          payloadConditions:
            - {key: targetBranch, operator: Equals, value: never}
---
trigger:
  name: pushed
  identifier: pushed
  orgIdentifier: default
  projectIdentifier: default
  pipelineIdentifier: release
  encryptedWebhookSecretIdentifier: hook
  source:
    type: Webhook
    spec:
      type: Github
      spec:
        type: Push
        spec:
          repoName: billing
";

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let binary = std::env::var_os("SLIPWAY_BENCH_BINARY").map(PathBuf::from);
    let binary = binary.unwrap_or_else(slipway_tests::binary);
    println!("intake ({})", binary.display());
    for (name, place) in places() {
        if place.is_dir() {
            let dir = tempfile::tempdir_in(&place)?;
            println!("\n{name} ({})", place.display());
            runtime.block_on(measure(&binary, dir.path()))?;
        }
    }
    polls::measure()
}

async fn measure(binary: &Path, dir: &Path) -> Result<(), Failure> {
    let local = LocalProcess::start_with(binary, &dir.join("data"), &[]);
    let client = client(&local, &dir.join("data"))?;
    apply(&client, &ENTITIES.replace("SECRET", payload::SECRET)).await?;
    let listed = local.json(&["trigger", "list", "--pipeline", "release", "-o", "json"]);
    let url = listed[0]["webhookUrl"].as_str().ok_or("a URL")?.to_owned();
    let slipway: SocketAddr = local.url().trim_start_matches("http://").parse()?;
    let path = url.strip_prefix(local.url()).ok_or("a URL of its own")?;
    let floor = floor().await?;
    let plain = Other::start(dir, false).await?;
    let keeping = Other::start(dir, true).await?;

    let mut lines: Vec<Line> = [
        ("floor: 200 to everything", floor, path, true, 200),
        ("slipway, accepted", slipway, path, true, 200),
        ("slipway, rejected", slipway, path, false, 401),
    ]
    .map(|(name, at, path, right, status)| Line::new(name, at, path, right, status))
    .into();
    for line in lines.iter_mut().filter(|line| line.at == slipway) {
        line.process = Some(local.pid());
    }
    if let (Some(plain), Some(keeping)) = (&plain, &keeping) {
        let path = other::PATH;
        // A wrong signature is an error to it.
        let others = [
            (
                "webhook, accepted, command does nothing",
                plain.at,
                path,
                true,
                200,
            ),
            (
                "webhook, accepted, kept once before it is answered",
                keeping.at,
                path,
                true,
                200,
            ),
            ("webhook, rejected", plain.at, path, false, 500),
        ];
        lines.extend(
            others.map(|(name, at, path, right, status)| Line::new(name, at, path, right, status)),
        );
    } else {
        println!("  webhook is not there (apt-get install webhook): left out");
    }
    for _ in 0..ROUNDS {
        for line in &mut lines {
            line.block().await?;
        }
        for line in lines.iter_mut().rev() {
            line.block().await?;
        }
    }
    println!(
        "  {:<52} {:>9} {:>9} {:>9} {:>9}",
        "8 KiB, 16 connections", "per s", "p50 ms", "p99 ms", "of floor"
    );
    let of_floor = lines[0].rate();
    for line in &mut lines {
        println!(
            "  {:<52} {:>9.0} {:>9.2} {:>9.2} {:>9.3}",
            line.name,
            line.rate(),
            line.quantile(0.50),
            line.quantile(0.99),
            line.rate() / of_floor
        );
    }
    for line in lines.iter().filter(|line| !line.handled.is_empty()) {
        let of = |number: usize| median(line.handled.iter().map(|block| block[number]).collect());
        println!(
            "  {}: {:.0}/s until all are handled; processor for each {:.2} ms until it is answered, {:.2} ms until it is handled",
            line.name,
            of(0),
            of(1),
            of(2)
        );
    }
    first_steps(&client, slipway, path).await?;
    Ok(())
}

/// When a process began to rest.
async fn idle(pid: u32) -> Result<Instant, Failure> {
    let mut rests = (Instant::now(), cpu(pid)?);
    while rests.0.elapsed() < Duration::from_millis(300) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let used = cpu(pid)?;
        // A tick of the clock is what a process uses that rests.
        if used - rests.1 > 0.011 {
            rests = (Instant::now(), used);
        }
    }
    Ok(rests.0)
}

/// One line of the table.
struct Line {
    name: &'static str,
    at: SocketAddr,
    path: String,
    right: bool,
    status: u16,
    blocks: Vec<Block>,
    /// Slipway's, which goes on after its answers.
    process: Option<u32>,
    /// Deliveries per second until all of a block were handled, and the processor's time for each, in milliseconds, until
    /// it was answered and until it was handled.
    handled: Vec<[f64; 3]>,
}

impl Line {
    fn new(name: &'static str, at: SocketAddr, path: &str, right: bool, status: u16) -> Self {
        let path = path.to_owned();
        Self {
            name,
            at,
            path,
            right,
            status,
            blocks: Vec::new(),
            process: None,
            handled: Vec::new(),
        }
    }

    async fn block(&mut self) -> Result<(), Failure> {
        let requests = (0..deliveries()).map(|_| push("shop", self.right).request(&self.path));
        let Some(pid) = self.process else {
            self.blocks
                .push(load(self.at, requests.collect(), self.status).await?);
            return Ok(());
        };
        let requests: Vec<_> = requests.collect();
        let (used, began) = (cpu(pid)?, Instant::now());
        let block = load(self.at, requests, self.status).await?;
        let (count, answered) = (block.times.len() as f64, cpu(pid)?);
        self.blocks.push(block);
        // What was accepted is handled before others are measured.
        let ended = idle(pid).await?;
        let all = cpu(pid)?;
        let per_second = count / ended.duration_since(began).as_secs_f64();
        let each = |spent: f64| (spent - used) * 1_000.0 / count;
        self.handled.push([per_second, each(answered), each(all)]);
        Ok(())
    }

    /// Median of the blocks.
    fn rate(&self) -> f64 {
        median(self.blocks.iter().map(|block| block.per_second).collect())
    }

    fn quantile(&self, part: f64) -> f64 {
        quantile(
            self.blocks
                .iter()
                .flat_map(|block| block.times.iter().copied())
                .collect(),
            part,
        )
    }
}

/// The server that Slipway is built on, answering at once.
async fn floor() -> Result<SocketAddr, Failure> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let at = listener.local_addr()?;
    let app = Router::new().fallback(|_: axum::body::Bytes| async { "{}" });
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(at)
}

/// Pushes, one after the other: from the first byte that is sent to the begin of the first step, by the clock of this
/// machine, which steps note in milliseconds.
async fn first_steps(client: &Client, at: SocketAddr, path: &str) -> Result<(), Failure> {
    let mut samples = Vec::new();
    let pushes = deliveries().div_ceil(10);
    for number in 1..=pushes {
        let request = push("billing", true).request(path);
        let sent = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        load(at, vec![request], 200).await?;
        let begun = first_step(client, number).await?;
        samples.push(begun as f64 - sent.as_secs_f64() * 1_000.0);
    }
    println!(
        "  push to first step, {pushes} one after the other: p50 {:.1} ms, p99 {:.1} ms",
        quantile(samples.clone(), 0.50),
        quantile(samples, 0.99)
    );
    Ok(())
}

/// When the first step of the run of this number began.
async fn first_step(client: &Client, number: usize) -> Result<i64, Failure> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        let query = [
            ("pipelineIdentifier", "release"),
            ("page", "0"),
            ("size", "1"),
        ];
        let path = "/pipeline/api/pipelines/execution/summary";
        let body = Body::Json(json!({"filterType": "PipelineExecution"}));
        let listed = client
            .call(reqwest::Method::POST, path, &query, body)
            .await?;
        let newest = &listed["data"]["content"][0];
        if newest["runSequence"] == json!(number)
            && let Some(id) = newest["planExecutionId"].as_str()
        {
            let run = graph::fetch(client, id).await?;
            let step = run.nodes.iter().find(|node| node.identifier == "first");
            if let Some(begun) = step.and_then(|step| step.started)
                && run.status == "Success"
            {
                return Ok(begun);
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Err(format!("push {number} started no run").into())
}

fn client(local: &LocalProcess, data_dir: &Path) -> Result<Client, Failure> {
    Ok(Client::new(&Connection {
        url: local.url().to_owned(),
        token: None,
        org: "default".to_owned(),
        project: "default".to_owned(),
        level: Level::Project,
        data_dir: data_dir.to_path_buf(),
    })?)
}

async fn apply(client: &Client, yaml: &str) -> Result<(), Failure> {
    let body = Body::Json(json!({ "files": [{ "file": "bench.yaml", "yaml": yaml }] }));
    let answer = client
        .call(reqwest::Method::POST, "/slipway/api/apply", &[], body)
        .await?;
    let all = answer["data"].as_array().into_iter().flatten();
    match all
        .into_iter()
        .find(|one: &&Value| one["result"] == "refused")
    {
        Some(refused) => Err(refused.to_string().into()),
        None => Ok(()),
    }
}

fn median(samples: Vec<f64>) -> f64 {
    quantile(samples, 0.5)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a place in a list of samples"
)]
fn quantile(mut samples: Vec<f64>, part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let at = (samples.len() as f64 * part) as usize;
    samples
        .get(at.min(samples.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}
