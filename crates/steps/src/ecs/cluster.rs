//! The services of a cluster, and whose they are.

use aws_sdk_ecs::types::{Service, ServiceField};
use slipway_model::status::{ErrorType, Failure};
use slipway_store::record::DeployedRecord;

use super::beside::{self, Role};
use super::site::Site;
use crate::aws::error::{Doing, failure};
use crate::context::{StepContext, store_failure};

/// Most services that one `DescribeServices` takes (ECS API reference).
const DESCRIBED_AT_ONCE: usize = 10;

/// Most services of one page of `ListServices` (ECS API reference).
const LISTED_AT_ONCE: i32 = 100;

/// The names of all services of the cluster, of those that are being deleted too.
pub(super) async fn names(site: &Site) -> Result<Vec<String>, Failure> {
    let doing = format!("list the services of {site}");
    let mut names: Vec<String> = Vec::new();
    let mut next = None;
    loop {
        let page = site
            .aws
            .ecs
            .list_services()
            .cluster(&site.cluster)
            .max_results(LISTED_AT_ONCE)
            .set_next_token(next)
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        let arns = page.service_arns.unwrap_or_default();
        let found = arns.iter().filter_map(|arn| arn.rsplit('/').next());
        names.extend(found.map(str::to_owned));
        next = page.next_token;
        if next.is_none() {
            return Ok(names);
        }
    }
}

/// These services with their tags; those that are gone meanwhile are left out.
pub(super) async fn services(site: &Site, names: &[String]) -> Result<Vec<Service>, Failure> {
    let doing = format!("look at the services of {site}");
    let mut services = Vec::new();
    for names in names.chunks(DESCRIBED_AT_ONCE) {
        let described = site
            .aws
            .ecs
            .describe_services()
            .cluster(&site.cluster)
            .set_services(Some(names.to_vec()))
            .include(ServiceField::Tags)
            .send()
            .await
            .map_err(|error| failure(Doing::with(&doing), error))?;
        services.extend(described.services.unwrap_or_default());
    }
    Ok(services)
}

/// N of a name `<base>__N`.
pub(super) fn number(base: &str, name: &str) -> Option<u32> {
    let digits = name.strip_prefix(base)?.strip_prefix("__")?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Refuses names that another Slipway service, environment or infrastructure of the project deploys to.
pub(super) async fn check_owner(
    cx: &StepContext<'_>,
    site: &Site,
    names: &[&str],
) -> Result<(), Failure> {
    let all = cx.store().list_deployed_in(&cx.plan().scope).await;
    let all = all.map_err(|error| store_failure("read what was deployed", &error))?;
    let stage = cx.stage();
    let ours = |deployed: &DeployedRecord| {
        let service = stage.service.as_ref().map(|one| &one.identifier);
        let environment = stage.environment.as_ref().map(|one| &one.identifier);
        let infrastructure = stage.infrastructure.as_ref().map(|one| &one.identifier);
        service == Some(&deployed.service)
            && environment == Some(&deployed.environment)
            && infrastructure == Some(&deployed.infrastructure)
    };
    let here = |deployed: &DeployedRecord| {
        deployed.deployment_type == "ECS"
            && deployed.target["region"] == site.aws.region
            && deployed.target["cluster"] == site.cluster
    };
    for deployed in all
        .iter()
        .filter(|deployed| here(deployed) && !ours(deployed))
    {
        let beside = beside::of(&deployed.target);
        let main = deployed.target["serviceName"].as_str();
        let theirs = beside.iter().filter(|beside| beside.role != Role::Left);
        let theirs = theirs.map(|beside| beside.service_name.as_str());
        let mut theirs = theirs.chain(main);
        if let Some(name) = theirs.find(|name| names.contains(name)) {
            return Err(Failure {
                error: ErrorType::Unknown,
                message: format!(
                    "Service {name} in {site} was deployed as service {} to environment {}, infrastructure {}: it \
                     is not replaced. Give the two different `serviceName`s, or different clusters.",
                    deployed.service, deployed.environment, deployed.infrastructure
                ),
                left_behind: None,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_plain_number_behind_the_name() {
        let table = [
            ("web__1", Some(1)),
            ("web__12", Some(12)),
            ("web__01", None),
            ("web__+1", None),
            ("web__", None),
            ("web_1", None),
            ("web", None),
            ("webs__1", None),
            ("web__1__2", None),
            ("web__99999999999", None),
        ];
        for (name, expected) in table {
            assert_eq!(number("web", name), expected, "{name}");
        }
        assert_eq!(number("web__1", "web__1__2"), Some(2));
    }
}
