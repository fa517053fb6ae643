//! The function of the pipeline and stage machines.
