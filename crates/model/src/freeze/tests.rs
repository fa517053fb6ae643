use crate::diagnostic::{Diagnostic, Severity};
use crate::entity;

const RULES: &str = "[{name: r, entities: [{type: Service, filterType: All}]}]";
const WINDOW: &str = "{timeZone: UTC, startTime: 2026-01-01 10:00 AM, duration: 1h}";

fn freeze(head: &str, rules: &str, window: &str) -> String {
    format!(
        "freeze:\n  identifier: winter\n  name: Winter\n  {head}\n  entityConfigs: {rules}\n  windows:\n    - {window}\n"
    )
}

fn shown(found: &[Diagnostic]) -> Vec<String> {
    let line = |one: &Diagnostic| {
        let Diagnostic { line, column, .. } = one;
        let severity = match one.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        assert!(*line > 0 && *column > 0, "{one}");
        let text = one.to_string();
        let text = text
            .splitn(4, ':')
            .nth(3)
            .unwrap_or_default()
            .trim()
            .to_owned();
        format!("{line}: {severity}{text}")
    };
    found.iter().map(line).collect()
}

/// What is said of a freeze.
fn told(yaml: &str) -> Vec<String> {
    match entity::parse("f.yaml", yaml) {
        Ok(parsed) => shown(&parsed.warnings),
        Err(found) => shown(&found),
    }
}

fn of_rules(rules: &str) -> Vec<String> {
    told(&freeze("status: Enabled", rules, WINDOW))
}

fn of_entity(entity: &str) -> Vec<String> {
    of_rules(&format!("[{{name: r, entities: [{entity}]}}]"))
}

fn of_window(window: &str) -> Vec<String> {
    told(&freeze("status: Enabled", RULES, window))
}

#[test]
fn a_freeze_that_means_something_is_told_nothing() {
    let none: [&str; 0] = [];
    assert_eq!(of_rules(RULES), none);
    for fine in [
        "{type: Service, filterType: Equals, entityRefs: [account.a, b]}",
        "{type: Service, filterType: NotEquals, entityRefs: a}",
        "{type: EnvType, filterType: Equals, entityRefs: [Production]}",
        "{type: EnvType, filterType: NotEquals, entityRefs: [PreProduction]}",
        "{type: Service, filterType: Equals, entityRefs: [a, b]}, {type: Service, filterType: Equals, entityRefs: [b]}",
        "{type: Service, filterType: Equals, entityRefs: [a]}, {type: Pipeline, filterType: Equals, entityRefs: [b]}",
    ] {
        assert_eq!(of_entity(fine), none, "{fine}");
    }
    for fine in [
        "{timeZone: Asia/Calcutta, startTime: 2026-01-01 10:00 AM, endTime: 2026-01-01 10:30 AM}",
        "{timeZone: UTC, startTime: 2026-01-01 10:00 AM, duration: 30m, recurrence: {type: Monthly, spec: {value: 3}}}",
        "{timeZone: UTC, startTime: 2026-01-01 10:00 AM, duration: 30m, recurrence: {type: Daily, spec: {value: 1, until: 2026-01-01 10:00 AM}}}",
    ] {
        assert_eq!(of_window(fine), none, "{fine}");
    }
    let global = "freeze: {identifier: _GLOBAL_, name: All, status: Disabled, windows: []}";
    assert_eq!(told(global), none);
}

#[test]
fn a_window_that_is_none_is_told_where_it_stands() {
    let table = [
        (
            "{timeZone: Europe/Berln, startTime: 2026-01-01 10:00 AM, duration: 1h}",
            "7: freeze.windows[0].timeZone: `Europe/Berln` is no time zone; expected a name such as Europe/Berlin or UTC; \
             did you mean `Europe/Berlin`?",
        ),
        (
            "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, endTime: 2026-01-01 10:00 AM}",
            "7: freeze.windows[0].endTime: `2026-01-01 10:00 AM` is not after `startTime`",
        ),
        (
            "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, duration: 29m}",
            "7: freeze.windows[0].duration: the window is shorter than 30 minutes, the least that it may be",
        ),
        (
            "{timeZone: UTC, startTime: 2026-02-30 01:00 PM, duration: 1h}",
            "7: freeze.windows[0].startTime: `2026-02-30 01:00 PM` is no time; expected a day and a time such as 2026-12-24 10:00 PM",
        ),
        (
            "{timeZone: UTC, startTime: '2026-11-23 22:00', duration: 1h}",
            "7: freeze.windows[0].startTime: `2026-11-23 22:00` is no time; expected a day and a time such as 2026-12-24 10:00 PM",
        ),
        (
            "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, duration: 1h, recurrence: {type: Daily, spec: {until: x}}}",
            "7: freeze.windows[0].recurrence.spec.until: `x` is no time; expected a day and a time such as 2026-12-24 10:00 PM",
        ),
        (
            "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, duration: 1h, recurrence: {type: Daily, spec: {until: 2026-01-01 10:00 AM}}}",
            "7: freeze.windows[0].recurrence.spec.until: it ends before `startTime`, so that the window never opens",
        ),
        (
            "{timeZone: <+input>, startTime: 2026-01-02 10:00 AM, duration: 1h}",
            "7: freeze.windows[0].timeZone: a freeze is read as it is written: an expression cannot stand here",
        ),
        (
            "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, duration: 1h, recurrence: {type: Weekly, spec: {value: 3}}}",
            "7: warning: freeze.windows[0].recurrence.spec.value: only `Monthly` reads `value`: this window opens again every week",
        ),
    ];
    for (window, expected) in table {
        assert_eq!(of_window(window), [expected], "{window}");
    }
    // What has not its field's form is told once.
    for wrong in [
        "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, duration: soon}",
        "{timeZone: UTC, startTime: 2026-01-02 10:00 AM}",
        "{timeZone: UTC, duration: 1h}",
        "{timeZone: '', startTime: 2026-01-02 10:00 AM, duration: 1h}",
        "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, duration: 1h, recurrence: {type: Hourly}}",
        "{timeZone: UTC, startTime: 2026-01-02 10:00 AM, duration: 1h, recurrence: {type: Monthly, spec: {value: 12}}}",
    ] {
        assert_eq!(of_window(wrong).len(), 1, "{wrong}: {:?}", of_window(wrong));
    }
}

