//! ministack, as a process that a test starts and ends, and the hands of the test in it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use slipway_tests::checkout;

/// Longest that it takes to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The account that the golden pipelines deploy to.
const ACCOUNT: &str = "123456789012";

/// A ministack that checks signatures and policies; killed when dropped.
pub(crate) struct Ministack {
    child: Child,
    url: String,
    _dir: tempfile::TempDir,
}

impl Ministack {
    /// Starts on a free port and waits until it is healthy.
    pub(crate) async fn start() -> Self {
        let program = program("SLIPWAY_MINISTACK");
        for _ in 0..3 {
            if let Some(started) = Self::on(free_port(), &program).await {
                return started;
            }
        }
        panic!("{} did not start", program.display());
    }

    async fn on(port: u16, program: &PathBuf) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let log = std::fs::File::create(dir.path().join("log")).expect("a file");
        let child = Command::new(program)
            .current_dir(dir.path())
            .env("GATEWAY_PORT", port.to_string())
            .env("BIND_HOST", "127.0.0.1")
            .env("MINISTACK_ACCOUNT_ID", ACCOUNT)
            // Signatures, trust and policies are checked, but of the root's own key: the one of local mode.
            .env("AUTH", "true")
            .env("AWS_ACCESS_KEY_ID", "AKIASLIPWAYSANDBOX00")
            .env("AWS_SECRET_ACCESS_KEY", "sandbox")
            // No containers, whatever the machine has: everywhere the same is judged.
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("ministack starts");
        let mut this = Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
            _dir: dir,
        };
        let health = format!("{}/_ministack/health", this.url);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if this.child.try_wait().expect("a state").is_some() {
                return None;
            }
            if let Ok(answer) = reqwest::get(&health).await
                && answer.status().is_success()
            {
                return Some(this);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        None
    }

    /// Base URL of its port.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Tells it to end, and waits until it has.
    pub(crate) async fn end(mut self) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.expect("kill runs").success());
        let begun = Instant::now();
        while self.child.try_wait().expect("a state").is_none() {
            assert!(begun.elapsed() < PATIENCE, "ministack does not end");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Ministack {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// A program that `cargo xtask conformance` installed.
fn program(variable: &str) -> PathBuf {
    let named = std::env::var_os(variable);
    named
        .unwrap_or_else(|| panic!("`cargo xtask conformance` sets {variable}"))
        .into()
}

/// `account.py` at work in a ministack; ended when dropped.
pub(crate) struct Hands {
    child: Child,
    lines: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Hands {
    pub(crate) fn of(account: &Ministack) -> Self {
        let here = "tests/tests/conformance/ministack/account.py";
        let mut child = Command::new(program("SLIPWAY_PYTHON_BOTO3"))
            .arg(checkout(here))
            .arg(account.url())
            .arg(checkout("docs/deploy-role.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let requests = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self {
            child,
            lines: Mutex::new((requests, answers)),
        }
    }

    /// Asks for something, and waits for the answer.
    pub(crate) fn ask(&self, request: &Value) -> Value {
        let mut lines = self.lines.lock().expect("no other panicked");
        writeln!(lines.0, "{request}").expect("it listens");
        let mut answer = String::new();
        lines.1.read_line(&mut answer).expect("an answer");
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{request}: {error}"))
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
