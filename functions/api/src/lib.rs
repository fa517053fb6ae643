//! The REST API, as the official Harness clients speak it.
