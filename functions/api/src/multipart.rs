//! Forms with files (`multipart/form-data`), for the few endpoints that take them.
//!
//! Everywhere else such a body is refused, because browsers send it across sites without asking. Here it cannot
//! do harm either: the token comes in a header that no form can set.

use axum::extract::{FromRequest, Request};
use axum::http::header;
use secrecy::zeroize::Zeroize as _;

use crate::body;
use crate::error::{ApiError, ApiResult};

/// Parts of a form at most.
const MOST_PARTS: usize = 50;

/// Bytes of a part's headers at most.
const LONGEST_HEAD: usize = 8 << 10;

/// A form, in the order of its parts.
pub(crate) struct Form(Vec<(String, Vec<u8>)>);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|value| value.to_str().ok());
        let boundary = kind.and_then(boundary).ok_or_else(|| {
            ApiError::invalid("This endpoint takes multipart/form-data with a boundary")
        })?;
        let bytes = body::bytes(request).await?;
        parse(&boundary, &bytes).map(Self)
    }
}

impl Form {
    /// The bytes of a field.
    pub(crate) fn bytes(&self, field: &str) -> Option<&[u8]> {
        let part = self.0.iter().find(|(name, _)| name == field)?;
        Some(&part.1)
    }

    /// The text of a field; an empty one is absent.
    pub(crate) fn text(&self, field: &str) -> ApiResult<Option<&str>> {
        let Some(bytes) = self.bytes(field).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(bytes);
        text.map(Some)
            .map_err(|_| ApiError::field(field, "is not UTF-8 text"))
    }
}

impl Drop for Form {
    /// A form may carry a secret.
    fn drop(&mut self) {
        for (_, bytes) in &mut self.0 {
            bytes.zeroize();
        }
    }
}

/// The boundary of a `Content-Type`.
fn boundary(kind: &str) -> Option<String> {
    let (kind, parameters) = kind.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let found = parameter(parameters, "boundary")?;
    // RFC 2046, 5.1.1.
    (1..=70).contains(&found.len()).then_some(found)
}

/// A parameter of a header, `; name=value; name="value"`. Values in quotes may hold anything.
fn parameter(text: &str, wanted: &str) -> Option<String> {
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim().trim_start_matches(';').trim();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(';').unwrap_or((after, "")),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = after;
    }
    None
}

fn parse(boundary: &str, body: &[u8]) -> ApiResult<Vec<(String, Vec<u8>)>> {
    let broken = || ApiError::invalid("The form is broken: a part has no end, no name or no head");
    let first = format!("--{boundary}");
    let between = format!("\r\n--{boundary}");
    let mut rest = body.strip_prefix(first.as_bytes()).ok_or_else(broken)?;
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        if parts.len() == MOST_PARTS {
            return Err(ApiError::invalid(format!(
                "More than {MOST_PARTS} parts in a form"
            )));
        }
        let (_, after) = split(rest, b"\r\n").ok_or_else(broken)?;
        let (head, after) = split(after, b"\r\n\r\n")
            .filter(|(head, _)| head.len() <= LONGEST_HEAD)
            .ok_or_else(broken)?;
        let (content, after) = split(after, between.as_bytes()).ok_or_else(broken)?;
        parts.push((name(head).ok_or_else(broken)?, content.to_vec()));
        rest = after;
    }
    Ok(parts)
}

/// The bytes before and after the first `by`.
fn split<'a>(bytes: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(by.len()).position(|window| window == by)?;
    Some((bytes.get(..at)?, bytes.get(at + by.len()..)?))
}

fn name(head: &[u8]) -> Option<String> {
    let head = std::str::from_utf8(head).ok()?;
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let (_, parameters) = value.split_once(';')?;
        let wanted = key.trim().eq_ignore_ascii_case("content-disposition");
        wanted.then(|| parameter(parameters, "name"))?
    })
}

#[cfg(test)]
mod tests {
    use super::{boundary, parse};

    #[test]
    fn the_boundary_is_found_in_every_spelling() {
        for (kind, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            (
                "Multipart/Form-Data; charset=utf-8; boundary=\"a b;c\"",
                Some("a b;c"),
            ),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("application/json; boundary=abc", None),
        ] {
            assert_eq!(boundary(kind).as_deref(), expected, "{kind}");
        }
    }

    #[test]
    fn parts_keep_their_bytes() {
        let body = b"--x\r\nContent-Disposition: form-data; filename=\"a; name=\"; name=\"content\"\r\nContent-Type: a/b\r\n\r\n1\r\n--y\n2\r\n--x\r\ncontent-disposition: form-data; name=type\r\n\r\nFILE\r\n--x--\r\n";
        let parts = parse("x", body).expect("a form");
        let shown: Vec<_> = parts
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        let expected: Vec<(&str, &[u8])> = vec![("content", b"1\r\n--y\n2"), ("type", b"FILE")];
        assert_eq!(shown, expected);
    }

    #[test]
    fn broken_forms_are_refused() {
        let many = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(60) + "--x--";
        for body in [
            "",
            "--x",
            "--y\r\n\r\n--y--",
            "--x\r\nContent-Disposition: form-data; name=a\r\n\r\nno end",
            "--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--",
            "--x\r\nContent-Disposition: form-data; name=\"a\r\n\r\na\r\n--x--",
            &many,
        ] {
            assert!(parse("x", body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
