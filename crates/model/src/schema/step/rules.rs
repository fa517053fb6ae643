//! What holds for a step where it stands: its type fits the stage and the deployment, and it has what the
//! other fields of its spec ask for.

use super::place;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::tree::Ref;

/// A field of a spec that asks for others.
struct Need {
    steps: &'static [&'static str],
    field: &'static str,
    /// Values of the field for which `then` must be there.
    values: &'static [&'static str],
    then: &'static [&'static str],
    /// What must be there for any other value, and when there is none.
    otherwise: &'static [&'static str],
}

static NEEDS: &[Need] = &[
    Need {
        steps: &["K8sCanaryDeploy"],
        field: "canaryType",
        values: &["Progressive"],
        then: &["targetPercentage"],
        otherwise: &["instanceSelection"],
    },
    Need {
        steps: &["RestoreCache", "SaveCache"],
        field: "providerType",
        values: &["Gcs", "S3"],
        then: &["bucket", "connectorRef"],
        otherwise: &[],
    },
    Need {
        steps: &["SalesforceApexTest"],
        field: "testLevel",
        values: &["RunSpecifiedTests"],
        then: &["testType", "testValues"],
        otherwise: &[],
    },
    Need {
        steps: &["Chaos"],
        field: "kind",
        values: &["template"],
        then: &["hubRef", "infraReference"],
        otherwise: &[],
    },
    Need {
        steps: &["LoadTest"],
        field: "kind",
        values: &["template"],
        then: &[
            "hubRef",
            "identifier",
            "revision",
            "infraReference",
            "environmentReference",
        ],
        otherwise: &["loadTestRef"],
    },
];

/// Notes steps of a pipeline that do not fit where they stand.
pub(crate) fn pipeline(pipeline: Ref<'_>, out: &mut Diagnostics) {
    stages(pipeline.get("stages"), out);
}

/// Notes steps of a template that do not fit where they stand, as far as the template says where that is.
pub(crate) fn template(template: Ref<'_>, out: &mut Diagnostics) {
    let Some(body) = template.get("spec") else {
        return;
    };
    overridden(template, body, out);
    let mut rules = Rules {
        out,
        stage: None,
        deployment: None,
    };
    match template.get_text("type") {
        Some("Pipeline") => stages(body.get("stages"), rules.out),
        Some("Stage") => stage(body, rules.out),
        Some("StepGroup") => rules.lists(body),
        Some("Step") => rules.step(body),
        _ => {}
    }
}

/// Settings that a template lets its users override: only those that its type has, and that are no runtime
/// inputs, which are given otherwise.
fn overridden(template: Ref<'_>, body: Ref<'_>, out: &mut Diagnostics) {
    let kind = template.get_text("type").unwrap_or_default();
    let list = template.get("allowedOverrides");
    for item in list.into_iter().flat_map(Ref::items) {
        let Some(name) = item.text() else {
            continue;
        };
        let mut known = crate::schema::overridable(kind);
        let Some((_, field)) = known.find(|(known, _)| *known == name) else {
            out.warn_with(|| {
                let message = format!("`{name}` is nothing that a template of type {kind} has");
                Diagnostic::at(Code::BadValue, item, message)
            });
            continue;
        };
        let value = body.get(field).and_then(Ref::text);
        if value.is_some_and(|text| text.trim_start().starts_with("<+input>")) {
            out.push_with(|| {
                let message = format!(
                    "`{name}` cannot be overridden: `{field}` of the template is a runtime input, which `templateInputs` gives"
                );
                Diagnostic::at(Code::BadValue, item, message)
            });
        }
    }
}

fn stages(list: Option<Ref<'_>>, out: &mut Diagnostics) {
    for item in list.into_iter().flat_map(Ref::items) {
        if let Some(element) = item.get("stage") {
            stage(element, out);
        }
        stages(item.get("parallel"), out);
        stages(
            item.get("insert").and_then(|insert| insert.get("stages")),
            out,
        );
    }
}

