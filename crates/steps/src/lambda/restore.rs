//! Configurations as requests, to compare them and to bring them back.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::aws::document::{fields, within};

/// `UpdateFunctionConfiguration` that makes a function what `configuration` says: also what it does not have.
pub(super) fn as_request(configuration: &Value) -> Map<String, Value> {
    let image = configuration["PackageType"] == "Image";
    let mut request = Map::new();
    for name in fields("UpdateFunctionConfiguration") {
        let now = &configuration[name];
        let value = match name {
            "RevisionId" => continue,
            "Runtime" | "Handler" | "Layers" if image => continue,
            "ImageConfig" if !image => continue,
            "ImageConfig" => or(
                &configuration["ImageConfigResponse"]["ImageConfig"],
                json!({}),
            ),
            "Layers" => {
                let layers = now.as_array().into_iter().flatten();
                json!(layers.map(|layer| layer["Arn"].clone()).collect::<Vec<_>>())
            }
            "VpcConfig" => vpc(now),
            "Environment" => json!({"Variables": or(&now["Variables"], json!({}))}),
            "DeadLetterConfig" => json!({"TargetArn": or(&now["TargetArn"], json!(""))}),
            "KMSKeyArn" | "Description" => or(now, json!("")),
            "SnapStart" => json!({"ApplyOn": or(&now["ApplyOn"], json!("None"))}),
            "FileSystemConfigs" => or(now, json!([])),
            _ if now.is_null() => continue,
            _ => now.clone(),
        };
        request.insert(name.to_owned(), value);
    }
    request
}

fn or(value: &Value, default: Value) -> Value {
    if value.is_null() {
        default
    } else {
        value.clone()
    }
}

fn vpc(now: &Value) -> Value {
    let mut vpc = json!({
        "SubnetIds": or(&now["SubnetIds"], json!([])),
        "SecurityGroupIds": or(&now["SecurityGroupIds"], json!([])),
    });
    if now["Ipv6AllowedForDualStack"] == true {
        vpc["Ipv6AllowedForDualStack"] = json!(true);
    }
    vpc
}

/// Whether a function is what `wanted` says, `CreateFunction` or `UpdateFunctionConfiguration`. Fields that AWS does
/// not show are taken to be different.
pub(super) fn fits(wanted: &Value, configuration: &Value) -> bool {
    let now = as_request(configuration);
    let wanted = wanted.as_object().into_iter().flatten();
    let mut wanted = wanted.filter(|(name, _)| !NOT_SHOWN.contains(&name.as_str()));
    wanted.all(|(name, value)| {
        let now = now.get(name).unwrap_or(&configuration[name.as_str()]);
        // What is set as a whole loses what is not named.
        if name == "Environment" {
            value == now
        } else {
            within(value, now)
        }
    })
}

/// Whether two configurations have the same code and do the same. A version may be described otherwise than `$LATEST`.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    let without = |configuration: &Value| {
        let mut request = as_request(configuration);
        request.shift_remove("Description");
        request
    };
    let code = &one["CodeSha256"];
    code.is_string() && *code == other["CodeSha256"] && without(one) == without(other)
}

/// Members of `CreateFunction` that a configuration does not show, or shows in another form.
const NOT_SHOWN: &[&str] = &[
    "Code",
    "CodeSigningConfigArn",
    "FunctionName",
    "Publish",
    "PublishTo",
    "RevisionId",
    "Tags",
];

/// Digest of a configuration: it may hold secrets.
pub(super) fn digest(configuration: &Value) -> String {
    let request = Value::Object(as_request(configuration)).to_string();
    let digest = Sha256::digest(request);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_becomes_the_request_that_makes_it() {
        let configuration = json!({
            "FunctionName": "shop", "PackageType": "Zip", "Version": "7", "Runtime": "nodejs22.x", "Handler": "a.b",
            "Layers": [{"Arn": "arn:l:1", "CodeSize": 7}], "VpcConfig": {"SubnetIds": ["s"], "SecurityGroupIds": [], "VpcId": "v"},
            "SnapStart": {"ApplyOn": "None", "OptimizationStatus": "Off"}, "Timeout": 9, "State": "Active",
        });
        let request = as_request(&configuration);
        assert_eq!(request["Layers"], json!(["arn:l:1"]));
        assert_eq!(
            request["VpcConfig"],
            json!({"SubnetIds": ["s"], "SecurityGroupIds": []})
        );
        assert_eq!(request["DeadLetterConfig"], json!({"TargetArn": ""}));
        assert_eq!(request["Environment"], json!({"Variables": {}}));
        assert!(!request.contains_key("ImageConfig") && !request.contains_key("FunctionName"));
    }

    #[test]
    fn a_function_fits_when_it_has_all_that_is_wanted() {
        let now = json!({
            "PackageType": "Zip", "Timeout": 9, "Runtime": "nodejs22.x", "Architectures": ["arm64"],
            "LoggingConfig": {"LogFormat": "JSON", "LogGroup": "/aws/lambda/shop"},
            "Environment": {"Variables": {"A": "1", "B": "2"}},
        });
        let table = [
            (
                json!({"Timeout": 9, "Code": {}, "FunctionName": "x", "Tags": {}}),
                true,
            ),
            (
                json!({"Architectures": ["arm64"], "LoggingConfig": {"LogFormat": "JSON"}}),
                true,
            ),
            (json!({"Timeout": 10}), false),
            (
                json!({"Environment": {"Variables": {"A": "1", "B": "2"}}}),
                true,
            ),
            (json!({"Environment": {"Variables": {"A": "2"}}}), false),
            (json!({"Environment": {"Variables": {"A": "1"}}}), false),
            (json!({"Layers": []}), true),
            (json!({"Layers": ["arn:l:1"]}), false),
            (json!({"NewField": 1}), false),
        ];
        for (wanted, expected) in table {
            assert_eq!(fits(&wanted, &now), expected, "{wanted}");
        }
    }
}
