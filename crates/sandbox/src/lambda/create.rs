//! `CreateFunction`.

use std::collections::BTreeMap;

use super::error::{conflict, invalid, missing, validation};
use super::function::{Function, Phase, Revision, begin};
use super::name::Named;
use super::request::Request;
use super::{Reply, check, code, tag, version};
use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::fields::{Fields, pick};

pub(super) fn create(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let fields = request.fields();
    let name = fields
        .text("FunctionName")?
        .ok_or_else(|| missing("functionName"))?;
    let named = Named::parse(account, caller, name)?;
    let given = fields.object("Code")?.ok_or_else(|| missing("code"))?;
    let image = match fields.text("PackageType")? {
        Some("Image") => true,
        Some("Zip") | None => false,
        Some(other) => {
            return Err(validation(
                "packageType",
                other,
                "Member must satisfy enum value set: [Zip, Image]",
            ));
        }
    };
    if named.qualifier.is_some() {
        return Err(invalid("A function is created without a qualifier."));
    }
    let mut document = pick(request.fields().0, check::CONFIGURATION);
    check::complete(&document, image)?;
    check::configuration(account, caller, &document)?;
    if let Some(architectures) = fields
        .0
        .get("Architectures")
        .filter(|value| !value.is_null())
    {
        document.insert("Architectures".to_owned(), architectures.clone());
    }
    if let Some(tenancy) = fields
        .0
        .get("TenancyConfig")
        .filter(|value| !value.is_null())
    {
        document.insert("TenancyConfig".to_owned(), tenancy.clone());
    }
    let tags = tag::read(fields)?;
    if account.lambda.functions.get(&named.key).is_some() {
        return Err(conflict(format!("Function already exist: {}", named.name)));
    }
    let code = code::read(account, request, Fields(given), image)?;
    let function = Function {
        name: named.name.clone(),
        arn: named.arn.clone(),
        latest: Revision {
            document,
            code,
            id: String::new(),
            modified: account.now,
            phase: Phase::Creating,
        },
        published: 0,
        tags,
        reserved: None,
        urls: BTreeMap::new(),
        policies: BTreeMap::new(),
        due: None,
    };
    account.lambda.functions.put(named.key.clone(), function);
    begin(account, &named.key, Phase::Creating);
    if fields.flag("Publish")?.unwrap_or_default() {
        let view = version::publish_now(account, &named, None)?;
        return Ok((201, view));
    }
    let function = named.function(account)?;
    Ok((201, function.view()))
}
