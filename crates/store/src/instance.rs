//! What was deployed, and the instances that were counted of it.

use aws_sdk_dynamodb::types::ReturnValue;
use slipway_model::id::{EntityId, Scope};

use crate::Store;
use crate::dynamo::{Keys, Range};
use crate::entity::skipped;
use crate::error::StoreError;
use crate::item::{Change, Item, json, read_json, read_text, text};
use crate::key::{self, Key, Table};
use crate::record::{DeployedRecord, InstanceRecord};

/// Which instances are asked for; `None` is any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Of this service.
    pub service: Option<EntityId>,
    /// In this environment.
    pub environment: Option<EntityId>,
    /// In this infrastructure.
    pub infrastructure: Option<EntityId>,
}

impl InstanceFilter {
    fn keeps(&self, deployed: &DeployedRecord) -> bool {
        let same = |asked: &Option<EntityId>, is: &EntityId| asked.as_ref().is_none_or(|a| a == is);
        same(&self.service, &deployed.service)
            && same(&self.environment, &deployed.environment)
            && same(&self.infrastructure, &deployed.infrastructure)
    }
}

impl Store {
    /// Notes what was deployed, and by which run. Instances that were counted stay; so does their count
    /// when the record has none.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_deployed(&self, deployed: &DeployedRecord) -> Result<(), StoreError> {
        let what = describe(deployed);
        let counted = deployed
            .counted
            .map(|counted| json(&what, &counted))
            .transpose()?;
        let bare = DeployedRecord {
            counted: None,
            uncounted: None,
            ..deployed.clone()
        };
        let change = Change::new(deployed_key(deployed))
            .set("body", self.store_value(&what, &bare).await?)
            .set_some("counted", counted);
        self.change(change, ReturnValue::None).await.map(drop)
    }

    /// Replaces the instances of what was deployed, and its count, now.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put_instances(
        &self,
        deployed: &DeployedRecord,
        instances: &[InstanceRecord],
    ) -> Result<(), StoreError> {
        let what = describe(deployed);
        let count = u32::try_from(instances.len()).unwrap_or(u32::MAX);
        let change = Change::new(deployed_key(deployed))
            .set("instances", self.store_value(&what, instances).await?)
            .set("counted", json(&what, &(count, self.now_ms()))?)
            .remove("uncounted");
        self.change(change, ReturnValue::None).await.map(drop)
    }

    /// Notes that what was deployed could not be counted, and why. What was counted before stays.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn note_uncounted(
        &self,
        deployed: &DeployedRecord,
        why: &str,
    ) -> Result<(), StoreError> {
        let change = Change::new(deployed_key(deployed)).set("uncounted", text(why));
        self.change(change, ReturnValue::None).await.map(drop)
    }

    /// Counted instances of a scope.
    ///
    /// # Errors
    /// When the store cannot be read. Records that cannot be read are left out with a warning.
    pub async fn list_instances(
        &self,
        scope: &Scope,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceRecord>, StoreError> {
        let mut found = Vec::new();
        for (item, deployed) in self.deployed_of(scope).await? {
            if !filter.keeps(&deployed) {
                continue;
            }
            match self
                .load_value::<Vec<InstanceRecord>>(&item, "instances")
                .await
            {
                Ok(instances) => found.extend(instances.unwrap_or_default()),
                Err(error @ StoreError::Unreadable { .. }) => skipped(&item, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// What was deployed of a service to an infrastructure, if anything was.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find_deployed(
        &self,
        scope: &Scope,
        (service, environment, infrastructure): (&EntityId, &EntityId, &EntityId),
    ) -> Result<Option<DeployedRecord>, StoreError> {
        let key = key_of(scope, service, environment, infrastructure);
        let items = self.get(&key).await?.into_iter().collect();
        let found = self.read_deployed(items).await?;
        Ok(found.into_iter().next().map(|(_, deployed)| deployed))
    }

    /// What was deployed in a scope.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_deployed_in(&self, scope: &Scope) -> Result<Vec<DeployedRecord>, StoreError> {
        let found = self.deployed_of(scope).await?;
        Ok(found.into_iter().map(|(_, deployed)| deployed).collect())
    }

    /// All that was ever deployed, in all scopes: what the sweep counts.
    ///
    /// # Errors
    /// When the store cannot be read. Records that cannot be read are left out with a warning.
    pub async fn list_deployed(&self) -> Result<Vec<DeployedRecord>, StoreError> {
        let mut found = Vec::new();
        for shard in 0..key::SHARDS {
            let range = Range::new(Table::Instances, partition(shard), Keys::All);
            let items = self.query(range).await?;
            found.extend(
                self.read_deployed(items)
                    .await?
                    .into_iter()
                    .map(|(_, deployed)| deployed),
            );
        }
        Ok(found)
    }

    /// Forgets what was deployed and its instances: there is nothing to count any more.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete_deployed(&self, deployed: &DeployedRecord) -> Result<(), StoreError> {
        self.delete(&deployed_key(deployed), None).await.map(drop)
    }

    async fn deployed_of(&self, scope: &Scope) -> Result<Vec<(Item, DeployedRecord)>, StoreError> {
        let keys = Keys::Prefix(format!("{}/", key::scope(scope)));
        let range = Range::new(Table::Instances, partition(key::shard(scope)), keys);
        let items = self.query(range).await?;
        self.read_deployed(items).await
    }

    async fn read_deployed(
        &self,
        items: Vec<Item>,
    ) -> Result<Vec<(Item, DeployedRecord)>, StoreError> {
        let mut found = Vec::with_capacity(items.len());
        for item in items {
            match self.load_value::<DeployedRecord>(&item, "body").await {
                // Instances without a deployment: its note is still to come.
                Ok(None) => {}
                Ok(Some(mut deployed)) => {
                    deployed.counted = read_json("a count", &item, "counted").unwrap_or(None);
                    deployed.uncounted = read_text(&item, "uncounted").map(str::to_owned);
                    found.push((item, deployed));
                }
                Err(error @ StoreError::Unreadable { .. }) => skipped(&item, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

fn partition(shard: u8) -> String {
    format!("deployed#{shard:02}")
}

fn deployed_key(deployed: &DeployedRecord) -> Key {
    key_of(
        &deployed.scope,
        &deployed.service,
        &deployed.environment,
        &deployed.infrastructure,
    )
}

fn key_of(
    scope: &Scope,
    service: &EntityId,
    environment: &EntityId,
    infrastructure: &EntityId,
) -> Key {
    let sk = format!(
        "{}/{}/{}/{}",
        key::scope(scope),
        key::part(service.as_str()),
        key::part(environment.as_str()),
        key::part(infrastructure.as_str()),
    );
    Key::new(Table::Instances, partition(key::shard(scope)), sk)
}

fn describe(deployed: &DeployedRecord) -> String {
    format!(
        "deployment of {} to {}",
        deployed.service, deployed.infrastructure
    )
}
