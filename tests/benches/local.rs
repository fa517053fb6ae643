//! `cargo xtask bench`: what local mode costs, measured on this machine, judged by nobody.
//!
//! Blocks are interleaved (A B B A) so that a drift of the machine falls on both; every block begins with an
//! fsync probe of the same folder, the floor that durable work cannot go below. Medians are printed, and
//! ratios against the floor of the same run.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_cli::args::{LocalArgs, PaceArg, Target};
use slipway_cli::client::{Body, Client};
use slipway_cli::commands::graph;
use slipway_cli::local::{self, Options, Running};
use slipway_clock::Clock;
use slipway_tests::process::{places, resident};

/// Runs of one pipeline in one block.
const RUNS: usize = 40;
/// Pairs of blocks, A B B A each.
const BLOCKS: usize = 5;
/// Runs at once in the throughput part.
const AT_ONCE: usize = 64;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let many: usize = std::env::var("SLIPWAY_BENCH_RUNS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10_000);
    for (name, place) in places() {
        if !place.is_dir() {
            println!("{name}: {} is not there, left out", place.display());
            continue;
        }
        let dir = tempfile::tempdir_in(&place)?;
        println!("\n{name} ({})", place.display());
        runtime.block_on(measure(dir.path()))?;
    }
    processes(many)?;
    Ok(())
}

/// Everything that is measured inside one process.
async fn measure(dir: &Path) -> Result<(), Failure> {
    let running = start(&dir.join("data")).await?;
    let client = client(&running, dir)?;
    let pipelines = [("none", 0), ("ten", 10)];
    for (name, steps) in pipelines {
        apply(&client, &pipeline(name, steps)).await?;
    }
    let (mut floor, mut none, mut ten) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        for name in ["none", "ten", "ten", "none"] {
            floor.push(fsync(dir)?);
            let samples = if name == "ten" { &mut ten } else { &mut none };
            for _ in 0..RUNS {
                samples.push(run(&client, name).await?);
            }
        }
    }
    let (floor, none, ten) = (median(floor), median(none), median(ten));
    let step = (ten - none) / 10.0;
    println!("  fsync floor                      {floor:9.3} ms");
    println!(
        "  run without steps                {none:9.3} ms  {:7.1} x floor",
        none / floor
    );
    println!(
        "  run of 10 no-op steps            {ten:9.3} ms  {:7.1} x floor",
        ten / floor
    );
    println!(
        "  durable overhead per step        {step:9.3} ms  {:7.1} x floor",
        step / floor
    );
    counted(&running, &client).await?;
    throughput(&client).await?;
    running.stop().await?;
    Ok(())
}

/// Transitions and store writes of one run: counted, not timed.
async fn counted(running: &Running, client: &Client) -> Result<(), Failure> {
    for name in ["none", "ten"] {
        let before = running.counters();
        run(client, name).await?;
        let after = running.counters();
        println!(
            "  one run of {name:<5} transitions {}, store writes {}, store reads {}",
            after.transitions - before.transitions,
            after.writes - before.writes,
            after.reads - before.reads,
        );
    }
    Ok(())
}

async fn throughput(client: &Client) -> Result<(), Failure> {
    let began = Instant::now();
    let runs = (0..AT_ONCE).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { run(&client, "ten").await.map_err(|why| why.to_string()) })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await??;
    }
    let seconds = began.elapsed().as_secs_f64();
    let steps = (AT_ONCE * 10) as f64;
    println!(
        "  {AT_ONCE} runs at once                  {:9.0} steps/s",
        steps / seconds
    );
    Ok(())
}

/// Start-up, memory and size of the binary itself.
fn processes(many: usize) -> Result<(), Failure> {
    let binary = slipway_tests::binary();
    println!("\nprocess ({})", binary.display());
    let dir = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() {
        "/dev/shm"
    } else {
        "."
    })?;
    let mut starts = Vec::new();
    for _ in 0..9 {
        let began = Instant::now();
        let local = slipway_tests::LocalProcess::start_with(&binary, dir.path(), &[]);
        std::net::TcpStream::connect(local.url().trim_start_matches("http://"))?;
        starts.push(milliseconds(began.elapsed()));
        local.kill();
    }
    println!(
        "  start to first accepted request  {:9.1} ms",
        median(starts)
    );
    let local = slipway_tests::LocalProcess::start_with(&binary, dir.path(), &[]);
    println!(
        "  resident memory, idle            {:9.1} MiB",
        resident(local.pid())?
    );
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(fill(&local, dir.path(), many))?;
    println!(
        "  resident memory, {many:6} runs     {:9.1} MiB",
        resident(local.pid())?
    );
    sizes(&binary)?;
    Ok(())
}

