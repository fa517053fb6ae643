//! Artifacts that are looked up in their registries.

use std::collections::BTreeMap;

use serde_json::json;
use slipway_model::{Diagnostic, entity, yaml};

use super::super::tests::{PIPELINE, entities, faults, project, world};
use super::super::{Request, resolve, wanted};
use crate::{
    ArtifactAnswer, ArtifactPlan, FoundArtifact, Node, PIN_ARTIFACTS, Plan, Snapshot,
    WantedArtifact,
};

const CONNECTORS: [&str; 8] = [
    "connector: {identifier: devops, name: D, type: AzureArtifacts, spec: {azureArtifactsUrl: 'https://dev.azure.com/acme', auth: {spec: {type: PersonalAccessToken, spec: {tokenRef: account.key}}}}}",
    "connector: {identifier: bamboo, name: B, type: Bamboo, spec: {bambooUrl: 'https://b.example', auth: {type: Anonymous}}}",
    "connector: {identifier: gcp, name: P, type: Gcp, spec: {credential: {type: ManualConfig, spec: {secretKeyRef: account.key}}}}",
    "connector: {identifier: azure, name: Z, type: Azure, spec: {credential: {type: ManualConfig, spec: {applicationId: a, tenantId: t, auth: {type: Secret, spec: {secretRef: account.key}}}}}}",
    "connector: {identifier: git, name: G, type: Github, spec: {url: 'https://github.com/acme', type: Account, authentication: {type: Http, spec: {type: Anonymous, spec: {}}}}}",
    "connector: {identifier: jfrog, name: J, type: Artifactory, spec: {artifactoryServerUrl: 'https://a.example/artifactory/', auth: {type: Anonymous}}}",
    "connector: {identifier: nexus, name: N, type: Nexus, spec: {nexusServerUrl: 'https://n.example:8081', version: 3.x, auth: {type: Anonymous}}}",
    "connector: {identifier: own, name: O, type: DockerRegistry, spec: {dockerRegistryUrl: 'http://127.0.0.1:5000/', providerType: Other, auth: {type: Anonymous}}}",
];

const WRITTEN: &str = "{identifier: img, type: DockerRegistry, spec: {connectorRef: account.hub, imagePath: acme/web, tag: <+input>}}";

type Planned = Result<Plan, Vec<Diagnostic>>;

/// The golden pipeline whose service has this source: what it asks, and its plan with the answers.
fn planned(
    source: &str,
    stage: &str,
    answer: impl Fn(&WantedArtifact) -> Option<Result<ArtifactAnswer, String>>,
) -> (Vec<WantedArtifact>, Planned) {
    let mut all: Vec<String> = entities()
        .iter()
        .map(|entity| entity.replacen(WRITTEN, source, 1))
        .collect();
    assert_ne!(all, entities(), "the source is not there");
    all.extend(CONNECTORS.map(str::to_owned));
    let mut snapshot: Snapshot = world(&all);
    let input = "                  artifacts: {primary: {sources: [{identifier: img, type: DockerRegistry, spec: {tag: <+pipeline.variables.tag>}}]}}\n";
    let pipeline = PIPELINE.replacen(input, "", 1);
    assert_ne!(pipeline, PIPELINE);
    let pipeline = match stage {
        "" => pipeline,
        more => pipeline.replacen(
            "            serviceRef: web\n",
            &format!("            serviceRef: web\n            {more}\n"),
            1,
        ),
    };
    let pipeline = entity::parse("pipeline.yaml", &pipeline).unwrap();
    let inputs = yaml::parse("inputs.yaml", "pipeline: {identifier: web}").unwrap();
    let (inputs, scope) = ([&inputs], project());
    let before = Request {
        pipeline: &pipeline,
        inputs: &inputs,
        scope: &scope,
        entities: &snapshot.clone(),
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    };
    let asked = snapshot.unknown(wanted(&before)).artifacts;
    for artifact in &asked {
        if let Some(answer) = answer(artifact) {
            snapshot.put_artifact(artifact.clone(), answer);
        }
    }
    let after = Request {
        entities: &snapshot,
        ..before
    };
    (asked, resolve(&after))
}

