//! Feeds that are scripts: a delegate asks them, and no run waits for it.
//!
//! One poll gives an errand out: a task of a delegate, and an execution of the machine `errand` that hands it to one. A
//! later poll finds what came of it, and gives the next one out. That an errand is out is noted of the feed before anything
//! else is done for it, and each poll repeats what is to be done for it, so that a crash anywhere costs nothing but a
//! minute. Only one is out at a time, however many triggers listen. One that no delegate answers is given up.
//!
//! A feed of several regions may have several scripts. They are given out together, each as a task of its own, and the other
//! regions are asked once all have answered.

use std::time::Duration;

use serde_json::json;
use slipway_model::id::{NodeId, RunId};
use slipway_store::StoreError;
use slipway_store::record::{DelegateTaskRecord, ErrandRecord, FeedRecord};
use slipway_trigger::feed::Feed;

use super::handle::Starting;
use super::poll::{Asked, Listed, Polled, Said, Why};
use crate::abort::cancel_task;
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;
use crate::gather::{FeedAnswer, FeedErrand};

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

/// A script, and the feed or the region that it lists.
pub(super) struct Script {
    pub(super) of: Feed,
    pub(super) work: FeedErrand,
}

/// The scripts of a feed.
#[derive(Clone, Copy)]
pub(super) enum Scripts<'a> {
    /// It is one.
    Feed(&'a FeedErrand),
    /// Some of its regions are.
    Regions(&'a [Script]),
}

impl<'a> Scripts<'a> {
    /// Each with the name of its task.
    fn tasks(self, feed: &'a Feed, out: &ErrandRecord) -> Vec<(String, &'a Feed, &'a FeedErrand)> {
        match self {
            Self::Feed(work) => vec![(out.task.clone(), feed, work)],
            Self::Regions(scripts) => scripts
                .iter()
                .enumerate()
                .map(|(at, script)| (format!("{}-{at}", out.task), &script.of, &script.work))
                .collect(),
        }
    }

    /// The longest time that one may take.
    fn timeout(self) -> Duration {
        match self {
            Self::Feed(work) => work.timeout,
            Self::Regions(scripts) => {
                let all = scripts.iter().map(|script| script.work.timeout);
                all.max().unwrap_or_default()
            }
        }
    }
}

/// What became of an errand.
enum Look {
    /// It is out. If no delegate has taken it, what is to be said of that.
    Out(Option<String>),
    /// It is over: what each script lists, or why one of them lists nothing.
    Over(Result<Listed, Why>),
}

/// What is known of a task: whether a delegate has answered it, and what.
enum Answer {
    Is(FeedAnswer),
    Open(Option<String>),
}

/// Reads what came of the errand that is out, if it is over, and gives the next one out when its time has come.
pub(super) async fn ask(
    on: Starting<'_>,
    asked: &Asked<'_>,
    scripts: Scripts<'_>,
    mut known: FeedRecord,
    polled: &mut Polled,
) -> Result<(), RunError> {
    let clock = &on.runs.clock;
    if let Some(out) = known.errand.clone().filter(|errand| !errand.over) {
        let said = match look(on, asked, scripts, &out).await? {
            Look::Over(Ok(listed)) => said(on, asked, scripts, listed).await,
            Look::Over(Err(why)) => Err(why),
            Look::Out(untaken) => {
                give(on, asked, scripts, &out).await?;
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
        for (task, ..) in scripts.tasks(&asked.watched.feed, before) {
            let forgotten = on.runs.store.forget_delegate_task(&task).await;
            forgotten.doing(|| format!("forget the errand {task}"))?;
        }
    }
    let given_ms = clock.now_ms();
    let time = i64::try_from((scripts.timeout() + TAKING).as_millis()).unwrap_or(i64::MAX);
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
    give(on, asked, scripts, &out).await?;
    asked.again(on, given_ms.saturating_add(LOOK_MS)).await
}

/// What the feed has, by what its scripts list.
async fn said(on: Starting<'_>, asked: &Asked<'_>, scripts: Scripts<'_>, listed: Listed) -> Said {
    match scripts {
        Scripts::Regions(_) => asked.everywhere(on, &listed).await,
        Scripts::Feed(_) => listed.into_values().next().ok_or_else(|| {
            let why = "its script was not asked";
            (why.to_owned(), None)
        }),
    }
}

/// Gives an errand to whichever delegate asks next; what was done of it before is not done again.
async fn give(
    on: Starting<'_>,
    asked: &Asked<'_>,
    scripts: Scripts<'_>,
    out: &ErrandRecord,
) -> Result<(), RunError> {
    let Some(machine) = &on.runs.errand_machine else {
        let why = "scripts of triggers are not run from here: nothing says which machine hands them to delegates";
        return Err(RunError::refused(ErrorName::Internal, why));
    };
    for (id, _, work) in scripts.tasks(&asked.watched.feed, out) {
        let task = DelegateTaskRecord {
            id: id.clone(),
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
            Err(why) => return Err(why).doing(|| format!("give out the errand {id}")),
        }
        let input = json!({
            "task": id,
            "timeoutSeconds": seconds(out),
            "heartbeatSeconds": HEARTBEAT_SECONDS,
        });
        on.runs.start_named(machine, &id, &input).await?;
    }
    Ok(())
}

/// For how long an errand may be out.
fn seconds(out: &ErrandRecord) -> i64 {
    out.until_ms.saturating_sub(out.given_ms) / 1_000
}

async fn look(
    on: Starting<'_>,
    asked: &Asked<'_>,
    scripts: Scripts<'_>,
    out: &ErrandRecord,
) -> Result<Look, RunError> {
    let tasks = scripts.tasks(&asked.watched.feed, out);
    let mut listed = Listed::new();
    let (mut open, mut untaken, mut failed) = (Vec::new(), None, None);
    for (task, of, _) in tasks {
        match look_at(on, (&task, of), out).await? {
            Ok(Answer::Is(answer)) => drop(listed.insert(of.key(), answer)),
            Ok(Answer::Open(why)) => {
                open.push(task);
                untaken = untaken.or(why);
            }
            Err(why) => failed = failed.or(Some(why)),
        }
    }
    if let Some(why) = failed {
        // Nobody waits for the others.
        for task in open {
            cancel_task(on.runs, &task).await?;
        }
        return Ok(Look::Over(Err(why)));
    }
    Ok(match open.is_empty() {
        true => Look::Over(Ok(listed)),
        false => Look::Out(untaken),
    })
}

async fn look_at(
    on: Starting<'_>,
    (id, of): (&str, &Feed),
    out: &ErrandRecord,
) -> Result<Result<Answer, Why>, RunError> {
    let task = match on.runs.store.get_delegate_task(id).await {
        Ok(task) => Some(task),
        Err(StoreError::NotFound { .. }) => None,
        Err(why) => return Err(why).doing(|| format!("read the errand {id}")),
    };
    if let Some(result) = task.as_ref().and_then(|task| task.result.as_ref()) {
        let said = on.sources.errand_answer(of, result);
        return Ok(said
            .map(Answer::Is)
            .map_err(|fault| (fault.message, fault.wait)));
    }
    let delegate = task.as_ref().and_then(|task| task.delegate.as_deref());
    let (now_ms, limit) = (on.runs.clock.now_ms(), seconds(out));
    if now_ms >= out.until_ms {
        // Whoever has it still ends it then.
        cancel_task(on.runs, id).await?;
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
        return Ok(Err((why, None)));
    }
    let since_ms = now_ms.saturating_sub(out.given_ms);
    let untaken = delegate.is_none() && since_ms >= UNTAKEN_MS;
    Ok(Ok(Answer::Open(untaken.then(|| {
        format!(
            "no delegate has taken its script, which waits for {} s: {}",
            since_ms / 1_000,
            needed(task.as_ref())
        )
    }))))
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
