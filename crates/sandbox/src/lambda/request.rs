//! Requests of the REST-JSON protocol: which operation a method and a path are, and what they carry.

use bytes::Bytes;
use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::error::validation;
use crate::error::ApiError;
use crate::fields::{Document, Fields};
use crate::objects::{Object, ObjectError};

/// Method, path and operation; `*` stands for one name. From the API's model of 2015-03-31.
const ROUTES: &[(&str, &str, &str)] = &[
    ("POST", "2015-03-31/functions", "CreateFunction"),
    ("GET", "2015-03-31/functions", "ListFunctions"),
    ("GET", "2015-03-31/functions/*", "GetFunction"),
    ("DELETE", "2015-03-31/functions/*", "DeleteFunction"),
    ("PUT", "2015-03-31/functions/*/code", "UpdateFunctionCode"),
    (
        "GET",
        "2015-03-31/functions/*/configuration",
        "GetFunctionConfiguration",
    ),
    (
        "PUT",
        "2015-03-31/functions/*/configuration",
        "UpdateFunctionConfiguration",
    ),
    (
        "POST",
        "2015-03-31/functions/*/invocations",
        super::invoke::OPERATION,
    ),
    ("POST", "2015-03-31/functions/*/versions", "PublishVersion"),
    (
        "GET",
        "2015-03-31/functions/*/versions",
        "ListVersionsByFunction",
    ),
    ("POST", "2015-03-31/functions/*/aliases", "CreateAlias"),
    ("GET", "2015-03-31/functions/*/aliases", "ListAliases"),
    ("GET", "2015-03-31/functions/*/aliases/*", "GetAlias"),
    ("PUT", "2015-03-31/functions/*/aliases/*", "UpdateAlias"),
    ("DELETE", "2015-03-31/functions/*/aliases/*", "DeleteAlias"),
    ("POST", "2015-03-31/functions/*/policy", "AddPermission"),
    ("GET", "2015-03-31/functions/*/policy", "GetPolicy"),
    (
        "DELETE",
        "2015-03-31/functions/*/policy/*",
        "RemovePermission",
    ),
    ("POST", "2017-03-31/tags/*", "TagResource"),
    ("DELETE", "2017-03-31/tags/*", "UntagResource"),
    ("GET", "2017-03-31/tags/*", "ListTags"),
    (
        "PUT",
        "2017-10-31/functions/*/concurrency",
        "PutFunctionConcurrency",
    ),
    (
        "DELETE",
        "2017-10-31/functions/*/concurrency",
        "DeleteFunctionConcurrency",
    ),
    (
        "GET",
        "2019-09-30/functions/*/concurrency",
        "GetFunctionConcurrency",
    ),
    (
        "POST",
        "2021-10-31/functions/*/url",
        "CreateFunctionUrlConfig",
    ),
    (
        "PUT",
        "2021-10-31/functions/*/url",
        "UpdateFunctionUrlConfig",
    ),
    ("GET", "2021-10-31/functions/*/url", "GetFunctionUrlConfig"),
    (
        "DELETE",
        "2021-10-31/functions/*/url",
        "DeleteFunctionUrlConfig",
    ),
];

/// One request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) operation: &'static str,
    /// The names in the path, decoded.
    names: Vec<String>,
    query: Vec<(String, String)>,
    pub(super) body: Document,
    /// The body as it came, of an invocation.
    pub(super) payload: Bytes,
    /// The address that the caller knows the account by.
    pub(super) address: String,
    /// The object that the body names as code, once it was asked for.
    pub(super) object: Option<Result<Object, ObjectError>>,
}

impl Request {
    /// Reads a request; an operation that the sandbox does not have is named by its method and path.
    pub(crate) fn read(
        (method, path, query): (&Method, &str, &str),
        address: &str,
        body: &Bytes,
    ) -> Result<Self, ApiError> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let fits = |pattern: &str| {
            let mut pattern = pattern.split('/');
            parts.len() == pattern.clone().count()
                && parts.iter().all(|part| matches!(pattern.next(), Some(wanted) if wanted == "*" || wanted == *part))
        };
        let route = ROUTES
            .iter()
            .find(|(verb, pattern, _)| *verb == method.as_str() && fits(pattern));
        let Some((_, pattern, operation)) = route else {
            return Err(crate::ecs::unknown(&format!("{method} {path}")));
        };
        let names = pattern.split('/').zip(&parts);
        let names = names.filter(|(wanted, _)| *wanted == "*");
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let plain = |text: &str| decoded(&text.replace('+', " "));
        let raw = *operation == super::invoke::OPERATION;
        let payload = if raw { body.clone() } else { Bytes::new() };
        let body = match &body[..] {
            _ if raw => Document::new(),
            [] => Document::new(),
            body => match serde_json::from_slice(body) {
                Ok(Value::Object(document)) => document,
                _ => {
                    return Err(ApiError::serialization(
                        "Could not parse request body into json.",
                    ));
                }
            },
        };
        Ok(Self {
            operation,
            names: names.map(|(_, part)| decoded(part)).collect(),
            query: pairs
                .map(|(name, value)| (plain(name), plain(value)))
                .collect(),
            body,
            payload,
            address: address.to_owned(),
            object: None,
        })
    }

    /// The function, or the resource of a tag, that the path names.
    pub(super) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// The alias or statement that the path names.
    pub(super) fn second(&self) -> &str {
        self.names.get(1).map_or("", String::as_str)
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields(&self.body)
    }

    /// A parameter of the query; empty ones are none.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// All parameters of the query of a name.
    pub(super) fn queries<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        let found = self.query.iter().filter(move |(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// `MaxItems`: 1 to 10,000, of which Lambda gives 50 at most.
    pub(super) fn page_size(&self) -> Result<usize, ApiError> {
        let Some(text) = self.query("MaxItems") else {
            return Ok(50);
        };
        let size = text.parse().ok().filter(|size| (1..=10_000).contains(size));
        size.map(|size: usize| size.min(50)).ok_or_else(|| {
            validation(
                "maxItems",
                text,
                "Member must have value between 1 and 10000",
            )
        })
    }

    /// Bucket, key and version of the object that is the code.
    pub(crate) fn wanted_object(&self) -> Option<(String, String, Option<String>)> {
        let code = match self.operation {
            "CreateFunction" => self.body.get("Code")?.as_object()?,
            "UpdateFunctionCode" => &self.body,
            _ => return None,
        };
        let text = |name: &str| code.get(name).and_then(Value::as_str).map(str::to_owned);
        Some((text("S3Bucket")?, text("S3Key")?, text("S3ObjectVersion")))
    }

    /// Gives the object that [`Self::wanted_object`] asked for.
    pub(crate) fn give(&mut self, object: Result<Object, ObjectError>) {
        self.object = Some(object);
    }
}
