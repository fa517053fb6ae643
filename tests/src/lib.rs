//! What whole-system tests share: the binary `slipway` as users start it, and AWS SDK clients that talk to it.

pub mod balancer;
pub mod dice;
pub mod history;
pub mod process;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use aws_credential_types::Credentials;
use serde_json::Value;

/// The binary that was built beside the tests.
///
/// # Panics
/// When it was not built: `cargo xtask test` builds it first.
pub fn binary() -> PathBuf {
    let here = std::env::current_exe().expect("the path of the test");
    let target = here
        .ancestors()
        .find(|p| p.ends_with("debug") || p.ends_with("release"));
    let binary = target.expect("a cargo target folder").join("slipway");
    assert!(
        binary.is_file(),
        "{} is missing: run `cargo xtask test`",
        binary.display()
    );
    binary
}

/// Starts a server and waits until it says where it listens.
fn listening(mut command: Command) -> (Child, String) {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("slipway starts");
    let stdout = child.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("its first line");
    let url = line.trim().strip_prefix("listening on ");
    let url = url.unwrap_or_default().to_owned();
    assert!(url.starts_with("http://"), "{command:?} said {line:?}");
    (child, url)
}

/// A `slipway sandbox` that a test started; killed when dropped.
pub struct SandboxProcess {
    child: Child,
    url: String,
}

impl SandboxProcess {
    /// Starts on a free port and waits until it listens.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(options: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command
            .args(["sandbox", "--listen", "127.0.0.1:0"])
            .args(options);
        let (child, url) = listening(command);
        Self { child, url }
    }

    /// Base URL of its port.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for SandboxProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `slipway local` that a test started; killed when dropped.
pub struct LocalProcess {
    child: Child,
    url: String,
    data_dir: PathBuf,
}

impl LocalProcess {
    /// Starts on a free port and waits until it listens.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(data_dir: &Path) -> Self {
        Self::start_with(&binary(), data_dir, &[])
    }

    /// Like [`LocalProcess::start`], with another build of the binary and further options.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_with(binary: &Path, data_dir: &Path, options: &[&str]) -> Self {
        Self::start_command(Command::new(binary), data_dir, options)
    }

    /// Like [`LocalProcess::start`], deploying to another account that speaks AWS's protocols.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_against(endpoint: &str, data_dir: &Path) -> Self {
        let mut command = Command::new(binary());
        command.env("SLIPWAY_TARGET_ENDPOINT", endpoint);
        Self::start_command(command, data_dir, &["--target", "aws"])
    }

    fn start_command(mut command: Command, data_dir: &Path, options: &[&str]) -> Self {
        command
            .args(["local", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .args(options);
        let (child, url) = listening(command);
        Self {
            child,
            url,
            data_dir: data_dir.to_path_buf(),
        }
    }

    /// Base URL of its port.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is gone");
    }

    /// Runs a client command against it.
    ///
    /// # Panics
    /// When the command cannot be started.
    pub fn slipway(&self, arguments: &[&str]) -> Output {
        Command::new(binary())
            .args(["--url", &self.url, "--data-dir"])
            .arg(&self.data_dir)
            .args(arguments)
            .env_remove("SLIPWAY_TOKEN")
            .stdin(Stdio::null())
            .output()
            .expect("slipway runs")
    }

    /// Runs a client command that must succeed, and reads its JSON.
    ///
    /// # Panics
    /// When it fails or prints no JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.slipway(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "slipway {arguments:?} failed: {errors}"
        );
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// An ECS client of its sandbox account.
    pub fn ecs(&self) -> aws_sdk_ecs::Client {
        aws_sdk_ecs::Client::from_conf(
            aws_sdk_ecs::Config::builder()
                .behavior_version_latest()
                .endpoint_url(&self.url)
                .region(aws_sdk_ecs::config::Region::new("us-east-1"))
                .credentials_provider(Credentials::for_tests())
                .build(),
        )
    }

    /// A Step Functions client of its engine.
    pub fn states(&self) -> aws_sdk_sfn::Client {
        aws_sdk_sfn::Client::from_conf(
            aws_sdk_sfn::Config::builder()
                .behavior_version_latest()
                .endpoint_url(&self.url)
                .region(aws_sdk_sfn::config::Region::new("us-east-1"))
                .credentials_provider(Credentials::for_tests())
                .build(),
        )
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file or folder of the checkout.
pub fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
