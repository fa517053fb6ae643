//! Writes a tree as YAML text that reads back as the same tree. Scalars keep their style.

use std::fmt::Write as _;

use crate::tree::{Data, Ref, Style, Tree};

/// The document as YAML text.
pub fn to_yaml(tree: &Tree) -> String {
    let mut out = String::new();
    write_value(&mut out, tree.root(), 0, Lead::Start);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// YAML reads no longer key before its colon (1,024 characters); a longer one is marked as a key.
const LONGEST_KEY: usize = 1000;

/// A text as a scalar on one line: a plain word as it is, anything else in quotes.
pub(crate) fn scalar(text: &str) -> String {
    let inside = |c: char| c.is_ascii_alphanumeric() || " _-.".contains(c);
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(inside)
        && !text.ends_with(' ')
        // These words are no texts.
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    let mut out = String::new();
    if plain {
        out.push_str(text);
    } else {
        write_quoted(&mut out, text);
    }
    out
}

/// What stands before a value on its line.
#[derive(Clone, Copy, PartialEq)]
enum Lead {
    Start,
    Key,
    Dash,
}

fn write_value(out: &mut String, value: Ref<'_>, indent: usize, lead: Lead) {
    match &value.node().data {
        Data::Scalar(text, style) => {
            if lead != Lead::Start && !(text.is_empty() && *style == Style::Plain) {
                out.push(' ');
            }
            write_scalar(out, text, *style, indent);
            out.push('\n');
        }
        Data::List(items) if items.is_empty() => empty(out, lead, "[]"),
        Data::Map(entries) if entries.is_empty() => empty(out, lead, "{}"),
        Data::List(_) => write_list(out, value, indent, lead),
        Data::Map(_) => write_map(out, value, indent, lead),
    }
}

fn empty(out: &mut String, lead: Lead, text: &str) {
    if lead != Lead::Start {
        out.push(' ');
    }
    out.push_str(text);
    out.push('\n');
}

fn write_list(out: &mut String, list: Ref<'_>, indent: usize, lead: Lead) {
    if lead != Lead::Start {
        out.push('\n');
    }
    for item in list.items() {
        pad(out, indent);
        out.push('-');
        write_value(out, item, indent + 2, Lead::Dash);
    }
}

fn write_map(out: &mut String, map: Ref<'_>, indent: usize, lead: Lead) {
    if lead == Lead::Key {
        out.push('\n');
    }
    for (index, (key, value)) in map.entries().enumerate() {
        if lead == Lead::Dash && index == 0 {
            out.push(' ');
        } else {
            pad(out, indent);
        }
        let start = out.len();
        write_scalar(out, key, Style::Plain, indent);
        let long = out.len() - start > LONGEST_KEY;
        if long {
            out.insert_str(start, "? ");
            out.push('\n');
            pad(out, indent);
        }
        out.push(':');
        // A list under a key may stand at the indent of the key.
        let beside = value.is_list() && !long;
        let deeper = if beside { indent } else { indent + 2 };
        write_value(out, value, deeper, Lead::Key);
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(out: &mut String, text: &str, style: Style, indent: usize) {
    match style {
        Style::Plain if is_plain(text) => out.push_str(text),
        Style::Block if is_literal(text) => write_literal(out, text, indent),
        _ => write_quoted(out, text),
    }
}

/// Whether a text needs no quotes wherever a value can stand. Stricter than YAML.
fn is_plain(text: &str) -> bool {
    let inside = |c: char| {
        c.is_alphanumeric()
            || matches!(
                c,
                '_' | '-' | '.' | '/' | '+' | '<' | '>' | '(' | ')' | '$' | ' ' | '~' | '='
            )
    };
    let first =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '<' | '+' | '$' | '~');
    text.is_empty()
        // At the start of a line three dots end a document.
        || text.starts_with(first) && !text.starts_with("...") && text.chars().all(inside) && !text.ends_with(' ')
        || text.starts_with('-')
            && text.len() > 1
            && text[1..].chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Whether a text survives as a literal block `|` or `|-`.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    !body.is_empty()
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n', '\t'])
        && body.chars().all(|c| {
            c == '\n'
                || c == '\t'
                || !c.is_control()
                    && c != '\u{feff}'
                    && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}')
        })
        && !body
            .lines()
            .any(|line| line.starts_with('\t') || line.trim().is_empty() && !line.is_empty())
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
    let indent = indent.max(2);
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::{Tree, yaml};

    #[test]
    fn what_is_written_is_what_was_read() {
        let text = "pipeline:\n  identifier: a\n  tags: {}\n  empty:\n  none: []\n  version: \"1.10\"\n  stages:\n  - stage:\n      \
                    script: |\n        echo a\n\n        echo b\n    n: -1\n  - - 1\n    - 2\n";
        let tree = yaml::parse("p", text).unwrap();
        let written = super::to_yaml(&tree);
        insta::assert_snapshot!(written, @r#"
        pipeline:
          identifier: a
          tags: {}
          empty:
          none: []
          version: "1.10"
          stages:
          - stage:
              script: |
                echo a

                echo b
            n: -1
          -
            - 1
            - 2
        "#);
        let again = yaml::parse("p", &written).unwrap();
        assert_eq!(again.root().to_json(), tree.root().to_json());
    }

    #[test]
    fn dots_are_no_end_of_a_document() {
        for text in [" ...", "\"... a\"", "\"...\": b", "a:\n- \"...\""] {
            let tree = yaml::parse("p", text).unwrap();
            let again = yaml::parse("p", &super::to_yaml(&tree)).unwrap();
            assert_eq!(again.root().to_json(), tree.root().to_json());
        }
    }

    #[test]
    fn long_keys_are_read_again() {
        let text = "x".repeat(1200);
        for key in [
            format!("- ? \"{text}\\v\"\n  : [a]\n  b: 2"),
            format!("? {text}\n: a: b"),
        ] {
            let tree = yaml::parse("p", &key).unwrap();
            let again = yaml::parse("p", &super::to_yaml(&tree)).unwrap();
            assert_eq!(again.root().to_json(), tree.root().to_json());
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[ -~\n]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z:#\\- ]{1,6}|\\PC{1,3}", inner, 0..4)
                    .prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_reads_back(value in any_json()) {
            let tree = Tree::from_json("p", &json!({ "root": value }));
            let text = super::to_yaml(&tree);
            let again = yaml::parse("p", &text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(again.root().to_json(), json!({ "root": value }), "{}", text);
        }

        #[test]
        fn no_text_breaks_the_reader(text in "\\PC{0,40}|[-a:{}\\[\\]&*!|>'\"#,\n ?]{0,60}") {
            let _ = yaml::parse("p", &text);
        }
    }
}
