//! Feeds that are scripts: a delegate asks them, and no run waits for it.
//!
//! One poll gives an errand out: a task of a delegate, and an execution of the machine `errand` that hands it to one. A
//! later poll finds what came of it, and gives the next one out. That an errand is out is noted of the feed before anything
//! else is done for it, and each poll repeats what is to be done for it, so that a crash anywhere costs nothing but a
//! minute. Only one is out at a time, however many triggers listen. One that no delegate answers is given up.

use std::time::Duration;

use serde_json::json;
use slipway_model::id::{NodeId, RunId};
use slipway_store::StoreError;
use slipway_store::record::{DelegateTaskRecord, ErrandRecord, FeedRecord};

use super::handle::Starting;
use super::poll::{Asked, Polled, Said};
use crate::abort::cancel_task;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::gather::FeedErrand;

/// Time for a delegate to take an errand, beside that for doing it.
const TAKING: Duration = Duration::from_secs(300);

/// After so long the status of the triggers says that no delegate has taken it, milliseconds.
const UNTAKEN_MS: i64 = 30_000;

/// Time between two looks at an errand that is out. Polls are a minute apart, so that it is each of them.
const LOOK_MS: i64 = 1_000;

/// Polls that are a minute apart are not so to the second, milliseconds.
const SLACK_MS: i64 = 5_000;

/// Longest silence of a delegate, in seconds, as in runs.
const HEARTBEAT_SECONDS: u64 = 60;

/// What became of an errand.
enum Look {
    /// It is out. If no delegate has taken it, what is to be said of that.
    Out(Option<String>),
    /// It is over.
    Over(Said),
}

/// Reads what came of the errand that is out, if it is over, and gives the next one out when its time has come.
pub(super) async fn ask(
    on: Starting<'_>,
    asked: &Asked<'_>,
    work: &FeedErrand,
    mut known: FeedRecord,
    polled: &mut Polled,
) -> Result<(), RunError> {
    let clock = &on.runs.clock;
    if let Some(out) = known.errand.clone().filter(|errand| !errand.over) {
        let said = match look(on, asked, &out).await? {
            Look::Over(said) => said,
            Look::Out(untaken) => {
                give(on, asked, work, &out).await?;
                // Without a failure nothing else can have been said.
                let why = untaken.or_else(|| known.why.clone().filter(|_| known.failures > 0));
                if why != known.why {
                    asked.note(on, &FeedRecord { why, ..known }).await?;
                }
                return asked
                    .again(on, clock.now_ms().saturating_add(LOOK_MS))
                    .await;
            }
        };
        let given_ms = out.given_ms;
        let over = ErrandRecord { over: true, ..out };
        let before = FeedRecord {
            errand: Some(over),
            ..known
        };
        let (record, wait) = asked.settle(on, before, given_ms, said, polled).await?;
        if !asked.note(on, &record).await? {
            // Another poll was faster, and goes on.
            return Ok(());
        }
        let next_ms = given_ms.saturating_add(asked.next(record.failures, wait));
        if next_ms > clock.now_ms().saturating_add(SLACK_MS) {
            return asked.again(on, next_ms).await;
        }
        known = FeedRecord {
            version: record.version.saturating_add(1),
            ..record
        };
    }
    if let Some(before) = &known.errand {
        let forgotten = on.runs.store.forget_delegate_task(&before.task).await;
        forgotten.doing(|| format!("forget the errand {}", before.task))?;
    }
    let given_ms = clock.now_ms();
    let time = i64::try_from((work.timeout + TAKING).as_millis()).unwrap_or(i64::MAX);
    let out = ErrandRecord {
        task: format!("{}-{given_ms}", asked.key),
        given_ms,
        until_ms: given_ms.saturating_add(time),
        over: false,
    };
    let record = FeedRecord {
        errand: Some(out.clone()),
        ..known
    };
    if !asked.note(on, &record).await? {
        return Ok(());
    }
    give(on, asked, work, &out).await?;
    asked.again(on, given_ms.saturating_add(LOOK_MS)).await
}

