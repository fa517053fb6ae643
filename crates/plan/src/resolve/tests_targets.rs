//! Services, environments and infrastructures, several at once, and what overrides them.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use slipway_model::id::EntityId;
use slipway_model::{Diagnostic, Kind, entity, yaml};

use super::tests::project;
use super::*;
use crate::{EVERY, FILE, Found, Reference, Snapshot};

const ENTITIES: &[&str] = &[
    "service: {identifier: web, name: Web, tags: {team: a}, serviceDefinition: {type: ECS, spec: {
        variables: [{name: level, type: String, value: service}, {name: port, type: Number, value: 80}],
        configFiles: [{configFile: {identifier: app, spec: {store: {type: Harness, spec: {files: [/app.yaml]}}}}}],
        manifests: [{manifest: {identifier: task, type: EcsTaskDefinition, spec: {store: {type: Inline, spec: {content: 'region: <+variable.account.region>'}}}}}],
        artifacts: {primary: {primaryArtifactRef: img, sources: [
            {identifier: img, name: img, template: {templateRef: account.source, versionLabel: 1, templateInputs: {spec: {tag: <+input>}}}}]},
          sidecars: [{sidecar: {identifier: log, type: DockerRegistry, spec: {connectorRef: account.hub, imagePath: acme/log, tag: 3}}}]}}}}",
    "service: {identifier: api, name: Api, serviceDefinition: {type: ECS, spec: {}}}",
    "environment: {identifier: qa, name: QA, type: PreProduction, tags: {tier: test}, variables: [{name: level, type: String, value: environment}]}",
    "environment: {identifier: dev, name: Dev, type: PreProduction, tags: {tier: dev}}",
    "environment: {identifier: prod, name: Prod, type: Production}",
    "infrastructureDefinition: {identifier: eu, name: EU, environmentRef: qa, deploymentType: ECS, type: ECS, tags: {zone: eu, size: big}, spec: {connectorRef: account.aws, region: eu-west-1, cluster: <+variable.cluster>}}",
    "infrastructureDefinition: {identifier: us, name: US, environmentRef: qa, deploymentType: ECS, type: ECS, tags: {zone: us, size: big}, spec: {connectorRef: account.aws, region: us-east-1, cluster: c}}",
    "infrastructureDefinition: {identifier: fn, name: FN, environmentRef: qa, deploymentType: AwsLambda, type: AwsLambda, tags: {zone: eu}, spec: {connectorRef: account.aws, region: us-east-1}}",
    "infrastructureDefinition: {identifier: one, name: One, environmentRef: dev, deploymentType: ECS, type: ECS, spec: {connectorRef: account.aws, region: us-east-1, cluster: c}}",
    "infrastructureDefinition: {identifier: eu, name: EU, environmentRef: account.prod, deploymentType: ECS, type: ECS, spec: {connectorRef: account.aws, region: eu-west-1, cluster: c}}",
    "environmentGroup: {identifier: lower, name: Lower, orgIdentifier: default, projectIdentifier: shop, envIdentifiers: [qa, dev]}",
    "connector: {identifier: aws, name: AWS, type: Aws, spec: {credential: {type: InheritFromDelegate}}}",
    "connector: {identifier: hub, name: Hub, type: DockerRegistry, spec: {dockerRegistryUrl: https://index.docker.io/v2/, providerType: DockerHub, auth: {type: Anonymous}}}",
    "template: {identifier: source, name: source, versionLabel: 1, type: ArtifactSource, spec: {type: DockerRegistry, spec: {connectorRef: account.hub, imagePath: acme/web, tag: <+input>}}}",
];

fn told(faults: Vec<Diagnostic>) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

/// Entities where they belong: those of production and what has no other home in the account.
fn world(more: &[(&str, &str)]) -> Snapshot {
    let account = Scope::account(project().account);
    let mut snapshot = Snapshot::default();
    let mut lists: Vec<(Reference, Vec<Arc<Parsed>>)> = Vec::new();
    let home = |entity: &Parsed| {
        let of_account = [Kind::Connector, Kind::Template].contains(&entity.head.kind);
        let env = entity.head.env_ref.as_ref().map(|env| env.as_str());
        let prod = entity.head.identifier.as_str() == "prod" || env == Some("account.prod");
        if of_account || prod {
            account.clone()
        } else {
            project()
        }
    };
    for yaml in ENTITIES {
        let entity =
            Arc::new(entity::parse("entity", yaml).unwrap_or_else(|f| panic!("{}", told(f))));
        let reference = Reference::of(&entity, home(&entity));
        if entity.head.kind == Kind::Infrastructure {
            let every = Reference {
                id: EntityId::new(EVERY),
                ..reference.clone()
            };
            match lists.iter_mut().find(|(known, _)| *known == every) {
                Some((_, list)) => list.push(entity.clone()),
                None => lists.push((every, vec![entity.clone()])),
            }
        }
        snapshot.put(reference, Some(Found::Entity(entity)));
    }
    for (every, list) in lists {
        snapshot.put(every, Some(Found::Many(list)));
    }
    for (scope, yaml) in more {
        let entity = entity::parse("more", yaml).unwrap_or_else(|f| panic!("{yaml}\n{}", told(f)));
        let scope = if *scope == "account" {
            account.clone()
        } else {
            project()
        };
        let reference = Reference::of(&entity, scope);
        snapshot.put(reference, Some(Found::Entity(Arc::new(entity))));
    }
    for (path, text) in [("/app.yaml", "a: 1"), ("/over.yaml", "a: 2")] {
        let reference = Reference {
            scope: project(),
            kind: FILE,
            parent: None,
            id: EntityId::new(path),
        };
        snapshot.put(reference, Some(Found::File(text.into())));
    }
    snapshot
}

