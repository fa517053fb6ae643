//! AWS's Query protocol: a form comes in, XML goes out.
//!
//! A form becomes the same kind of document that the JSON protocols have, except that every leaf is a text,
//! and an answer is such a document too; so services are written alike whatever they speak.

use std::collections::BTreeMap;
use std::fmt::Write;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::error::ApiError;
use crate::fields::Document;

/// Deepest member of a form; ELB's deepest has seven parts.
const DEEPEST: usize = 16;

/// A decoded `application/x-www-form-urlencoded` body.
#[derive(Debug)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self(pairs.collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The form as a document: `Tags.member.1.Key=a` is `{"Tags": [{"Key": "a"}]}`, and so is EC2's
    /// `Tags.1.Key=a`. Empty values are left out, which is how clients send empty lists.
    pub(crate) fn document(&self) -> Document {
        let mut root = Node::default();
        for (name, value) in &self.0 {
            let path: Vec<&str> = name.split('.').collect();
            if path.len() <= DEEPEST {
                root.insert(&path, value);
            }
        }
        let members = root.members.into_iter();
        members
            .filter_map(|(name, node)| Some((name, node.into_value()?)))
            .collect()
    }
}

#[derive(Default)]
struct Node {
    text: Option<String>,
    members: BTreeMap<String, Node>,
}

impl Node {
    fn insert(&mut self, path: &[&str], value: &str) {
        match path.split_first() {
            None => self.text = Some(value.to_owned()),
            Some((name, rest)) => {
                let member = self.members.entry((*name).to_owned()).or_default();
                member.insert(rest, value);
            }
        }
    }

    fn into_value(mut self) -> Option<Value> {
        if self.members.is_empty() {
            return self.text.filter(|text| !text.is_empty()).map(Value::from);
        }
        if self.members.len() == 1
            && let Some(list) = self.members.remove("member")
        {
            return Some(list.into_list());
        }
        if self.members.keys().all(|name| name.parse::<u32>().is_ok()) {
            return Some(self.into_list());
        }
        let members = self.members.into_iter();
        let members: Document = members
            .filter_map(|(name, node)| Some((name, node.into_value()?)))
            .collect();
        Some(Value::Object(members))
    }

    /// The members that are numbered, in the order of their numbers.
    fn into_list(self) -> Value {
        let items = self.members.into_iter();
        let mut items: Vec<(u32, Node)> = items
            .filter_map(|(number, node)| Some((number.parse().ok()?, node)))
            .collect();
        items.sort_by_key(|(number, _)| *number);
        let items = items.into_iter();
        items.filter_map(|(_, node)| node.into_value()).collect()
    }
}

/// How a service writes its answers and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Most services: a `…Result` element, lists of `member`.
    Query,
    /// EC2: no such element, lists of `item`, errors of their own form.
    Ec2,
}

impl Dialect {
    /// The whole answer to `action`, of which `result` holds the members.
    pub(crate) fn response(
        self,
        namespace: &str,
        action: &str,
        result: &Value,
        request_id: &str,
    ) -> String {
        match self {
            Self::Query => response(namespace, action, result, request_id),
            Self::Ec2 => {
                let mut text = format!(
                    "<{action}Response xmlns=\"{namespace}\"><requestId>{request_id}</requestId>"
                );
                for (name, value) in result.as_object().into_iter().flatten() {
                    write_element(&mut text, name, value, "item");
                }
                let _infallible = write!(text, "</{action}Response>");
                text
            }
        }
    }

    /// An error, and its HTTP status.
    pub(crate) fn error(
        self,
        namespace: &str,
        error: &ApiError,
        request_id: &str,
    ) -> (u16, String) {
        match self {
            Self::Query => error_xml(namespace, error, request_id),
            Self::Ec2 => {
                let (status, code) = match error.code {
                    "ExpiredTokenException" => (400, "RequestExpired"),
                    "ThrottlingException" => (503, "RequestLimitExceeded"),
                    "AccessDeniedException" => (403, "UnauthorizedOperation"),
                    "MissingAuthenticationTokenException" => (401, "AuthFailure"),
                    "SerializationException" => (400, "InvalidParameterValue"),
                    "SubscriptionRequiredException" => (401, "OptInRequired"),
                    "ServerException" => (500, "InternalError"),
                    code => (error.status, code),
                };
                let body = format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code>\
                     <Message>{}</Message></Error></Errors><RequestID>{request_id}</RequestID></Response>",
                    escape(&error.message)
                );
                (status, body)
            }
        }
    }
}

