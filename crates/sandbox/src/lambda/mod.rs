//! AWS Lambda: functions, versions and aliases as they are managed, in the REST-JSON protocol.
//!
//! Functions change over time: a new one is Pending until it is Active, a changed one is InProgress until it is
//! Successful or Failed, and nothing else can be changed meanwhile. Handlers of Python and Node.js are run when they are
//! invoked ([`invoke`]); which versions an alias would have invoked is written down at every change ([`traffic`]).
//!
//! What fails, on request: an image whose rule says that it ends or is unhealthy fails as `InvalidImage`, one that
//! cannot be pulled does not exist; a subnet `subnet-full…` has no addresses left; a KMS key whose ARN ends in
//! `disabled` is disabled. A role that nobody may assume (see [`crate::RoleRule`]) cannot be assumed by Lambda
//! either, and one whose name ends in `not-passable` may not be passed.
//!
//! Objects of S3 come from [`crate::Objects`]. Packages of up to [`code::KEPT`] bytes are kept, to be run and
//! downloaded from where `GetFunction` says.

mod alias;
mod check;
pub(crate) mod code;
mod concurrency;
mod create;
mod delete;
mod error;
mod function;
pub(crate) mod invoke;
mod name;
mod policy;
mod read;
mod request;
mod tables;
mod tag;
mod traffic;
mod update;
mod url;
mod version;

use serde_json::Value;

pub(crate) use error::as_lambda_says;
pub(crate) use function::{settle, settle_version};
pub(crate) use invoke::Environments;
pub(crate) use request::Request;
pub(crate) use tables::Tables;
pub use traffic::AliasTraffic;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::ApiError;

/// The service's name in signatures.
pub(crate) const SIGNING_NAME: &str = "lambda";
/// Largest request, bytes: a package of 50 MB in base64, and what stands around it.
pub(crate) const LARGEST: usize = 70_167_211;

/// What an operation answers: HTTP status and body; no body with 204.
pub(crate) type Reply = (u16, Value);

/// Carries out one operation.
pub(crate) fn call(
    account: &mut Account,
    caller: &Caller,
    request: &Request,
) -> Result<Reply, ApiError> {
    let carry_out = match request.operation {
        "CreateFunction" => create::create,
        "GetFunction" => read::get,
        "GetFunctionConfiguration" => read::configuration,
        "ListFunctions" => read::list,
        "UpdateFunctionCode" => update::code,
        "UpdateFunctionConfiguration" => update::configuration,
        "DeleteFunction" => delete::delete,
        "PublishVersion" => version::publish,
        "ListVersionsByFunction" => version::list,
        "CreateAlias" => alias::create,
        "UpdateAlias" => alias::update,
        "GetAlias" => alias::get,
        "ListAliases" => alias::list,
        "DeleteAlias" => alias::delete,
        "TagResource" => tag::tag,
        "UntagResource" => tag::untag,
        "ListTags" => tag::list,
        "PutFunctionConcurrency" => concurrency::put,
        "GetFunctionConcurrency" => concurrency::get,
        "DeleteFunctionConcurrency" => concurrency::delete,
        "CreateFunctionUrlConfig" => url::create,
        "UpdateFunctionUrlConfig" => url::update,
        "GetFunctionUrlConfig" => url::get,
        "DeleteFunctionUrlConfig" => url::delete,
        "AddPermission" => policy::add,
        "RemovePermission" => policy::remove,
        "GetPolicy" => policy::get,
        other => return Err(crate::ecs::unknown(other)),
    };
    carry_out(account, caller, request)
}