fn planned(spec: &str, more: &[(&str, &str)]) -> Result<Plan, Vec<Diagnostic>> {
    planned_stages(
        &format!(
            "[{{stage: {{identifier: d, name: D, type: Deployment, failureStrategies: [], spec: {{deploymentType: ECS, {spec}, execution: {{steps: []}}}}}}}}]"
        ),
        more,
    )
}

fn planned_stages(stages: &str, more: &[(&str, &str)]) -> Result<Plan, Vec<Diagnostic>> {
    let text =
        format!("pipeline: {{identifier: p, name: P, tags: {{zone: us}}, stages: {stages}}}");
    let pipeline = entity::parse("pipeline.yaml", &text)?;
    let inputs = yaml::parse("inputs.yaml", "pipeline: {}").unwrap();
    resolve(&Request {
        pipeline: &pipeline,
        inputs: &[&inputs],
        scope: &project(),
        entities: &world(more),
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    })
}

/// The stages of a plan, a line each: its group, identifier, service, environment and infrastructure.
fn shown(plan: &Plan) -> String {
    let mut out = String::new();
    for (number, group) in plan.groups.iter().enumerate() {
        for stage in group {
            let service = stage
                .service
                .as_ref()
                .map_or("-", |s| s.identifier.as_str());
            let environment = stage
                .environment
                .as_ref()
                .map_or("-", |e| e.identifier.as_str());
            let infrastructure = stage
                .infrastructure
                .as_ref()
                .map_or("-", |i| i.identifier.as_str());
            let _ = write!(
                out,
                "{number}: {} {service} {environment}/{infrastructure}",
                stage.id
            );
            for (name, value) in stage.iteration.iter().flat_map(|turn| &turn.matrix) {
                let _ = write!(out, " {name}={value}");
            }
            out.push('\n');
        }
    }
    out
}

const INPUTS: &str = "serviceInputs: {serviceDefinition: {type: ECS, spec: {artifacts: {primary: {sources: [{identifier: img, template: {templateInputs: {spec: {tag: v1}}}}]}}}}}";

fn spread(spec: &str) -> String {
    let spec = spec
        .replace("$web", &format!("{{serviceRef: web, {INPUTS}}}"))
        .replace("$qa", "environmentRef: qa");
    shown(&planned(&spec, &[]).unwrap_or_else(|faults| panic!("{spec}\n{}", told(faults))))
}

