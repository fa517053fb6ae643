//! Jira, as its REST API version 2 behaves: project `SHOP` with issues of type `Task`, and of type `Bare`, which have no
//! labels; a workflow from `To Do` over `In Review` to `Done`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Answer, Asked, System};

/// Entries that it gives at a time, however many are asked for.
const PAGE: usize = 3;

/// One Jira.
#[derive(Default)]
pub struct Jira {
    /// Fields of issues, by key.
    pub issues: BTreeMap<String, Value>,
    /// Comments of all issues, as they came.
    pub comments: Vec<String>,
    /// How many searches find nothing new yet.
    pub lag: u32,
    /// Whether it is a Data Center: other addresses for searching.
    pub data_center: bool,
}

fn field(id: &str, name: &str, schema: Value) -> Value {
    json!({"fieldId": id, "key": id, "name": name, "required": false, "schema": schema})
}

fn fields(issue_type: &str) -> Vec<Value> {
    let mut fields = vec![
        field(
            "summary",
            "Summary",
            json!({"type": "string", "system": "summary"}),
        ),
        field(
            "description",
            "Description",
            json!({"type": "string", "system": "description"}),
        ),
        field(
            "reporter",
            "Reporter",
            json!({"type": "user", "system": "reporter"}),
        ),
        field(
            "customfield_10001",
            "Customer Name",
            json!({"type": "string"}),
        ),
        field(
            "customfield_10002",
            "Story Points",
            json!({"type": "number"}),
        ),
        field("customfield_10003", "Go Live", json!({"type": "datetime"})),
    ];
    let mut priority = field("priority", "Priority", json!({"type": "priority"}));
    priority["allowedValues"] = json!([{"id": "1", "name": "High"}, {"id": "2", "name": "Low"}]);
    fields.push(priority);
    if issue_type != "Bare" {
        fields.push(field(
            "labels",
            "Labels",
            json!({"type": "array", "items": "string"}),
        ));
    }
    fields
}

fn refusal(code: u16, messages: &[&str], errors: Value) -> Answer {
    (code, json!({"errorMessages": messages, "errors": errors}))
}

fn ways(status: &str) -> &'static [(&'static str, &'static str, &'static str)] {
    match status {
        "To Do" => &[("11", "Start review", "In Review")],
        "In Review" => &[("21", "Accept", "Done"), ("22", "Back", "To Do")],
        _ => &[],
    }
}

impl Jira {
    /// An issue that is there already.
    pub fn with(key: &str, status: &str) -> Self {
        let mut jira = Self::default();
        let mut issue = Map::new();
        issue.insert("summary".into(), "A release".into());
        issue.insert("labels".into(), json!([]));
        jira.put(key, issue);
        jira.status(key, status);
        jira
    }

    /// Moves an issue, whatever its workflow says.
    ///
    /// # Panics
    /// When there is no such issue.
    pub fn status(&mut self, key: &str, status: &str) {
        self.issues.get_mut(key).expect("the issue")["status"] = json!({"name": status, "id": "1"});
    }

    fn put(&mut self, key: &str, mut issue: Map<String, Value>) {
        issue.entry("status").or_insert(json!({"name": "To Do"}));
        issue.insert("project".into(), json!({"key": "SHOP", "name": "Shop"}));
        self.issues.insert(key.to_owned(), issue.into());
    }

    fn page(asked: &Asked, name: &str, all: &[Value]) -> Answer {
        let start: usize = asked.query("startAt").parse().expect("a number");
        let page: Vec<_> = all.iter().skip(start).take(PAGE).collect();
        (
            200,
            json!({"startAt": start, "maxResults": PAGE, "total": all.len(), name: page}),
        )
    }

