//! `GET /slipway/api/instances`: what is running of what was deployed, as the last count saw it.
//!
//! Query: organization and project; `serviceIdentifier`, `environmentIdentifier` narrow it; paging as
//! everywhere. Answer: a page of `{"service","environment","infrastructure","key","artifact","run",
//! "seen_ms","info","instanceKey","infrastructureMappingId"}` with the platform's own fields in `info`; the last two
//! are what `/ng/api/rollback` names an instance by.

use serde_json::{Value, json};
use slipway_store::InstanceFilter;
use slipway_store::record::InstanceRecord;

use crate::call::Call;
use crate::envelope::success;
use crate::error::ApiResult;
use crate::page::Page;

pub(super) async fn list(Call(deps, caller, query): Call) -> ApiResult {
    let scope = query.project_scope(&caller)?;
    let page = Page::ng(&query)?;
    let id =
        |key: &str| -> ApiResult<_> { query.one(key)?.map(crate::identifier::entity).transpose() };
    let filter = InstanceFilter {
        service: id("serviceIdentifier")?,
        environment: id("environmentIdentifier")?,
        infrastructure: id("infrastructureIdentifier")?,
    };
    let found = deps.store.list_instances(&scope, &filter).await?;
    let total = found.len();
    let content = page.cut(found).iter().map(render).collect();
    Ok(success(page.render(content, total)))
}

fn render(instance: &InstanceRecord) -> Value {
    json!({
        "service": instance.service.as_str(),
        "environment": instance.environment.as_str(),
        "infrastructure": instance.infrastructure.as_str(),
        "key": instance.key,
        "artifact": instance.artifact,
        "run": instance.run.as_ref().map(|run| run.as_str()),
        "seen_ms": instance.seen_ms,
        "info": instance.info,
        "instanceKey": instance.key,
        "infrastructureMappingId": crate::rollback::mapping_id(instance),
    })
}
