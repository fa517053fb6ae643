//! What an invocation ends with: the payload, and the log.

use std::process::ExitStatus;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::json;

use super::plan::Plan;

/// Largest answer, bytes (Lambda quotas, developer guide).
pub(super) const LARGEST_ANSWER: u64 = 6_291_556;
/// How much of the log an answer carries, bytes (API reference, `LogResult`).
const TAIL: usize = 4 << 10;

/// An invocation that ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) payload: Vec<u8>,
    /// `FunctionError`: the payload is an error.
    pub(super) failed: bool,
    /// What the function logged, with what Lambda itself says around it.
    pub(super) log: Vec<u8>,
}

/// How a process answered an event, or did not.
#[derive(Debug)]
pub(super) enum Ended {
    /// The handler returned.
    Result(Vec<u8>),
    /// The handler, or loading it, failed; the payload is the runtime's.
    Failed(Vec<u8>),
    /// Its answer has so many bytes.
    TooLarge(u64),
    /// The process has ended.
    Exited(Option<ExitStatus>),
    TimedOut,
    /// Loading the handler took longer than Lambda waits.
    NeverReady(Duration),
}

/// When it was, and how long it took.
pub(super) struct Times {
    pub(super) ended: Timestamp,
    pub(super) took: Duration,
    /// Loading the handler, where this invocation waited for it.
    pub(super) init: Option<Duration>,
}

/// The outcome, in Lambda's words.
pub(super) fn outcome(
    plan: &Plan,
    request_id: &str,
    ended: Ended,
    lines: &[u8],
    times: &Times,
) -> Outcome {
    let mut log = format!("START RequestId: {request_id} Version: {}\n", plan.version).into_bytes();
    log.extend_from_slice(lines);
    if !log.ends_with(b"\n") {
        log.push(b'\n');
    }
    let (payload, failed) = match ended {
        Ended::Result(payload) => (payload, false),
        Ended::Failed(payload) => (payload, true),
        Ended::TooLarge(size) => {
            let message = format!(
                "Response payload size ({size} bytes) exceeded maximum allowed payload size ({LARGEST_ANSWER} bytes)."
            );
            (payload("Function.ResponseSizeTooLarge", &message), true)
        }
        Ended::Exited(status) => {
            let message = format!("RequestId: {request_id} Error: {}", exited(status));
            log.extend_from_slice(format!("{message}\nRuntime.ExitError\n").as_bytes());
            (payload("Runtime.ExitError", &message), true)
        }
        Ended::TimedOut => (timed_out(&mut log, request_id, plan.timeout, times), true),
        Ended::NeverReady(after) => (timed_out(&mut log, request_id, after, times), true),
    };
    log.extend_from_slice(report(plan, request_id, times).as_bytes());
    Outcome {
        payload,
        failed,
        log,
    }
}

fn payload(kind: &str, message: &str) -> Vec<u8> {
    json!({"errorType": kind, "errorMessage": message})
        .to_string()
        .into_bytes()
}

fn timed_out(log: &mut Vec<u8>, request_id: &str, after: Duration, times: &Times) -> Vec<u8> {
    let message = format!("Task timed out after {:.2} seconds", after.as_secs_f64());
    log.extend_from_slice(format!("{} {request_id} {message}\n", times.ended).as_bytes());
    let message = format!("RequestId: {request_id} Error: {message}");
    payload("Sandbox.Timedout", &message)
}

fn exited(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let Some(status) = status else {
        return "Runtime exited without providing a reason".to_owned();
    };
    match (status.code(), status.signal()) {
        (Some(0), _) | (None, None) => "Runtime exited without providing a reason".to_owned(),
        (Some(code), _) => format!("Runtime exited with error: exit status {code}"),
        (None, Some(signal)) => {
            let named = match signal {
                6 => "aborted".to_owned(),
                9 => "killed".to_owned(),
                11 => "segmentation fault".to_owned(),
                15 => "terminated".to_owned(),
                other => other.to_string(),
            };
            format!("Runtime exited with error: signal: {named}")
        }
    }
}

/// The last lines of an invocation. How much memory it took is not known here, and not told.
fn report(plan: &Plan, request_id: &str, times: &Times) -> String {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    let took = milliseconds(times.took);
    let init = times.init.map_or_else(String::new, |init| {
        format!("\tInit Duration: {:.2} ms", milliseconds(init))
    });
    format!(
        "END RequestId: {request_id}\nREPORT RequestId: {request_id}\tDuration: {took:.2} ms\tBilled Duration: {} ms\t\
         Memory Size: {} MB{init}\n",
        took.ceil(),
        plan.memory
    )
}

/// `LogResult`: the end of the log in base64.
pub(super) fn log_result(log: &[u8]) -> String {
    STANDARD.encode(&log[log.len().saturating_sub(TAIL)..])
}
