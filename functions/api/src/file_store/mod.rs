//! The file store: files and folders of a scope, which manifests and config files name by path.
//!
//! What is known of a file is an entity below [`NODES`], by its identifier. Its content is a record by its
//! path, which is where plans look. The path of a folder is a record too, below another owner, so that nothing
//! takes a folder's text for a file's. The content is written before the node and deleted after it.

mod node;
mod routes;

use slipway_engine::error_name::ErrorName;
use slipway_model::entity::{Kind, Parsed};
use slipway_model::id::{EntityId, Scope};
use slipway_plan::FOLDER;
use slipway_store::StoreError;
use slipway_store::record::EntityRecord;

use crate::Deps;
use crate::auth::Caller;
use crate::entity::{self, Change, Draft, Filter, Place, Saved};
use crate::error::{ApiError, ApiResult};
use crate::page::Page;
use crate::place::NODES;

use node::Node;

pub(crate) use routes::routes;

/// `parentIdentifier` of what stands at the top.
const ROOT: &str = "Root";

/// Files and folders of a scope that a deletion or a list looks at.
const MOST_NODES: usize = 10_000;

fn node_place(scope: Scope, id: &str) -> ApiResult<Place> {
    Ok(Place {
        parent: Some(EntityId::new(NODES)),
        ..Place::of(scope, Kind::File, id)?
    })
}

/// The owner of a path's record.
fn owner(folder: bool) -> Option<EntityId> {
    folder.then(|| EntityId::new(FOLDER))
}

/// Every node of a scope that a filter keeps.
async fn nodes(deps: &Deps, scope: &Scope, filter: &Filter) -> ApiResult<Vec<EntityRecord>> {
    let all = Page {
        index: 0,
        size: MOST_NODES,
    };
    let parent = EntityId::new(NODES);
    let found = entity::list(deps, scope, Kind::File, Some(&parent), filter, all).await?;
    Ok(found.0)
}

/// The path of a node: that of its folder, which must be there, and its name.
async fn path(deps: &Deps, scope: &Scope, node: &Node) -> ApiResult<String> {
    let folder = match node.parent.as_str() {
        ROOT => String::new(),
        id => {
            let record = entity::get(deps, &node_place(scope.clone(), id)?).await?;
            let folder = Node::of(&record)?;
            if !folder.is_folder {
                let message = format!("[{id}] is a file and no folder");
                return Err(ApiError::field("parentIdentifier", message));
            }
            folder.path
        }
    };
    let path = format!("{folder}/{}", node.name);
    match path.len() <= 1_000 {
        true => Ok(path),
        false => Err(ApiError::field(
            "name",
            "makes a path of more than 1,000 bytes",
        )),
    }
}

/// Puts the record of a path in its place: refused when the path belongs to another file or folder that is
/// there.
async fn put_path(deps: &Deps, scope: &Scope, node: &Node, content: &str) -> ApiResult<()> {
    let (key, id) = (Kind::File.key(), EntityId::new(&*node.path));
    for folder in [false, true] {
        let parent = owner(folder);
        let found = deps.store.find_entity(scope, key, parent.as_ref(), &id);
        let Some(there) = found.await? else { continue };
        let taken = there.name != node.id
            && entity::find(deps, &node_place(scope.clone(), &there.name)?)
                .await?
                .is_some();
        if taken || folder != node.is_folder {
            let message = format!("[{}] already stands at {}", there.name, node.path);
            return Err(ApiError::new(ErrorName::AlreadyExists, message));
        }
    }
    let parent = owner(node.is_folder);
    let before = deps
        .store
        .find_entity(scope, key, parent.as_ref(), &id)
        .await?;
    if before
        .as_ref()
        .is_some_and(|b| b.yaml == content && b.name == node.id)
    {
        return Ok(());
    }
    let now = deps.clock.now_ms();
    let record = EntityRecord {
        scope: scope.clone(),
        kind: key.to_owned(),
        parent,
        id,
        name: node.id.clone(),
        description: None,
        tags: Vec::new(),
        entity_type: None,
        yaml: content.to_owned(),
        version: before.as_ref().map_or(0, |before| before.version),
        created_ms: before.as_ref().map_or(now, |before| before.created_ms),
        updated_ms: now,
        connection: None,
        git: None,
        saved_by: None,
    };
    let expected = before.map(|before| before.version);
    deps.store.put_entity(&record, expected).await?;
    Ok(())
}

