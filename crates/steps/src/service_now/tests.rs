//! Tickets, windows, and specs that are refused.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ticket::Ticket;
use super::window::Window;
use super::{ServiceNowCreate, ServiceNowImportSet, ServiceNowUpdate};
use crate::criteria::Field;
use crate::step::Step;
use crate::ticket::Stop;

fn ticket(start: &str, end: &str) -> Ticket {
    let row = json!({
        "number": {"value": "CHG1", "display_value": "CHG1"}, "sys_id": {"value": "abc", "display_value": "abc"},
        "state": {"value": "-1", "display_value": "Implement"}, "plain": "x", "empty": {"value": null, "display_value": ""},
        "start_date": {"value": start, "display_value": "01/01/2026 11:00:00"}, "end_date": {"value": end, "display_value": ""},
    });
    Ticket::read(&row, |id| format!("https://now/{id}")).expect("a ticket")
}

#[test]
fn a_ticket_is_read_with_both_values_of_each_column() {
    let ticket = ticket("", "");
    assert_eq!(
        ticket.field("state"),
        Some(Field::One(vec!["Implement".into(), "-1".into()]))
    );
    assert_eq!(
        ticket.field("plain"),
        Some(Field::One(vec!["x".into(), "x".into()]))
    );
    assert_eq!(ticket.field("stat"), None);
    let (output, _) = ticket.output();
    assert_eq!(output["ticketNumber"], "CHG1");
    assert_eq!(output["url"], "https://now/abc");
    assert_eq!(
        output["state"],
        json!({"value": "-1", "displayValue": "Implement"})
    );
    assert!(
        Ticket::read(&json!({"number": "1"}), |_| String::new()).is_none(),
        "no id"
    );
}

#[test]
fn a_window_is_before_now_or_open_or_over() {
    let window: Window =
        serde_json::from_value(json!({"startField": "start_date", "endField": "end_date"}))
            .expect("a window");
    let now: Timestamp = "2026-01-01T10:00:00Z".parse().expect("a time");
    let opens = |start: &str, end: &str| match window.opens(&ticket(start, end), now) {
        Ok(None) => "open".to_owned(),
        Ok(Some(start)) => start.to_string(),
        Err(Stop::Over(failure)) => failure.message,
        Err(other) => format!("{other:?}"),
    };
    let table = [
        ("2026-01-01 09:00:00", "2026-01-01 11:00:00", "open"),
        ("2026-01-01 10:00:00", "2026-01-01 10:00:01", "open"),
        ("2026-01-01", "2026-01-02", "open"),
        (
            "2026-01-01 10:30:00",
            "2026-01-01 11:00:00",
            "2026-01-01T10:30:00Z",
        ),
        ("2026-01-01 08:00:00", "2026-01-01 10:00:00", "was over"),
        (
            "2026-01-01 12:00:00",
            "2026-01-01 11:00:00",
            "before it begins",
        ),
        ("01/01/2026 09:00", "2026-01-01 11:00:00", "no time such as"),
        ("", "2026-01-01 11:00:00", "no time such as"),
    ];
    for (start, end, expected) in table {
        let told = opens(start, end);
        assert!(told.contains(expected), "{start} {end}: {told}");
    }
    let other: Window =
        serde_json::from_value(json!({"startField": "begin", "endField": "end_date"}))
            .expect("a window");
    let Err(Stop::Over(failure)) = other.opens(&ticket("", "2026-01-02"), now) else {
        panic!("a fault")
    };
    assert!(
        failure.message.contains("no field `begin`"),
        "{}",
        failure.message
    );
}

#[test]
fn specs_are_checked_before_the_run() {
    let create = |more: Value| {
        let mut spec = json!({"connectorRef": "now", "ticketType": "change_request", "fields": []});
        for (name, value) in more.as_object().expect("fields") {
            spec[name] = value.clone();
        }
        ServiceNowCreate.check(&spec).join("; ")
    };
    let table = [
        (json!({}), ""),
        (
            json!({"useServiceNowTemplate": false, "createType": "Normal"}),
            "",
        ),
        (
            json!({"createType": "Standard", "templateName": "Reboot"}),
            "",
        ),
        (json!({"createType": "Standard"}), "templateName"),
        (
            json!({"createType": "Standard", "templateName": "a^b"}),
            "templateName",
        ),
        (
            json!({"createType": "Form", "templateName": "x"}),
            "application of Harness's",
        ),
        (
            json!({"useServiceNowTemplate": true, "templateName": "x"}),
            "application of Harness's",
        ),
        (json!({"ticketType": "a/b"}), "ticketType"),
    ];
    for (more, expected) in table {
        let faults = create(more.clone());
        assert_eq!(expected.is_empty(), faults.is_empty(), "{more}: {faults}");
        assert!(faults.contains(expected), "{more}: {faults}");
    }
    let update = json!({"connectorRef": "now", "ticketType": "incident", "useServiceNowTemplate": false, "ticketNumber": "INC1^ORnumber=INC2"});
    assert!(ServiceNowUpdate.check(&update)[0].starts_with("ticketNumber"));
    let import = |body: &str| {
        ServiceNowImportSet.check(&json!({"connectorRef": "now", "stagingTableName": "u_x",
            "importData": {"type": "Json", "spec": {"jsonBody": body}}}))
    };
    assert_eq!(
        import("{\"u_a\": \"<+stage.variables.a>\"}"),
        Vec::<String>::new()
    );
    assert!(import("{")[0].contains("no JSON"));
    assert!(import("[1]")[0].contains("no JSON object"));
}
