//! A delegate that plays scripts instead of running them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use slipway_steps::delegate::{UNSUITABLE, suits};
use slipway_steps::shell::artifacts::Listing;
use slipway_store::Store;

/// Its name.
const NAME: &str = "d1";

/// How long it waits before it asks again where Step Functions does not answer.
const AWAY: Duration = Duration::from_secs(1);

/// Its tags.
const TAGS: &[&str] = &["linux", "in-eu"];

/// What a delegate was given to do: task ids in the order of its work, once per claim; and what it finds where scripts look.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    done: Arc<Mutex<Vec<String>>>,
    found: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Deeds {
    /// The ids of the tasks that were done.
    pub fn list(&self) -> Vec<String> {
        let done = self.done.lock();
        done.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on the script `list from NAME` lists this.
    pub fn lists(&self, name: &str, list: &str) {
        let found = self.found.lock();
        let mut found = found.unwrap_or_else(PoisonError::into_inner);
        found.insert(name.to_owned(), list.to_owned());
    }

    fn add(&self, task: &str) {
        let done = self.done.lock();
        let mut done = done.unwrap_or_else(PoisonError::into_inner);
        done.push(task.to_owned());
    }

    fn found(&self, name: &str) -> String {
        let found = self.found.lock();
        let found = found.unwrap_or_else(PoisonError::into_inner);
        found.get(name).cloned().unwrap_or_default()
    }
}

/// Plays scripts: `fail` fails, `fail until N` fails before attempt N, `vanish` never answers, `hang` is killed when its time is up,
/// `exit A B` ends with the exit code A in the first attempt and with B from then on, `NAME=value` sets an output
/// variable, `list JSON` lists artifacts for who asks for them, `list from NAME` what [`Deeds::lists`] has, and `NAME=#` sets it to how many tasks were done so far; `false` and `test N -ge M` do what they do in
/// bash; anything else succeeds.
pub(crate) async fn work(sfn: aws_sdk_sfn::Client, store: Store, activity: String, deeds: Deeds) {
    loop {
        let task = sfn.get_activity_task().activity_arn(&activity).send().await;
        let Ok(task) = task else {
            // Step Functions is away, and comes back.
            tokio::time::sleep(AWAY).await;
            continue;
        };
        let Some(token) = task.task_token else {
            continue;
        };
        let input: Value =
            serde_json::from_str(task.input.as_deref().unwrap_or("null")).expect("an input");
        let id = input["task"].as_str().expect("a task id");
        let complete = || {
            let done = sfn.send_task_success().task_token(&token);
            done.output("{}").send()
        };
        if !carries(&store, id).await {
            let _ = store.note_unsuitable(id, NAME).await;
            let refused = sfn.send_task_failure().task_token(&token);
            let _ = refused.error(UNSUITABLE).send().await;
            continue;
        }
        let Ok(claimed) = store.claim_delegate_task(id, NAME).await else {
            // It was cancelled, or has a result: nothing is to be done any more.
            let _ = complete().await;
            continue;
        };
        deeds.add(id);
        let script = claimed.payload["script"].as_str().unwrap_or_default();
        if script.trim() == "hang" {
            let limit = claimed.payload["timeoutSeconds"].as_u64();
            let limit = Duration::from_secs(limit.expect("how long it may take"));
            let (store, done, id) = (store.clone(), sfn.send_task_success(), id.to_owned());
            let done = done.task_token(&token).output("{}");
            tokio::spawn(async move {
                tokio::time::sleep(limit).await;
                let timed_out = json!({"status": "TIMEOUT"});
                let _ = store.finish_delegate_task(&id, &timed_out).await;
                let _ = done.send().await;
            });
            continue;
        }
        let listed = list(script, &claimed.payload["artifacts"], &deeds);
        let played = || play(script, claimed.attempt, deeds.list().len());
        let Some(result) = listed.or_else(played) else {
            continue;
        };
        // Refused where the task was cancelled meanwhile, which is as good.
        let _ = store.finish_delegate_task(id, &result).await;
        let _ = complete().await;
    }
}

/// Whether it carries what a task asks for, as the API would find.
async fn carries(store: &Store, id: &str) -> bool {
    let tags: Vec<String> = TAGS.iter().map(|tag| (*tag).to_owned()).collect();
    let task = store.get_delegate_task(id).await;
    task.is_ok_and(|task| suits(&tags, NAME, &task.selectors))
}

/// What a script comes to that lists artifacts.
fn list(script: &str, asked: &Value, deeds: &Deeds) -> Option<Value> {
    let list = script.trim().strip_prefix("list ")?;
    let list = match list.strip_prefix("from ") {
        Some(name) => deeds.found(name),
        None => list.to_owned(),
    };
    let listing: Listing = serde_json::from_value(asked.clone()).expect("what is asked of it");
    let list = list.as_bytes();
    let read = match listing.every {
        true => listing
            .all(list, str::to_owned)
            .map(|all| json!({"artifacts": all})),
        false => listing
            .choose(list, str::to_owned)
            .map(|one| json!({"artifact": one})),
    };
    let (mut result, status) = match read {
        Ok(read) => (read, "SUCCESS"),
        Err(message) => (json!({"message": message}), "FAILURE"),
    };
    result["status"] = status.into();
    result["exitCode"] = 0.into();
    Some(result)
}

fn play(script: &str, attempt: u32, done: usize) -> Option<Value> {
    let script = script.trim();
    if let Some(codes) = script.strip_prefix("exit ") {
        let codes: Vec<i32> = codes
            .split_whitespace()
            .map(|code| code.parse().expect("an exit code"))
            .collect();
        let at = usize::try_from(attempt).expect("a number");
        let code = codes.get(at).or(codes.last()).expect("an exit code");
        let status = if *code == 0 { "SUCCESS" } else { "FAILURE" };
        return Some(json!({"status": status, "exitCode": code}));
    }
    let number = |text: &str| text.trim().parse::<u32>().expect("a number");
    let tested = script
        .strip_prefix("test ")
        .and_then(|test| test.split_once(" -ge "));
    let fails = match (script.strip_prefix("fail until "), tested) {
        (Some(until), _) => attempt < number(until),
        (None, Some((found, least))) => number(found) < number(least),
        (None, None) => matches!(script, "fail" | "false"),
    };
    if script == "vanish" {
        return None;
    }
    if fails {
        return Some(json!({"status": "FAILURE", "exitCode": 1}));
    }
    let outputs: serde_json::Map<String, Value> = script
        .split_once('=')
        .map(|(name, value)| {
            (
                name.to_owned(),
                value.replace('#', &done.to_string()).into(),
            )
        })
        .into_iter()
        .collect();
    Some(json!({"status": "SUCCESS", "exitCode": 0, "outputs": outputs}))
}
