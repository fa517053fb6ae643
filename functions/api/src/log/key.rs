//! Keys of the log service, in both forms that clients send.
//!
//! - `{account}/pipeline/{pipeline}/{sequence}/-{run}[/{stage}[/{group}…]/{step}][-commandUnit:{unit}]`
//! - `accountId:{A}/orgId:{O}/projectId:{P}/pipelineId:{id}/runSequence:{n}/level0:pipeline/level1:stages/…`

use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId, RunId, Scope};

/// What stands before the name of a command unit.
const UNIT: &str = "-commandUnit:";

/// What a key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogKey {
    pub(crate) run: RunOf,
    pub(crate) below: Below,
    /// Only this command unit.
    pub(crate) unit: Option<String>,
}

/// Which run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunOf {
    /// By its id.
    Id(RunId),
    /// The n-th of a pipeline.
    Sequence {
        scope: Scope,
        pipeline: EntityId,
        sequence: u64,
    },
}

/// Which part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// Everything.
    Everything,
    /// By stage, groups and step: `deploy/rollout`.
    Path(String),
    /// By fully qualified name: `stages.deploy.spec.execution.steps.rollout`.
    Name(String),
}

impl LogKey {
    /// Reads a key; `None` when it has neither form.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let key = key.trim_matches('/');
        let (base, unit) = match key.rsplit_once(UNIT) {
            Some((base, unit)) => (base.trim_end_matches('/'), Some(unit.to_owned())),
            None => (key, None),
        };
        match base.starts_with("accountId:") {
            true => older(base, unit),
            false => simplified(base, unit),
        }
    }

    /// Whether a step at `path` with this fully qualified name belongs to what the key names.
    pub(crate) fn covers(&self, path: &str, name: &str) -> bool {
        let below = |whole: &str, part: &str, separator: char| {
            let rest = whole.strip_prefix(part);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(separator))
        };
        match &self.below {
            Below::Everything => true,
            Below::Path(wanted) => below(path, wanted, '/'),
            Below::Name(wanted) => below(name, wanted, '.'),
        }
    }
}

fn simplified(base: &str, unit: Option<String>) -> Option<LogKey> {
    let mut parts = base.splitn(6, '/');
    let _account = parts.next()?;
    (parts.next()? == "pipeline").then_some(())?;
    let (_pipeline, _sequence) = (parts.next()?, parts.next()?);
    let run = parts.next()?.strip_prefix('-')?;
    let below = match parts.next() {
        None | Some("") => Below::Everything,
        Some(path) => Below::Path(path.to_owned()),
    };
    Some(LogKey {
        run: RunOf::Id(crate::identifier::run(run).ok()?),
        below,
        unit,
    })
}

fn older(base: &str, unit: Option<String>) -> Option<LogKey> {
    let (mut account, mut org, mut project) = (None, None, None);
    let (mut pipeline, mut sequence, mut levels) = (None, None, Vec::new());
    for part in base.split('/') {
        let (name, value) = part.split_once(':')?;
        match name {
            "accountId" => account = Some(AccountId::new(value)),
            "orgId" => org = Some(OrgId::new(value)),
            "projectId" => project = Some(ProjectId::new(value)),
            "pipelineId" => pipeline = crate::identifier::entity(value).ok(),
            "runSequence" => sequence = value.parse().ok(),
            _ if name.starts_with("level") => levels.push(value),
            _ => {}
        }
    }
    let name = levels
        .strip_prefix(&["pipeline"])
        .unwrap_or(&levels)
        .join(".");
    Some(LogKey {
        run: RunOf::Sequence {
            scope: Scope {
                account: account?,
                org,
                project,
            },
            pipeline: pipeline?,
            sequence: sequence?,
        },
        below: if name.is_empty() {
            Below::Everything
        } else {
            Below::Name(name)
        },
        unit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let id = || RunOf::Id(RunId::new("pe-1"));
        let cases = [
            ("acc/pipeline/deploy/7/-pe-1", id(), Below::Everything, None),
            (
                "acc/pipeline/deploy/7/-pe-1/",
                id(),
                Below::Everything,
                None,
            ),
            (
                "acc/pipeline/deploy/7/-pe-1/s1/g/run_it-commandUnit:Prepare Rollback Data",
                id(),
                Below::Path("s1/g/run_it".to_owned()),
                Some("Prepare Rollback Data"),
            ),
            (
                "accountId:acc/orgId:o/projectId:p/pipelineId:deploy/runSequence:7/level0:pipeline/\
                 level1:stages/level2:s1-commandUnit:Execute",
                RunOf::Sequence {
                    scope: Scope::project(
                        AccountId::new("acc"),
                        OrgId::new("o"),
                        ProjectId::new("p"),
                    ),
                    pipeline: EntityId::new("deploy"),
                    sequence: 7,
                },
                Below::Name("stages.s1".to_owned()),
                Some("Execute"),
            ),
        ];
        for (text, run, below, unit) in cases {
            let unit = unit.map(str::to_owned);
            assert_eq!(
                LogKey::parse(text),
                Some(LogKey { run, below, unit }),
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "",
            "a",
            "a/b/c/d/e",
            "acc/pipeline/p/1/pe",
            "acc/pipeline/p/1/-",
            "accountId:a",
            "accountId:a/pipelineId:p/runSequence:x",
            "acc/pipeline/p/1/-../../x",
        ] {
            assert_eq!(LogKey::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_prefix_covers_whole_names_only() {
        let key = LogKey::parse("a/pipeline/p/1/-r/deploy/roll").expect("a key");
        assert!(key.covers("deploy/roll", "x"));
        assert!(key.covers("deploy/roll/inner", "x"));
        assert!(!key.covers("deploy/rollback", "x"));
    }
}