    fn create(&mut self, body: &Value) -> Answer {
        let Some(given) = body["fields"].as_object() else {
            return refusal(400, &["no fields"], json!({}));
        };
        let issue_type = given["issuetype"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let known = fields(&issue_type);
        let mut errors = Map::new();
        for name in given
            .keys()
            .filter(|name| !["project", "issuetype"].contains(&name.as_str()))
        {
            if !known.iter().any(|field| field["fieldId"] == name.as_str()) {
                errors.insert(name.clone(), format!("Field '{name}' cannot be set. It is not on the appropriate screen, or unknown.").into());
            }
        }
        if given
            .get("summary")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
        {
            errors.insert(
                "summary".into(),
                "You must specify a summary of the issue.".into(),
            );
        }
        if !errors.is_empty() {
            return refusal(400, &[], errors.into());
        }
        let comments = body["update"]["comment"].as_array().into_iter().flatten();
        self.comments
            .extend(comments.map(|one| one["add"]["body"].as_str().expect("a text").to_owned()));
        let key = format!("SHOP-{}", self.issues.len() + 1);
        self.put(&key, given.clone());
        (
            201,
            json!({"id": "10000", "key": key, "self": "http://jira/rest/api/2/issue/10000"}),
        )
    }

    fn search(&mut self, asked: &Asked) -> Answer {
        let label = asked
            .query("jql")
            .strip_prefix("labels = \"")
            .and_then(|rest| rest.strip_suffix('"'));
        let Some(label) = label else {
            return refusal(400, &["Error in the JQL Query"], json!({}));
        };
        if self.lag > 0 {
            self.lag -= 1;
            return (200, json!({"issues": []}));
        }
        let has = |issue: &Value| {
            issue["labels"]
                .as_array()
                .is_some_and(|labels| labels.contains(&label.into()))
        };
        let found: Vec<_> = self
            .issues
            .iter()
            .filter(|(_, issue)| has(issue))
            .map(|(key, _)| json!({"key": key}))
            .collect();
        (200, json!({"issues": found}))
    }

    fn of_issue(&mut self, asked: &Asked, key: &str, rest: &[&str]) -> Answer {
        let Some(issue) = self.issues.get_mut(key) else {
            return refusal(
                404,
                &["Issue does not exist or you do not have permission to see it."],
                json!({}),
            );
        };
        let status = issue["status"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match (asked.method.as_str(), rest) {
            ("GET", []) => {
                let mut names: Map<String, Value> = fields("Task")
                    .iter()
                    .map(|f| {
                        (
                            f["fieldId"].as_str().unwrap_or_default().to_owned(),
                            f["name"].clone(),
                        )
                    })
                    .collect();
                names.insert("status".into(), "Status".into());
                names.insert("issuetype".into(), "Issue Type".into());
                assert_eq!(asked.query("expand"), "names");
                (
                    200,
                    json!({"id": "10000", "key": key, "fields": issue, "names": names}),
                )
            }
            ("GET", ["editmeta"]) => {
                let map: Map<String, Value> = fields("Task")
                    .into_iter()
                    .map(|f| (f["fieldId"].as_str().unwrap_or_default().to_owned(), f))
                    .collect();
                (200, json!({"fields": map}))
            }
            ("PUT", []) => {
                for (name, value) in asked.body["fields"].as_object().expect("fields") {
                    issue[name] = value.clone();
                }
                (204, Value::Null)
            }
            ("GET", ["transitions"]) => {
                let ways: Vec<_> = ways(&status)
                    .iter()
                    .map(|(id, name, to)| json!({"id": id, "name": name, "to": {"name": to}}))
                    .collect();
                (200, json!({"expand": "transitions", "transitions": ways}))
            }
            ("POST", ["transitions"]) => {
                let wanted = asked.body["transition"]["id"].as_str().expect("an id");
                match ways(&status).iter().find(|(id, _, _)| *id == wanted) {
                    Some((_, _, to)) => {
                        issue["status"] = json!({"name": to});
                        (204, Value::Null)
                    }
                    None => refusal(
                        400,
                        &["It seems that you have tried to perform an illegal workflow operation."],
                        json!({}),
                    ),
                }
            }
            ("POST", ["comment"]) => {
                self.comments
                    .push(asked.body["body"].as_str().expect("a text").to_owned());
                (201, json!({"id": "1"}))
            }
            ("GET", ["comment"]) => {
                let comments: Vec<_> = self
                    .comments
                    .iter()
                    .map(|text| json!({"body": text}))
                    .collect();
                (200, json!({"comments": comments, "total": comments.len()}))
            }
            _ => (405, Value::Null),
        }
    }
}

impl System for Jira {
    fn answer(&mut self, asked: &Asked) -> Answer {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        let ["rest", "api", "2", path @ ..] = path.as_slice() else {
            return (404, Value::Null);
        };
        let types = [
            json!({"id": "10", "name": "Task"}),
            json!({"id": "11", "name": "Bare"}),
        ];
        match (asked.method.as_str(), path) {
            ("GET", ["issue", "createmeta", "SHOP", "issuetypes"]) => Self::page(
                asked,
                if self.data_center {
                    "values"
                } else {
                    "issueTypes"
                },
                &types,
            ),
            ("GET", ["issue", "createmeta", "SHOP", "issuetypes", id]) => {
                let issue_type = if *id == "11" { "Bare" } else { "Task" };
                Self::page(
                    asked,
                    if self.data_center { "values" } else { "fields" },
                    &fields(issue_type),
                )
            }
            ("GET", ["issue", "createmeta", ..]) => refusal(404, &["Project not found"], json!({})),
            ("POST", ["issue"]) => self.create(&asked.body),
            ("GET", ["search", "jql"]) if self.data_center => (404, Value::Null),
            ("GET", ["search"]) if !self.data_center => {
                refusal(410, &["The requested API has been removed."], json!({}))
            }
            ("GET", ["search", ..]) => self.search(asked),
            ("GET", ["user", "search"]) if asked.query("query") == "sam@acme.example" => (
                200,
                json!([{"accountId": "5b10", "displayName": "Sam", "active": true}]),
            ),
            ("GET", ["user", "search"]) => (200, json!([])),
            (_, ["issue", key, rest @ ..]) => {
                let key = (*key).to_owned();
                self.of_issue(asked, &key, rest)
            }
            _ => (404, Value::Null),
        }
    }

    fn refuse(&self) -> Answer {
        refusal(
            401,
            &["Client must be authenticated to access this resource."],
            json!({}),
        )
    }
}
