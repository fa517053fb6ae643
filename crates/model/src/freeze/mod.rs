//! Freezes: what their YAML means, and what in it cannot have been meant.
//!
//! A freeze that never holds anything back is worse than none: somebody relies on it. What is a mistake without doubt is
//! refused; what may be meant is a warning.

mod window;

use std::collections::BTreeSet;

use jiff::Timestamp;

pub use window::{Occurrence, Window, WindowFault, WrittenWindow};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, nearest, shown};
use crate::entity::{Kind, Parsed};
use crate::tree::Ref;
use window::{WrittenRecurrence, WrittenSpec};

/// Identifier of the freeze of a whole scope, which needs no rules.
pub const GLOBAL: &str = "_GLOBAL_";

/// The types that an environment can have.
const ENVIRONMENT_TYPES: [&str; 2] = ["Production", "PreProduction"];

/// Notes what a freeze cannot mean.
pub(crate) fn check(freeze: Ref<'_>, out: &mut Diagnostics) {
    let enabled = match freeze.get("status") {
        Some(status) => {
            no_expression(status, out);
            status.text() == Some("Enabled")
        }
        None => {
            out.warn_with(|| {
                let message = "a freeze without `status: Enabled` holds nothing back";
                Diagnostic::at(Code::MissingField, freeze, message)
            });
            false
        }
    };
    let is_global = freeze.get_text("identifier") == Some(GLOBAL);
    let windows = freeze.get("windows");
    if let Some(windows) = windows.filter(|list| list.is_list()) {
        if windows.items().len() == 0 && (enabled || !is_global) {
            let message = "a freeze without a window never holds anything back";
            noted(enabled, out, || {
                Diagnostic::at(Code::BadValue, windows, message)
            });
        }
        for window in windows.items().filter(|window| window.is_map()) {
            check_window(window, out);
        }
    }
    let rules = freeze.get("entityConfigs");
    for rule in rules.into_iter().flat_map(Ref::items) {
        check_rule(rule, out);
    }
    if !is_global && rules.is_none_or(|list| list.is_list() && list.items().len() == 0) {
        noted(enabled, out, || {
            let message = "a freeze without a rule in `entityConfigs` holds nothing back";
            Diagnostic::at(Code::BadValue, rules.unwrap_or(freeze), message)
        });
    }
}

/// What shows in a freeze only by the time: windows that are over.
pub fn over(freeze: &Parsed, now: Timestamp) -> Vec<Diagnostic> {
    if freeze.head.kind != Kind::Freeze {
        return Vec::new();
    }
    let windows = freeze.body().get("windows");
    let windows = windows.into_iter().flat_map(Ref::items);
    let over = windows.filter(|window| {
        let read = written(*window).read();
        read.is_ok_and(|window| window.at_or_after(now).is_none())
    });
    over.map(|window| {
        let until = window.at(&["recurrence", "spec", "until"]);
        let at = until.or_else(|| window.get("endTime"));
        let at = at.or_else(|| window.get("startTime")).unwrap_or(window);
        let message = "this window is over: it holds nothing back any more";
        Diagnostic::at(Code::BadValue, at, message).warning()
    })
    .collect()
}

/// A fault where the freeze is enabled. Of one that is not, it may be meant: somebody writes it yet.
fn noted(enabled: bool, out: &mut Diagnostics, fault: impl FnOnce() -> Diagnostic) {
    match enabled {
        true => out.push_with(fault),
        false => out.warn_with(fault),
    }
}

/// Notes a text that nobody ever evaluates.
fn no_expression(value: Ref<'_>, out: &mut Diagnostics) {
    for text in value.scalars().filter(|text| text.is_expression()) {
        out.push_with(|| {
            let message = "a freeze is read as it is written: an expression cannot stand here";
            Diagnostic::at(Code::BadValue, text, message)
        });
    }
}

/// A window as it is written.
fn written(window: Ref<'_>) -> WrittenWindow {
    let text = |value: Ref<'_>, field: &str| value.get_text(field).map(str::to_owned);
    let spec = |spec: Ref<'_>| WrittenSpec {
        until: text(spec, "until"),
        value: spec
            .get_text("value")
            .and_then(|value| value.trim().parse().ok()),
    };
    WrittenWindow {
        time_zone: text(window, "timeZone").unwrap_or_default(),
        start_time: text(window, "startTime").unwrap_or_default(),
        duration: text(window, "duration"),
        end_time: text(window, "endTime"),
        recurrence: window.get("recurrence").map(|value| WrittenRecurrence {
            kind: text(value, "type").unwrap_or_default(),
            spec: value.get("spec").map(spec),
        }),
    }
}

