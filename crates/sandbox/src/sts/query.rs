//! The Query protocol: a form comes in, XML goes out.

use std::fmt::Write;

use percent_encoding::percent_decode_str;

use crate::error::ApiError;

const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";
/// Members of a form at most.
const MOST: usize = 500;

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
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MOST);
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
}

/// Elements of a response, escaped.
#[derive(Debug, Default)]
pub(crate) struct Xml(String);

impl Xml {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn text(mut self, name: &str, text: &str) -> Self {
        let _infallible = write!(self.0, "<{name}>{}</{name}>", escape(text));
        self
    }

    pub(crate) fn element(mut self, name: &str, inner: &Xml) -> Self {
        let _infallible = write!(self.0, "<{name}>{}</{name}>", inner.0);
        self
    }

    /// The whole response of `action`.
    pub(crate) fn response(&self, action: &str, request_id: &str) -> String {
        format!(
            "<{action}Response xmlns=\"{NAMESPACE}\"><{action}Result>{}</{action}Result>\
             <ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action}Response>",
            self.0
        )
    }
}

/// An error as the Query protocol writes it, and its HTTP status: some codes have other names here.
pub(crate) fn error_xml(error: &ApiError, request_id: &str) -> (u16, String) {
    let (status, code) = match error.code {
        "ExpiredTokenException" => (403, "ExpiredToken"),
        "ThrottlingException" => (400, "Throttling"),
        "AccessDeniedException" => (403, "AccessDenied"),
        "MissingAuthenticationTokenException" => (403, "MissingAuthenticationToken"),
        "ServerException" => (500, "InternalFailure"),
        code => (error.status, code),
    };
    let kind = if status >= 500 { "Receiver" } else { "Sender" };
    let body = format!(
        "<ErrorResponse xmlns=\"{NAMESPACE}\"><Error><Type>{kind}</Type><Code>{code}</Code>\
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
