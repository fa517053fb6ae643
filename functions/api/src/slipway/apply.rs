//! `POST /slipway/api/apply`: files of Harness YAML become entities.
//!
//! Request: `{"files":[{"file":"name.yaml","yaml":"…one or more documents…"}]}`; organization and project
//! by query, for documents that do not name their own.
//!
//! Answer: `data` has one row per document, in the order in which they were applied:
//! `{"kind","identifier","result","file","errors":[{"message","line","column","path","rendered"}],"warnings":[…]}`
//! with `result` one of `created`, `updated`, `unchanged`, `refused`. What others refer to comes first,
//! whatever the order of the files; a refused document does not keep the others from being applied.

use std::collections::HashMap;

use serde_json::{Value, json};
use slipway_model::Diagnostic;
use slipway_model::entity::{self as language, Kind, Parsed};
use slipway_model::id::{OrgId, ProjectId, Scope};

use crate::Deps;
use crate::auth::Caller;
use crate::body::LargeBody;
use crate::call::Call;
use crate::entity::{self, Change, Draft, Saved};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::git::{self, entity as in_git};
use crate::query::{self, Query};
use crate::{connector, file_store, freeze, overrides, secret, template, trigger, variable};

/// Files of one request.
const MOST_FILES: usize = 2_000;

/// Documents of one request.
const MOST_DOCUMENTS: usize = 5_000;

/// Folders inside of one another that are put in order.
const MOST_FOLDERS: usize = 100;

/// Kinds in the order in which they are applied: what others refer to first.
const ORDER: &[Kind] = &[
    Kind::Organization,
    Kind::Project,
    Kind::Secret,
    Kind::Variable,
    Kind::File,
    Kind::UserGroup,
    Kind::Template,
    Kind::Connector,
    Kind::Service,
    Kind::Environment,
    Kind::EnvironmentGroup,
    Kind::Infrastructure,
    Kind::ServiceOverrides,
    Kind::Overrides,
    Kind::Pipeline,
    Kind::InputSet,
    Kind::OverlayInputSet,
    Kind::Trigger,
    Kind::Freeze,
];

/// One document of a file.
struct Document<'a> {
    file: &'a str,
    /// As it stands in the file.
    text: &'a str,
    parsed: Result<Parsed, Vec<Diagnostic>>,
    /// The whole file, to show the lines that are wrong.
    whole: &'a str,
}

pub(super) async fn apply(Call(deps, caller, query): Call, body: LargeBody) -> ApiResult {
    let body = body.into_inner().object()?;
    let files = files(&body)?;
    let mut documents = Vec::new();
    for (file, yaml) in files {
        for (line, text) in split(yaml) {
            if documents.len() == MOST_DOCUMENTS {
                let message = format!("More than {MOST_DOCUMENTS} documents: apply fewer at once");
                return Err(ApiError::invalid(message));
            }
            documents.push(read(file, yaml, line, text));
        }
    }
    sort(&mut documents);
    let mut rows = Vec::with_capacity(documents.len());
    for document in documents {
        rows.push(put(&deps, &caller, &query, document).await?);
    }
    Ok(success(Value::Array(rows)))
}

/// Puts what others refer to before them; of the file store a folder before what is in it.
fn sort(documents: &mut [Document<'_>]) {
    let node = |document: &Document<'_>| -> Option<(String, String)> {
        let parsed = document.parsed.as_ref().ok()?;
        let parent = parsed.body().get_text("parentIdentifier")?;
        (parsed.head.kind == Kind::File)
            .then(|| (parsed.head.identifier.to_string(), parent.to_owned()))
    };
    let folders: HashMap<String, String> = documents.iter().filter_map(node).collect();
    documents.sort_by_cached_key(|document| match &document.parsed {
        Ok(parsed) => {
            let kind = ORDER.iter().position(|kind| *kind == parsed.head.kind);
            let mut at = parsed.head.identifier.as_str();
            let mut depth = 0;
            while let Some(folder) = folders.get(at)
                && parsed.head.kind == Kind::File
                && depth < MOST_FOLDERS
            {
                (at, depth) = (folder, depth + 1);
            }
            (kind, depth)
        }
        // What cannot be read is told first; nothing can depend on it.
        Err(_) => (None, 0),
    });
}

