//! What becomes of messages whose receiver is away: they are kept, and when it is back it gets one message that sums them
//! up, instead of all of them at once.
//!
//! The first message that is not taken goes on trying, in its own execution: it holds the lease of the receiver. Messages
//! after it are kept beside it and their executions end. Who holds the lease sends all that is kept. Where it gives up,
//! after about a day, its lease ends, and the next message for this receiver takes it and goes on with what is kept. A
//! receiver is one address of one rule; [`MissedRecord`]s are bounded, and what had no room is counted.
//!
//! A message that nothing else waits with is sent as it is.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use slipway_engine::error::{Doing, HandlerError};
use slipway_engine::error_name::ErrorName;
use slipway_store::{Missed, MissedRecord, StoreError};

use crate::message::{Message, Severity, shown, time};
use crate::rule::{Rule, later};
use crate::{Deps, channel};

/// How long who tries may be silent: the machine tries at least every hour, and an attempt takes a minute at most.
const LEASE: Duration = Duration::from_secs(2 * 3_600);

/// Sends a message to a receiver of a rule, with those that it missed before; `false` where somebody else sends it later.
pub(crate) async fn deliver(
    deps: &Deps,
    mut rule: Rule<'_>,
    receiver: usize,
    message: Message,
) -> Result<bool, HandlerError> {
    let sent = attempt(deps, &mut rule, receiver, &message).await;
    let sent = sent.map_err(|error| rule.told(error))?;
    tracing::info!(
        notification.id = message.id,
        notification.rule = rule.name(),
        "{}",
        if sent {
            "notification sent"
        } else {
            "notification kept: its receiver is away"
        }
    );
    Ok(sent)
}

async fn attempt(
    deps: &Deps,
    rule: &mut Rule<'_>,
    receiver: usize,
    message: &Message,
) -> Result<bool, HandlerError> {
    rule.turn_to(&deps.runs.store, receiver).await?;
    let whom = rule.receiver(receiver);
    if missed(deps, &whom).await?.messages.is_empty() {
        match channel::send(deps, rule, receiver, message).await {
            Err(error) if error.name == ErrorName::NotDelivered => {
                keep(deps, &whom, message).await?;
                return match leads(deps, &whom, message).await? {
                    true => Err(error),
                    false => Ok(false),
                };
            }
            sent => return sent.map(|()| true),
        }
    }
    keep(deps, &whom, message).await?;
    // Who keeps a message while it is being led elsewhere finds the lease taken: it is looked again after giving it back.
    while !missed(deps, &whom).await?.messages.is_empty() {
        if !leads(deps, &whom, message).await? {
            return Ok(false);
        }
        let sent = send_kept(deps, rule, receiver, &whom).await;
        if matches!(&sent, Err(error) if error.name != ErrorName::DeliveryRefused) {
            return sent.map(|()| true);
        }
        let name = lease(&whom);
        let given_back = deps.runs.store.release_lease(&name, &message.id).await;
        given_back.doing(|| "give the lease of a receiver back".to_owned())?;
        sent?;
    }
    Ok(true)
}

/// Sends all that a receiver has missed, as one message.
async fn send_kept(
    deps: &Deps,
    rule: &mut Rule<'_>,
    receiver: usize,
    whom: &str,
) -> Result<(), HandlerError> {
    let kept = missed(deps, whom).await?;
    if kept.messages.is_empty() {
        return Ok(());
    }
    let sent = channel::send(deps, rule, receiver, &summed_up(&kept)?).await;
    // What the receiver refuses it will never take.
    if sent
        .as_ref()
        .err()
        .is_none_or(|error| error.name == ErrorName::DeliveryRefused)
    {
        let forgotten = deps.runs.store.forget_missed(whom, &kept).await;
        forgotten.doing(|| "forget what a receiver has missed".to_owned())?;
    }
    sent
}

async fn missed(deps: &Deps, whom: &str) -> Result<Missed, HandlerError> {
    let missed = deps.runs.store.missed(whom).await;
    Ok(missed.doing(|| "read what a receiver has missed".to_owned())?)
}

async fn keep(deps: &Deps, whom: &str, message: &Message) -> Result<(), HandlerError> {
    let record = MissedRecord {
        id: message.id.clone(),
        at_ms: message.at.as_millisecond(),
        message: serde_json::to_value(message)
            .map_err(|error| later(format!("the message cannot be kept: {error}")))?,
    };
    match deps.runs.store.keep_missed(whom, &record).await {
        // Too many keep messages for this receiver at this moment.
        Err(StoreError::Conflict { .. } | StoreError::AlreadyExists { .. }) => {
            Err(later("the message could not be kept yet"))
        }
        kept => Ok(kept.doing(|| "keep a message whose receiver is away".to_owned())?),
    }
}