fn check_window(window: Ref<'_>, out: &mut Diagnostics) {
    no_expression(window, out);
    let faults = written(window).read().err();
    for fault in faults.into_iter().flatten() {
        // What is missing, or has not its field's form, is told by the shape of the window.
        let at = window.at(fault.field);
        let Some(at) = at.filter(|at| !fault.of_form && !at.is_expression()) else {
            continue;
        };
        if at.text().is_some_and(|text| text.trim().is_empty()) {
            continue;
        }
        let told = Diagnostic::at(Code::BadValue, at, fault.text());
        out.push(told.suggest(fault.suggestion));
    }
    let Some(recurrence) = window.get("recurrence") else {
        return;
    };
    let every = match recurrence.get_text("type") {
        Some("Daily") => "day",
        Some("Weekly") => "week",
        Some("Yearly") => "year",
        _ => return,
    };
    let value = recurrence.at(&["spec", "value"]);
    if let Some(value) = value.filter(|value| value.text() != Some("1")) {
        out.warn_with(|| {
            let message =
                format!("only `Monthly` reads `value`: this window opens again every {every}");
            Diagnostic::at(Code::BadValue, value, message)
        });
    }
}

fn check_rule(rule: Ref<'_>, out: &mut Diagnostics) {
    let Some(entities) = rule.get("entities").filter(|list| list.is_list()) else {
        return;
    };
    if entities.items().len() == 0 {
        out.warn_with(|| {
            let message = "a rule that names nothing holds every deployment back";
            Diagnostic::at(Code::BadValue, entities, message)
        });
    }
    for entity in entities.items() {
        check_entity(entity, out);
    }
    check_together(entities, out);
}

fn check_entity(entity: Ref<'_>, out: &mut Diagnostics) {
    let named = refs(entity);
    for field in ["type", "filterType", "entityRefs"] {
        if let Some(value) = entity.get(field) {
            no_expression(value, out);
        }
    }
    let unread = "`expression` is not read; name what is held back in `entityRefs`";
    let expression = entity.get("expression");
    let warn = |out: &mut Diagnostics, at: Ref<'_>, message: &str| {
        out.warn_with(|| Diagnostic::at(Code::BadValue, at, message));
    };
    match (entity.get_text("filterType"), named.is_empty()) {
        (Some("Equals"), true) => out.push_with(|| {
            let message = "`Equals` without a name in `entityRefs` fits nothing, so that its rule holds nothing back";
            let (at, message) = match expression {
                Some(at) => (at, format!("{message}; {unread}")),
                None => (entity.get("entityRefs").unwrap_or(entity), message.to_owned()),
            };
            Diagnostic::at(Code::BadValue, at, message)
        }),
        (Some("NotEquals"), true) => warn(
            out,
            entity,
            "`NotEquals` without a name in `entityRefs` leaves nothing out; `All` says so",
        ),
        (Some("All"), false) => {
            let at = entity.get("entityRefs").unwrap_or(entity);
            warn(out, at, "`entityRefs` is not read where `filterType` is All");
        }
        _ => {
            if let Some(at) = expression {
                warn(out, at, unread);
            }
        }
    }
    if entity.get_text("type") != Some("EnvType") {
        return;
    }
    for (at, name) in named {
        if !ENVIRONMENT_TYPES.contains(&name) && !at.is_expression() {
            out.push_with(|| {
                let message = format!("`{}` is no type of an environment", shown(name));
                let fault = Diagnostic::at(Code::BadValue, at, message);
                let fault = fault.expected(ENVIRONMENT_TYPES.join(" or "));
                fault.suggest(nearest(name, ENVIRONMENT_TYPES))
            });
        }
    }
}

/// The names in `entityRefs`, a list or one text.
pub fn refs(entity: Ref<'_>) -> Vec<(Ref<'_>, &str)> {
    let Some(refs) = entity.get("entityRefs") else {
        return Vec::new();
    };
    let own = refs.text().map(|_| refs);
    let all = own.into_iter().chain(refs.items());
    let named = all.filter_map(|at| Some((at, at.text()?.trim())));
    named.filter(|(_, name)| !name.is_empty()).collect()
}

/// Notes two entities of a rule that cannot both fit: one deployment has one service, one environment and so on.
fn check_together(entities: Ref<'_>, out: &mut Diagnostics) {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let one = |entity: Ref<'_>| -> BTreeSet<String> {
        let names = refs(entity).into_iter();
        names.map(|(_, name)| last(name)).collect()
    };
    let equals = |entity: &Ref<'_>| {
        entity.get_text("filterType") == Some("Equals") && !refs(*entity).is_empty()
    };
    let all: Vec<_> = entities
        .items()
        .filter(equals)
        .take(MOST_TOGETHER)
        .collect();
    for (index, entity) in all.iter().enumerate() {
        let kind = entity.get_text("type");
        let known = all.iter().take(index);
        let mut alike = known.filter(|other| other.get_text("type") == kind);
        if alike.any(|other| one(*other).is_disjoint(&one(*entity))) {
            out.push_with(|| {
                let kind = kind.unwrap_or_default();
                let message = format!(
                    "all of a rule must fit, and nothing fits this and another {kind} of the rule: name both in one \
                     `entityRefs`, or give each a rule of its own"
                );
                Diagnostic::at(Code::BadValue, *entity, message)
            });
        }
    }
}

/// Entities of a rule that are compared with one another; there are six types.
const MOST_TOGETHER: usize = 20;

#[cfg(test)]
mod tests;
