//! What can be seen of a trigger as it is written: that it can never start anything, and why.
//!
//! Whoever saves it is warned, `slipway validate` tells it with its place. A schedule that cannot be read is refused when it
//! is saved.

use serde::Deserialize as _;
use slipway_model::diagnostic::nearest;
use slipway_model::{Code, Diagnostic, Kind, Parsed, Ref};

use crate::condition::Test;
use crate::{Operator, Schedule, Source, Trigger};

/// Where a source has its conditions.
const CONDITIONS: [&str; 4] = [
    "payloadConditions",
    "headerConditions",
    "eventConditions",
    "metaDataConditions",
];

/// Keys of payload conditions that are no expressions (`v0/trigger`: `payload-conditions`, and the names of
/// `<+trigger.…>` that Harness's documentation lets stand alone).
const KEYS: [&str; 6] = [
    "sourceBranch",
    "targetBranch",
    "changedFiles",
    "branch",
    "tag",
    "prTitle",
];

/// The faults of a trigger; none for other entities. A schedule that never comes is one that does not after `now_ms`, epoch
/// milliseconds.
pub fn faults(parsed: &Parsed, now_ms: i64) -> Vec<Diagnostic> {
    if parsed.head.kind != Kind::Trigger {
        return Vec::new();
    }
    let mut found = refused(parsed);
    let Some(spec) = parsed.body().at(&["source", "spec"]) else {
        return found;
    };
    if let (Some(expression), true) = (spec.at(&["spec", "expression"]), found.is_empty())
        && let Some(Ok(schedule)) = schedule(parsed)
        && schedule.next_after(now_ms).is_none()
    {
        let why = "the schedule never comes: there is no such time from now on";
        found.push(Diagnostic::at(Code::BadValue, expression, why));
    }
    conditions(spec, &mut found);
    found
}

/// Why a trigger cannot be saved, beyond its shape: a schedule that cannot be read, or that comes too often.
pub fn refused(parsed: &Parsed) -> Vec<Diagnostic> {
    let spec = parsed.body().at(&["source", "spec", "spec"]);
    let expression = spec.and_then(|spec| spec.get("expression"));
    let (Some(spec), Some(expression)) = (spec, expression) else {
        return Vec::new();
    };
    let (at, why) = match schedule(parsed) {
        None => return Vec::new(),
        Some(Err((why, of_zone))) => {
            let zone = spec.get("timezone").filter(|_| of_zone);
            (zone.unwrap_or(expression), why)
        }
        Some(Ok(schedule)) => match schedule.check() {
            Ok(()) => return Vec::new(),
            Err(why) => (expression, why),
        },
    };
    vec![Diagnostic::at(Code::BadValue, at, why)]
}

/// The schedule of a trigger; why it is none, and whether that is its time zone's fault. `None` for triggers without one.
fn schedule(parsed: &Parsed) -> Option<Result<Schedule, (String, bool)>> {
    let Ok(Source::Scheduled {
        expression,
        quartz,
        time_zone,
    }) = Trigger::of(parsed).map(|trigger| trigger.source)
    else {
        return None;
    };
    let read = |zone| Schedule::of(&expression, quartz, zone);
    Some(read(time_zone.as_deref()).map_err(|why| (why, read(None).is_ok())))
}

/// Conditions stand in the spec of a source, or in the spec of its event.
fn conditions(spec: Ref<'_>, found: &mut Vec<Diagnostic>) {
    let inner = spec.get("spec");
    let innermost = inner.and_then(|spec| spec.get("spec"));
    for holder in [Some(spec), inner, innermost].into_iter().flatten() {
        for name in CONDITIONS {
            let listed = holder.get(name).into_iter().flat_map(Ref::items);
            for condition in listed {
                operand(condition, name, found);
                if name == "payloadConditions" {
                    key(condition, found);
                }
            }
        }
    }
}

fn operand(condition: Ref<'_>, name: &str, found: &mut Vec<Diagnostic>) {
    let (Some(value), Some(operator)) = (condition.get("value"), condition.get_text("operator"))
    else {
        return;
    };
    // Another word was a fault when the entity was read.
    let operator = Operator::deserialize(&serde_json::Value::from(operator)).ok();
    let (Some(operator), Some(text)) = (operator, value.text().filter(|text| !text.contains("<+")))
    else {
        return;
    };
    let paths = condition.get_text("key").map(str::trim) == Some("changedFiles");
    if let Err(why) = Test::new(operator, text, paths) {
        let message = format!("a condition of `{name}` that can never be decided: {why}");
        found.push(Diagnostic::at(Code::BadValue, value, message));
    }
}

