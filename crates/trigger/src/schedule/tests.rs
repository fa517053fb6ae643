use std::time::{Duration, Instant};

use super::*;

/// The next times after one, in their time zone, as people write them.
fn next(expression: &str, quartz: bool, zone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::of(expression, quartz, Some(zone)).unwrap();
    let after: Timestamp = after.parse().unwrap();
    let mut ms = after.as_millisecond();
    let mut found = Vec::new();
    while found.len() < count {
        let Some(next) = schedule.next_after(ms) else {
            found.push("never".to_owned());
            break;
        };
        assert!(next > ms, "{expression} goes back");
        ms = next;
        let at = Timestamp::from_millisecond(ms).unwrap();
        let at = at.to_zoned(schedule.zone.clone());
        found.push(at.strftime("%Y-%m-%d %H:%M:%S%:z").to_string());
    }
    found
}

fn unix(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    next(expression, false, zone, after, count)
}

fn quartz(expression: &str, after: &str, count: usize) -> Vec<String> {
    next(expression, true, "UTC", after, count)
        .into_iter()
        .map(|at| at.replace("+00:00", ""))
        .collect()
}

#[test]
fn unix_expressions_are_due_when_they_say() {
    let after = "2026-11-23T12:00:00Z"; // a Monday
    let table = [
        ("0 1 * * MON", "2026-11-30 01:00:00+00:00"),
        ("5 0 * * 5", "2026-11-27 00:05:00+00:00"),
        ("0/5 * * * *", "2026-11-23 12:05:00+00:00"),
        ("*/15 13-14 * * *", "2026-11-23 13:00:00+00:00"),
        ("0 0 * * 7", "2026-11-29 00:00:00+00:00"),
        ("0 0 * * FRI-SUN", "2026-11-27 00:00:00+00:00"),
        ("0 22-2 * * *", "2026-11-23 22:00:00+00:00"),
        // Either of the two, as in crontab(5).
        ("45 13 13 09 Tue", "2027-09-07 13:45:00+00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00:00+00:00"),
        ("0 0 31 * *", "2026-12-31 00:00:00+00:00"),
        ("0 12 * * *", "2026-11-24 12:00:00+00:00"),
        ("0 0 1 jan,Jul *", "2027-01-01 00:00:00+00:00"),
    ];
    for (expression, expected) in table {
        assert_eq!(
            unix(expression, "UTC", after, 1),
            [expected],
            "{expression}"
        );
    }
    let ends = unix("0 0 31 * *", "UTC", "2027-01-15T00:00:00Z", 3);
    assert_eq!(
        ends,
        ["2027-01-31", "2027-03-31", "2027-05-31"].map(|day| format!("{day} 00:00:00+00:00"))
    );
}

