//! Regular expressions. They run in linear time, so Java's look-around and back-references are refused.

use regex::{Regex, RegexBuilder};

use crate::error::Reason;

/// Sizes that a compiled pattern may have, in bytes; the first that is enough says what a search costs.
const SIZES: [usize; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];

const NOT_WELL_FORMED: &str = "it is not well formed, or uses look-around or back-references";

/// Characters that mean something in a pattern.
const SPECIAL: &str = "\\.[]{}()*+-?^$|";

/// The one text that a pattern stands for, if it is that simple: `,` or `\.`.
pub(crate) fn literal(pattern: &str) -> Option<&str> {
    match pattern.strip_prefix('\\') {
        Some(escaped) if escaped.len() == 1 && SPECIAL.contains(escaped) => Some(escaped),
        _ => (!pattern.contains(|c: char| SPECIAL.contains(c))).then_some(pattern),
    }
}

/// A compiled pattern and its size.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    size: usize,
}

impl Pattern {
    /// Compiles a pattern; a `whole` one must match a text from its first to its last character.
    pub(crate) fn new(text: &str, whole: bool) -> Result<Self, Reason> {
        if !whole {
            return Self::compile(text, text);
        }
        // Only a text that is a pattern by itself is put into brackets: `a)|(b` would not stay inside. It is
        // not compiled for that: without room for a program, only faults of its syntax are left to tell.
        match RegexBuilder::new(text).size_limit(0).build() {
            Ok(_) | Err(regex::Error::CompiledTooBig(_)) => {
                Self::compile(text, &format!("^(?:{text})$"))
            }
            Err(_) => Err(fault(text, NOT_WELL_FORMED)),
        }
    }

    fn compile(shown: &str, text: &str) -> Result<Self, Reason> {
        for size in SIZES {
            let built = RegexBuilder::new(text)
                .size_limit(size)
                .dfa_size_limit(size)
                .build();
            match built {
                Ok(regex) => return Ok(Self { regex, size }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => {
                    return Err(fault(shown, NOT_WELL_FORMED));
                }
            }
        }
        Err(fault(shown, "it is too large"))
    }

    /// Steps that compiling it counts as.
    pub(crate) fn cost(&self) -> usize {
        64 + self.size / 1024
    }

    /// Steps that searching so many bytes counts as: in the worst case each byte visits each state.
    pub(crate) fn search_cost(&self, bytes: usize) -> usize {
        bytes / 64 + bytes.saturating_mul(self.size) / (64 << 10)
    }
}

fn fault(text: &str, problem: &str) -> Reason {
    Reason::Operation {
        operation: format!("the regular expression {text:.80?}"),
        problem: problem.to_owned(),
    }
}
