//! Secrets as expressions see them: opaque. No value is ever here, only references and texts with
//! holes; whoever uses such a text fills the holes at the last moment.
//!
//! In JSON (stored specs, delegate payloads) a hole is written as U+FDD0, the reference, U+FDD1. Both
//! are Unicode noncharacters, and [`SecretText::encode`] doubles a U+FDD0 that ordinary text happens to
//! hold, so text from a run (an output variable, a web page) can never become a hole.

use std::fmt;

use serde::{Deserialize, Serialize};

const OPEN: char = '\u{FDD0}';
const CLOSE: char = '\u{FDD1}';

/// Longest reference of a secret, in bytes: `account.` and an identifier of 128 characters fit well.
const LONGEST_REFERENCE: usize = 256;

/// Reference of a secret as YAML writes it: `account.token`, `org.token` or `token`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretRef(String);

/// A text that cannot be the reference of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a secret reference: letters, digits, `_`, `-`, `$`, `/` and dots are, as in `account.token`"
)]
pub struct SecretRefError(String);

impl SecretRef {
    /// Checks that `text` can be a reference: 1 to 256 of `A-Z a-z 0-9 _ - $ . / :`, the last two for
    /// references into a named secret manager (`hashicorpvault://…`).
    pub fn new(text: impl Into<String>) -> Result<Self, SecretRefError> {
        let text = text.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-$./:#".contains(c);
        if text.is_empty() || text.len() > LONGEST_REFERENCE || !text.chars().all(allowed) {
            return Err(SecretRefError(text.chars().take(64).collect()));
        }
        Ok(Self(text))
    }

    /// The reference as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SecretRef {
    type Error = SecretRefError;

    fn try_from(text: String) -> Result<Self, SecretRefError> {
        Self::new(text)
    }
}

impl From<SecretRef> for String {
    fn from(reference: SecretRef) -> Self {
        reference.0
    }
}

/// Shown as the expression that a person would write for it.
impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<+secrets.getValue(\"{}\")>", self.0)
    }
}

/// A part of a [`SecretText`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Ordinary text.
    Plain(String),
    /// The value of this secret belongs here.
    Secret(SecretRef),
}

/// A text in which secrets may have to be filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretText(Vec<Piece>);

impl SecretText {
    /// A text that is one secret.
    pub fn secret(reference: SecretRef) -> Self {
        Self(vec![Piece::Secret(reference)])
    }

    /// A text without secrets.
    pub fn plain(text: impl Into<String>) -> Self {
        let mut new = Self::default();
        new.push_plain(&text.into());
        new
    }

    /// Adds ordinary text.
    pub fn push_plain(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(Piece::Plain(last)) = self.0.last_mut() {
            last.push_str(text);
        } else {
            self.0.push(Piece::Plain(text.to_owned()));
        }
    }

    /// Adds another text.
    pub fn push(&mut self, other: &Self) {
        for piece in &other.0 {
            match piece {
                Piece::Plain(text) => self.push_plain(text),
                Piece::Secret(reference) => self.0.push(Piece::Secret(reference.clone())),
            }
        }
    }

    /// The parts, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// Whether a secret must be filled in.
    pub fn has_secrets(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Secret(_)))
    }

    /// The secrets in it, in order, with repetitions.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Plain(_) => None,
            Piece::Secret(reference) => Some(reference),
        })
    }

    /// Bytes of its ordinary text.
    pub fn plain_len(&self) -> usize {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Plain(text) => text.len(),
                Piece::Secret(_) => 0,
            })
            .sum()
    }

    /// Bytes that it takes, each secret as much as a long reference.
    pub(crate) fn weight(&self) -> usize {
        let secrets = self.secrets().count();
        self.plain_len() + secrets.saturating_mul(LONGEST_REFERENCE)
    }

    /// The form in which it is stored and sent; [`SecretText::decode`] reads it back.
    pub fn encode(&self) -> String {
        let mut out = String::with_capacity(self.plain_len());
        for piece in &self.0 {
            match piece {
                Piece::Plain(text) if text.contains(OPEN) => {
                    out.push_str(&text.replace(OPEN, "\u{FDD0}\u{FDD0}"));
                }
                Piece::Plain(text) => out.push_str(text),
                Piece::Secret(reference) => {
                    out.push(OPEN);
                    out.push_str(reference.as_str());
                    out.push(CLOSE);
                }
            }
        }
        out
    }

    /// Reads what [`SecretText::encode`] wrote. A hole that is not well formed is ordinary text.
    pub fn decode(text: &str) -> Self {
        let mut new = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPEN) {
            new.push_plain(before);
            if let Some(after) = after.strip_prefix(OPEN) {
                new.push_plain("\u{FDD0}");
                rest = after;
                continue;
            }
            let hole = after
                .split_once(CLOSE)
                .and_then(|(name, tail)| Some((SecretRef::new(name).ok()?, tail)));
            match hole {
                Some((reference, tail)) => {
                    new.0.push(Piece::Secret(reference));
                    rest = tail;
                }
                None => {
                    new.push_plain("\u{FDD0}");
                    rest = after;
                }
            }
        }
        new.push_plain(rest);
        new
    }

    /// The text with each secret replaced by what `resolve` answers; the first error ends it.
    pub fn reveal<E>(
        &self,
        mut resolve: impl FnMut(&SecretRef) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut out = String::with_capacity(self.plain_len());
        for piece in &self.0 {
            match piece {
                Piece::Plain(text) => out.push_str(text),
                Piece::Secret(reference) => out.push_str(&resolve(reference)?),
            }
        }
        Ok(out)
    }
}

/// Shown with the expression in each hole: for logs and answers of the API.
impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Plain(text) => f.write_str(text),
            Piece::Secret(reference) => write!(f, "{reference}"),
        })
    }
}
