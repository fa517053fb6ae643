//! One task per open execution that does not rest: it waits, lets the run decide, commits, and carries out the effects.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::effect::{Invoked, LambdaError};
use crate::engine::Inner;
use crate::error::{ApiError, JournalError};
use crate::history;
use crate::items::Items;
use crate::perform::perform;
use crate::record::Execution;
use crate::rest::REST_AFTER;
use crate::run::{Answer, Change, Run, map_run_has_ended};
use crate::token::Token;

/// After a failed commit (a full disk) the execution is tried again from the journal this much later.
pub(crate) const COMMIT_RETRY: Duration = Duration::from_secs(1);
/// An execution that is due within this time stays awake: it would be read from the journal at once.
const SHORTEST_REST: SignedDuration = SignedDuration::from_secs(60);
/// Signals taken into one commit.
const SIGNALS_PER_STEP: usize = 64;

pub(crate) type Reply = oneshot::Sender<Result<Value, ApiError>>;
pub(crate) type Mailbox = mpsc::UnboundedReceiver<Signal>;

/// Something that happened to an open execution.
pub(crate) enum Signal {
    Invoked {
        branch: u32,
        attempt: u64,
        result: Result<Invoked, LambdaError>,
    },
    ChildStarted {
        branch: u32,
        attempt: u64,
        result: Box<Result<(u64, Execution), ApiError>>,
    },
    ChildClosed {
        branch: u32,
        attempt: u64,
        execution: Box<Execution>,
    },
    Called {
        branch: u32,
        attempt: u64,
        result: Result<Value, LambdaError>,
    },
    ItemsRead {
        branch: u32,
        started: u64,
        result: Result<Items, String>,
    },
    ResultsWritten {
        branch: u32,
        started: u64,
        result: Result<Value, String>,
    },
    Complete {
        token: Token,
        answer: Answer,
        reply: Reply,
    },
    Heartbeat {
        token: Token,
        reply: Reply,
    },
    PickUp {
        branch: u32,
        attempt: u64,
        worker: Option<String>,
        reply: Reply,
    },
    UpdateMapRun {
        arn: String,
        change: Change,
        reply: Reply,
    },
    Stop {
        error: Option<String>,
        cause: Option<String>,
        reply: Option<Reply>,
    },
}

/// Why a driver stopped driving.
enum End {
    Closed,
    ShutDown,
    /// It rests; who wakes it drives it again.
    Resting,
}

/// Drives `run` until it closes or the engine shuts down.
pub(crate) async fn drive(engine: Arc<Inner>, mut run: Run, mut mailbox: Mailbox) {
    let number = run.number;
    loop {
        match drive_until_closed(&engine, &mut run, &mut mailbox).await {
            Ok(End::ShutDown | End::Resting) => return,
            Ok(End::Closed) => {
                engine.forget_driver(number);
                break;
            }
            Err(error) => {
                tracing::error!(
                    execution = %run.execution.arn,
                    error = %ApiError::internal(&error),
                    "cannot commit; the execution is tried again from the journal"
                );
                tokio::select! {
                    () = engine.stop.cancelled() => return,
                    () = engine.clock.sleep(COMMIT_RETRY) => {}
                }
                match engine.load(number) {
                    Ok(Some(loaded)) => run = loaded,
                    Ok(None) => break,
                    Err(_) => {}
                }
            }
        }
    }
    if let Some(parent) = run.execution.parent
        && parent.waits
    {
        engine.signal(
            parent.execution,
            Signal::ChildClosed {
                branch: parent.branch,
                attempt: parent.attempt,
                execution: Box::new(run.execution.clone()),
            },
        );
    }
    mailbox.close();
    while let Ok(signal) = mailbox.try_recv() {
        refuse(&engine, signal, &run.execution);
    }
}

