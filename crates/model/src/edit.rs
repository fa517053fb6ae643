//! Changes one field of a YAML text and leaves the rest as its author wrote it, comments included.
//!
//! The changed text is read again: it is given out only when it says exactly what is wanted.

use serde_json::Value;

use crate::tree::{Data, Ref, Tree};
use crate::{emit, yaml};

/// The text with the field at `path` set to `value`, or without the field where `value` is null.
///
/// `None` when that cannot be done in place: the text is no YAML, the mapping that holds the field is not
/// there, or it is written in a form (`{a: 1}`, aliases) that cannot be changed line by line. A caller then
/// writes the document anew with [`wanted`] and [`emit::to_yaml`].
pub fn set(text: &str, path: &[&str], value: &Value) -> Option<String> {
    let tree = yaml::parse("", text).ok()?;
    let wanted = wanted(&tree, path, value)?;
    let (key, above) = path.split_last()?;
    let parent = tree.root().at(above)?;
    let lines = Lines::of(text);
    let says = |changed: &String| {
        yaml::parse("", changed).is_ok_and(|again| again.root().to_json() == wanted)
    };
    let scalar = value.as_str().and_then(|new| token(text, parent, key, new));
    scalar
        .filter(says)
        .or_else(|| entry(&lines, parent, key, value).filter(says))
}

/// What the document says once the field at `path` is set, or removed where `value` is null; `None` when the
/// mapping that holds the field is not there.
pub fn wanted(tree: &Tree, path: &[&str], value: &Value) -> Option<Value> {
    let mut wanted = tree.root().to_json();
    let (key, above) = path.split_last()?;
    let parent = above
        .iter()
        .try_fold(&mut wanted, |place, key| place.get_mut(*key))?;
    let parent = parent.as_object_mut()?;
    if value.is_null() {
        parent.remove(*key);
    } else {
        parent.insert((*key).to_owned(), value.clone());
    }
    Some(wanted)
}

/// The text with the scalar of `key`, on one line, exchanged for another.
fn token(text: &str, parent: Ref<'_>, key: &str, new: &str) -> Option<String> {
    let there = parent.get(key)?;
    let (place, old) = (there.place(), there.scalar()?);
    let start = offset(text, place.line, place.column)?;
    let (before, rest) = text.split_at_checked(start)?;
    let written = [old.to_owned(), format!("\"{old}\""), format!("'{old}'")];
    let length = written
        .iter()
        .find(|form| rest.starts_with(form.as_str()))?
        .len();
    let after = rest.get(length..)?;
    Some(format!("{before}{}{after}", emit::scalar(new)))
}

/// The byte at a line and column, both from 1, the column in characters.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let line = usize::try_from(line.checked_sub(1)?).ok()?;
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let column = usize::try_from(column.checked_sub(1)?).ok()?;
    let (inside, _) = text
        .split_inclusive('\n')
        .nth(line)?
        .char_indices()
        .nth(column)?;
    Some(before + inside)
}

/// The lines of a text, each with its end.
struct Lines<'a>(Vec<&'a str>);

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self(text.split_inclusive('\n').collect())
    }

    /// Lines before one, from it to another, and from there on, each as one text.
    fn around(&self, from: usize, to: usize) -> Option<(String, String)> {
        let before = self.0.get(..from)?.concat();
        let after = self.0.get(to..)?.concat();
        Some((before, after))
    }

    /// The line after the last one of an entry whose key stands at `line` and `indent`, both from 0. Empty
    /// lines and comments after it belong to what follows.
    fn end_of_entry(&self, line: usize, indent: usize, is_list: bool) -> usize {
        let mut end = line + 1;
        for (index, text) in self.0.iter().enumerate().skip(line + 1) {
            let content = text.trim_start_matches(' ');
            let depth = text.len() - content.len();
            let blank = content.trim().is_empty() || content.starts_with('#') && depth <= indent;
            let item = is_list && depth == indent && content.starts_with('-');
            if blank {
                continue;
            }
            if depth <= indent && !item {
                break;
            }
            end = index + 1;
        }
        end
    }
}