async fn remove_path(deps: &Deps, scope: &Scope, node: &Node) -> ApiResult<()> {
    let (parent, id) = (owner(node.is_folder), EntityId::new(&*node.path));
    let key = Kind::File.key();
    let removed = deps
        .store
        .delete_entity(scope, key, parent.as_ref(), &id, None);
    match removed.await {
        Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The content of a file.
async fn content(deps: &Deps, scope: &Scope, node: &Node) -> ApiResult<String> {
    let id = EntityId::new(&*node.path);
    let found = deps
        .store
        .find_entity(scope, Kind::File.key(), None, &id)
        .await?;
    let place = node_place(scope.clone(), &node.id)?;
    found
        .map(|record| record.yaml)
        .ok_or_else(|| place.not_found())
}

/// Creates a file or folder, or changes the one that is there. A file that is there keeps its content when none
/// is given.
async fn store(
    deps: &Deps,
    caller: &Caller,
    scope: Scope,
    mut node: Node,
    given: Option<&str>,
) -> ApiResult<Saved> {
    node.path = path(deps, &scope, &node).await?;
    let before = entity::find(deps, &node_place(scope.clone(), &node.id)?).await?;
    let before = before.as_ref().map(Node::of).transpose()?;
    let moved = before.as_ref().filter(|before| before.path != node.path);
    if before
        .as_ref()
        .is_some_and(|before| before.is_folder != node.is_folder)
    {
        return Err(ApiError::field("type", "cannot be changed"));
    }
    if moved.is_some_and(|from| below(&from.path, &node.path)) {
        let message = format!("is inside of the folder [{}] itself", node.id);
        return Err(ApiError::field("parentIdentifier", message));
    }
    let text = match (given, &before) {
        _ if node.is_folder => String::new(),
        (Some(given), _) => given.to_owned(),
        (None, Some(before)) => content(deps, &scope, before).await?,
        (None, None) => String::new(),
    };
    let kept = match &before {
        Some(before) if !node.is_folder => content(deps, &scope, before).await? == text,
        _ => true,
    };
    put_path(deps, &scope, &node, &text).await?;
    let draft = Draft::of_yaml(scope.clone(), Kind::File, node.yaml(&scope))?;
    let mut saved = entity::upsert(deps, caller, draft).await?;
    if let Some(moved) = moved {
        if node.is_folder {
            move_contents(deps, caller, &scope, (&moved.path, &node.path)).await?;
        }
        remove_path(deps, &scope, moved).await?;
    }
    if !kept && saved.change == Change::Unchanged {
        saved.change = Change::Updated;
    }
    Ok(saved)
}

/// `apply` of a `file:` document, whose content stands in it.
pub(crate) async fn apply(
    deps: &Deps,
    caller: &Caller,
    draft: &Draft,
    parsed: &Parsed,
) -> ApiResult<Saved> {
    let body = parsed.to_json();
    let node = Node::of_object(&body)?;
    let content = body.get("content").and_then(serde_json::Value::as_str);
    let mut saved = store(deps, caller, draft.place.scope.clone(), node, content).await?;
    saved.warnings.clone_from(&draft.warnings);
    Ok(saved)
}

/// Whether a path is inside of a folder.
fn below(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Every node inside of a folder, at any depth.
async fn contents(deps: &Deps, scope: &Scope, folder: &str) -> ApiResult<Vec<Node>> {
    let mut inside = Vec::new();
    for record in nodes(deps, scope, &Filter::default()).await? {
        let node = Node::of(&record)?;
        if below(folder, &node.path) {
            inside.push(node);
        }
    }
    Ok(inside)
}

/// Gives everything inside of a folder its new path, the outermost first. A node has its new path before it
/// loses the old one, so that a request that ends half-way loses nothing and can be repeated.
async fn move_contents(
    deps: &Deps,
    caller: &Caller,
    scope: &Scope,
    (from, to): (&str, &str),
) -> ApiResult<()> {
    let mut inside = contents(deps, scope, from).await?;
    inside.sort_by_key(|node| node.path.len());
    for before in inside {
        let mut node = before.clone();
        node.path = format!("{to}{}", &before.path[from.len()..]);
        let text = match node.is_folder {
            true => String::new(),
            false => content(deps, scope, &before).await?,
        };
        put_path(deps, scope, &node, &text).await?;
        let draft = Draft::of_yaml(scope.clone(), Kind::File, node.yaml(scope))?;
        entity::upsert(deps, caller, draft).await?;
        remove_path(deps, scope, &before).await?;
    }
    Ok(())
}

/// Deletes a file, or a folder with all that is in it, the deepest first.
async fn remove(deps: &Deps, caller: &Caller, place: &Place) -> ApiResult<()> {
    let target = Node::of(&entity::get(deps, place).await?)?;
    let mut doomed = Vec::new();
    if target.is_folder {
        doomed = contents(deps, &place.scope, &target.path).await?;
        doomed.sort_by_key(|node| std::cmp::Reverse(node.path.len()));
    }
    doomed.push(target);
    for node in doomed {
        entity::delete(deps, caller, &node_place(place.scope.clone(), &node.id)?).await?;
        remove_path(deps, &place.scope, &node).await?;
    }
    Ok(())
}
