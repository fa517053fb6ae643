//! What is wrong with a document, and where: the one form in which the language reports faults.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::tree::{Place, Ref, Tree};

/// Faults reported for one request at most; the rest is summed up in one more.
pub const MOST_DIAGNOSTICS: usize = 100;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document is accepted; its author should look.
    Warning,
}

/// The kind of fault, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The text is not YAML.
    Syntax,
    /// A limit on size, depth, nodes, aliases, stages or steps is exceeded.
    Limit,
    /// A key stands twice in one mapping.
    RepeatedKey,
    /// A YAML tag is used.
    Tag,
    /// The root key is not that of an entity.
    UnknownKind,
    /// A field that does not exist.
    UnknownField,
    /// A field that must be there is not.
    MissingField,
    /// A value has the wrong form.
    BadValue,
    /// An `<+…>` expression does not parse.
    BadExpression,
    /// Known to Harness, not supported by this version of Slipway.
    NotSupported,
    /// Something that is referred to does not exist.
    NotFound,
    /// References form a loop.
    Loop,
    /// An identifier is used twice.
    Duplicate,
    /// A runtime input was not given.
    MissingInput,
    /// A runtime input was given that is not allowed or not asked for.
    BadInput,
}

/// One fault of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Whether the document is refused for it.
    pub severity: Severity,
    /// Kind of fault.
    pub code: Code,
    /// File (or other name of the text) it is in.
    pub file: String,
    /// Line, from 1; 0 where the text has no lines (values made by a program).
    pub line: u32,
    /// Column in characters, from 1; 0 where the text has no lines.
    pub column: u32,
    /// Path of the value, `pipeline.stages[0].stage.spec` for instance.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What was expected instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The nearest valid name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// An error at `place` of `file`; `path` is filled in by [`Diagnostic::path`].
    pub fn error(code: Code, file: &str, place: Place, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            path: String::new(),
            message: message.into(),
            expected: None,
            suggestion: None,
        }
    }

    /// An error at a value of a tree, with its path.
    pub fn at(code: Code, value: Ref<'_>, message: impl Into<String>) -> Self {
        Self::error(code, value.file(), value.place(), message).path(value.path())
    }

    /// An error about a whole tree.
    pub fn about(code: Code, tree: &Tree, message: impl Into<String>) -> Self {
        Self::at(code, tree.root(), message)
    }

    /// Sets the path.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Sets the suggestion, if there is one.
    #[must_use]
    pub fn suggest(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.suggestion = suggestion.map(Into::into);
        self
    }

    /// Makes it a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        } else {
            write!(f, "{}: ", self.file)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean `{suggestion}`?")?;
        }
        Ok(())
    }
}

/// Collects faults up to [`MOST_DIAGNOSTICS`], so that a document of a million faults costs no more
/// than one of a hundred.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    errors: usize,
    left_out: usize,
}

impl Diagnostics {
    /// Notes one fault. Where there is no room, a warning makes room for an error.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let is_error = diagnostic.severity == Severity::Error;
        self.errors += usize::from(is_error);
        if self.found.len() >= MOST_DIAGNOSTICS {
            self.left_out += 1;
            let is_warning = |other: &Diagnostic| other.severity == Severity::Warning;
            match self.found.iter().rposition(is_warning) {
                Some(last) if is_error => drop(self.found.remove(last)),
                _ => return,
            }
        }
        self.found.push(diagnostic);
    }

    /// Notes one error, which is made only when it is kept: making one costs a walk over its document.
    pub fn push_with(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.errors < MOST_DIAGNOSTICS {
            self.push(diagnostic());
        } else {
            self.errors += 1;
            self.left_out += 1;
        }
    }

    /// Notes one warning, which is made only when it is kept.
    pub fn warn_with(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.found.len() < MOST_DIAGNOSTICS {
            self.push(diagnostic().warning());
        } else {
            self.left_out += 1;
        }
    }

    /// Notes several faults.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in diagnostics {
            self.push(diagnostic);
        }
    }

    /// Whether an error was noted.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether no more errors are kept; a caller with much left to look at may stop.
    pub fn is_full(&self) -> bool {
        self.errors > MOST_DIAGNOSTICS
    }

    /// The value with the warnings, or the faults when one of them is an error.
    pub fn finish<T>(self, value: T) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
        if self.has_errors() {
            Err(self.into_vec())
        } else {
            Ok((value, self.found))
        }
    }

    /// The faults, and one more that counts those left out.
    pub fn into_vec(mut self) -> Vec<Diagnostic> {
        if let (Some(last), 1..) = (self.found.last(), self.left_out) {
            let mut more = last.clone();
            more.code = Code::Limit;
            more.message = format!("{} more faults are not shown", self.left_out);
            more.expected = None;
            more.suggestion = None;
            more.severity = if self.has_errors() {
                Severity::Error
            } else {
                Severity::Warning
            };
            self.found.push(more);
        }
        self.found
    }
}

/// The name of `known` that is nearest to `given`, when it is near enough to be a slip.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long text is no slip of a name, and comparing costs its length times that of each name.
    if given.len() > 128 {
        return None;
    }
    let folded = given.to_lowercase();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        // A beginning that was meant to be the whole name is nearer than its missing letters say.
        let cut_short = folded.len() >= 4 && name.starts_with(&folded);
        let distance = if cut_short {
            1
        } else {
            strsim::damerau_levenshtein(&folded, &name)
        };
        (distance <= (name.len().max(folded.len()) / 3).max(1)).then_some(distance)
    };
    known
        .into_iter()
        .filter_map(|name| Some((distance(name)?, name)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A text for a message: short, on one line.
pub fn shown(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    let first = text.lines().next().unwrap_or_default();
    if first.len() == text.len() && text.chars().count() <= LONGEST {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(first.chars().take(LONGEST).chain(['…']).collect())
    }
}

/// The name of a text, shared by all positions in it.
pub type FileName = Arc<str>;
