//! Resolves a pipeline into an immutable plan. Pure.
//!
//! [`resolve`] takes a pipeline, its runtime inputs and whatever entities it refers to and answers with the
//! [`Plan`] of a run, or with every fault at once. It does no I/O: what it refers to comes from
//! [`Entities`]. A caller whose store is asynchronous asks for [`references`], fetches them into a
//! [`Snapshot`] and repeats until nothing new is asked for:
//!
//! ```
//! # use slipway_plan::{references, Found, Reference, Request, Snapshot};
//! # fn example<'a>(request: impl Fn(&Snapshot) -> Vec<Reference>, fetch: impl Fn(&Reference) -> Option<Found>) {
//! let mut snapshot = Snapshot::default();
//! loop {
//!     let wanted = snapshot.unknown(request(&snapshot)); // `references(&Request { entities: &snapshot, … })`
//!     if wanted.is_empty() {
//!         break;
//!     }
//!     for reference in wanted {
//!         let found = fetch(&reference);
//!         snapshot.put(reference, found);
//!     }
//! }
//! # }
//! ```

mod diff;
mod digest;
mod facts;
pub mod fit;
mod form;
mod iteration;
pub mod plan;
mod reference;
mod resolve;
pub mod template;
mod text;
mod view;

pub use diff::diff;
pub use form::{Form, form};
pub use iteration::{Iteration, in_turns};
pub use plan::{
    ArtifactPlan, ConfigFilePlan, ConnectorPlan, EnvironmentPlan, FailureStrategy, GroupPlan,
    InfrastructurePlan, ManifestPlan, Node, ParallelPlan, Plan, ServicePlan, StagePlan, StepPlan,
    Variable, When, WhenStatus,
};
pub use reference::{EVERY, Entities, FILE, Found, Reference, Snapshot, VARIABLE};
pub use resolve::{Request, expanded, references, resolve, template_references};
pub use text::text;

/// Version of the plan's layout that this code writes.
pub const FORMAT: u32 = 1;