/// Whether a message is the one that tries to reach the receiver.
async fn leads(deps: &Deps, whom: &str, message: &Message) -> Result<bool, HandlerError> {
    let store = &deps.runs.store;
    let taken = store.take_lease(&lease(whom), &message.id, LEASE).await;
    Ok(taken.doing(|| "take the lease of a receiver".to_owned())?)
}

fn lease(whom: &str) -> String {
    format!("receiver-{whom}")
}

/// One message about all that was missed.
fn summed_up(missed: &Missed) -> Result<Message, HandlerError> {
    let read = missed.messages.iter().map(|record| {
        serde_json::from_value::<Message>(record.message.clone())
            .map_err(|error| later(format!("a kept message cannot be read: {error}")))
    });
    let mut messages: Vec<Message> = read.collect::<Result<_, _>>()?;
    if let ([_], 0) = (messages.as_slice(), missed.left_out) {
        return Ok(messages.remove(0));
    }
    let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
    let total = count.saturating_add(missed.left_out);
    let (from, until) = (ends(missed, true), ends(missed, false));
    let mut facts = Vec::with_capacity(messages.len() + 1);
    if missed.left_out > 0 {
        let left_out = format!("{} older messages", missed.left_out);
        facts.push(("Left out".into(), left_out));
    }
    facts.extend(messages.iter().map(|message| {
        let at = shown(message.at);
        (at.into(), message.headline.clone())
    }));
    let mut digest = Sha256::new();
    for message in &messages {
        digest.update(message.id.as_bytes());
        digest.update(b"\n");
    }
    let id: String = digest.finalize()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let events: Vec<Value> = messages
        .iter()
        .map(|message| message.data.clone())
        .collect();
    Ok(Message {
        id: format!("digest-{id}"),
        run: "digest".to_owned(),
        at: time(until),
        severity: messages
            .iter()
            .map(|message| message.severity)
            .max()
            .unwrap_or(Severity::Info),
        headline: format!(
            "{total} messages that could not be delivered, from {} to {}",
            shown(time(from)),
            shown(time(until))
        ),
        facts,
        link: None,
        data: json!({
            "eventType": "Digest",
            "missed": total,
            "leftOut": missed.left_out,
            "startTs": from.div_euclid(1_000),
            "endTs": until.div_euclid(1_000),
            "events": events,
        }),
        custom: None,
    })
}

fn ends(missed: &Missed, first: bool) -> i64 {
    let one = match first {
        true => missed.messages.first(),
        false => missed.messages.last(),
    };
    one.map_or(0, |record| record.at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: i64, severity: Severity) -> MissedRecord {
        let message = Message {
            id: format!("m{number}"),
            run: "r".to_owned(),
            at: time(number * 60_000),
            severity,
            headline: format!("Pipeline {number} ended"),
            facts: vec![("Run".into(), "#1".to_owned())],
            link: None,
            data: json!({"eventType": "PipelineEnd", "number": number}),
            custom: None,
        };
        MissedRecord {
            id: message.id.clone(),
            at_ms: number * 60_000,
            message: serde_json::to_value(message).expect("JSON"),
        }
    }

    #[test]
    fn one_message_is_sent_as_it_is_and_several_are_summed_up() {
        let one = Missed {
            messages: vec![record(1, Severity::Info)],
            left_out: 0,
        };
        let told = summed_up(&one).expect("a message");
        assert_eq!((told.id.as_str(), told.facts.len()), ("m1", 1));
        let several = Missed {
            messages: vec![
                record(1, Severity::Error),
                record(2, Severity::Info),
                record(90, Severity::Success),
            ],
            left_out: 4,
        };
        let told = summed_up(&several).expect("a message");
        assert_eq!(told.severity, Severity::Error);
        insta::assert_snapshot!(told.text(), @"
        7 messages that could not be delivered, from 1970-01-01 00:01:00 UTC to 1970-01-01 01:30:00 UTC
        Left out: 4 older messages
        1970-01-01 00:01:00 UTC: Pipeline 1 ended
        1970-01-01 00:02:00 UTC: Pipeline 2 ended
        1970-01-01 01:30:00 UTC: Pipeline 90 ended
        ");
        insta::assert_snapshot!(told.data, @r#"{"eventType":"Digest","missed":7,"leftOut":4,"startTs":60,"endTs":5400,"events":[{"eventType":"PipelineEnd","number":1},{"eventType":"PipelineEnd","number":2},{"eventType":"PipelineEnd","number":90}]}"#);
        assert_eq!(told.id, summed_up(&several).expect("again").id);
    }
}
