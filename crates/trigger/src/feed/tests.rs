use serde_json::json;

use super::*;
use crate::{Condition, Operator, Outcome};

fn spec(kind: &str, fields: Value) -> FeedSpec {
    FeedSpec {
        kind: kind.to_owned(),
        spec: fields,
        ..FeedSpec::default()
    }
}

fn builds(versions: &[&str]) -> Vec<Build> {
    versions.iter().map(|version| Build::of(*version)).collect()
}

fn versions(builds: &[Build]) -> Vec<&str> {
    builds.iter().map(|build| build.version.as_str()).collect()
}

/// The operators as far as these tests need them.
fn holds(operator: Operator, actual: &str, wanted: &str) -> bool {
    match operator {
        Operator::Equals => actual == wanted,
        Operator::NotEquals => actual != wanted,
        Operator::StartsWith => actual.starts_with(wanted),
        other => panic!("{other:?}"),
    }
}

fn condition(key: &str, operator: Operator, value: &str) -> Condition {
    Condition {
        key: key.to_owned(),
        operator,
        value: value.to_owned(),
    }
}

#[test]
fn a_script_is_run_as_it_is_written() {
    let of = |script: &str, version: &str| {
        let input = json!({"name": "SEPARATOR", "type": "String", "value": " "});
        let fields = json!({"script": script, "inputs": [input], "versionPath": " name ", "version": version});
        Feed::of(&spec("CustomArtifact", fields), "acc/org/shop/-")
    };
    let feed = of("  cat <<END\n  a\nEND\n", "<+trigger.artifact.build>");
    assert_eq!(
        feed.place,
        json!({
            "script": "  cat <<END\n  a\nEND\n",
            "inputs": [{"name": "SEPARATOR", "type": "String", "value": " "}],
            "versionPath": "name",
        })
    );
    assert_eq!(feed, of("  cat <<END\n  a\nEND\n", "1.0"));
    assert_ne!(feed.key(), of("cat <<END\n  a\nEND", "1.0").key());
}

#[test]
fn triggers_that_watch_the_same_have_one_feed() {
    let ecr = |fields: Value| Feed::of(&spec("Ecr", fields), "acc/org/shop/aws");
    let one = ecr(json!({
        "connectorRef": "aws", "region": "us-east-1", "imagePath": "web", "tag": "<+trigger.artifact.build>",
        "eventConditions": [{"key": "build", "operator": "Equals", "value": "1"}],
    }));
    let other = ecr(json!({
        "imagePath": " web ", "registryId": "", "region": "us-east-1", "connectorRef": "project.aws",
        "jexlCondition": "true", "metaDataConditions": null,
    }));
    assert_eq!((&one, one.key()), (&other, other.key()));
    assert_eq!(
        one.place,
        json!({"imagePath": "web", "region": "us-east-1"})
    );
    // A name for the store, which later versions must give it too.
    assert_eq!(one.key(), "Ecr-57zVdz5bSwMzlVBKQOn94vfmEBXaipOppafFKmbwBJM");

    let same_name_elsewhere = Feed::of(
        &spec("Ecr", json!({"region": "us-east-1", "imagePath": "web"})),
        "acc/org/other/aws",
    );
    let elsewhere = ecr(json!({"region": "eu-west-1", "imagePath": "web"}));
    let all = [&one, &same_name_elsewhere, &elsewhere].map(Feed::key);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 3);
}

#[test]
fn a_path_is_a_place_or_a_choice_as_the_registry_has_it() {
    let place = |kind: &str, fields: Value| Feed::new(kind, &fields, "c").place;
    let artifactory = |format: &str| {
        let fields = json!({"repositoryFormat": format, "repository": "r", "artifactPath": "web"});
        place("ArtifactoryRegistry", fields)
    };
    assert_eq!(
        artifactory("docker"),
        json!({"artifactPath": "web", "repository": "r", "repositoryFormat": "docker"})
    );
    assert_eq!(
        artifactory("generic"),
        json!({"repository": "r", "repositoryFormat": "generic"})
    );
    assert_eq!(
        place(
            "AmazonS3",
            json!({"bucketName": "b", "filePathRegex": "*.zip"})
        ),
        json!({"bucketName": "b"})
    );
    let chart = json!({
        "store": {"type": "S3", "spec": {"connectorRef": "aws", "region": "us-east-1", "bucketName": "b", "folderPath": "c"}},
        "chartName": "web", "chartVersion": "1.0", "helmVersion": "V3",
    });
    assert_eq!(
        place("HelmChart", chart),
        json!({
            "chartName": "web",
            "store": {"spec": {"bucketName": "b", "folderPath": "c", "region": "us-east-1"}, "type": "S3"},
        })
    );
}

