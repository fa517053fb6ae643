//! `cargo xtask bench`: runs that wait for an approval, many at once, in one `slipway local`. `SLIPWAY_BENCH_WAITING`
//! says how many (10,000); the aim of the design is 100,000, started at 1,000 per second (accepted: what is recorded and
//! goes on whatever happens; what they do then follows as fast as the machine can), at most 4 KiB of resident
//! memory each, no work while they wait, and an answer that is acted on within 50 ms.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_cli::args::{Connection, Level};
use slipway_cli::client::{Body, Client};
use slipway_cli::commands::graph;
use slipway_tests::LocalProcess;
use slipway_tests::process::{cpu, resident};

/// Requests under way at once.
const AT_ONCE: usize = 64;
/// Approvals that are answered one by one.
const ANSWERED: usize = 25;
/// Refused requests, one after the other, that the floor is made of.
const REFUSED: usize = 200;
/// Time between two questions about a run that is to begin, and about one that is to end.
const SELDOM: Duration = Duration::from_millis(50);
const OFTEN: Duration = Duration::from_millis(1);
/// How long the process is watched while all runs wait.
const WATCHED: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let many = std::env::var("SLIPWAY_BENCH_WAITING").ok();
    let many: usize = many.and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let memory = Path::new("/dev/shm");
    let dir = match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    };
    let binary = match std::env::var_os("SLIPWAY_BENCH_BINARY") {
        Some(path) => path.into(),
        None => slipway_tests::binary(),
    };
    let local = LocalProcess::start_with(&binary, dir.path(), &[]);
    tokio::runtime::Runtime::new()?.block_on(measure(&local, dir.path(), many))
}

async fn measure(local: &LocalProcess, dir: &Path, many: usize) -> Result<(), Failure> {
    let client = Client::new(&Connection {
        url: local.url().to_owned(),
        token: None,
        org: "default".to_owned(),
        project: "default".to_owned(),
        level: Level::Project,
        data_dir: dir.to_path_buf(),
    })?;
    let files = json!({"files": [{"file": "bench.yaml", "yaml": pipeline()}]});
    let path = "/slipway/api/apply";
    client
        .call(reqwest::Method::POST, path, &[], Body::Json(files))
        .await?;
    let pid = local.pid();
    // The floor: the same request, refused before it does anything.
    let (spent, began) = (cpu(pid)?, Instant::now());
    refused(&client).await?;
    let floor = Spent::since(pid, spent, began, REFUSED)?;
    let before = resident(pid)?;

    let (spent, began) = (cpu(pid)?, Instant::now());
    let mut runs = start(&client, many).await?;
    let accepted = Spent::since(pid, spent, began, many)?;
    let (waited, used) = all_wait(&client, &mut runs, pid).await?;
    let waiting = Spent::of(used - spent, waited.duration_since(began), many);
    println!("{many} runs that wait for an approval");
    println!("  refused, the floor       {floor}");
    println!("  accepted                 {accepted}");
    println!("  all waiting              {waiting}");
    let floor = floor.seconds;
    let memory = (resident(local.pid())? - before) * 1_024.0 / many as f64;
    println!("  resident memory each     {memory:9.1} KiB");

    let (used, watched) = (cpu(local.pid())?, Instant::now());
    tokio::time::sleep(WATCHED).await;
    let spent = cpu(local.pid())? - used;
    let share = 100.0 * spent / watched.elapsed().as_secs_f64();
    println!("  processor while waiting  {share:9.2} %");

    let mut answers = Vec::new();
    for run in runs.iter().step_by((many / ANSWERED).max(1)).take(ANSWERED) {
        let began = Instant::now();
        approve(&client, run).await?;
        wait_for(&client, run, "Success", OFTEN).await?;
        answers.push(began.elapsed().as_secs_f64());
    }
    answers.sort_by(f64::total_cmp);
    let median = answers.get(answers.len() / 2).copied().unwrap_or(f64::NAN);
    println!(
        "  answer to end of the run {:9.1} ms      {:5.1} x floor",
        median * 1_000.0,
        median / floor
    );
    Ok(())
}

/// What one of many requests took.
struct Spent {
    /// By the clock.
    seconds: f64,
    /// Of processors, in the process that answers.
    processor: f64,
}

impl Spent {
    fn since(pid: u32, spent: f64, began: Instant, requests: usize) -> Result<Self, Failure> {
        Ok(Self::of(cpu(pid)? - spent, began.elapsed(), requests))
    }

