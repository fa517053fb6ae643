//! Running one script in bash or PowerShell, in a process group of its own that dies with the delegate.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use slipway_clock::Clock;
use slipway_steps::shell::artifacts::{Listing, MOST_BYTES, RESULT_PATH};
use slipway_steps::shell::task::{Outcome, Output, Shell, Status};
use slipway_store::record::LogLine;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::claim::{TaskFolder, write_private};
use super::error::DelegateError;
use super::mask::Secrets;
use super::output::{self, Budget};

const WRAPPER: &str = include_str!("wrapper.sh");

/// What PowerShell runs: the script, and then the report of its variables.
const POWERSHELL_WRAPPER: &str = include_str!("wrapper.ps1");

/// What bash runs where the script is one for PowerShell, which takes its place: whoever ends bash ends PowerShell.
const POWERSHELL: &str =
    "exec pwsh -NoLogo -NoProfile -NonInteractive -File \"${slipway_script%/*}/wrapper.ps1\" \\
  \"${slipway_script%/*}/script.ps1\" \"$slipway_outputs\" \"${slipway_names[@]}\"
";

/// What a delegate lacks that has no PowerShell.
const NO_POWERSHELL: &str = "The delegate has no `pwsh` (PowerShell 7) in its PATH, which scripts with `shell: PowerShell` \
                             need. Install it there, or send the step to a delegate that has it by `delegateSelectors`.";

/// Most that a script's output variables may have together, in bytes: what a value may have.
const OUTPUTS_LIMIT: u64 = 256 * 1024;

/// The file for the list of artifacts that a script writes.
const LIST: &str = "artifacts.json";

/// Time that a script has to end after it was asked to.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Time that is left for reading the last output once the script has ended.
const DRAIN: Duration = Duration::from_secs(5);

/// A script with its secrets filled in. Has no `Debug`.
pub(super) struct Script {
    pub(super) shell: Shell,
    pub(super) text: String,
    pub(super) environment: Vec<(String, String)>,
    pub(super) outputs: Vec<Output>,
    pub(super) working_directory: Option<PathBuf>,
    pub(super) timeout: Duration,
    pub(super) grace: Duration,
    /// Most bytes of its output that are kept.
    pub(super) log_limit: usize,
    /// What is asked of the list of artifacts that it writes.
    pub(super) artifacts: Option<Listing>,
}

impl Script {
    /// Whether its PATH leads to a program of this name.
    fn finds(&self, program: &str) -> bool {
        let own = self.environment.iter().rev();
        let own = own
            .filter(|(name, _)| name == "PATH")
            .map(|(_, value)| value.into())
            .next();
        let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&path).any(|folder| {
            let file = folder.join(program).metadata();
            file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
    }
}

enum Ended {
    Itself(std::io::Result<ExitStatus>),
    Timeout,
    Cancelled,
}

/// Runs a script to its end. `None` if it was cancelled.
pub(super) async fn run(
    script: &Script,
    folder: &TaskFolder,
    secrets: &Secrets,
    clock: &Clock,
    lines: &Sender<LogLine>,
    cancel: &CancellationToken,
) -> Result<Option<Outcome>, DelegateError> {
    if script.shell == Shell::PowerShell && !script.finds("pwsh") {
        let message = Some(NO_POWERSHELL.to_owned());
        return Ok(Some(failed(Status::Failure, None, message)));
    }
    let mut child = start(script, folder.path())?;
    let budget = Budget::new(script.log_limit);
    let mut leash = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let copies = async {
        let copy_output = async {
            if let Some(stream) = stdout {
                output::copy(stream, "INFO", secrets, &budget, clock, lines).await;
            }
        };
        let copy_errors = async {
            if let Some(stream) = stderr {
                output::copy(stream, "ERROR", secrets, &budget, clock, lines).await;
            }
        };
        tokio::join!(copy_output, copy_errors);
    };
    tokio::pin!(copies);
    let mut read_all = false;
    let ended = {
        let waiting = wait(script, &mut child, &mut leash, clock, cancel);
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                ended = &mut waiting => break ended,
                // A script may close its streams and go on.
                () = &mut copies, if !read_all => read_all = true,
            }
        }
    };
    // Whatever the script left running ends with it.
    drop(leash);
    if !read_all {
        tokio::select! {
            () = &mut copies => {}
            () = clock.sleep(DRAIN) => {}
        }
    }
    Ok(outcome(ended, script, secrets, folder.path()))
}

