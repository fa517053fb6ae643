//! The one list of steps that this version runs.

use crate::step::Step;
use crate::{
    approval, asg, barrier, chained, custom_approval, ecs, http, jira, lambda, pin_artifacts,
    queue, service_now, shell, stage_inputs, wait,
};

/// Which function walks the lanes of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swimlane {
    /// `lane-common`: steps that need no swimlane of their own.
    Common,
    /// `lane-asg`: deployment type Asg.
    Asg,
    /// `lane-ecs`: deployment type ECS.
    Ecs,
    /// `lane-lambda`: deployment type AwsLambda.
    Lambda,
}

/// Every step type that runs, in alphabetical order.
pub static STEPS: &[(&str, &dyn Step)] = &[
    ("AsgBlueGreenDeploy", &asg::BlueGreenDeploy),
    ("AsgBlueGreenRollback", &asg::BlueGreenRollback),
    ("AsgBlueGreenSwapService", &asg::BlueGreenSwapService),
    ("AsgCanaryDelete", &asg::CanaryDelete),
    ("AsgCanaryDeploy", &asg::CanaryDeploy),
    ("AsgPhasedDeploy", &asg::PhasedDeploy),
    ("AsgRollback", &asg::Rollback),
    ("AsgRollingDeploy", &asg::RollingDeploy),
    ("AsgRollingRollback", &asg::RollingRollback),
    ("AsgScale", &asg::Scale),
    ("AsgSetup", &asg::Setup),
    ("AsgShiftTraffic", &asg::ShiftTraffic),
    ("AsgSteadyState", &asg::SteadyState),
    ("AwsLambdaCanaryDeploy", &lambda::CanaryDeploy),
    ("AwsLambdaCanaryRollback", &lambda::CanaryRollback),
    ("AwsLambdaDeploy", &lambda::Deploy),
    ("AwsLambdaRollback", &lambda::Rollback),
    ("AwsLambdaTrafficShift", &lambda::TrafficShift),
    ("Barrier", &barrier::Barrier),
    ("CustomApproval", &custom_approval::CustomApproval),
    ("EcsBasicRollback", &ecs::BasicRollback),
    ("EcsBlueGreenCreateService", &ecs::BlueGreenCreateService),
    ("EcsBlueGreenRollback", &ecs::BlueGreenRollback),
    (
        "EcsBlueGreenSwapTargetGroups",
        &ecs::BlueGreenSwapTargetGroups,
    ),
    ("EcsBlueGreenTrafficShift", &ecs::BlueGreenTrafficShift),
    ("EcsCanaryDelete", &ecs::CanaryDelete),
    ("EcsCanaryDeploy", &ecs::CanaryDeploy),
    ("EcsRollingDeploy", &ecs::RollingDeploy),
    ("EcsRollingRollback", &ecs::RollingRollback),
    ("EcsRunTask", &ecs::RunTask),
    ("EcsScale", &ecs::Scale),
    ("EcsServiceSetup", &ecs::ServiceSetup),
    ("EcsUpgradeContainer", &ecs::UpgradeContainer),
    ("HarnessApproval", &approval::HarnessApproval),
    ("Http", &http::Http),
    ("JiraApproval", &jira::JiraApproval),
    ("JiraCreate", &jira::JiraCreate),
    ("JiraUpdate", &jira::JiraUpdate),
    ("PinArtifacts", &pin_artifacts::PinArtifacts),
    ("Pipeline", &chained::Pipeline),
    ("Queue", &queue::Queue),
    ("ServiceNowApproval", &service_now::ServiceNowApproval),
    ("ServiceNowCreate", &service_now::ServiceNowCreate),
    ("ServiceNowImportSet", &service_now::ServiceNowImportSet),
    ("ServiceNowUpdate", &service_now::ServiceNowUpdate),
    ("ShellScript", &shell::ShellScript),
    ("StageInputs", &stage_inputs::StageInputs),
    (
        "StandAloneTrafficShiftRollback",
        &ecs::StandaloneTrafficShiftRollback,
    ),
    ("Wait", &wait::Wait),
];

/// The step of this type, if it runs in this version.
pub fn find(step_type: &str) -> Option<&'static dyn Step> {
    let place = STEPS
        .binary_search_by(|(name, _)| (*name).cmp(step_type))
        .ok()?;
    STEPS.get(place).map(|(_, step)| *step)
}

/// Whether this version runs steps of this type.
pub fn runnable(step_type: &str) -> bool {
    find(step_type).is_some()
}

/// The steps as the engine's use cases want to know them.
pub const STEP_TYPES: slipway_engine::start::StepTypes = slipway_engine::start::StepTypes {
    runnable,
    faults: |step_type, spec| {
        find(step_type)
            .map(|step| step.check(spec))
            .unwrap_or_default()
    },
};

/// The deployment types whose stages may hold this step; empty when every stage may.
pub fn deployment_types(step_type: &str) -> &'static [&'static str] {
    if step_type.starts_with("Asg") {
        &["Asg"]
    } else if step_type.starts_with("Ecs") {
        &["ECS"]
    } else if step_type.starts_with("AwsLambda") {
        &["AwsLambda"]
    } else {
        &[]
    }
}

/// The swimlane of a stage with this `deploymentType` (`None` for stages that deploy nothing).
pub fn swimlane(deployment_type: Option<&str>) -> Swimlane {
    match deployment_type {
        Some("Asg") => Swimlane::Asg,
        Some("ECS") => Swimlane::Ecs,
        Some("AwsLambda") => Swimlane::Lambda,
        _ => Swimlane::Common,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_tells_the_truth() {
        assert!(STEPS.is_sorted_by_key(|(name, _)| *name));
        for (name, step) in STEPS {
            assert_eq!(*name, step.step_type());
            assert!(runnable(name), "{name}");
            if let crate::step::Undo::Step(undo) = step.undo() {
                assert!(runnable(undo), "{name} is undone by {undo}");
            }
        }
        assert!(!runnable("EcsRollingDeplo"));
    }
}
