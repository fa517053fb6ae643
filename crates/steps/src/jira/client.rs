//! The calls of Jira's REST API that the steps need.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::field::Meta;
use super::issue::Issue;
use crate::context::StepContext;
use crate::ticket::{Call, Server, Stop, UNIT, is_name};

/// All fields but those that grow without end.
const FIELDS: &str = "*all,-comment,-attachment,-worklog";

/// Entries of one page, and most pages that are read.
const PAGE: usize = 200;
const MOST_PAGES: usize = 10;

/// A Jira behind a connector.
pub(super) struct Jira(Server);

/// A way out of a status.
pub(super) struct Transition {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) to: String,
}

impl Jira {
    pub(super) async fn of(cx: &mut StepContext<'_>) -> Result<Self, Stop> {
        Server::of(cx, "Jira", "jiraUrl").await.map(Self)
    }

    /// Where people see an issue.
    pub(super) fn link(&self, key: &str) -> String {
        self.0.link(&["browse", key], &[])
    }

    pub(super) async fn issue(&self, cx: &mut StepContext<'_>, key: &str) -> Result<Issue, Stop> {
        let query = [("fields", FIELDS), ("expand", "names")];
        let answer = self.get(cx, &["issue", key], &query).await?;
        Issue::read(&answer, |key| self.link(key)).ok_or_else(|| {
            Stop::over(format!(
                "Jira answered with an issue {key} that has no key."
            ))
        })
    }

    /// Creates an issue; its key.
    pub(super) async fn create(
        &self,
        cx: &mut StepContext<'_>,
        body: Value,
    ) -> Result<String, Stop> {
        let answer = self.send(cx, Method::POST, &["issue"], body).await?;
        let key = answer["key"].as_str().filter(|key| is_name(key));
        key.map(str::to_owned)
            .ok_or_else(|| Stop::over("Jira created an issue and did not tell its key."))
    }

    pub(super) async fn edit(
        &self,
        cx: &mut StepContext<'_>,
        key: &str,
        fields: Map<String, Value>,
    ) -> Result<(), Stop> {
        let body = json!({"fields": fields});
        self.send(cx, Method::PUT, &["issue", key], body)
            .await
            .map(drop)
    }

    pub(super) async fn comment(
        &self,
        cx: &mut StepContext<'_>,
        key: &str,
        text: &str,
    ) -> Result<(), Stop> {
        let path = ["issue", key, "comment"];
        self.send(cx, Method::POST, &path, json!({"body": text}))
            .await
            .map(drop)
    }

    /// Texts of the newest comments, with secrets masked.
    pub(super) async fn comments(
        &self,
        cx: &mut StepContext<'_>,
        key: &str,
    ) -> Result<Vec<String>, Stop> {
        let query = [("orderBy", "-created"), ("maxResults", "50")];
        let answer = self.get(cx, &["issue", key, "comment"], &query).await?;
        let comments = answer["comments"].as_array().into_iter().flatten();
        Ok(comments
            .filter_map(|one| Some(one["body"].as_str()?.to_owned()))
            .collect())
    }