#[test]
fn what_was_there_before_is_not_new() {
    assert!(new_builds(&[], &builds(&["1", "2"])).is_empty());
    let seen = remember(&[], &builds(&["1", "2"]));
    assert!(new_builds(&seen, &builds(&["2", "1"])).is_empty());
    let now = builds(&["1", "4", "2", "3", "4"]);
    assert_eq!(versions(&new_builds(&seen, &now)), ["4", "3"]);
    let seen = remember(&seen, &now);
    assert!(new_builds(&seen, &now).is_empty());
}

/// An answer with a hole in it, or with nothing at all, makes nothing new.
#[test]
fn what_is_left_out_once_is_not_new_afterwards() {
    let all = builds(&["1", "2", "3"]);
    let seen = remember(&[], &all);
    let seen = remember(&seen, &builds(&["2"]));
    let seen = remember(&seen, &[]);
    assert_eq!(seen.len(), 3);
    assert!(new_builds(&seen, &all).is_empty());
    assert_eq!(versions(&new_builds(&seen, &builds(&["3", "5"]))), ["5"]);
}

#[test]
fn beyond_the_bound_the_oldest_are_forgotten_and_stay_old() {
    let named = |numbers: std::ops::Range<usize>| -> Vec<Build> {
        numbers
            .map(|number| Build::of(format!("v{number:06}")))
            .collect()
    };
    let now = named(0..MOST_REMEMBERED + 5_000);
    let seen = remember(&[], &now);
    assert_eq!(seen.len(), MOST_REMEMBERED);
    let bytes: usize = seen.iter().map(String::len).sum();
    assert!(bytes < 300_000, "{bytes} bytes do not fit into an item");
    assert!(new_builds(&seen, &now).is_empty());
    let later = named(0..MOST_REMEMBERED + 5_002);
    let new = new_builds(&seen, &later);
    assert_eq!(versions(&new), ["v025000", "v025001"]);
    // A repository that was made anew: all of it may have been there before.
    assert!(new_builds(&seen, &builds(&["x", "y"])).is_empty());
}

#[test]
fn several_regions_have_what_all_of_them_have() {
    let regions = [
        builds(&["1", "3", "2", "4"]),
        builds(&["4", "2", "1"]),
        builds(&["1", "2", "5", "4"]),
    ];
    assert_eq!(versions(&everywhere(&regions)), ["1", "2", "4"]);
    assert!(everywhere(&[]).is_empty());
    assert!(everywhere(&[builds(&["1"]), Vec::new()]).is_empty());
}

#[test]
fn a_region_has_its_own_place_and_the_conditions_of_all() {
    let common = FeedSpec {
        event_conditions: vec![condition("build", Operator::Equals, "1")],
        jexl: Some("true".to_owned()),
        ..spec("GoogleArtifactRegistry", json!({"sources": []}))
    };
    let region = |name: &str| RegionSource {
        kind: "GoogleArtifactRegistry".to_owned(),
        spec: json!({"connectorRef": "gcp", "region": name, "pkg": "web"}),
    };
    let europe = in_region(&common, &region("europe"));
    assert_eq!(europe.event_conditions, common.event_conditions);
    assert_eq!(
        Feed::of(&europe, "c").place,
        json!({"pkg": "web", "region": "europe"})
    );
    assert_ne!(
        Feed::of(&europe, "c").key(),
        Feed::of(&in_region(&common, &region("us")), "c").key()
    );
    assert_eq!(decide(&europe, &Build::of("1"), holds), Ok(()));
    assert!(decide(&europe, &Build::of("2"), holds).is_err());
}

#[test]
fn expressions_of_triggers_know_the_version_and_where_it_is() {
    let docker = spec(
        "DockerRegistry",
        json!({"connectorRef": "hub", "imagePath": "library/web", "tag": "<+trigger.artifact.build>", "eventConditions": []}),
    );
    let build = Build {
        version: "v1".to_owned(),
        metadata: json!({"tag": "v1"}).as_object().cloned().unwrap(),
    };
    assert_eq!(
        facts(&docker, &build),
        json!({
            "type": "Artifact",
            "artifact": {
                "build": "v1",
                "metadata": {"tag": "v1"},
                "source": {"connectorRef": "hub", "imagePath": "library/web", "tag": "<+trigger.artifact.build>"},
            },
        })
    );
    let chart = spec("HelmChart", json!({"chartName": "web"}));
    let known = facts(&chart, &Build::of("1.2.3"));
    assert_eq!(known["manifest"]["version"], "1.2.3");
    assert_eq!(known["type"], "Manifest");
    let acr = facts(&spec("Acr", json!({"repository": "web"})), &build);
    assert_eq!(acr["artifact"]["source"]["imagePath"], "web");
}

