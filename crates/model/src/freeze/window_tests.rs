use serde_json::{Value, json};

use super::*;

fn window(written: Value) -> Window {
    let written: WrittenWindow = serde_json::from_value(written).expect("a window");
    written.read().expect("a window")
}

fn fault(written: Value) -> String {
    let written: WrittenWindow = serde_json::from_value(written).expect("a window");
    let faults = written.read().expect_err("a fault");
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    told.join("; ")
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Whether the window is open at each of the times.
fn open(window: &Window, times: &[&str]) -> Vec<bool> {
    let at = times.iter().map(|text| window.at(time(text)).is_some());
    at.collect()
}

fn every(kind: &str, start: &str, lasts: &str, spec: Value) -> Window {
    window(json!({
        "timeZone": "Europe/Berlin", "startTime": start, "duration": lasts,
        "recurrence": {"type": kind, "spec": spec},
    }))
}

#[test]
fn a_window_is_open_from_its_start_to_before_its_end() {
    let zone = "America/Los_Angeles";
    let once = window(json!({
        "timeZone": zone, "startTime": "2026-07-03 10:08 AM", "endTime": "2026-07-05 10:38 AM",
    }));
    let times = [
        "2026-07-03T17:07:59Z",
        "2026-07-03T17:08:00Z",
        "2026-07-05T17:37:59Z",
        "2026-07-05T17:38:00Z",
        "2027-07-04T17:08:00Z",
    ];
    assert_eq!(open(&once, &times), [false, true, true, false, false]);
    let next = once
        .at_or_after(time("2026-07-01T00:00:00Z"))
        .expect("it comes");
    assert_eq!(next.start, time("2026-07-03T17:08:00Z"));
    assert_eq!(once.at_or_after(time("2026-07-06T00:00:00Z")), None);
    assert_eq!(
        once.shown(next.end),
        "2026-07-05 10:38 AM America/Los_Angeles"
    );
}

#[test]
fn a_zone_that_was_renamed_is_the_same_zone() {
    for zone in ["Asia/Calcutta", "Asia/Kolkata"] {
        let one = window(
            json!({"timeZone": zone, "startTime": "2026-05-03 04:16 PM", "duration": "30m"}),
        );
        let times = ["2026-05-03T10:46:00Z", "2026-05-03T11:16:00Z"];
        assert_eq!(open(&one, &times), [true, false], "{zone}");
    }
}

#[test]
fn it_comes_again_until_it_does_not() {
    let daily = every(
        "Daily",
        "2026-01-01 10:00 PM",
        "4h",
        json!({"until": "2026-01-03 11:59 PM"}),
    );
    let times = [
        "2025-12-31T22:00:00Z",
        "2026-01-01T21:00:00Z",
        // Past midnight.
        "2026-01-02T00:59:59Z",
        "2026-01-02T01:00:00Z",
        // The last one began before the end of the recurrence and lasts beyond it.
        "2026-01-04T00:59:59Z",
        "2026-01-04T22:00:00Z",
    ];
    assert_eq!(
        open(&daily, &times),
        [false, true, true, false, true, false]
    );
    let weekly = every("Weekly", "2026-01-02 06:00 PM", "2d", json!({}));
    let times = [
        "2026-01-09T16:59:59Z",
        "2026-01-09T17:00:00Z",
        "2026-01-11T16:59:59Z",
        "2026-01-12T17:00:00Z",
        "2046-01-05T17:00:00Z",
    ];
    assert_eq!(open(&weekly, &times), [false, true, true, false, true]);
    let next = weekly
        .at_or_after(time("2026-01-05T00:00:00Z"))
        .expect("it comes again");
    assert_eq!(next.start, time("2026-01-09T17:00:00Z"));
    assert_eq!(daily.at_or_after(time("2026-01-05T00:00:00Z")), None);
}

#[test]
fn windows_longer_than_their_period_stay_open_and_end_with_their_last() {
    let spec = json!({"until": "2026-01-03 10:00 AM"});
    let always = every("Daily", "2026-01-01 10:00 AM", "1w", spec);
    let times = [
        "2026-01-02T09:00:00Z",
        "2026-01-10T08:59:59Z",
        "2026-01-10T09:00:00Z",
    ];
    assert_eq!(open(&always, &times), [true, true, false]);
}

#[test]
fn months_without_the_day_have_it_on_their_last() {
    let monthly = every("Monthly", "2026-01-31 12:00 PM", "1h", json!({"value": 1}));
    let times = [
        "2026-02-28T11:30:00Z",
        "2026-03-28T11:30:00Z",
        "2026-03-31T10:30:00Z",
        "2026-04-30T10:30:00Z",
        "2028-02-29T11:30:00Z",
        "2028-02-28T11:30:00Z",
    ];
    assert_eq!(
        open(&monthly, &times),
        [true, false, true, true, true, false]
    );
    let quarterly = every("Monthly", "2026-01-31 12:00 PM", "1h", json!({"value": 3}));
    let times = [
        "2026-02-28T11:30:00Z",
        "2026-04-30T10:30:00Z",
        "2027-01-31T11:30:00Z",
    ];
    assert_eq!(open(&quarterly, &times), [false, true, true]);
    let leap = every("Yearly", "2024-02-29 12:00 PM", "1h", json!({}));
    let times = [
        "2025-02-28T11:30:00Z",
        "2025-03-01T11:30:00Z",
        "2028-02-29T11:30:00Z",
        "2028-02-28T11:30:00Z",
    ];
    assert_eq!(open(&leap, &times), [true, false, true, false]);
}

/// A13: on 2026-03-29 at 02:00 Berlin's clocks go to 03:00, on 2026-10-25 at 03:00 back to 02:00.
#[test]
fn a13_a_clock_that_is_changed_opens_no_gap_in_a_window() {
    // 02:30 does not exist: the earlier reading is 01:30, before the change.
    let gap = every("Daily", "2026-03-28 02:30 AM", "1h", json!({}));
    let times = [
        "2026-03-28T01:30:00Z",
        "2026-03-29T00:29:59Z",
        "2026-03-29T00:30:00Z",
        "2026-03-29T01:29:59Z",
        "2026-03-29T01:30:00Z",
        "2026-03-30T00:29:59Z",
        "2026-03-30T00:30:00Z",
    ];
    assert_eq!(
        open(&gap, &times),
        [true, false, true, true, false, false, true]
    );
    // 02:30 exists twice: it begins at the first and ends after the second.
    let fold = every("Daily", "2026-10-24 02:30 AM", "30m", json!({}));
    let times = [
        "2026-10-25T00:29:59Z",
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:10:00Z",
        "2026-10-25T02:00:00Z",
    ];
    assert_eq!(open(&fold, &times), [false, true, true, false]);
    // A day by the clock on the wall has 25 hours then, and one of 23 hours lasts 24.
    let one = |start: &str| {
        window(json!({"timeZone": "Europe/Berlin", "startTime": start, "duration": "1d"}))
    };
    let long = one("2026-10-24 12:00 PM");
    assert_eq!(
        open(&long, &["2026-10-25T10:59:59Z", "2026-10-25T11:00:00Z"]),
        [true, false]
    );
    let short = one("2026-03-28 12:00 PM");
    assert_eq!(
        open(&short, &["2026-03-29T10:59:59Z", "2026-03-29T11:00:00Z"]),
        [true, false]
    );
}

#[test]
fn what_is_no_window_is_told() {
    let with = |field: &str, value: Value| {
        let mut written = json!({
            "timeZone": "UTC", "startTime": "2026-01-01 10:00 AM", "duration": "1h",
        });
        written[field] = value;
        fault(written)
    };
    assert!(with("timeZone", json!("Mars/Olympus")).contains("`Mars/Olympus` is no time zone"));
    for wrong in [
        "2026-01-01 25:00 PM",
        "2026-02-30 10:00 AM",
        "2026-01-01 11:59:60 PM",
        "today",
        "",
    ] {
        assert!(
            with("startTime", json!(wrong)).starts_with("startTime: "),
            "{wrong}"
        );
    }
    // The nearest name is told.
    assert_eq!(
        with("timeZone", json!("Europe/Berln")),
        "timeZone: `Europe/Berln` is no time zone; expected a name such as Europe/Berlin or UTC; did you mean \
         `Europe/Berlin`?"
    );
    assert!(with("duration", json!("29m")).contains("30 minutes"));
    assert!(with("duration", json!("soon")).starts_with("duration: "));
    assert!(with("endTime", json!("2026-01-01 11:00 AM")).contains("either"));
    let backward = json!({"timeZone": "UTC", "startTime": "2026-01-02 10:00 AM", "endTime": "2026-01-01 10:00 AM"});
    assert_eq!(
        fault(backward),
        "endTime: `2026-01-01 10:00 AM` is not after `startTime`"
    );
    let early = json!({"type": "Daily", "spec": {"until": "2026-01-01 09:59 AM"}});
    assert_eq!(
        with("recurrence", early),
        "recurrence.spec.until: it ends before `startTime`, so that the window never opens"
    );
    // Every fault is told, and none twice.
    let all = json!({"timeZone": "x", "startTime": "y", "endTime": "z"});
    assert_eq!(fault(all).matches(" is no time").count(), 3);
    let odd = json!({"type": "Monthly", "spec": {"value": 12}});
    assert!(with("recurrence", odd).contains("1 to 11"));
    assert!(with("recurrence", json!({"type": "Hourly"})).contains("`Hourly`"));
}

#[test]
fn the_ends_of_time_are_no_panic() {
    let far = every("Yearly", "9999-12-31 11:00 PM", "365d", json!({}));
    for moment in [Timestamp::MIN, Timestamp::MAX, time("2026-01-01T00:00:00Z")] {
        assert_eq!(far.at(moment), None);
        let _ = far.at_or_after(moment);
    }
    let old = every("Daily", "0001-01-01 12:00 AM", "30m", json!({}));
    assert!(old.at(time("2026-01-01T23:10:00Z")).is_some());
    let _ = (old.at(Timestamp::MAX), old.at(Timestamp::MIN));
}