/// The examples of Quartz's tutorial on cron triggers.
#[test]
fn quartz_expressions_are_due_when_its_documentation_says() {
    let after = "2026-11-23T12:00:00Z";
    let table = [
        ("0 0 12 * * ?", "2026-11-24 12:00:00"),
        ("0 15 10 ? * *", "2026-11-24 10:15:00"),
        ("0 15 10 * * ? *", "2026-11-24 10:15:00"),
        ("0 15 10 * * ? 2005", "never"),
        ("0 * 14 * * ?", "2026-11-23 14:00:00"),
        ("0 0/5 14,18 * * ?", "2026-11-23 14:00:00"),
        ("0 10,44 14 ? 3 WED", "2027-03-03 14:10:00"),
        ("0 15 10 ? * MON-FRI", "2026-11-24 10:15:00"),
        ("0 15 10 15 * ?", "2026-12-15 10:15:00"),
        ("0 15 10 L * ?", "2026-11-30 10:15:00"),
        ("0 15 10 L-2 * ?", "2026-11-28 10:15:00"),
        ("0 15 10 ? * 6L", "2026-11-27 10:15:00"),
        ("0 15 10 ? * 6#3", "2026-12-18 10:15:00"),
        ("0 0 12 1/5 * ?", "2026-11-26 12:00:00"),
        ("0 11 11 11 11 ?", "2027-11-11 11:11:00"),
        (
            "0/5 14,18,3-39,52 * ? JAN,MAR,SEP MON-FRI 2002-2030",
            "2027-01-01 00:03:00",
        ),
        // Weekdays: 1 is Sunday, and L alone is Saturday.
        ("0 0 0 ? * 1", "2026-11-29 00:00:00"),
        ("0 0 0 ? * L", "2026-11-28 00:00:00"),
        ("0 0 0 ? * SUN#2", "2026-12-13 00:00:00"),
        ("0 0 0 ? * FRI-MON", "2026-11-27 00:00:00"),
        // The nearest weekday: the 15th of August 2027 is a Sunday, the first of May 2027 a Saturday.
        ("0 0 0 15W 8 ?", "2027-08-16 00:00:00"),
        ("0 0 0 1W 5 ?", "2027-05-03 00:00:00"),
        ("0 0 0 LW 2 ?", "2027-02-26 00:00:00"),
        ("0 0 0 29 2 ? 2028-2036/4", "2028-02-29 00:00:00"),
        // As Harness's documentation writes them: the minute first.
        ("0 0 4 7 ? 2014", "never"),
        ("0 0 4 7 ? 2027", "2027-07-04 00:00:00"),
        ("10 3 4 FEB ? 2028", "2028-02-04 03:10:00"),
        ("0 0/12 ? * * *", "2026-11-24 00:00:00"),
    ];
    for (expression, expected) in table {
        assert_eq!(quartz(expression, after, 1), [expected], "{expression}");
    }
    let last_but_two = quartz("0 0 0 L-2 * ?", "2028-01-01T00:00:00Z", 3);
    let days = ["2028-01-29", "2028-02-27", "2028-03-29"].map(|day| format!("{day} 00:00:00"));
    assert_eq!(last_but_two, days);
}

/// Berlin: 02:00 to 03:00 is left out on 2027-03-28 and comes twice on 2026-10-25.
#[test]
fn an_hour_that_is_left_out_or_comes_twice() {
    let zone = "Europe/Berlin";
    let spring = "2027-03-27T12:00:00Z";
    assert_eq!(
        unix("30 2 * * *", zone, spring, 2),
        ["2027-03-28 03:00:00+02:00", "2027-03-29 02:30:00+02:00"]
    );
    // Two that fall into the gap are one.
    assert_eq!(
        unix("*/30 2,3 * * *", zone, spring, 3),
        [
            "2027-03-28 03:00:00+02:00",
            "2027-03-28 03:30:00+02:00",
            "2027-03-29 02:00:00+02:00"
        ]
    );
    assert_eq!(
        unix("30 * * * *", zone, "2027-03-28T00:00:00Z", 3),
        [
            "2027-03-28 01:30:00+01:00",
            "2027-03-28 03:30:00+02:00",
            "2027-03-28 04:30:00+02:00"
        ]
    );
    let autumn = "2026-10-24T12:00:00Z";
    assert_eq!(
        unix("30 2,14 * * *", zone, autumn, 4),
        [
            "2026-10-24 14:30:00+02:00",
            "2026-10-25 02:30:00+02:00",
            "2026-10-25 14:30:00+01:00",
            "2026-10-26 02:30:00+01:00"
        ]
    );
    // Asked in the hour that comes again, after it was due.
    assert_eq!(
        unix("*/20 2 * * *", zone, "2026-10-25T01:10:00Z", 1),
        ["2026-10-26 02:00:00+01:00"]
    );
    assert_eq!(
        unix("30 * * * *", zone, "2026-10-24T23:00:00Z", 4),
        [
            "2026-10-25 01:30:00+02:00",
            "2026-10-25 02:30:00+02:00",
            "2026-10-25 02:30:00+01:00",
            "2026-10-25 03:30:00+01:00"
        ]
    );
}

