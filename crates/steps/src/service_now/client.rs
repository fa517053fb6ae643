//! The calls of ServiceNow's REST API that the steps need.

use reqwest::Method;
use serde_json::{Map, Value};

use super::ticket::Ticket;
use crate::context::StepContext;
use crate::ticket::{Call, Server, Stop};

/// Both values of each column.
const BOTH: (&str, &str) = ("sysparm_display_value", "all");

/// Most change tasks that one step updates.
const MOST_TASKS: &str = "200";

/// A ServiceNow behind a connector.
pub(super) struct ServiceNow(Server);

impl ServiceNow {
    pub(super) async fn of(cx: &mut StepContext<'_>) -> Result<Self, Stop> {
        Server::of(cx, "ServiceNow", "serviceNowUrl")
            .await
            .map(Self)
    }

    /// Where people see a ticket.
    pub(super) fn link(&self, table: &str, sys_id: &str) -> String {
        let uri = format!("/{table}.do?sys_id={sys_id}");
        self.0.link(&["nav_to.do"], &[("uri", &uri)])
    }

    fn read(&self, table: &str, row: &Value) -> Option<Ticket> {
        Ticket::read(row, |sys_id| self.link(table, sys_id))
    }

    /// The ticket of this number.
    pub(super) async fn ticket(
        &self,
        cx: &mut StepContext<'_>,
        table: &str,
        number: &str,
    ) -> Result<Ticket, Stop> {
        let rows = self
            .rows(cx, table, &format!("number={number}"), "1")
            .await?;
        // A query that a table cannot answer is answered with any row.
        let row = rows
            .into_iter()
            .find(|row| row.number.eq_ignore_ascii_case(number));
        row.ok_or_else(|| {
            Stop::over(format!(
                "ServiceNow has no ticket {number} in table {table}, or the user of the connector may not see it."
            ))
        })
    }

    /// The change tasks of a change request, of one type if one is named.
    pub(super) async fn tasks(
        &self,
        cx: &mut StepContext<'_>,
        change: &str,
        kind: Option<&str>,
    ) -> Result<Vec<Ticket>, Stop> {
        let change = self.ticket(cx, "change_request", change).await?;
        let mut query = format!("change_request={}", change.sys_id);
        if let Some(kind) = kind {
            query.push_str(&format!("^change_task_type={kind}"));
        }
        let rows = self.rows(cx, "change_task", &query, MOST_TASKS).await?;
        let of_it = |task: &Ticket| task.value("change_request") == Some(change.sys_id.as_str());
        Ok(rows.into_iter().filter(of_it).collect())
    }

    /// What a step created and marked: `None` when there is nothing yet.
    ///
    /// # Errors
    /// Also when the table has no column for marks.
    pub(super) async fn marked(
        &self,
        cx: &mut StepContext<'_>,
        table: &str,
        marker: &str,
    ) -> Result<Option<Ticket>, Stop> {
        let rows = self
            .rows(cx, table, &format!("correlation_id={marker}"), "1")
            .await?;
        match rows.into_iter().next() {
            None => Ok(None),
            Some(row) if row.value("correlation_id") == Some(marker) => Ok(Some(row)),
            Some(_) => Err(Stop::over(format!(
                "Slipway was interrupted while it created a ticket and cannot know whether ServiceNow did so: table {table} has no column correlation_id, by which it could be found. Look at the table, then run the step again if there is no new ticket."
            ))),
        }
    }

    async fn rows(
        &self,
        cx: &mut StepContext<'_>,
        table: &str,
        query: &str,
        most: &str,
    ) -> Result<Vec<Ticket>, Stop> {
        let path = ["api", "now", "table", table];
        let query = [
            ("sysparm_query", query),
            BOTH,
            ("sysparm_exclude_reference_link", "true"),
            ("sysparm_limit", most),
        ];
        let answer = self.0.call(cx, Call::get(&path, &query)).await?;
        let rows = answer["result"].as_array().into_iter().flatten();
        Ok(rows.filter_map(|row| self.read(table, row)).collect())
    }

    pub(super) async fn create(
        &self,
        cx: &mut StepContext<'_>,
        table: &str,
        fields: Map<String, Value>,
    ) -> Result<Ticket, Stop> {
        let path = ["api", "now", "table", table];
        let call = Call {
            query: &[BOTH],
            ..Call::with(Method::POST, &path, fields.into())
        };
        let answer = self.0.call(cx, call).await?;
        self.read(table, &answer["result"])
            .ok_or_else(|| unreadable("created"))
    }

    pub(super) async fn update(
        &self,
        cx: &mut StepContext<'_>,
        table: &str,
        sys_id: &str,
        fields: Map<String, Value>,
    ) -> Result<Ticket, Stop> {
        let path = ["api", "now", "table", table, sys_id];
        let call = Call {
            query: &[BOTH],
            ..Call::with(Method::PATCH, &path, fields.into())
        };
        let answer = self.0.call(cx, call).await?;
        self.read(table, &answer["result"])
            .ok_or_else(|| unreadable("updated"))
    }

    /// The id of the newest standard change template of this name.
    pub(super) async fn standard_template(
        &self,
        cx: &mut StepContext<'_>,
        name: &str,
    ) -> Result<String, Stop> {
        let path = ["api", "sn_chg_rest", "change", "standard", "template"];
        let query = format!("sys_name={name}^ORDERBYDESCsys_updated_on");
        let query = [("sysparm_query", query.as_str()), ("sysparm_limit", "10")];
        let answer = self.0.call(cx, Call::get(&path, &query)).await?;
        let rows = answer["result"].as_array().into_iter().flatten();
        let mut rows = rows.filter_map(|row| Ticket::read(row, |_| String::new()));
        let is = |row: &Ticket| {
            ["sys_name", "name"]
                .iter()
                .any(|column| row.shown(column) == Some(name))
        };
        let found = rows.find(is).map(|row| row.sys_id);
        found.ok_or_else(|| {
            Stop::over(format!(
                "ServiceNow has no standard change template `{name}`."
            ))
        })
    }

    /// Creates a change request from a standard template.
    pub(super) async fn create_standard(
        &self,
        cx: &mut StepContext<'_>,
        template: &str,
        fields: Map<String, Value>,
    ) -> Result<Ticket, Stop> {
        let path = ["api", "sn_chg_rest", "change", "standard", template];
        let answer = self
            .0
            .call(cx, Call::with(Method::POST, &path, fields.into()))
            .await?;
        self.read("change_request", &answer["result"])
            .ok_or_else(|| unreadable("created"))
    }

    /// Puts a row into a staging table; ServiceNow's answer.
    pub(super) async fn import(
        &self,
        cx: &mut StepContext<'_>,
        table: &str,
        row: Value,
    ) -> Result<Value, Stop> {
        let path = ["api", "now", "import", table];
        self.0.call(cx, Call::with(Method::POST, &path, row)).await
    }
}

fn unreadable(what: &str) -> Stop {
    Stop::over(format!(
        "ServiceNow {what} a ticket and answered with what is none."
    ))
}
