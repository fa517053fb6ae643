//! Versions of launch templates.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::{invalid, missing, page};
use super::template::{Template, named};
use super::{shown, user_data};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most versions of a launch template (EC2 user guide, launch template restrictions).
const MOST: usize = 10_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Version {
    template: String,
    name: String,
    pub(super) number: u64,
    description: Option<String>,
    created: Timestamp,
    created_by: String,
    /// `LaunchTemplateData` as it was sent.
    pub(super) data: Document,
    token: Option<String>,
}

impl Version {
    fn view(&self, default: u64) -> Value {
        json!({
            "launchTemplateId": self.template,
            "launchTemplateName": self.name,
            "versionNumber": self.number,
            "versionDescription": self.description,
            "createTime": self.created.to_string(),
            "createdBy": self.created_by,
            "defaultVersion": self.number == default,
            "launchTemplateData": shown::value(&Value::Object(self.data.clone())),
        })
    }
}

fn key(template: &Template, number: u64) -> String {
    format!("{}|{number:010}", template.key())
}

/// The data of a version.
pub(crate) fn data<'a>(
    account: &'a Account,
    template: &Template,
    number: u64,
) -> Option<&'a Document> {
    let found = account.ec2.versions.get(&key(template, number));
    found.map(|version| &version.data)
}

/// Members of `LaunchTemplateData` as the Query protocol names them (EC2 API reference, `RequestLaunchTemplateData`).
const MEMBERS: [&str; 34] = [
    "BlockDeviceMapping",
    "CapacityReservationSpecification",
    "CpuOptions",
    "CreditSpecification",
    "DisableApiStop",
    "DisableApiTermination",
    "EbsOptimized",
    "ElasticGpuSpecification",
    "ElasticInferenceAccelerator",
    "EnclaveOptions",
    "HibernationOptions",
    "IamInstanceProfile",
    "ImageId",
    "InstanceInitiatedShutdownBehavior",
    "InstanceMarketOptions",
    "InstanceRequirements",
    "InstanceType",
    "KernelId",
    "KeyName",
    "LicenseSpecification",
    "MaintenanceOptions",
    "MetadataOptions",
    "Monitoring",
    "NetworkInterface",
    "NetworkPerformanceOptions",
    "Operator",
    "Placement",
    "PrivateDnsNameOptions",
    "RamDiskId",
    "SecondaryInterface",
    "SecurityGroup",
    "SecurityGroupId",
    "TagSpecification",
    "UserData",
];

/// Refuses what no launch template may say.
pub(super) fn check_data(data: &Document) -> Result<(), ApiError> {
    if let Some(unknown) = data.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(ApiError::client(
            "UnknownParameter",
            format!("The parameter LaunchTemplateData.{unknown} is not recognized"),
        ));
    }
    if data.contains_key("InstanceType") && data.contains_key("InstanceRequirements") {
        return Err(ApiError::client(
            "InvalidParameterCombination",
            "You can't specify InstanceRequirements and InstanceType in the same request. Specify one or the other, and try \
             again.",
        ));
    }
    user_data::check(Fields(data).text("UserData")?.unwrap_or_default())?;
    let image = Fields(data).text("ImageId")?;
    if image.is_some_and(|id| !id.starts_with("ami-") && !id.starts_with("resolve:ssm:")) {
        return Err(ApiError::client(
            "InvalidAMIID.Malformed",
            format!("Invalid id: \"{}\"", image.unwrap_or_default()),
        ));
    }
    Ok(())
}

/// Stores a version.
pub(super) fn put(
    account: &mut Account,
    caller: &Caller,
    template: &Template,
    number: u64,
    request: Fields<'_>,
    data: Document,
) -> Result<(), ApiError> {
    let version = Version {
        template: template.id.clone(),
        name: template.name.clone(),
        number,
        description: request.text("VersionDescription")?.map(str::to_owned),
        created: account.now,
        created_by: caller.arn.clone(),
        data,
        token: request.text("ClientToken")?.map(str::to_owned),
    };
    account.ec2.versions.put(key(template, number), version);
    Ok(())
}

