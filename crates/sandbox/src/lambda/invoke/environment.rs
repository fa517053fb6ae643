//! An execution environment: a process that has loaded a handler, and answers events one at a time.
//!
//! The process is the interpreter with a bootstrap of ours. It reads events from descriptor 4 and answers on descriptor 3;
//! its standard streams are the log. A shell puts the descriptors there and becomes the interpreter. When descriptor 4
//! ends, the bootstrap ends the whole process group: nothing is left running, however this process ends.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use slipway_clock::Clock;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::Wanted;
use super::outcome::{Ended, LARGEST_ANSWER};
use super::plan::Plan;

/// How long Lambda lets a handler be loaded (Lambda developer guide, "Lambda execution environment lifecycle").
const LOADING: Duration = Duration::from_secs(10);
/// How long the end of a log is waited for, and the end of a process that was told to end.
const GRACE: Duration = Duration::from_millis(500);
/// Most of a log that is kept of one invocation, bytes: its end.
const MOST_LOG: usize = 64 << 10;
/// Longest first line of an answer, bytes.
const LONGEST_HEAD: u64 = 64;

/// Puts the descriptors where the bootstraps look for them.
const DESCRIPTORS: &str = r#"exec "$@" 3>&1 1>&2 4<&0 </dev/null"#;

/// Credentials of the function's role.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) access_key: String,
    pub(super) secret: String,
    pub(super) token: String,
}

/// What a process is started from, beside the plan.
pub(super) struct Site<'a> {
    pub(super) interpreter: &'a Path,
    /// Where the bootstraps are.
    pub(super) bootstraps: &'a Path,
    /// The unpacked package.
    pub(super) code: &'a Path,
    /// A folder of its own, its `HOME` and `TMPDIR`.
    pub(super) scratch: tempfile::TempDir,
    pub(super) keys: &'a Keys,
    /// Name of its log stream.
    pub(super) stream: &'a str,
}

/// A running environment.
pub(super) struct Environment {
    /// That of its plan.
    pub(super) key: String,
    pub(super) started: Timestamp,
    child: Child,
    events: ChildStdin,
    answers: BufReader<ChildStdout>,
    lines: BufReader<ChildStderr>,
    /// Removed with it.
    _scratch: tempfile::TempDir,
}

/// Whether an environment can take the next event.
pub(super) type Next = Option<Environment>;

impl Environment {
    /// Starts the process. It loads the handler meanwhile; see [`Self::load`].
    pub(super) fn start(plan: &Plan, site: Site<'_>, now: Timestamp) -> std::io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", DESCRIPTORS, "sh"])
            .arg(site.interpreter)
            .args(plan.runtime.arguments(site.bootstraps))
            .current_dir(site.code)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(own_variables(plan, &site))
            .envs(&plan.variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(events), Some(answers), Some(lines)) = taken else {
            return Err(std::io::Error::other("the process has no streams"));
        };
        Ok(Self {
            key: plan.key.clone(),
            started: now,
            child,
            events,
            answers: BufReader::new(answers),
            lines: BufReader::new(lines),
            _scratch: site.scratch,
        })
    }

    /// Waits until the handler is loaded; what it logs goes to `log`.
    pub(super) async fn load(&mut self, clock: &Clock, log: &mut Vec<u8>) -> Result<(), Ended> {
        match self.answer(None, LOADING, clock, log).await {
            Ended::Result(_) => Ok(()),
            Ended::TimedOut => Err(Ended::NeverReady(LOADING)),
            other => Err(other),
        }
    }

    /// Has it handle an event. Gives itself back where it can take another one.
    pub(super) async fn handle(
        mut self,
        plan: &Plan,
        wanted: &Wanted,
        request_id: &str,
        clock: &Clock,
        log: &mut Vec<u8>,
    ) -> (Ended, Next) {
        let head = json!({
            "id": request_id,
            "arn": plan.arn,
            "milliseconds": plan.timeout.as_millis(),
            "client": wanted.client_context,
            "length": wanted.event.len(),
        });
        let message = [format!("{head}\n").as_bytes(), &wanted.event].concat();
        let ended = {
            // A process that reads nothing must not be waited for.
            let sent = self.events.write_all(&message);
            tokio::select! {
                sent = sent => sent.is_ok(),
                () = clock.sleep(plan.timeout) => false,
            }
        };
        let ended = match ended {
            true => {
                self.answer(Some(request_id), plan.timeout, clock, log)
                    .await
            }
            false => Ended::Exited(self.child.try_wait().ok().flatten()),
        };
        match ended {
            Ended::Result(_) | Ended::Failed(_) | Ended::TooLarge(_) => (ended, Some(self)),
            Ended::Exited(_) | Ended::TimedOut | Ended::NeverReady(_) => {
                self.end(clock, log).await;
                (ended, None)
            }
        }
    }

