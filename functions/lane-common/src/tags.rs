//! What expressions of steps do and read beyond the facts of their run: the artifact before this one ([`before`]), and tags
//! that they add to their run: `<+executionTags.addTag(key, value)>` and
//! `<+executionTags.addTagsList(list)>`, also without the namespace. Source: docs platform/pipelines/
//! add-tags-dynamically-to-execution. What the calls stand for is an empty text, which no document says.

use std::sync::{Mutex, PoisonError};

use serde_json::Value as Json;
use slipway_engine::context::RunContext;
use slipway_expr::{Context, Segment, Value};

use crate::before;

/// Most tags of one list.
const MOST: usize = 1_000;

/// Most characters of a key, and of a value.
const LONGEST: (usize, usize) = (128, 1_024);

/// Tags that expressions added and that are not written yet, and what they read of an earlier deployment.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    added: Mutex<Vec<(String, String)>>,
    /// What `<+rollbackArtifact>` is.
    before: Option<Value>,
}

impl Tags {
    /// No tags yet; `before` is what `<+rollbackArtifact>` is.
    pub(crate) fn reading(before: Option<Value>) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Takes out what was added since the last time.
    pub(crate) fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.added.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, tags: Vec<(String, String)>) -> Result<(), String> {
        for (key, value) in &tags {
            if key.trim().is_empty() {
                return Err("the key of a tag is empty".to_owned());
            }
            if key.chars().count() > LONGEST.0 || value.chars().count() > LONGEST.1 {
                return Err(format!(
                    "a tag has a key of at most {} characters and a value of at most {}",
                    LONGEST.0, LONGEST.1
                ));
            }
        }
        let mut all = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(tags);
        Ok(())
    }
}

/// What expressions of a node read, and where they add tags.
pub(crate) struct Tagging<'a> {
    pub(crate) context: RunContext<'a>,
    pub(crate) tags: &'a Tags,
}

impl Context for Tagging<'_> {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let mut keys = path.iter().map(Segment::key);
        if keys.next() == Some(Some(before::NAME)) {
            return keys.try_fold(self.tags.before.clone()?, |value, key| match value {
                Value::Map(mut fields) => fields.shift_remove(key?),
                _ => None,
            });
        }
        self.context.lookup(path)
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        self.context.definition(path)
    }

    fn now_ms(&self) -> Option<i64> {
        self.context.now_ms()
    }

    fn call(&self, functor: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        let name = functor.strip_prefix("executionTags.").unwrap_or(functor);
        let found = match (name, arguments) {
            ("addTag", [key, value]) => pair(key, value).map(|tag| vec![tag]),
            ("addTagsList", [list]) => listed(list),
            _ => return self.context.call(functor, arguments),
        };
        let added = found.and_then(|tags| self.tags.add(tags));
        Some(added.map(|()| Value::String(String::new())))
    }
}

fn pair(key: &Value, value: &Value) -> Result<(String, String), String> {
    let text = |value: &Value| value.text().ok_or("a secret cannot be part of a tag");
    Ok((text(key)?, text(value)?))
}

/// `[{key, value}, …]`, as a list or as its JSON.
fn listed(list: &Value) -> Result<Vec<(String, String)>, String> {
    if list.has_secrets() {
        return Err("a secret cannot be part of a tag".to_owned());
    }
    let wanted = || "it takes a list of `{key, value}`, or its JSON".to_owned();
    let json = match list {
        Value::String(text) => serde_json::from_str(text).map_err(|_| wanted())?,
        other => other.to_shown_json(),
    };
    let items = json.as_array().ok_or_else(wanted)?;
    if items.len() > MOST {
        return Err(format!("{} tags at once; {MOST} are the most", items.len()));
    }
    let text = |value: Option<&Json>| match value {
        Some(Json::String(text)) => Some(text.clone()),
        None | Some(Json::Null) => Some(String::new()),
        Some(Json::Array(_) | Json::Object(_)) => None,
        Some(other) => Some(other.to_string()),
    };
    let tag = |item: &Json| Some((text(item.get("key"))?, text(item.get("value"))?));
    let tags: Option<Vec<(String, String)>> = items
        .iter()
        .map(tag)
        // Harness's own example has pairs without a key in it; they are no tags.
        .filter(|tag| tag.as_ref().is_none_or(|(key, _)| !key.trim().is_empty()))
        .collect();
    tags.ok_or_else(wanted)
}

#[cfg(test)]
mod tests {
    use super::{Tags, Value, listed, pair};

    #[test]
    fn lists_of_tags_are_read_and_what_is_none_is_refused() {
        let read = |text: &str| listed(&Value::String(text.to_owned()));
        let of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            read(r#"[{"key": "a", "value": 1}, {"key": "b"}, {"key": "", "value": "x"}]"#),
            Ok(vec![of("a", "1"), of("b", "")])
        );
        for wrong in [
            "",
            "{}",
            "[{\"key\": []}]",
            "[{\"key\": \"a\", \"value\": {}}]",
            "no json",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let many = format!("[{}]", vec![r#"{"key": "a"}"#; 1_001].join(","));
        assert!(read(&many).is_err_and(|why| why.contains("1001 tags")));
        let tags = Tags::default();
        let long = pair(&Value::String("k".repeat(129)), &Value::Int(1));
        assert!(long.and_then(|tag| tags.add(vec![tag])).is_err());
        assert_eq!(tags.add(vec![of("a", "b")]), Ok(()));
        assert_eq!((tags.take(), tags.take()), (vec![of("a", "b")], vec![]));
    }
}
