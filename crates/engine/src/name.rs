//! Names of executions and lanes, made from ids so that a repeated start means "already started".

use sha2::{Digest, Sha256};
use slipway_model::id::{LaneId, NodeId, RunId, StageId};

/// Longest execution name that Step Functions accepts (*Service quotas*).
const LONGEST_NAME: usize = 80;

/// How much of the digest stands for the part of a name that was cut off.
const DIGEST_LETTERS: usize = 16;

/// Name of the execution of a stage.
pub fn stage_execution(run: &RunId, stage: &StageId, attempt: u32) -> String {
    shorten(&format!("{run}-{stage}-{attempt}"))
}

/// Name of the execution of a lane.
pub fn lane_execution(run: &RunId, lane: &Lane, attempt: u32) -> String {
    let stage = &lane.stage;
    let rest = match &lane.walk {
        Walk::Steps => "steps".to_owned(),
        Walk::Rollback => "rollback".to_owned(),
        Walk::Branch { parallel, branch } => format!("{parallel}-{branch}"),
    };
    shorten(&format!("{run}-{stage}-{attempt}-{rest}"))
}

fn shorten(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '_',
        })
        .collect();
    if clean == name && name.len() <= LONGEST_NAME {
        return clean;
    }
    let digest = Sha256::digest(name.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let room = LONGEST_NAME - DIGEST_LETTERS - 1;
    let kept: String = clean.chars().take(room).collect();
    format!("{kept}-{}", &digest[..DIGEST_LETTERS])
}

/// Which nodes a lane walks; written as the lane id `<stage>/steps`, `<stage>/rollback` or
/// `<stage>/branch/<parallel block>/<number>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The stage.
    pub stage: StageId,
    /// The nodes.
    pub walk: Walk,
}

/// The nodes of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walk {
    /// `execution.steps`.
    Steps,
    /// `execution.rollbackSteps`.
    Rollback,
    /// One branch of a parallel block.
    Branch {
        /// The block.
        parallel: NodeId,
        /// Its branch, from 0.
        branch: usize,
    },
}

impl Lane {
    /// The lane of a stage's steps.
    pub fn steps(stage: &StageId) -> Self {
        Self {
            stage: stage.clone(),
            walk: Walk::Steps,
        }
    }

    /// The lane of a stage's rollback steps.
    pub fn rollback(stage: &StageId) -> Self {
        Self {
            stage: stage.clone(),
            walk: Walk::Rollback,
        }
    }

    /// The lane of a branch of `parallel`.
    pub fn branch(stage: &StageId, parallel: &NodeId, branch: usize) -> Self {
        Self {
            stage: stage.clone(),
            walk: Walk::Branch {
                parallel: parallel.clone(),
                branch,
            },
        }
    }

    /// The lane as an id.
    pub fn id(&self) -> LaneId {
        let stage = &self.stage;
        LaneId::new(match &self.walk {
            Walk::Steps => format!("{stage}/steps"),
            Walk::Rollback => format!("{stage}/rollback"),
            Walk::Branch { parallel, branch } => format!("{stage}/branch/{parallel}/{branch}"),
        })
    }

    /// The lane that an id names; `None` if it is not the id of a lane.
    pub fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split('/');
        let stage = StageId::new(parts.next()?);
        let walk = match (parts.next()?, parts.next(), parts.next(), parts.next()) {
            ("steps", None, None, None) => Walk::Steps,
            ("rollback", None, None, None) => Walk::Rollback,
            ("branch", Some(parallel), Some(branch), None) => Walk::Branch {
                parallel: NodeId::new(parallel),
                branch: branch.parse().ok()?,
            },
            _ => return None,
        };
        Some(Self { stage, walk })
    }
}
