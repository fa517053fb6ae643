//! What a task waits for: made from its evaluated arguments.

use serde_json::{Value, json};

use super::{Failure, Run};
use crate::definition::{Resource, StartMode};
use crate::effect::{InvokeSettings, ServiceCall};
use crate::record::Awaited;

impl Run {
    /// What the task waits for, from its evaluated arguments.
    pub(super) fn awaited(
        &self,
        id: u32,
        resource: &Resource,
        arguments: &Value,
    ) -> Result<Awaited, Failure> {
        Ok(match resource {
            Resource::Function(arn) => Awaited::Function {
                name: arn.clone(),
                payload: arguments.clone(),
                settings: None,
            },
            Resource::Activity(arn) => Awaited::Worker {
                activity: arn.clone(),
                input: arguments.clone(),
                started: false,
                worker: None,
            },
            Resource::Invoke { wait_for_token } => {
                let name = self.required(id, arguments, "FunctionName")?;
                let payload = payload(arguments.get("Payload"))?;
                let settings = settings(arguments);
                if *wait_for_token {
                    Awaited::FunctionThenToken {
                        name,
                        payload,
                        submitted: false,
                        settings,
                    }
                } else {
                    Awaited::Function {
                        name,
                        payload,
                        settings,
                    }
                }
            }
            Resource::StartExecution(mode) => self.child(id, *mode, arguments)?,
            Resource::Service(service) => Awaited::Service {
                call: ServiceCall {
                    service: service.service.clone(),
                    action: service.action.clone(),
                    parameters: arguments.clone(),
                    state: self
                        .branches
                        .get(&id)
                        .map_or_else(String::new, |branch| branch.state.clone()),
                },
                submitted: None,
            },
        })
    }

    fn child(&self, id: u32, mode: StartMode, arguments: &Value) -> Result<Awaited, Failure> {
        let input = match arguments.get("Input") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let name = match arguments.get("Name") {
            Some(Value::String(name)) => name.clone(),
            _ => uuid::Uuid::new_v4().to_string(),
        };
        Ok(Awaited::Child {
            machine: self.required(id, arguments, "StateMachineArn")?,
            name,
            input,
            waits: matches!(mode, StartMode::Sync | StartMode::Sync2),
            child: None,
        })
    }

    fn required(&self, id: u32, arguments: &Value, name: &str) -> Result<String, Failure> {
        match arguments.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
            _ => Err(self.runtime(
                id,
                &format!("The Arguments '{arguments}' could not be used to start the Task: [The field '{name}' is required but was missing]"),
            )),
        }
    }
}

/// What `lambda:invoke` says beside the function and its event, if anything.
fn settings(arguments: &Value) -> Option<Box<InvokeSettings>> {
    let text = |name: &str| arguments.get(name)?.as_str().map(str::to_owned);
    let settings = InvokeSettings {
        qualifier: text("Qualifier"),
        invocation_type: text("InvocationType"),
        log_type: text("LogType"),
        client_context: text("ClientContext"),
    };
    (settings != InvokeSettings::default()).then(|| Box::new(settings))
}

/// The event of a function: an object if none is given. A text is the JSON that Lambda gets.
fn payload(given: Option<&Value>) -> Result<Value, Failure> {
    match given {
        None | Some(Value::Null) => Ok(json!({})),
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|error| {
            Failure::new(
                "Lambda.InvalidRequestContentException",
                format!("Could not parse request body into json: {error}"),
            )
        }),
        Some(value) => Ok(value.clone()),
    }
}
