//! The golden pipelines and templates that users start from: each is planned, as it is in `templates/`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what the tests share runs in tests only, and says what it found"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use slipway_model::id::{AccountId, OrgId, ProjectId, Scope};
use slipway_model::{Diagnostic, Kind, Parsed, entity, yaml};
use slipway_plan::{Found, Reference, Request, Snapshot, resolve, text};

/// Steps that run by now.
const RUNNABLE: &[&str] = &[
    "AsgBlueGreenDeploy",
    "AsgBlueGreenRollback",
    "AsgBlueGreenSwapService",
    "AsgCanaryDelete",
    "AsgCanaryDeploy",
    "AsgPhasedDeploy",
    "AsgRollback",
    "AsgRollingDeploy",
    "AsgRollingRollback",
    "AsgScale",
    "AsgSetup",
    "AsgShiftTraffic",
    "AsgSteadyState",
    "AwsLambdaCanaryDeploy",
    "AwsLambdaCanaryRollback",
    "AwsLambdaDeploy",
    "AwsLambdaRollback",
    "AwsLambdaTrafficShift",
    "Barrier",
    "CustomApproval",
    "EcsBasicRollback",
    "EcsBlueGreenCreateService",
    "EcsBlueGreenRollback",
    "EcsBlueGreenSwapTargetGroups",
    "EcsBlueGreenTrafficShift",
    "EcsCanaryDelete",
    "EcsCanaryDeploy",
    "EcsRollingDeploy",
    "EcsRollingRollback",
    "EcsRunTask",
    "EcsScale",
    "EcsServiceSetup",
    "EcsUpgradeContainer",
    "HarnessApproval",
    "Http",
    "JiraApproval",
    "JiraCreate",
    "JiraUpdate",
    "Queue",
    "ServiceNowApproval",
    "ServiceNowCreate",
    "ServiceNowImportSet",
    "ServiceNowUpdate",
    "ShellScript",
    "StandAloneTrafficShiftRollback",
    "Wait",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates")
}

fn scope() -> Scope {
    let (account, org) = (AccountId::new("acc"), OrgId::new("default"));
    Scope::project(account, org, ProjectId::new("default"))
}

fn told(faults: Vec<Diagnostic>) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

/// Every entity below `templates/`, by its file.
fn all() -> Vec<(String, Parsed)> {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root()).unwrap() {
        let folder = folder.unwrap().path();
        if folder.is_dir() {
            files.extend(
                std::fs::read_dir(folder)
                    .unwrap()
                    .map(|file| file.unwrap().path()),
            );
        }
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let mut out = Vec::new();
    for file in files {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        let found = entity::parse_documents(&name, &text).unwrap_or_else(|f| panic!("{}", told(f)));
        out.extend(found.into_iter().map(|entity| (name.clone(), entity)));
    }
    out
}

fn planned(name: &str, inputs: &str) -> String {
    let all = all();
    let mut snapshot = Snapshot::default();
    for (_, entity) in &all {
        let reference = Reference::of(entity, scope());
        snapshot.put(reference, Some(Found::Entity(Arc::new(entity.clone()))));
    }
    let (_, pipeline) = all.iter().find(|(file, _)| file == name).unwrap();
    let inputs = yaml::parse("inputs", inputs).unwrap();
    let request = Request {
        pipeline,
        inputs: &[&inputs],
        scope: &scope(),
        entities: &snapshot,
        runnable: &|step| RUNNABLE.contains(&step),
        chosen: None,
    };
    match resolve(&request) {
        Ok(plan) => text(&plan),
        Err(faults) => panic!("{name}\n{}", told(faults)),
    }
}