/// A word that is none of the known ones is read as an expression, whose value no event has unless it begins as those do.
fn key(condition: Ref<'_>, found: &mut Vec<Diagnostic>) {
    let Some(written) = condition.get("key") else {
        return;
    };
    let word = written.text().unwrap_or_default().trim();
    let plain = !word.is_empty() && word.chars().all(|sign| sign.is_ascii_alphanumeric());
    if !plain || KEYS.contains(&word) || crate::facts::is_name(word) {
        return;
    }
    let message = format!(
        "no event has `{word}`: a key is one of {}, or an expression such as <+trigger.payload.NAME>",
        KEYS.join(", ")
    );
    let diagnostic = Diagnostic::at(Code::BadValue, written, message);
    found.push(diagnostic.suggest(nearest(word, KEYS)).warning());
}

#[cfg(test)]
mod tests {
    use slipway_model::{Severity, entity};

    use super::faults;

    /// 2026-01-01T00:00:00Z.
    const NOW_MS: i64 = 1_767_225_600_000;

    /// What is said of a trigger with this source, each with `!` where it is a fault, its line, and its message.
    fn said(source: &str) -> Vec<String> {
        let mut text = "trigger:\n  name: t\n  identifier: t\n  orgIdentifier: o\n  projectIdentifier: p\n  pipelineIdentifier: x\n  source:\n".to_owned();
        for line in source.lines() {
            text.push_str("    ");
            text.push_str(line);
            text.push('\n');
        }
        let parsed = entity::parse("t.yaml", &text).expect("a trigger");
        let found = faults(&parsed, NOW_MS);
        let shown = found.iter().map(|one| {
            let sign = if one.severity == Severity::Error {
                "!"
            } else {
                ""
            };
            let hint = one.suggestion.as_deref().unwrap_or_default();
            format!("{sign}{}: {} [{hint}]", one.line, one.message)
        });
        shown.collect()
    }

    fn cron(kind: &str, expression: &str, zone: &str) -> Vec<String> {
        said(&format!(
            "type: Scheduled\nspec:\n  type: Cron\n  spec:\n    type: {kind}\n    expression: '{expression}'\n    timezone: {zone}"
        ))
    }

    #[test]
    fn schedules_that_are_refused_or_never_come_are_told_with_their_line() {
        assert_eq!(
            cron("UNIX", "0 4 * * *", "Europe/Berlin"),
            Vec::<String>::new()
        );
        for (kind, expression, zone, line, part) in [
            ("UNIX", "* * * * *", "UTC", 13, "1 min apart"),
            ("QUARTZ", "0 0 4 0 * ?", "UTC", 13, "cron expression"),
            ("UNIX", "61 * * * *", "UTC", 13, "61"),
            ("UNIX", "0 4 * * *", "Mars/Olympus", 14, "Mars/Olympus"),
            ("UNIX", "0 0 30 2 *", "UTC", 13, "never comes"),
            ("QUARTZ", "0 0 4 1 1 ? 2020", "UTC", 13, "never comes"),
        ] {
            let said = cron(kind, expression, zone);
            let [one] = &*said else {
                panic!("{expression}: {said:?}")
            };
            assert!(one.starts_with(&format!("!{line}:")), "{one}");
            assert!(one.contains(part), "{one}");
        }
    }

    #[test]
    fn conditions_that_can_never_hold_are_told_with_the_nearest_key() {
        let of = |condition: &str| {
            said(&format!(
                "type: Webhook\nspec:\n  type: Github\n  spec:\n    type: Push\n    spec:\n      connectorRef: c\n      payloadConditions:\n        - {condition}"
            ))
        };
        for fine in [
            "{key: targetBranch, operator: Regex, value: 'release/.*'}",
            "{key: changedFiles, operator: In, value: 'docs/**'}",
            "{key: <+trigger.payload.x>, operator: Regex, value: '(<+x>'}",
            "{key: prNumber, operator: Equals, value: '1'}",
            "{key: eventPayload.ref, operator: Equals, value: x}",
        ] {
            assert_eq!(of(fine), Vec::<String>::new(), "{fine}");
        }
        let said = of("{key: targetBranch, operator: Regex, value: '(main'}");
        assert!(said[0].starts_with("!16:"), "{said:?}");
        let said = of("{key: targetBranhc, operator: Equals, value: main}");
        assert!(
            said[0].starts_with("16: no event has `targetBranhc`"),
            "{said:?}"
        );
        assert!(said[0].ends_with("[targetBranch]"), "{said:?}");
    }
}