/// The text with the whole entry of `key` exchanged, added as the last of its mapping, or taken out.
fn entry(lines: &Lines<'_>, parent: Ref<'_>, key: &str, value: &Value) -> Option<String> {
    let Data::Map(entries) = &parent.node().data else {
        return None;
    };
    let there = parent.fields().find(|(name, ..)| *name == key);
    let (_, place, last) = there.or_else(|| parent.fields().last())?;
    let line = usize::try_from(place.line.checked_sub(1)?).ok()?;
    let indent = usize::try_from(place.column.checked_sub(1)?).ok()?;
    let end = lines.end_of_entry(line, indent, last.is_list());
    let written = || {
        let tree = Tree::from_json("", &serde_json::json!({ key: value }));
        let pad = " ".repeat(indent);
        let text = emit::to_yaml(&tree);
        text.split_inclusive('\n')
            .map(|line| format!("{pad}{line}"))
            .collect::<String>()
    };
    if there.is_none() {
        let (before, after) = lines.around(end, end)?;
        let gap = if before.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{before}{gap}{}{after}", written()));
    }
    // What stands before the key on its line: indentation, or the dash of an item.
    let head = lines.0.get(line)?.get(..indent)?;
    let (before, after) = lines.around(line, end)?;
    if value.is_null() {
        let alone = head.trim().is_empty() && entries.len() > 1;
        return alone.then(|| before + &after);
    }
    let written = written();
    Some(format!("{before}{head}{}{after}", written.get(indent..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const TEXT: &str = "# head\nservice:\n  name: ä b # why\n  identifier: a\n  description: |\n    two\n    lines\n  # of the tags\n  tags:\n    \
                        a: b # c\n  # of the definition\n  serviceDefinition:\n    type: ECS\n    spec:\n      variables:\n      - name: v # first\n        \
                        type: String\n# end\n";

    #[test]
    fn one_field_changes_and_nothing_else() {
        let cases = [
            (
                "a scalar keeps its comment",
                vec!["service", "name"],
                json!("other"),
                "  name: other # why\n",
            ),
            (
                "a quoted one",
                vec!["service", "name"],
                json!("a: b"),
                "  name: \"a: b\" # why\n",
            ),
            (
                "a block becomes a line",
                vec!["service", "description"],
                json!("one"),
                "  description: \"one\"\n  # of the tags\n  tags:\n",
            ),
            (
                "a mapping",
                vec!["service", "tags"],
                json!({"x": "y"}),
                "  tags:\n    x: \"y\"\n  # of the definition\n",
            ),
            (
                "a value deep inside",
                vec!["service", "tags", "a"],
                json!("c"),
                "    a: c # c\n",
            ),
            (
                "a new field",
                vec!["service", "orgIdentifier"],
                json!("o"),
                "        type: String\n  orgIdentifier: \"o\"\n# end\n",
            ),
            (
                "a new field deep inside",
                vec!["service", "tags", "n"],
                json!("1"),
                "    a: b # c\n    n: \"1\"\n  # of the definition\n",
            ),
            (
                "a field less",
                vec!["service", "description"],
                Value::Null,
                "  identifier: a\n  # of the tags\n",
            ),
        ];
        for (what, path, value, expected) in cases {
            let changed = set(TEXT, &path, &value).unwrap_or_else(|| panic!("{what}"));
            assert!(changed.contains(expected), "{what}:\n{changed}");
            for comment in ["# head", "# of the definition", "# first", "# end"] {
                assert!(
                    changed.contains(comment),
                    "{what} lost {comment}:\n{changed}"
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_changed_line_by_line_is_left_to_the_caller() {
        let cases = [
            (
                "service: {name: a}\n",
                vec!["service", "tags"],
                json!({"a": "b"}),
            ),
            (
                "service:\n  name: a\n",
                vec!["service", "tags", "a"],
                json!("b"),
            ),
            ("a: [", vec!["a"], json!(1)),
            (
                "service:\n  name: a\n",
                vec!["service", "name"],
                Value::Null,
            ),
        ];
        for (text, path, value) in cases {
            assert_eq!(set(text, &path, &value), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_set_is_what_it_says(new in "\\PC{0,30}|[-a:{}#'\"\n ]{0,20}", field in prop::sample::select(vec!["name", "description", "tags", "new"])) {
            let value = json!(new);
            let changed = set(TEXT, &["service", field], &value);
            let tree = yaml::parse("", &changed.unwrap_or_default()).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(&tree.root().to_json()["service"][field], &value);
        }

        #[test]
        fn no_text_breaks_it(text in "(a|b|:|-|#|\\||'|\n| |\\{){0,40}") {
            let _ = set(&text, &["a", "b"], &json!("x"));
        }
    }
}
