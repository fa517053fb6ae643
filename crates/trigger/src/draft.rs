//! What can be seen of a trigger as it is written: that it can never start anything, and why.
//!
//! Whoever saves it is warned, `slipway validate` tells it with its place. A schedule that cannot be read is refused when it
//! is saved.

use serde::Deserialize as _;
use slipway_model::diagnostic::nearest;
use slipway_model::{Code, Diagnostic, Kind, Parsed, Ref, yaml};

use crate::condition::Test;
use crate::key::{COMMON, Key};
use crate::text::shown;
use crate::{Operator, Schedule, Source, Trigger};

/// Where a source has its conditions.
const CONDITIONS: [&str; 4] = [
    "payloadConditions",
    "headerConditions",
    "eventConditions",
    "metaDataConditions",
];

/// The faults of a trigger; none for other entities. A schedule that never comes is one that does not after `now_ms`, epoch
/// milliseconds.
pub fn faults(parsed: &Parsed, now_ms: i64) -> Vec<Diagnostic> {
    if parsed.head.kind != Kind::Trigger {
        return Vec::new();
    }
    let mut found = refused(parsed);
    inputs(parsed, &mut found);
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

/// The inputs are a document of their own, which nothing has read when the trigger is.
fn inputs(parsed: &Parsed, found: &mut Vec<Diagnostic>) {
    let written = parsed.body().get("inputYaml");
    let text = written
        .and_then(Ref::text)
        .filter(|text| !text.trim().is_empty());
    let (Some(written), Some(text)) = (written, text) else {
        return;
    };
    if let Err(fault) = yaml::parse("inputYaml", text) {
        let message = format!(
            "the inputs cannot be read, so that the trigger starts nothing: {} (in line {} of them)",
            fault.message, fault.line
        );
        found.push(Diagnostic::at(Code::BadValue, written, message));
    }
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
                if matches!(name, "payloadConditions" | "headerConditions") {
                    key(condition, name, found);
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

/// A key that stands for nothing, or for what is taken out of an event: the condition refuses all events.
fn key(condition: Ref<'_>, name: &str, found: &mut Vec<Diagnostic>) {
    let Some(written) = condition.get("key") else {
        return;
    };
    let word = written.text().unwrap_or_default().trim();
    if word == "changedFiles" && name == "payloadConditions" {
        return;
    }
    let why = match Key::of(word) {
        Ok(key) => match key.credential() {
            Some(why) => why,
            None => return,
        },
        Err(why) => why,
    };
    let message = format!("the key `{}` of a condition: {why}", shown(word));
    let diagnostic = Diagnostic::at(Code::BadValue, written, message);
    found.push(diagnostic.suggest(nearest(word, COMMON)).warning());
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
            said[0].starts_with("16: the key `targetBranhc` of a condition: no event has it"),
            "{said:?}"
        );
        assert!(said[0].ends_with("[targetBranch]"), "{said:?}");
        let said = of("{key: payload.ref, operator: NotEquals, value: main}");
        assert!(said[0].contains("no event has it"), "{said:?}");
    }

    #[test]
    fn inputs_that_are_no_yaml_are_told() {
        let with = |inputs: &str| {
            let text = format!(
                "trigger:\n  name: t\n  identifier: t\n  orgIdentifier: o\n  projectIdentifier: p\n  source:\n    type: Webhook\n    spec:\n      type: Custom\n      spec: {{}}\n  inputYaml: |\n    pipeline:\n      identifier: x\n{inputs}"
            );
            let parsed = entity::parse("t.yaml", &text).expect("a trigger");
            let told = faults(&parsed, NOW_MS);
            told.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(with("      variables: []\n"), Vec::<String>::new());
        let said = with("      variables: [\n");
        assert!(said[0].contains("the inputs cannot be read"), "{said:?}");
        assert!(said[0].contains("t.yaml:12"), "{said:?}");
    }

    #[test]
    fn conditions_on_headers_that_are_taken_out_are_told() {
        let of = |key: &str| {
            said(&format!(
                "type: Webhook\nspec:\n  type: Custom\n  spec:\n    headerConditions:\n      - key: {key}\n        operator: Equals\n        value: x"
            ))
        };
        assert_eq!(of("<+trigger.header['X-Kind']>"), Vec::<String>::new());
        let said = of("<+trigger.header['X-My-Token']>");
        assert!(said[0].starts_with("13: "), "{said:?}");
        assert!(
            said[0].contains("`X-My-Token` looks like a credential"),
            "{said:?}"
        );
    }
}
