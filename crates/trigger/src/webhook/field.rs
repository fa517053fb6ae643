//! Fields of payloads, by their path: what is missing or of another kind is an error that names it.

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde_json::Value;

use crate::ChangedFiles;

/// A payload, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Fields<'v> {
    value: &'v Value,
    /// The path of the part, for errors: what was gone into, outermost first.
    at: [&'static str; 3],
}

impl<'v> Fields<'v> {
    /// The fields of a value.
    pub(super) fn of(value: &'v Value) -> Self {
        Self { value, at: [""; 3] }
    }

    /// The whole path of a field.
    fn whole(self, path: &str) -> String {
        let parts = self.at.into_iter().chain([path]);
        parts
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(".")
    }

    fn missing(self, path: &str) -> String {
        format!("`{}` of the payload is missing", self.whole(path))
    }

    fn wrong(self, path: &str, wanted: &str, found: &Value) -> String {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        format!(
            "`{}` of the payload is {found}: {wanted} is expected",
            self.whole(path)
        )
    }

    /// What is at a path of names with dots between; `None` where it is missing or null, or what should contain it is.
    pub(super) fn find(self, path: &str) -> Option<&'v Value> {
        let found = path
            .split('.')
            .try_fold(self.value, |value, name| match value {
                Value::Array(items) => items.get(name.parse::<usize>().ok()?),
                other => other.get(name),
            });
        found.filter(|value| !value.is_null())
    }

    /// A text that need not be there; an empty one is none.
    pub(super) fn maybe(self, path: &str) -> Result<Option<String>, String> {
        match self.find(path) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(other) => Err(self.wrong(path, "a text", other)),
        }
    }

    /// A text that must be there.
    pub(super) fn text(self, path: &str) -> Result<String, String> {
        self.maybe(path)?.ok_or_else(|| self.missing(path))
    }

    /// The first of some texts that is there.
    pub(super) fn first(self, paths: &[&str]) -> Result<Option<String>, String> {
        for path in paths {
            if let Some(text) = self.maybe(path)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// A whole number that is not negative and must be there.
    pub(super) fn number(self, path: &str) -> Result<u64, String> {
        let found = self.find(path).ok_or_else(|| self.missing(path))?;
        found
            .as_u64()
            .ok_or_else(|| self.wrong(path, "a whole number that is not negative", found))
    }

    /// Whether it is true; what is missing is not.
    pub(super) fn flag(self, path: &str) -> Result<bool, String> {
        match self.find(path) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(self.wrong(path, "true or false", other)),
        }
    }

    /// An object that must be there.
    pub(super) fn object(self, path: &'static str) -> Result<Fields<'v>, String> {
        match self.find(path) {
            Some(value) if value.is_object() => {
                let mut at = self.at;
                if let Some(place) = at.iter_mut().find(|part| part.is_empty()) {
                    *place = path;
                }
                Ok(Fields { value, at })
            }
            Some(other) => Err(self.wrong(path, "an object", other)),
            None => Err(self.missing(path)),
        }
    }

    /// The elements of a list; none where it is missing.
    pub(super) fn list(self, path: &str) -> Result<&'v [Value], String> {
        match self.find(path) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.wrong(path, "a list", other)),
        }
    }

    /// All of a field as JSON, for keys; empty where it is missing.
    pub(super) fn raw(self, path: &str) -> String {
        self.find(path).map(Value::to_string).unwrap_or_default()
    }

    /// A time, as it is written: for keys, where only equality counts.
    pub(super) fn stamp(self, path: &str) -> Result<String, String> {
        match self.find(path) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(other) => Err(self.wrong(path, "a time", other)),
        }
    }

    /// The same in epoch milliseconds; `None` where it is missing or written in a way that nobody documents.
    pub(super) fn time(self, path: &str) -> Result<Option<i64>, String> {
        let text = self.stamp(path)?;
        Ok(milliseconds(&text))
    }

    /// The files that a list of commits names in `added`, `removed` and `modified`; unknown where `complete` says that
    /// there are more commits, or a commit does not list its files.
    pub(super) fn changed_files(self, path: &str, complete: bool) -> Result<ChangedFiles, String> {
        let mut files = Vec::new();
        let mut known = std::collections::HashSet::new();
        let mut lists = 0;
        let commits = self.list(path)?;
        for (at, commit) in commits.iter().enumerate() {
            for kind in ["added", "removed", "modified"] {
                let found = Self::of(commit)
                    .list(kind)
                    .map_err(|why| format!("{path}.{at}: {why}"))?;
                lists += usize::from(commit.get(kind).is_some_and(Value::is_array));
                for file in found {
                    let name = file.as_str().ok_or_else(|| {
                        self.wrong(&format!("{path}.{at}.{kind}"), "a list of texts", file)
                    })?;
                    if known.insert(name) {
                        files.push(name.to_owned());
                    }
                }
            }
        }
        files.sort();
        let listed = lists > 0 && lists >= commits.len();
        Ok(match complete && listed {
            true => ChangedFiles::Known(files),
            false => ChangedFiles::Unknown,
        })
    }
}

/// Most that a number can be as seconds; more is milliseconds. As seconds it is the year 5138, as milliseconds 1973.
const MOST_SECONDS: i64 = 100_000_000_000;

/// A time as providers write it: RFC 3339, `2026-01-31 12:00:00 UTC` (GitLab), the same with an offset without a colon
/// (Bitbucket Server), or a number of seconds or milliseconds.
fn milliseconds(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        return match number.checked_abs()? < MOST_SECONDS {
            true => number.checked_mul(1000),
            false => Some(number),
        };
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_millisecond());
    }
    if let Some(local) = text.strip_suffix(" UTC") {
        return format!("{local}Z")
            .parse::<Timestamp>()
            .ok()
            .map(Timestamp::as_millisecond);
    }
    let parsed = strtime::parse("%Y-%m-%dT%H:%M:%S%z", text).ok()?;
    parsed.to_timestamp().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_are_read_as_providers_write_them() {
        let noon = Some(1_769_860_800_000);
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00.000Z",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31T12:00:00.0000000+00:00",
            "2026-01-31 12:00:00 UTC",
            "2026-01-31T13:00:00+0100",
            "1769860800",
            "1769860800000",
        ] {
            assert_eq!(milliseconds(text), noon, "{text}");
        }
        for text in [
            "",
            "soon",
            "2026-13-01T00:00:00Z",
            "-9223372036854775808",
            " UTC",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
