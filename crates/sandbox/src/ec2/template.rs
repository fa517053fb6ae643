//! Launch templates. Their content is in their versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filters;
use super::request::{invalid, missing, page, required};
use super::{shown, version};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Document, Fields};

/// Most launch templates in a region (EC2 user guide, launch template restrictions).
const MOST: usize = 5_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Template {
    pub(super) region: String,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(super) created: Timestamp,
    created_by: String,
    pub(super) default: u64,
    pub(super) latest: u64,
    tags: Document,
    /// `ClientToken` of the request that made it.
    token: Option<String>,
}

impl Template {
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.region, self.id)
    }

    fn view(&self) -> Value {
        json!({
            "launchTemplateId": self.id,
            "launchTemplateName": self.name,
            "createTime": self.created.to_string(),
            "createdBy": self.created_by,
            "defaultVersionNumber": self.default,
            "latestVersionNumber": self.latest,
            "tagSet": shown::tags(&self.tags),
        })
    }

    /// The number that `$Latest`, `$Default`, nothing or a number stand for.
    pub(crate) fn number(&self, version: Option<&str>) -> Option<u64> {
        match version {
            None | Some("" | "$Default") => Some(self.default),
            Some("$Latest") => Some(self.latest),
            Some(number) => number.parse().ok(),
        }
    }
}

/// A launch template of the caller's region, by id or name.
pub(crate) fn find<'a>(
    account: &'a Account,
    region: &str,
    id: Option<&str>,
    name: Option<&str>,
) -> Result<&'a Template, ApiError> {
    let mut own = account.ec2.templates.under(&format!("{region}/"));
    match (id, name) {
        (Some(_), Some(_)) => Err(ApiError::client(
            "InvalidParameterCombination",
            "Only one of launch template ID and launch template name may be specified",
        )),
        (Some(id), None) => own
            .find(|(_, row)| row.id == id)
            .map(|(_, row)| row)
            .ok_or_else(|| unknown_id(id)),
        (None, Some(name)) => own
            .find(|(_, row)| row.name == name)
            .map(|(_, row)| row)
            .ok_or_else(|| unknown_name(name)),
        (None, None) => Err(missing("LaunchTemplateId or LaunchTemplateName")),
    }
}

fn unknown_id(id: &str) -> ApiError {
    ApiError::client(
        "InvalidLaunchTemplateId.NotFound",
        format!("The specified launch template, with template ID {id}, does not exist."),
    )
}

fn unknown_name(name: &str) -> ApiError {
    ApiError::client(
        "InvalidLaunchTemplateName.NotFoundException",
        format!("The specified launch template, with template name {name}, does not exist."),
    )
}

/// The launch template that a request names.
pub(super) fn named<'a>(
    account: &'a Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<&'a Template, ApiError> {
    let id = request.text("LaunchTemplateId")?;
    find(
        account,
        &caller.region,
        id,
        request.text("LaunchTemplateName")?,
    )
}

/// Letters, digits and `( ) . - / _`, 3 to 128 of them (EC2 API reference, `CreateLaunchTemplate`).
fn check_name(name: &str) -> Result<(), ApiError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"().-/_".contains(&byte);
    if !(3..=128).contains(&name.len()) || !name.bytes().all(fits) {
        return Err(ApiError::client(
            "InvalidLaunchTemplateName.MalformedException",
            "A launch template name must be between 3 and 128 characters, and may contain letters, numbers, \
             and the following characters: - ( ) . / _.",
        ));
    }
    Ok(())
}

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let name = required(request, "LaunchTemplateName")?;
    check_name(name)?;
    let data = request
        .object("LaunchTemplateData")?
        .ok_or_else(|| missing("LaunchTemplateData"))?;
    let token = request.text("ClientToken")?;
    let prefix = format!("{}/", caller.region);
    let known = account.ec2.templates.under(&prefix);
    if let Some((_, known)) = known.into_iter().find(|(_, row)| row.name == name) {
        if token.is_some() && known.token.as_deref() == token {
            return Ok(json!({"launchTemplate": known.view()}));
        }
        return Err(ApiError::client(
            "InvalidLaunchTemplateName.AlreadyExistsException",
            "Launch template name already in use.",
        ));
    }
    if account.ec2.templates.under(&prefix).count() >= MOST {
        return Err(ApiError::client(
            "LaunchTemplateLimitExceeded",
            format!("You have reached the limit of {MOST} launch templates in this region."),
        ));
    }
    version::check_data(data)?;
    let template = Template {
        region: caller.region.clone(),
        id: format!("lt-{}", account.draw_hex(17)),
        name: name.to_owned(),
        created: account.now,
        created_by: caller.arn.clone(),
        default: 1,
        latest: 1,
        tags: tags(request, "launch-template")?,
        token: token.map(str::to_owned),
    };
    let view = template.view();
    version::put(account, caller, &template, 1, request, data.clone())?;
    account.ec2.templates.put(template.key(), template);
    Ok(json!({"launchTemplate": view}))
}