#[test]
fn services_and_environments_are_taken_apart() {
    let cases = [
        "service: $web, environment: {$qa, infrastructureDefinitions: [{identifier: eu}]}",
        "service: $web, environment: {$qa, infrastructureDefinitions: [{identifier: eu}, {identifier: us}]}",
        "service: $web, environment: {$qa, deployToAll: true, metadata: {parallel: true}}",
        "service: {serviceRef: api}, environment: {$qa, filters: [{identifier: f, type: tags, entities: [infrastructures], spec: {matchType: all, tags: {zone: eu, size: big}}}]}",
        "service: {serviceRef: api}, environment: {$qa, filters: [{identifier: f, type: tags, entities: [infrastructures], spec: {matchType: any, tags: <+pipeline.tags>}}]}",
        "service: {serviceRef: api}, environment: {$qa, filters: [{identifier: f, type: all, entities: [infrastructures], spec: {}}]}",
        "services: {metadata: {parallel: true}, values: [$web, {serviceRef: api}]}, environment: {$qa, infrastructureDefinitions: [{identifier: eu}, {identifier: us}]}",
        "services: {values: [$web, {serviceRef: api}]}, environments: {metadata: {parallel: true}, values: [{$qa, infrastructureDefinitions: [{identifier: eu}]}, {environmentRef: account.prod, deployToAll: true}]}",
        "services: {metadata: {parallel: true}, values: [$web, {serviceRef: api}]}, environments: {metadata: {parallel: true}, values: [{$qa, deployToAll: true}]}",
        "services: {values: [{serviceRef: api}]}, environment: {$qa, infrastructureDefinitions: [{identifier: eu}]}",
        "service: {serviceRef: api}, environmentGroup: {envGroupRef: lower, deployToAll: true, metadata: {parallel: true}}",
        "service: {serviceRef: api}, environmentGroup: {envGroupRef: lower, environments: [{environmentRef: dev, deployToAll: true}]}",
        "service: {serviceRef: api}, environmentGroup: {envGroupRef: lower, filters: [{identifier: e, type: tags, entities: [environments], spec: {matchType: all, tags: {tier: dev}}}]}",
        "service: {serviceRef: api}, environment: {$qa, deployToAll: true}, multiDeploymentConfig: {maxConcurrency: 2}",
    ];
    let all: String = cases
        .iter()
        .map(|spec| format!("{spec}\n{}\n", spread(spec)))
        .collect();
    insta::assert_snapshot!(all, @r#"
    service: $web, environment: {$qa, infrastructureDefinitions: [{identifier: eu}]}
    0: d web qa/eu

    service: $web, environment: {$qa, infrastructureDefinitions: [{identifier: eu}, {identifier: us}]}
    0: d_0 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    1: d_1 web qa/us serviceRef="web" environmentRef="qa" identifier="us"

    service: $web, environment: {$qa, deployToAll: true, metadata: {parallel: true}}
    0: d_0 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_1 web qa/us serviceRef="web" environmentRef="qa" identifier="us"

    service: {serviceRef: api}, environment: {$qa, filters: [{identifier: f, type: tags, entities: [infrastructures], spec: {matchType: all, tags: {zone: eu, size: big}}}]}
    0: d_0 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"

    service: {serviceRef: api}, environment: {$qa, filters: [{identifier: f, type: tags, entities: [infrastructures], spec: {matchType: any, tags: <+pipeline.tags>}}]}
    0: d_0 api qa/us serviceRef="api" environmentRef="qa" identifier="us"

    service: {serviceRef: api}, environment: {$qa, filters: [{identifier: f, type: all, entities: [infrastructures], spec: {}}]}
    0: d_0 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    1: d_1 api qa/us serviceRef="api" environmentRef="qa" identifier="us"

    services: {metadata: {parallel: true}, values: [$web, {serviceRef: api}]}, environment: {$qa, infrastructureDefinitions: [{identifier: eu}, {identifier: us}]}
    0: d_0 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_1 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    1: d_2 web qa/us serviceRef="web" environmentRef="qa" identifier="us"
    1: d_3 api qa/us serviceRef="api" environmentRef="qa" identifier="us"

    services: {values: [$web, {serviceRef: api}]}, environments: {metadata: {parallel: true}, values: [{$qa, infrastructureDefinitions: [{identifier: eu}]}, {environmentRef: account.prod, deployToAll: true}]}
    0: d_0 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_1 web prod/eu serviceRef="web" environmentRef="account.prod" identifier="eu"
    1: d_2 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    1: d_3 api prod/eu serviceRef="api" environmentRef="account.prod" identifier="eu"

    services: {metadata: {parallel: true}, values: [$web, {serviceRef: api}]}, environments: {metadata: {parallel: true}, values: [{$qa, deployToAll: true}]}
    0: d_0 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_1 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_2 web qa/us serviceRef="web" environmentRef="qa" identifier="us"
    0: d_3 api qa/us serviceRef="api" environmentRef="qa" identifier="us"

    services: {values: [{serviceRef: api}]}, environment: {$qa, infrastructureDefinitions: [{identifier: eu}]}
    0: d_0 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"

    service: {serviceRef: api}, environmentGroup: {envGroupRef: lower, deployToAll: true, metadata: {parallel: true}}
    0: d_0 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_1 api qa/us serviceRef="api" environmentRef="qa" identifier="us"
    0: d_2 api dev/one serviceRef="api" environmentRef="dev" identifier="one"

    service: {serviceRef: api}, environmentGroup: {envGroupRef: lower, environments: [{environmentRef: dev, deployToAll: true}]}
    0: d_0 api dev/one serviceRef="api" environmentRef="dev" identifier="one"

    service: {serviceRef: api}, environmentGroup: {envGroupRef: lower, filters: [{identifier: e, type: tags, entities: [environments], spec: {matchType: all, tags: {tier: dev}}}]}
    0: d_0 api dev/one serviceRef="api" environmentRef="dev" identifier="one"

    service: {serviceRef: api}, environment: {$qa, deployToAll: true}, multiDeploymentConfig: {maxConcurrency: 2}
    0: d_0 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_1 api qa/us serviceRef="api" environmentRef="qa" identifier="us"
    "#);
}

#[test]
fn a_stage_knows_the_group_that_it_deploys_to() {
    let plan = planned_stages(
        "[{stage: {identifier: d, name: D, type: Deployment, failureStrategies: [], spec: {deploymentType: ECS, service: {serviceRef: api},
          environmentGroup: {envGroupRef: lower, environments: [{environmentRef: dev, deployToAll: true}]}, execution: {steps: [
            {step: {identifier: w, name: W, type: Wait, spec: {duration: 1s},
              strategy: {repeat: {items: ['<+env.envGroupName>', '<+env.envGroupRef>']}}}}]}}}}]",
        &[],
    );
    let plan = plan.unwrap_or_else(|faults| panic!("{}", told(faults)));
    let stage = &plan.groups[0][0];
    let group = stage.environment.as_ref().and_then(|env| env.group.clone());
    let (reference, name) = ("lower".to_owned(), "Lower".to_owned());
    assert_eq!(group, Some(crate::EnvironmentGroupPlan { reference, name }));
    let read = serde_json::to_string(&stage.steps).unwrap();
    for item in ["\"item\":\"Lower\"", "\"item\":\"lower\""] {
        assert!(read.contains(item), "{read}");
    }
}