#[test]
fn a_rule_that_never_fits_is_refused_and_an_odd_one_is_told() {
    let table = [
        (
            "{type: Service, filterType: Equals}",
            "freeze.entityConfigs[0].entities[0]: `Equals` without a name in `entityRefs` fits nothing, so that its rule holds \
             nothing back",
        ),
        (
            "{type: Service, filterType: Equals, entityRefs: ['']}",
            "freeze.entityConfigs[0].entities[0].entityRefs: `Equals` without a name in `entityRefs` fits nothing, so that its \
             rule holds nothing back",
        ),
        (
            "{type: Service, filterType: Equals, expression: <+x>}",
            "freeze.entityConfigs[0].entities[0].expression: `Equals` without a name in `entityRefs` fits nothing, so that its \
             rule holds nothing back; `expression` is not read; name what is held back in `entityRefs`",
        ),
        (
            "{type: EnvType, filterType: Equals, entityRefs: [Prod]}",
            "freeze.entityConfigs[0].entities[0].entityRefs[0]: `Prod` is no type of an environment; expected Production or \
             PreProduction; did you mean `Production`?",
        ),
        (
            "{type: EnvType, filterType: NotEquals, entityRefs: production}",
            "freeze.entityConfigs[0].entities[0].entityRefs: `production` is no type of an environment; expected Production or \
             PreProduction; did you mean `Production`?",
        ),
        (
            "{type: Service, filterType: Equals, entityRefs: [<+service.identifier>]}",
            "freeze.entityConfigs[0].entities[0].entityRefs[0]: a freeze is read as it is written: an expression cannot stand \
             here",
        ),
        (
            "{type: Service, filterType: Equals, entityRefs: [a]}, {type: Service, filterType: Equals, entityRefs: [b]}",
            "freeze.entityConfigs[0].entities[1]: all of a rule must fit, and nothing fits this and another Service of the \
             rule: name both in one `entityRefs`, or give each a rule of its own",
        ),
        (
            "{type: Service, filterType: NotEquals}",
            "warning: freeze.entityConfigs[0].entities[0]: `NotEquals` without a name in `entityRefs` leaves nothing out; \
             `All` says so",
        ),
        (
            "{type: Service, filterType: All, entityRefs: [a]}",
            "warning: freeze.entityConfigs[0].entities[0].entityRefs: `entityRefs` is not read where `filterType` is All",
        ),
        (
            "",
            "warning: freeze.entityConfigs[0].entities: a rule that names nothing holds every deployment back",
        ),
    ];
    for (entity, expected) in table {
        assert_eq!(of_entity(entity), [format!("5: {expected}")], "{entity}");
    }
}

#[test]
fn a_freeze_of_nothing_is_refused_once_it_is_enabled() {
    let of = |head: &str| told(&freeze(head, "[]", WINDOW));
    let nothing =
        "freeze.entityConfigs: a freeze without a rule in `entityConfigs` holds nothing back";
    assert_eq!(of("status: Enabled"), [format!("5: {nothing}")]);
    assert_eq!(of("status: Disabled"), [format!("5: warning: {nothing}")]);
    let without = "a freeze without `status: Enabled` holds nothing back";
    assert_eq!(
        of("description: none"),
        [
            format!("2: warning: freeze: {without}"),
            format!("5: warning: {nothing}"),
        ]
    );
    let unopened = |id: &str| {
        told(&format!(
            "freeze: {{identifier: {id}, name: n, status: Enabled, entityConfigs: {RULES}, windows: []}}"
        ))
    };
    let expected = ["1: freeze.windows: a freeze without a window never holds anything back"];
    assert_eq!(unopened("winter"), expected);
    assert_eq!(unopened(super::GLOBAL), expected);
}

#[test]
fn a_window_that_is_over_is_told() {
    let over = |window: &str, now: &str| {
        let parsed = entity::parse("f.yaml", &freeze("status: Enabled", RULES, window));
        let now = now.parse().expect("a time");
        shown(&super::over(&parsed.expect("a freeze"), now))
    };
    let none: [&str; 0] = [];
    assert_eq!(over(WINDOW, "2026-01-01T10:59:59Z"), none);
    let told = |field: &str| {
        [format!(
            "7: warning: freeze.windows[0].{field}: this window is over: it holds nothing back any more"
        )]
    };
    assert_eq!(over(WINDOW, "2026-01-01T11:00:00Z"), told("startTime"));
    let again = "{timeZone: UTC, startTime: 2026-01-01 10:00 AM, duration: 1h, recurrence: {type: Daily, spec: {until: 2026-01-03 10:00 AM}}}";
    assert_eq!(over(again, "2026-01-02T12:00:00Z"), none);
    assert_eq!(
        over(again, "2026-01-03T11:00:00Z"),
        told("recurrence.spec.until")
    );
    let ends = "{timeZone: UTC, startTime: 2026-01-01 10:00 AM, endTime: 2026-01-02 10:00 AM}";
    assert_eq!(over(ends, "2026-01-03T11:00:00Z"), told("endTime"));
}
