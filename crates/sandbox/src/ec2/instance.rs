//! Instances, which Auto Scaling groups start and end.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filters;
use super::image;
use super::request::{missing, page};
use crate::account::Account;
use crate::autoscaling;
use crate::caller::Caller;
use crate::ecs::placement;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::image::ImageBehaviour;

/// Terminated instances that stay visible, whatever their age.
const TERMINATED: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    Pending,
    Running,
    ShuttingDown,
    Terminated,
}

impl State {
    fn code(self) -> (u8, &'static str) {
        match self {
            Self::Pending => (0, "pending"),
            Self::Running => (16, "running"),
            Self::ShuttingDown => (32, "shutting-down"),
            Self::Terminated => (48, "terminated"),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) region: String,
    pub(crate) image: String,
    pub(crate) kind: String,
    pub(crate) zone: String,
    pub(crate) address: String,
    pub(crate) launched: Timestamp,
    pub(crate) state: State,
    /// Name of its Auto Scaling group.
    pub(crate) group: String,
    pub(crate) template: (String, String, u64),
    /// The ECS cluster that its user data makes it a container instance of.
    #[serde(default)]
    pub(crate) cluster: Option<String>,
}

impl Account {
    /// Adds an instance, and forgets one that ended long ago when there are too many.
    pub(crate) fn put_instance(&mut self, instance: Instance) {
        self.ec2.instances.put(instance.id.clone(), instance);
        let ended = self.ec2.instances.iter();
        let ended: Vec<(Timestamp, String)> = ended
            .filter(|(_, row)| row.state == State::Terminated)
            .map(|(id, row)| (row.launched, id.clone()))
            .collect();
        if ended.len() > TERMINATED
            && let Some((_, oldest)) = ended.into_iter().min()
        {
            self.ec2.instances.take(&oldest);
        }
    }

    /// Puts an instance into a state.
    pub(crate) fn set_instance(&mut self, id: &str, state: State) {
        if let Some(row) = self.ec2.instances.get_mut(id) {
            row.state = state;
            placement::changed(self, id);
        }
    }

    /// All instances, those that have ended lately among them.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.ec2.instances.iter().map(|(_, row)| row)
    }

    /// An instance, by its id.
    pub(crate) fn instance(&self, id: &str) -> Option<&Instance> {
        self.ec2.instances.get(id)
    }
}

/// Whether an instance answers requests. One that is not known here is somebody else's and does.
pub(crate) fn answers(account: &Account, id: &str) -> bool {
    account.instance(id).is_none_or(|instance| {
        instance.state == State::Running
            && image::behaviour(account, &instance.image) != ImageBehaviour::Unhealthy
    })
}

/// Region and name of the Auto Scaling group of an instance.
pub(crate) fn group_of(account: &Account, id: &str) -> Option<(String, String)> {
    let instance = account.instance(id)?;
    Some((instance.region.clone(), instance.group.clone()))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let ids = request.texts("InstanceId")?;
    let filters = Filters::read(request)?;
    all_here(account, caller, &ids)?;
    let mut chosen = Vec::new();
    for (id, row) in account.ec2.instances.iter() {
        let asked = row.region == caller.region && (ids.is_empty() || ids.contains(&id.as_str()));
        if asked && filters.fit(|name| field(row, name))? {
            chosen.push(id.as_str());
        }
    }
    let page = page(request, (5, 1_000), chosen.into_iter())?;
    let rows = page.items.iter().filter_map(|id| account.instance(id));
    let reservations: Vec<Value> = rows.map(|row| reservation(account, row)).collect();
    Ok(json!({"reservationSet": reservations, "nextToken": page.next_token}))
}

/// Refuses ids of no instance of the region.
fn all_here(account: &Account, caller: &Caller, ids: &[&str]) -> Result<(), ApiError> {
    let here = |row: &Instance| row.region == caller.region;
    let mut ids = ids.iter();
    match ids.find(|id| !account.instance(id).is_some_and(here)) {
        Some(id) => Err(ApiError::client(
            "InvalidInstanceID.NotFound",
            format!("The instance ID '{id}' does not exist"),
        )),
        None => Ok(()),
    }
}

/// `TerminateInstances`: all or none; a group whose instance it was starts another one.
pub(super) fn terminate(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let ids = request.texts("InstanceId")?;
    if ids.is_empty() {
        return Err(missing("InstanceId"));
    }
    all_here(account, caller, &ids)?;
    let shown = |(code, name): (u8, &str)| json!({"code": code, "name": name});
    let mut changed = Vec::new();
    for id in ids {
        let before = account.instance(id).map(|row| row.state);
        let after = match before {
            Some(State::Terminated) => State::Terminated,
            _ => State::ShuttingDown,
        };
        if after == State::ShuttingDown {
            account.set_instance(id, after);
            autoscaling::ended_behind_it(account, id);
        }
        changed.push(json!({
            "instanceId": id,
            "currentState": shown(after.code()),
            "previousState": before.map(|before| shown(before.code())),
        }));
    }
    Ok(json!({"instancesSet": changed}))
}

fn field(row: &Instance, name: &str) -> Option<Vec<String>> {
    let (code, state) = row.state.code();
    Some(match name {
        "instance-id" => vec![row.id.clone()],
        "image-id" => vec![row.image.clone()],
        "instance-state-name" => vec![state.to_owned()],
        "instance-state-code" => vec![code.to_string()],
        "instance-type" => vec![row.kind.clone()],
        "tag:aws:autoscaling:groupName" => vec![row.group.clone()],
        "tag-key" => vec!["aws:autoscaling:groupName".to_owned()],
        name if name.starts_with("tag:") => Vec::new(),
        _ => return None,
    })
}

fn reservation(account: &Account, row: &Instance) -> Value {
    let (code, state) = row.state.code();
    let (id, _, version) = &row.template;
    json!({
        "reservationId": row.id.replacen("i-", "r-", 1),
        "ownerId": account.id,
        "instancesSet": [{
            "instanceId": row.id,
            "imageId": row.image,
            "instanceState": {"code": code, "name": state},
            "instanceType": row.kind,
            "launchTime": row.launched.to_string(),
            "privateIpAddress": row.address,
            "placement": {"availabilityZone": row.zone, "tenancy": "default"},
            "tagSet": [
                {"key": "aws:autoscaling:groupName", "value": row.group},
                {"key": "aws:ec2launchtemplate:id", "value": id},
                {"key": "aws:ec2launchtemplate:version", "value": version.to_string()},
            ],
        }],
    })
}