async fn fill(local: &slipway_tests::LocalProcess, dir: &Path, many: usize) -> Result<(), Failure> {
    let client = Client::new(&slipway_cli::args::Connection {
        url: local.url().to_owned(),
        token: None,
        org: "default".to_owned(),
        project: "default".to_owned(),
        level: slipway_cli::args::Level::Project,
        data_dir: dir.to_path_buf(),
    })?;
    apply(&client, &pipeline("ten", 10)).await?;
    let mut left = many;
    while left > 0 {
        let batch = left.min(AT_ONCE);
        let runs = (0..batch).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { run(&client, "ten").await.map_err(|why| why.to_string()) })
        });
        for run in runs.collect::<Vec<_>>() {
            run.await??;
        }
        left -= batch;
    }
    Ok(())
}

fn sizes(binary: &Path) -> Result<(), Failure> {
    let folder = binary.parent().ok_or("a folder")?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let wanted = name == "slipway" || name.starts_with("slipway-fn-");
        if wanted && !name.contains('.') {
            let mib = entry.metadata()?.len() as f64 / 1_048_576.0;
            println!("  size of {name:<24} {mib:9.1} MiB");
        }
    }
    Ok(())
}

async fn start(data_dir: &Path) -> Result<Running, Failure> {
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    Ok(local::start(Options {
        data_dir: data_dir.to_path_buf(),
        clock: Clock::system(),
        local: LocalArgs {
            listen,
            target: Target::Sandbox,
            pace: PaceArg::Brisk,
            delegate_tasks: 0,
            delegate_tags: Vec::new(),
        },
    })
    .await?)
}

fn client(running: &Running, dir: &Path) -> Result<Client, Failure> {
    Ok(Client::new(&slipway_cli::args::Connection {
        url: running.url().to_owned(),
        token: Some(running.token().to_owned()),
        org: "default".to_owned(),
        project: "default".to_owned(),
        level: slipway_cli::args::Level::Project,
        data_dir: dir.to_path_buf(),
    })?)
}

/// A Custom stage of so many steps that do nothing: waits of no time.
fn pipeline(name: &str, steps: usize) -> String {
    let step = |n| {
        json!({ "step": {
            "name": format!("step {n}"), "identifier": format!("step_{n}"), "type": "Wait",
            "spec": { "duration": "<+pipeline.variables.pause>" },
        }})
    };
    let steps: Vec<Value> = (0..steps).map(step).collect();
    let stage = json!({ "stage": {
        "name": "work", "identifier": "work", "type": "Custom",
        "spec": { "execution": { "steps": steps } },
    }});
    json!({ "pipeline": {
        "name": name, "identifier": name,
        "orgIdentifier": "default", "projectIdentifier": "default",
        "variables": [{ "name": "pause", "type": "String", "value": "0s" }],
        "stages": [stage],
    }})
    .to_string()
}

async fn apply(client: &Client, yaml: &str) -> Result<(), Failure> {
    let body = Body::Json(json!({ "files": [{ "file": "bench.yaml", "yaml": yaml }] }));
    let answer = client
        .call(reqwest::Method::POST, "/slipway/api/apply", &[], body)
        .await?;
    if answer["data"][0]["result"] == "refused" {
        return Err(answer.to_string().into());
    }
    Ok(())
}

/// Starts a pipeline and looks until it has ended: milliseconds by the run's own record.
async fn run(client: &Client, pipeline: &str) -> Result<f64, Failure> {
    let began = Instant::now();
    let path = format!("/pipeline/api/pipeline/execute/{pipeline}");
    let answer = client
        .call(reqwest::Method::POST, &path, &[], Body::Empty)
        .await?;
    let id = answer
        .pointer("/data/planExecution/uuid")
        .and_then(Value::as_str)
        .ok_or("a run id")?;
    loop {
        let run = graph::fetch(client, id).await?;
        match run.status.as_str() {
            "Success" => return Ok(milliseconds(began.elapsed())),
            "Failed" | "Errored" | "Aborted" | "Expired" => {
                return Err(format!("run {id} ended {}: {:?}", run.status, run.failure).into());
            }
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

fn fsync(dir: &Path) -> Result<f64, Failure> {
    let mut file = File::create(dir.join("probe"))?;
    let mut samples = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        samples.push(milliseconds(began.elapsed()));
    }
    Ok(median(samples))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
