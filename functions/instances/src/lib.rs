//! Counts service instances, on a schedule and after deployments.