fn files(body: &Value) -> ApiResult<Vec<(&str, &str)>> {
    let files = body
        .get("files")
        .and_then(Value::as_array)
        .ok_or_else(|| ApiError::field("files", "must be a list of {file, yaml}"))?;
    if files.len() > MOST_FILES {
        return Err(ApiError::field(
            "files",
            format!("more than {MOST_FILES}: apply fewer at once"),
        ));
    }
    files
        .iter()
        .map(|file| {
            let text = |field| file.get(field).and_then(Value::as_str);
            let name = text("file").unwrap_or("request");
            let yaml = text("yaml").ok_or_else(|| ApiError::field("yaml", "must be a string"))?;
            Ok((name, yaml))
        })
        .collect()
}

/// The documents of a file with the number of lines before each. A line that begins with `---` separates
/// documents wherever it stands, also inside of a block of text: that is YAML's own rule.
fn split(yaml: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 0, 0);
    for (line, text) in yaml.split_inclusive('\n').enumerate() {
        let separates = text
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim().is_empty());
        if separates {
            documents.push((start_line, &yaml[start..at]));
            start = at + text.len();
            start_line = line + 1;
        }
        at += text.len();
    }
    documents.push((start_line, &yaml[start..]));
    let says_something = |text: &str| {
        text.lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    let only = documents.len() == 1;
    documents.retain(|(_, text)| only || says_something(text));
    documents
}

fn read<'a>(file: &'a str, whole: &'a str, line: usize, text: &'a str) -> Document<'a> {
    // Lines are counted as in the file.
    let padded = format!("{}{text}", "\n".repeat(line));
    Document {
        file,
        text,
        parsed: language::parse(file, &padded),
        whole,
    }
}

/// One row of the answer. Faults of a document are told in it; faults of the store end the request.
async fn put(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    document: Document<'_>,
) -> ApiResult<Value> {
    let parsed = match &document.parsed {
        Ok(parsed) => parsed,
        Err(found) => return Ok(unreadable(&document, found)),
    };
    let head = &parsed.head;
    let (result, errors, warnings) = match store(deps, caller, query, parsed, document.text).await {
        Ok(saved) => (result(saved.change), Vec::new(), saved.warnings),
        Err(error) if error.status().is_client_error() => {
            ("refused", vec![plain(&document, &error)], Vec::new())
        }
        Err(error) => return Err(error),
    };
    let warnings: Vec<Value> = warnings
        .iter()
        .map(|found| told(&document, found))
        .collect();
    Ok(json!({
        "kind": head.kind.key(),
        "identifier": head.identifier.as_str(),
        "result": result,
        "file": document.file,
        "errors": errors,
        "warnings": warnings,
    }))
}

fn result(change: Change) -> &'static str {
    match change {
        Change::Created => "created",
        Change::Updated => "updated",
        Change::Unchanged => "unchanged",
    }
}

fn plain(document: &Document<'_>, error: &ApiError) -> Value {
    let rendered = format!("{}: {}", document.file, error.message());
    json!({
        "message": error.message(), "line": null, "column": null, "path": "", "rendered": rendered,
    })
}

/// A fault or a warning, with the lines that it is about.
fn told(document: &Document<'_>, found: &Diagnostic) -> Value {
    let source = |name: &str| (name == document.file).then_some(document.whole);
    let one = std::slice::from_ref(found);
    json!({
        "message": found.message,
        "line": found.line,
        "column": found.column,
        "path": found.path,
        "rendered": slipway_model::render::render(one, source, false),
    })
}