#[test]
fn other_clocks_jump_by_other_hours() {
    let new_york = "America/New_York";
    assert_eq!(
        unix("0 2 * * *", new_york, "2027-03-13T12:00:00Z", 2),
        ["2027-03-14 03:00:00-04:00", "2027-03-15 02:00:00-04:00"]
    );
    assert_eq!(
        unix("0 1 * * *", new_york, "2026-10-31T12:00:00Z", 2),
        ["2026-11-01 01:00:00-04:00", "2026-11-02 01:00:00-05:00"]
    );
    // Lord Howe Island moves by half an hour: 02:00 to 02:30 is left out, 01:30 to 02:00 comes twice.
    let lord_howe = "Australia/Lord_Howe";
    assert_eq!(
        unix("15 2 * * *", lord_howe, "2026-10-03T00:00:00Z", 2),
        ["2026-10-04 02:30:00+11:00", "2026-10-05 02:15:00+11:00"]
    );
    assert_eq!(
        unix("45 1 * * *", lord_howe, "2027-04-03T00:00:00Z", 2),
        ["2027-04-04 01:45:00+11:00", "2027-04-05 01:45:00+10:30"]
    );
    assert_eq!(
        unix("45 * * * *", lord_howe, "2027-04-03T14:00:00Z", 3),
        [
            "2027-04-04 01:45:00+11:00",
            "2027-04-04 01:45:00+10:30",
            "2027-04-04 02:45:00+10:30"
        ]
    );
    // Samoa left out a whole day.
    assert_eq!(
        unix("0 12 * * *", "Pacific/Apia", "2011-12-30T00:00:00Z", 2),
        ["2011-12-31 00:00:00+14:00", "2011-12-31 12:00:00+14:00"]
    );
}

