//! What keeps two versions of a function from sharing the traffic of its aliases.

use serde_json::Value;
use slipway_model::status::Failure;

use super::calls;
use super::function::LATEST;
use super::ready::unlike;
use super::release::Release;
use crate::context::StepContext;
use crate::deployment::invalid;

/// Refuses a canary whose version and those behind `aliases` could not share traffic; before anything is published or
/// changed.
pub(super) async fn check(
    release: &Release,
    aliases: &[Value],
    cx: &mut StepContext<'_>,
) -> Result<(), Failure> {
    let documents = &release.documents;
    for alias in aliases {
        if alias["FunctionVersion"] == LATEST {
            return Err(invalid(format!(
                "alias {} of function {} points to $LATEST, which cannot share traffic: point it to a published version, \
                 then run the canary.",
                alias["Name"].as_str().unwrap_or_default(),
                documents.short_name()
            )));
        }
    }
    let wanted = cx
        .secrets()
        .reveal(Value::Object(documents.configuration()))
        .await?;
    for alias in aliases {
        let version = alias["FunctionVersion"].as_str();
        let now = calls::configuration(&release.site, documents.name(), version).await?;
        if let Some(what) = now.as_ref().and_then(|now| unlike(now, &wanted)) {
            return Err(invalid(format!(
                "the canary of function {} has another {what} than version {} behind alias {}, and AWS splits traffic only \
                 between versions with the same: change it with AwsLambdaDeploy.",
                documents.short_name(),
                version.unwrap_or_default(),
                alias["Name"].as_str().unwrap_or_default()
            )));
        }
    }
    Ok(())
}
