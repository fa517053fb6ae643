//! Code: packages of S3 or of the request itself, and images.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::error::invalid;
use super::invoke::{MOST_BYTES, declared_size};
use super::request::Request;
use crate::account::Account;
use crate::ecr::{Pulled, is_private, pull};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::image::ImageBehaviour;
use crate::objects::ObjectError;

/// Largest package of a request itself, bytes.
const LARGEST_INLINE: usize = 50 << 20;
/// Largest package that is kept to be run and downloaded again, bytes; larger ones can come from S3.
pub(crate) const KEPT: usize = LARGEST_INLINE;

/// The code of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Code {
    /// In base64; of an image its digest in hexadecimal.
    pub(super) sha256: String,
    pub(super) size: usize,
    /// URI and digest of an image.
    image: Option<(String, String)>,
}

/// A package that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Package {
    /// In base64.
    content: String,
}

impl Package {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        STANDARD.decode(&self.content).unwrap_or_default()
    }
}

impl Code {
    pub(super) fn is_image(&self) -> bool {
        self.image.is_some()
    }

    pub(super) fn image(&self) -> Option<&str> {
        self.image.as_ref().map(|(uri, _)| uri.as_str())
    }

    /// `FunctionCodeLocation`. A package's location is one of the sandbox's own.
    pub(super) fn location(&self, address: &str) -> Value {
        match &self.image {
            Some((uri, digest)) => {
                let repository = repository(uri);
                json!({
                    "RepositoryType": "ECR",
                    "ImageUri": uri,
                    "ResolvedImageUri": format!("{repository}@sha256:{digest}"),
                })
            }
            None => {
                let name = self.sha256.replace('/', "_").replace('+', "-");
                json!({"RepositoryType": "S3", "Location": format!("{address}/_sandbox/code/{name}")})
            }
        }
    }
}

/// The image without tag and digest.
fn repository(uri: &str) -> &str {
    let uri = uri.split('@').next().unwrap_or(uri);
    match uri.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => uri,
    }
}

/// Key of a kept package in the path of its location.
pub(crate) fn package_key(name: &str) -> String {
    name.replace('_', "/").replace('-', "+")
}

/// The code that a request names.
pub(super) fn read(
    account: &mut Account,
    request: &Request,
    code: Fields<'_>,
    image: bool,
) -> Result<Code, ApiError> {
    let uri = code.text("ImageUri")?;
    let zip = code.text("ZipFile")?;
    let bucket = code.text("S3Bucket")?;
    match (image, uri) {
        (true, Some(_)) if zip.is_some() || bucket.is_some() => Err(invalid(
            "Please do not provide other code parameters with ImageUri.",
        )),
        (true, Some(uri)) => of_image(account, uri),
        (true, None) => Err(invalid(
            "Please provide ImageUri when updating a function with packageType Image.",
        )),
        (false, Some(_)) => Err(invalid(
            "Please don't provide ImageUri when updating a function with packageType Zip.",
        )),
        (false, None) => match (zip, bucket) {
            (Some(_), Some(_)) => Err(invalid(
                "Please do not provide both ZipFile and S3 parameters.",
            )),
            (Some(zip), None) => of_request(account, zip),
            (None, Some(_)) => of_object(account, request, code),
            (None, None) => Err(invalid("Please provide a source for function code.")),
        },
    }
}

fn of_image(account: &Account, uri: &str) -> Result<Code, ApiError> {
    if !is_private(uri) {
        return Err(invalid(format!(
            "Source image {uri} is not valid. Provide a valid source image."
        )));
    }
    if account.behaviour(uri).0 == ImageBehaviour::PullFails {
        return Err(invalid(format!(
            "Source image {uri} does not exist. Provide a valid source image."
        )));
    }
    let digest = match (pull(account, uri), uri.split_once("@sha256:")) {
        (Pulled::Here { digest, .. }, _) => digest.trim_start_matches("sha256:").to_owned(),
        (_, Some((_, digest))) => digest.to_owned(),
        (_, None) => hex(&Sha256::digest(uri)),
    };
    Ok(Code {
        sha256: digest.clone(),
        size: 0,
        image: Some((uri.to_owned(), digest)),
    })
}

fn of_request(account: &mut Account, zip: &str) -> Result<Code, ApiError> {
    let bytes = STANDARD
        .decode(zip)
        .map_err(|_| ApiError::serialization("ZipFile is not base64."))?;
    if bytes.len() > LARGEST_INLINE {
        return Err(invalid(format!(
            "Unzipped size must be smaller than {LARGEST_INLINE} bytes"
        )));
    }
    of_package(account, &bytes)
}

fn of_object(account: &mut Account, request: &Request, code: Fields<'_>) -> Result<Code, ApiError> {
    if code.text("S3Key")?.is_none() {
        return Err(invalid("Please provide S3Key with S3Bucket."));
    }
    let no_bucket = Err(ObjectError::no_bucket());
    let bytes = match request.object.as_ref().unwrap_or(&no_bucket) {
        Ok(object) => object.bytes.clone(),
        Err(error) => return Err(invalid(format!("Error occurred while GetObject. {error}"))),
    };
    of_package(account, &bytes)
}

fn of_package(account: &mut Account, bytes: &[u8]) -> Result<Code, ApiError> {
    if !bytes.starts_with(b"PK\x03\x04") && !bytes.starts_with(b"PK\x05\x06") {
        return Err(invalid(
            "Could not unzip uploaded file. Please check your file, then try to upload again.",
        ));
    }
    if declared_size(bytes).is_some_and(|size| size > MOST_BYTES) {
        return Err(invalid(format!(
            "Unzipped size must be smaller than {MOST_BYTES} bytes"
        )));
    }
    let sha256 = STANDARD.encode(Sha256::digest(bytes));
    if bytes.len() <= KEPT && account.lambda.packages.get(&sha256).is_none() {
        let package = Package {
            content: STANDARD.encode(bytes),
        };
        account.lambda.packages.put(sha256.clone(), package);
    }
    Ok(Code {
        sha256,
        size: bytes.len(),
        image: None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Forgets packages that no function and no version has any more.
pub(super) fn forget_unused(account: &mut Account) {
    let tables = &account.lambda;
    let of_functions = tables
        .functions
        .iter()
        .map(|(_, row)| &row.latest.code.sha256);
    let of_versions = tables
        .versions
        .iter()
        .map(|(_, row)| &row.revision.code.sha256);
    let used: std::collections::BTreeSet<String> =
        of_functions.chain(of_versions).cloned().collect();
    let unused = tables.packages.iter().map(|(key, _)| key.clone());
    let unused: Vec<String> = unused.filter(|key| !used.contains(key)).collect();
    for key in unused {
        account.lambda.packages.take(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_of_images() {
        let host = "1.dkr.ecr.eu-west-1.amazonaws.com";
        for rest in ["", ":v1", "@sha256:00", ":v1@sha256:00"] {
            assert_eq!(
                repository(&format!("{host}/a/b{rest}")),
                format!("{host}/a/b")
            );
        }
    }
}
