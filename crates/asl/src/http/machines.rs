//! Operations on state machines.

use serde_json::{Value, json};

use super::request::Members;
use super::{executions, page, settings, tags};
use crate::arn;
use crate::definition::{self, DefinitionError, MachineType};
use crate::engine::Engine;
use crate::error::ApiError;
use crate::history::seconds;
use crate::journal::{Batch, key};
use crate::record::{Machine, Revision};
use crate::start::machine_does_not_exist;

/// `CreateStateMachine`. Idempotent for the same name, definition, type and settings, whatever the role and the tags of
/// the later request (API reference, "CreateStateMachine").
pub(super) async fn create(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let inner = &engine.0;
    let name = members.required("name")?;
    let definition = members.required("definition")?;
    let role = members.required("roleArn")?;
    arn::check_name(name)?;
    let kind = kind(members)?;
    settings::check(members)?;
    let tags = tags::read(members)?;
    check(definition, kind)?;
    let _turn = inner.changes.lock().await;
    let arn = inner.home.machine(name);
    let wanted = settings::read(members);
    if let Some(machine) = inner.journal.machine(&arn)? {
        let revision = inner.journal.revision(&machine.revision)?;
        let is_same = machine.settings == wanted
            && machine.express == (kind == MachineType::Express)
            && revision.is_some_and(|revision| revision.definition == definition);
        if !is_same {
            return Err(ApiError::new(
                "StateMachineAlreadyExists",
                format!("State Machine Already Exists: '{arn}'"),
            ));
        }
        return Ok(created(&machine));
    }
    let machine = Machine {
        arn,
        name: name.to_owned(),
        role: role.to_owned(),
        revision: uuid::Uuid::new_v4().to_string(),
        created_ms: inner.clock.now_ms(),
        settings: wanted,
        express: kind == MachineType::Express,
    };
    let mut batch = Batch::default();
    tags::put(&mut batch, &machine.arn, &tags)?;
    let now_ms = machine.created_ms;
    store(engine, &machine, definition.to_owned(), now_ms, batch).await?;
    Ok(created(&machine))
}

fn created(machine: &Machine) -> Value {
    json!({
        "stateMachineArn": machine.arn,
        "creationDate": seconds(machine.created_ms),
    })
}

/// `UpdateStateMachine`: a new revision; executions that run keep theirs.
pub(super) async fn update(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let inner = &engine.0;
    let arn = members.required("stateMachineArn")?;
    let definition = members.text("definition")?;
    let role = members.text("roleArn")?;
    let new_settings = settings::read(members);
    settings::check(members)?;
    if definition.is_none() && role.is_none() && new_settings.is_empty() {
        return Err(ApiError::new(
            "MissingRequiredParameter",
            "Either the definition, the role ARN, the LoggingConfiguration, or the TracingConfiguration must be specified",
        ));
    }
    let _turn = inner.changes.lock().await;
    let mut machine = find(engine, arn)?;
    if let Some(definition) = definition {
        check(definition, kind_of(&machine))?;
    }
    let revision = revision(engine, &machine)?;
    let definition = definition.map_or(revision.definition, str::to_owned);
    if let Some(role) = role {
        role.clone_into(&mut machine.role);
    }
    machine.settings.extend(new_settings);
    machine.revision = uuid::Uuid::new_v4().to_string();
    let now_ms = inner.clock.now_ms();
    store(engine, &machine, definition, now_ms, Batch::default()).await?;
    Ok(json!({"updateDate": seconds(now_ms), "revisionId": machine.revision}))
}

async fn store(
    engine: &Engine,
    machine: &Machine,
    definition: String,
    updated_ms: i64,
    mut batch: Batch,
) -> Result<(), ApiError> {
    let revision = Revision {
        machine: machine.arn.clone(),
        name: machine.name.clone(),
        role: machine.role.clone(),
        definition,
        updated_ms,
        settings: machine.settings.clone(),
        express: machine.express,
    };
    batch.put(key::machine(&machine.arn), machine)?;
    batch.put(key::revision(&machine.revision), &revision)?;
    Ok(engine.0.journal.commit(batch).await?)
}

/// `DeleteStateMachine`: no error if it is not there; executions that run go on.
pub(super) async fn delete(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let arn = members.required("stateMachineArn")?;
    arn::check(arn, "stateMachine")?;
    let _turn = engine.0.changes.lock().await;
    let mut batch = Batch::default();
    batch.delete(key::machine(arn));
    batch.delete(key::tags(arn));
    engine.0.journal.commit(batch).await?;
    Ok(json!({}))
}

