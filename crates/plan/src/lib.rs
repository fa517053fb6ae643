//! Resolves a pipeline into an immutable plan. Pure.
//!
//! [`resolve`] takes a pipeline, its runtime inputs and whatever entities it refers to and answers with the
//! [`Plan`] of a run, or with every fault at once. It does no I/O: what it refers to comes from
//! [`Entities`]. A caller whose store is asynchronous asks what is [`wanted`], fetches it into a
//! [`Snapshot`] and repeats until nothing new is asked for:
//!
//! ```
//! # use slipway_plan::{ArtifactAnswer, Fetched, Found, Reference, RemoteFiles, Snapshot, Wanted, WantedArtifact};
//! # fn example(
//! #     ask: impl Fn(&Snapshot) -> Wanted,
//! #     find: impl Fn(&Reference) -> Option<Found>,
//! #     fetch: impl Fn(&RemoteFiles) -> Result<Fetched, String>,
//! #     registry: impl Fn(&WantedArtifact) -> Result<ArtifactAnswer, String>,
//! # ) {
//! let mut snapshot = Snapshot::default();
//! loop {
//!     let wanted = snapshot.unknown(ask(&snapshot)); // `wanted(&Request { entities: &snapshot, … })`
//!     if wanted.is_empty() {
//!         break;
//!     }
//!     for reference in wanted.references {
//!         let found = find(&reference);
//!         snapshot.put(reference, found);
//!     }
//!     for files in wanted.files {
//!         let fetched = fetch(&files);
//!         snapshot.put_files(files, fetched);
//!     }
//!     for artifact in wanted.artifacts {
//!         let answer = registry(&artifact);
//!         snapshot.put_artifact(artifact, answer);
//!     }
//! }
//! # }
//! ```

mod alone;
pub mod artifact;
mod chosen;
mod diff;
mod digest;
mod environment;
mod facts;
pub mod fit;
mod form;
mod iteration;
mod late;
pub mod plan;
mod reference;
pub mod remote;
mod resolve;
pub mod template;
mod text;
pub mod unroll;
mod view;

pub use artifact::{
    ArtifactAnswer, ArtifactPlace, ArtifactQuestion, ArtifactVersion, FoundArtifact, ListedVersion,
    ListedVersions, PinnedArtifact, WantedArtifact,
};
pub use chosen::{Choice, Chosen, allows_choice, choices};
pub use diff::diff;
pub use environment::{EnvironmentGroupPlan, EnvironmentPlan};
pub use form::{Form, form};
pub use iteration::{Iteration, in_turns, is_of_turn};
pub use late::{LateAnswers, LateArtifact};
pub use plan::{
    ArtifactPlan, BarrierPlan, CHAINED, ConfigFilePlan, ConnectorPlan, EventPlan, FailureStrategy,
    GroupPlan, InfrastructurePlan, ManifestPlan, MessagePlan, Node, NotificationPlan,
    PIN_ARTIFACTS, ParallelPlan, Plan, RunLoop, STAGE_INPUTS, ServicePlan, StagePlan, StepPlan,
    Variable, When, WhenStatus, event_fact,
};
pub use reference::{EVERY, Entities, FILE, FOLDER, Found, Reference, Snapshot, VARIABLE, Wanted};
pub use remote::{Fetched, GitVersion, RemoteFiles, RemotePlace};
pub use resolve::{
    ALL_STAGES, ArtifactSource, Request, WITHOUT_EFFECT, artifact_sources, draft, expanded,
    notification_rules, reaches_groups, receiver_field, resolve, rules_references,
    template_references, wanted,
};
pub use text::text;

/// Version of the plan's layout that this code writes.
pub const FORMAT: u32 = 1;