fn start(script: &Script, folder: &Path) -> Result<Child, DelegateError> {
    let (wrapper, text) = (folder.join("wrapper.sh"), folder.join("script.sh"));
    write_private(&wrapper, WRAPPER.as_bytes())?;
    match script.shell {
        Shell::Bash => write_private(&text, script.text.as_bytes())?,
        Shell::PowerShell => {
            write_private(&text, POWERSHELL.as_bytes())?;
            write_private(&folder.join("wrapper.ps1"), POWERSHELL_WRAPPER.as_bytes())?;
            write_private(&folder.join("script.ps1"), script.text.as_bytes())?;
        }
    }
    let mut command = Command::new("bash");
    command
        .args(["--noprofile", "--norc"])
        .arg(&wrapper)
        .arg(&text)
        .arg(folder.join("outputs"))
        .args(script.outputs.iter().map(|output| &output.variable))
        .current_dir(
            script
                .working_directory
                .clone()
                .unwrap_or_else(|| folder.join("work")),
        )
        .env_clear();
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("TMPDIR", folder.join("tmp"))
        .envs(script.environment.iter().map(|(name, value)| (name, value)))
        .envs(
            script
                .artifacts
                .iter()
                .map(|_| (RESULT_PATH, folder.join(LIST))),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command.spawn().map_err(DelegateError::Start)
}

/// Waits for the end, and brings it about when the time is up or nobody wants it any more.
async fn wait(
    script: &Script,
    child: &mut Child,
    leash: &mut Option<ChildStdin>,
    clock: &Clock,
    cancel: &CancellationToken,
) -> Ended {
    let ended = tokio::select! {
        status = child.wait() => return Ended::Itself(status),
        () = clock.sleep(script.timeout) => Ended::Timeout,
        () = cancel.cancelled() => Ended::Cancelled,
    };
    if let Some(leash) = leash {
        let _ = leash.write_all(b"end\n").await;
        let _ = leash.flush().await;
    }
    tokio::select! {
        _ = child.wait() => {}
        () = clock.sleep(script.grace) => {
            leash.take();
            tokio::select! {
                _ = child.wait() => {}
                // The watching shell was killed by the script; its first process still can be.
                () = clock.sleep(script.grace) => {
                    let _ = child.start_kill();
                    let _ = child.wait().await;
                }
            }
        }
    }
    ended
}

fn outcome(ended: Ended, script: &Script, secrets: &Secrets, folder: &Path) -> Option<Outcome> {
    let status = match ended {
        Ended::Cancelled => return None,
        Ended::Timeout => return Some(failed(Status::Timeout, None, None)),
        Ended::Itself(Ok(status)) => status,
        Ended::Itself(Err(error)) => {
            let message = format!("The delegate cannot tell how the script ended: {error}.");
            return Some(failed(Status::Failure, None, Some(message)));
        }
    };
    if !status.success() {
        use std::os::unix::process::ExitStatusExt;
        let message = status
            .signal()
            .map(|signal| format!("The script was killed by signal {signal}."));
        return Some(failed(Status::Failure, status.code(), message));
    }
    let read = read_outputs(script, &folder.join("outputs")).and_then(|outputs| {
        read_artifacts(
            outcome_of(outputs, script, secrets),
            script,
            secrets,
            folder,
        )
    });
    Some(read.unwrap_or_else(|message| failed(Status::Failure, Some(0), Some(message))))
}

/// What a script that ended well has said in variables.
fn outcome_of(outputs: BTreeMap<String, String>, script: &Script, secrets: &Secrets) -> Outcome {
    Outcome {
        status: Status::Success,
        exit_code: Some(0),
        // What would be masked in the log is a secret too, whatever its type says.
        secret_outputs: script
            .outputs
            .iter()
            .filter(|output| {
                let value = outputs.get(&output.name);
                value.is_some_and(|value| output.secret || secrets.mask(value) != *value)
            })
            .map(|output| output.name.clone())
            .collect(),
        outputs,
        ..failed(Status::Success, None, None)
    }
}

pub(super) fn failed(status: Status, exit_code: Option<i32>, message: Option<String>) -> Outcome {
    Outcome {
        status,
        exit_code,
        outputs: BTreeMap::new(),
        secret_outputs: Vec::new(),
        secret_references: BTreeMap::new(),
        message,
        artifact: None,
        artifacts: None,
    }
}

/// The variables that the wrapper wrote: names and values, each ended by NUL.
fn read_outputs(script: &Script, path: &Path) -> Result<BTreeMap<String, String>, String> {
    if script.outputs.is_empty() || !path.exists() {
        return Ok(BTreeMap::new());
    }
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    if size > OUTPUTS_LIMIT {
        return Err(format!(
            "Its output variables have {size} bytes together; at most {OUTPUTS_LIMIT} can be kept."
        ));
    }
    let bytes = std::fs::read(path)
        .map_err(|error| format!("Its output variables cannot be read: {error}."))?;
    let mut fields = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut values = BTreeMap::new();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        values.insert(name.into_owned(), value.into_owned());
    }
    let named = script.outputs.iter().filter_map(|output| {
        values
            .get(&output.variable)
            .map(|value| (output.name.clone(), value.clone()))
    });
    Ok(named.collect())
}

/// Puts in what is chosen from the list of artifacts that the script wrote, or all of it, if it is one that writes one.
fn read_artifacts(
    outcome: Outcome,
    script: &Script,
    secrets: &Secrets,
    folder: &Path,
) -> Result<Outcome, String> {
    let (Some(listing), path) = (&script.artifacts, folder.join(LIST)) else {
        return Ok(outcome);
    };
    // Nothing that could be read without an end, a pipe for instance.
    let file = std::fs::metadata(&path)
        .ok()
        .filter(std::fs::Metadata::is_file);
    let size = file.map(|file| file.len()).ok_or_else(|| {
        format!(
            "its script ended well and wrote no file where ${RESULT_PATH} says: let it write its list there, `curl … > \
             ${RESULT_PATH}` for instance"
        )
    })?;
    if size > MOST_BYTES {
        return Err(format!(
            "its script wrote a list of {size} bytes, and at most {MOST_BYTES} are read: let it ask for fewer artifacts"
        ));
    }
    let list = std::fs::read(&path)
        .map_err(|error| format!("the list that its script wrote cannot be read: {error}"))?;
    let mask = |text: &str| secrets.mask(text);
    Ok(match listing.every {
        true => Outcome {
            artifacts: Some(listing.all(&list, mask)?),
            ..outcome
        },
        false => Outcome {
            artifact: Some(listing.choose(&list, mask)?),
            ..outcome
        },
    })
}