async fn drive_until_closed(
    engine: &Arc<Inner>,
    run: &mut Run,
    mailbox: &mut Mailbox,
) -> Result<End, JournalError> {
    loop {
        run.advance(engine.clock.now(), engine.as_ref());
        commit(engine, run, Vec::new()).await?;
        if !run.is_open() {
            return Ok(End::Closed);
        }
        if run.is_ready() {
            tokio::task::yield_now().await;
            continue;
        }
        if !run.is_at_work() {
            engine.turns.rests(run.number);
        }
        let deadline = run.next_deadline();
        let due = async {
            match deadline {
                Some(at) => engine.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let rest = async {
            match run.can_rest() && rests_before(deadline, engine.clock.now()) {
                true => engine.clock.sleep(REST_AFTER).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = engine.stop.cancelled() => return Ok(End::ShutDown),
            signal = mailbox.recv() => match signal {
                Some(signal) => take_signals(engine, run, mailbox, signal).await?,
                None => return Ok(End::ShutDown),
            },
            () = due => run.fire(engine.clock.now()),
            () = rest => {
                if engine.rest(run.number, deadline, mailbox) {
                    return Ok(End::Resting);
                }
            }
        }
    }
}

/// Whether an execution that rests now is not due before long.
pub(crate) fn rests_before(deadline: Option<Timestamp>, now: Timestamp) -> bool {
    deadline.is_none_or(|due| due.duration_since(now) > SHORTEST_REST)
}

/// Applies the signals that have come, moves on, and answers once all of it is durable.
async fn take_signals(
    engine: &Arc<Inner>,
    run: &mut Run,
    mailbox: &mut Mailbox,
    first: Signal,
) -> Result<(), JournalError> {
    let mut replies = Vec::new();
    apply(engine, run, first, &mut replies);
    for _ in 1..SIGNALS_PER_STEP {
        if !run.is_open() {
            break;
        }
        match mailbox.try_recv() {
            Ok(signal) => apply(engine, run, signal, &mut replies),
            Err(_) => break,
        }
    }
    run.advance(engine.clock.now(), engine.as_ref());
    commit(engine, run, replies).await
}

type Answered = (Reply, Result<Value, ApiError>);

fn apply(engine: &Inner, run: &mut Run, signal: Signal, replies: &mut Vec<Answered>) {
    let now = engine.clock.now();
    match signal {
        Signal::Invoked {
            branch,
            attempt,
            result,
        } => run.invoked(now, branch, attempt, result),
        Signal::Called {
            branch,
            attempt,
            result,
        } => run.called(now, branch, attempt, result),
        Signal::ItemsRead {
            branch,
            started,
            result,
        } => run.items_read(now, branch, started, result),
        Signal::ResultsWritten {
            branch,
            started,
            result,
        } => run.results_written(now, branch, started, result),
        Signal::ChildStarted {
            branch,
            attempt,
            result,
        } => run.child_started(now, branch, attempt, *result),
        Signal::ChildClosed {
            branch,
            attempt,
            execution,
        } => run.child_closed(now, branch, attempt, &execution),
        Signal::Complete {
            token,
            answer,
            reply,
        } => {
            let done = run.complete(now, &token, answer);
            replies.push((reply, done.map(|()| json!({}))));
        }
        Signal::Heartbeat { token, reply } => {
            let done = run.heartbeat(now, &token);
            replies.push((reply, done.map(|()| json!({}))));
        }
        Signal::PickUp {
            branch,
            attempt,
            worker,
            reply,
        } => {
            let task = match run.pick_up(now, branch, attempt, worker) {
                Some((token, input)) => json!({"taskToken": token, "input": input}),
                None => Value::Null,
            };
            replies.push((reply, Ok(task)));
        }
        Signal::UpdateMapRun { arn, change, reply } => {
            let done = run.update_map_run(now, &arn, &change);
            replies.push((reply, done.map(|()| json!({}))));
        }
        Signal::Stop {
            error,
            cause,
            reply,
        } => {
            run.stop(now, error, cause);
            let stopped = json!({"stopDate": history::seconds(now.as_millisecond())});
            replies.extend(reply.map(|reply| (reply, Ok(stopped))));
        }
    }
}

/// Makes the step durable, then lets its effects be seen.
pub(crate) async fn commit(
    engine: &Arc<Inner>,
    run: &mut Run,
    replies: Vec<Answered>,
) -> Result<(), JournalError> {
    if run.has_step() {
        let (batch, step) = run.take_step()?;
        if !batch.is_empty() {
            engine.journal.commit(batch).await?;
        }
        engine.count(step.transitions, step.events.len() as u64);
        for effect in step.effects {
            perform(engine, run, effect);
        }
    }
    for (reply, answer) in replies {
        // A client that has gone away has no use for the answer.
        let _ = reply.send(answer);
    }
    Ok(())
}

/// Answers a signal that came too late.
fn refuse(engine: &Inner, signal: Signal, execution: &Execution) {
    match signal {
        Signal::Complete { reply, .. } | Signal::Heartbeat { reply, .. } => {
            let _ = reply.send(Err(crate::run::task_is_over()));
        }
        Signal::PickUp { reply, .. } => {
            let _ = reply.send(Ok(Value::Null));
        }
        Signal::UpdateMapRun { arn, reply, .. } => {
            let _ = reply.send(Err(map_run_has_ended(&arn)));
        }
        Signal::Stop {
            reply: Some(reply), ..
        } => {
            let at = execution.stop_ms.unwrap_or(execution.start_ms);
            let _ = reply.send(Ok(json!({"stopDate": history::seconds(at)})));
        }
        other => undelivered(engine, other),
    }
}

/// A signal for an execution that is not open. A reply that is dropped tells its caller to look again;
/// an execution that was started for a task that has gone meanwhile is stopped.
pub(crate) fn undelivered(engine: &Inner, signal: Signal) {
    if let Signal::ChildStarted { result, .. } = signal
        && let Ok((number, child)) = *result
        && child.parent.is_some_and(|parent| parent.waits)
    {
        engine.signal(
            number,
            Signal::Stop {
                error: None,
                cause: None,
                reply: None,
            },
        );
    }
}
