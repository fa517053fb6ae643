//! The services `<serviceName>__N` of a cluster.

use aws_sdk_ecs::types::Service;
use slipway_model::status::Failure;

use super::super::cluster::{self, number};
use super::super::site::Site;

/// One of them.
pub(super) struct Version {
    pub(super) number: u32,
    pub(super) service: Service,
}

impl Version {
    pub(super) fn name(&self) -> &str {
        self.service.service_name().unwrap_or_default()
    }

    /// Whether it runs tasks, or is to.
    pub(super) fn works(&self) -> bool {
        let active = self.service.status() == Some("ACTIVE");
        active && (self.service.desired_count() > 0 || self.service.running_count() > 0)
    }

    /// Whether it is there, runs no tasks and is to run none.
    pub(super) fn is_idle(&self) -> bool {
        self.service.status() == Some("ACTIVE") && !self.works()
    }
}

/// `<serviceName>__N`.
pub(super) fn name(base: &str, number: u32) -> String {
    format!("{base}__{number}")
}

/// All that are there, those that are being deleted too, in the order of their numbers.
pub(super) async fn list(site: &Site, base: &str) -> Result<Vec<Version>, Failure> {
    let mut names = cluster::names(site).await?;
    names.retain(|name| number(base, name).is_some());
    let services = cluster::services(site, &names).await?;
    let version = |service: Service| {
        let number = service.service_name().and_then(|name| number(base, name))?;
        Some(Version { number, service })
    };
    let mut versions: Vec<Version> = services.into_iter().filter_map(version).collect();
    versions.sort_by_key(|version| version.number);
    Ok(versions)
}
