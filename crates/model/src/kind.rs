//! Kinds of entities.

use serde::{Deserialize, Serialize};

/// What an entity is; its name is the root key of its YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// `pipeline`
    Pipeline,
    /// `service`
    Service,
    /// `environment`
    Environment,
    /// `infrastructureDefinition`
    Infrastructure,
    /// `connector`
    Connector,
    /// `secret`
    Secret,
    /// `organization`
    Organization,
    /// `project`
    Project,
    /// `template`
    Template,
    /// `inputSet`
    InputSet,
    /// `overlayInputSet`
    OverlayInputSet,
    /// `trigger`
    Trigger,
    /// `freeze`
    Freeze,
    /// `environmentGroup`
    EnvironmentGroup,
    /// `overrides`: overrides V2
    Overrides,
    /// `serviceOverrides`: overrides V1
    ServiceOverrides,
    /// `variable`: of an account, organization or project
    Variable,
    /// `file`: a file or folder of the file store
    File,
    /// `userGroup`: people who approve, and are told
    UserGroup,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 19] = [
        Self::Pipeline,
        Self::Service,
        Self::Environment,
        Self::Infrastructure,
        Self::Connector,
        Self::Secret,
        Self::Organization,
        Self::Project,
        Self::Template,
        Self::InputSet,
        Self::OverlayInputSet,
        Self::Trigger,
        Self::Freeze,
        Self::EnvironmentGroup,
        Self::Overrides,
        Self::ServiceOverrides,
        Self::Variable,
        Self::File,
        Self::UserGroup,
    ];

    /// Root key of its YAML.
    pub fn key(self) -> &'static str {
        match self {
            Self::Pipeline => "pipeline",
            Self::Service => "service",
            Self::Environment => "environment",
            Self::Infrastructure => "infrastructureDefinition",
            Self::Connector => "connector",
            Self::Secret => "secret",
            Self::Organization => "organization",
            Self::Project => "project",
            Self::Template => "template",
            Self::InputSet => "inputSet",
            Self::OverlayInputSet => "overlayInputSet",
            Self::Trigger => "trigger",
            Self::Freeze => "freeze",
            Self::EnvironmentGroup => "environmentGroup",
            Self::Overrides => "overrides",
            Self::ServiceOverrides => "serviceOverrides",
            Self::Variable => "variable",
            Self::File => "file",
            Self::UserGroup => "userGroup",
        }
    }

    /// The kind with this root key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn every_kind_has_a_key_of_its_own() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_key(kind.key()), Some(kind));
        }
        assert_eq!(Kind::from_key(""), None);
    }
}
