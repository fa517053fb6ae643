//! ServiceNow, as its Table API, Import Set API and Change Management API behave: rows have both values of each
//! column, journals grow, a query about a column that a table lacks is answered with any row.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Answer, Asked, System};

/// A row: columns and their stored values.
pub type Row = Map<String, Value>;

/// One ServiceNow.
#[derive(Default)]
pub struct ServiceNow {
    /// Rows by the name of their table.
    pub tables: BTreeMap<String, Vec<Row>>,
}

/// A row with these columns.
pub fn row(columns: &[(&str, &str)]) -> Row {
    columns
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).into()))
        .collect()
}

const COLUMNS: [&str; 12] = [
    "sys_id",
    "number",
    "state",
    "short_description",
    "description",
    "correlation_id",
    "work_notes",
    "comments",
    "start_date",
    "end_date",
    "change_request",
    "change_task_type",
];

fn columns(table: &str) -> Vec<&'static str> {
    // A table of its own, that does not extend `task`.
    let bare = table == "u_bare";
    COLUMNS
        .into_iter()
        .filter(|name| !(bare && *name == "correlation_id"))
        .collect()
}

fn shown(table: &str, row: &Row) -> Value {
    let columns = columns(table).into_iter().map(|name| {
        let value = row.get(name).and_then(Value::as_str).unwrap_or_default();
        let (stored, display) = match (name, value) {
            ("state", "-1") => (value, "Implement".to_owned()),
            ("state", "-4") => (value, "Canceled".to_owned()),
            ("state", "-2") => (value, "Scheduled".to_owned()),
            ("work_notes" | "comments", text) => ("", text.to_owned()),
            _ => (value, value.to_owned()),
        };
        (
            name.to_owned(),
            json!({"value": stored, "display_value": display}),
        )
    });
    Value::Object(columns.collect())
}

fn error(code: u16, message: &str, detail: &str) -> Answer {
    (
        code,
        json!({"error": {"message": message, "detail": detail}, "status": "failure"}),
    )
}

impl ServiceNow {
    /// A change request.
    pub fn with_change(state: &str, window: (&str, &str)) -> Self {
        let change = row(&[
            ("sys_id", "c1"),
            ("number", "CHG0030001"),
            ("state", state),
            ("start_date", window.0),
            ("end_date", window.1),
        ]);
        let task = |id: &str, number: &str, kind: &str| {
            row(&[
                ("sys_id", id),
                ("number", number),
                ("change_request", "c1"),
                ("change_task_type", kind),
            ])
        };
        let tasks = vec![
            task("t1", "CTASK1", "planning"),
            task("t2", "CTASK2", "testing"),
            row(&[
                ("sys_id", "t3"),
                ("number", "CTASK3"),
                ("change_request", "c9"),
            ]),
        ];
        Self {
            tables: BTreeMap::from([
                ("change_request".to_owned(), vec![change]),
                ("change_task".to_owned(), tasks),
            ]),
        }
    }

    /// A column of a row, to look at or to change.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn column(&mut self, table: &str, sys_id: &str, column: &str) -> &mut Value {
        let rows = self.tables.entry(table.to_owned()).or_default();
        let row = rows
            .iter_mut()
            .find(|row| row["sys_id"] == sys_id)
            .expect("the row");
        row.entry(column).or_insert(Value::from(""))
    }

    fn query(&mut self, table: &str, asked: &Asked) -> Answer {
        assert_eq!(asked.query("sysparm_display_value"), "all");
        let known = columns(table);
        let conditions: Vec<(&str, &str)> = asked
            .query("sysparm_query")
            .split('^')
            .filter_map(|one| one.split_once('='))
            .collect();
        let fits = |row: &&Row| {
            conditions
                .iter()
                .filter(|(name, _)| known.contains(name))
                .all(|(name, value)| row.get(*name).and_then(Value::as_str) == Some(*value))
        };
        let most: usize = asked.query("sysparm_limit").parse().expect("a limit");
        let rows = self
            .tables
            .get(table)
            .into_iter()
            .flatten()
            .filter(fits)
            .take(most);
        (
            200,
            json!({"result": rows.map(|row| shown(table, row)).collect::<Vec<_>>()}),
        )
    }

    fn insert(&mut self, table: &str, body: &Value) -> Answer {
        let Some(given) = body.as_object() else {
            return error(
                400,
                "Exception while reading request",
                "The payload is not valid JSON.",
            );
        };
        let rows = self.tables.entry(table.to_owned()).or_default();
        let mut row = row(&[
            ("sys_id", &format!("id{}", rows.len() + 1)),
            ("number", &format!("NUM{:07}", rows.len() + 1)),
            ("state", "-2"),
        ]);
        // What a table lacks is left out without a word.
        row.extend(
            given
                .iter()
                .filter(|(name, _)| columns(table).contains(&name.as_str()))
                .map(|(n, v)| (n.clone(), v.clone())),
        );
        rows.push(row.clone());
        (201, json!({"result": shown(table, &row)}))
    }

    fn patch(&mut self, table: &str, sys_id: &str, body: &Value) -> Answer {
        let rows = self.tables.entry(table.to_owned()).or_default();
        let Some(row) = rows.iter_mut().find(|row| row["sys_id"] == sys_id) else {
            return error(
                404,
                "No Record found",
                "Record doesn't exist or ACL restricts the record retrieval",
            );
        };
        for (name, value) in body.as_object().expect("fields") {
            let value = value.as_str().expect("a text");
            let old = row.get(name).and_then(Value::as_str).unwrap_or_default();
            let new = match name.as_str() {
                "work_notes" | "comments" => {
                    format!("2026-01-01 10:00:00 - Sam (Work notes)\n{value}\n\n{old}")
                }
                _ => value.to_owned(),
            };
            row.insert(name.clone(), new.into());
        }
        (200, json!({"result": shown(table, row)}))
    }
}

impl System for ServiceNow {
    fn answer(&mut self, asked: &Asked) -> Answer {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        match (asked.method.as_str(), path.as_slice()) {
            (_, ["api", "now", "table", "u_gone", ..]) => error(400, "Invalid table u_gone", ""),
            ("GET", ["api", "now", "table", table]) => self.query(table, asked),
            ("POST", ["api", "now", "table", table]) => self.insert(table, &asked.body),
            ("PATCH", ["api", "now", "table", table, id]) => self.patch(table, id, &asked.body),
            ("GET", ["api", "sn_chg_rest", "change", "standard", "template"]) => {
                let template = |id: &str, name: &str| json!({"sys_id": {"value": id, "display_value": id}, "sys_name": {"value": name, "display_value": name}});
                (
                    200,
                    json!({"result": [template("s1", "Reboot all"), template("s2", "Reboot")]}),
                )
            }
            ("POST", ["api", "sn_chg_rest", "change", "standard", "s2"]) => {
                self.insert("change_request", &asked.body)
            }
            ("POST", ["api", "now", "import", table]) => {
                self.insert(table, &asked.body);
                let status = if asked.body["u_bad"].is_null() {
                    "inserted"
                } else {
                    "error"
                };
                (
                    201,
                    json!({"import_set": "ISET0010001", "staging_table": table, "result": [{"transform_map": "To incident",
                    "table": "incident", "display_name": "number", "display_value": "INC0010002",
                    "record_link": "https://now/api/now/table/incident/1", "status": status, "sys_id": "1", "error_message": "no such caller"}]}),
                )
            }
            _ => error(400, "Requested URI does not represent any resource", ""),
        }
    }

    fn refuse(&self) -> Answer {
        error(
            401,
            "User Not Authenticated",
            "Required to provide Auth information",
        )
    }
}
