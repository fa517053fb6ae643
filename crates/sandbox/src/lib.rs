//! An AWS account in a process: ECS as it behaves over time, on the wire.
