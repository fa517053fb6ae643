//! Pipelines planned, well and badly.

use std::sync::Arc;

use slipway_model::id::{AccountId, EntityId, OrgId, ProjectId};
use slipway_model::{Kind, yaml};

use super::*;
use crate::{FILE, Found, Snapshot, text};

pub(super) const PIPELINE: &str = "
pipeline:
  identifier: web
  name: Web
  projectIdentifier: shop
  orgIdentifier: default
  variables:
    - {name: tag, type: String, value: <+input>.default(v1)}
    - {name: where, type: String, value: prod}
    - {name: token, type: Secret, value: account.token}
  stages:
    - stage:
        identifier: check
        name: Check
        type: Custom
        spec:
          execution:
            steps:
              - step: {identifier: wait, name: Wait, type: Wait, spec: {duration: 10s}, timeout: 1m}
              - parallel:
                  - step:
                      identifier: lint
                      name: Lint
                      type: ShellScript
                      spec: {shell: Bash, source: {type: Inline, spec: {script: \"echo <+pipeline.variables.tag>\"}}, onDelegate: true}
                  - stepGroup:
                      identifier: probes
                      name: Probes
                      steps:
                        - step: {identifier: ping, name: Ping, type: Http, spec: {url: http://x, method: GET}}
    - stage:
        identifier: deploy
        name: Deploy
        type: Deployment
        when: {pipelineStatus: Success, condition: <+pipeline.variables.tag> != \"\"}
        variables: [{name: size, type: Number, value: 2}]
        spec:
          deploymentType: ECS
          service:
            serviceRef: web
            serviceInputs:
              serviceDefinition:
                type: ECS
                spec:
                  artifacts: {primary: {sources: [{identifier: img, type: DockerRegistry, spec: {tag: <+pipeline.variables.tag>}}]}}
          environment:
            environmentRef: account.<+pipeline.variables.where>
            infrastructureDefinitions: [{identifier: ecs, inputs: {identifier: ecs, type: ECS, spec: {cluster: main}}}]
          execution:
            steps:
              - step: {identifier: roll, name: Roll, type: EcsRollingDeploy, spec: {sameAsAlreadyRunningInstances: false}, timeout: 10m}
            rollbackSteps:
              - step: {identifier: back, name: Back, type: EcsRollingRollback, spec: {}, timeout: 10m}
        failureStrategies:
          - onFailure: {errors: [AllErrors], action: {type: StageRollback}}
";

pub(super) const ENTITIES: &[&str] = &[
    "service:
  identifier: web
  name: Web
  tags: {team: a}
  serviceDefinition:
    type: ECS
    spec:
      variables: [{name: port, type: Number, value: 80}, {name: level, type: String, value: info}]
      manifests:
        - manifest: {identifier: task, type: EcsTaskDefinition, spec: {store: {type: Inline, spec: {content: '{}'}}}}
        - manifest: {identifier: svc, type: EcsServiceDefinition, spec: {store: {type: Harness, spec: {files: [account:/svc.yaml]}}}}
      artifacts:
        primary:
          primaryArtifactRef: img
          sources:
            - {identifier: img, type: DockerRegistry, spec: {connectorRef: account.hub, imagePath: acme/web, tag: <+input>}}
",
    "environment: {identifier: prod, name: Prod, type: Production, variables: [{name: level, type: String, value: warn}]}",
    "infrastructureDefinition:
  identifier: ecs
  name: ECS
  environmentRef: account.prod
  deploymentType: ECS
  type: ECS
  spec: {connectorRef: account.aws, region: eu-west-1, cluster: <+input>}
  allowSimultaneousDeployments: false
",
    "connector: {identifier: aws, name: AWS, type: Aws, spec: {credential: {type: InheritFromDelegate}}}",
    "connector: {identifier: hub, name: Hub, type: DockerRegistry, spec: {dockerRegistryUrl: https://index.docker.io/v2/, providerType: DockerHub, auth: {type: Anonymous}}}",
];

pub(super) fn project() -> Scope {
    Scope::project(
        AccountId::new("acc"),
        OrgId::new("default"),
        ProjectId::new("shop"),
    )
}

/// Entities where they belong: services, pipelines and their input sets in the project, all else in the account.
pub(super) fn world(entities: &[String]) -> Snapshot {
    let account = Scope::account(AccountId::new("acc"));
    let mut snapshot = Snapshot::default();
    for yaml in entities {
        let entity = entity::parse("entity", yaml).unwrap();
        let head = entity.head.clone();
        let reference = Reference {
            scope: if matches!(head.kind, Kind::Service | Kind::Pipeline | Kind::InputSet) {
                project()
            } else {
                account.clone()
            },
            kind: head.kind.key(),
            parent: match head.kind {
                Kind::Infrastructure => Some(EntityId::new("prod")),
                Kind::InputSet => head.pipeline.clone(),
                _ => None,
            },
            id: head.identifier.clone(),
        };
        snapshot.put(reference, Some(Found::Entity(Arc::new(entity))));
    }
    let file = Reference {
        scope: account,
        kind: FILE,
        parent: None,
        id: EntityId::new("/svc.yaml"),
    };
    snapshot.put(file, Some(Found::File("serviceName: web".into())));
    snapshot
}

pub(super) fn entities() -> Vec<String> {
    ENTITIES.iter().map(|yaml| (*yaml).to_owned()).collect()
}

pub(super) fn plan_with(
    pipeline: &str,
    entities: &[String],
    inputs: &str,
) -> Result<Plan, Vec<Diagnostic>> {
    let pipeline = entity::parse("pipeline.yaml", pipeline)?;
    let inputs = yaml::parse("inputs.yaml", inputs).map_err(|fault| vec![*fault])?;
    resolve(&Request {
        pipeline: &pipeline,
        inputs: &[&inputs],
        scope: &project(),
        entities: &world(entities),
        runnable: &|name| name != "EcsServiceSetup" && !name.starts_with("K8s"),
        chosen: None,
        trigger: None,
    })
}

pub(super) fn plan(pipeline: &str) -> Result<Plan, Vec<Diagnostic>> {
    plan_with(pipeline, &entities(), "pipeline: {identifier: web}")
}

pub(super) fn faults(result: Result<Plan, Vec<Diagnostic>>) -> String {
    let faults = result.expect_err("a fault");
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn a_plan_reads_like_the_run() {
    insta::assert_snapshot!(text(&plan(PIPELINE).unwrap()), @r#"
    pipeline web "Web" (at most 30d)
      variable tag = "v1"
      variable where = "prod"
      variable token = secret "account.token"
      stage check "Check": Custom (at most 30d)
        steps
          step wait "Wait": Wait (at most 1m)
            duration = "10s"
          side by side
            step lint "Lint": ShellScript (at most 10m)
              shell = "Bash"
              source = {"type":"Inline","spec":{"script":"echo v1"}}
              onDelegate = true
            group probes "Probes"
              step ping "Ping": Http (at most 10m)
                url = "http://x"
                method = "GET"
      stage deploy "Deploy": Deployment of ECS (at most 30d) when nothing failed and <+pipeline.variables.tag> != ""
        variable size = 2
        service web (ECS)
          variable port = 80
          variable level = "warn"
          artifact img (DockerRegistry) index.docker.io/acme/web:v1
          manifest task (EcsTaskDefinition) from Inline, 2 bytes
          manifest svc (EcsServiceDefinition) from Harness, 16 bytes
        environment prod (Production)
          variable level = "warn"
        infrastructure ecs (ECS) {"connectorRef":"account.aws","region":"eu-west-1","cluster":"main"}
          connector account.aws (Aws)
        on AllErrors: StageRollback
        steps
          step roll "Roll": EcsRollingDeploy (at most 10m)
            sameAsAlreadyRunningInstances = false
        rollback
          step back "Back": EcsRollingRollback (at most 10m)
    "#);
}

#[test]
fn nodes_are_called_by_their_place() {
    let plan = plan(PIPELINE).unwrap();
    let mut ids = Vec::new();
    let mut work: Vec<&crate::Node> = plan
        .groups
        .iter()
        .flatten()
        .flat_map(|s| s.steps.iter().chain(&s.rollback_steps))
        .collect();
    while let Some(node) = work.pop() {
        let (id, inner) = match node {
            crate::Node::Step(step) => (&step.id, [].as_slice()),
            crate::Node::Group(group) => (&group.id, group.nodes.as_slice()),
            crate::Node::Parallel(parallel) => (&parallel.id, parallel.branches.as_slice()),
        };
        ids.push(id.as_str());
        work.extend(inner);
    }
    ids.sort_unstable();
    insta::assert_snapshot!(ids.join("\n"), @r"
    stages.check.spec.execution.steps.lint
    stages.check.spec.execution.steps.probes
    stages.check.spec.execution.steps.probes.steps.ping
    stages.check.spec.execution.steps.wait
    stages.check.spec.execution.steps[1]
    stages.deploy.spec.execution.rollbackSteps.back
    stages.deploy.spec.execution.steps.roll
    ");
}

#[test]
fn an_infrastructure_knows_what_its_connector_is_called() {
    let plan = plan(PIPELINE).unwrap();
    let mut stages = plan.groups.iter().flatten();
    let found = stages.find_map(|stage| stage.infrastructure.as_ref());
    assert_eq!(found.unwrap().connector_name.as_deref(), Some("AWS"));
}

#[test]
fn a_plan_survives_storage_and_keeps_its_digest() {
    let plan = plan(PIPELINE).unwrap();
    let json = plan.canonical_json().unwrap();
    let again: Plan = serde_json::from_slice(&json).unwrap();
    assert_eq!(again, plan);
    assert_eq!(again.digest().unwrap(), plan.digest().unwrap());
    let other = plan_with(
        PIPELINE,
        &entities(),
        "pipeline: {variables: [{name: tag, value: v2}]}",
    )
    .unwrap();
    assert_ne!(other.digest().unwrap(), plan.digest().unwrap());
}

#[test]
fn what_is_needed_is_found_by_asking_again() {
    let pipeline = entity::parse("p", PIPELINE).unwrap();
    let all = world(&entities());
    let mut snapshot = Snapshot::default();
    let mut rounds = Vec::new();
    loop {
        let request = Request {
            pipeline: &pipeline,
            inputs: &[],
            scope: &project(),
            entities: &snapshot,
            runnable: &|_| true,
            chosen: None,
            trigger: None,
        };
        let asked = snapshot.unknown(wanted(&request)).references;
        if asked.is_empty() {
            break;
        }
        let names: Vec<_> = asked
            .iter()
            .map(
                |wanted| match wanted.parent.as_ref().filter(|_| wanted.kind == FILE) {
                    Some(parent) => format!("{} {parent} {}", wanted.kind, wanted.id),
                    None => format!("{} {}", wanted.kind, wanted.id),
                },
            )
            .collect();
        rounds.push(names.join(", "));
        for reference in asked {
            let found = all.get(&reference);
            snapshot.put(reference, found);
        }
    }
    insta::assert_snapshot!(rounds.join("\n"), @r"
    service web, environment prod
    file /svc.yaml, file folder /svc.yaml, connector hub, overrides ENV_GLOBAL_OVERRIDE//, overrides ENV_GLOBAL_OVERRIDE//, overrides ENV_GLOBAL_OVERRIDE//, serviceOverrides web, overrides ENV_SERVICE_OVERRIDE/web/, overrides INFRA_GLOBAL_OVERRIDE//ecs, overrides INFRA_GLOBAL_OVERRIDE//ecs, overrides INFRA_GLOBAL_OVERRIDE//ecs, overrides INFRA_SERVICE_OVERRIDE/web/ecs, infrastructureDefinition ecs
    connector aws
    ");
}

#[test]
fn faults_name_what_and_where() {
    let cases = [
        (
            "serviceRef: web",
            "serviceRef: wbe",
            "40:25: pipeline.stages[1].stage.spec.service.serviceRef: the service `wbe` does not exist in project `shop` of organization `default`",
        ),
        (
            "variables.where>",
            "variables.nowhere>",
            "this must be known before the run begins: ",
        ),
        (
            "infrastructureDefinitions: [{identifier: ecs,",
            "infrastructureDefinitions: [{identifier: eks,",
            "the infrastructure definition `eks` does not exist in environment `prod` of the account",
        ),
        (
            "{cluster: main}",
            "{clustr: main}",
            "`clustr` is no field of the spec of an ECS infrastructure; did you mean `cluster`?",
        ),
        (
            "{cluster: main}",
            "{cluster: main, region: us-east-1}",
            "`region` is no runtime input: its value is fixed, or there is no such field",
        ),
        (
            "type: EcsRollingDeploy",
            "type: EcsServiceSetup",
            "the type `EcsServiceSetup` of step `roll` is not supported by this version yet",
        ),
        (
            "type: EcsRollingDeploy",
            "type: K8sRollingDeploy",
            "`K8sRollingDeploy` does not fit a deployment of type `ECS`",
        ),
        (
            "deploymentType: ECS",
            "deploymentType: Asg",
            "`EcsRollingDeploy` does not fit a deployment of type `Asg`",
        ),
        (
            "type: Wait, spec: {duration: 10s}",
            "type: EcsRollingDeploy, spec: {}",
            "`EcsRollingDeploy` is no step of a stage of type `Custom`",
        ),
        (
            "type: Custom",
            "type: FeatureFlag",
            "the type `FeatureFlag` of stage `check` is not supported by this version yet; it runs Approval, Custom, Deployment, Pipeline",
        ),
        (
            "timeout: 1m}",
            "timeout: 1m, strategy: {repeat: {items: <+pipeline.variables.hosts>}}}",
            "the looping `strategy` of step `wait`: what it goes over is not known",
        ),
        (
            "value: prod}",
            "value: <+pipeline.variables.tag>-<+pipeline.variables.where>}",
            "variables are defined by one another: where → where",
        ),
        (
            "            serviceRef: web\n",
            "            useFromStage: {stage: deploy}\n",
            "the stage `deploy` is this stage itself",
        ),
        (
            "            serviceRef: web\n",
            "            useFromStage: {stage: check}\n",
            "stage `check` has no service to use",
        ),
        (
            "variables.tag> != \\\"\\\"",
            "variables.tag> != ",
            "the condition does not parse",
        ),
        (
            "timeout: 1m}",
            "timeout: <+stage.variables.x>}",
            "this must be known before the run begins",
        ),
        (
            ".default(v1)",
            ".executionInput()",
            "`executionInput()` cannot be asked for here: stages, step groups and steps ask when they begin, and a pipeline has begun before anybody can be asked; put the variable into the stage that needs it",
        ),
    ];
    for (from, to, expected) in cases {
        let changed = PIPELINE.replacen(&from.replace("\\\"", "\""), to, 1);
        assert_ne!(changed, PIPELINE, "{from}");
        let found = faults(plan(&changed));
        assert!(found.contains(expected), "{to}\n{found}");
    }
}

#[test]
fn a_service_of_another_type_is_not_deployed() {
    let asg = |yaml: &str| yaml.replacen("type: ECS\n", "type: Asg\n", 1);
    let entities: Vec<_> = entities()
        .iter()
        .map(|yaml| match yaml.starts_with("service:") {
            true => asg(yaml),
            false => yaml.clone(),
        })
        .collect();
    let found = faults(plan_with(&asg(PIPELINE), &entities, "pipeline: {}"));
    assert!(
        found.contains("the service `web` is of type Asg, the stage deploys ECS"),
        "{found}"
    );
}

#[test]
fn faults_of_entities_are_faults_of_the_plan() {
    let cases = [
        (
            "type: Inline, spec: {content: '{}'}",
            "type: Gcs, spec: {connectorRef: g, bucketName: b, folderPath: a}",
            "a manifest store of type `Gcs` is not supported by this version yet; use a Git repository, an S3 bucket, the file store or `Inline`",
        ),
        (
            "account:/svc.yaml",
            "/svc.yaml",
            "the file `/svc.yaml` does not exist in the file store",
        ),
        (
            "primaryArtifactRef: img",
            "primaryArtifactRef: image",
            "`image` is none of the artifact sources",
        ),
        (
            "connectorRef: account.aws",
            "connectorRef: account.hub",
            "the connector `hub` is of type DockerRegistry; an infrastructure of type ECS needs an Aws connector",
        ),
        (
            "connectorRef: account.hub",
            "connectorRef: hub",
            "the connector `hub` does not exist in project `shop`",
        ),
        (
            "environmentRef: account.prod",
            "environmentRef: account.dev",
            "belongs to environment `account.dev` (`environmentRef`), not to `prod`",
        ),
        (
            "value: info",
            "value: <+input>",
            "the runtime input `level` has no value",
        ),
    ];
    for (from, to, expected) in cases {
        let changed: Vec<_> = entities()
            .iter()
            .map(|yaml| yaml.replacen(from, to, 1))
            .collect();
        assert_ne!(changed, entities(), "{from}");
        let found = faults(plan_with(PIPELINE, &changed, "pipeline: {}"));
        assert!(found.contains(expected), "{to}\n{found}");
    }
}

const GITHUB: &str = "connector: {identifier: g, name: G, type: Github, spec: {url: 'https://github.com/acme', type: Account, authentication: {type: Http, spec: {type: Anonymous, spec: {}}}}}";

#[test]
fn images_are_called_as_their_registry_calls_them() {
    let image = |source: &str, connector: &str| {
        let entities: Vec<_> = entities()
            .iter()
            .map(|yaml| yaml.replace("type: DockerRegistry, spec: {connectorRef: account.hub, imagePath: acme/web, tag: <+input>}", source))
            .map(|yaml| yaml.replace("credential: {type: InheritFromDelegate}", connector))
            .chain([GITHUB.to_owned()])
            .collect();
        // Without the inputs for the service that the source replaces.
        let (before, rest) = PIPELINE.split_once("            serviceInputs:").unwrap();
        let (_, after) = rest.split_once("          environment:").unwrap();
        let pipeline = format!("{before}          environment:{after}");
        let plan = plan_with(&pipeline, &entities, "pipeline: {}")
            .map_err(|f| f[0].to_string())
            .unwrap();
        let stages: Vec<_> = plan.groups.into_iter().flatten().collect();
        stages[1].service.clone().unwrap().artifact.unwrap().image
    };
    let ambient = "credential: {type: InheritFromDelegate}";
    let assumed = "credential: {type: InheritFromDelegate, crossAccountAccess: {crossAccountRoleArn: 'arn:aws:iam::123456789012:role/r'}}";
    let ecr = "type: Ecr, spec: {connectorRef: account.aws, region: eu-west-1, imagePath: web, tag: 1.10}";
    let cases = [
        (
            ecr,
            assumed,
            "123456789012.dkr.ecr.eu-west-1.amazonaws.com/web:1.10",
        ),
        (
            ecr,
            ambient,
            "<+artifact.registryId>.dkr.ecr.eu-west-1.amazonaws.com/web:1.10",
        ),
        (
            "type: Ecr, spec: {connectorRef: account.aws, region: eu-west-1, imagePath: web, tag: a, registryId: 99}",
            assumed,
            "99.dkr.ecr.eu-west-1.amazonaws.com/web:a",
        ),
        (
            "type: DockerRegistry, spec: {connectorRef: account.hub, imagePath: nginx, tag: a}",
            ambient,
            "index.docker.io/library/nginx:a",
        ),
        (
            "type: DockerRegistry, spec: {connectorRef: account.hub, imagePath: a/b, tag: a, digest: 'sha256:1'}",
            ambient,
            "index.docker.io/a/b@sha256:1",
        ),
        (
            "type: GithubPackageRegistry, spec: {connectorRef: account.g, org: acme, packageName: web, packageType: container, version: 2}",
            ambient,
            "ghcr.io/acme/web:2",
        ),
    ];
    for (source, connector, expected) in cases {
        assert_eq!(
            image(source, connector).as_deref(),
            Some(expected),
            "{source}"
        );
    }
}

#[test]
fn loops_are_shown() {
    let text = PIPELINE
        .replace("value: prod}", "value: <+pipeline.variables.a>}")
        .replace(
            "    - {name: token",
            "    - {name: a, type: String, value: <+pipeline.variables.where>}\n    - {name: token",
        );
    assert!(
        faults(plan(&text)).contains("variables are defined by one another: where → a → where")
    );
}

#[test]
fn large_manifests_in_many_stages_are_bounded() {
    let large: Vec<_> = entities()
        .iter()
        .map(|yaml| {
            yaml.replace(
                "content: '{}'",
                &format!("content: '{}'", "x".repeat(1_000_000)),
            )
        })
        .collect();
    let (head, stage) = PIPELINE.split_at(
        PIPELINE
            .find("    - stage:\n        identifier: deploy")
            .unwrap(),
    );
    let stages: String = (0..20)
        .map(|n| stage.replacen("identifier: deploy", &format!("identifier: deploy{n}"), 1))
        .collect();
    let found = faults(plan_with(
        &format!("{head}{stages}"),
        &large,
        "pipeline: {}",
    ));
    assert!(
        found.contains("the manifests of all stages together have more than 16777216 bytes"),
        "{found}"
    );
}

#[test]
fn a_later_stage_uses_service_and_environment_of_an_earlier_one() {
    let second = "
    - stage:
        identifier: again
        name: Again
        type: Deployment
        spec:
          deploymentType: ECS
          service: {useFromStage: {stage: deploy}}
          environment: {useFromStage: {stage: deploy}}
          execution: {steps: [{step: {identifier: roll, name: Roll, type: EcsRollingDeploy, spec: {}}}]}
        failureStrategies: []
";
    let plan = plan(&format!("{PIPELINE}{second}")).unwrap();
    let stages: Vec<_> = plan.groups.iter().flatten().collect();
    assert_eq!(stages[2].service, stages[1].service);
    assert_eq!(stages[2].infrastructure, stages[1].infrastructure);
    assert!(stages[2].infrastructure.is_some());
}
