//! Whether a ticket system takes the login of a connector.

use std::time::Duration;

use slipway_clock::Clock;
use slipway_model::status::{ErrorType, Failure};
use slipway_plan::ConnectorPlan;

use super::server::{Call, Server};
use super::stop::Stop;
use crate::secrets::Secrets;

/// Asks the ticket system of a connector something that only a user who is known gets an answer to: Jira who that user is,
/// ServiceNow for one incident, which is the least that a user of the connector must be able to see (docs:
/// platform/connectors/ticketing-systems). `None` where the connector is of no ticket system.
pub async fn test(
    connector: &ConnectorPlan,
    time: Duration,
    clock: &Clock,
    secrets: &mut Secrets<'_>,
) -> Option<Result<(), Failure>> {
    let one = [("sysparm_limit", "1"), ("sysparm_fields", "number")];
    let (system, field, path, query): (_, _, &[&str], &[(&str, &str)]) =
        match connector.kind.as_str() {
            "Jira" => ("Jira", "jiraUrl", &["rest", "api", "2", "myself"], &[]),
            "ServiceNow" => {
                let table = &["api", "now", "table", "incident"];
                ("ServiceNow", "serviceNowUrl", table, &one)
            }
            _ => return None,
        };
    let asked = async {
        let place = (connector, &connector.spec);
        let server = Server::open(system, field, place, (clock.now(), time), secrets).await?;
        let call = Call::get(path, query);
        server.ask(call, (clock.now(), time), secrets).await
    };
    let name = &connector.reference;
    let (error, why) = match asked.await {
        Ok(answer) if answer.is_object() => return Some(Ok(())),
        Ok(_) => (
            ErrorType::Unknown,
            format!("{system} answered what it never answers. Is the address that of {system}?"),
        ),
        Err(Stop::Missing(failure)) => (
            failure.error,
            format!("{} Is the address that of {system}?", failure.message),
        ),
        Err(Stop::Later { failure, .. }) => (
            failure.error,
            format!("{} Check the address and the network.", failure.message),
        ),
        Err(Stop::Odd(failure) | Stop::Over(failure)) => (failure.error, failure.message),
        Err(Stop::Wait(_)) => (
            ErrorType::Timeout,
            format!("{system} wants to be asked later; test the connection again."),
        ),
    };
    Some(Err(Failure {
        error,
        message: format!("Cannot test connector {name}: {why}"),
        left_behind: None,
    }))
}
