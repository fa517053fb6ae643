//! Regular expressions. They run in linear time, so Java's look-around and back-references are refused.

use regex::{Regex, RegexBuilder};

use crate::error::Reason;

/// Sizes that a compiled pattern may have, in bytes; the first that is enough says what a search costs.
const SIZES: [usize; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// A compiled pattern and its size.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    size: usize,
}

impl Pattern {
    /// Compiles a pattern; a `whole` one must match a text from its first to its last character.
    pub(crate) fn new(text: &str, whole: bool) -> Result<Self, Reason> {
        let plain = Self::compile(text, text)?;
        if !whole {
            return Ok(plain);
        }
        // Only a text that is a pattern by itself is put into brackets: `a)|(b` would not stay inside.
        Self::compile(text, &format!("^(?:{text})$"))
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
                    return Err(fault(
                        shown,
                        "it is not well formed, or uses look-around or back-references",
                    ));
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
