//! Tags of a run: those of its pipeline, with their expressions (docs platform/tags: values may be expressions).

use std::collections::BTreeMap;

use slipway_expr::Limits;
use slipway_plan::Plan;
use slipway_store::record::RunRecord;

use crate::context::RunContext;

/// The tags of a run that is about to be accepted. Their expressions read what is known then: its inputs, variables and
/// who started it. One that asks for more, or for a secret, stays as it was written: tags are shown to everybody.
pub(crate) fn of_run(plan: &Plan, run: &RunRecord) -> Vec<(String, String)> {
    let nodes = BTreeMap::new();
    let context = RunContext {
        plan,
        run,
        nodes: &nodes,
        stage: None,
        node: None,
    };
    let tags = plan.tags.iter();
    tags.map(|(key, text)| (key.clone(), shown(&context, text)))
        .collect()
}

fn shown(context: &RunContext<'_>, text: &str) -> String {
    let evaluated = slipway_expr::parse(text).ok().and_then(|template| {
        let value = template.evaluate(context, &Limits::default()).ok()?;
        match value.has_secrets() {
            true => None,
            false => value.text(),
        }
    });
    evaluated.unwrap_or_else(|| text.to_owned())
}
