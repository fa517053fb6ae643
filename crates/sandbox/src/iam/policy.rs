//! Policy documents: their form, and what they say about one question.
//!
//! As IAM's user guide has it: an explicit deny wins, then an allow, and what nothing names is not allowed. Names of
//! actions and condition keys are compared without case. Elements and operators that are not known here are refused when a document
//! is saved: a condition that is not looked at would allow too much.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::ApiError;

/// Elements of a statement that are looked at.
const ELEMENTS: &[&str] = &[
    "Sid",
    "Effect",
    "Action",
    "Resource",
    "Principal",
    "Condition",
];
/// Operators of conditions.
const OPERATORS: &[&str] = &[
    "StringEquals",
    "StringNotEquals",
    "StringEqualsIgnoreCase",
    "StringLike",
    "StringNotLike",
    "ArnEquals",
    "ArnLike",
];

/// What is asked.
pub(super) struct Question<'a> {
    pub(super) action: &'a str,
    /// What the action is on; `None` of a trust policy, whose role it is.
    pub(super) resource: Option<&'a str>,
    /// Who asks, as a principal of one of its kinds; none of an identity's own policy.
    pub(super) principals: &'a [(&'static str, String)],
    /// Values of condition keys, in lower case.
    pub(super) context: &'a BTreeMap<String, String>,
}

/// What a document says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    NotNamed,
    Allowed,
    Denied,
}

/// A trust policy.
pub(super) fn trust(text: &str) -> Result<Value, ApiError> {
    read(text, true)
}

/// A policy of an identity.
pub(super) fn identity(text: &str) -> Result<Value, ApiError> {
    read(text, false)
}

fn malformed(message: impl Into<String>) -> ApiError {
    ApiError::client("MalformedPolicyDocument", message)
}

fn read(text: &str, trust: bool) -> Result<Value, ApiError> {
    let document: Value =
        serde_json::from_str(text).map_err(|_| malformed("This policy contains invalid Json"))?;
    if statements(&document).is_empty() {
        return Err(malformed("Syntax errors in policy."));
    }
    for statement in statements(&document) {
        let members = statement.as_object();
        let members = members.ok_or_else(|| malformed("Syntax errors in policy."))?;
        if let Some(unknown) = members
            .keys()
            .find(|name| !ELEMENTS.contains(&name.as_str()))
        {
            return Err(malformed(format!(
                "Syntax errors in policy: the sandbox account does not know the element {unknown}."
            )));
        }
        if !matches!(statement["Effect"].as_str(), Some("Allow" | "Deny")) {
            return Err(malformed("Missing required field Effect"));
        }
        let (wanted, other) = match trust {
            true => ("Principal", "Resource"),
            false => ("Resource", "Principal"),
        };
        for needed in ["Action", wanted] {
            if members.get(needed).is_none() {
                return Err(malformed(format!("Missing required field {needed}")));
            }
        }
        if members.contains_key(other) {
            return Err(malformed(format!("Has prohibited field {other}")));
        }
        let operators = statement["Condition"].as_object().into_iter().flatten();
        for (operator, _) in operators {
            let plain = operator.strip_suffix("IfExists").unwrap_or(operator);
            if !OPERATORS.contains(&plain) {
                return Err(malformed(format!("Invalid Condition type : {operator}.")));
            }
        }
    }
    Ok(document)
}

fn statements(document: &Value) -> Vec<&Value> {
    many(&document["Statement"])
}

/// One, or a list of them.
fn many(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    }
}

/// What `document` says.
pub(super) fn decide(document: &Value, question: &Question<'_>) -> Verdict {
    let verdicts = statements(document).into_iter().map(|statement| {
        if !applies(statement, question) {
            return Verdict::NotNamed;
        }
        match statement["Effect"].as_str() {
            Some("Allow") => Verdict::Allowed,
            _ => Verdict::Denied,
        }
    });
    verdicts.max().unwrap_or(Verdict::NotNamed)
}

fn applies(statement: &Value, question: &Question<'_>) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let action = question.action.to_ascii_lowercase();
    let mut actions = many(&statement["Action"]).into_iter();
    let mut resources = many(&statement["Resource"]).into_iter();
    actions.any(|pattern| like(&text(pattern).to_ascii_lowercase(), &action))
        && question
            .resource
            .is_none_or(|resource| resources.any(|pattern| like(&text(pattern), resource)))
        && (question.principals.is_empty() || names(&statement["Principal"], question.principals))
        && holds(&statement["Condition"], question.context)
}

