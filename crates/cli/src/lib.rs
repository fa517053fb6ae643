//! The binary slipway: client commands, local mode, delegate.