#[test]
fn every_pipeline_is_planned() {
    let of = |kind: Kind| {
        let all = all()
            .into_iter()
            .filter(move |(_, entity)| entity.head.kind == kind);
        all.map(|(name, entity)| (name, entity.head.entity_type))
            .collect::<Vec<_>>()
    };
    let pipelines: Vec<_> = of(Kind::Pipeline)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        pipelines,
        [
            "approval/pipeline.yaml",
            "asg-blue-green/pipeline.yaml",
            "asg-canary/pipeline.yaml",
            "asg-phased/pipeline.yaml",
            "asg-rolling/pipeline.yaml",
            "asg-scale/pipeline.yaml",
            "asg-swap/pipeline.yaml",
            "custom-stage/pipeline.yaml",
            "deployment/pipeline.yaml",
            "ecs-basic/pipeline.yaml",
            "ecs-blue-green/pipeline.yaml",
            "ecs-canary/pipeline.yaml",
            "ecs-rolling/pipeline.yaml",
            "ecs-task/pipeline.yaml",
            "ecs-traffic-shift/pipeline.yaml",
            "lambda/pipeline.yaml",
            "lambda-canary/pipeline.yaml",
            "stage/pipeline.yaml",
            "ticket/pipeline.yaml"
        ]
    );
    let types: Vec<_> = of(Kind::Template)
        .into_iter()
        .filter_map(|(_, kind)| kind)
        .collect();
    assert_eq!(types, ["CustomDeployment", "Stage", "StepGroup"]);
}

