//! Bounds of one evaluation, so that a hostile expression costs a known amount of time and memory.

use std::rc::Rc;

use crate::error::Reason;
use crate::pattern::Pattern;
use crate::value::Value;

/// Limits of an evaluation. The default is right for pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations; every 64 bytes that are made, copied or read count as one too.
    pub steps: usize,
    /// Nesting of expressions, through the definitions of variables as well.
    pub depth: usize,
    /// Bytes of one value. Harness's limit for the value of a variable is 256 KB
    /// (docs: variables-and-expressions/harness-variables, "Expression evaluation").
    pub value_bytes: usize,
    /// Bytes of a text with its expressions replaced.
    pub text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 100_000,
            depth: 64,
            value_bytes: 256 * 1024,
            text_bytes: 4 * 1024 * 1024,
        }
    }
}

/// Compiled patterns that an evaluation keeps.
const PATTERNS: usize = 16;

/// A pattern, whether it was compiled to match whole texts, and what it was compiled to.
type Known = (String, bool, Rc<Pattern>);

/// What an evaluation has spent, and what it keeps between operations.
pub(crate) struct Meter<'a> {
    pub(crate) limits: &'a Limits,
    steps: usize,
    /// The value of `limits.steps`, or more where a whole document shares a meter.
    allowed: usize,
    patterns: Vec<Known>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            steps: 0,
            allowed: limits.steps,
            patterns: Vec::new(),
        }
    }

    /// Lets the next evaluation spend `limits.steps`, and all of them together not more than `total`.
    pub(crate) fn refill(&mut self, total: &mut usize) {
        *total = total.saturating_sub(self.steps);
        self.steps = 0;
        self.allowed = self.limits.steps.min(*total);
    }

    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Reason> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.allowed {
            return Err(limit(self.limits.steps, "steps of evaluation"));
        }
        Ok(())
    }

    /// Counts the work of reading or copying so many bytes.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Reason> {
        self.spend(bytes / 64)
    }

    /// Counts the work that a value cost, all of it, and checks its size.
    pub(crate) fn value(&mut self, value: &Value) -> Result<(), Reason> {
        let bytes = match value {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Time(_) => 0,
            Value::String(text) => self.bounded(text.len())?,
            Value::Secret(text) => self.bounded(text.weight())?,
            Value::List(_) | Value::Map(_) => value.weight(),
        };
        self.spend(1 + bytes / 64)
    }

    /// `bytes`, if a value may have so many.
    pub(crate) fn bounded(&self, bytes: usize) -> Result<usize, Reason> {
        if bytes > self.limits.value_bytes {
            return Err(limit(self.limits.value_bytes, "bytes in one value"));
        }
        Ok(bytes)
    }

    /// A compiled pattern, counted as the work of compiling it where it is new and of searching a text
    /// with it. A `whole` one matches only from the first to the last character.
    pub(crate) fn search(
        &mut self,
        text: &str,
        pattern: &str,
        whole: bool,
    ) -> Result<Rc<Pattern>, Reason> {
        let pattern = self.pattern(pattern, whole)?;
        self.spend(pattern.search_cost(text.len()))?;
        Ok(pattern)
    }

    fn pattern(&mut self, text: &str, whole: bool) -> Result<Rc<Pattern>, Reason> {
        let same = |known: &&Known| known.0 == text && known.1 == whole;
        if let Some((_, _, known)) = self.patterns.iter().find(same) {
            return Ok(Rc::clone(known));
        }
        let pattern = Rc::new(Pattern::new(text, whole)?);
        self.spend(pattern.cost())?;
        if self.patterns.len() == PATTERNS {
            self.patterns.remove(0);
        }
        self.patterns
            .push((text.to_owned(), whole, Rc::clone(&pattern)));
        Ok(pattern)
    }
}

pub(crate) fn limit(limit: usize, unit: &'static str) -> Reason {
    Reason::Limit { limit, unit }
}
