//! Where a value stands, as a chain on the stack: it becomes a text only for a fault.

use std::fmt;

use crate::path::join;

/// A place in a document that is being checked.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    above: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Start(&'a str),
    Key(&'a str),
    Item(usize),
}

impl<'a> At<'a> {
    /// The place that is called `path`.
    pub(super) fn start(path: &'a str) -> Self {
        Self {
            above: None,
            step: Step::Start(path),
        }
    }

    /// The value of a key of it.
    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self {
            above: Some(self),
            step: Step::Key(key),
        }
    }

    /// An item of it.
    pub(super) fn item(&'a self, index: usize) -> Self {
        Self {
            above: Some(self),
            step: Step::Item(index),
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(here) = at {
            steps.push(here.step);
            at = here.above;
        }
        for step in steps.iter().rev() {
            match step {
                Step::Start(path) => f.write_str(path)?,
                Step::Key(key) => f.write_str(&join(key))?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
