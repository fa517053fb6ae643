//! Identifiers: one newtype per thing, so that two kinds cannot be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a text that is known to be a well-formed identifier of this kind.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The identifier as it is written on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

ids! {
    /// A Slipway account (tenant).
    AccountId,
    /// An organization of an account.
    OrgId,
    /// A project of an organization.
    ProjectId,
    /// What an entity is called in YAML (`identifier`).
    EntityId,
    /// One execution of a pipeline (Harness: `planExecutionId`).
    RunId,
    /// A stage of a plan: its identifier, with the loop postfix where it was expanded.
    StageId,
    /// A node of a plan: its fully qualified name below `pipeline`, for instance
    /// `stages.deploy.spec.execution.steps.rollout`.
    NodeId,
    /// A lane of a run: a list of nodes walked in order.
    LaneId,
    /// A user, service account or the system itself.
    PrincipalId,
}

/// Where an entity lives: an account, an organization of it, or a project of that.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope {
    /// The account; always there.
    pub account: AccountId,
    /// The organization, for organization and project scope.
    pub org: Option<OrgId>,
    /// The project, for project scope only.
    pub project: Option<ProjectId>,
}

impl Scope {
    /// The scope of a whole account.
    pub fn account(account: AccountId) -> Self {
        Self {
            account,
            org: None,
            project: None,
        }
    }

    /// The scope of an organization.
    pub fn org(account: AccountId, org: OrgId) -> Self {
        Self {
            account,
            org: Some(org),
            project: None,
        }
    }

    /// The scope of a project.
    pub fn project(account: AccountId, org: OrgId, project: ProjectId) -> Self {
        Self {
            account,
            org: Some(org),
            project: Some(project),
        }
    }

    /// The scope that a reference such as `account.aws` or `org.aws` or plain `aws` names when it is
    /// written in this scope, and the bare identifier.
    pub fn resolve(&self, reference: &str) -> (Self, EntityId) {
        if let Some(rest) = reference.strip_prefix("account.") {
            return (Self::account(self.account.clone()), EntityId::new(rest));
        }
        if let (Some(rest), Some(org)) = (reference.strip_prefix("org."), &self.org) {
            return (
                Self::org(self.account.clone(), org.clone()),
                EntityId::new(rest),
            );
        }
        (self.clone(), EntityId::new(reference))
    }
}
