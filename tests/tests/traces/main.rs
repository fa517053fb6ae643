//! One small pipeline for each thing that a pipeline can say about order, conditions, failure and people
//! (`tests/traces`): its golden trace in virtual time, the same in a real `slipway local`, and the same while that is
//! killed.

mod case;
mod golden;
mod killed;
mod local;
mod others;
mod outcome;
mod place;
mod play;
mod show;
mod table;
mod words;
