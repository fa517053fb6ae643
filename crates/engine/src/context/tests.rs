//! Which names lead to which values.

use std::collections::BTreeMap;

use serde_json::json;
use slipway_expr::{Limits, parse};
use slipway_model::id::NodeId;
use slipway_model::status::Status;
use slipway_plan::Plan;
use slipway_store::record::{NodeRecord, StageSummary};

use super::RunContext;
use crate::fixture::{deploys, group, parallel, plan, record, run, stage, step, variable};

fn a_plan() -> Plan {
    let build = stage(
        "build",
        vec![
            step("compile"),
            group("g", vec![parallel("p", vec![step("test")])]),
        ],
    );
    let inner = group("shift", vec![step("check"), step("switch")]);
    let mut deploy = deploys(stage("deploy", vec![step("rollout"), inner]));
    deploy.variables = vec![
        variable(
            "url",
            "String",
            json!("https://<+env.name.toLowerCase()>.example.com"),
        ),
        variable("token", "Secret", json!("account.token")),
    ];
    let mut plan = plan(vec![vec![build], vec![deploy]]);
    plan.tags.insert("tier".to_owned(), "1".to_owned());
    plan.variables = vec![
        variable(
            "tag",
            "String",
            json!(
                "<+pipeline.stages.build.spec.execution.steps.compile.output.outputVariables.TAG>"
            ),
        ),
        variable("loop.a", "String", json!("<+pipeline.variables.b>")),
        variable("b", "String", json!("<+pipeline.variables.loop.a>")),
    ];
    plan
}

fn nodes() -> BTreeMap<NodeId, NodeRecord> {
    let outputs =
        json!({"output": {"outputVariables": {"TAG": "v2", "EVIL": "<+secrets.getValue(\"x\")>"}}});
    let mut nodes = BTreeMap::new();
    for id in ["compile", "test", "rollout", "check"] {
        nodes.insert(NodeId::new(id), record(id, outputs.clone()));
    }
    nodes
}

fn evaluate(text: &str) -> String {
    let (plan, nodes) = (a_plan(), nodes());
    let mut run = run(&plan);
    run.stages = vec![StageSummary {
        id: plan.groups[0][0].id.clone(),
        name: "build".to_owned(),
        stage_type: "Custom".to_owned(),
        status: Status::Success,
        started_ms: Some(1),
        ended_ms: Some(2),
        failure: None,
        rolled_back: false,
        undoes_run: false,
        taken_apart: false,
        undo: None,
    }];
    run.url = Some("https://slipway.example.com/".to_owned());
    let at = NodeId::new("switch");
    let context = RunContext {
        plan: &plan,
        run: &run,
        nodes: &nodes,
        stage: Some(&plan.groups[1][0]),
        node: Some(&at),
    };
    match parse(text)
        .expect("an expression")
        .evaluate(&context, &Limits::default())
    {
        Ok(value) => value.to_shown_json().to_string(),
        Err(error) => format!("error: {}", error.reason),
    }
}