fn stage(stage: Ref<'_>, out: &mut Diagnostics) {
    let Some(spec) = stage.get("spec") else {
        return;
    };
    let literal = |value: &Ref<'_>| !value.is_expression();
    let kind = stage.get("type").filter(literal).and_then(Ref::text);
    let deployment = spec
        .get("deploymentType")
        .filter(literal)
        .and_then(Ref::text);
    let mut rules = Rules {
        out,
        stage: kind,
        deployment,
    };
    if let Some(execution) = spec.get("execution") {
        rules.lists(execution);
    }
    // What provisions an environment is of another platform than what is deployed to it.
    rules.deployment = None;
    if let Some(provisioner) = spec.at(&["environment", "provisioner"]) {
        rules.lists(provisioner);
    }
}

struct Rules<'a, 'b> {
    out: &'b mut Diagnostics,
    /// Type of the stage that the steps are in, where it is known.
    stage: Option<&'a str>,
    /// `deploymentType` of the stage.
    deployment: Option<&'a str>,
}

impl Rules<'_, '_> {
    /// The steps of an execution or a step group.
    fn lists(&mut self, holder: Ref<'_>) {
        self.list(holder.get("steps"));
        self.list(holder.get("rollbackSteps"));
    }

    fn list(&mut self, list: Option<Ref<'_>>) {
        for item in list.into_iter().flat_map(Ref::items) {
            if let Some(step) = item.get("step") {
                self.step(step);
            }
            for holder in ["stepGroup", "insert"] {
                if let Some(holder) = item.get(holder) {
                    self.lists(holder);
                }
            }
            self.list(item.get("parallel"));
        }
    }

    fn step(&mut self, step: Ref<'_>) {
        let Some(name) = step.get("type") else {
            return;
        };
        let Some(known) = name.text().and_then(place::find) else {
            return;
        };
        self.place(name, known);
        if let Some(spec) = step.get("spec") {
            self.needs(spec, known.name);
        }
    }

    /// Whether the type fits the stage and what is deployed in it.
    fn place(&mut self, name: Ref<'_>, known: &place::StepType) {
        if let Some(stage) = self
            .stage
            .filter(|stage| !place::includes(known.stages, stage))
        {
            return self.out.push_with(|| {
                let message = format!("`{}` is no step of a stage of type `{stage}`", known.name);
                let stages: Vec<_> = place::names(known.stages).collect();
                let expected = format!(
                    "a step that such a stage has, or a stage of type {}",
                    stages.join(" or ")
                );
                Diagnostic::at(Code::BadValue, name, message).expected(expected)
            });
        }
        let fits = |deployment: &&str| {
            known.deployments.is_empty() || known.deployments.contains(deployment)
        };
        if let Some(deployment) = self.deployment.filter(|deployment| !fits(deployment)) {
            self.out.push_with(|| {
                let message = format!(
                    "`{}` does not fit a deployment of type `{deployment}`",
                    known.name
                );
                let expected = format!(
                    "a step for `{deployment}`, or `deploymentType` {}",
                    known.deployments.join(" or ")
                );
                Diagnostic::at(Code::BadValue, name, message).expected(expected)
            });
        }
    }

    /// Whether the fields are there that others ask for.
    fn needs(&mut self, spec: Ref<'_>, name: &str) {
        let Some(need) = NEEDS.iter().find(|need| need.steps.contains(&name)) else {
            return;
        };
        let value = spec.get(need.field);
        if !spec.is_map() || value.is_some_and(Ref::is_expression) {
            return;
        }
        let chosen = value.and_then(Ref::text);
        let asked = match chosen {
            Some(text) if need.values.contains(&text) => need.then,
            _ => need.otherwise,
        };
        for field in asked.iter().filter(|field| spec.get(field).is_none()) {
            self.out.push_with(|| {
                let cause = match chosen {
                    Some(text) => format!("which `{}` {text} asks for", need.field),
                    None => format!("which is asked for where there is no `{}`", need.field),
                };
                let message = format!("`{field}`, {cause}, is missing from the spec of `{name}`");
                Diagnostic::at(Code::MissingField, spec, message)
            });
        }
    }
}
