//! The function of lanes that need no swimlane of their own.