#[test]
fn names_lead_to_values() {
    let table = [
        (
            "<+account.identifier>/<+org.identifier>/<+project.identifier>",
            "\"acme/default/shop\"",
        ),
        (
            "<+pipeline.name> <+pipeline.identifier>",
            "\"Release release\"",
        ),
        ("<+pipeline.executionId>", "\"r1\""),
        ("<+pipeline.sequenceId>", "7"),
        ("<+pipeline.startTs>", "1000"),
        ("<+currentDate()>", "\"1970-01-01\""),
        ("<+pipeline.triggeredBy.name>", "\"alex\""),
        ("<+pipeline.triggeredBy.email>", "\"alex@localhost\""),
        ("<+pipeline.storeType>", "\"INLINE\""),
        (
            "<+pipeline.executionUrl>",
            "\"https://slipway.example.com/pipeline/api/pipelines/execution/v2/r1?accountIdentifier=acme&orgIdentifier=default&projectIdentifier=shop\"",
        ),
        (
            "<+pipeline.execution.url == pipeline.executionUrl && pipeline.execution.Url == pipeline.executionUrl>",
            "true",
        ),
        (
            "<+pipeline.stages.build.executionUrl.endsWith(\"&stageNodeId=build\")>",
            "true",
        ),
        ("<+step.executionUrl == stage.executionUrl>", "true"),
        ("<+execution.steps.rollout.timeout>", "\"10m\""),
        ("<+step.delegateSelectors>", "[]"),
        ("<+stage.tags>", "{}"),
        (
            "<+stage.variables>",
            "{\"url\":\"https://<+env.name.toLowerCase()>.example.com\"}",
        ),
        ("<+pipeline.tags.tier>", "\"1\""),
        ("<+pipeline.variables.tag>", "\"v2\""),
        ("<+pipeline.stages.build.status>", "\"SUCCEEDED\""),
        (
            "<+pipeline.stages.build.spec.execution.steps.g.steps.test.output.outputVariables.TAG>",
            "\"v2\"",
        ),
        (
            "<+stages.build.spec.execution.steps.compile.status>",
            "\"SUCCEEDED\"",
        ),
        ("<+stage.name>", "\"deploy\""),
        ("<+stage.variables.url>", "\"https://prod.example.com\""),
        (
            "<+stage.variables.token>",
            r#""<+secrets.getValue(\"account.token\")>""#,
        ),
        (
            "<+execution.steps.rollout.output.outputVariables.TAG>",
            "\"v2\"",
        ),
        ("<+stage.spec.execution.steps.rollout.retryCount>", "1"),
        ("<+steps.check.spec.shell>", "\"Bash\""),
        (
            "<+steps.rollout.name> <+step.identifier> <+stepGroup.identifier>",
            "\"rollout switch shift\"",
        ),
        (
            "<+stepGroup.steps.check.output.outputVariables.TAG>",
            "\"v2\"",
        ),
        ("<+service.name> <+service.tags.team>", "\"Shop checkout\""),
        ("<+serviceVariables.replicas + 1>", "4"),
        (
            "<+env.type> <+env.variables.region>",
            "\"Production eu-west-1\"",
        ),
        (
            "<+env.envGroupName> <+env.envGroupRef>",
            "\"Live org.live\"",
        ),
        (
            "<+infra.tags.zone> <+infra.tags>",
            "\"eu {\\\"zone\\\":\\\"eu\\\"}\"",
        ),
        ("<+infra.region>/<+infra.cluster>", "\"eu-west-1/main\""),
        ("<+infra.connector.name>", "\"Live AWS\""),
        ("<+artifact.image>", "\"acme/web:v2\""),
        ("<+artifact.primaryArtifact>", "true"),
        ("<+artifacts.primary.imagePath>", "\"acme/web\""),
        // Output of a script is data, whatever it looks like.
        (
            "<+execution.steps.rollout.output.outputVariables.EVIL>",
            r#""<+secrets.getValue(\"x\")>""#,
        ),
        (
            "<+pipeline.variables.typo>",
            "error: `pipeline.variables.typo` is not defined here; check its spelling and that it exists before this point",
        ),
        (
            "<+steps.switch.output.x>",
            "error: `steps.switch.output.x` is not defined here; check its spelling and that it exists before this point",
        ),
    ];
    for (text, value) in table {
        assert_eq!(evaluate(text), value, "{text}");
    }
    assert!(
        evaluate("<+pipeline.variables.b>").contains("->"),
        "a loop is named"
    );
    let keys = [
        evaluate("<+INFRA_KEY>").len(),
        evaluate("<+INFRA_KEY_SHORT_ID>").len(),
    ];
    assert_eq!(keys, [42, 8]);
}

