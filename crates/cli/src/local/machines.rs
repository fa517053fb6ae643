//! The state machines of `statemachines/`, created or updated in the local engine when it starts.

use anyhow::{Context, bail};
use aws_sdk_sfn::Client;

use crate::local::place;

/// Name and definition of each machine, children first: a definition names the machines below it.
const MACHINES: &[(&str, &str)] = &[
    (
        "slipway-notify",
        include_str!("../../../../statemachines/notify.asl.json"),
    ),
    (
        "slipway-errand",
        include_str!("../../../../statemachines/errand.asl.json"),
    ),
    (
        "slipway-lane",
        include_str!("../../../../statemachines/lane.asl.json"),
    ),
    (
        "slipway-stage",
        include_str!("../../../../statemachines/stage.asl.json"),
    ),
    (
        "slipway-pipeline",
        include_str!("../../../../statemachines/pipeline.asl.json"),
    ),
];

/// Whether an ARN is that of one of these machines, or of a version, an alias or a distributed map of one.
pub fn is_own(arn: &str) -> bool {
    let machine = arn
        .split_once(":stateMachine:")
        .map_or("", |(_, rest)| rest);
    let name = machine.split([':', '/']).next().unwrap_or_default();
    MACHINES.iter().any(|(own, _)| *own == name)
}

/// What `infra/app.yaml` substitutes on AWS, and what stands there in local mode.
fn substitutions() -> [(&'static str, String); 7] {
    [
        ("NotifyFunctionArn", place::function("slipway-notify")),
        ("PipelineFunctionArn", place::function("slipway-pipeline")),
        (
            "LaneCommonFunctionArn",
            place::function("slipway-lane-common"),
        ),
        ("LaneEcsFunctionArn", place::function("slipway-lane-ecs")),
        ("StageMachineArn", place::machine("slipway-stage")),
        ("LaneMachineArn", place::machine("slipway-lane")),
        ("DelegateActivityArn", place::delegate_activity()),
    ]
}

/// Creates the delegate's activity and the machines, or brings them to this version's definitions. Open
/// executions go on with the definition that they started with.
///
/// # Errors
/// When the engine refuses a definition, or a placeholder has no substitution.
pub async fn install(states: &Client) -> anyhow::Result<()> {
    let activity = states.create_activity().name(place::DELEGATE_ACTIVITY);
    activity
        .send()
        .await
        .context("creating the activity of delegates")?;
    for (name, definition) in MACHINES {
        let definition = substitute(definition)?;
        install_one(states, name, definition)
            .await
            .with_context(|| format!("installing the state machine {name}"))?;
    }
    Ok(())
}

async fn install_one(states: &Client, name: &str, definition: String) -> anyhow::Result<()> {
    let arn = place::machine(name);
    let known = states
        .describe_state_machine()
        .state_machine_arn(&arn)
        .send()
        .await;
    match known {
        Ok(known) if known.definition() == definition => Ok(()),
        Ok(_) => {
            let update = states.update_state_machine().state_machine_arn(&arn);
            update.definition(definition).send().await?;
            Ok(())
        }
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|e| e.is_state_machine_does_not_exist()) =>
        {
            let create = states
                .create_state_machine()
                .name(name)
                .definition(definition);
            create.role_arn(place::ROLE).send().await?;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn substitute(definition: &str) -> anyhow::Result<String> {
    let mut text = definition.to_owned();
    for (name, value) in substitutions() {
        text = text.replace(&format!("${{{name}}}"), &value);
    }
    match text.split_once("${") {
        Some((_, rest)) => {
            let name: String = rest.chars().take_while(|c| *c != '}').collect();
            bail!("the definition has the placeholder {name}, which has no substitution");
        }
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{MACHINES, is_own, substitute};

    #[test]
    fn every_placeholder_of_every_machine_has_a_substitution() {
        for (name, definition) in MACHINES {
            substitute(definition).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        assert!(substitute("${Nobody}").is_err());
    }

    #[test]
    fn only_machines_of_ours_are_own() {
        let arn = |name: &str| format!("arn:aws:states:us-east-1:123456789012:stateMachine:{name}");
        for name in ["slipway-lane", "slipway-lane/Iterate", "slipway-stage:3"] {
            assert!(is_own(&arn(name)), "{name}");
        }
        for name in [
            "shop",
            "slipway-lane-2",
            "shop/slipway-lane",
            "shop:slipway-lane",
            "",
        ] {
            assert!(!is_own(&arn(name)), "{name}");
        }
        assert!(!is_own("slipway-lane"));
    }
}
