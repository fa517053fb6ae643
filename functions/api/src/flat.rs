//! Bodies with flat fields and a `yaml` text beside them.
//!
//! Clients read an entity, change a flat field and send the whole object back with the old `yaml`. So
//! where both say something different, the flat field is what was meant, and the text is changed to
//! agree. Otherwise the text is kept as it was sent, to the letter.

use axum::extract::{Extension, State};
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::{Map, Value, json};
use slipway_model::Tree;
use slipway_model::entity::{Kind, Parsed};
use slipway_model::id::{OrgId, ProjectId, Scope};
use slipway_store::record::EntityRecord;

use crate::auth::Caller;
use crate::body::Body;
use crate::entity::{self, Draft, Place, Saved};
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::git::{Wanted, entity as in_git, shown};
use crate::place::beside;
use crate::query::{self, Query};
use crate::{Deps, edit, identifier};

/// Fields whose flat form wins over the YAML.
const WINNING: &[&str] = &["name", "description", "tags"];

/// A body as the clients send it; fields that are not known are ignored.
pub(crate) struct Flat<'a> {
    kind: Kind,
    body: &'a Map<String, Value>,
}

impl<'a> Flat<'a> {
    /// The object itself, or what is under `wrapper` in it.
    pub(crate) fn new(kind: Kind, body: &'a Value, wrapper: &str) -> ApiResult<Self> {
        let inner = body
            .get(wrapper)
            .filter(|inner| inner.is_object())
            .unwrap_or(body);
        let body = inner
            .as_object()
            .ok_or_else(|| ApiError::invalid("The body must be an object"))?;
        Ok(Self { kind, body })
    }

    fn text(&self, field: &str) -> ApiResult<Option<&'a str>> {
        match self.body.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::field(field, "must be a string")),
        }
    }

    /// The scope: that of the body, else that of the query, else that of the YAML.
    pub(crate) fn scope(&self, caller: &Caller, query: &Query) -> ApiResult<Scope> {
        let yaml = self.parsed_head();
        let one = |field: &str, query: Option<String>| -> ApiResult<Option<String>> {
            let found = match self.text(field)? {
                Some(text) => Some(text.to_owned()),
                None => query.or_else(|| {
                    let inner = yaml.as_ref()?.root().get(self.kind.key())?;
                    inner.get_text(field).map(str::to_owned)
                }),
            };
            let Some(found) = found.filter(|text| !text.is_empty()) else {
                return Ok(None);
            };
            identifier::check(field, &found)?;
            Ok(Some(found))
        };
        let org = one("orgIdentifier", query.org()?.map(|o| o.to_string()))?.map(OrgId::new);
        let project =
            one("projectIdentifier", query.project()?.map(|p| p.to_string()))?.map(ProjectId::new);
        query::scope(caller, org, project)
    }

    fn parsed_head(&self) -> Option<Tree> {
        let yaml = self.body.get("yaml")?.as_str()?;
        slipway_model::yaml::parse(self.kind.key(), yaml).ok()
    }

    /// `identifier`, which must be given.
    pub(crate) fn identifier(&self) -> ApiResult<&'a str> {
        let text = self
            .text("identifier")?
            .ok_or_else(|| ApiError::field("identifier", "must not be empty"))?;
        identifier::check("identifier", text)
    }

    /// `environmentRef` of an infrastructure.
    pub(crate) fn environment(&self) -> ApiResult<Option<&'a str>> {
        self.text("environmentRef")
    }

    /// A draft of a new entity or of a new version of `before`.
    pub(crate) fn draft(&self, scope: Scope, before: Option<&EntityRecord>) -> ApiResult<Draft> {
        let id = self.identifier()?;
        let given = self
            .text("yaml")?
            .or(before.map(|record| record.yaml.as_str()));
        let yaml = match given {
            Some(yaml) => self.reconciled(yaml),
            None => self.minimal(id, &scope)?,
        };
        let mut draft = Draft::of_yaml(scope, self.kind, yaml)?;
        if draft.place.id.as_str() != id {
            let message = format!("the YAML says `{}`, the request `{id}`", draft.place.id);
            return Err(ApiError::field("identifier", message));
        }
        if let Some(name) = self.text("name")? {
            name.clone_into(&mut draft.name);
        }
        if let Some(description) = self.text("description")? {
            draft.description = Some(description.to_owned());
        }
        if let Some(tags) = self.tags()?.filter(|tags| !tags.is_empty()) {
            draft.tags = tags;
        }
        Ok(draft)
    }

    fn tags(&self) -> ApiResult<Option<Vec<(String, String)>>> {
        match self.body.get("tags") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(tags)) => tags
                .iter()
                .map(|(key, value)| match value {
                    Value::String(text) => Ok((key.clone(), text.clone())),
                    Value::Null => Ok((key.clone(), String::new())),
                    _ => Err(ApiError::field("tags", "must be a map of strings")),
                })
                .collect::<ApiResult<_>>()
                .map(Some),
            Some(_) => Err(ApiError::field("tags", "must be a map of strings")),
        }
    }

    /// The YAML, changed only where a flat field contradicts it.
    fn reconciled(&self, yaml: &str) -> String {
        // The draft's own check reports what is wrong with a text that cannot be read.
        let Some(parsed) = parsed(self.kind, yaml) else {
            return yaml.to_owned();
        };
        let says = parsed.to_json();
        let mut yaml = yaml.to_owned();
        for field in self.winning() {
            let flat = self.body.get(*field).filter(|value| !value.is_null());
            // A field that the YAML does not have contradicts nothing.
            let there = says.get(*field).filter(|value| !value.is_null());
            if let (Some(flat), Some(there)) = (flat, there)
                && flat != there
            {
                yaml = edit::set(self.kind, &yaml, field, flat);
            }
        }
        yaml
    }

    /// An environment's type is one of its own flat fields; that of a service is in its definition.
    fn winning(&self) -> impl Iterator<Item = &'static &'static str> + use<> {
        let with_type = self.kind == Kind::Environment;
        WINNING.iter().chain(with_type.then_some(&"type"))
    }

    fn minimal(&self, id: &str, scope: &Scope) -> ApiResult<String> {
        if self.kind == Kind::Infrastructure {
            return Err(ApiError::field("yaml", "must not be empty"));
        }
        let mut inner = Map::new();
        let name = self.text("name")?.unwrap_or(id);
        inner.insert("name".to_owned(), name.into());
        inner.insert("identifier".to_owned(), id.into());
        for (field, value) in [
            ("orgIdentifier", scope.org.as_ref().map(|o| o.as_str())),
            (
                "projectIdentifier",
                scope.project.as_ref().map(|p| p.as_str()),
            ),
        ] {
            inner.extend(value.map(|value| (field.to_owned(), value.into())));
        }
        for field in ["description", "tags", "color", "type"] {
            let wanted = field != "type" || self.kind == Kind::Environment;
            let wanted = wanted && (field != "color" || self.kind != Kind::Service);
            let value = self.body.get(field).filter(|v| !v.is_null() && wanted);
            inner.extend(value.map(|value| (field.to_owned(), value.clone())));
        }
        if self.kind == Kind::EnvironmentGroup {
            let value = self.body.get("envIdentifiers");
            inner.extend(value.map(|value| ("envIdentifiers".to_owned(), value.clone())));
        }
        let mut root = Map::new();
        root.insert(self.kind.key().to_owned(), Value::Object(inner));
        let tree = Tree::from_json(self.kind.key(), &Value::Object(root));
        Ok(slipway_model::emit::to_yaml(&tree))
    }
}

