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
    shorten(&format!("{run}-{stage}-{attempt}-{}", walk_name(lane)))
}

/// Name of the execution in which a lane goes on: its `part`-th, from 1.
pub fn lane_part(run: &RunId, lane: &Lane, part: u32) -> String {
    let stage = &lane.stage;
    shorten(&format!("{run}-{stage}-{}-part-{part}", walk_name(lane)))
}

/// Name of the execution that sends a notice about a run.
pub fn notify_execution(run: &RunId, what: &str) -> String {
    shorten(&format!("{run}-{what}"))
}

/// Name of an execution that tells of a freeze outside of runs.
pub(crate) fn freeze_execution(what: &str) -> String {
    shorten(&format!("freeze-{what}"))
}

/// Name of an execution that tells of a trigger that started nothing.
pub(crate) fn trigger_execution(what: &str) -> String {
    shorten(&format!("trigger-{what}"))
}

/// Id of the run that rolls stages of another back, after `earlier` ones that failed: asking for it again, after a
/// crash or twice, is asking for the same run.
pub(crate) fn undo_id<'i>(
    of: &RunId,
    stages: &[StageId],
    earlier: impl Iterator<Item = &'i RunId>,
) -> RunId {
    let earlier: std::collections::BTreeSet<&RunId> = earlier.collect();
    let mut digest = Sha256::new();
    let parts = [of.as_str()].into_iter();
    let parts = parts.chain(stages.iter().map(StageId::as_str));
    for part in parts.chain(earlier.into_iter().map(RunId::as_str)) {
        // No identifier holds a line end, so no two lists of parts read alike.
        digest.update(part.as_bytes());
        digest.update(b"\n");
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finalize()[..16]);
    RunId::new(
        uuid::Builder::from_custom_bytes(bytes)
            .into_uuid()
            .to_string(),
    )
}

fn walk_name(lane: &Lane) -> String {
    match &lane.walk {
        Walk::Steps => "steps".to_owned(),
        Walk::Rollback => "rollback".to_owned(),
        Walk::Branch { parallel, branch } => format!("{parallel}-{branch}"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_ids_are_read_as_they_are_written() {
        let stage = StageId::new("deploy");
        let parallel = NodeId::new("stages.deploy.spec.execution.parallel0");
        for lane in [
            Lane::steps(&stage),
            Lane::rollback(&stage),
            Lane::branch(&stage, &parallel, 3),
        ] {
            assert_eq!(Lane::parse(lane.id().as_str()), Some(lane));
        }
        for bad in [
            "",
            "deploy",
            "deploy/else",
            "deploy/branch/p",
            "deploy/branch/p/x",
            "a/steps/b",
        ] {
            assert_eq!(Lane::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let (run, stage) = (RunId::new("r".repeat(36)), StageId::new("s".repeat(128)));
        let names: Vec<String> = [Lane::steps(&stage), Lane::rollback(&stage)]
            .iter()
            .map(|lane| lane_execution(&run, lane, 0))
            .collect();
        assert_eq!([names[0].len(), names[1].len()], [80, 80]);
        assert_ne!(names[0], names[1]);
        assert_eq!(
            stage_execution(&run, &StageId::new("a"), 0),
            format!("{run}-a-0")
        );
        let odd = stage_execution(&run, &StageId::new("a b:c"), 0);
        assert!(odd.starts_with(&format!("{run}-a_b_c-0-")), "{odd}");
    }
}
