//! What the engine of a `slipway local` remembers of its executions.

use aws_sdk_sfn::types::{ExecutionListItem, StateMachineListItem};

use crate::LocalProcess;

/// State entries of an execution, from its history.
///
/// # Panics
/// When its history cannot be read, or the ids of its events do not run 1, 2, 3, ….
pub async fn entered(local: &LocalProcess, arn: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut last = 0;
    let states = local.states();
    let mut pages = states
        .get_execution_history()
        .execution_arn(arn)
        .into_paginator()
        .items()
        .send();
    while let Some(event) = pages.next().await {
        let event = event.expect("an event");
        assert_eq!(
            event.id(),
            last + 1,
            "{arn}: an event is missing or doubled"
        );
        last = event.id();
        names.extend(
            event
                .state_entered_event_details()
                .map(|d| d.name().to_owned()),
        );
    }
    names
}

/// Every execution there is, with its machine.
///
/// # Panics
/// When they cannot be listed.
pub async fn executions(local: &LocalProcess) -> Vec<(StateMachineListItem, ExecutionListItem)> {
    let states = local.states();
    let machines = states.list_state_machines().send().await.expect("machines");
    let mut found = Vec::new();
    for machine in machines.state_machines() {
        let list = states
            .list_executions()
            .state_machine_arn(machine.state_machine_arn())
            .into_paginator()
            .items();
        let mut list = list.send();
        while let Some(execution) = list.next().await {
            found.push((machine.clone(), execution.expect("an execution")));
        }
    }
    found
}
