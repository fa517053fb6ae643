//! Fields that a plan has no place for. Nothing is left out without a word: a field without which the run would
//! mean something else is refused by name, one that only informs is told as a warning of the plan, and what
//! never has an effect is listed in [`WITHOUT_EFFECT`] with the reason.

use slipway_model::{Code, Diagnostic, Parsed, Ref};

use super::{Resolver, is_empty};

/// What becomes of a field that is filled in.
pub(super) enum Word {
    /// The plan is refused, with what to do instead.
    Refused(&'static str),
    /// The plan warns, with the reason why the field does nothing.
    Told(&'static str),
}
use Word::{Refused, Told};

/// Fields of one element with what becomes of them.
pub(super) type Fields = &'static [(&'static str, Word)];

const NO_GIT: &str = "; entities are kept in Slipway's store and not in Git, leave it out";
const NO_POLICY: &str = "; leave it out, or check the policy in a step";

pub(super) const PIPELINE: Fields = &[
    ("gitBranch", Refused(NO_GIT)),
    (
        "properties",
        Told("only stages of type CI read it, which this version does not run"),
    ),
];

const STAGE: Fields = &[
    (
        "pipelineVariables",
        Refused("; put them into `variables` of the pipeline"),
    ),
    ("enforce", Refused(NO_POLICY)),
    (
        "skipInstances",
        Told("only deployments to hosts over SSH and WinRM skip instances"),
    ),
    ("objective", Told("it describes the stage to people")),
];

pub(super) const GROUP: Fields = &[
    ("enforce", Refused(NO_POLICY)),
    (
        "sharedPaths",
        Told("only groups that run in a container share paths"),
    ),
    (
        "platform",
        Told("only groups that run in a container have a platform"),
    ),
];

pub(super) const STEP: Fields = &[
    ("enforce", Refused(NO_POLICY)),
    (
        "identities",
        Refused("; take credentials from a connector or a secret"),
    ),
];

const STAGE_SPEC: Fields = &[
    (
        "serviceDependencies",
        Refused("; only build stages start services of their own"),
    ),
    (
        "deploymentMetadata",
        Told("only Google Cloud Functions read it"),
    ),
    (
        "tags",
        Told("the tags of a stage stand beside its `identifier`"),
    ),
];

/// Elements that name something which may live in Git.
pub(super) const REMOTE: Fields = &[("gitBranch", Refused(NO_GIT))];

/// What a stage says of its services and environments beside naming them.
const PLACE: Fields = &[(
    "failureStrategies",
    Told(
        "what it names is read before the run begins, and a fault there keeps the run from starting",
    ),
)];

pub(super) const SERVICE: Fields = &[
    ("gitOpsEnabled", Refused("; leave it out")),
    (
        "useFromStage",
        Refused("; the stage says `useFromStage`, not the service"),
    ),
];

/// The spec of an AWS connector that a stage or a step uses. Its `delegateSelectors` are read by scripts that ask for the
/// selectors of their infrastructure, and by nobody else.
pub(super) const AWS_CONNECTOR: Fields = &[
    (
        "proxy",
        Told("AWS is called by the service itself, which goes the way that its own host goes"),
    ),
    (
        "delegateSelectors",
        Told(
            "AWS is called by the service itself and not by a delegate; only scripts with `includeInfraSelectors` read it",
        ),
    ),
];

/// The OIDC credential of such a connector.
pub(super) const OIDC_CREDENTIAL: Fields = &[
    (
        "sessionTags",
        Told("the tokens of Slipway carry no tags of the session"),
    ),
    (
        "sessionTagKeys",
        Told("the tokens of Slipway carry no tags of the session"),
    ),
];

pub(super) const INFRASTRUCTURE: Fields = &[(
    "provisioner",
    Refused("; put the provisioning steps into a stage before this one"),
)];

pub(super) const INFRASTRUCTURE_SPEC: Fields = &[(
    "provisioner",
    Told("what it provisions must exist when the stage begins"),
)];

