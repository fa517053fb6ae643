//! What exists in the account: as JSON (`/_sandbox/resources`) and as a page for people (`GET /`).

use std::fmt::Write as _;

use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Response};
use axum::{Json, Router};
use http::header;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::control::failed;
use crate::{Sandbox, StoreError};

/// Something that exists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resource {
    /// `cluster`, `service`, `target-group`, ….
    pub kind: &'static str,
    /// Its key in the account: an ARN, or region and name.
    pub id: String,
    /// What the account keeps of it, in its own form, which is not AWS's and may change.
    pub kept: Value,
}

/// Calls that the page shows.
const CALLS: usize = 50;

/// No scripts, nothing from elsewhere: names of resources come from whoever made them.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "body{font:14px system-ui;margin:2em;max-width:70em}table{border-collapse:collapse;width:100%}\
    td,th{text-align:left;padding:.3em .6em;border-bottom:1px solid #ddd;vertical-align:top}\
    pre{white-space:pre-wrap;word-break:break-all;margin:0}.no{color:#a00}";

pub(crate) fn routes() -> Router<Sandbox> {
    Router::new().route("/_sandbox/resources", axum::routing::get(resources))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    kind: Option<String>,
}

async fn resources(State(sandbox): State<Sandbox>, Query(wanted): Query<Wanted>) -> Response {
    match sandbox.resources() {
        Ok(mut all) => {
            all.retain(|one| wanted.kind.as_deref().is_none_or(|kind| kind == one.kind));
            Json(all).into_response()
        }
        Err(error) => failed(&error),
    }
}

/// The page: what exists, and the calls that were made last.
pub(crate) async fn page(State(sandbox): State<Sandbox>) -> Response {
    match html(&sandbox) {
        Ok(html) => ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(html)).into_response(),
        Err(error) => failed(&error),
    }
}

fn html(sandbox: &Sandbox) -> Result<String, StoreError> {
    let all = sandbox.resources()?;
    let account = escaped(&sandbox.config().account);
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Sandbox {account}</title><style>{STYLE}</style>\
         <h1>Sandbox account {account}</h1><p>{} resources at {:.0}. As JSON: \
         <a href=/_sandbox/resources>/_sandbox/resources</a>, <a href=/_sandbox/calls>/_sandbox/calls</a>.</p>",
        all.len(),
        sandbox.clock().now()
    );
    let mut kind = "";
    for one in &all {
        if one.kind != kind {
            let many = all.iter().filter(|other| other.kind == one.kind).count();
            let end = if kind.is_empty() { "" } else { "</table>" };
            let _ = write!(page, "{end}<h2>{} ({many})</h2><table>", one.kind);
            kind = one.kind;
        }
        let kept = serde_json::to_string_pretty(&one.kept).unwrap_or_default();
        let _ = write!(
            page,
            "<tr><td>{}<td><details><summary>kept</summary><pre>{}</pre></details>",
            escaped(&one.id),
            escaped(&kept)
        );
    }
    if !kind.is_empty() {
        page.push_str("</table>");
    }
    page.push_str("<h2>Last calls</h2><table><tr><th>when<th>call<th>by<th>answer");
    for call in sandbox.calls().iter().rev().take(CALLS) {
        let (class, answer) = match &call.error {
            Some(error) => ("no", escaped(error)),
            None => ("", "done".to_owned()),
        };
        let _ = write!(
            page,
            "<tr><td>{:.0}<td>{} {}<td>{}<td class=\"{class}\">{answer}",
            call.at,
            call.service,
            escaped(&call.operation),
            escaped(&call.principal)
        );
    }
    page.push_str("</table></html>");
    Ok(page)
}

/// A text that HTML shows as it is.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

impl Sandbox {
    /// What exists, by kind and key. Sessions are left out: their keys are as good as passwords here.
    ///
    /// # Errors
    /// When the account cannot be brought to the present because its data file fails.
    pub fn resources(&self) -> Result<Vec<Resource>, StoreError> {
        self.look(|account| {
            let mut all = Vec::new();
            account.show(&mut all);
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escaped("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
    }
}
