//! Whether a stage reads what other stages wrote, so that their records are only loaded where needed.

use slipway_plan::{Plan, StagePlan};

/// Whether an expression that can be evaluated in `stage` may name another stage. Looks at the texts
/// without parsing them: a false alarm costs one larger query.
pub(crate) fn mentions_other_stages(plan: &Plan, stage: &StagePlan) -> bool {
    let alone = plan.groups.iter().flatten().nth(1).is_none();
    if alone {
        return false;
    }
    let texts = [
        serde_json::to_string(stage),
        serde_json::to_string(&plan.variables),
    ];
    texts.iter().any(|text| match text {
        Ok(text) => OF_OTHERS.iter().any(|name| text.contains(name)),
        Err(_) => true,
    })
}

/// What names of other stages' steps hold: `pipeline.currentStatus` reads those of stages that go on.
const OF_OTHERS: &[&str] = &[
    "pipeline.stages.",
    "+stages.",
    "pipeline.currentStatus",
    "pipeline.liveStatus",
    "approval.",
    "exportedVariables.",
];
