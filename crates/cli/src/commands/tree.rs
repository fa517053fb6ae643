//! A run on standard error while it goes on: a tree that redraws itself on a terminal, a line per change on
//! a pipe. Standard output stays free for the result.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use crossterm::{QueueableCommand, cursor, terminal};

use crate::commands::graph::{Node, Run};
use crate::output::visible;

/// Shows one run until it ends.
pub struct Tree {
    live: bool,
    drawn: u16,
    seen: HashMap<String, String>,
}

impl Tree {
    /// A tree that redraws when standard error is a terminal.
    pub fn new() -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
            drawn: 0,
            seen: HashMap::new(),
        }
    }

    /// Shows where the run stands now.
    pub fn show(&mut self, run: &Run, now_ms: i64) {
        if self.live {
            self.redraw(run, now_ms);
        } else {
            self.report(run);
        }
    }

    fn redraw(&mut self, run: &Run, now_ms: i64) {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let lines = lines(run, now_ms);
        // Only what fits is redrawn: lines that scrolled away cannot be taken back.
        let room = usize::from(rows.saturating_sub(1)).max(1);
        let skip = lines.len().saturating_sub(room);
        let mut out = anstream::stderr().lock();
        let mut frame: Vec<u8> = Vec::new();
        if self.drawn > 0 {
            // Writing into memory cannot fail.
            let _ = frame.queue(cursor::MoveToPreviousLine(self.drawn));
        }
        let _ = frame.queue(terminal::Clear(terminal::ClearType::FromCursorDown));
        for (style, text) in &lines[skip..] {
            let text: String = text
                .chars()
                .take(usize::from(columns.max(20)) - 1)
                .collect();
            let _ = writeln!(frame, "{style}{text}{style:#}");
        }
        self.drawn = u16::try_from(lines.len() - skip).unwrap_or(u16::MAX);
        let _ = out.write_all(&frame);
        let _ = out.flush();
    }

    fn report(&mut self, run: &Run) {
        for node in &run.nodes {
            if node.status == "NotStarted" {
                continue;
            }
            let before = self.seen.insert(node.uuid.clone(), node.status.clone());
            if before.as_deref() != Some(&node.status) {
                let indent = "  ".repeat(node.depth);
                let why = node
                    .failure
                    .as_deref()
                    .map(|w| format!(": {w}"))
                    .unwrap_or_default();
                let line = format!("{indent}{} {}{why}", node.identifier, node.status);
                anstream::eprintln!("{}", visible(&line));
            }
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a run stands now, as lines.
pub fn told(run: &Run, now_ms: i64) -> Vec<String> {
    let lines = lines(run, now_ms).into_iter();
    lines.map(|(_, text)| text).collect()
}

fn lines(run: &Run, now_ms: i64) -> Vec<(Style, String)> {
    let mut lines = vec![(
        Style::new().bold(),
        format!("{}  {}", run.pipeline, run.status),
    )];
    for node in &run.nodes {
        let (mark, style) = mark(&node.status);
        let indent = "  ".repeat(node.depth + 1);
        let (took, waits) = (duration(node, now_ms), waits(node));
        let text = format!("{indent}{mark} {}{took}{waits}", node.name);
        lines.push((style, visible(&text)));
        for whom in &node.waits {
            lines.push((style, visible(&format!("{indent}    waits for {whom}"))));
        }
        if let Some(why) = &node.failure {
            let first = why.lines().next().unwrap_or_default();
            lines.push((style, visible(&format!("{indent}    {first}"))));
        }
    }
    for warning in &run.warnings {
        let style = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
        lines.push((style, visible(&format!("warning: {warning}"))));
    }
    lines
}

/// What a node waits for that somebody or something must give, and the id that `--step` wants.
fn waits(node: &Node) -> String {
    match node.status.as_str() {
        "ApprovalWaiting" | "InterventionWaiting" | "InputWaiting" | "ResourceWaiting" => {
            format!("  {}: {}", node.status, node.uuid)
        }
        _ => String::new(),
    }
}

/// Shape and colour: either alone tells the status.
fn mark(status: &str) -> (&'static str, Style) {
    let colour = |c: AnsiColor| Style::new().fg_color(Some(c.into()));
    match status {
        "Success" => ("✓", colour(AnsiColor::Green)),
        "IgnoreFailed" => ("!", colour(AnsiColor::Yellow)),
        "Skipped" => ("-", Style::new().dimmed()),
        "NotStarted" | "Queued" => ("·", Style::new().dimmed()),
        "Failed" | "Errored" | "Expired" | "ApprovalRejected" => ("✗", colour(AnsiColor::Red)),
        "Aborted" | "AbortedByFreeze" => ("■", colour(AnsiColor::Red)),
        _ => ("▸", colour(AnsiColor::Cyan)),
    }
}

fn duration(node: &Node, now_ms: i64) -> String {
    let Some(started) = node.started else {
        return String::new();
    };
    let ms = (node.ended.unwrap_or(now_ms) - started).max(0);
    match ms {
        0..1_000 => format!("  {ms} ms"),
        1_000..120_000 => format!("  {}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("  {} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::told;
    use crate::commands::graph::{Node, Run};

    fn node(name: &str, status: &str, depth: usize, failure: Option<&str>) -> Node {
        Node {
            uuid: name.to_owned(),
            identifier: name.to_owned(),
            name: name.to_owned(),
            step_type: "ShellScript".to_owned(),
            status: status.to_owned(),
            failure: failure.map(str::to_owned),
            started: Some(0),
            ended: (status != "Running").then_some(1_500),
            logs: Vec::new(),
            waits: Vec::new(),
            asking: Vec::new(),
            depth,
        }
    }

    #[test]
    fn a_run_reads_as_a_tree() {
        let behind = "queue `shared`, behind stage deploy of run q (other)";
        let turn = Node {
            waits: vec![behind.to_owned()],
            asking: Vec::new(),
            ..node("turn", "ResourceWaiting", 1, None)
        };
        let run = Run {
            warnings: vec!["Nobody was told of PipelineEnd: HTTP 404".to_owned()],
            id: "r".to_owned(),
            pipeline: "shop".to_owned(),
            status: "Running".to_owned(),
            failure: None,
            nodes: vec![
                node("deploy", "Running", 0, None),
                node("rollout", "Failed", 1, Some("image not found\nmore")),
                node("ask", "ApprovalWaiting", 1, None),
                turn,
            ],
        };
        let text = told(&run, 61_000);
        assert_eq!(
            text,
            [
                "shop  Running",
                "  ▸ deploy  61.0 s",
                "    ✗ rollout  1.5 s",
                "        image not found",
                "    ▸ ask  1.5 s  ApprovalWaiting: ask",
                "    ▸ turn  1.5 s  ResourceWaiting: turn",
                "        waits for queue `shared`, behind stage deploy of run q (other)",
                "warning: Nobody was told of PipelineEnd: HTTP 404",
            ]
        );
    }
}
