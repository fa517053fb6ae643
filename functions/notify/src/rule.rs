//! A rule in the hands of the one who sends: its texts, with expressions and secrets filled in.

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sha2::{Digest, Sha256};
use slipway_engine::context::RunContext;
use slipway_engine::error::HandlerError;
use slipway_engine::error_name::ErrorName;
use slipway_engine::notify::{Notice, addresses, receiver_field, user_groups};
use slipway_engine::user_group::{self, Found};
use slipway_expr::{Context, Limits, evaluate_json};
use slipway_model::id::Scope;
use slipway_plan::NotificationPlan;
use slipway_steps::secrets::Secrets;
use slipway_store::Store;

use crate::custom::Custom;
use crate::{Deps, Facts};

/// One rule and what it tells of.
pub(crate) struct Rule<'a> {
    plan: &'a NotificationPlan,
    scope: &'a Scope,
    context: Box<dyn Context + Send + Sync + 'a>,
    secrets: Secrets<'a>,
    /// Where the user group is reached that this message is for; none where the rule itself says where to.
    group: Option<Vec<String>>,
}

impl<'a> Rule<'a> {
    pub(crate) fn new(
        deps: &'a Deps,
        facts: &'a Facts,
        notice: &'a Notice,
        plan: &'a NotificationPlan,
    ) -> Self {
        let mut stages = facts.plan.groups.iter().flatten();
        let context = RunContext {
            plan: &facts.plan,
            run: &facts.run,
            nodes: &facts.newest,
            stage: stages.find(|stage| Some(&stage.id) == notice.event.stage()),
            node: notice.event.step().map(|(node, _)| node),
        };
        Self::with(deps, &facts.plan.scope, Box::new(context), plan)
    }

    /// A rule whose expressions read a context, and whose references are those of a scope.
    pub(crate) fn with(
        deps: &'a Deps,
        scope: &'a Scope,
        context: Box<dyn Context + Send + Sync + 'a>,
        plan: &'a NotificationPlan,
    ) -> Self {
        Self {
            plan,
            scope,
            context,
            secrets: Secrets::new(&*deps.secrets, scope),
            group: None,
        }
    }

    /// What stands for a receiver of the rule, the same for the same rule in other runs. Secrets are no part of it, but
    /// their names are.
    pub(crate) fn receiver(&self, number: usize) -> String {
        let targets = match (&self.group, self.plan.method.as_ref()) {
            (Some(targets), _) => Value::from(targets.clone()),
            (None, Some(method)) => {
                let field = receiver_field(method).map(|field| self.field(field).clone());
                let written = field.unwrap_or_default();
                let evaluated = evaluate_json(&written, &*self.context, &Limits::default());
                evaluated.map_or(written, |(value, _)| value)
            }
            (None, None) => Value::Null,
        };
        let own = serde_json::json!([self.scope, self.name(), self.method(), targets, number]);
        let digest = Sha256::digest(own.to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'a str {
        &self.plan.name
    }

    /// Turns the rule to its `receiver`-th receiver: those that it names itself come first, then its user groups.
    pub(crate) async fn turn_to(
        &mut self,
        store: &Store,
        receiver: usize,
    ) -> Result<(), HandlerError> {
        let Some(method) = self.plan.method.as_ref() else {
            return Ok(());
        };
        let own =
            receiver_field(method).map_or(0, |field| addresses(self.field(field), field).len());
        let Some(number) = receiver.checked_sub(own) else {
            return Ok(());
        };
        let groups = user_groups(method);
        let Some(written) = groups.get(number) else {
            return Ok(());
        };
        let reference = self.fill("userGroups", written).await?;
        let reference = reference.expose_secret();
        let found = user_group::find(store, self.scope, reference).await?;
        let targets = match found {
            Found::Group(group) => {
                let targets = group.targets(self.method()).into_iter().map(str::to_owned);
                targets.collect::<Vec<_>>()
            }
            Found::Everybody => {
                return Err(refused(format!(
                    "the user group `{reference}` is everybody, and where everybody is reached is not known; name another group"
                )));
            }
            Found::Missing => {
                return Err(refused(format!("there is no user group `{reference}`")));
            }
        };
        if targets.is_empty() {
            let method = self.method();
            return Err(refused(format!(
                "the user group `{reference}` has no setting for {method}"
            )));
        }
        self.group = Some(targets);
        Ok(())
    }

    /// The message as the rule's template words it; or why the standard one is sent, although there is a template.
    pub(crate) fn custom(&self) -> Result<Option<Custom>, String> {
        if let Some(fault) = &self.plan.fault {
            return Err(fault.clone());
        }
        let Some(message) = &self.plan.message else {
            return Ok(None);
        };
        Custom::of(message, &*self.context).map(Some)
    }

    /// `notificationMethod.type`.
    pub(crate) fn method(&self) -> &'a str {
        self.written("type").as_str().unwrap_or_default()
    }