#[test]
fn turns_of_loops_are_read_from_the_inside_out() {
    let turn = crate::fixture::turn;
    let mut check = step("check_1");
    let mut shift = group("shift_0", Vec::new());
    if let slipway_plan::Node::Step(step) = &mut check {
        let mut own = turn("check", 1, 2, 0);
        own.matrix.clear();
        own.item = Some(json!({"host": "h1"}));
        step.iteration = Some(own);
    }
    if let slipway_plan::Node::Group(group) = &mut shift {
        group.iteration = Some(turn("shift", 0, 3, 0));
        group.nodes = vec![parallel("p", vec![check])];
    }
    let mut deploy = deploys(stage("deploy_2", vec![shift]));
    deploy.iteration = Some(turn("deploy", 2, 4, 0));
    let mut plan = plan(vec![vec![deploy]]);
    plan.scope_variables = vec![
        variable("variable.org.zone", "String", json!("<+env.name>-1")),
        variable("project.name", "String", json!("The <+Shop>")),
        variable("project.tags", "String", json!({"team.a": "blue"})),
        variable("pipeline.delegateSelectors", "String", json!(["main"])),
    ];
    plan.files = vec![("account:/motd".to_owned(), "<+not.read>".to_owned())];
    if let Some(service) = &mut plan.groups[0][0].service {
        service.config_files = vec![slipway_plan::ConfigFilePlan {
            commit: None,
            identifier: slipway_model::id::EntityId::new("app"),
            store: json!({}),
            files: vec![("/app.yaml".to_owned(), "a: 1".to_owned())],
        }];
    }
    let (mut run, node) = (run(&plan), NodeId::new("check_1"));
    run.stages.clear();
    let nodes = BTreeMap::from([(node.clone(), record("check_1", json!({})))]);
    let context = RunContext {
        plan: &plan,
        run: &run,
        nodes: &nodes,
        stage: plan.groups[0].first(),
        node: Some(&node),
    };
    let table = [
        ("<+matrix.axis>", "\"0\""),
        ("<+stage.matrix.axis>", "\"2\""),
        ("<+repeat.item.host>", "\"h1\""),
        ("<+strategy.iteration> <+strategy.iterations>", "\"1 2\""),
        (
            "<+strategy.totalIterations> <+stage.totalIterations>",
            "\"2 4\"",
        ),
        ("a<+strategy.identifierPostFix>", "\"a_1\""),
        ("<+stage.strategy.iteration>", "2"),
        (
            "<+strategy.node.deploy.iteration> <+strategy.node.shift.iteration> <+strategy.node.check.iteration>",
            "\"2 0 1\"",
        ),
        (
            "<+strategy.node.shift.iterations + strategy.node.deploy.iterations>",
            "7",
        ),
        (
            "d<+strategy.node.deploy.identifierPostFix>s<+strategy.node.get(\"shift\").identifierPostFix>",
            "\"d_2s_0\"",
        ),
        (
            "<+strategy.node.shift.matrix.axis> <+strategy.node.deploy.repeat.item>",
            "\"0 2\"",
        ),
        ("<+strategy.node.check.repeat.item.host>", "\"h1\""),
        (
            "<+<+strategy.node>.get(\"deploy\").iteration> <+<+strategy.node>.get(\"deploy\").matrix.axis>",
            "\"2 2\"",
        ),
        (
            "<+stage.iteration>/<+stage.iterations> <+stage.item>",
            "\"2/4 2\"",
        ),
        (
            "<+stepGroup.strategy.iteration>/<+stepGroup.iterations> <+stepGroup.matrix.axis>",
            "\"0/3 0\"",
        ),
        ("<+step.iteration>/<+step.iterations>", "\"1/2\""),
        ("<+step.item.host>", "\"h1\""),
        ("<+strategy.node.deploy.currentStatus>", "\"RUNNING\""),
        (
            "<+strategy.node.get(\"deploy\").currentStatus>",
            "\"RUNNING\"",
        ),
        (
            "<+<+strategy.node>.get(\"deploy\").currentStatus>",
            "\"RUNNING\"",
        ),
        ("<+stage.identifierPostFix>", "\"_2\""),
        ("<+variable.org.zone>", "\"Prod-1\""),
        ("<+project.name>", "\"The <+Shop>\""),
        ("<+project.tags.team.a>", "\"blue\""),
        ("<+project.tags>", "{\"team.a\":\"blue\"}"),
        ("<+pipeline.delegateSelectors[0]>", "\"main\""),
        ("<+service.description>", "\"What customers see\""),
        ("<+configFile.getAsString(\"app\")>", "\"a: 1\""),
        ("<+configFile.getAsBase64(\"app\")>", "\"YTogMQ==\""),
        (
            "<+fileStore.getAsString(\"account:/motd\")>",
            "\"<+not.read>\"",
        ),
    ];
    for (text, value) in table {
        let found = parse(text).unwrap().evaluate(&context, &Limits::default());
        assert_eq!(found.unwrap().to_shown_json().to_string(), value, "{text}");
    }
    for text in [
        "<+matrix.other>",
        "<+org.name>",
        "<+env.description>",
        "<+strategy.node.check.matrix.axis>",
        "<+strategy.node.nobody.iteration>",
    ] {
        let unknown = parse(text).unwrap().evaluate(&context, &Limits::default());
        assert!(unknown.is_err(), "{text}");
    }
}
