//! Changes one field of a YAML text and leaves the rest as its author wrote it, comments included.

use serde_json::Value;
use slipway_model::Tree;
use slipway_model::entity::Kind;
use slipway_model::{emit, yaml};

/// `text` with `field` of the entity set to `value`. Where the text cannot be changed in place it is
/// written anew: the same document, without comments.
pub(crate) fn set(kind: Kind, text: &str, field: &str, value: &Value) -> String {
    let Ok(tree) = yaml::parse(kind.key(), text) else {
        return text.to_owned();
    };
    let mut wanted = tree.root().to_json();
    if let Some(Value::Object(inner)) = wanted.get_mut(kind.key()) {
        inner.insert(field.to_owned(), value.clone());
    }
    let in_place = in_place(kind, &tree, text, field, &wanted);
    in_place.unwrap_or_else(|| emit::to_yaml(&Tree::from_json(kind.key(), &wanted)))
}

/// The changed text, when it says exactly what is wanted and nothing else changed.
fn in_place(kind: Kind, tree: &Tree, text: &str, field: &str, wanted: &Value) -> Option<String> {
    let new = wanted.get(kind.key())?.get(field)?.as_str()?;
    let there = tree.root().get(kind.key())?.get(field)?;
    let (place, old) = (there.place(), there.scalar()?);
    let start = offset(text, place.line, place.column)?;
    let rest = &text[start..];
    let written = [old.to_owned(), format!("\"{old}\""), format!("'{old}'")];
    let length = written
        .iter()
        .find(|form| rest.starts_with(form.as_str()))?
        .len();
    // A JSON string is a YAML string; a plain word needs no quotes.
    let plain = new.starts_with(|c: char| c.is_ascii_alphabetic())
        && new
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " _-.".contains(c))
        && !new.ends_with(' ');
    let token = if plain {
        new.to_owned()
    } else {
        Value::from(new).to_string()
    };
    let changed = format!("{}{token}{}", &text[..start], &rest[length..]);
    let says = yaml::parse(kind.key(), &changed).ok()?.root().to_json();
    (says == *wanted).then_some(changed)
}

/// The byte at a line and column, both from 1, the column in characters.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let (mut at, line) = (0, line.checked_sub(1)? as usize);
    let mut lines = text.split_inclusive('\n');
    for _ in 0..line {
        at += lines.next()?.len();
    }
    let column = column.checked_sub(1)? as usize;
    let (inside, _) = lines.next()?.char_indices().nth(column)?;
    Some(at + inside)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use slipway_model::entity::Kind;

    use super::set;

    #[test]
    fn only_the_field_changes() {
        let before =
            "# head\nservice:\n  name: ä b # why\n  identifier: a\n  description: \"x: y\"\n";
        let named = set(Kind::Service, before, "name", &json!("The service"));
        assert_eq!(named, before.replace("ä b", "The service"));
        let described = set(Kind::Service, before, "description", &json!("a\n\"b\": #"));
        assert_eq!(described, before.replace("\"x: y\"", r#""a\n\"b\": #""#));
        let truthy = set(Kind::Service, before, "name", &json!("true"));
        assert!(truthy.contains("true"), "{truthy}");
    }

    #[test]
    fn what_cannot_be_changed_in_place_is_written_anew() {
        let before = "service:\n  name: >-\n    folded\n    name\n  identifier: a\n";
        let after = set(Kind::Service, before, "name", &json!("n"));
        let parsed = slipway_model::entity::parse("service", &after).expect("a service");
        assert_eq!(parsed.head.name, "n");
        let tags = set(
            Kind::Service,
            "service:\n  name: a\n  identifier: a\n  tags:\n    k: v\n",
            "tags",
            &json!({"k": "w"}),
        );
        let parsed = slipway_model::entity::parse("service", &tags).expect("a service");
        assert_eq!(parsed.head.tags, [("k".to_owned(), "w".to_owned())]);
    }
}
