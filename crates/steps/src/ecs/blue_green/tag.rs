//! `BG_VERSION`: which of two services serves.

use aws_sdk_ecs::types::{Service, Tag};
use slipway_model::status::Failure;

use super::super::site::Site;
use crate::aws::error::{Doing, failure};
use crate::context::StepContext;

/// Key of the tag (docs: ecs-deployment-tutorial, log).
const KEY: &str = "BG_VERSION";

/// Value of the service that serves.
pub(super) const BLUE: &str = "BLUE";

/// Value of the service that does not.
pub(super) const GREEN: &str = "GREEN";

/// The value of a service's tag.
pub(super) fn of(service: &Service) -> Option<&str> {
    let mut tags = service.tags().iter();
    tags.find(|tag| tag.key() == Some(KEY))
        .and_then(|tag| tag.value())
}

/// Tags the service `name`. A repetition changes nothing.
pub(super) async fn set(
    cx: &mut StepContext<'_>,
    site: &Site,
    (name, arn): (&str, &str),
    value: &'static str,
    unit: &'static str,
) -> Result<(), Failure> {
    let doing = format!("tag service `{name}` in {site} with {KEY}={value}");
    site.aws
        .ecs
        .tag_resource()
        .resource_arn(arn)
        .tags(Tag::builder().key(KEY).value(value).build())
        .send()
        .await
        .map_err(|error| failure(Doing::with(&doing), error))?;
    cx.info(
        unit,
        format!("Tag: [{KEY}, {value}] is associated with Service {name}"),
    );
    Ok(())
}
