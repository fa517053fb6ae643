//! Whole-system tests live in `tests/tests/`; what they share lives here.
