//! JSONPath in the dialect that Step Functions reads.
//!
//! Own code because the service's dialect is not RFC 9535, which the crates implement (`serde_json_path`,
//! `jsonpath-rust`): names after a dot may hold `-` (`$.delivery-partner`), a backslash in `['…']` is a
//! character and not an escape, a path of names and indexes alone gives its one value while every other
//! path gives a list, and a missing value is an error whose text names the path in brackets. It is the
//! dialect of the Java library that the specification points to (<https://states-language.net>, "Paths").
//!
//! Evaluation visits at most [`MOST_NODES`] values, so that no path hangs.

mod eval;
mod filter;
mod parse;
mod reference;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub(crate) use reference::ReferencePath;

use filter::Filter;

/// Values that one evaluation may visit: a payload of 256 KiB has fewer.
const MOST_NODES: usize = 1_000_000;

/// A parsed path. It starts at `$`, or at `@` inside a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name` or `['name']`.
    Member(String),
    /// `['a','b']`: an object of those members.
    Members(Vec<String>),
    /// `[0]`; from the end if negative.
    Index(i64),
    /// `[0,2]`.
    Indexes(Vec<i64>),
    /// `[1:3]`, without the last.
    Slice(Option<i64>, Option<i64>),
    /// `.*` or `[*]`.
    Wildcard,
    /// `..`: the next step applies to the value and to everything below it.
    Descend,
    /// `[?(…)]`.
    Filter(Filter),
    /// `.length()` and its like, at the end of a path.
    Function(Function),
}

/// The functions that a path may end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Length,
    Min,
    Max,
    Sum,
    Avg,
    Keys,
}

/// Why a path has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// Nothing is there; the sentence says from where on.
    Missing(String),
    /// The path visits more values than an evaluation may.
    TooMany,
}

impl JsonPath {
    /// Parses a path; `None` if the text is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        parse::path(text)
    }

    /// Whether the path can only name one value, which is then given as it is and not in a list.
    pub(crate) fn is_definite(&self) -> bool {
        self.steps.iter().all(|step| {
            matches!(
                step,
                Step::Member(_) | Step::Members(_) | Step::Index(_) | Step::Function(_)
            )
        })
    }

    /// The path in the form that error texts show: `$['a'][0]`.
    pub(crate) fn canonical(&self) -> String {
        canonical(&self.steps)
    }

    /// The value at the path: itself for a definite path, else the list of all that match.
    pub(crate) fn select(&self, root: &Value) -> Result<Value, NoValue> {
        let budget = eval::Budget::new();
        eval::select(self, root, root, &budget).map(std::borrow::Cow::into_owned)
    }
}

fn canonical(steps: &[Step]) -> String {
    let mut text = "$".to_owned();
    for step in steps {
        text.push_str(&match step {
            Step::Member(name) => format!("['{name}']"),
            Step::Members(names) => format!("['{}']", names.join("','")),
            Step::Index(index) => format!("[{index}]"),
            Step::Indexes(indexes) => {
                let indexes: Vec<String> = indexes.iter().map(i64::to_string).collect();
                format!("[{}]", indexes.join(","))
            }
            Step::Slice(from, to) => {
                let show = |end: &Option<i64>| end.map(|i| i.to_string()).unwrap_or_default();
                format!("[{}:{}]", show(from), show(to))
            }
            Step::Wildcard => "[*]".to_owned(),
            Step::Descend => "..".to_owned(),
            Step::Filter(_) => "[?]".to_owned(),
            Step::Function(_) => ".function()".to_owned(),
        });
    }
    text
}
