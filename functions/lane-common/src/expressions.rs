//! The expressions of a node, for the step that runs there.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_engine::context::RunContext;
use slipway_engine::runs::StageOfRun;
use slipway_expr::{Context, EvalError, Limits, evaluate_json};
use slipway_model::id::NodeId;
use slipway_model::status::{ErrorType, Failure};
use slipway_steps::Expressions;
use slipway_store::record::NodeRecord;

use crate::tags::{Tagging, Tags};

/// Expressions at one node of a run.
pub(crate) struct NodeExpressions<'a>(Tagging<'a>);

impl<'a> NodeExpressions<'a> {
    pub(crate) fn new(
        of_run: &'a StageOfRun,
        nodes: &'a BTreeMap<NodeId, NodeRecord>,
        node: &'a NodeId,
        tags: &'a Tags,
    ) -> Self {
        let context = RunContext {
            plan: &of_run.plan,
            run: &of_run.run,
            nodes,
            stage: Some(of_run.stage()),
            node: Some(node),
        };
        Self(Tagging { context, tags })
    }

    /// Whether a condition holds.
    pub(crate) fn condition(&self, text: &str) -> Result<bool, Failure> {
        slipway_expr::condition(text, &self.0, &Limits::default()).map_err(|e| failure(&e))
    }
}

impl Expressions for NodeExpressions<'_> {
    fn evaluate(&self, value: &Value) -> Result<Value, Failure> {
        let evaluated = evaluate_json(value, &self.0, &Limits::default());
        evaluated.map(|(value, _)| value).map_err(|e| failure(&e))
    }

    fn context(&self) -> &dyn Context {
        &self.0
    }
}

fn failure(error: &EvalError) -> Failure {
    Failure {
        error: ErrorType::Unknown,
        message: format!("{}.", error.full_text().trim_end_matches('.')),
        left_behind: None,
    }
}