#[test]
fn ecs_rolling() {
    insta::assert_snapshot!(planned("ecs-rolling/pipeline.yaml", "pipeline: {variables: [{name: tag, value: v1}]}"), @r#"
    pipeline deploy_shop "deploy shop" (at most 30d)
      variable tag = "v1"
      stage deploy "deploy": Deployment of ECS (at most 30d)
        service shop (ECS)
          artifact image (DockerRegistry) index.docker.io/library/shop:v1
          manifest task (EcsTaskDefinition) from Inline, 222 bytes
          manifest service (EcsServiceDefinition) from Inline, 333 bytes
        environment production (Production)
        infrastructure shop_cluster (ECS) {"connectorRef":"aws","region":"us-east-1","cluster":"shop"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step announce "announce": ShellScript (at most 1m)
            shell = "Bash"
            onDelegate = true
            source = {"type":"Inline","spec":{"script":"echo \"deploying $IMAGE to $CLUSTER\"\n"}}
            environmentVariables
              IMAGE = "index.docker.io/library/shop:v1"
              CLUSTER = "shop"
          step rollout "roll out": EcsRollingDeploy (at most 10m)
        rollback
          step rollback "roll back": EcsRollingRollback (at most 10m)
    "#);
}

#[test]
fn asg_strategies() {
    for (strategy, more) in [
        ("rolling", ""),
        ("canary", ""),
        ("phased", ""),
        (
            "blue-green",
            ", {name: listener, value: l}, {name: rule, value: r}",
        ),
        ("scale", ""),
        (
            "swap",
            ", {name: prodListener, value: l}, {name: prodRule, value: r}, \
             {name: stageListener, value: m}, {name: stageRule, value: s}",
        ),
    ] {
        let inputs = format!("pipeline: {{variables: [{{name: image, value: ami-1}}{more}]}}");
        let planned = planned(&format!("asg-{strategy}/pipeline.yaml"), &inputs);
        assert!(
            planned.contains("manifest userData (AsgUserData) from Inline"),
            "{planned}"
        );
        assert!(
            planned.contains("artifact image (AmazonMachineImage)"),
            "{planned}"
        );
        assert!(
            planned.contains("infrastructure shop_machines (Asg)"),
            "{planned}"
        );
        assert!(planned.contains("rollback"), "{planned}");
    }
}

#[test]
fn ecs_basic() {
    insta::assert_snapshot!(planned("ecs-basic/pipeline.yaml", "pipeline: {variables: [{name: tag, value: v1}]}"), @r#"
    pipeline deploy_shop_in_phases "deploy shop in phases" (at most 30d)
      variable tag = "v1"
      stage deploy "deploy": Deployment of ECS (at most 30d)
        service shop (ECS)
          artifact image (DockerRegistry) index.docker.io/library/shop:v1
          manifest task (EcsTaskDefinition) from Inline, 222 bytes
          manifest service (EcsServiceDefinition) from Inline, 333 bytes
        environment production (Production)
        infrastructure shop_cluster (ECS) {"connectorRef":"aws","region":"us-east-1","cluster":"shop"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step setup "new version without tasks": EcsServiceSetup (at most 10m)
            resizeStrategy = "ResizeNewFirst"
            sameAsAlreadyRunningInstances = false
          step half "half of the tasks": EcsUpgradeContainer (at most 10m)
            newServiceInstanceCount = 50
            newServiceInstanceUnit = "Percentage"
          step all "all tasks": EcsUpgradeContainer (at most 10m)
            newServiceInstanceCount = 100
            newServiceInstanceUnit = "Percentage"
            downsizeOldServiceInstanceCount = 0
            downsizeOldServiceInstanceUnit = "Count"
        rollback
          step rollback "tasks back to the version before": EcsBasicRollback (at most 10m)
    "#);
}

#[test]
fn ecs_blue_green() {
    let inputs = "pipeline: {variables: [{name: tag, value: v1}, {name: prodListener, value: L1}, {name: prodRule, value: R1}, {name: stageListener, value: L2}, {name: stageRule, value: R2}]}";
    insta::assert_snapshot!(planned("ecs-blue-green/pipeline.yaml", inputs), @r#"
    pipeline deploy_shop_blue_green "deploy shop blue green" (at most 30d)
      variable tag = "v1"
      variable prodListener = "L1"
      variable prodRule = "R1"
      variable stageListener = "L2"
      variable stageRule = "R2"
      stage deploy "deploy": Deployment of ECS (at most 30d)
        service shop_balanced (ECS)
          artifact image (DockerRegistry) index.docker.io/library/shop:v1
          manifest task (EcsTaskDefinition) from Inline, 222 bytes
          manifest service (EcsServiceDefinition) from Inline, 375 bytes
        environment production (Production)
        infrastructure shop_cluster (ECS) {"connectorRef":"aws","region":"us-east-1","cluster":"shop"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step create "the new version without requests": EcsBlueGreenCreateService (at most 15m)
            loadBalancer = "shop"
            prodListener = "L1"
            prodListenerRuleArn = "R1"
            stageListener = "L2"
            stageListenerRuleArn = "R2"
            sameAsAlreadyRunningInstances = false
            enableAutoScalingInSwapStep = false
            updateGreenService = false
          step check "check it": ShellScript (at most 5m)
            shell = "Bash"
            onDelegate = true
            source = {"type":"Inline","spec":{"script":"echo \"checking $SERVICE through the stage listener\"\n"}}
            environmentVariables
              SERVICE = "<+execution.steps.create.output.serviceName>"
          step swap "all requests to it": EcsBlueGreenSwapTargetGroups (at most 15m)
            doNotDownsizeOldService = false
            downsizeOldServiceDelayInSecs = 10
        rollback
          step rollback "requests back to the version before": EcsBlueGreenRollback (at most 15m)
    "#);
}

#[test]
fn ecs_traffic_shift() {
    let inputs = "pipeline: {variables: [{name: tag, value: v1}, {name: listener, value: L1}, {name: rule, value: R1}, {name: testListener, value: L2}, {name: testRule, value: R2}]}";
    insta::assert_snapshot!(planned("ecs-traffic-shift/pipeline.yaml", inputs), @r#"
    pipeline shift_requests_to_shop "shift requests to shop" (at most 30d)
      variable tag = "v1"
      variable listener = "L1"
      variable rule = "R1"
      variable testListener = "L2"
      variable testRule = "R2"
      stage deploy "deploy": Deployment of ECS (at most 30d)
        service shop_balanced (ECS)
          artifact image (DockerRegistry) index.docker.io/library/shop:v1
          manifest task (EcsTaskDefinition) from Inline, 222 bytes
          manifest service (EcsServiceDefinition) from Inline, 375 bytes
        environment production (Production)
        infrastructure shop_cluster (ECS) {"connectorRef":"aws","region":"us-east-1","cluster":"shop"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step create "the new version without requests": EcsBlueGreenCreateService (at most 15m)
            loadBalancer = "shop"
            prodListener = "L1"
            prodListenerRuleArn = "R1"
            isTrafficShift = true
            sameAsAlreadyRunningInstances = false
            updateGreenService = false
          step testers "testers reach it": EcsBlueGreenTrafficShift (at most 10m)
            ecsTrafficShiftWrapper = {"type":"Standalone","spec":{"loadBalancer":"shop","listener":"L2","listenerRuleArn":"R2","forwardCo…
          one after the other
            group users_0 "users reach it_0"
              turn 1 of 3 of users, weight = "10"
              step look "look at it": HarnessApproval (at most 1d)
                approvalMessage = "Send <+matrix.weight> % of the requests to <+execution.steps.create.output.serviceName>?"
                includePipelineExecutionHistory = true
                approvers = {"userGroups":["account._account_all_users"],"minimumCount":1,"disallowPipelineExecutor":false}
              step shift "shift": EcsBlueGreenTrafficShift (at most 10m)
                ecsTrafficShiftWrapper = {"type":"Inherit","spec":{"weightPercentage":"10"}}
            group users_1 "users reach it_1"
              turn 2 of 3 of users, weight = "50"
              step look "look at it": HarnessApproval (at most 1d)
                approvalMessage = "Send <+matrix.weight> % of the requests to <+execution.steps.create.output.serviceName>?"
                includePipelineExecutionHistory = true
                approvers = {"userGroups":["account._account_all_users"],"minimumCount":1,"disallowPipelineExecutor":false}
              step shift "shift": EcsBlueGreenTrafficShift (at most 10m)
                ecsTrafficShiftWrapper = {"type":"Inherit","spec":{"weightPercentage":"50"}}
            group users_2 "users reach it_2"
              turn 3 of 3 of users, weight = "100"
              step look "look at it": HarnessApproval (at most 1d)
                approvalMessage = "Send <+matrix.weight> % of the requests to <+execution.steps.create.output.serviceName>?"
                includePipelineExecutionHistory = true
                approvers = {"userGroups":["account._account_all_users"],"minimumCount":1,"disallowPipelineExecutor":false}
              step shift "shift": EcsBlueGreenTrafficShift (at most 10m)
                ecsTrafficShiftWrapper = {"type":"Inherit","spec":{"weightPercentage":"100"}}
        rollback
          step rollback "requests back to the version before": EcsBlueGreenRollback (at most 15m)
          step rollback_testers "testers back to the version before": StandAloneTrafficShiftRollback (at most 10m)
    "#);
}

#[test]
fn ecs_canary() {
    insta::assert_snapshot!(planned("ecs-canary/pipeline.yaml", "pipeline: {variables: [{name: tag, value: v1}]}"), @r#"
    pipeline deploy_shop_by_canary "deploy shop by canary" (at most 30d)
      variable tag = "v1"
      stage deploy "deploy": Deployment of ECS (at most 30d)
        service shop (ECS)
          artifact image (DockerRegistry) index.docker.io/library/shop:v1
          manifest task (EcsTaskDefinition) from Inline, 222 bytes
          manifest service (EcsServiceDefinition) from Inline, 333 bytes
        environment production (Production)
        infrastructure shop_cluster (ECS) {"connectorRef":"aws","region":"us-east-1","cluster":"shop"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          group canary "canary"
            step deploy_canary "one task of the new version": EcsCanaryDeploy (at most 10m)
            step look "look at it": HarnessApproval (at most 1h)
              approvalMessage = "Does <+execution.steps.canary.steps.deploy_canary.output.serviceName> look well?"
              includePipelineExecutionHistory = true
              approvers = {"userGroups":["account._account_all_users"],"minimumCount":1,"disallowPipelineExecutor":false}
            step delete_canary "delete the canary": EcsCanaryDelete (at most 10m)
          group everything "everything"
            step rollout "roll out": EcsRollingDeploy (at most 10m)
        rollback
          step rollback_canary "delete the canary": EcsCanaryDelete (at most 10m)
          step rollback "roll back": EcsRollingRollback (at most 10m)
    "#);
}

#[test]
fn ecs_task() {
    insta::assert_snapshot!(planned("ecs-task/pipeline.yaml", "pipeline: {variables: [{name: tag, value: v1}]}"), @r#"
    pipeline migrate_and_deploy_shop "migrate and deploy shop" (at most 30d)
      variable tag = "v1"
      stage deploy "deploy": Deployment of ECS (at most 30d)
        service shop (ECS)
          artifact image (DockerRegistry) index.docker.io/library/shop:v1
          manifest task (EcsTaskDefinition) from Inline, 222 bytes
          manifest service (EcsServiceDefinition) from Inline, 333 bytes
        environment production (Production)
        infrastructure shop_cluster (ECS) {"connectorRef":"aws","region":"us-east-1","cluster":"shop"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step fewer_workers "fewer workers": EcsScale (at most 10m)
            service = "shop-workers"
            instanceUnit = "Percentage"
            instances = 50
            skipSteadyStateCheck = false
          step migrate "migrate the database": EcsRunTask (at most 30m)
            manifest taskDefinition (EcsTaskDefinition) from Inline, 215 bytes
            manifest runTaskRequestDefinition (EcsRunTaskRequestDefinition) from Inline, 167 bytes
            skipSteadyStateCheck = false
          step rollout "roll out": EcsRollingDeploy (at most 10m)
          step all_workers "as many workers as before": EcsScale (at most 10m)
            service = "shop-workers"
            instanceUnit = "Count"
            instances = "<+execution.steps.fewer_workers.output.previousDesiredCount>"
        rollback
          step rollback "roll back": EcsRollingRollback (at most 10m)
    "#);
}

#[test]
fn approval() {
    insta::assert_snapshot!(planned("approval/pipeline.yaml", "pipeline: {}"), @r#"
    pipeline release_by_hand "release by hand" (at most 30d)
      barrier ready "ready"
      stage approve "approve": Approval (at most 30d)
        steps
          step ask "ask": HarnessApproval (at most 1d)
            approvalMessage = "Release release by hand?"
            includePipelineExecutionHistory = true
            approvers = {"userGroups":["account._account_all_users"],"minimumCount":1,"disallowPipelineExecutor":false}
            approverInputs = [{"name":"ticket","required":true,"regex":"[A-Z]+-[0-9]+"}]
      side by side
        stage switch "switch": Custom (at most 30d)
          steps
            step turn "one at a time": Queue (at most 1h)
              key = "shop"
              scope = "Stage"
            step meet "wait for the notes": Barrier (at most 30m)
              barrierRef = "ready"
            step switch_over "switch over": ShellScript (at most 10m)
              shell = "Bash"
              onDelegate = true
              source = {"type":"Inline","spec":{"script":"echo \"released as $TICKET\""}}
              environmentVariables
                TICKET = "<+pipeline.stages.approve.spec.execution.steps.ask.output.approverInputs.ticket>"
              on AllErrors: ManualIntervention {"timeout":"1h","onTimeout":{"action":{"type":"Abort"}}}
        stage notes "notes": Custom (at most 30d)
          steps
            step write "write the notes": ShellScript (at most 10m)
              shell = "Bash"
              onDelegate = true
              source = {"type":"Inline","spec":{"script":"echo \"the notes of this release\""}}
            step meet "wait for the switch": Barrier (at most 30m)
              barrierRef = "ready"
    "#);
}

#[test]
fn custom_stage() {
    insta::assert_snapshot!(planned("custom-stage/pipeline.yaml", "pipeline: {}"), @r#"
    pipeline check_regions "check regions" (at most 30d)
      variable regions = "us-east-1,eu-west-1,ap-southeast-2"
      side by side, at most 2 at once
        stage check_0 "check us-east-1": Custom (at most 30d)
          turn 1 of 3 of check, region = "us-east-1"
          steps
            step prepare "prepare": ShellScript (at most 1m)
              shell = "Bash"
              onDelegate = true
              source = {"type":"Inline","spec":{"script":"echo \"checking $REGION\"\nURL=\"https://$REGION.shop.example.com…
              environmentVariables
                REGION = "us-east-1"
              outputVariables
                URL = "URL"
            step let_it_settle "let it settle": Wait (at most 10m)
              duration = "30s"
            step ask "ask": Http (at most 1m)
              url = "<+execution.steps.prepare.output.outputVariables.URL>"
              method = "GET"
              assertion = "<+httpResponseCode> == 200"
        stage check_1 "check eu-west-1": Custom (at most 30d)
          turn 2 of 3 of check, region = "eu-west-1"
          steps
            step prepare "prepare": ShellScript (at most 1m)
              shell = "Bash"
              onDelegate = true
              source = {"type":"Inline","spec":{"script":"echo \"checking $REGION\"\nURL=\"https://$REGION.shop.example.com…
              environmentVariables
                REGION = "eu-west-1"
              outputVariables
                URL = "URL"
            step let_it_settle "let it settle": Wait (at most 10m)
              duration = "30s"
            step ask "ask": Http (at most 1m)
              url = "<+execution.steps.prepare.output.outputVariables.URL>"
              method = "GET"
              assertion = "<+httpResponseCode> == 200"
        stage check_2 "check ap-southeast-2": Custom (at most 30d)
          turn 3 of 3 of check, region = "ap-southeast-2"
          steps
            step prepare "prepare": ShellScript (at most 1m)
              shell = "Bash"
              onDelegate = true
              source = {"type":"Inline","spec":{"script":"echo \"checking $REGION\"\nURL=\"https://$REGION.shop.example.com…
              environmentVariables
                REGION = "ap-southeast-2"
              outputVariables
                URL = "URL"
            step let_it_settle "let it settle": Wait (at most 10m)
              duration = "30s"
            step ask "ask": Http (at most 1m)
              url = "<+execution.steps.prepare.output.outputVariables.URL>"
              method = "GET"
              assertion = "<+httpResponseCode> == 200"
    "#);
}

#[test]
fn stage_and_step_group_templates() {
    insta::assert_snapshot!(planned("stage/pipeline.yaml", "pipeline: {variables: [{name: tag, value: v1}]}"), @r#"
    pipeline release_shop "release shop" (at most 30d)
      variable tag = "v1"
      stage deploy "deploy": Deployment of ECS (at most 30d)
        service shop (ECS)
          artifact image (DockerRegistry) index.docker.io/library/shop:v1
          manifest task (EcsTaskDefinition) from Inline, 222 bytes
          manifest service (EcsServiceDefinition) from Inline, 333 bytes
        environment production (Production)
        infrastructure shop_cluster (ECS) {"connectorRef":"aws","region":"us-east-1","cluster":"shop"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step rollout "roll out": EcsRollingDeploy (at most 10m)
          group after "after"
            group smoke_test "smoke test"
              step let_it_start "let it start": Wait (at most 10m)
                duration = "30s"
              step ask "ask": Http (at most 1m)
                url = "https://production.shop.example.com/health"
                method = "GET"
                assertion = "<+httpResponseCode> == 200"
                on AllErrors: Retry {"retryCount":5,"retryIntervals":["10s"],"onRetryFailure":{"action":{"type":"StageRollback"}}}
        rollback
          step rollback "roll back": EcsRollingRollback (at most 10m)
    "#);
}

#[test]
fn deployment_template() {
    insta::assert_snapshot!(planned("deployment/pipeline.yaml", "pipeline: {variables: [{name: version, value: '7'}]}"), @r#"
    pipeline deploy_site "deploy site" (at most 30d)
      variable version = "7"
      stage deploy "deploy": Deployment of CustomDeployment (at most 30d)
        service site (CustomDeployment)
          variable version = "7"
        environment web (Production)
        infrastructure site_bucket (CustomDeployment) {"customDeploymentRef":{"templateRef":"static_site","versionLabel":"1.0"},"variables":{"bucket":"sho…
        on AllErrors: MarkAsFailure
        steps
          step upload "upload": ShellScript (at most 10m)
            shell = "Bash"
            onDelegate = true
            source = {"type":"Inline","spec":{"script":"aws s3 sync \"s3://site-builds/$VERSION/\" \"s3://$BUCKET/\" --re…
            environmentVariables
              VERSION = "7"
              BUCKET = "shop-site"
              REGION = "us-east-1"
    "#);
}

#[test]
fn ticket() {
    let inputs = "pipeline: {variables: [{name: change, value: CHG0030001}]}";
    insta::assert_snapshot!(planned("ticket/pipeline.yaml", inputs), @r#"
    pipeline release_by_ticket "release by ticket" (at most 30d)
      variable change = "CHG0030001"
      stage approve "approve": Approval (at most 30d)
        steps
          step open "open an issue": JiraCreate (at most 5m)
            connector jira (Jira)
            connectorRef = "jira"
            projectKey = "SHOP"
            issueType = "Task"
            fields
              Summary = "Release <+pipeline.sequenceId> of the shop"
              Description = "Started by <+pipeline.triggeredBy.name>"
          step wait_for_issue "wait for the issue": JiraApproval (at most 1d)
            connector jira (Jira)
            connectorRef = "jira"
            issueKey = "<+execution.steps.open.issue.key>"
            retryInterval = "1m"
            approvalCriteria = {"type":"KeyValues","spec":{"matchAnyCondition":false,"conditions":[{"key":"Status","operator":"equa…
            rejectionCriteria = {"type":"KeyValues","spec":{"matchAnyCondition":true,"conditions":[{"key":"Status","operator":"in","…
          step wait_for_change "wait for the change": ServiceNowApproval (at most 1d)
            connector service_now (ServiceNow)
            connectorRef = "service_now"
            ticketType = "change_request"
            ticketNumber = "CHG0030001"
            retryInterval = "5m"
            changeWindow = {"startField":"start_date","endField":"end_date"}
            approvalCriteria = {"type":"Jexl","spec":{"expression":"<+ticket.state.displayValue> == \"Implement\""}}
      stage release "release": Custom (at most 30d)
        steps
          step release "release": ShellScript (at most 10m)
            shell = "Bash"
            onDelegate = true
            source = {"type":"Inline","spec":{"script":"echo \"released for $ISSUE\""}}
            environmentVariables
              ISSUE = "<+pipeline.stages.approve.spec.execution.steps.open.issue.key>"
          step write_it_down "write it down": JiraUpdate (at most 5m)
            connector jira (Jira)
            connectorRef = "jira"
            issueKey = "<+pipeline.stages.approve.spec.execution.steps.open.issue.key>"
            fields
              Comment = "Released by run <+pipeline.sequenceId>"
          step note "note it in the change": ServiceNowUpdate (at most 5m)
            connector service_now (ServiceNow)
            connectorRef = "service_now"
            ticketType = "change_request"
            ticketNumber = "CHG0030001"
            useServiceNowTemplate = false
            fields
              work_notes = "Released for <+pipeline.stages.approve.spec.execution.steps.open.issue.key>"
    "#);
}

#[test]
fn lambda() {
    insta::assert_snapshot!(planned("lambda/pipeline.yaml", "pipeline: {variables: [{name: version, value: v1}]}"), @r#"
    pipeline deploy_checkout "deploy checkout" (at most 30d)
      variable version = "v1"
      stage deploy "deploy": Deployment of AwsLambda (at most 30d)
        service checkout (AwsLambda)
          artifact package (AmazonS3) s3://shop-packages/checkout/v1.zip
          manifest function (AwsLambdaFunctionDefinition) from Inline, 208 bytes
          manifest live (AwsLambdaFunctionAliasDefinition) from Inline, 44 bytes
        environment production (Production)
        infrastructure functions (AwsLambda) {"connectorRef":"aws","region":"us-east-1"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step deploy "deploy": AwsLambdaDeploy (at most 10m)
        rollback
          step rollback "roll back": AwsLambdaRollback (at most 10m)
    "#);
}

#[test]
fn lambda_canary() {
    insta::assert_snapshot!(planned("lambda-canary/pipeline.yaml", "pipeline: {variables: [{name: version, value: v1}]}"), @r#"
    pipeline deploy_checkout_by_canary "deploy checkout by canary" (at most 30d)
      variable version = "v1"
      stage deploy "deploy": Deployment of AwsLambda (at most 30d)
        service checkout (AwsLambda)
          artifact package (AmazonS3) s3://shop-packages/checkout/v1.zip
          manifest function (AwsLambdaFunctionDefinition) from Inline, 208 bytes
          manifest live (AwsLambdaFunctionAliasDefinition) from Inline, 44 bytes
        environment production (Production)
        infrastructure functions (AwsLambda) {"connectorRef":"aws","region":"us-east-1"}
          connector aws (Aws)
        on AllErrors: StageRollback
        steps
          step canary "a version without traffic": AwsLambdaCanaryDeploy (at most 10m)
          step shift_tenth "a tenth of the traffic": AwsLambdaTrafficShift (at most 10m)
            trafficPercentage = 10
          step look "look at it": HarnessApproval (at most 1h)
            approvalMessage = "Does version <+execution.steps.canary.output.version> of <+execution.steps.canary.output.functionNa…
            includePipelineExecutionHistory = true
            approvers = {"userGroups":["account._account_all_users"],"minimumCount":1,"disallowPipelineExecutor":false}
          step shift_all "all of the traffic": AwsLambdaTrafficShift (at most 10m)
            trafficPercentage = 100
        rollback
          step rollback "roll back": AwsLambdaCanaryRollback (at most 10m)
    "#);
}
