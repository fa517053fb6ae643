//! Diagnostics for people: the line of the text with a mark under what is wrong.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};

/// Diagnostics as text. `source` gives the text of a file by its name, where it is at hand; `color` asks for
/// terminal colours.
pub fn render<'a>(
    diagnostics: &'a [Diagnostic],
    source: impl Fn(&str) -> Option<&'a str>,
    color: bool,
) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&[group(diagnostic, &source)]));
        out.push('\n');
    }
    out
}

fn group<'a>(diagnostic: &'a Diagnostic, source: &impl Fn(&str) -> Option<&'a str>) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.message.as_str());
    let line = source(&diagnostic.file).and_then(|text| line_of(text, diagnostic.line));
    let mut group = match line {
        Some(line) => {
            let span = word(line, diagnostic.column);
            title.element(
                Snippet::source(line)
                    .path(diagnostic.file.as_str())
                    .line_start(diagnostic.line as usize)
                    .annotation(
                        AnnotationKind::Primary
                            .span(span)
                            .label(diagnostic.path.as_str()),
                    ),
            )
        }
        None if diagnostic.line > 0 => title.element(Level::NOTE.message(format!(
            "at {}:{}:{} {}",
            diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.path
        ))),
        None => title
            .element(Level::NOTE.message(format!("in {} {}", diagnostic.file, diagnostic.path))),
    };
    if let Some(expected) = &diagnostic.expected {
        group = group.element(Level::NOTE.message(format!("expected {expected}")));
    }
    if let Some(suggestion) = &diagnostic.suggestion {
        group = group.element(Level::HELP.message(format!("did you mean `{suggestion}`?")));
    }
    group
}

/// A line by its number, cut where it is very long.
fn line_of(text: &str, line: u32) -> Option<&str> {
    const LONGEST: usize = 400;
    let line = text.lines().nth(line.checked_sub(1)? as usize)?;
    let end = line
        .char_indices()
        .nth(LONGEST)
        .map_or(line.len(), |(at, _)| at);
    line.get(..end)
}

/// Bytes of the word that begins at a column.
fn word(line: &str, column: u32) -> std::ops::Range<usize> {
    let skip = column.saturating_sub(1) as usize;
    let start = line
        .char_indices()
        .nth(skip)
        .map_or(line.len(), |(at, _)| at);
    let rest = line.get(start..).unwrap_or_default();
    let length = rest
        .find(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '}' | ']'))
        .unwrap_or(rest.len());
    // At least one character, which may be a blank one of several bytes.
    let first = rest.chars().next().map_or(0, char::len_utf8);
    start..start + length.max(first)
}

#[cfg(test)]
mod tests {
    #[test]
    fn blank_characters_of_several_bytes_are_marked_whole() {
        for text in ["\u{85}\u{1f}", "a:\n  \u{a0}: b: c", "\u{2003}", ""] {
            let faults = crate::entity::parse("f.yaml", text).unwrap_err();
            assert!(super::render(&faults, |_| Some(text), false).contains("error"));
        }
    }

    #[test]
    fn a_fault_shows_its_line() {
        let text = "service:\n  identifier: web\n  nam: Web\n";
        let faults = crate::entity::parse("web.yaml", text).unwrap_err();
        let shown = super::render(&faults, |_| Some(text), false);
        insta::assert_snapshot!(shown, @r"
        error: `nam` is no field of a service
         --> web.yaml:3:3
          |
        3 |   nam: Web
          |   ^^^ service.nam
          |
          = help: did you mean `name`?
        error: `name` is missing from a service
         --> web.yaml:2:3
          |
        2 |   identifier: web
          |   ^^^^^^^^^^ service
        ");
    }
}