    pub(super) async fn transitions(
        &self,
        cx: &mut StepContext<'_>,
        key: &str,
    ) -> Result<Vec<Transition>, Stop> {
        let answer = self.get(cx, &["issue", key, "transitions"], &[]).await?;
        let list = answer["transitions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = list.map(|one| Transition {
            id: text(&one["id"]),
            name: text(&one["name"]),
            to: text(&one["to"]["name"]),
        });
        Ok(list.collect())
    }

    pub(super) async fn transit(
        &self,
        cx: &mut StepContext<'_>,
        key: &str,
        id: &str,
    ) -> Result<(), Stop> {
        let body = json!({"transition": {"id": id}});
        let path = ["issue", key, "transitions"];
        self.send(cx, Method::POST, &path, body).await.map(drop)
    }

    /// Fields of an issue that can be set, by id.
    pub(super) async fn editable(
        &self,
        cx: &mut StepContext<'_>,
        key: &str,
    ) -> Result<BTreeMap<String, Meta>, Stop> {
        let answer = self.get(cx, &["issue", key, "editmeta"], &[]).await?;
        Ok(Meta::of_map(&answer["fields"]))
    }

    /// Fields that a new issue can have, by id. Servers before Jira 8.4 know another address only.
    pub(super) async fn creatable(
        &self,
        cx: &mut StepContext<'_>,
        project: &str,
        issue_type: &str,
    ) -> Result<BTreeMap<String, Meta>, Stop> {
        let path = ["issue", "createmeta", project, "issuetypes"];
        let types = match self.pages(cx, &path, "issueTypes").await {
            Err(Stop::Missing(_)) => return self.creatable_of_old(cx, project, issue_type).await,
            other => other?,
        };
        let id = type_id(&types, project, issue_type)?;
        let path = ["issue", "createmeta", project, "issuetypes", &id];
        let fields = self.pages(cx, &path, "fields").await?;
        Ok(Meta::of_list(&fields))
    }

    async fn creatable_of_old(
        &self,
        cx: &mut StepContext<'_>,
        project: &str,
        issue_type: &str,
    ) -> Result<BTreeMap<String, Meta>, Stop> {
        let query = [
            ("projectKeys", project),
            ("issuetypeNames", issue_type),
            ("expand", "projects.issuetypes.fields"),
        ];
        let answer = self.get(cx, &["issue", "createmeta"], &query).await?;
        let fields = &answer["projects"][0]["issuetypes"][0]["fields"];
        if fields.is_null() {
            return Err(Stop::over(format!(
                "Jira has no project {project} with issues of type {issue_type}, or the user of the connector may not create issues there."
            )));
        }
        Ok(Meta::of_map(fields))
    }

    /// All entries of a list that comes in pages: below `name` in Jira Cloud, below `values` in Data Center.
    async fn pages(
        &self,
        cx: &mut StepContext<'_>,
        path: &[&str],
        name: &str,
    ) -> Result<Vec<Value>, Stop> {
        let mut all = Vec::new();
        for _ in 0..MOST_PAGES {
            let (start, most) = (all.len().to_string(), PAGE.to_string());
            let query = [("startAt", start.as_str()), ("maxResults", most.as_str())];
            let answer = self.get(cx, path, &query).await?;
            let page = answer[name].as_array().or(answer["values"].as_array());
            let page = page.cloned().unwrap_or_default();
            let total = answer["total"]
                .as_u64()
                .and_then(|total| usize::try_from(total).ok());
            let last = answer["isLast"] == Value::Bool(true) || page.is_empty();
            all.extend(page);
            if last || total.is_some_and(|total| all.len() >= total) {
                break;
            }
        }
        Ok(all)
    }

    /// Keys of the issues with a label. Jira Cloud has another address for it than Data Center.
    pub(super) async fn labelled(
        &self,
        cx: &mut StepContext<'_>,
        label: &str,
    ) -> Result<Vec<String>, Stop> {
        let jql = format!("labels = \"{label}\"");
        let query = [
            ("jql", jql.as_str()),
            ("fields", "summary"),
            ("maxResults", "2"),
        ];
        let answer = match self.get(cx, &["search", "jql"], &query).await {
            Err(Stop::Missing(_)) => self.get(cx, &["search"], &query).await?,
            other => other?,
        };
        let issues = answer["issues"].as_array().into_iter().flatten();
        Ok(issues
            .filter_map(|issue| issue["key"].as_str())
            .filter(|key| is_name(key))
            .map(str::to_owned)
            .collect())
    }

    /// The person with this name, address or id, in the form that fields want. Jira Cloud searches by `query`, Data
    /// Center by `username`.
    pub(super) async fn person(&self, cx: &mut StepContext<'_>, who: &str) -> Result<Value, Stop> {
        let mut found = Value::Null;
        for parameter in ["query", "username"] {
            match self
                .get(
                    cx,
                    &["user", "search"],
                    &[(parameter, who), ("maxResults", "10")],
                )
                .await
            {
                Ok(answer) if answer.as_array().is_some_and(|people| !people.is_empty()) => {
                    found = answer;
                    break;
                }
                Ok(_) => {}
                Err(later @ Stop::Later { .. }) => return Err(later),
                Err(Stop::Over(failure) | Stop::Odd(failure) | Stop::Missing(failure)) => {
                    cx.warn(UNIT, failure.message);
                }
                Err(Stop::Wait(_)) => {}
            }
        }
        let people = found.as_array().cloned().unwrap_or_default();
        let known = ["emailAddress", "name", "displayName", "accountId", "key"];
        let is = |person: &&Value| {
            known.iter().any(|field| {
                person[*field]
                    .as_str()
                    .is_some_and(|own| own.eq_ignore_ascii_case(who))
            })
        };
        let exact: Vec<&Value> = people.iter().filter(is).collect();
        let person = match (exact.as_slice(), people.as_slice()) {
            ([one], _) => *one,
            // Jira hides addresses; the search matched it none the less.
            ([], [one]) => one,
            ([], []) => return Err(Stop::over(format!("Jira knows no user {who}."))),
            _ => {
                return Err(Stop::over(format!(
                    "Jira knows several users {who}; give the address or the id of one."
                )));
            }
        };
        Ok(match person["accountId"].as_str() {
            Some(id) => json!({"accountId": id}),
            None => json!({"name": person["name"]}),
        })
    }

    async fn get(
        &self,
        cx: &mut StepContext<'_>,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Value, Stop> {
        let path = below(path);
        self.0.call(cx, Call::get(&path, query)).await
    }

    async fn send(
        &self,
        cx: &mut StepContext<'_>,
        method: Method,
        path: &[&str],
        body: Value,
    ) -> Result<Value, Stop> {
        let path = below(path);
        self.0.call(cx, Call::with(method, &path, body)).await
    }
}

fn below<'p>(path: &[&'p str]) -> Vec<&'p str> {
    let mut all = vec!["rest", "api", "2"];
    all.extend(path);
    all
}

/// The id of an issue type by its name.
fn type_id(types: &[Value], project: &str, wanted: &str) -> Result<String, Stop> {
    let named = |one: &&Value| {
        one["name"]
            .as_str()
            .is_some_and(|name| name.eq_ignore_ascii_case(wanted.trim()))
    };
    let found = types.iter().find(named).and_then(|one| one["id"].as_str());
    found.map(str::to_owned).ok_or_else(|| {
        let names: Vec<&str> = types
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        Stop::over(format!(
            "Project {project} of Jira has no issue type {wanted}; it has {}.",
            if names.is_empty() {
                "none that the connector's user may create".to_owned()
            } else {
                names.join(", ")
            }
        ))
    })
}