fn unreadable(document: &Document<'_>, found: &[Diagnostic]) -> Value {
    let errors: Vec<Value> = found.iter().map(|fault| told(document, fault)).collect();
    // Which entity it was meant to be, as far as that can be read.
    let tree = slipway_model::yaml::parse(document.file, document.text).ok();
    let root = tree.as_ref().and_then(|tree| tree.root().entries().next());
    let identifier = root.and_then(|(_, body)| body.get_text("identifier"));
    json!({
        "kind": root.map(|(key, _)| key),
        "identifier": identifier,
        "result": "refused",
        "file": document.file,
        "errors": errors,
        "warnings": [],
    })
}

async fn store(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    parsed: &Parsed,
    text: &str,
) -> ApiResult<Saved> {
    let kind = parsed.head.kind;
    let scope = scope(caller, query, parsed)?;
    match kind {
        Kind::Secret => return secret::apply(deps, caller, scope, parsed).await,
        Kind::Connector => connector::check_type(parsed.head.entity_type.as_deref())?,
        _ => {}
    }
    let mut draft = Draft::of_parsed(scope, kind, parsed, text.to_owned())?;
    match kind {
        Kind::Template => template::apply(deps, caller, draft, &git::Wanted::of(query)?).await,
        Kind::Overrides => overrides::apply(deps, caller, draft, &git::Wanted::of(query)?).await,
        Kind::File => file_store::apply(deps, caller, &draft, parsed).await,
        Kind::Variable => {
            variable::check(&draft)?;
            entity::upsert(deps, caller, draft).await
        }
        Kind::Trigger => {
            trigger::look(deps, &mut draft, parsed).await?;
            entity::upsert(deps, caller, draft).await
        }
        Kind::Freeze => {
            freeze::look(deps, &mut draft, parsed).await?;
            freeze::check_edit(deps, &draft).await?;
            entity::upsert(deps, caller, draft).await
        }
        Kind::Pipeline
        | Kind::InputSet
        | Kind::OverlayInputSet
        | Kind::Service
        | Kind::Environment
        | Kind::Infrastructure => {
            in_git::upsert(deps, caller, draft, &git::Wanted::of(query)?).await
        }
        _ => entity::upsert(deps, caller, draft).await,
    }
}

/// Where a document belongs: what it says itself, else what the request says. A connector or secret that
/// names no organization belongs to the request's project, like everything else.
fn scope(caller: &Caller, query: &Query, parsed: &Parsed) -> ApiResult<Scope> {
    let head = &parsed.head;
    let of = |id: &str, field: &str| crate::identifier::check(field, id).map(str::to_owned);
    let own_org = head
        .org
        .as_ref()
        .map(|o| of(o.as_str(), "orgIdentifier"))
        .transpose()?;
    let own_project = head
        .project
        .as_ref()
        .map(|p| of(p.as_str(), "projectIdentifier"))
        .transpose()?;
    let org = own_org
        .map(OrgId::new)
        .map_or_else(|| query.org(), |org| Ok(Some(org)))?;
    match head.kind {
        Kind::Organization => Ok(Scope::account(caller.account.clone())),
        Kind::Project => match org {
            Some(org) => Ok(Scope::org(caller.account.clone(), org)),
            None => Err(ApiError::field("orgIdentifier", "must not be empty")),
        },
        _ => {
            let named_org_only = head.org.is_some() && head.project.is_none();
            let project = match own_project {
                Some(project) => Some(ProjectId::new(project)),
                // An entity of an organization names that and no project.
                None if named_org_only => None,
                None => query.project()?,
            };
            query::scope(caller, org, project)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn documents_are_split_where_yaml_splits_them() {
        let text = "# head\n---\na: 1\n---  \n# only a comment\n---\nb: |\n  --- not here\n";
        assert_eq!(split(text), [(2, "a: 1\n"), (6, "b: |\n  --- not here\n")]);
        assert_eq!(split(""), [(0, "")]);
        assert_eq!(split("a: 1"), [(0, "a: 1")]);
    }
}