/// The number of a version that is there.
pub(crate) fn existing(
    account: &Account,
    template: &Template,
    version: Option<&str>,
) -> Result<u64, ApiError> {
    let number = template.number(version);
    let found = number.filter(|number| account.ec2.versions.get(&key(template, *number)).is_some());
    found.ok_or_else(|| {
        ApiError::client(
            "InvalidLaunchTemplateId.VersionNotFound",
            format!(
                "Could not find the specified version {} for the launch template with ID {}.",
                version.unwrap_or("$Default"),
                template.id
            ),
        )
    })
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let template = named(account, caller, request)?.clone();
    let given = request
        .object("LaunchTemplateData")?
        .ok_or_else(|| missing("LaunchTemplateData"))?;
    check_data(given)?;
    let token = request.text("ClientToken")?;
    let prefix = format!("{}|", template.key());
    let same = |(_, row): &(&str, &Version)| token.is_some() && row.token.as_deref() == token;
    let again = account.ec2.versions.under(&prefix).find(same);
    if let Some((_, again)) = again {
        return Ok(json!({"launchTemplateVersion": again.view(template.default)}));
    }
    if account.ec2.versions.under(&prefix).count() >= MOST {
        return Err(ApiError::client(
            "VersionLimitExceeded",
            format!("You have reached the limit of {MOST} versions for this launch template."),
        ));
    }
    // A source version gives what the request does not.
    let mut merged = match request.text("SourceVersion")? {
        None => Document::new(),
        Some(source) => {
            let number = existing(account, &template, Some(source))?;
            data(account, &template, number)
                .cloned()
                .unwrap_or_default()
        }
    };
    merged.extend(given.clone());
    let number = template.latest + 1;
    put(account, caller, &template, number, request, merged)?;
    if let Some(row) = account.ec2.templates.get_mut(&template.key()) {
        row.latest = number;
    }
    let made = account.ec2.versions.get(&key(&template, number));
    Ok(json!({"launchTemplateVersion": made.map(|made| made.view(template.default))}))
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let template = named(account, caller, request)?.clone();
    let wanted = request.texts("LaunchTemplateVersion")?;
    let mut numbers = Vec::new();
    for version in &wanted {
        numbers.push(existing(account, &template, Some(version))?);
    }
    let bound = |name: &str| -> Result<Option<u64>, ApiError> {
        let parse = |text: &str| text.parse().map_err(|_| invalid(format!("{name}: {text}")));
        request.text(name)?.map(parse).transpose()
    };
    let (least, most) = (bound("MinVersion")?, bound("MaxVersion")?);
    let prefix = format!("{}|", template.key());
    let all = account.ec2.versions.under(&prefix);
    let all = all.filter(|(_, row)| {
        (numbers.is_empty() || numbers.contains(&row.number))
            && least.is_none_or(|least| row.number >= least)
            && most.is_none_or(|most| row.number <= most)
    });
    let page = page(request, (1, 200), all.map(|(key, _)| key))?;
    let rows = page.items.iter();
    let rows = rows.filter_map(|key| account.ec2.versions.get(key));
    let views: Vec<Value> = rows.map(|row| row.view(template.default)).collect();
    Ok(json!({"launchTemplateVersionSet": views, "nextToken": page.next_token}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let template = named(account, caller, request)?.clone();
    let (mut gone, mut kept) = (Vec::new(), Vec::new());
    for version in request.texts("LaunchTemplateVersion")? {
        let number: u64 = version
            .parse()
            .map_err(|_| invalid(format!("Invalid launch template version: {version}")))?;
        let one = json!({
            "launchTemplateId": template.id, "launchTemplateName": template.name, "versionNumber": number,
        });
        let refusal = if number == template.default {
            Some((
                "launchTemplateVersionDoesNotExist",
                "The default version cannot be deleted.",
            ))
        } else if account.ec2.versions.take(&key(&template, number)).is_none() {
            Some((
                "launchTemplateVersionDoesNotExist",
                "The version does not exist.",
            ))
        } else {
            None
        };
        match refusal {
            None => gone.push(one),
            Some((code, message)) => {
                let mut one = one;
                one["responseError"] = json!({"code": code, "message": message});
                kept.push(one);
            }
        }
    }
    Ok(json!({
        "successfullyDeletedLaunchTemplateVersionSet": gone,
        "unsuccessfullyDeletedLaunchTemplateVersionSet": kept,
    }))
}

/// Forgets the versions of a template that was deleted.
pub(super) fn forget(account: &mut Account, template: &Template) {
    let own = account.ec2.versions.under(&format!("{}|", template.key()));
    let own: Vec<String> = own.map(|(key, _)| key.to_owned()).collect();
    for key in own {
        account.ec2.versions.take(&key);
    }
}