    fn written(&self, field: &str) -> &'a Value {
        static NOTHING: Value = Value::Null;
        let method = self.plan.method.as_ref().unwrap_or(&NOTHING);
        method.get(field).unwrap_or(&NOTHING)
    }

    /// A field of `notificationMethod.spec`, as written.
    pub(crate) fn field(&self, field: &str) -> &'a Value {
        static NOTHING: Value = Value::Null;
        self.written("spec").get(field).unwrap_or(&NOTHING)
    }

    /// Where the rule sends its `receiver`-th message to: one of the texts of a field, filled in.
    pub(crate) async fn address(
        &mut self,
        field: &str,
        receiver: usize,
    ) -> Result<SecretString, HandlerError> {
        let written = match self.of_group(field) {
            Some(targets) => targets.first().cloned(),
            None => {
                let own = addresses(self.field(field), field).get(receiver).copied();
                own.map(str::to_owned)
            }
        };
        match written {
            Some(text) => self.fill(field, &text).await,
            None => Err(refused(format!(
                "its {field} has no entry {}",
                receiver + 1
            ))),
        }
    }

    /// All texts of a field, filled in.
    pub(crate) async fn texts(&mut self, field: &str) -> Result<Vec<SecretString>, HandlerError> {
        let of_group = self.of_group(field);
        let written = of_group.unwrap_or_else(|| match self.field(field) {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => {
                let texts = items.iter().filter_map(Value::as_str);
                texts.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        });
        let mut texts = Vec::with_capacity(written.len());
        for text in written {
            texts.push(self.fill(field, &text).await?);
        }
        Ok(texts)
    }

    /// What the group that this message is for has in the place of a field that says where to.
    fn of_group(&self, field: &str) -> Option<Vec<String>> {
        let method = self.plan.method.as_ref()?;
        let says_where = receiver_field(method) == Some(field);
        self.group.clone().filter(|_| says_where)
    }

    /// The name-value pairs of `headers`, filled in.
    pub(crate) async fn headers(&mut self) -> Result<Vec<(String, SecretString)>, HandlerError> {
        let Value::Object(written) = self.field("headers") else {
            return Ok(Vec::new());
        };
        let mut headers = Vec::with_capacity(written.len());
        for (name, value) in written {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            headers.push((name.clone(), self.fill("headers", &text).await?));
        }
        Ok(headers)
    }

    async fn fill(&mut self, field: &str, text: &str) -> Result<SecretString, HandlerError> {
        let value = Value::String(text.to_owned());
        let evaluated = evaluate_json(&value, &*self.context, &Limits::default());
        let (value, _) =
            evaluated.map_err(|error| refused(format!("its {field}: {}", error.full_text())))?;
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let filled = self.secrets.reveal_text(&text).await;
        let filled =
            filled.map_err(|failure| refused(format!("its {field}: {}", failure.message)))?;
        Ok(SecretString::from(filled.expose_secret().trim().to_owned()))
    }

    /// An error for people: with the name of the rule, without the secrets that were filled in.
    pub(crate) fn told(&self, error: HandlerError) -> HandlerError {
        let message = format!("notification rule `{}`: {}", self.plan.name, error.message);
        HandlerError::new(error.name, self.secrets.mask(&message))
    }

    /// The value of a secret in the scope of the run.
    pub(crate) async fn secret(&mut self, reference: &str) -> Result<SecretString, HandlerError> {
        let value = self.secrets.value(reference).await;
        value.map_err(|failure| refused(failure.message))
    }
}

/// The notice can never be sent.
pub(crate) fn refused(message: impl Into<String>) -> HandlerError {
    HandlerError::new(ErrorName::DeliveryRefused, message)
}

/// The notice may be sent later.
pub(crate) fn later(message: impl Into<String>) -> HandlerError {
    HandlerError::new(ErrorName::NotDelivered, message)
}
