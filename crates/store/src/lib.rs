//! DynamoDB and S3 layout of Slipway: every access pattern, no Scan.

pub mod record;