/// What a PUT or POST of a flat body does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Update,
    Upsert,
}

/// The requests that store entities of one kind by flat bodies.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    /// The field that may hold the body's object.
    pub(crate) wrapper: &'static str,
    /// The entity as answers show it.
    pub(crate) render: fn(&EntityRecord) -> Value,
}

impl Form {
    /// `POST` creates, `PUT` updates.
    pub(crate) fn save(self) -> MethodRouter<Deps> {
        self.on(MethodFilter::POST, Verb::Create)
            .merge(self.on(MethodFilter::PUT, Verb::Update))
    }

    /// `PUT` creates or updates.
    pub(crate) fn upsert(self) -> MethodRouter<Deps> {
        self.on(MethodFilter::PUT, Verb::Upsert)
    }

    fn on(self, method: MethodFilter, verb: Verb) -> MethodRouter<Deps> {
        let handler = move |State(deps): State<Deps>,
                            Extension(caller): Extension<Caller>,
                            query: Query,
                            body: Body| async move {
            let body = body.kept()?;
            let flat = Flat::new(self.kind, &body, self.wrapper)?;
            let saved = store(&deps, &caller, &query, &flat, verb).await?;
            ApiResult::Ok(saved.answer(self.render))
        };
        on(method, handler)
    }

    /// An entity as it is: as Git has it at a branch, where it is kept there.
    pub(crate) async fn show(self, deps: &Deps, query: &Query, before: &EntityRecord) -> ApiResult {
        let found = in_git::shown(deps, query, before).await?;
        let mut answer = (self.render)(&found.record);
        if let Some(git) = &found.record.git {
            answer[self.wrapper][DETAILS] = shown::with_drift(before, git);
        }
        if let Some(fault) = found.fault {
            let broken = &found.record.yaml;
            answer["entityValidityDetails"] = json!({"valid": false, "invalidYaml": broken});
            answer["yamlSchemaErrorWrapper"] = json!({"message": fault});
        }
        Ok(success(answer))
    }
}

/// What answers call the place in Git of what they wrap.
const DETAILS: &str = "entityGitDetails";

/// How an entity in a wrapper says where it is kept.
pub(crate) fn kept(wrapped: &mut Value, record: &EntityRecord) {
    wrapped["storeType"] = shown::store_type(record).into();
    wrapped["connectorRef"] = shown::connector(record).into();
    wrapped[DETAILS] = shown::details(record);
}

/// Stores the flat body of a request.
pub(crate) async fn store(
    deps: &Deps,
    caller: &Caller,
    query: &Query,
    flat: &Flat<'_>,
    verb: Verb,
) -> ApiResult<Saved> {
    let scope = flat.scope(caller, query)?;
    let wanted = Wanted::of(query)?;
    if verb == Verb::Create {
        return in_git::create(deps, caller, flat.draft(scope, None)?, &wanted).await;
    }
    let before = match (flat.kind, flat.environment()?) {
        (Kind::Infrastructure, None) => None,
        (_, environment) => {
            let place = Place {
                scope: scope.clone(),
                kind: flat.kind,
                parent: environment
                    .map(slipway_model::id::EntityId::new)
                    .map(|id| beside(&scope, id)),
                id: slipway_model::id::EntityId::new(flat.identifier()?),
            };
            entity::find(deps, &place).await?
        }
    };
    let draft = flat.draft(scope, before.as_ref())?;
    match verb {
        Verb::Upsert => in_git::upsert(deps, caller, draft, &wanted).await,
        _ => in_git::update(deps, caller, draft, &wanted).await,
    }
}

/// The YAML of a record as typed JSON; `None` when this version cannot read it any more.
pub(crate) fn parsed(kind: Kind, yaml: &str) -> Option<Parsed> {
    slipway_model::entity::parse(kind.key(), yaml).ok()
}