/// Fields that have no effect in a plan whatever they say, by the name that [`slipway_model::schema`] gives the
/// element that they stand in (`*` for any), with the reason.
pub const WITHOUT_EFFECT: &[(&str, &str, &str)] = &[
    ("*", "__uuid", "Harness writes it by itself"),
    ("*", "__yamlNode", "Harness writes it by itself"),
    ("*", "metadata", "Harness writes it by itself"),
    ("*", "description", "it is for people"),
    ("*", "icon", "it is for the canvas"),
    ("*", "color", "it is for the canvas"),
    ("*", "contextType", "Harness's editor writes it"),
    ("*", "yaml", "Harness's API repeats the document in it"),
    ("*", "version", "Harness counts its own edits in it"),
    ("*", "orgIdentifier", "checked when the entity is saved"),
    ("*", "projectIdentifier", "checked when the entity is saved"),
    ("*", "accountIdentifier", "checked when the entity is saved"),
    ("*", "accountId", "checked when the entity is saved"),
    (
        "pipeline",
        "allowStageExecutions",
        "it permits runs of chosen stages, which a request must ask for",
    ),
    (
        "pipeline",
        "fixedInputsOnRerun",
        "it is about the form of a rerun",
    ),
    (
        "notification-rule",
        "identifier",
        "nothing refers to a rule",
    ),
    ("variable", "id", "Harness's editor writes it"),
    ("variable", "displayName", "it is for people"),
    ("variable", "options", "it is for the form of a run"),
    (
        "variable",
        "executionTarget",
        "only variables of build steps have a target",
    ),
];

impl Resolver<'_> {
    /// Refuses fields of an element, or tells of them, where they are filled in.
    pub(super) fn look_over(&mut self, element: Ref<'_>, what: &str, fields: Fields) {
        for (name, word) in fields {
            let Some(value) = element.get(name).filter(|value| says_something(*value)) else {
                continue;
            };
            match word {
                Refused(advice) => self.unsupported(value, &format!("`{name}` of {what}"), advice),
                Told(reason) => self.faults.warn_with(|| {
                    let message = format!("`{name}` of {what} has no effect: {reason}");
                    Diagnostic::at(Code::NotSupported, value, message)
                }),
            }
        }
    }

    /// Expressions spelt out as Harness's schema allows (`{expression: {expressionValue: …}}`): nothing reads
    /// them, and no documentation says what should.
    pub(super) fn refuse_spelt_out(&mut self, pipeline: &Parsed) {
        if !pipeline.tree.mentions(&["expressionValue"]) {
            return;
        }
        for value in pipeline.body().scalars() {
            if value.path().ends_with(".expression.expressionValue") {
                let advice = "; write the expression as a text";
                self.unsupported(value, "an expression in `expressionValue`", advice);
            }
        }
    }

    pub(super) fn check_stage(&mut self, stage: Ref<'_>) {
        self.look_over(stage, "a stage", STAGE);
    }

    /// The spec of a stage that deploys nothing.
    pub(super) fn check_custom(&mut self, spec: Ref<'_>) {
        self.look_over(spec, "a stage", STAGE_SPEC);
        self.check_places(spec);
    }

    /// The spec of a deployment stage.
    pub(super) fn check_spec(&mut self, spec: Ref<'_>) {
        self.check_custom(spec);
    }

    /// What a stage says of its services and environments beside naming them.
    fn check_places(&mut self, spec: Ref<'_>) {
        for field in ["service", "environment", "environmentGroup"] {
            if let Some(element) = spec.get(field) {
                self.check_place(element, field);
            }
        }
        for (list, values, field) in [
            ("services", "values", "service"),
            ("environments", "values", "environment"),
            ("environmentGroup", "environments", "environment"),
        ] {
            if let Some(element) = spec.get(list) {
                self.tell_strategies(element, list);
            }
            let values = spec.at(&[list, values]).into_iter();
            for element in values.flat_map(Ref::items) {
                self.check_place(element, field);
            }
        }
    }

    fn check_place(&mut self, element: Ref<'_>, field: &str) {
        self.look_over(element, &format!("`{field}`"), REMOTE);
        self.tell_strategies(element, field);
    }

    /// Harness fetches what a service or an environment is made of in steps of the stage, whose failures these
    /// strategies answer. Here it is fetched before the run begins, and a fault there keeps the run from starting: no
    /// failure is left that they could answer.
    fn tell_strategies(&mut self, element: Ref<'_>, field: &str) {
        self.look_over(element, &format!("`{field}`"), PLACE);
    }
}

/// Whether a field is more than an empty value or `false`, which is what it would be without being written.
fn says_something(value: Ref<'_>) -> bool {
    !value.is_null() && !is_empty(value) && value.text() != Some("false")
}
