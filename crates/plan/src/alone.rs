//! Where a stage deploys alone.

use crate::StagePlan;

impl StagePlan {
    /// What only one stage may deploy to at a time: a service on an infrastructure (FEATURES 13, *Resource constraint*),
    /// as the references of service, environment, connector and infrastructure, where these live in the scope of the
    /// pipeline. `None` for stages that may run beside others.
    pub fn deploys_alone_to(&self) -> Option<[&str; 4]> {
        let (service, environment) = (self.service.as_ref()?, self.environment.as_ref()?);
        let infrastructure = self.infrastructure.as_ref()?;
        let connector = infrastructure.connector.as_ref();
        let parts = [
            service.reference.as_str(),
            environment.identifier.as_str(),
            connector.map_or("-", |connector| connector.reference.as_str()),
            infrastructure.identifier.as_str(),
        ];
        (!infrastructure.allow_simultaneous_deployments).then_some(parts)
    }
}
