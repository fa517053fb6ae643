//! `POST /slipway/api/plan/{pipeline}`: what a run would do, without starting it.
//!
//! Query and body are those of an execute request: `inputSetIdentifiers`, and `pipeline:` YAML with the
//! runtime inputs, or nothing. Answer: `{"data":{"text":"…"}}`, the plan as readable text; 400 with every
//! fault when it cannot be planned. With `diff=true` the text is what changed since the newest run that was
//! planned, which `against` names; 404 when there is none.

use axum::extract::Path;
use serde_json::json;

use crate::body::Body;
use crate::call::Call;
use crate::envelope::success;
use crate::error::{ApiError, ApiResult};
use crate::execute::inputs;
use crate::pipeline::place;
use crate::{entity, runs};

pub(super) async fn plan(
    Call(deps, caller, query): Call,
    Path(id): Path<String>,
    body: Body,
) -> ApiResult {
    let place = place(query.project_scope(&caller)?, &id)?;
    let pipeline = entity::get(&deps, &place).await?;
    let plan = runs::plan(&deps, &caller, &pipeline, inputs(&query, body.text()?)?).await?;
    if query.one("diff")? != Some("true") {
        return Ok(success(json!({"text": slipway_plan::text(&plan)})));
    }
    let Some((run, last)) = runs::last_plan(&deps, &pipeline).await? else {
        let message = format!("Pipeline [{id}] has not run yet: there is no plan to compare with");
        return Err(ApiError::not_found(message));
    };
    let text = slipway_plan::diff(&last, &plan);
    Ok(success(json!({"text": text, "against": run.as_str()})))
}