#[test]
fn a_version_passes_filters_conditions_and_jexl_or_is_refused_with_the_reason() {
    use Operator::{Equals, NotEquals, StartsWith};
    let build = Build {
        version: "v1.2".to_owned(),
        metadata: json!({"branch": "main", "size": 7})
            .as_object()
            .cloned()
            .unwrap(),
    };
    let with = |change: &dyn Fn(&mut FeedSpec)| {
        let mut spec = spec("DockerRegistry", json!({"imagePath": "web"}));
        change(&mut spec);
        decide(&spec, &build, holds)
    };
    let event = |key: &str, operator, value: &str| {
        with(&|spec| spec.event_conditions = vec![condition(key, operator, value)])
    };
    let metadata = |key: &str, operator, value: &str| {
        with(&|spec| spec.metadata_conditions = vec![condition(key, operator, value)])
    };
    let jexl = |text: &str| with(&|spec| spec.jexl = Some(text.to_owned()));

    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(event("build", StartsWith, "v"), Ok(()));
    assert_eq!(event("version", Equals, "v1.2"), Ok(()));
    assert_eq!(event("<+trigger.artifact.build>", Equals, "v1.2"), Ok(()));
    for key in [
        "branch",
        "<+trigger.artifact.metadata.branch>",
        "<+pipeline.stages.DS.spec.artifacts.primary.metadata.branch>",
    ] {
        assert_eq!(metadata(key, Equals, "main"), Ok(()), "{key}");
    }
    assert_eq!(
        metadata("<+trigger.artifact.metadata.size>", Equals, "7"),
        Ok(())
    );
    assert_eq!(
        metadata("<+trigger.artifact.metadata.none>", NotEquals, "x"),
        Ok(())
    );
    assert_eq!(
        jexl(
            "<+trigger.artifact.build> =~ \"v.*\" && <+trigger.artifact.metadata.branch> == \"main\""
        ),
        Ok(())
    );

    let event_outcome = Outcome::TriggerDidNotMatchEventCondition;
    let metadata_outcome = Outcome::TriggerDidNotMatchMetadataCondition;
    let jexl_outcome = Outcome::TriggerDidNotMatchArtifactJexlCondition;
    let refused = [
        (
            with(&|spec| spec.spec["tagRegex"] = json!("w.*")),
            event_outcome,
            "`tagRegex` is `w.*`",
        ),
        (
            event("build", Equals, "v1"),
            event_outcome,
            "`build Equals v1` does not hold: it is `v1.2`",
        ),
        (
            metadata("branch", Equals, "dev"),
            metadata_outcome,
            "it is `main`",
        ),
        (
            metadata("none", Equals, ""),
            metadata_outcome,
            "there is no such thing",
        ),
        (
            metadata("<+trigger.", Equals, ""),
            metadata_outcome,
            "the key `<+trigger.`",
        ),
        (
            jexl("<+trigger.artifact.build> == \"x\""),
            jexl_outcome,
            "is false",
        ),
        (
            jexl("<+trigger.artifact.nope> == 1"),
            jexl_outcome,
            "not defined",
        ),
        (jexl("((("), jexl_outcome, "the condition `(((`"),
        (
            jexl("<+secrets.getValue(\"x\")> == \"y\""),
            jexl_outcome,
            "the condition",
        ),
    ];
    for (decided, outcome, said) in refused {
        let refusal = decided.unwrap_err();
        assert_eq!(refusal.outcome, outcome, "{}", refusal.message);
        assert!(refusal.message.contains(said), "{}", refusal.message);
    }
    for strange in [
        Build::of("<+secrets.getValue(\"x\")>"),
        Build {
            version: "v1".to_owned(),
            metadata: json!({"labels": [{"a": "<+x>"}]})
                .as_object()
                .cloned()
                .unwrap(),
        },
    ] {
        let refusal = decide(&spec("DockerRegistry", json!({})), &strange, holds).unwrap_err();
        assert_eq!(refusal.outcome, Outcome::InvalidPayload);
        assert!(refusal.message.contains("would be read as expressions"));
    }
    // All of them must hold, and long values are shortened.
    let long = Build::of("x".repeat(100_000));
    let mut spec = spec("DockerRegistry", json!({}));
    spec.event_conditions = vec![
        condition("build", StartsWith, "x"),
        condition("build", Equals, &"y".repeat(100_000)),
    ];
    let refusal = decide(&spec, &long, holds).unwrap_err();
    assert!(refusal.message.len() < 600, "{}", refusal.message.len());
}