/// Whether a `Principal` names one of these.
fn names(principal: &Value, principals: &[(&'static str, String)]) -> bool {
    if principal.as_str() == Some("*") {
        return true;
    }
    principals.iter().any(|(kind, name)| {
        let mut named = many(&principal[*kind])
            .into_iter()
            .filter_map(Value::as_str);
        named.any(|named| named == name || (named == "*" && *kind == "AWS"))
    })
}

/// Whether all conditions hold.
fn holds(conditions: &Value, context: &BTreeMap<String, String>) -> bool {
    let conditions = conditions.as_object().into_iter().flatten();
    conditions.into_iter().all(|(operator, keys)| {
        let (operator, if_exists) = match operator.strip_suffix("IfExists") {
            Some(plain) => (plain, true),
            None => (operator.as_str(), false),
        };
        let mut keys = keys.as_object().into_iter().flatten();
        keys.all(|(key, wanted)| {
            let found = context.get(&key.to_ascii_lowercase());
            let mut wanted = many(wanted).into_iter().filter_map(Value::as_str);
            match (found, operator) {
                (None, "StringNotEquals" | "StringNotLike") => true,
                (None, _) => if_exists,
                (Some(found), "StringEquals") => wanted.any(|wanted| wanted == found),
                (Some(found), "StringNotEquals") => wanted.all(|wanted| wanted != found),
                (Some(found), "StringEqualsIgnoreCase") => {
                    wanted.any(|wanted| wanted.eq_ignore_ascii_case(found))
                }
                (Some(found), "StringNotLike") => wanted.all(|wanted| !like(wanted, found)),
                (Some(found), _) => wanted.any(|wanted| like(wanted, found)),
            }
        })
    })
}

/// Whether `text` fits `pattern`, in which `*` is any text and `?` any letter. Takes time of their product at most.
fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = text.get(seen) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == letter => {
                at += 1;
                seen += 1;
            }
            _ => match &mut star {
                None => return false,
                Some((from, taken)) => {
                    *taken += 1;
                    at = *from + 1;
                    seen = *taken;
                }
            },
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(document: &Value, principal: &str, external_id: Option<&str>) -> Verdict {
        let context = external_id.map(|id| ("sts:externalid".to_owned(), id.to_owned()));
        let question = Question {
            action: "sts:AssumeRole",
            resource: None,
            principals: &[("AWS", principal.to_owned())],
            context: &context.into_iter().collect(),
        };
        decide(document, &question)
    }

    #[test]
    fn trust_is_for_who_it_names_under_its_conditions() {
        let text = json!({"Statement": {"Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam::1:root", "x"]},
            "Action": "sts:Assume*", "Condition": {"StringEquals": {"sts:ExternalId": ["a", "b"]}}}});
        let trust = trust(&text.to_string()).expect("a trust policy");
        assert_eq!(ask(&trust, "x", Some("b")), Verdict::Allowed);
        assert_eq!(ask(&trust, "x", Some("c")), Verdict::NotNamed);
        assert_eq!(ask(&trust, "x", None), Verdict::NotNamed);
        assert_eq!(ask(&trust, "y", Some("a")), Verdict::NotNamed);
    }

    #[test]
    fn a_deny_wins() {
        let text = json!({"Statement": [
            {"Effect": "Allow", "Principal": "*", "Action": "*"},
            {"Effect": "Deny", "Principal": {"AWS": "x"}, "Action": "STS:assumerole"},
        ]});
        let trust = trust(&text.to_string()).expect("a trust policy");
        assert_eq!(ask(&trust, "x", None), Verdict::Denied);
        assert_eq!(ask(&trust, "y", None), Verdict::Allowed);
    }

    #[test]
    fn what_is_not_looked_at_is_refused() {
        for text in [
            "{",
            "{}",
            r#"{"Statement": [{"Effect": "Allow", "NotPrincipal": "*", "Action": "*"}]}"#,
            r#"{"Statement": [{"Effect": "Maybe", "Principal": "*", "Action": "*"}]}"#,
            r#"{"Statement": [{"Effect": "Allow", "Principal": "*"}]}"#,
            r#"{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}]}"#,
            r#"{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Condition": {"IpAddress": {}}}]}"#,
        ] {
            let error = trust(text).expect_err(text);
            assert_eq!(error.code, "MalformedPolicyDocument", "{text}");
        }
    }

    #[test]
    fn patterns_fit() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaybz", true),
            ("", "a", false),
        ] {
            assert_eq!(like(pattern, text), fits, "{pattern} {text}");
        }
        assert!(!like(&"*a".repeat(2_000), &"a".repeat(1_999)));
    }
}