#[test]
fn a_loop_around_several_services_takes_both_apart() {
    let spec = |parallel: &str, config: &str| {
        format!(
            "deploymentType: ECS, services: {{metadata: {{parallel: {parallel}}}, values: [{{serviceRef: web, {INPUTS}}}, {{serviceRef: api}}]}}, environment: {{environmentRef: qa, infrastructureDefinitions: [{{identifier: eu}}]}}{config}"
        )
    };
    let all = ", multiDeploymentConfig: {onFailure: RunAll, maxConcurrency: 1}";
    let cases = [
        ("repeat: {times: 2}", "true", ""),
        ("repeat: {times: 2}", "false", ""),
        (
            "matrix: {zone: [a, b, c], maxConcurrency: 2}, onFailure: SkipQueued",
            "false",
            "",
        ),
        ("matrix: {zone: [a, b, c], maxConcurrency: 2}", "true", ""),
        (
            "matrix: {zone: [a, b, c], maxConcurrency: 2, nodeName: in <+matrix.zone>}",
            "true",
            all,
        ),
    ];
    let mut shown_all = String::new();
    for (strategy, parallel, config) in cases {
        let spec = spec(parallel, config);
        let stages = format!(
            "[{{stage: {{identifier: d, name: D, type: Deployment, strategy: {{{strategy}}}, failureStrategies: [], spec: {{{spec}, execution: {{steps: []}}}}}}}}]"
        );
        let plan = planned_stages(&stages, &[]).unwrap_or_else(|faults| panic!("{}", told(faults)));
        let limits = plan.groups.iter().map(|group| {
            let turns = group.iter().filter_map(|stage| stage.iteration.as_ref());
            let limits: Vec<_> = turns.map(|turn| turn.concurrency).collect();
            assert!(
                limits.windows(2).all(|pair| pair[0] == pair[1]),
                "{strategy}"
            );
            limits.first().copied().unwrap_or_default().to_string()
        });
        let limits: Vec<_> = limits.collect();
        let name = &plan.groups[0][0].name;
        let _ = writeln!(
            shown_all,
            "{strategy}, parallel {parallel}: {name}, at most {} at once\n{}",
            limits.join(", "),
            shown(&plan)
        );
    }
    insta::assert_snapshot!(shown_all, @r#"
    repeat: {times: 2}, parallel true: D_0, at most 0 at once
    0: d_0 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_1 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_2 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_3 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"

    repeat: {times: 2}, parallel false: D_0, at most 0, 0 at once
    0: d_0 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_2 web qa/eu serviceRef="web" environmentRef="qa" identifier="eu"
    1: d_1 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    1: d_3 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"

    matrix: {zone: [a, b, c], maxConcurrency: 2}, onFailure: SkipQueued, parallel false: D_0, at most 0, 0, 0, 0 at once
    0: d_0 web qa/eu zone="a" serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_2 web qa/eu zone="b" serviceRef="web" environmentRef="qa" identifier="eu"
    1: d_1 api qa/eu zone="a" serviceRef="api" environmentRef="qa" identifier="eu"
    1: d_3 api qa/eu zone="b" serviceRef="api" environmentRef="qa" identifier="eu"
    2: d_4 web qa/eu zone="c" serviceRef="web" environmentRef="qa" identifier="eu"
    3: d_5 api qa/eu zone="c" serviceRef="api" environmentRef="qa" identifier="eu"

    matrix: {zone: [a, b, c], maxConcurrency: 2}, parallel true: D_0, at most 4 at once
    0: d_0 web qa/eu zone="a" serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_1 api qa/eu zone="a" serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_2 web qa/eu zone="b" serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_3 api qa/eu zone="b" serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_4 web qa/eu zone="c" serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_5 api qa/eu zone="c" serviceRef="api" environmentRef="qa" identifier="eu"

    matrix: {zone: [a, b, c], maxConcurrency: 2, nodeName: in <+matrix.zone>}, parallel true: in a_0, at most 2 at once
    0: d_0 web qa/eu zone="a" serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_1 api qa/eu zone="a" serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_2 web qa/eu zone="b" serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_3 api qa/eu zone="b" serviceRef="api" environmentRef="qa" identifier="eu"
    0: d_4 web qa/eu zone="c" serviceRef="web" environmentRef="qa" identifier="eu"
    0: d_5 api qa/eu zone="c" serviceRef="api" environmentRef="qa" identifier="eu"
    "#);
}

#[test]
fn a_guard_of_several_deployments_is_part_of_each_condition() {
    let planned = |when: &str, guard: &str| {
        let stages = format!(
            "[{{stage: {{identifier: d, name: D, type: Deployment, {when} failureStrategies: [], spec: {{deploymentType: ECS, service: {{serviceRef: api}}, environment: {{environmentRef: qa, deployToAll: true}}, multiDeploymentConfig: {{when: '{guard}'}}, execution: {{steps: []}}}}}}}}]"
        );
        planned_stages(&stages, &[])
    };
    let conditions = |when: &str| {
        let plan = planned(when, "<+pipeline.tags.zone> == \"us\"").unwrap();
        let stages = plan.groups.iter().flatten();
        let texts = stages.map(|stage| format!("{:?}", stage.when));
        texts.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(conditions(""), @r#"
    Some(When { status: Success, condition: Some("<+pipeline.tags.zone> == \"us\"") })
    Some(When { status: Success, condition: Some("<+pipeline.tags.zone> == \"us\"") })
    "#);
    insta::assert_snapshot!(conditions("when: {pipelineStatus: All, condition: <+stage.identifier> != \"d_1\"},"), @r#"
    Some(When { status: All, condition: Some("(<+pipeline.tags.zone> == \"us\") && (<+stage.identifier> != \"d_1\")") })
    Some(When { status: All, condition: Some("(<+pipeline.tags.zone> == \"us\") && (<+stage.identifier> != \"d_1\")") })
    "#);
    let found = planned("", "<+a> ==").map_or_else(told, |_| String::new());
    assert!(found.contains("the condition does not parse"), "{found}");
}

#[test]
fn what_cannot_be_taken_apart_says_why() {
    let site = "environment: {environmentRef: qa, infrastructureDefinitions: [{identifier: eu}]}";
    let cases = [
        (format!("services: {{values: []}}, {site}"), "`services` names no service in `values`"),
        (format!("services: {{useFromStage: {{stage: x}}}}, {site}"), "stage `x` has no `services` of its own to use"),
        (format!("service: {{serviceRef: gone}}, {site}"), "the service `gone` does not exist"),
        (site.to_owned(), "`service` is missing from a deployment stage"),
        ("service: {serviceRef: api}".to_owned(), "`environment` is missing from a deployment stage"),
        ("service: {serviceRef: api}, environment: {environmentRef: qa}".to_owned(), "no infrastructure is named in `infrastructureDefinitions`"),
        ("service: {serviceRef: api}, environment: {environmentRef: account.prod, filters: [{identifier: f, type: tags, entities: [infrastructures], spec: {tags: {zone: mars}}}]}".to_owned(), "the environment `prod` has no infrastructure that passes the filters and ECS can be deployed to"),
        ("service: {serviceRef: api}, environmentGroup: {envGroupRef: none, deployToAll: true}".to_owned(), "the environmentGroup `none` does not exist"),
        ("service: {serviceRef: api}, environmentGroup: {envGroupRef: lower, environments: [{environmentRef: account.prod, deployToAll: true}]}".to_owned(), "the environment `account.prod` does not belong to the group `lower`"),
        ("service: {serviceRef: api}, environment: {environmentRef: qa, infrastructureDefinitions: [{identifier: one}]}".to_owned(), "the infrastructure definition `one` does not exist in environment `qa`"),
    ];
    for (spec, expected) in cases {
        let found = planned(&spec, &[]).map_or_else(told, |_| String::new());
        assert!(found.contains(expected), "{spec}\n{found}");
    }
}

const SITE: &str = "environment: {environmentRef: qa, infrastructureDefinitions: [{identifier: eu}], serviceOverrideInputs: {variables: [{name: asked, type: String, value: given}]}}";

/// Each override alone, then each on top of all that are weaker.
#[test]
fn overrides_follow_their_precedence() {
    let over = |kind: &str, rest: &str, value: &str| {
        format!(
            "overrides: {{type: {kind}, environmentRef: qa, {rest} variables: [{{name: level, type: String, value: {value}}}]}}"
        )
    };
    let all = [
        over("ENV_GLOBAL_OVERRIDE", "", "env_global"),
        over("ENV_SERVICE_OVERRIDE", "serviceRef: web,", "env_service"),
        over(
            "INFRA_GLOBAL_OVERRIDE",
            "infraIdentifier: eu,",
            "infra_global",
        ),
        over(
            "INFRA_SERVICE_OVERRIDE",
            "serviceRef: web, infraIdentifier: eu,",
            "infra_service",
        ),
    ];
    let level = |more: &[(&str, &str)]| {
        let spec = format!("service: {{serviceRef: web, {INPUTS}}}, {SITE}");
        let spec = spec.replace(
            ", serviceOverrideInputs: {variables: [{name: asked, type: String, value: given}]}",
            "",
        );
        let plan = planned(&spec, more).unwrap_or_else(|faults| panic!("{}", told(faults)));
        let service = plan.groups[0][0].service.clone().unwrap();
        let found = service
            .variables
            .into_iter()
            .find(|v| v.name == "level")
            .unwrap();
        found.value.as_str().unwrap().to_owned()
    };
    assert_eq!(level(&[]), "environment");
    let names = ["env_global", "env_service", "infra_global", "infra_service"];
    for (index, name) in names.iter().enumerate() {
        assert_eq!(level(&[("project", &all[index])]), *name);
        let up_to: Vec<_> = all[..=index]
            .iter()
            .rev()
            .map(|yaml| ("project", yaml.as_str()))
            .collect();
        assert_eq!(level(&up_to), *name);
    }
    // Overrides of another environment, service or infrastructure change nothing.
    let others = [
        over("ENV_GLOBAL_OVERRIDE", "", "x").replace("environmentRef: qa", "environmentRef: dev"),
        over("ENV_SERVICE_OVERRIDE", "serviceRef: api,", "x"),
        over("INFRA_GLOBAL_OVERRIDE", "infraIdentifier: us,", "x"),
    ];
    let others: Vec<_> = others
        .iter()
        .map(|yaml| ("project", yaml.as_str()))
        .collect();
    assert_eq!(level(&others), "environment");
    let old = "serviceOverrides: {environmentRef: qa, serviceRef: web, variables: [{name: level, type: String, value: old}]}";
    assert_eq!(level(&[("project", old)]), "old");
    assert_eq!(
        level(&[("project", old), ("project", &all[1])]),
        "env_service"
    );
}

#[test]
fn the_project_wins_over_the_account() {
    let over = |reference: &str, value: &str| {
        format!(
            "overrides: {{type: ENV_GLOBAL_OVERRIDE, environmentRef: {reference}, variables: [{{name: level, type: String, value: {value}}}]}}"
        )
    };
    let (account, own) = (over("prod", "account"), over("account.prod", "project"));
    let spec = "service: {serviceRef: api}, environment: {environmentRef: account.prod, infrastructureDefinitions: [{identifier: eu}]}";
    let level = |more: &[(&str, &str)]| {
        let plan = planned(spec, more).map_err(told).unwrap();
        let stage = plan.groups[0][0].clone();
        let environment = stage.environment.unwrap().variables[0].value.clone();
        assert_eq!(stage.service.unwrap().variables[0].value, environment);
        environment
    };
    assert_eq!(level(&[("account", &account)]), "account");
    assert_eq!(
        level(&[("project", &own), ("account", &account)]),
        "project"
    );
}

#[test]
fn overrides_replace_manifests_files_and_settings() {
    let over = "overrides: {type: ENV_SERVICE_OVERRIDE, environmentRef: qa, serviceRef: web,
        variables: [{name: asked, type: String, value: <+input>}],
        manifests: [{manifest: {identifier: task, type: EcsTaskDefinition, spec: {store: {type: Inline, spec: {content: over}}}}},
                    {manifest: {identifier: svc, type: EcsServiceDefinition, spec: {store: {type: Inline, spec: {content: new}}}}}],
        configFiles: [{configFile: {identifier: app, spec: {store: {type: Harness, spec: {files: [/over.yaml]}}}}},
                      {configFile: {identifier: key, spec: {store: {type: Harness, spec: {secretFiles: [account.key]}}}}}],
        applicationSettings: {store: {type: Inline, spec: {content: '[]'}}}}";
    let spec = format!("service: {{serviceRef: web, {INPUTS}}}, {SITE}");
    let plan = planned(&spec, &[("project", over)]).map_err(told).unwrap();
    let service = plan.groups[0][0].service.clone().unwrap();
    let mut out = String::new();
    for manifest in &service.manifests {
        let _ = writeln!(out, "manifest {} {:?}", manifest.identifier, manifest.files);
    }
    for file in &service.config_files {
        let _ = writeln!(
            out,
            "file {} {:?} {}",
            file.identifier, file.files, file.store["spec"]
        );
    }
    for variable in &service.variables {
        let _ = writeln!(out, "variable {} {}", variable.name, variable.value);
    }
    let _ = writeln!(out, "spec {}", service.spec);
    for artifact in service.artifact.iter().chain(&service.sidecars) {
        let _ = writeln!(out, "artifact {} {:?}", artifact.identifier, artifact.image);
    }
    insta::assert_snapshot!(out, @r#"
    manifest task [("task", "over")]
    manifest svc [("svc", "new")]
    file app [("/over.yaml", "a: 2")] {"files":["/over.yaml"]}
    file key [] {"secretFiles":["account.key"]}
    variable level "environment"
    variable port 80
    variable asked "given"
    spec {"applicationSettings":{"store":{"type":"Inline","spec":{"content":"[]"}}}}
    artifact img Some("index.docker.io/acme/web:v1")
    artifact log Some("index.docker.io/acme/log:3")
    "#);
}

#[test]
fn a_stage_uses_what_another_has() {
    let stage = |id: &str, spec: &str| {
        format!(
            "{{stage: {{identifier: {id}, name: {id}, type: Deployment, failureStrategies: [], spec: {{deploymentType: ECS, {spec}, execution: {{steps: []}}}}}}}}"
        )
    };
    let one = "environment: {environmentRef: qa, infrastructureDefinitions: [{identifier: eu}]}";
    let many = "environment: {environmentRef: qa, deployToAll: true}";
    let both = "services: {values: [{serviceRef: api}]}";
    let use_service = "service: {useFromStage: {stage: a}}, environment: {environmentRef: dev, deployToAll: true}";
    let use_services = "services: {useFromStage: {stage: a}}, environment: {environmentRef: dev, deployToAll: true}";
    let use_both = "service: {useFromStage: {stage: a}}, environment: {useFromStage: {stage: a}}";
    let cases = [
        (format!("service: {{serviceRef: api}}, {one}"), use_service),
        (format!("service: {{serviceRef: api}}, {one}"), use_both),
        (format!("{both}, {one}"), use_services),
        (format!("service: {{serviceRef: api}}, {many}"), use_both),
    ];
    let mut out = String::new();
    for (first, second) in cases {
        let stages = format!("[{}, {}]", stage("a", &first), stage("b", second));
        let found = planned_stages(&stages, &[]).map_or_else(told, |plan| shown(&plan));
        let _ = writeln!(out, "{found}");
    }
    insta::assert_snapshot!(out, @r#"
    0: a api qa/eu
    1: b_0 api dev/one environmentRef="dev" identifier="one"

    0: a api qa/eu
    1: b api qa/eu

    0: a_0 api qa/eu serviceRef="api" environmentRef="qa" identifier="eu"
    1: b_0 api dev/one serviceRef="api" environmentRef="dev" identifier="one"

    pipeline.yaml:1:408: pipeline.stages[1].stage.spec.service.useFromStage.stage: stage `a` runs 2 times with different services or infrastructures; name one of them, `a_0` for instance
    pipeline.yaml:1:449: pipeline.stages[1].stage.spec.environment.useFromStage.stage: stage `a` runs 2 times with different services or infrastructures; name one of them, `a_0` for instance
    "#);
}

#[test]
fn variables_of_scopes_are_in_the_plan() {
    let variable = |scope: Scope, name: &str, value: &str| {
        let (kind, id) = (crate::VARIABLE, EntityId::new(name));
        let reference = Reference {
            scope,
            kind,
            parent: None,
            id,
        };
        let yaml = format!(
            "environment: {{identifier: {name}, name: {name}, type: Production, variables: []}}"
        );
        // The kind does not matter here: only its value is read.
        let tree = yaml::parse("v", &format!("environment: {{identifier: {name}, type: String, spec: {{valueType: FIXED, fixedValue: {value}}}}}")).unwrap();
        let parsed = Parsed {
            tree,
            ..entity::parse("v", &yaml).unwrap()
        };
        (reference, Some(Found::Entity(Arc::new(parsed))))
    };
    let mut snapshot = world(&[]);
    let (place, found) = variable(Scope::account(project().account), "region", "eu-west-1");
    snapshot.put(place, found);
    let (place, found) = variable(project(), "cluster", "main");
    snapshot.put(place, found);
    let text = format!(
        "pipeline: {{identifier: p, name: P, timeout: 1h, stages: [{{stage: {{identifier: d, name: D, type: Deployment, failureStrategies: [], when: {{pipelineStatus: Success, condition: '<+variable.account.region> != \"x\"'}}, spec: {{deploymentType: ECS, service: {{serviceRef: web, {INPUTS}}}, environment: {{environmentRef: qa, infrastructureDefinitions: [{{identifier: eu}}]}}, execution: {{steps: []}}}}}}}}]}}"
    );
    let pipeline = entity::parse("pipeline.yaml", &text).unwrap();
    let request = Request {
        pipeline: &pipeline,
        inputs: &[],
        scope: &project(),
        entities: &snapshot,
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    };
    let plan = resolve(&request).map_err(told).unwrap();
    let all: Vec<_> = plan
        .scope_variables
        .iter()
        .map(|v| format!("{}={}", v.name, v.value))
        .collect();
    assert_eq!(
        all,
        [
            r#"variable.account.region="eu-west-1""#,
            r#"variable.cluster="main""#
        ]
    );
}

#[test]
fn what_a_project_and_its_organization_are_called_is_in_the_plan() {
    let own = project();
    let org = own.org.clone().unwrap();
    let mut snapshot = world(&[]);
    for (scope, id, yaml) in [
        (
            Scope::account(own.account.clone()),
            "default",
            "organization: {identifier: default, name: Default, description: 'All of <+it>'}",
        ),
        (
            Scope::org(own.account.clone(), org),
            "shop",
            "project: {identifier: shop, name: The Shop, orgIdentifier: default, tags: {team.a: blue}}",
        ),
    ] {
        let entity = entity::parse("e", yaml).unwrap();
        let reference = Reference {
            scope,
            kind: entity.head.kind.key(),
            parent: None,
            id: slipway_model::id::EntityId::new(id),
        };
        snapshot.put(reference, Some(Found::Entity(Arc::new(entity))));
    }
    let text = "pipeline: {identifier: p, name: P, delegateSelectors: [main], variables: [
  {name: a, type: String, value: '<+project.name> of <+org.name>: <+org.description>'},
  {name: b, type: String, value: '<+project.tags.get(\"team.a\")> <+account.name> <+project.description>'}],
  stages: [{stage: {identifier: s, name: S, type: Custom, description: Says it, delegateSelectors: ['<+project.name>'], spec: {execution: {steps: [
    {step: {identifier: w, name: W, type: Wait, spec: {duration: '<+pipeline.delegateSelectors>'}}}]}}}}]}";
    let pipeline = entity::parse("pipeline.yaml", text).unwrap();
    let plan = resolve(&Request {
        pipeline: &pipeline,
        inputs: &[],
        scope: &own,
        entities: &snapshot,
        runnable: &|_| true,
        chosen: None,
        trigger: None,
    });
    let plan = plan.map_err(told).unwrap();
    let all: Vec<_> = plan
        .scope_variables
        .iter()
        .map(|v| format!("{}={}", v.name, v.value))
        .collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    project.name="The Shop"
    org.name="Default"
    org.description="All of <+it>"
    project.tags={"team.a":"blue"}
    account.name="acc"
    project.description=""
    pipeline.delegateSelectors=["main"]
    "#);
    let stage = &plan.groups[0][0];
    assert_eq!(stage.delegate_selectors, ["The Shop"]);
    assert_eq!(stage.description.as_deref(), Some("Says it"));
    let of = |path: &[&str]| plan.label(path);
    assert_eq!(of(&["project", "tags", "team", "a"]), Some("blue".into()));
    assert_eq!(of(&["org", "tags"]), None, "nothing reads it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_stage_breaks_the_spread(at in 0..420usize, length in 0..40usize, put in "\\PC{0,10}|<\\+input>|<\\+pipeline\\.tags>|null|\\[\\]|\\{\\}|lower|account\\.prod|deployToAll: true") {
        let mut spec = format!(
            "services: {{metadata: {{parallel: true}}, values: [{{serviceRef: api}}, {{serviceRef: web, {INPUTS}}}]}}, environments: {{metadata: {{parallel: false}}, values: [{{environmentRef: qa, filters: [{{identifier: f, type: tags, entities: [infrastructures], spec: {{matchType: any, tags: {{zone: eu}}}}}}]}}]}}"
        );
        let (at, end) = (at.min(spec.len()), (at + length).min(spec.len()));
        if spec.is_char_boundary(at) && spec.is_char_boundary(end) {
            spec.replace_range(at..end, &put);
            let _ = planned(&spec, &[]);
        }
    }
}
