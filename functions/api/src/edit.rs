//! Changes one field of a YAML text and leaves the rest as its author wrote it, comments included.

use serde_json::Value;
use slipway_model::entity::Kind;
use slipway_model::{Tree, edit, emit, yaml};

/// `text` with `field` of the entity set to `value`. Where the text cannot be changed in place it is
/// written anew: the same document, without comments.
pub(crate) fn set(kind: Kind, text: &str, field: &str, value: &Value) -> String {
    let path = [kind.key(), field];
    let anew = || {
        let tree = yaml::parse(kind.key(), text).ok()?;
        let wanted = edit::wanted(&tree, &path, value)?;
        Some(emit::to_yaml(&Tree::from_json(kind.key(), &wanted)))
    };
    edit::set(text, &path, value)
        .or_else(anew)
        .unwrap_or_else(|| text.to_owned())
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
