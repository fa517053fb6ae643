//! An Amazon States Language engine: durable, served as Step Functions' own protocol.
