//! Regular expressions. They run in linear time, so Java's look-around and back-references are refused.
//! `\w`, `\d` and `\s` mean ASCII, as they do in Java.

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
    pub(crate) fn new(shown: &str, whole: bool) -> Result<Self, Reason> {
        let text = &ascii_classes(shown);
        if !whole {
            return Self::compile(shown, text);
        }
        // Only a text that is a pattern by itself is put into brackets: `a)|(b` would not stay inside. It is
        // not compiled for that: without room for a program, only faults of its syntax are left to tell.
        match RegexBuilder::new(text).size_limit(0).build() {
            Ok(_) | Err(regex::Error::CompiledTooBig(_)) => {
                Self::compile(shown, &format!("^(?:{text})$"))
            }
            Err(_) => Err(fault(shown, NOT_WELL_FORMED)),
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

/// A pattern with the classes that Java limits to ASCII written out.
fn ascii_classes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    // Brackets that are open, and whether the innermost has just been opened.
    let (mut open, mut first) = (0_usize, false);
    while let Some(c) = chars.next() {
        let was_first = std::mem::take(&mut first);
        match c {
            '\\' => match chars.next() {
                Some(class @ ('w' | 'd' | 's' | 'W' | 'D' | 'S')) => {
                    push_class(&mut out, class, open > 0);
                }
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' => {
                (open, first) = (open + 1, true);
                out.push(c);
            }
            // Right behind the opening bracket it is one of the characters.
            ']' if was_first => out.push(c),
            '^' if was_first => {
                first = true;
                out.push(c);
            }
            ']' => {
                open = open.saturating_sub(1);
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn push_class(out: &mut String, class: char, inside: bool) {
    let characters = match class.to_ascii_lowercase() {
        'w' => "0-9A-Za-z_",
        'd' => "0-9",
        _ => r"\t\n\x0B\x0C\r\x20",
    };
    let negated = if class.is_ascii_uppercase() { "^" } else { "" };
    // A class can stand in a class, and so can a negated one.
    match (inside, negated) {
        (true, "") => out.push_str(characters),
        _ => out.extend(["[", negated, characters, "]"]),
    }
}

fn fault(text: &str, problem: &str) -> Reason {
    Reason::Operation {
        operation: format!("the regular expression {text:.80?}"),
        problem: problem.to_owned(),
    }
}
