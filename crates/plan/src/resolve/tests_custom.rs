//! Artifacts that scripts list.

use std::time::Duration;

use serde_json::json;
use slipway_model::{Kind, entity};

use super::*;
use crate::{ArtifactPlace, ArtifactVersion, artifact_sources};

/// A custom source with a script and more lines of its spec.
fn custom(more: &str) -> String {
    format!(
        "{{identifier: img, type: CustomArtifact, spec: {{{more}scripts: {{fetchAllArtifacts: {{artifactsArrayPath: $.items, \
         versionPath: version, spec: {{shell: Bash, source: {{type: Inline, spec: {{script: 'curl <+secrets.getValue(\"key\")>'}}}}}}}}}}}}}}"
    )
}

fn nobody(_: &WantedArtifact) -> Option<Result<ArtifactAnswer, String>> {
    None
}

#[test]
fn a_script_is_asked_when_its_stage_begins_and_not_before() {
    let table = [
        (
            "version: <+pipeline.variables.tag>, ",
            ArtifactVersion::Exact("v1".to_owned()),
        ),
        (
            "version: '', versionRegex: 'v.*', timeout: 20m, ",
            ArtifactVersion::Pattern("v.*".to_owned()),
        ),
        ("version: <+lastPublished.tag>, ", ArtifactVersion::Last),
    ];
    for (version, wanted) in table {
        let (asked, plan) = planned(&custom(version), "", nobody);
        assert_eq!(asked, [], "{version}");
        let late = artifact(&plan).late.as_ref().unwrap();
        let question = &late.wanted.question;
        assert_eq!(question.version.as_ref(), Some(&wanted), "{version}");
        let ArtifactPlace::Script { spec } = &question.place else {
            panic!("{question:?}");
        };
        let fetch = &spec["scripts"]["fetchAllArtifacts"];
        assert_eq!(
            fetch["spec"]["source"]["spec"]["script"],
            "curl <+secrets.getValue(\"key\")>"
        );
        assert!(
            spec.get("version").or(spec.get("versionRegex")).is_none(),
            "{spec}"
        );
        let stage = &plan.as_ref().unwrap().groups[1][0];
        let Node::Step(first) = &stage.steps[0] else {
            panic!("{:?}", stage.steps);
        };
        let minutes = if version.contains("20m") { 30 } else { 10 };
        assert_eq!(first.step_type, PIN_ARTIFACTS);
        assert_eq!(first.timeout, Duration::from_secs(60 * minutes));
    }
}

#[test]
fn a_version_without_a_script_is_taken_as_it_is() {
    let plain = "{identifier: img, type: CustomArtifact, spec: {version: 'acme/web:3'}}";
    for source in [plain, &custom("version: acme/web:3, ")] {
        let (asked, plan) = planned(source, "", nobody);
        assert_eq!(asked, []);
        let artifact = artifact(&plan);
        assert_eq!(artifact.tag.as_deref(), Some("acme/web:3"));
        assert_eq!(artifact.image.as_deref(), Some("acme/web:3"));
        assert_eq!(artifact.late.is_some(), source != plain);
    }
}

#[test]
fn what_a_script_listed_is_the_artifact() {
    let (_, plan) = planned(&custom("versionRegex: '.*', "), "", nobody);
    let mut plan = plan.unwrap();
    let service = plan.groups[1][0].service.as_ref().unwrap();
    let asked = service.artifact.as_ref().unwrap().late.clone().unwrap();
    let found = found("acme/web:4", "", &[("url", "u"), ("image", "i")]);
    let pinned = crate::PinnedArtifact {
        question: asked.wanted.question,
        found,
    };
    plan.pin_late(&|_| Some(vec![Some(pinned.clone())]));
    let plan = Ok(plan);
    let artifact = artifact(&plan);
    assert_eq!(artifact.tag.as_deref(), Some("acme/web:4"));
    assert_eq!(artifact.image.as_deref(), Some("acme/web:4"));
    assert_eq!(artifact.spec["version"], "acme/web:4");
    assert_eq!(
        artifact.metadata(),
        json!({"url": "u", "image": "i", "tag": "acme/web:4"})
    );
}

#[test]
fn a_source_that_names_no_version_or_no_script_for_it_is_refused() {
    let bare = |spec: &str| format!("{{identifier: img, type: CustomArtifact, spec: {{{spec}}}}}");
    let table = [
        (custom(""), "has neither `version` nor `versionRegex`"),
        (
            bare("versionRegex: 'v.*'"),
            "or below `scripts.fetchAllArtifacts` a script that lists what there is",
        ),
    ];
    for (source, expected) in table {
        let (_, plan) = planned(&source, "", nobody);
        let told = faults(plan);
        assert!(told.contains(expected), "{source}: {told}");
    }
}

#[test]
fn versions_of_a_script_are_not_listed_outside_of_runs() {
    let service = format!(
        "service: {{identifier: web, name: Web, serviceDefinition: {{type: ECS, spec: {{artifacts: {{primary: {}}}}}}}}}",
        custom("version: v1, ")
    );
    let service = entity::parse(Kind::Service.key(), &service).unwrap();
    let sources = artifact_sources(&service);
    let told = sources[0].connector().unwrap_err();
    assert!(
        told.contains("its script, and scripts run in runs only"),
        "{told}"
    );
}