#[test]
fn what_never_comes_is_found_out_soon() {
    let begun = Instant::now();
    for (expression, is_quartz) in [
        ("0 0 30 2 *", false),
        ("0 * 31 2,4,6 *", false),
        ("0 0 0 30 2 ?", true),
        ("* * * 31 11 ?", true),
        ("0 0 0 1 1 ? 1970", true),
        ("* * * * * ? 2001", true),
        ("0 0 0 L-30 2 ?", true),
        ("0 0 0 31W 2 ?", true),
        ("0 0 0 ? 2 3#5 2027", true),
    ] {
        let schedule = Schedule::of(expression, is_quartz, Some("Europe/Berlin")).unwrap();
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        assert_eq!(
            schedule.next_after(now.as_millisecond()),
            None,
            "{expression}"
        );
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn times_beyond_the_calendar_are_none() {
    let schedule = Schedule::of("0 0 * * *", false, None).unwrap();
    for ms in [i64::MIN, i64::MAX, 253_402_207_200_000] {
        assert_eq!(schedule.next_after(ms), None, "{ms}");
    }
    // Before the epoch, and between two milliseconds of a second.
    assert_eq!(schedule.next_after(-1), Some(0));
    assert_eq!(schedule.next_after(0), Some(86_400_000));
    assert_eq!(schedule.next_after(86_399_999), Some(86_400_000));
}

#[test]
fn what_is_wrong_is_said_with_the_field_and_what_it_takes() {
    let table = [
        ("", false, "it has 0 fields"),
        (
            "ph_bd4eb0",
            false,
            "it has 1 fields, and UNIX expressions have five",
        ),
        (
            "@daily",
            false,
            "minute, hour, day of the month, month, day of the week",
        ),
        ("0 0 0 * * ?", false, "it is one of `type: QUARTZ`"),
        (
            "60 * * * *",
            false,
            "the field `60` (minute): `60` is none of them; it takes 0 to 59",
        ),
        (
            "0 24 * * *",
            false,
            "(hour): `24` is none of them; it takes 0 to 23",
        ),
        (
            "0 0 0 * *",
            false,
            "(day of the month): `0` is none of them",
        ),
        ("0 0 1 13 *", false, "it takes 1 to 12, or JAN to DEC"),
        ("0 0 * * 8", false, "it takes 0 to 7, or SUN to SAT"),
        (
            "0 0 L * *",
            false,
            "`L`, `W` and `#` are for expressions of `type: QUARTZ`",
        ),
        (
            "0 0 ? * *",
            false,
            "`?` is for expressions of `type: QUARTZ`; write `*`",
        ),
        ("*/0 * * * *", false, "`0` is no step: those are 1 to 60"),
        ("*/99 * * * *", false, "no step"),
        ("1,,2 * * * *", false, "`` is none of them"),
        ("1- * * * *", false, "`` is none of them"),
        ("-1 * * * *", false, "none of them"),
        ("+5 * * * *", false, "none of them"),
        ("1-5-9 * * * *", false, "none of them"),
        ("0x5 * * * *", false, "none of them"),
        ("99999999999999999999 * * * *", false, "none of them"),
        ("0 ph_d42901 * * *", false, "(hour): `ph_d42901`"),
        ("<+pipeline.x> * * * *", false, "none of them"),
        ("０ 0 * * *", false, "none of them"),
        ("0 0 12 * *", true, "Quartz expressions have six or seven"),
        ("0 0 12 ? * ?", true, "both `?`"),
        ("0 0 12 1 * MON", true, "write `?` for one of them"),
        ("0 0 ? * * ? *", true, "(hour): `?` is for days"),
        ("0 0 0 L,5 * ?", true, "`L` stands alone"),
        ("0 0 0 L-31 * ?", true, "0 to 30"),
        ("0 0 0 W * ?", true, "`W` stands behind one day"),
        ("0 0 0 1,15W * ?", true, "`W` stands behind one day"),
        ("0 0 0 ? * 0", true, "it takes 1 to 7, or SUN to SAT"),
        ("0 0 0 ? * 6#6", true, "the third Friday"),
        ("0 0 0 ? * #", true, "none of them"),
        ("0 0 0 1 1 ? 1969", true, "it takes 1970 to 2099"),
        ("0 0 0 1 1 ? 2030-2020", true, "goes backwards"),
    ];
    for (expression, is_quartz, said) in table {
        let why = Schedule::of(expression, is_quartz, None).unwrap_err();
        assert!(why.contains(said), "{expression}: {why}");
        assert!(why.len() < 400, "{why}");
    }
    let long = "1,".repeat(100_000) + "1 * * * *";
    let why = Schedule::of(&long, false, None).unwrap_err();
    assert!(
        why.contains("longer than 512 bytes") && why.len() < 300,
        "{why}"
    );
    for zone in ["Europe/Berln", "../../etc/passwd", "GMT+25", "\0"] {
        let why = Schedule::of("0 0 * * *", false, Some(zone)).unwrap_err();
        assert!(why.contains("no time zone"), "{zone}: {why}");
    }
    assert!(Schedule::of("0 0 * * *", false, Some("")).is_ok());
}

#[test]
fn schedules_of_less_than_five_minutes_are_not_saved() {
    let table = [
        ("* * * * *", false, "1 min"),
        ("0/4 * * * *", false, "4 min"),
        ("0,3 5 * * *", false, "3 min"),
        ("58,0 * * * *", false, "2 min"),
        ("0,58 23,0 * * *", false, "2 min"),
        ("0/30 0 * * * ?", true, "30 s"),
        ("0 0/5 * * * ?", true, ""),
        ("0/5 * * * *", false, ""),
        ("0,58 23,1 * * *", false, ""),
        ("58 23 * * *", false, ""),
        ("0 0 1 * *", false, ""),
        // A step that does not divide the hour.
        ("*/7 * * * *", false, ""),
        ("*/29 * * * *", false, ""),
        ("3/14 9-17 * * MON", false, ""),
        ("0 0/7 * * * ?", true, ""),
        ("*/4 * * * *", false, "4 min"),
        ("0/7,59 * * * *", false, "1 min"),
        ("0,30 0/7 * * * ?", true, "30 s"),
    ];
    for (expression, is_quartz, apart) in table {
        let checked = Schedule::of(expression, is_quartz, None).unwrap().check();
        match apart {
            "" => assert_eq!(checked, Ok(()), "{expression}"),
            apart => {
                let why = checked.unwrap_err();
                assert!(
                    why.contains(&format!("runs {apart} apart")),
                    "{expression}: {why}"
                );
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_text_does_harm(text in "[0-9*?,/LW#a-zA-Z -]{0,40}", is_quartz: bool, ms: i64) {
        if let Ok(schedule) = Schedule::of(&text, is_quartz, Some("America/Havana")) {
            let _ = schedule.check();
            proptest::prop_assert!(schedule.next_after(ms).is_none_or(|next| next > ms));
        }
    }
}
