//! The base group of an infrastructure: new groups are made like it, and it is never changed.

use serde_json::{Map, Value, json};
use slipway_model::status::Failure;

use super::group::{self, Group, Standing};
use super::hooks::{self, Hooks};
use super::manifest::Documents;
use super::site::Site;
use super::{PREPARE, template, wrong};
use crate::aws::document::fields;
use crate::context::StepContext;

/// What a new group never takes from its base: what is its own, and how many instances it has.
const OWN: &[&str] = &[
    "AutoScalingGroupName",
    "InstanceId",
    "LaunchConfigurationName",
    "LaunchTemplate",
    "MinSize",
    "MaxSize",
    "DesiredCapacity",
    "Tags",
    "TrafficSources",
    "ServiceLinkedRoleARN",
];

/// Fills in what the manifests do not say with what the base group has.
pub(super) async fn adopt(
    cx: &mut StepContext<'_>,
    site: &Site,
    documents: &mut Documents,
) -> Result<(), Failure> {
    let Some(name) = &site.base else {
        return Ok(());
    };
    let Standing::There(base) = group::describe(site, name).await? else {
        return Err(wrong(format!(
            "The base group {name} of infrastructure {} does not exist in {site}: correct `baseAsgName`.",
            site.infrastructure
        )));
    };
    cx.info(PREPARE, format!("New groups are made like base Asg {name}"));
    let mut configuration = settings(&base);
    let written = documents.configuration.as_object().cloned();
    configuration.extend(written.unwrap_or_default());
    if !configuration.contains_key(hooks::FIELD)
        && let Some(hooks) = Hooks::describe(site, name).await?.written()
    {
        configuration.insert(hooks::FIELD.to_owned(), hooks);
    }
    documents.configuration = Value::Object(configuration);
    let look = template::look(site, name).await?;
    let Some(version) = template::in_use(site, &base, &look).await? else {
        return Err(wrong(format!(
            "The base group {name} in {site} has a launch configuration; only groups with a launch template can be a \
             base."
        )));
    };
    let doing = format!("read the launch template of base group {name}");
    let request = json!({
        "LaunchTemplateId": version.id, "LaunchTemplateVersion": [version.number],
    });
    let answer = site
        .ec2("DescribeLaunchTemplateVersions", &request, &doing)
        .await?;
    let shown = &answer["launchTemplateVersionSet"][0]["launchTemplateData"];
    let data = documents.template["LaunchTemplateData"].as_object();
    let mut merged = requested(shown).as_object().cloned().unwrap_or_default();
    let written = data.cloned().unwrap_or_default();
    // EC2's name in the protocol is the field's own without its plural.
    merged.retain(|name, _| !written.contains_key(&format!("{name}s")));
    merged.extend(written);
    documents.template["LaunchTemplateData"] = Value::Object(merged);
    Ok(())
}

/// The settings of a group as `CreateAutoScalingGroup` takes them.
fn settings(base: &Group) -> Map<String, Value> {
    let kept = fields("CreateAutoScalingGroup").filter(|field| !OWN.contains(field));
    let kept = kept.filter_map(|field| Some((field.to_owned(), base.0.get(field)?.clone())));
    let mut kept: Map<String, Value> = kept.filter(|(_, value)| !value.is_null()).collect();
    if kept
        .get("VPCZoneIdentifier")
        .is_some_and(|subnets| subnets != "")
    {
        kept.shift_remove("AvailabilityZones");
    }
    let tags = base.0["Tags"].as_array().into_iter().flatten();
    let own = |tag: &&Value| !tag["Key"].as_str().unwrap_or("aws:").starts_with("aws:");
    let tags = tags.filter(own).map(|tag| {
        json!({
            "Key": tag["Key"], "Value": tag["Value"], "PropagateAtLaunch": tag["PropagateAtLaunch"],
        })
    });
    kept.insert("Tags".to_owned(), tags.collect());
    kept
}

/// Launch template data as answers show it, with the names of requests: `BlockDeviceMapping` for
/// `blockDeviceMappingSet`.
fn requested(shown: &Value) -> Value {
    match shown {
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, member)| {
                let name = match name.as_str() {
                    "groupSet" => "SecurityGroupId".to_owned(),
                    "licenseSet" => "LicenseSpecification".to_owned(),
                    name => capitalised(name.strip_suffix("Set").unwrap_or(name)),
                };
                let mut member = requested(member);
                if name == "MetadataOptions"
                    && let Some(fields) = member.as_object_mut()
                {
                    // How far the options are applied is no option.
                    fields.shift_remove("State");
                }
                (name, member)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(requested).collect(),
        other => other.clone(),
    }
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_requests() {
        let shown = json!({
            "imageId": "ami-1",
            "blockDeviceMappingSet": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "8"}}],
            "networkInterfaceSet": [{"groupSet": ["sg-1"]}],
            "metadataOptions": {"state": "applied", "httpTokens": "required"},
            "tagSpecificationSet": [{"resourceType": "instance", "tagSet": [{"key": "a", "value": "b"}]}],
        });
        let expected = json!({
            "ImageId": "ami-1",
            "BlockDeviceMapping": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": "8"}}],
            "NetworkInterface": [{"SecurityGroupId": ["sg-1"]}],
            "MetadataOptions": {"HttpTokens": "required"},
            "TagSpecification": [{"ResourceType": "instance", "Tag": [{"Key": "a", "Value": "b"}]}],
        });
        assert_eq!(requested(&shown), expected);
    }
}