/// Gives an errand to whichever delegate asks next; what was done of it before is not done again.
async fn give(
    on: Starting<'_>,
    asked: &Asked<'_>,
    work: &FeedErrand,
    out: &ErrandRecord,
) -> Result<(), RunError> {
    let Some(machine) = &on.runs.errand_machine else {
        let why = "scripts of triggers are not run from here: nothing says which machine hands them to delegates";
        return Err(RunError::refused(ErrorName::Internal, why));
    };
    let task = DelegateTaskRecord {
        id: out.task.clone(),
        errand_of: Some(asked.watched.scope.clone()),
        run: RunId::new(""),
        node: NodeId::new(""),
        attempt: 0,
        task_type: work.task_type.clone(),
        payload: work.payload.clone(),
        selectors: work.selectors.clone(),
        unsuitable: Vec::new(),
        delegate: None,
        result: None,
        finished_ms: None,
        cancelled: false,
    };
    match on.runs.store.put_delegate_task(&task).await {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => {}
        Err(why) => return Err(why).doing(|| format!("give out the errand {}", out.task)),
    }
    let input = json!({
        "task": out.task,
        "timeoutSeconds": seconds(out),
        "heartbeatSeconds": HEARTBEAT_SECONDS,
    });
    on.runs.start_named(machine, &out.task, &input).await
}

/// For how long an errand may be out.
fn seconds(out: &ErrandRecord) -> i64 {
    out.until_ms.saturating_sub(out.given_ms) / 1_000
}

async fn look(on: Starting<'_>, asked: &Asked<'_>, out: &ErrandRecord) -> Result<Look, RunError> {
    let task = match on.runs.store.get_delegate_task(&out.task).await {
        Ok(task) => Some(task),
        Err(StoreError::NotFound { .. }) => None,
        Err(why) => return Err(why).doing(|| format!("read the errand {}", out.task)),
    };
    if let Some(result) = task.as_ref().and_then(|task| task.result.as_ref()) {
        let said = on.sources.errand_answer(&asked.watched.feed, result);
        return Ok(Look::Over(
            said.map_err(|fault| (fault.message, fault.wait)),
        ));
    }
    let delegate = task.as_ref().and_then(|task| task.delegate.as_deref());
    let (now_ms, limit) = (on.runs.clock.now_ms(), seconds(out));
    if now_ms >= out.until_ms {
        // Whoever has it still ends it then.
        cancel_task(on.runs, &out.task).await?;
        let why = match delegate {
            Some(delegate) => format!(
                "delegate {delegate} took its script and did not answer within {limit} s: see that the delegate runs, and \
                 that the script ends"
            ),
            None => format!(
                "no delegate took its script within {limit} s: {}",
                needed(task.as_ref())
            ),
        };
        return Ok(Look::Over(Err((why, None))));
    }
    let since_ms = now_ms.saturating_sub(out.given_ms);
    let untaken = delegate.is_none() && since_ms >= UNTAKEN_MS;
    Ok(Look::Out(untaken.then(|| {
        format!(
            "no delegate has taken its script, which waits for {} s: {}",
            since_ms / 1_000,
            needed(task.as_ref())
        )
    })))
}

/// What is to be done where no delegate takes an errand.
fn needed(task: Option<&DelegateTaskRecord>) -> String {
    let (selectors, unsuitable) = task.map_or_else(Default::default, |task| {
        (task.selectors.join(", "), task.unsuitable.join(", "))
    });
    match (selectors.is_empty(), unsuitable.is_empty()) {
        (true, _) => "see that a delegate runs and has time (`slipway delegate`)".to_owned(),
        (false, true) => format!("see that a delegate runs that carries the selectors {selectors}"),
        (false, false) => format!(
            "{unsuitable} asked for it and does not carry all of the selectors {selectors}; start a delegate that does, \
             or change `delegateSelectors`"
        ),
    }
}
