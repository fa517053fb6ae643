//! Documents become forms: `Tags.member.1.Key=a`, and EC2's `TagSpecification.1.Tag.1.Key=a`.

use std::collections::HashMap;
use std::sync::OnceLock;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::Service;
use crate::aws::document::{self, Below};

/// Deepest nesting of a request.
const DEEPEST: usize = 100;

/// What stands in a form as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

type Names = HashMap<(&'static str, &'static str), &'static str>;

/// Names of EC2's fields in the Query protocol where they are not their own, by shape and field.
fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let lines = include_str!("../query_names.txt").lines();
        let lines = lines.filter(|line| !line.starts_with('#'));
        let shapes = lines.filter_map(|line| line.split_once(": "));
        let fields = shapes.flat_map(|(shape, fields)| {
            let fields = fields.split_ascii_whitespace();
            fields
                .filter_map(|field| field.split_once('='))
                .map(move |(field, name)| ((shape, field), name))
        });
        fields.collect()
    })
}

/// Adds the members of a request to its form.
pub(super) fn flatten(
    service: Service,
    action: &str,
    document: &Value,
    pairs: &mut Vec<(String, String)>,
) {
    let mut writer = Writer { service, pairs };
    writer.value("", document, &Below::request(action), 0);
}

struct Writer<'p> {
    service: Service,
    pairs: &'p mut Vec<(String, String)>,
}

impl Writer<'_> {
    fn value(&mut self, at: &str, value: &Value, kind: &Below, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let text = match value {
            Value::Null => return,
            Value::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    let member = match self.service {
                        Service::Ec2 => "",
                        _ => ".member",
                    };
                    let here = format!("{at}{member}.{}", number + 1);
                    self.value(&here, item, &kind.item(), depth + 1);
                }
                return;
            }
            Value::Object(members) => {
                for (name, value) in members {
                    let written = self.name(kind, name);
                    let here = match at {
                        "" => written,
                        at => format!("{at}.{written}"),
                    };
                    self.value(&here, value, &kind.field(name), depth + 1);
                }
                return;
            }
            Value::String(text) => text.clone(),
            scalar => scalar.to_string(),
        };
        self.pairs.push((at.to_owned(), text));
    }

    /// A field as the protocol writes it. EC2's names begin with a capital, whatever the document says.
    fn name(&self, kind: &Below, field: &str) -> String {
        if self.service != Service::Ec2 {
            return field.to_owned();
        }
        if let Some((shape, field)) = kind.known(field)
            && let Some(name) = names().get(&(shape, field))
        {
            return (*name).to_owned();
        }
        document::capitalised(field)
    }
}

/// The form as a request's body.
pub(super) fn encode(pairs: &[(String, String)]) -> String {
    let encode = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(service: Service, action: &str, document: &Value) -> String {
        let mut pairs = Vec::new();
        flatten(service, action, document, &mut pairs);
        encode(&pairs)
    }

    #[test]
    fn ec2_has_names_of_its_own() {
        let document = json!({
            "LaunchTemplateName": "web",
            "TagSpecifications": [{"ResourceType": "launch-template", "Tags": [{"Key": "a", "Value": "b c"}]}],
            "LaunchTemplateData": {
                "ImageId": "ami-1",
                "EbsOptimized": true,
                "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}],
                "NetworkInterfaces": [{"Groups": ["sg-1", "sg-2"], "DeviceIndex": 0}],
                "NewerThanUs": [{"AnyThing": 1}],
            },
        });
        insta::assert_snapshot!(
            form(Service::Ec2, "CreateLaunchTemplate", &document).replace('&', "\n"),
            @"
        LaunchTemplateName=web
        TagSpecification.1.ResourceType=launch-template
        TagSpecification.1.Tag.1.Key=a
        TagSpecification.1.Tag.1.Value=b%20c
        LaunchTemplateData.ImageId=ami-1
        LaunchTemplateData.EbsOptimized=true
        LaunchTemplateData.BlockDeviceMapping.1.DeviceName=%2Fdev%2Fxvda
        LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize=8
        LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1=sg-1
        LaunchTemplateData.NetworkInterface.1.SecurityGroupId.2=sg-2
        LaunchTemplateData.NetworkInterface.1.DeviceIndex=0
        LaunchTemplateData.NewerThanUs.1.AnyThing=1
        "
        );
    }

    #[test]
    fn others_count_members() {
        let document = json!({
            "AutoScalingGroupName": "web&shop",
            "Tags": [{"Key": "a", "PropagateAtLaunch": false}],
            "AvailabilityZones": [],
            "Context": null,
        });
        insta::assert_snapshot!(
            form(Service::AutoScaling, "CreateAutoScalingGroup", &document).replace('&', "\n"),
            @"
        AutoScalingGroupName=web%26shop
        Tags.member.1.Key=a
        Tags.member.1.PropagateAtLaunch=false
        "
        );
    }
}
