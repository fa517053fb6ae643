//! `ServiceNowImportSet`: puts a row into a staging table, from where transform maps carry it on. Source:
//! ServiceNowImportSetStepInfo in the pipeline schema; docs: servicenow-import-set.
//!
//! A row has nothing by which it could be found again, so a request that may have arrived is not sent again: the
//! step fails and says so.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_expr::secret::SecretText;
use slipway_model::status::Failure;

use super::client::ServiceNow;
use super::{Given, body, name, name_fault};
use crate::context::StepContext;
use crate::step::{Progress, Step, Undo};
use crate::ticket::text::{as_output, words};
use crate::ticket::{Stop, Tries, UNIT, go_on};
use crate::variable::{is_expression, read, wrong};

/// Most outcomes of transform maps that are told.
const MOST_OUTCOMES: usize = 100;

/// The step.
pub struct ServiceNowImportSet;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    staging_table_name: String,
    import_data: Data,
    #[serde(rename = "connectorRef")]
    _connector_ref: Value,
    #[serde(default, rename = "delegateSelectors")]
    _delegate_selectors: Value,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Deserialize)]
#[serde(tag = "type", content = "spec")]
enum Data {
    Json(Json),
    KeyValues(KeyValues),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Json {
    json_body: String,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyValues {
    fields: Vec<Given>,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    #[serde(default)]
    sent: bool,
    #[serde(default)]
    tries: Tries,
}

impl Data {
    /// The row. Holes of secrets stand in texts of the JSON, where they are filled.
    fn row(&self) -> Result<Value, String> {
        match self {
            Self::KeyValues(key_values) => Ok(body(&key_values.fields).into()),
            Self::Json(json) => {
                let row: Value = serde_json::from_str(&json.json_body).map_err(|error| {
                    let shown = words(&SecretText::decode(&json.json_body).to_string());
                    format!("importData.spec.jsonBody: it is no JSON ({error}): {shown}")
                })?;
                match row.is_object() {
                    true => Ok(row),
                    false => Err("importData.spec.jsonBody: it is no JSON object".to_owned()),
                }
            }
        }
    }
}

#[async_trait]
impl Step for ServiceNowImportSet {
    fn step_type(&self) -> &'static str {
        "ServiceNowImportSet"
    }

    fn units(&self) -> &'static [&'static str] {
        &[UNIT]
    }

    fn check(&self, spec: &Value) -> Vec<String> {
        let spec: Spec = match read(spec) {
            Ok(spec) => spec,
            Err(message) => return vec![message],
        };
        let open = matches!(&spec.import_data, Data::Json(json) if is_expression(&json.json_body));
        let row = if open {
            None
        } else {
            spec.import_data.row().err()
        };
        let mut faults: Vec<String> = row.into_iter().collect();
        faults.extend(name_fault(
            "stagingTableName",
            &spec.staging_table_name,
            "u_staging",
        ));
        faults
    }

    fn undo(&self) -> Undo {
        Undo::Nothing("what ServiceNow made of the row only its transform maps know")
    }

    async fn advance(&self, cx: &mut StepContext<'_>) -> Result<Progress, Failure> {
        let step = cx.step().identifier.to_string();
        let spec: Spec = read(cx.spec()).map_err(|message| wrong(&step, &message))?;
        let row = spec
            .import_data
            .row()
            .map_err(|message| wrong(&step, &message))?;
        let mut state: State = cx.saved()?;
        if let Some(rest) = state.tries.early(cx) {
            return Ok(Progress::Again(rest));
        }
        let worked = work(&spec, row, &mut state, cx).await;
        go_on(worked, &mut state, |state| &mut state.tries, cx).await
    }
}

async fn work(
    spec: &Spec,
    row: Value,
    state: &mut State,
    cx: &mut StepContext<'_>,
) -> Result<Value, Stop> {
    let table = name("stagingTableName", &spec.staging_table_name)?;
    if state.sent {
        return Err(Stop::over(format!(
            "Slipway was interrupted while it put a row into {table} and cannot know whether ServiceNow has it. Look at the table, then run the step again if the row is not there."
        )));
    }
    let service_now = ServiceNow::of(cx).await?;
    cx.info(UNIT, format!("Putting a row into {table}"));
    state.sent = true;
    cx.save(state).await?;
    let answer = match service_now.import(cx, table, row).await {
        Err(Stop::Later {
            failure,
            after,
            untouched: true,
        }) => {
            state.sent = false;
            return Err(Stop::Later {
                failure,
                after,
                untouched: true,
            });
        }
        // Whether the row is there is not known: nothing is sent again.
        Err(Stop::Later { failure, .. }) => return Err(Stop::Over(failure)),
        other => other?,
    };
    outcome(&answer, cx)
}

/// What the transform maps made of the row.
fn outcome(answer: &Value, cx: &mut StepContext<'_>) -> Result<Value, Stop> {
    let results = answer["result"].as_array().cloned().unwrap_or_default();
    let mut outcomes = Vec::new();
    let mut errors = Vec::new();
    for result in results.iter().take(MOST_OUTCOMES) {
        let text = |name: &str| words(result[name].as_str().unwrap_or_default());
        let (map, status) = (text("transform_map"), text("status"));
        cx.info(UNIT, format!("{map}: {status} {}", text("display_value")));
        if status == "error" {
            errors.push(format!("{map}: {}", text("error_message")));
        }
        outcomes.push(json!({
            "transformMap": map, "status": status, "targetTable": text("table"), "targetRecordURL": text("record_link"),
            "displayName": text("display_name"), "displayValue": text("display_value"), "errorMessage": text("error_message"),
        }));
    }
    if !errors.is_empty() {
        return Err(Stop::over(format!(
            "ServiceNow could not transform the row: {}.",
            errors.join("; ")
        )));
    }
    let number = |name: &str| words(answer[name].as_str().unwrap_or_default());
    Ok(as_output(&json!({"output": {
        "importSetNumber": number("import_set"),
        "stagingTable": number("staging_table"),
        "transformMapOutcomes": outcomes,
    }})))
}
