//! Conditions of retries.

use slipway_engine::lane::{Failing, LanePlan, retry_conditions};
use slipway_store::record::NodeRecord;

use crate::expressions::NodeExpressions;
use crate::walk::Walk;

impl Walk<'_> {
    /// A node that fails, with those of its retries' conditions that do not hold now. One that cannot be evaluated does
    /// not hold, and the failure says why.
    pub(crate) fn with_refusals(
        &self,
        lane: &LanePlan<'_>,
        node: Failing<'_>,
        mut failing: NodeRecord,
    ) -> NodeRecord {
        let Some(mut failure) = failing.failure.take() else {
            return failing;
        };
        let conditions = retry_conditions(lane, &self.facts, node, failure.error);
        if !conditions.is_empty() {
            let mut nodes = self.nodes.clone();
            let seen = NodeRecord {
                failure: Some(failure.clone()),
                ..failing.clone()
            };
            nodes.insert(node.id.clone(), seen);
            let expressions = NodeExpressions::new(&self.of_run, &nodes, node.id, &self.tags);
            for condition in conditions {
                match expressions.condition(&condition) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(why) => failure.message.push_str(&format!(
                        " It is not tried again: the condition `{condition}` of its retry cannot be evaluated. {}",
                        why.message
                    )),
                }
                failing.refused.push(condition);
            }
        }
        failing.failure = Some(failure);
        failing
    }
}
