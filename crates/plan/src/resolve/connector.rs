//! Connectors that steps name, and what connectors say.

use serde_json::Value;
use slipway_model::{Code, Kind, Ref};

use super::known::Known;
use super::{Referred, Resolver, unplanned};
use crate::{ConnectorPlan, fit, template};

impl Resolver<'_> {
    /// The connector of a step that calls a system itself.
    pub(super) fn step_connector(
        &mut self,
        step: Ref<'_>,
        step_type: &str,
        identifier: &str,
        known: &Known<'_>,
    ) -> Option<ConnectorPlan> {
        let wanted = fit::step_connector(step_type)?;
        let value = step.at(&["spec", "connectorRef"])?;
        // Of the steps that may do without one.
        if value.is_null() || value.text().is_some_and(|text| text.trim().is_empty()) {
            return None;
        }
        let scope = self.request.scope;
        let found = self.entity(Kind::Connector, value, scope, None, known)?;
        let kind = found.entity.head.entity_type.clone().unwrap_or_default();
        if kind != wanted {
            let message = format!(
                "the connector `{}` is of type {kind}; the step `{identifier}` of type {step_type} needs a connector of type {wanted}",
                found.entity.head.identifier
            );
            self.fault(Code::BadValue, value, message);
            return None;
        }
        Some(ConnectorPlan {
            spec: self.connector_spec(&found),
            reference: found.written,
            kind,
        })
    }

    /// Tells of fields of a connector that nobody reads.
    fn tell_unread(&mut self, found: &Referred) {
        let body = found.entity.body();
        let Some(spec) = body
            .get("spec")
            .filter(|_| body.get_text("type") == Some("Aws"))
        else {
            return;
        };
        let what = format!("the connector `{}`", found.entity.head.identifier);
        self.look_over(spec, &what, unplanned::AWS_CONNECTOR);
        if let Some(oidc) = spec.at(&["credential", "spec"]) {
            self.look_over(oidc, &what, unplanned::OIDC_CREDENTIAL);
        }
    }

    /// `spec` of a connector, with the secret manager template that it may link to put in.
    pub(super) fn connector_spec(&mut self, found: &Referred) -> Value {
        self.tell_unread(found);
        let source = super::source(self.request, self.asked);
        if !found.entity.tree.mentions(&["template"]) {
            return found.entity.to_json()["spec"].clone();
        }
        match template::expand_tree(&source, &found.entity.tree, &found.scope) {
            Ok((tree, notes)) => {
                self.faults.extend(notes);
                let spec = tree.root().at(&["connector", "spec"]);
                spec.map_or(Value::Null, Ref::to_json)
            }
            Err(faults) => {
                self.faults.extend(faults);
                Value::Null
            }
        }
    }
}

#[cfg(test)]
#[path = "tests_connector.rs"]
mod tests;
