//! Errors as services of the Query protocol write them.

use std::fmt;

use aws_smithy_types::error::ErrorMetadata;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use roxmltree::Document;

/// What a service answered instead of what was asked for.
#[derive(Debug)]
pub struct QueryError(ErrorMetadata);

impl QueryError {
    /// Reads `<Code>` and `<Message>`, in whatever envelope they are; JSON too, which gateways before a service write.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let (code, message) = of_xml(&text)
            .or_else(|| of_json(&text))
            .unwrap_or_else(|| (format!("HTTP{status}"), None));
        let mut metadata = ErrorMetadata::builder().code(code);
        if let Some(message) = message {
            metadata = metadata.message(message);
        }
        Self(metadata.build())
    }
}

impl From<ErrorMetadata> for QueryError {
    fn from(metadata: ErrorMetadata) -> Self {
        Self(metadata)
    }
}

fn of_xml(text: &str) -> Option<(String, Option<String>)> {
    let document = Document::parse(text).ok()?;
    let first = |name: &str| {
        let mut found = document.descendants();
        let found = found.find(|node| node.tag_name().name() == name);
        found
            .and_then(|node| node.text())
            .map(|text| text.trim().to_owned())
    };
    Some((first("Code")?, first("Message")))
}

fn of_json(text: &str) -> Option<(String, Option<String>)> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let field = |name: &str| value[name].as_str().map(str::to_owned);
    // Some write the code with its namespace: `com.amazonaws.ecr#…`.
    let code = field("__type").or_else(|| field("code"))?;
    let code = code.rsplit('#').next().unwrap_or_default().to_owned();
    Some((code, field("message").or_else(|| field("Message"))))
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for QueryError {}

impl ProvideErrorMetadata for QueryError {
    fn meta(&self) -> &ErrorMetadata {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_envelope_is_read() {
        let seen: Vec<String> = [
            "<ErrorResponse xmlns=\"http://a\"><Error><Type>Sender</Type><Code>ValidationError</Code>\
             <Message>no such group</Message></Error></ErrorResponse>",
            "<?xml version=\"1.0\"?><Response><Errors><Error><Code>InvalidAMIID.NotFound</Code>\
             <Message>gone</Message></Error></Errors><RequestID>r</RequestID></Response>",
            "{\"__type\":\"AccessDeniedException\",\"message\":\"no\"}",
            "{\"__type\":\"com.amazonaws.ecr#ImageNotFoundException\",\"message\":\"gone\"}",
            "<html>busy",
            "",
        ]
        .iter()
        .map(|body| {
            let error = QueryError::read(503, body.as_bytes());
            format!("{:?} {:?}", error.code(), error.message())
        })
        .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        Some("ValidationError") Some("no such group")
        Some("InvalidAMIID.NotFound") Some("gone")
        Some("AccessDeniedException") Some("no")
        Some("ImageNotFoundException") Some("gone")
        Some("HTTP503") None
        Some("HTTP503") None
        "#);
    }
}
