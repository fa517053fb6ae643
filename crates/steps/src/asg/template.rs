//! Launch templates: each deployment makes a version of the one that is named like its group.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::status::Failure;

use super::group::Group;
use super::manifest::{Documents, encode_user_data};
use super::site::{Ask, Site};
use super::{name, wrong};
use crate::context::StepContext;
use crate::deployment::token;

/// Codes of EC2 for a template that there is not.
const UNKNOWN: &[&str] = &[
    "InvalidLaunchTemplateName.NotFoundException",
    "InvalidLaunchTemplateId.NotFound",
    "InvalidLaunchTemplateId.NotFoundException",
];

/// A version of a launch template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) number: String,
}

impl Version {
    /// What it is, for people.
    pub(super) fn told(&self) -> String {
        format!("version {} of launch template {}", self.number, self.name)
    }
}

/// A launch template before a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Look {
    /// Its name, also where it is not there.
    pub(super) name: String,
    /// Its id, where it is there.
    pub(super) id: Option<String>,
    latest: String,
    default: String,
}

/// Looks at the template that a group of this name has.
pub(super) async fn look(site: &Site, group: &str) -> Result<Look, Failure> {
    let name = name::of_template(group);
    let request = json!({"LaunchTemplateName": [name]});
    found(site, &request, name.clone()).await
}

async fn found(site: &Site, request: &Value, name: String) -> Result<Look, Failure> {
    let doing = format!("look at launch template {name}");
    let ask = Ask {
        action: "DescribeLaunchTemplates",
        request,
        doing: &doing,
    };
    let found = site.ec2_unless(ask, UNKNOWN).await?.unwrap_or_default();
    let found = &found["launchTemplates"][0];
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Ok(Look {
        name,
        id: found["launchTemplateId"].as_str().map(str::to_owned),
        latest: text("latestVersionNumber"),
        default: text("defaultVersionNumber"),
    })
}

/// The version that a group's next instance would be started from. `None` for a group with a launch configuration.
pub(super) async fn in_use(
    site: &Site,
    group: &Group,
    look: &Look,
) -> Result<Option<Version>, Failure> {
    let Some((id, name, version)) = group.template() else {
        return Ok(None);
    };
    let own = look.id.as_deref() == Some(id);
    let number = match version {
        "$Latest" | "$Default" => {
            let other;
            let look = match own {
                true => look,
                false => {
                    let request = json!({"LaunchTemplateId": [id]});
                    other = found(site, &request, name.to_owned()).await?;
                    &other
                }
            };
            match version {
                "$Latest" => look.latest.clone(),
                _ => look.default.clone(),
            }
        }
        number => number.to_owned(),
    };
    Ok(Some(Version {
        id: id.to_owned(),
        name: name.to_owned(),
        number,
    }))
}

/// Whether AWS still has a version.
pub(super) async fn exists(site: &Site, version: &Version) -> Result<bool, Failure> {
    let doing = format!("look at {}", version.told());
    let request =
        json!({"LaunchTemplateId": version.id, "LaunchTemplateVersion": [version.number]});
    let ask = Ask {
        action: "DescribeLaunchTemplateVersions",
        request: &request,
        doing: &doing,
    };
    let gone = [UNKNOWN, &["InvalidLaunchTemplateId.VersionNotFound"]].concat();
    let found = site.ec2_unless(ask, &gone).await?.unwrap_or_default();
    Ok(found["launchTemplateVersionSet"][0].is_object())
}

/// Makes the template or its next version, once however often it is called in one attempt.
pub(super) async fn make(
    cx: &mut StepContext<'_>,
    site: &Site,
    look: &Look,
    (documents, image): (&Documents, Option<&str>),
    unit: &'static str,
) -> Result<Version, Failure> {
    let mut request = documents.template.clone();
    request["LaunchTemplateData"] = documents.data(image);
    let mut request = cx.secrets().reveal(request).await?;
    encode_user_data(documents, &mut request["LaunchTemplateData"]);
    request["ClientToken"] = json!(token(cx));
    let name = &look.name;
    let made = match &look.id {
        None => {
            cx.info(unit, format!("Creating launchTemplate {name}"));
            request["LaunchTemplateName"] = json!(name);
            let doing = format!("create launch template {name}");
            let answer = site.ec2("CreateLaunchTemplate", &request, &doing).await?;
            let made = &answer["launchTemplate"];
            version(made, name, "latestVersionNumber")
        }
        Some(id) => {
            cx.info(
                unit,
                format!("Creating new version for launchTemplate {name}"),
            );
            // Tags belong to the template and not to its versions.
            if let Some(fields) = request.as_object_mut() {
                fields.shift_remove("TagSpecifications");
            }
            request["LaunchTemplateId"] = json!(id);
            let doing = format!("create a version of launch template {name}");
            let answer = site
                .ec2("CreateLaunchTemplateVersion", &request, &doing)
                .await?;
            version(&answer["launchTemplateVersion"], name, "versionNumber")
        }
    };
    let made = made.ok_or_else(|| {
        wrong(format!(
            "AWS created a version of launch template {name} in {site} and did not say which."
        ))
    })?;
    cx.info(
        unit,
        format!("Created version {} of launchTemplate {name}", made.number),
    );
    Ok(made)
}

fn version(made: &Value, name: &str, number: &str) -> Option<Version> {
    // A repeated request is answered with what there is now; the first version is the one that it made.
    let number = match number {
        "latestVersionNumber" => "1".to_owned(),
        number => made[number].as_str()?.to_owned(),
    };
    Some(Version {
        id: made["launchTemplateId"].as_str()?.to_owned(),
        name: name.to_owned(),
        number,
    })
}

/// Deletes the template of a group that was deleted. One that is gone already is fine.
pub(super) async fn delete_of(site: &Site, group: &str) -> Result<(), Failure> {
    let name = name::of_template(group);
    let doing = format!("delete launch template {name}");
    let request = json!({"LaunchTemplateName": name});
    let ask = Ask {
        action: "DeleteLaunchTemplate",
        request: &request,
        doing: &doing,
    };
    site.ec2_unless(ask, UNKNOWN).await?;
    Ok(())
}

/// Deletes a template that this run created. One that is gone already is fine.
pub(super) async fn delete(site: &Site, version: &Version) -> Result<(), Failure> {
    let doing = format!("delete launch template {}", version.name);
    let request = json!({"LaunchTemplateId": version.id});
    let ask = Ask {
        action: "DeleteLaunchTemplate",
        request: &request,
        doing: &doing,
    };
    site.ec2_unless(ask, UNKNOWN).await?;
    Ok(())
}