/// Tags of `TagSpecification` for a kind of resource.
pub(super) fn tags(request: Fields<'_>, kind: &str) -> Result<Document, ApiError> {
    let mut tags = Document::new();
    for one in request.objects("TagSpecification")? {
        let one = Fields(one);
        if one.text("ResourceType")? != Some(kind) {
            return Err(invalid(format!(
                "'{}' is not a valid taggable resource type for this operation.",
                one.text("ResourceType")?.unwrap_or_default()
            )));
        }
        for tag in one.objects("Tag")? {
            let tag = Fields(tag);
            let key = tag.text("Key")?.ok_or_else(|| missing("Tag.Key"))?;
            tags.insert(
                key.to_owned(),
                json!(tag.text("Value")?.unwrap_or_default()),
            );
        }
    }
    Ok(tags)
}

pub(super) fn describe(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let ids = request.texts("LaunchTemplateId")?;
    let names = request.texts("LaunchTemplateName")?;
    let filters = Filters::read(request)?;
    for id in &ids {
        find(account, &caller.region, Some(id), None)?;
    }
    for name in &names {
        find(account, &caller.region, None, Some(name))?;
    }
    let mut chosen = Vec::new();
    for (key, row) in account.ec2.templates.under(&format!("{}/", caller.region)) {
        let asked = ids.is_empty() && names.is_empty()
            || ids.contains(&row.id.as_str())
            || names.contains(&row.name.as_str());
        let fits = filters.fit(|name| match name {
            "launch-template-name" => Some(vec![row.name.clone()]),
            "tag-key" => Some(row.tags.keys().cloned().collect()),
            name => name.strip_prefix("tag:").map(|tag| {
                let value = row.tags.get(tag).and_then(Value::as_str);
                value.map(str::to_owned).into_iter().collect()
            }),
        })?;
        if asked && fits {
            chosen.push(key);
        }
    }
    let page = page(request, (1, 200), chosen.into_iter())?;
    let rows = page.items.iter();
    let rows = rows.filter_map(|key| account.ec2.templates.get(key));
    let views: Vec<Value> = rows.map(Template::view).collect();
    Ok(json!({"launchTemplates": views, "nextToken": page.next_token}))
}

/// `ModifyLaunchTemplate`: another default version.
pub(super) fn modify(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let template = named(account, caller, request)?;
    let wanted = request
        .text("SetDefaultVersion")?
        .ok_or_else(|| missing("DefaultVersion"))?;
    let number = version::existing(account, template, Some(wanted))?;
    let key = template.key();
    let view = account.ec2.templates.get_mut(&key).map(|row| {
        row.default = number;
        row.view()
    });
    Ok(json!({"launchTemplate": view}))
}

pub(super) fn delete(
    account: &mut Account,
    caller: &Caller,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let template = named(account, caller, request)?.clone();
    version::forget(account, &template);
    account.ec2.templates.take(&template.key());
    Ok(json!({"launchTemplate": template.view()}))
}
