//! Bounds of one evaluation, so that a hostile expression costs a known amount of time and memory.

/// Limits of an evaluation. The default is right for pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations; every 64 bytes of text that are made count as one too.
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