fn found(version: &str, digest: &str, metadata: &[(&str, &str)]) -> FoundArtifact {
    let metadata = metadata.iter();
    FoundArtifact {
        version: version.to_owned(),
        digest: (!digest.is_empty()).then(|| digest.to_owned()),
        metadata: metadata
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn artifact(plan: &Planned) -> &ArtifactPlan {
    let plan = plan.as_ref().unwrap_or_else(|faults| panic!("{faults:?}"));
    let service = plan.groups[1][0].service.as_ref().unwrap();
    service.artifact.as_ref().unwrap()
}

fn source(kind: &str, connector: &str, rest: &str) -> String {
    format!(
        "{{identifier: img, type: {kind}, spec: {{connectorRef: account.{connector}, {rest}}}}}"
    )
}

#[test]
fn every_registry_is_asked_in_its_own_words_and_the_image_is_its_digest() {
    let table = [
        (
            source(
                "DockerRegistry",
                "hub",
                "imagePath: web, tag: <+pipeline.variables.tag>",
            ),
            "v7",
        ),
        (
            source(
                "DockerRegistry",
                "own",
                "imagePath: acme/web, tagRegex: 'v\\d+'",
            ),
            "v9",
        ),
        (
            source(
                "DockerRegistry",
                "own",
                "imagePath: acme/web, tag: <+lastPublished.tag>",
            ),
            "v9",
        ),
        (
            source(
                "DockerRegistry",
                "own",
                "imagePath: acme/web, tag: <+lastPublished.tag>.regex(*-dev)",
            ),
            "1-dev",
        ),
        (
            source(
                "DockerRegistry",
                "own",
                "imagePath: acme/web, digest: 'sha256:aa'",
            ),
            "",
        ),
        (
            source(
                "Ecr",
                "aws",
                "imagePath: shop/web, region: eu-west-1, tag: v1",
            ),
            "v1",
        ),
        (
            source(
                "GithubPackageRegistry",
                "git",
                "packageType: container, org: Acme, packageName: Web, version: v1",
            ),
            "v1",
        ),
        (
            source(
                "ArtifactoryRegistry",
                "jfrog",
                "repositoryFormat: docker, repository: local, repositoryUrl: local.a.example, artifactPath: web, tag: v1",
            ),
            "v1",
        ),
        (
            source(
                "Nexus3Registry",
                "nexus",
                "repositoryFormat: docker, repository: hosted, repositoryUrl: n.example:8082, artifactPath: web, tag: v1",
            ),
            "v1",
        ),
        (
            source(
                "Nexus3Registry",
                "nexus",
                "repositoryFormat: docker, repository: hosted, repositoryPort: '8083', artifactPath: web, tag: v1",
            ),
            "v1",
        ),
        (
            source(
                "Gcr",
                "gcp",
                "registryHostname: eu.gcr.io, imagePath: shop/web, tag: v1",
            ),
            "v1",
        ),
        (
            source(
                "GoogleArtifactRegistry",
                "gcp",
                "repositoryType: docker, project: 'acme.com:shop', region: us, repositoryName: images, package: web, versionRegex: 'v.*'",
            ),
            "v1",
        ),
        (
            source(
                "Acr",
                "azure",
                "subscriptionId: s, registry: shop, repository: team/web, tag: v1",
            ),
            "v1",
        ),
        (
            source("AmazonS3", "aws", "bucketName: b, filePathRegex: 'web-.*'"),
            "web-2.zip",
        ),
        (
            source(
                "AmazonMachineImage",
                "aws",
                "region: eu-west-1, versionRegex: 'web.*', tags: [{name: app, value: shop}], filters: [{name: ami-owner-id, value: '1'}]",
            ),
            "web-2",
        ),
    ];
    let mut seen = Vec::new();
    for (source, version) in table {
        let (asked, plan) = planned(&source, "", |_| {
            let metadata = [("registryId", "111122223333")];
            Some(Ok(ArtifactAnswer::Found(found(
                version,
                "sha256:aa",
                &metadata,
            ))))
        });
        let asked = serde_json::to_string(&asked[0].question).unwrap();
        let plan = artifact(&plan);
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        seen.push(format!(
            "{asked}\n  {} {}",
            shown(&plan.image),
            shown(&plan.tag)
        ));
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
    {"connector":"account.hub","place":{"type":"image","registry":"https://registry-1.docker.io","repository":"library/web"},"version":{"exact":"v1"}}
      index.docker.io/library/web@sha256:aa v7
    {"connector":"account.own","place":{"type":"image","registry":"http://127.0.0.1:5000","repository":"acme/web"},"version":{"pattern":"v\\d+"}}
      127.0.0.1:5000/acme/web@sha256:aa v9
    {"connector":"account.own","place":{"type":"image","registry":"http://127.0.0.1:5000","repository":"acme/web"},"version":"last"}
      127.0.0.1:5000/acme/web@sha256:aa v9
    {"connector":"account.own","place":{"type":"image","registry":"http://127.0.0.1:5000","repository":"acme/web"},"version":{"pattern":".*-dev"}}
      127.0.0.1:5000/acme/web@sha256:aa 1-dev
    {"connector":"account.own","place":{"type":"image","registry":"http://127.0.0.1:5000","repository":"acme/web"},"digest":"sha256:aa"}
      127.0.0.1:5000/acme/web@sha256:aa -
    {"connector":"account.aws","place":{"type":"ecr","region":"eu-west-1","registry":null,"repository":"shop/web"},"version":{"exact":"v1"}}
      111122223333.dkr.ecr.eu-west-1.amazonaws.com/shop/web@sha256:aa v1
    {"connector":"account.git","place":{"type":"image","registry":"https://ghcr.io","repository":"acme/web"},"version":{"exact":"v1"}}
      ghcr.io/Acme/Web@sha256:aa v1
    {"connector":"account.jfrog","place":{"type":"image","registry":"https://a.example/artifactory/api/docker/local","repository":"web"},"version":{"exact":"v1"}}
      local.a.example/web@sha256:aa v1
    {"connector":"account.nexus","place":{"type":"image","registry":"https://n.example:8081/repository/hosted","repository":"web"},"version":{"exact":"v1"}}
      n.example:8082/web@sha256:aa v1
    {"connector":"account.nexus","place":{"type":"image","registry":"https://n.example:8083","repository":"web"},"version":{"exact":"v1"}}
      n.example:8083/web@sha256:aa v1
    {"connector":"account.gcp","place":{"type":"image","registry":"https://eu.gcr.io","repository":"shop/web"},"version":{"exact":"v1"}}
      eu.gcr.io/shop/web@sha256:aa v1
    {"connector":"account.gcp","place":{"type":"image","registry":"https://us-docker.pkg.dev","repository":"acme.com/shop/images/web"},"version":{"pattern":"v.*"}}
      us-docker.pkg.dev/acme.com/shop/images/web@sha256:aa v1
    {"connector":"account.azure","place":{"type":"image","registry":"https://shop.azurecr.io","repository":"team/web"},"version":{"exact":"v1"}}
      shop.azurecr.io/team/web@sha256:aa v1
    {"connector":"account.aws","place":{"type":"s3","region":null,"bucket":"b"},"version":{"pattern":"web-.*"}}
      - -
    {"connector":"account.aws","place":{"type":"ami","region":"eu-west-1","filters":[["tag:app","shop"],["owner-id","1"]]},"version":{"pattern":"web.*"}}
      - web-2
    "#);
}

#[test]
fn what_only_the_run_knows_is_asked_when_its_stage_begins() {
    let late = "<+pipeline.stages.build.output.tag>";
    for (rest, image, asked_for) in [
        (
            format!("imagePath: web, tag: {late}"),
            format!("index.docker.io/library/web:{late}"),
            json!({"exact": late}),
        ),
        (
            "imagePath: web, tag: <+trigger.artifact.build>".to_owned(),
            "index.docker.io/library/web:<+trigger.artifact.build>".to_owned(),
            json!({"exact": "<+trigger.artifact.build>"}),
        ),
        (
            format!("imagePath: acme/web, tagRegex: '{late}-.*'"),
            String::new(),
            json!({"pattern": format!("{late}-.*")}),
        ),
    ] {
        let (asked, plan) = planned(&source("DockerRegistry", "hub", &rest), "", |_| None);
        assert_eq!(asked, [], "nothing is known that could be asked");
        assert_eq!(artifact(&plan).image.as_deref().unwrap_or_default(), image);
        let mut plan = plan.unwrap();
        assert_eq!(plan.warnings, [] as [String; 0]);
        let Node::Step(first) = &plan.groups[1][0].steps[0] else {
            panic!("no step");
        };
        assert_eq!(first.step_type, PIN_ARTIFACTS);
        let first = first.id.clone();
        let service = plan.groups[1][0].service.clone().unwrap();
        let wanted = &service
            .artifact
            .as_ref()
            .unwrap()
            .late
            .as_ref()
            .unwrap()
            .wanted;
        let question = serde_json::to_value(&wanted.question).unwrap();
        assert_eq!(question["version"], asked_for);

        // What the step is answered is read as if it had been known from the start.
        assert!(plan.has_late_artifacts());
        let settled = wanted.question.place.clone().settled();
        let crate::ArtifactPlace::Image { repository, .. } = settled else {
            panic!("no image");
        };
        let pinned = crate::PinnedArtifact {
            question: wanted.question.clone(),
            found: found("v7", "sha256:aa", &[]),
        };
        plan.pin_late(&|id| (*id == first).then(|| vec![Some(pinned.clone())]));
        let artifact = plan.groups[1][0]
            .service
            .as_ref()
            .unwrap()
            .artifact
            .as_ref()
            .unwrap();
        let image = format!("index.docker.io/{repository}@sha256:aa");
        assert_eq!(artifact.image.as_deref(), Some(image.as_str()));
        assert_eq!(artifact.tag.as_deref(), Some("v7"));
        assert_eq!(artifact.spec["tag"], "v7");
        assert!(!plan.has_late_artifacts());
    }
}

#[test]
fn what_is_not_asked_for() {
    // The id of a machine image is what it is already.
    let id = source(
        "AmazonMachineImage",
        "aws",
        "region: eu-west-1, version: ami-1",
    );
    let (asked, plan) = planned(&id, "", |_| None);
    assert_eq!(
        (asked.len(), artifact(&plan).tag.as_deref()),
        (1, Some("ami-1"))
    );
    // Nobody wants to know.
    let fixed = source("DockerRegistry", "hub", "imagePath: web, tag: v1");
    let (asked, _) = planned(&fixed, "disableArtifactValidation: true", |_| None);
    assert_eq!(asked, []);
}

#[test]
fn what_cannot_be_had_keeps_the_run_from_starting_and_what_is_not_asked_is_told() {
    let fixed = source("DockerRegistry", "hub", "imagePath: web, tag: v1");
    let pattern = source("DockerRegistry", "hub", "imagePath: web, tagRegex: v.*");
    let no = |_: &WantedArtifact| Some(Err("there is no tag v1".to_owned()));
    let unasked = |_: &WantedArtifact| Some(Ok(ArtifactAnswer::Unasked("it is far".to_owned())));
    let injected = |_: &WantedArtifact| {
        Some(Ok(ArtifactAnswer::Found(found(
            "<+secrets.getValue('a')>",
            "sha256:aa",
            &[],
        ))))
    };
    assert!(
        faults(planned(&fixed, "", no).1)
            .contains("the artifact `img` cannot be had: there is no tag v1")
    );
    assert!(faults(planned(&pattern, "", unasked).1).contains("cannot be had: it is far"));
    assert!(faults(planned(&pattern, "", |_| None).1).contains("nothing here asks registries"));
    assert!(faults(planned(&pattern, "", injected).1).contains("names with `<+`"));
    let (_, told) = planned(&fixed, "", unasked);
    let warnings = told.unwrap().warnings;
    assert!(
        warnings[0].ends_with("the artifact `img` is not pinned: it is far"),
        "{warnings:?}"
    );

    let wrong = source("Ecr", "hub", "imagePath: web, region: eu-west-1, tag: v1");
    assert!(
        faults(planned(&wrong, "", |_| None).1)
            .contains("this artifact source needs one of type Aws")
    );
    let cloud = source(
        "Gcr",
        "hub",
        "imagePath: p/web, registryHostname: gcr.io, tag: v1",
    );
    assert!(
        faults(planned(&cloud, "", |_| None).1)
            .contains("this artifact source needs one of type Gcp")
    );
    let maven = |version: &str| {
        let rest = format!(
            "repositoryType: maven, project: p, region: us, repositoryName: r, package: web, {version}"
        );
        source("GoogleArtifactRegistry", "gcp", &rest)
    };
    let told = faults(planned(&maven("versionRegex: v.*"), "", |_| None).1);
    assert!(
        told.contains("repositories of type maven are not looked up"),
        "{told}"
    );
    let fixed = planned(&maven("version: v1"), "", |_| None).1.unwrap();
    assert_eq!(fixed.warnings.len(), 1);
}

#[test]
fn sidecars_are_looked_up_like_the_primary_artifact_and_each_question_is_asked_once() {
    let fixed = source("DockerRegistry", "hub", "imagePath: web, tag: v1");
    let sidecar = |id: &str| {
        let spec = "{connectorRef: account.aws, imagePath: log, region: eu-west-1, tagRegex: v.*}";
        format!("\n          - sidecar: {{identifier: {id}, type: Ecr, spec: {spec}}}")
    };
    let all = format!(
        "{fixed}\n        sidecars:{}{}",
        sidecar("log"),
        sidecar("more")
    );
    let (asked, plan) = planned(&all, "", |wanted| {
        let digest = match wanted.question.version {
            Some(crate::ArtifactVersion::Exact(_)) => "sha256:aa",
            _ => "sha256:bb",
        };
        let metadata = [("registryId", "111122223333")];
        Some(Ok(ArtifactAnswer::Found(found("v1", digest, &metadata))))
    });
    assert_eq!(asked.len(), 2);
    assert_eq!(
        artifact(&plan).image.as_deref(),
        Some("index.docker.io/library/web@sha256:aa")
    );
    let plan = plan.unwrap();
    let sidecars = &plan.groups[1][0].service.as_ref().unwrap().sidecars;
    let images: Vec<_> = sidecars
        .iter()
        .map(|one| (one.identifier.as_str(), one.image.as_deref()))
        .collect();
    let image = Some("111122223333.dkr.ecr.eu-west-1.amazonaws.com/log@sha256:bb");
    assert_eq!(images, [("log", image), ("more", image)]);
    // The plan keeps what was asked and answered, and is read again as it was written.
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[path = "tests_custom.rs"]
mod custom;

#[test]
fn what_is_listed_is_asked_about_without_its_version_and_is_no_image() {
    let table = [
        (
            source(
                "AzureArtifacts",
                "devops",
                "scope: org, project: shop, feed: libs, package: 'com.acme:web', packageType: maven, version: <+pipeline.variables.tag>",
            ),
            json!({"scope": "org", "feed": "libs", "package": "com.acme:web", "packageType": "maven"}),
            json!({"exact": "v1"}),
        ),
        (
            source(
                "Nexus2Registry",
                "nexus",
                "repository: releases, repositoryFormat: maven, tagRegex: 'v.*', spec: {groupId: com.acme, artifactId: web}",
            ),
            json!({"repository": "releases", "repositoryFormat": "maven", "groupId": "com.acme", "artifactId": "web"}),
            json!({"pattern": "v.*"}),
        ),
        (
            source("Bamboo", "bamboo", "planKey: SHOP-WEB, build: v7"),
            json!({"planKey": "SHOP-WEB"}),
            json!({"exact": "v7"}),
        ),
        (
            source(
                "GceImage",
                "gcp",
                "project: shop, labels: [{name: team, value: <+service.identifier>}], versionRegex: 'v.*'",
            ),
            json!({"project": "shop", "labels": [{"name": "team", "value": "web"}]}),
            json!({"pattern": "v.*"}),
        ),
    ];
    for (written, spec, version) in table {
        let url = [("url", "https://x.example/v7")];
        let answer = |_: &WantedArtifact| Some(Ok(ArtifactAnswer::Found(found("v7", "", &url))));
        let (asked, plan) = planned(&written, "", answer);
        let question = serde_json::to_value(&asked[0].question).unwrap();
        assert_eq!(
            (&question["place"]["type"], &question["place"]["spec"]),
            (&json!("listed"), &spec),
            "{written}"
        );
        assert_eq!(question["version"], version, "{written}");
        let artifact = artifact(&plan);
        assert_eq!(
            (artifact.tag.as_deref(), &artifact.image),
            (Some("v7"), &None),
            "{written}"
        );
        let pinned = artifact.pinned.as_ref().unwrap();
        assert_eq!(pinned.found.metadata["url"], "https://x.example/v7");
    }
    // What is not looked up stays as it is written.
    let raw = source(
        "Nexus2Registry",
        "nexus",
        "repository: r, repositoryFormat: raw, tag: v7, spec: {group: p}",
    );
    let (asked, plan) = planned(&raw, "", |_| None);
    assert_eq!(
        (asked.len(), artifact(&plan).tag.as_deref()),
        (0, Some("v7"))
    );
}
