//! Values of secrets, taken out of bodies before anything else looks at them.

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::entity::Draft;
use crate::error::{ApiError, ApiResult};
use crate::identifier;

/// Largest value: that of AWS Secrets Manager, in bytes (*Secrets Manager quotas*).
pub(super) const LARGEST: usize = 65_536;

/// Fields of keys and credentials that name a secret. A value in the place of a name would be stored in clear.
const REFERENCES: &[&str] = &["key", "password", "encryptedPassphrase"];

/// Takes the value out of a body, so that what is stored, logged or answered cannot hold it.
pub(super) fn take(body: &mut Value) -> ApiResult<Option<SecretString>> {
    let kind = body.pointer("/secret/type").and_then(Value::as_str);
    let kind = kind.unwrap_or_default().to_owned();
    let Some(Value::Object(spec)) = body.pointer_mut("/secret/spec") else {
        return Ok(None);
    };
    // `spec.type` is decoration: clients disagree about it.
    spec.shift_remove("type");
    match kind.as_str() {
        "SecretFile" => {
            spec.retain(|field, _| {
                matches!(
                    field.as_str(),
                    "secretManagerIdentifier" | "additionalMetadata"
                )
            });
            Ok(None)
        }
        "SSHKey" | "WinRmCredentials" => check_references(spec).map(|()| None),
        _ => take_text(spec),
    }
}

fn take_text(spec: &mut Map<String, Value>) -> ApiResult<Option<SecretString>> {
    let value_type = spec
        .get("valueType")
        .and_then(Value::as_str)
        .unwrap_or("Inline");
    if value_type != "Inline" {
        let message = format!("`{value_type}` is not supported by this version; `Inline` is");
        return Err(ApiError::field("spec.valueType", message));
    }
    match spec.shift_remove("value") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.len() <= LARGEST => Ok(Some(SecretString::from(text))),
        Some(Value::String(_)) => Err(ApiError::field(
            "spec.value",
            format!("is longer than {LARGEST} bytes"),
        )),
        Some(_) => Err(ApiError::field("spec.value", "must be a string")),
    }
}

fn check_references(spec: &Map<String, Value>) -> ApiResult<()> {
    let mut open: Vec<&Map<String, Value>> = vec![spec];
    while let Some(object) = open.pop() {
        for (field, value) in object {
            match value {
                Value::Object(inner) => open.push(inner),
                Value::String(text) if REFERENCES.contains(&field.as_str()) && !text.is_empty() => {
                    // The text is not repeated: it may be the very secret.
                    identifier::reference(field, text).map_err(|_| {
                        let message = "must be the identifier of a secret, not a value";
                        ApiError::field(field, message)
                    })?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Refuses a new secret that should bring its value and does not.
pub(super) fn check_given(draft: &Draft, given: bool) -> ApiResult<()> {
    match draft.entity_type.as_deref() {
        Some("SecretText") if !given => Err(ApiError::field(
            "spec.value",
            "must not be empty for a new secret",
        )),
        Some("SecretFile") => Err(ApiError::field(
            "type",
            "a new SecretFile is sent with its content to /ng/api/v2/secrets/files",
        )),
        Some("SecretText" | "SSHKey" | "WinRmCredentials") => Ok(()),
        other => Err(ApiError::unsupported(format!(
            "Secrets of type {} are not supported by this version",
            other.unwrap_or("(none)")
        ))),
    }
}
