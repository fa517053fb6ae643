//! Amazon EC2 as far as Auto Scaling groups need it: launch templates with their versions, images, and the
//! instances that groups start, in EC2's Query protocol.
//!
//! What is not AWS's: the data of a launch template is kept as it came and shown with EC2's names for answers,
//! which are made by its rule (`blockDeviceMappingSet` for `BlockDeviceMapping.1`) and not by its table; the
//! few exceptions of that table are not there. Networks, key pairs and roles are not looked up. Nobody can run
//! an instance but an Auto Scaling group. Images need not be registered: see [`image`].

mod filter;
pub(crate) mod image;
pub(crate) mod instance;
pub(crate) mod kind;
pub(crate) mod region;
mod request;
mod shown;
mod tables;
pub(crate) mod template;
pub(crate) mod user_data;
pub(crate) mod version;

use serde_json::Value;

pub(crate) use instance::{answers, group_of};
pub(crate) use tables::Tables;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::query::Form;

/// The service's name in signatures.
pub(crate) const SIGNING_NAME: &str = "ec2";
/// Version of the API.
pub(crate) const VERSION: &str = "2016-11-15";
/// Namespace of the answers.
pub(crate) const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

/// Carries out one operation and gives the members of its answer.
pub(crate) fn call(account: &mut Account, caller: &Caller, form: &Form) -> Result<Value, ApiError> {
    let document = form.document();
    let request = Fields(&document);
    let operation = form.get("Action").unwrap_or_default();
    let carry_out = match operation {
        "CreateLaunchTemplate" => template::create,
        "DescribeLaunchTemplates" => template::describe,
        "ModifyLaunchTemplate" => template::modify,
        "DeleteLaunchTemplate" => template::delete,
        "CreateLaunchTemplateVersion" => version::create,
        "DescribeLaunchTemplateVersions" => version::describe,
        "DeleteLaunchTemplateVersions" => version::delete,
        "RegisterImage" => image::register,
        "DescribeImages" => image::describe,
        "DeregisterImage" => image::deregister,
        "DescribeInstances" => instance::describe,
        "TerminateInstances" => instance::terminate,
        "DescribeRegions" => region::describe,
        other => {
            return Err(ApiError::client(
                "InvalidAction",
                format!("The action {other} is not valid for this web service."),
            ));
        }
    };
    carry_out(account, caller, request)
}
