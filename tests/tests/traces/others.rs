//! Who stories have to do with besides Slipway and AWS: who gets notices, and systems of tickets.

use std::fmt::Write as _;

use async_trait::async_trait;
use secrecy::SecretString;
use slipway_model::id::Scope;
use slipway_model::status::Failure;
use slipway_steps::secrets::SecretSource;
use slipway_world::receiver::Receiver;
use slipway_world::ticket::jira::Jira;
use slipway_world::ticket::service_now::ServiceNow;
use slipway_world::ticket::{PASSWORD, Server};

/// The table of ServiceNow that stories look at, and their row in it.
const CHANGE: (&str, &str) = ("change_request", "c1");

/// A window of changes that any test falls into.
const OPEN: (&str, &str) = ("2020-01-01 00:00:00", "2090-01-01 00:00:00");

/// The state of the change before somebody moves it: to be assessed.
const ASSESS: &str = "-4";

/// All of them, on ports of their own.
pub(crate) struct Others {
    pub(crate) receiver: Receiver,
    jira: Server<Jira>,
    service_now: Server<ServiceNow>,
}

impl Others {
    pub(crate) async fn new() -> Self {
        Self {
            receiver: Receiver::new().await,
            jira: Server::start(Jira::default()).await,
            service_now: Server::start(ServiceNow::with_change(ASSESS, OPEN)).await,
        }
    }

    /// Puts their addresses in the place of their names.
    pub(crate) fn found_in(&self, yaml: &str) -> String {
        let receiver = self.receiver.url("");
        let yaml = yaml.replace("RECEIVER", receiver.trim_end_matches('/'));
        let yaml = yaml.replace("JIRA", &self.jira.url);
        let yaml = yaml.replace("SERVICE_NOW", &self.service_now.url);
        yaml.replace("PASSWORD", PASSWORD)
    }

    /// Whether YAML names one of them.
    pub(crate) fn are_named_in(yaml: &str) -> bool {
        ["RECEIVER", "JIRA", "SERVICE_NOW"]
            .iter()
            .any(|name| yaml.contains(name))
    }

    /// Moves a ticket.
    pub(crate) fn moves(&self, ticket: &str, state: &str) {
        if ticket.starts_with("CHG") {
            let (table, row) = CHANGE;
            self.service_now
                .with(|system| *system.column(table, row, "state") = state.into());
        } else {
            self.jira.with(|system| system.status(ticket, state));
        }
    }

    /// What the systems of tickets have, as far as YAML names them.
    pub(crate) fn tickets(&self, yaml: &str) -> String {
        let mut told = String::new();
        if yaml.contains("JIRA") {
            self.jira.with(|jira| {
                for (key, issue) in &jira.issues {
                    let status = issue["status"]["name"].as_str().unwrap_or("none");
                    let summary = issue["summary"].as_str().unwrap_or("none");
                    let _ = writeln!(told, "Jira: {key} {status}: {summary}");
                }
                for comment in &jira.comments {
                    let _ = writeln!(told, "Jira: comment: {comment}");
                }
            });
        }
        if yaml.contains("SERVICE_NOW") {
            self.service_now.with(|system| {
                let shown = |table: &&String| *table != "change_task";
                for table in system.tables.keys().filter(shown) {
                    let rows = &system.tables[table];
                    for row in rows {
                        let column = |name| row.get(name).and_then(|v| v.as_str()).unwrap_or("");
                        let (number, state) = (column("number"), column("state"));
                        let notes = column("work_notes").lines().nth(1).unwrap_or("");
                        let _ = writeln!(told, "ServiceNow: {table} {number} {state} {notes}");
                    }
                }
            });
        }
        told.lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }
}

/// Has the password of the systems of tickets.
pub(crate) struct Vault;

#[async_trait]
impl SecretSource for Vault {
    async fn value(&self, _scope: &Scope, _reference: &str) -> Result<SecretString, Failure> {
        Ok(SecretString::from(PASSWORD))
    }
}
