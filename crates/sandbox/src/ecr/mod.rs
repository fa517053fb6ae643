//! Amazon ECR: repositories and their images as they are named, in the JSON 1.1 protocol. Layers are not kept.
//!
//! Tasks and functions whose image is in the account's registry start only where the image is; images of other
//! accounts' and any other registries need not be anywhere ([`crate::ImageBehaviour`]).

mod delete;
mod image;
mod name;
mod put;
mod repository;
mod token;

use serde_json::Value;

pub(crate) use image::{Pulled, pull};
pub(crate) use name::is_private;

use crate::account::Account;
use crate::caller::Caller;
use crate::error::{ApiError, StoreError};
use crate::fields::Fields;
use crate::inventory::Resource;
use crate::table::{Change, Table};

/// The service's name in signatures, calls and faults.
pub(crate) const SIGNING_NAME: &str = "ecr";
/// The service's name in `X-Amz-Target`.
pub(crate) const TARGET: &str = "AmazonEC2ContainerRegistry_V20150921";

/// All that is kept of registries.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Keys: region and name.
    repositories: Table<repository::Repository>,
    /// Keys: the repository's, `@`, and the digest.
    images: Table<image::Image>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            repositories: Table::new("repository"),
            images: Table::new("container-image"),
        }
    }

    /// Takes in one stored entity if it belongs here.
    pub(crate) fn load(&mut self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.repositories.load(key, value)? || self.images.load(key, value)?)
    }

    pub(crate) fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), StoreError> {
        self.repositories.changes(into)?;
        self.images.changes(into)
    }

    /// Everything that is there and is somebody's.
    pub(crate) fn show(&self, into: &mut Vec<Resource>) {
        self.repositories.show(into);
        self.images.show(into);
    }

    pub(crate) fn forget_changes(&mut self) {
        self.repositories.forget_changes();
        self.images.forget_changes();
    }
}

/// Carries out one operation.
pub(crate) fn call(
    account: &mut Account,
    caller: &Caller,
    operation: &str,
    request: Fields<'_>,
) -> Result<Value, ApiError> {
    let carry_out = match operation {
        "GetAuthorizationToken" => token::get,
        "CreateRepository" => repository::create,
        "DescribeRepositories" => repository::describe,
        "PutImageTagMutability" => repository::set_mutability,
        "DeleteRepository" => delete::repository,
        "PutImage" => put::put,
        "DescribeImages" => image::describe,
        "ListImages" => image::list,
        "BatchGetImage" => image::get,
        "BatchDeleteImage" => delete::images,
        other => return Err(crate::ecs::unknown(other)),
    };
    carry_out(account, caller, request)
}
