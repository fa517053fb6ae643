//! The body of a delivery, read as JSON without believing anything of it.
//!
//! What two readers could understand differently is refused: keys that come twice, numbers that would be rounded, text
//! that is no text. A value that is read here is the value that was sent.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{Delivery, MOST_BODY};

/// Most levels of lists and maps in each other.
const DEEPEST: usize = 64;

/// Reads the body of a delivery: JSON, or a form whose field `payload` is JSON, as GitHub sends where its webhook says so.
///
/// # Errors
/// Why it cannot be read, with the place.
pub fn of(delivery: &Delivery) -> Result<Value, String> {
    if delivery.body.len() > MOST_BODY {
        let size = delivery.body.len();
        return Err(format!(
            "the body has {size} bytes: more than {MOST_BODY} are not read"
        ));
    }
    let kind = delivery.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    // `curl -d` calls everything a form; no form begins like a document of JSON.
    let is_json = matches!(delivery.body.first(), Some(b'{' | b'['));
    if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") && !is_json {
        return read(&form(&delivery.body)?);
    }
    read(&delivery.body)
}

/// Reads JSON.
///
/// # Errors
/// Why it is none, with the place: levels beyond 64, text that is not UTF-8 or has a NUL, half of a surrogate pair, a
/// key that comes twice, a whole number of more than 64 bits, or one that is too large for any number.
pub fn read(body: &[u8]) -> Result<Value, String> {
    if body.is_empty() {
        return Err("the body is empty: JSON is expected".to_owned());
    }
    if body.starts_with(b"\xef\xbb\xbf") {
        return Err("the body begins with a byte order mark: JSON has none".to_owned());
    }
    let text = std::str::from_utf8(body)
        .map_err(|why| format!("the body is not UTF-8 from byte {}", why.valid_up_to()))?;
    scan(body)?;
    serde_json::from_str::<Strict>(text)
        .map(|Strict(value)| value)
        .map_err(|why| format!("the body cannot be read as JSON: {why}"))
}

/// The field `payload` of a form.
fn form(body: &[u8]) -> Result<Vec<u8>, String> {
    let fields = body.split(|byte| *byte == b'&');
    let mut found = fields.filter_map(|field| field.strip_prefix(b"payload="));
    let payload = found
        .next()
        .ok_or("the form has no field `payload`: send JSON, or a form with it")?;
    if found.next().is_some() {
        return Err("the form has the field `payload` twice".to_owned());
    }
    let mut read = Vec::with_capacity(payload.len());
    let mut bytes = payload.iter().copied();
    while let Some(byte) = bytes.next() {
        read.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let both = digit().zip(digit());
                let byte = both.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                byte.ok_or("the form has a `%` without two hexadecimal digits")?
            }
            other => other,
        });
    }
    Ok(read)
}

