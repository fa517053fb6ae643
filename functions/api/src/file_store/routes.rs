//! `/ng/api/file-store`: forms go in, JSON and contents come out.

use axum::Router;
use axum::extract::Path;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::{Value, json};
use slipway_model::id::Scope;
use slipway_store::record::EntityRecord;

use super::node::Node;
use super::{ROOT, content, node_place, nodes, remove, store};
use crate::Deps;
use crate::body::Body;
use crate::call::Call;
use crate::entity::{self, Filter, Saved};
use crate::envelope::{success, success_with};
use crate::error::{ApiError, ApiResult};
use crate::identifier;
use crate::multipart::Form;
use crate::page::Page;

pub(crate) fn routes() -> Router<Deps> {
    let path = "/ng/api/file-store";
    Router::new()
        .route(path, get(list).post(create))
        .route(&format!("{path}/folder"), post(folder))
        .route(&format!("{path}/files/{{id}}/download"), get(download))
        .route(
            &format!("{path}/{{id}}"),
            get(one).put(update).delete(delete),
        )
}

fn render(record: &EntityRecord) -> ApiResult<Value> {
    Ok(Node::of(record)?.render(record))
}

fn answer(saved: &Saved) -> ApiResult {
    Ok(success_with(render(&saved.record)?, &saved.warnings))
}

async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let filter = Filter {
        search: query.one("searchTerm")?.map(str::to_owned),
        identifiers: query.all("identifiers").map(str::to_owned).collect(),
        types: Vec::new(),
    };
    let (scope, page) = (query.scope(&caller)?, Page::ng(&query)?);
    let found = nodes(&deps, &scope, &filter).await?;
    let total = found.len();
    let shown = page.cut(found);
    let content = shown.iter().map(render);
    Ok(success(
        page.render(content.collect::<ApiResult<_>>()?, total),
    ))
}

async fn one(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let record = entity::get(&deps, &node_place(query.scope(&caller)?, &id)?).await?;
    Ok(success(render(&record)?))
}

/// The bytes of a file, as what nobody opens by accident.
async fn download(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let scope = query.scope(&caller)?;
    let record = entity::get(&deps, &node_place(scope.clone(), &id)?).await?;
    let node = Node::of(&record)?;
    if node.is_folder {
        return Err(ApiError::invalid(format!(
            "[{id}] is a folder and has no content"
        )));
    }
    let content = content(&deps, &scope, &node).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, content).into_response())
}

/// The fields of a form. Clients send empty ones for what they leave out.
fn node_of(form: &Form, id: Option<&str>) -> ApiResult<Node> {
    let mut fields = serde_json::Map::new();
    for field in [
        "identifier",
        "name",
        "type",
        "parentIdentifier",
        "fileUsage",
        "mimeType",
        "description",
    ] {
        let value = form.text(field)?;
        fields.extend(value.map(|value| (field.to_owned(), value.into())));
    }
    if let Some(tags) = form.text("tags")? {
        let tags: Value = serde_json::from_str(tags)
            .map_err(|error| ApiError::field("tags", format!("is not JSON: {error}")))?;
        fields.insert("tags".to_owned(), tags);
    }
    if let Some(id) = id {
        let given = fields.entry("identifier").or_insert_with(|| id.into());
        if given != id {
            let message = "is not that of the path and cannot be changed";
            return Err(ApiError::field("identifier", message));
        }
    }
    Node::of_object(&Value::Object(fields))
}

/// The content of a form: a field of its own or the part of a file, both under the same name.
fn content_of(form: &Form) -> ApiResult<Option<&str>> {
    let Some(bytes) = form.bytes("content") else {
        return Ok(None);
    };
    std::str::from_utf8(bytes).map(Some).map_err(|_| {
        ApiError::unsupported("Files that are not UTF-8 text are not supported by this version")
    })
}

async fn create(Call(deps, caller, query): Call, form: Form) -> ApiResult {
    let (scope, node) = (query.scope(&caller)?, node_of(&form, None)?);
    refuse_existing(&deps, scope.clone(), &node).await?;
    answer(&store(&deps, &caller, scope, node, content_of(&form)?).await?)
}

async fn refuse_existing(deps: &Deps, scope: Scope, node: &Node) -> ApiResult<()> {
    let place = node_place(scope, &node.id)?;
    match entity::find(deps, &place).await? {
        Some(_) => Err(entity::duplicate(&place)),
        None => Ok(()),
    }
}

async fn update(Call(deps, caller, query): Call, Path(id): Path<String>, form: Form) -> ApiResult {
    let (scope, node) = (query.scope(&caller)?, node_of(&form, Some(&id))?);
    entity::get(&deps, &node_place(scope.clone(), &id)?).await?;
    answer(&store(&deps, &caller, scope, node, content_of(&form)?).await?)
}

/// A folder with what is directly in it; `Root` is that of the scope.
async fn folder(Call(deps, caller, query): Call, body: Body) -> ApiResult {
    let body = body.object()?;
    let id = body.get("identifier").and_then(Value::as_str);
    let id = identifier::check("identifier", id.unwrap_or(ROOT))?;
    let scope = query.scope(&caller)?;
    let usage = query.one("fileUsage")?;
    let mut folder = match id {
        ROOT => {
            json!({"identifier": ROOT, "name": ROOT, "type": "FOLDER", "parentIdentifier": null, "path": "/"})
        }
        id => render(&entity::get(&deps, &node_place(scope.clone(), id)?).await?)?,
    };
    let mut children = Vec::new();
    for record in nodes(&deps, &scope, &Filter::default()).await? {
        let node = Node::of(&record)?;
        let wanted = usage.is_none() || node.is_folder || node.usage.as_deref() == usage;
        if node.parent == id && wanted {
            children.push(node.render(&record));
        }
    }
    folder["children"] = Value::Array(children);
    Ok(success(folder))
}

async fn delete(Call(deps, caller, query): Call, Path(id): Path<String>) -> ApiResult {
    let place = node_place(query.scope(&caller)?, &id)?;
    remove(&deps, &caller, &place).await?;
    Ok(success(Value::Bool(true)))
}
