//! Exported variables: what steps with an `outputAlias` wrote, by its scope and alias. Source: docs continuous-delivery/
//! x-platform-cd-features/cd-steps/utilities/shell-script-step, *Scoping output variables using aliases*.

use serde_json::Value as Json;
use slipway_expr::Value;
use slipway_plan::Node;
use slipway_store::record::NodeRecord;

use super::RunContext;
use crate::lane::node_id;

/// Scopes as expressions spell them, as steps do, and as people do.
const SCOPES: [(&str, &str, &str); 3] = [
    ("pipeline", "Pipeline", "pipeline"),
    ("stage", "Stage", "stage"),
    ("stepGroup", "StepGroup", "step group"),
];

impl RunContext<'_> {
    /// `exportedVariables.getValue("SCOPE.ALIAS.NAME")`, or all that was exported under an alias without a name.
    pub(super) fn exported(&self, path: &str) -> Result<Value, String> {
        let mut parts = path.splitn(3, '.');
        let (scope, alias, name) = (parts.next(), parts.next(), parts.next());
        let known = SCOPES.iter().find(|(spelt, ..)| scope == Some(spelt));
        let (Some((_, scope, place)), Some(alias)) = (known, alias) else {
            return Err(format!(
                "`{path}` is no exported variable: pipeline.ALIAS.NAME, stage.ALIAS.NAME and stepGroup.ALIAS.NAME are"
            ));
        };
        let missing =
            || format!("no step that has succeeded by now exported `{alias}` for this {place}");
        let variables = self.variables_of(scope, alias).ok_or_else(missing)?;
        let Some(name) = name else {
            return Ok(Value::from_marked_json(variables));
        };
        // A name may hold dots.
        let found = variables
            .get(name)
            .ok_or_else(|| format!("what was exported as `{alias}` has no variable `{name}`"))?;
        Ok(Value::from_marked_json(found))
    }

    /// The output variables of the step that exported them; for a step group, of the nearest around.
    fn variables_of(&self, scope: &str, alias: &str) -> Option<&Json> {
        let all = || self.nodes.values();
        match scope {
            "Pipeline" => all().find_map(|node| exports(node, scope, alias)),
            "Stage" => {
                let stage = &self.stage?.id;
                let mut own = all().filter(|node| node.stage == *stage);
                own.find_map(|node| exports(node, scope, alias))
            }
            _ => {
                let around = self.around(self.stage?);
                let groups = around.iter().rev();
                let mut groups = groups.filter(|node| matches!(node, Node::Group(_)));
                groups.find_map(|group| {
                    let within = format!("{}.", node_id(group));
                    let mut own = all().filter(|node| node.id.as_str().starts_with(&within));
                    own.find_map(|node| exports(node, scope, alias))
                })
            }
        }
    }
}

/// The output variables of a step that has exported them so.
fn exports<'n>(node: &'n NodeRecord, scope: &str, alias: &str) -> Option<&'n Json> {
    let wanted = node.spec.get("outputAlias")?;
    let is = |field: &str, value: &str| wanted.get(field).and_then(Json::as_str) == Some(value);
    let exported = node.status.is_final() && node.status.is_good();
    let exported = exported && is("key", alias) && is("scope", scope);
    let variables = node.outputs.get("output")?.get("outputVariables")?;
    exported.then_some(variables)
}
