//! Results on standard output: a table for people, JSON or YAML for programs.

use std::io::{IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use crate::args::Format;
use crate::error::CliError;

/// A column: its heading and the JSON pointer of its value in a row.
pub type Column = (&'static str, &'static str);

/// The format that was asked for, or the one that fits standard output.
pub fn format(asked: Option<Format>) -> Format {
    asked.unwrap_or_else(|| {
        if std::io::stdout().is_terminal() {
            Format::Table
        } else {
            Format::Json
        }
    })
}

/// Prints rows: the given columns as a table, or the whole rows as data.
///
/// # Errors
/// When standard output cannot be written.
pub fn rows(asked: Option<Format>, columns: &[Column], rows: &[Value]) -> Result<(), CliError> {
    match format(asked) {
        Format::Table => line(&table(columns, rows)),
        other => document(other, &Value::Array(rows.to_vec())),
    }
}

/// Prints one thing: as a two-column table, or as data.
///
/// # Errors
/// When standard output cannot be written.
pub fn one(asked: Option<Format>, columns: &[Column], row: &Value) -> Result<(), CliError> {
    match format(asked) {
        Format::Table => {
            let mut table = bare();
            for (heading, pointer) in columns {
                table.add_row([(*heading).to_owned(), cell(row, pointer)]);
            }
            line(&table.to_string())
        }
        other => document(other, row),
    }
}

/// The table of the given columns.
pub fn table(columns: &[Column], rows: &[Value]) -> String {
    let mut table = bare();
    table.set_header(columns.iter().map(|(heading, _)| *heading));
    for row in rows {
        table.add_row(columns.iter().map(|(_, pointer)| cell(row, pointer)));
    }
    table.to_string()
}

/// Writes a line; a closed pipe ends quietly, as other tools do.
///
/// # Errors
/// When standard output cannot be written for another reason.
pub fn line(text: &str) -> Result<(), CliError> {
    match writeln!(anstream::stdout(), "{text}") {
        Err(why) if why.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(CliError::Output),
    }
}

fn bare() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Prints a document as JSON, or as YAML where that was asked for.
///
/// # Errors
/// When standard output cannot be written.
pub fn document(format: Format, value: &Value) -> Result<(), CliError> {
    let text = match format {
        Format::Yaml => serde_saphyr::to_string(value).map_err(|why| why.to_string()),
        _ => serde_json::to_string_pretty(value).map_err(|why| why.to_string()),
    };
    let text = text.map_err(|why| CliError::Answer {
        what: "printing".to_owned(),
        why,
    })?;
    line(text.trim_end())
}

fn cell(row: &Value, pointer: &str) -> String {
    let time = pointer.strip_prefix('@');
    let value = row.pointer(time.unwrap_or(pointer)).unwrap_or(&Value::Null);
    if time.is_some() {
        return value.as_i64().map_or_else(String::new, timestamp);
    }
    match value {
        Value::Null => String::new(),
        Value::String(text) => visible(text),
        other => other.to_string(),
    }
}

/// An epoch-millisecond time as people read it.
fn timestamp(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_default()
}

/// Text of a user without characters that could steer the terminal.
pub fn visible(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || *c == '\n' || *c == '\t')
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{table, visible};

    #[test]
    fn a_table_shows_the_columns_and_formats_times() {
        let rows = [json!({"name": "web", "at": 0}), json!({"name": "api"})];
        let text = table(&[("NAME", "/name"), ("AT", "@/at")], &rows);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines, [" NAME  AT", " web   1970-01-01 00:00:00", " api"]);
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(visible("a\u{1b}[2Jb\rc"), "a[2Jbc");
    }
}
