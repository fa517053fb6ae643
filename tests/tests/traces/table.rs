//! Events as lines in columns.

/// Something that happened; in the order of things where they happened at the same time.
pub(crate) struct Event {
    pub(crate) at_ms: i64,
    pub(crate) run: String,
    pub(crate) stage: String,
    pub(crate) step: String,
    pub(crate) what: String,
}

/// Run, stage, step, and what happened.
type Columns<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Lines in columns; the same calls to AWS in a row are one line.
pub(crate) fn table(events: &[Event]) -> String {
    let start_ms = events.first().map_or(0, |event| event.at_ms);
    let several = events
        .iter()
        .any(|event| !event.run.is_empty() && event.run != "run 1");
    let width = |of: fn(&Event) -> &str| {
        events
            .iter()
            .map(|event| of(event).len())
            .max()
            .unwrap_or_default()
    };
    let widths = (
        if several {
            width(|event| &event.run) + 2
        } else {
            0
        },
        width(|event| &event.stage).max(5),
        width(|event| &event.step).max(4),
    );
    let line = |time: &str, event: Columns<'_>| {
        let run = if several { event.0 } else { "" };
        let line = format!(
            "{time:>8}  {run:<0$}{1:<2$}  {3:<4$}  {5}",
            widths.0, event.1, widths.1, event.2, widths.2, event.3
        );
        line.trim_end().to_owned() + "\n"
    };
    let mut told = line("time", ("run", "stage", "step", "what happened"));
    let mut before: Option<(&Event, usize)> = None;
    for event in events {
        if let Some((same, count)) = before.take() {
            if same.what == event.what && same.what.starts_with("AWS: ") {
                before = Some((same, count + 1));
                continue;
            }
            told.push_str(&shown(same, count, start_ms, &line));
        }
        before = Some((event, 1));
    }
    if let Some((last, count)) = before {
        told.push_str(&shown(last, count, start_ms, &line));
    }
    told
}

fn shown(
    event: &Event,
    count: usize,
    start_ms: i64,
    line: &dyn Fn(&str, Columns<'_>) -> String,
) -> String {
    let times = if count > 1 {
        format!(", {count} times")
    } else {
        String::new()
    };
    let what = format!("{}{times}", event.what);
    line(
        &time(event.at_ms - start_ms),
        (&event.run, &event.stage, &event.step, &what),
    )
}

/// Time since the start.
fn time(ms: i64) -> String {
    let (seconds, rest) = (ms / 1_000, ms % 1_000);
    let fraction = if rest == 0 {
        String::new()
    } else {
        format!(".{}", rest / 100)
    };
    match seconds {
        0..60 => format!("{seconds}{fraction}s"),
        60..3_600 => format!("{}m{:02}{fraction}s", seconds / 60, seconds % 60),
        _ => format!(
            "{}h{:02}m{:02}s",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}