/// `DescribeStateMachine`.
pub(super) fn describe(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let machine = find(engine, members.required("stateMachineArn")?)?;
    let revision = revision(engine, &machine)?;
    let mut answer = json!({
        "stateMachineArn": machine.arn,
        "name": machine.name,
        "status": "ACTIVE",
        "definition": revision.definition,
        "roleArn": machine.role,
        "type": type_name(&machine),
        "creationDate": seconds(machine.created_ms),
        "revisionId": machine.revision,
    });
    settings::show(&mut answer, &machine.settings);
    if let Some(definition) = engine.0.definition(&machine.revision)? {
        let references = definition.variable_references();
        answer["variableReferences"] = Value::Object(references);
    }
    Ok(answer)
}

/// `DescribeStateMachineForExecution`: the definition that an execution started with.
pub(super) fn describe_for_execution(
    engine: &Engine,
    members: &Members,
) -> Result<Value, ApiError> {
    let (_, execution) = executions::find(engine, members.required("executionArn")?)?;
    let revision = engine
        .0
        .journal
        .revision(&execution.revision)?
        .ok_or_else(|| machine_does_not_exist(&execution.machine))?;
    let mut answer = json!({
        "stateMachineArn": execution.machine,
        "name": execution.machine_name,
        "definition": revision.definition,
        "roleArn": execution.role,
        "updateDate": seconds(revision.updated_ms),
        "revisionId": execution.revision,
    });
    settings::show(&mut answer, &revision.settings);
    Ok(answer)
}

/// `ListStateMachines`, by ARN.
pub(super) fn list(engine: &Engine, members: &Members) -> Result<Value, ApiError> {
    let most = members.max_results(100)?;
    let after = page::place(members)?.unwrap_or_default();
    let mut machines = engine.0.journal.machines(&after, most + 1)?;
    let has_more = machines.len() > most;
    machines.truncate(most);
    let mut answer = json!({
        "stateMachines": machines.iter().map(|machine| json!({
            "stateMachineArn": machine.arn,
            "name": machine.name,
            "type": type_name(machine),
            "creationDate": seconds(machine.created_ms),
        })).collect::<Vec<_>>(),
    });
    if let (true, Some(last)) = (has_more, machines.last()) {
        answer["nextToken"] = page::token(&last.arn).into();
    }
    Ok(answer)
}

/// The machine with this ARN.
pub(super) fn find(engine: &Engine, arn: &str) -> Result<Machine, ApiError> {
    arn::check(arn, "stateMachine")?;
    engine
        .0
        .journal
        .machine(arn)?
        .ok_or_else(|| machine_does_not_exist(arn))
}

fn revision(engine: &Engine, machine: &Machine) -> Result<Revision, ApiError> {
    engine
        .0
        .journal
        .revision(&machine.revision)?
        .ok_or_else(|| machine_does_not_exist(&machine.arn))
}

/// The `type` of a request.
pub(super) fn kind(members: &Members) -> Result<MachineType, ApiError> {
    match members.text("type")? {
        None | Some("STANDARD") => Ok(MachineType::Standard),
        Some("EXPRESS") => Ok(MachineType::Express),
        Some(other) => Err(ApiError::validation(format!(
            "1 validation error detected: Value '{other}' at 'type' failed to satisfy constraint: Member must satisfy enum value set: [STANDARD, EXPRESS]"
        ))),
    }
}

fn kind_of(machine: &Machine) -> MachineType {
    if machine.express {
        MachineType::Express
    } else {
        MachineType::Standard
    }
}

fn type_name(machine: &Machine) -> &'static str {
    if machine.express {
        "EXPRESS"
    } else {
        "STANDARD"
    }
}

fn check(definition: &str, kind: MachineType) -> Result<(), ApiError> {
    definition::parse(definition, kind)
        .map(drop)
        .map_err(|errors| invalid(&errors))
}

/// The API error for a definition that is refused.
pub(crate) fn invalid(errors: &[DefinitionError]) -> ApiError {
    ApiError::new(
        "InvalidDefinition",
        format!(
            "Invalid State Machine Definition: '{}'",
            definition::all(errors)
        ),
    )
}