/// The whole answer to `action`, of which `result` holds the members of the `…Result` element.
fn response(namespace: &str, action: &str, result: &Value, request_id: &str) -> String {
    let mut text = format!("<{action}Response xmlns=\"{namespace}\">");
    write_element(&mut text, &format!("{action}Result"), result, "member");
    let _infallible = write!(
        text,
        "<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action}Response>"
    );
    text
}

fn write_element(into: &mut String, name: &str, value: &Value, item: &str) {
    if value.is_null() {
        return;
    }
    let _infallible = write!(into, "<{name}>");
    match value {
        Value::Array(items) => {
            for one in items {
                write_element(into, item, one, item);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                write_element(into, name, value, item);
            }
        }
        Value::String(text) => into.push_str(&escape(text)),
        other => into.push_str(&other.to_string()),
    }
    let _infallible = write!(into, "</{name}>");
}

/// An error as the Query protocol writes it, and its HTTP status: some codes have other names here.
fn error_xml(namespace: &str, error: &ApiError, request_id: &str) -> (u16, String) {
    let (status, code) = match error.code {
        "ExpiredTokenException" => (403, "ExpiredToken"),
        "ThrottlingException" => (400, "Throttling"),
        "AccessDeniedException" => (403, "AccessDenied"),
        "MissingAuthenticationTokenException" => (403, "MissingAuthenticationToken"),
        "SerializationException" => (400, "MalformedInput"),
        "ServerException" => (500, "InternalFailure"),
        code => (error.status, code),
    };
    let kind = if status >= 500 { "Receiver" } else { "Sender" };
    let body = format!(
        "<ErrorResponse xmlns=\"{namespace}\"><Error><Type>{kind}</Type><Code>{code}</Code>\
         <Message>{}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>",
        escape(&error.message)
    );
    (status, body)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Control characters have no place in XML 1.0.
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_become_documents() {
        for (form, document) in [
            ("A=1&B=x+y%26", json!({"A": "1", "B": "x y&"})),
            (
                "L.member.2=b&L.member.10=c&L.member.1=a",
                json!({"L": ["a", "b", "c"]}),
            ),
            (
                "T.member.1.Key=k&T.member.1.Value=&T.member.2.Key=l",
                json!({"T": [{"Key": "k"}, {"Key": "l"}]}),
            ),
            ("L=", json!({})),
            ("L.member.x=a", json!({"L": []})),
            ("A=1&A.B=2", json!({"A": {"B": "2"}})),
            ("L.2.K=b&L.1.K=a", json!({"L": [{"K": "a"}, {"K": "b"}]})),
        ] {
            let found = Value::Object(Form::parse(form.as_bytes()).document());
            assert_eq!(found, document, "{form}");
        }
        let deep = "a.".repeat(400_000) + "a=1";
        assert_eq!(Form::parse(deep.as_bytes()).document(), Document::new());
    }

    #[test]
    fn documents_become_elements() {
        let result = json!({"L": [{"A": "<&>"}, {"A": true}], "N": null, "W": 3});
        assert_eq!(
            response("ns", "Do", &result, "r"),
            "<DoResponse xmlns=\"ns\"><DoResult><L><member><A>&lt;&amp;&gt;</A></member>\
             <member><A>true</A></member></L><W>3</W></DoResult>\
             <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></DoResponse>"
        );
        assert_eq!(
            Dialect::Ec2.response("ns", "Do", &json!({"L": [{"A": "b"}]}), "r"),
            "<DoResponse xmlns=\"ns\"><requestId>r</requestId><L><item><A>b</A></item></L></DoResponse>"
        );
    }
}