/// What the reader of JSON lets pass, found before it begins: depth, and numbers that it would round.
fn scan(body: &[u8]) -> Result<(), String> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = body.get(at) {
        match byte {
            b'"' => at = after_text(body, at + 1),
            b'{' | b'[' => {
                depth += 1;
                if depth > DEEPEST {
                    return Err(format!(
                        "the body has more than {DEEPEST} levels at byte {at}"
                    ));
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let rest = body.get(at..).unwrap_or_default();
                let of_number =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = rest.iter().take_while(|byte| of_number(byte)).count();
                let number = rest.get(..length).unwrap_or_default();
                if !is_exact(number) {
                    return Err(format!(
                        "the whole number at byte {at} has more than 64 bits: it would be rounded"
                    ));
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// The place after the quote that ends a text.
fn after_text(body: &[u8], mut at: usize) -> usize {
    while let Some(byte) = body.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Whether a number keeps its value when it is read: fractions are fractions, whole numbers are whole.
fn is_exact(number: &[u8]) -> bool {
    if number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return true;
    }
    let text = std::str::from_utf8(number).unwrap_or_default();
    // What is no number at all is left to the reader of JSON, which says so better.
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    !is_number || text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
}

/// A value without keys that come twice and without NUL.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

/// A text that may be kept.
fn clean<E: Error>(text: &str) -> Result<&str, E> {
    match text.contains('\0') {
        true => Err(E::custom("a text has a NUL in it")),
        false => Ok(text),
    }
}

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is too large"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        clean(value).map(Value::from)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            clean::<A::Error>(&key)?;
            let Strict(value) = entries.next_value()?;
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("a key comes twice in one object"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::{of, read};
    use crate::Delivery;
    use proptest::prelude::*;

    #[test]
    fn w10_nesting_is_refused_before_it_is_read() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = |levels: usize| open.repeat(levels) + "1" + &close.repeat(levels);
            assert!(read(deep(64).as_bytes()).is_ok());
            for levels in [65, 100_000] {
                let why = read(deep(levels).as_bytes()).unwrap_err();
                assert!(why.contains("more than 64 levels at byte"), "{why}");
            }
            assert!(read(open.repeat(100_000).as_bytes()).is_err());
        }
        // Brackets in a text are no levels.
        assert!(read(format!("[\"\\\"{}\"]", "[".repeat(100)).as_bytes()).is_ok());
    }

    #[test]
    fn w12_what_could_be_read_in_two_ways_is_refused() {
        let refused: [(&[u8], &str); 16] = [
            (b"", "empty"),
            (b"\xef\xbb\xbf{}", "byte order mark"),
            (b"{\"a\": \"\xff\"}", "not UTF-8 from byte 7"),
            (b"{\"a\": \"\\ud800\"}", "JSON"),
            (b"{\"a\": \"\\ud800x\"}", "JSON"),
            (b"{\"a\": \"\\udc00\\ud800\"}", "JSON"),
            (b"{\"a\": \"x\\u0000\"}", "NUL"),
            (b"{\"x\\u0000\": 1}", "NUL"),
            (b"{\"a\": \"\0\"}", "JSON"),
            (b"[1e999]", "JSON"),
            (b"[-1e999]", "JSON"),
            (b"[18446744073709551616]", "byte 1 has more than 64 bits"),
            (b"{\"id\":-9223372036854775809}", "byte 6 has more than 64"),
            (b"{\"a\": 1, \"b\": {\"x\": 1, \"x\": 1}}", "comes twice"),
            (b"{} {}", "JSON"),
            (b"[NaN]", "JSON"),
        ];
        for (body, expected) in refused {
            let why = read(body).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let kept =
            b"[18446744073709551615,-9223372036854775808,9007199254740993,0.5,\"\\ud83d\\ude00\"]";
        let value = read(kept).expect("a value");
        let text = value.to_string();
        assert_eq!(
            text,
            "[18446744073709551615,-9223372036854775808,9007199254740993,0.5,\"\u{1f600}\"]"
        );
    }

    #[test]
    fn a_form_of_github_is_read() {
        let delivery = |body: &str| Delivery {
            headers: vec![(
                "content-type".to_owned(),
                "application/x-www-form-urlencoded; charset=utf-8".to_owned(),
            )],
            body: body.as_bytes().to_vec(),
        };
        let read = of(&delivery("payload=%7B%22a%22%3A+%22b%2B%26%22%7D&x=1")).expect("a value");
        assert_eq!(read, serde_json::json!({"a": "b+&"}));
        // What `curl -d` sends.
        let read = of(&delivery(r#"{"a": "b"}"#)).expect("a value");
        assert_eq!(read, serde_json::json!({"a": "b"}));
        for (body, expected) in [
            ("a=1", "no field `payload`"),
            ("payload=1&payload=2", "twice"),
            ("payload=%7", "without two"),
            ("payload=%zz", "without two"),
            ("payload=%ff", "UTF-8"),
        ] {
            let why = of(&delivery(body)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&body);
        }

        #[test]
        fn near_json_is_what_the_plain_reader_makes_of_it(body in "[\\[\\]{}\",:0-9a-e.+\\\\ \\-]{0,40}") {
            if let Ok(value) = read(body.as_bytes()) {
                prop_assert_eq!(value, serde_json::from_str::<serde_json::Value>(&body).expect("JSON"));
            }
        }
    }
}
