//! The steps: one folder per swimlane, one registry.