    fn of(processor: f64, time: Duration, requests: usize) -> Self {
        Self {
            seconds: time.as_secs_f64() / requests as f64,
            processor: processor / requests as f64,
        }
    }
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rate, processor) = (1.0 / self.seconds, self.processor * 1_000.0);
        write!(f, "{rate:9.0} /s  {processor:7.2} ms of processor each")
    }
}

fn pipeline() -> String {
    let step = json!({"step": {
        "name": "ask", "identifier": "ask", "type": "HarnessApproval", "timeout": "1d",
        "spec": {
            "approvalMessage": "go on?",
            "includePipelineExecutionHistory": false,
            "approvers": {"minimumCount": 1, "disallowPipelineExecutor": false, "userGroups": ["_project_all_users"]},
            "approverInputs": [],
        },
    }});
    let stage = json!({"stage": {
        "name": "gate", "identifier": "gate", "type": "Approval",
        "spec": {"execution": {"steps": [step]}},
    }});
    json!({"pipeline": {
        "name": "waits", "identifier": "waits",
        "orgIdentifier": "default", "projectIdentifier": "default",
        "stages": [stage],
    }})
    .to_string()
}

/// Requests that are refused.
async fn refused(client: &Client) -> Result<(), Failure> {
    let path = "/pipeline/api/pipeline/execute/nothing";
    for _ in 0..REFUSED {
        let answer = client
            .call(reqwest::Method::POST, path, &[], Body::Empty)
            .await;
        if answer.is_ok() {
            return Err("a pipeline that is not there was started".into());
        }
    }
    Ok(())
}

async fn start(client: &Client, many: usize) -> Result<Vec<String>, Failure> {
    let each = many.div_ceil(AT_ONCE);
    let workers = (0..AT_ONCE).map(|worker| {
        let client = client.clone();
        let count = each.min(many.saturating_sub(worker * each));
        tokio::spawn(async move {
            let mut ids = Vec::with_capacity(count);
            for _ in 0..count {
                ids.push(start_one(&client).await?);
            }
            Ok::<_, Failure>(ids)
        })
    });
    let mut runs = Vec::with_capacity(many);
    for worker in workers.collect::<Vec<_>>() {
        runs.extend(worker.await??);
    }
    Ok(runs)
}

async fn start_one(client: &Client) -> Result<String, Failure> {
    let path = "/pipeline/api/pipeline/execute/waits";
    let answer = client
        .call(reqwest::Method::POST, path, &[], Body::Empty)
        .await?;
    let id = answer
        .pointer("/data/planExecution/uuid")
        .and_then(Value::as_str);
    Ok(id.ok_or("a run id")?.to_owned())
}

/// Waits until all runs wait; gives that moment, which is between two looks, and the processor's time until then. Runs begin
/// in the order of their start, which is that of their ids: the last ones are asked, and seldom, because whoever asks
/// keeps runs from beginning.
async fn all_wait(
    client: &Client,
    runs: &mut [String],
    pid: u32,
) -> Result<(Instant, f64), Failure> {
    runs.sort_unstable();
    let (first, last) = runs.split_at(runs.len().saturating_sub(AT_ONCE));
    for run in last.iter().rev() {
        wait_for(client, run, "ApprovalWaiting", SELDOM).await?;
    }
    let mut waited = (Instant::now(), cpu(pid)?);
    for run in first {
        if wait_for(client, run, "ApprovalWaiting", SELDOM).await? {
            waited = (Instant::now(), cpu(pid)?);
        }
    }
    Ok(waited)
}

/// Waits until a run has a status; whether it had another at first.
async fn wait_for(
    client: &Client,
    run: &str,
    wanted: &str,
    pause: Duration,
) -> Result<bool, Failure> {
    let mut waited = false;
    loop {
        let seen = graph::fetch(client, run).await?;
        match seen.status.as_str() {
            status if status == wanted => return Ok(waited),
            "Failed" | "Errored" | "Aborted" | "Expired" => {
                return Err(format!("run {run} ended {}: {:?}", seen.status, seen.failure).into());
            }
            _ => tokio::time::sleep(pause).await,
        }
        waited = true;
    }
}

async fn approve(client: &Client, run: &str) -> Result<(), Failure> {
    let path = format!(
        "/pipeline/api/approvals/{run}.stages.gate.spec.execution.steps.ask.0/harness/activity"
    );
    let body = Body::Json(json!({"action": "APPROVE", "comments": "", "approverInputs": []}));
    client.call(reqwest::Method::POST, &path, &[], body).await?;
    Ok(())
}