    /// Waits for an answer, reading the log meanwhile, and then for the end of the log.
    async fn answer(
        &mut self,
        request_id: Option<&str>,
        limit: Duration,
        clock: &Clock,
        log: &mut Vec<u8>,
    ) -> Ended {
        let Self {
            child,
            answers,
            lines,
            ..
        } = self;
        let mark = request_id.map(|id| format!("\0end {id}\n"));
        let logged = copy(lines, log, mark.as_deref());
        let answered = read(answers);
        tokio::pin!(logged, answered);
        let mut all_logged = false;
        let until = clock.sleep(limit);
        tokio::pin!(until);
        let ended = loop {
            tokio::select! {
                biased;
                answer = &mut answered => break answer,
                () = &mut logged, if !all_logged => all_logged = true,
                status = child.wait() => {
                    // What it wrote before its end is still there to be read.
                    tokio::select! {
                        biased;
                        answer = &mut answered => break answer.unwrap_or_exited(status.ok()),
                        () = clock.sleep(GRACE) => break Ended::Exited(status.ok()),
                    }
                }
                () = &mut until => break Ended::TimedOut,
            }
        };
        let ended = match ended {
            Ended::Exited(None) => {
                tokio::select! {
                    status = child.wait() => Ended::Exited(status.ok()),
                    () = clock.sleep(GRACE) => Ended::Exited(None),
                }
            }
            other => other,
        };
        let more = mark.is_some() && !matches!(ended, Ended::TimedOut);
        if more && !all_logged {
            tokio::select! {
                () = &mut logged => {}
                () = clock.sleep(GRACE) => {}
            }
        }
        ended
    }

    /// Whether the process is still there.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it, with all that it has started.
    pub(super) async fn end(mut self, clock: &Clock, log: &mut Vec<u8>) {
        drop(self.events);
        tokio::select! {
            _ = self.child.wait() => {}
            () = clock.sleep(GRACE) => {}
        }
        // What holds the interpreter itself does not hold the kernel.
        let _ = self.child.start_kill();
        tokio::select! {
            () = copy(&mut self.lines, log, None) => {}
            () = clock.sleep(GRACE) => {}
        }
    }
}

impl Ended {
    /// The end of the answers is the end of the process.
    fn unwrap_or_exited(self, status: Option<std::process::ExitStatus>) -> Self {
        match self {
            Self::Exited(_) => Self::Exited(status),
            other => other,
        }
    }
}

/// What Lambda sets (Lambda developer guide, "Defined runtime environment variables"), and where the function's clients
/// find the account: without `AWS_ENDPOINT_URL` they would call AWS itself.
fn own_variables(plan: &Plan, site: &Site<'_>) -> Vec<(&'static str, String)> {
    let folder = |path: &Path| path.display().to_string();
    let group = format!("/aws/lambda/{}", plan.name);
    vec![
        ("LANG", "C.UTF-8".to_owned()),
        ("TZ", ":UTC".to_owned()),
        ("HOME", folder(site.scratch.path())),
        ("TMPDIR", folder(site.scratch.path())),
        ("_HANDLER", plan.handler.clone()),
        ("LAMBDA_TASK_ROOT", folder(site.code)),
        ("AWS_REGION", plan.region.clone()),
        ("AWS_DEFAULT_REGION", plan.region.clone()),
        ("AWS_ENDPOINT_URL", plan.endpoint.clone()),
        ("AWS_ACCESS_KEY_ID", site.keys.access_key.clone()),
        ("AWS_SECRET_ACCESS_KEY", site.keys.secret.clone()),
        ("AWS_SESSION_TOKEN", site.keys.token.clone()),
        (
            "AWS_EXECUTION_ENV",
            format!("AWS_Lambda_{}", plan.runtime_name),
        ),
        ("AWS_LAMBDA_FUNCTION_NAME", plan.name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", plan.version.clone()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", plan.memory.to_string()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", group),
        ("AWS_LAMBDA_LOG_STREAM_NAME", site.stream.to_owned()),
    ]
}

/// Reads one answer: a line with its kind and length, and as many bytes.
async fn read(answers: &mut BufReader<ChildStdout>) -> Ended {
    let mut head = String::new();
    let line = (&mut *answers)
        .take(LONGEST_HEAD)
        .read_line(&mut head)
        .await;
    let Some((kind, length)) = line.ok().and_then(|_| head.trim_end().split_once(' ')) else {
        return Ended::Exited(None);
    };
    let Ok(length) = length.parse::<u64>() else {
        return Ended::Exited(None);
    };
    let mut body = (&mut *answers).take(length);
    if length > LARGEST_ANSWER {
        return match tokio::io::copy(&mut body, &mut tokio::io::sink()).await {
            Ok(read) if read == length => Ended::TooLarge(length),
            _ => Ended::Exited(None),
        };
    }
    let mut bytes = Vec::new();
    match (body.read_to_end(&mut bytes).await, kind) {
        (Ok(_), _) if bytes.len() as u64 != length => Ended::Exited(None),
        (Ok(_), "result" | "ready") => Ended::Result(bytes),
        (Ok(_), "error" | "refused") => Ended::Failed(bytes),
        _ => Ended::Exited(None),
    }
}

/// Copies the log up to the mark, or to its end; keeps its last part.
async fn copy(from: &mut BufReader<impl AsyncRead + Unpin>, log: &mut Vec<u8>, mark: Option<&str>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without an end is taken in parts.
        let mut part = (&mut *from).take(MOST_LOG as u64);
        match part.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if let Some(mark) = mark
            && line.ends_with(mark.as_bytes())
        {
            log.extend_from_slice(&line[..line.len() - mark.len()]);
            return;
        }
        log.extend_from_slice(&line);
        if log.len() > 2 * MOST_LOG {
            log.drain(..log.len() - MOST_LOG);
        }
    }
}
