//! Reads the rules of a `Choice`.

use serde_json::Value;

use super::fields::{Fields, NO_TIMESTAMP, Result, invalid};
use super::{ChoiceRule, Condition};
use crate::choice::{Is, Kind, Operand, Relation, Test};
use crate::query::Query;
use crate::time::extended_offset;

/// Deepest nesting of `And`, `Or` and `Not`.
const DEEPEST: usize = 64;

pub(super) fn choices(fields: &Fields<'_>) -> Result<Vec<ChoiceRule>> {
    fields.require(&["Choices"])?;
    let mut rules = Vec::new();
    for (i, value) in fields.list("Choices")?.iter().enumerate() {
        let rule = fields.inner(value, &format!("{}[{i}]", fields.at("Choices")))?;
        rules.push(self::rule(&rule)?);
    }
    if rules.is_empty() {
        return invalid(&fields.at("Choices"), "Value cannot be empty");
    }
    Ok(rules)
}

fn rule(rule: &Fields<'_>) -> Result<ChoiceRule> {
    rule.refuse_other_language()?;
    rule.require(&["Next"])?;
    let condition = if rule.is_jsonata() {
        rule.allow(&["Condition", "Next", "Comment", "Output", "Assign"])?;
        rule.require(&["Condition"])?;
        Condition::Expression(expression(rule)?)
    } else {
        Condition::Test(test(rule, 0)?)
    };
    Ok(ChoiceRule {
        condition,
        next: rule.required_text("Next")?.to_owned(),
        output: rule.template("Output")?,
        assign: rule.assign()?,
    })
}

fn expression(rule: &Fields<'_>) -> Result<crate::template::Template> {
    use crate::template::Template;
    match rule.get("Condition") {
        Some(Value::Bool(flag)) => Ok(Template::Literal((*flag).into())),
        _ => match rule.text_or_query("Condition")? {
            Some(template) if template.expression().is_some() => Ok(template),
            _ => invalid(
                &rule.at("Condition"),
                "Condition must be a Boolean or a JSONata expression",
            ),
        },
    }
}

fn test(rule: &Fields<'_>, depth: usize) -> Result<Test> {
    if depth > DEEPEST {
        return invalid(
            &rule.path,
            format!("Choice rules nest deeper than {DEEPEST}"),
        );
    }
    let outer: &[&str] = if depth == 0 {
        &["Next", "Comment", "Assign"]
    } else {
        &["Comment"]
    };
    let mut operators = rule
        .keys()
        .filter(|key| !outer.contains(key) && *key != "Variable");
    let (operator, more) = (operators.next(), operators.next());
    let (Some(operator), None) = (operator, more) else {
        return invalid(
            &rule.path,
            "The object must have only one of the following fields, [And, Or, Not, Variable, Condition]",
        );
    };
    match operator {
        "And" => Ok(Test::And(tests(rule, operator, depth)?)),
        "Or" => Ok(Test::Or(tests(rule, operator, depth)?)),
        "Not" => {
            let inner = rule.inner(rule.get("Not").unwrap_or(&Value::Null), &rule.at("Not"))?;
            Ok(Test::Not(Box::new(test(&inner, depth + 1)?)))
        }
        _ => comparison(rule, operator),
    }
}

fn tests(rule: &Fields<'_>, operator: &str, depth: usize) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for (i, value) in rule.list(operator)?.iter().enumerate() {
        let inner = rule.inner(value, &format!("{}[{i}]", rule.at(operator)))?;
        tests.push(test(&inner, depth + 1)?);
    }
    if tests.is_empty() {
        return invalid(&rule.at(operator), "Value cannot be empty");
    }
    Ok(tests)
}

fn no_path<T>(rule: &Fields<'_>, name: &str) -> Result<T> {
    let starts = rule.text(name)?.is_some_and(|text| text.starts_with('$'));
    let message = if starts {
        "Value must be a valid JSONPath."
    } else {
        "Value is not a Reference Path: Reference path didn't start with '$'"
    };
    invalid(&rule.at(name), message)
}

fn comparison(rule: &Fields<'_>, operator: &str) -> Result<Test> {
    rule.require(&["Variable"])?;
    let variable = match rule.text("Variable")?.and_then(Query::path) {
        Some(variable) => variable,
        None => return no_path(rule, "Variable"),
    };
    if let Some(what) = is(operator) {
        return Ok(Test::Is {
            variable,
            what,
            expected: rule.flag(operator)?,
        });
    }
    let (name, is_path) = match operator.strip_suffix("Path") {
        Some(name) => (name, true),
        None => (operator, false),
    };
    let Some((of, relation)) = relation(name).filter(|(_, relation)| {
        // `StringMatches` alone has no form with a path.
        !is_path || *relation != Relation::Matches
    }) else {
        return rule.unsupported(operator);
    };
    let with = if is_path {
        match rule.text(operator)?.and_then(Query::path) {
            Some(query) => Operand::Path(query),
            None => return no_path(rule, operator),
        }
    } else {
        Operand::Literal(literal(rule, operator, of)?)
    };
    Ok(Test::Compare {
        variable,
        of,
        relation,
        with,
    })
}

fn is(operator: &str) -> Option<Is> {
    Some(match operator {
        "IsNull" => Is::Null,
        "IsPresent" => Is::Present,
        "IsNumeric" => Is::Number,
        "IsString" => Is::Text,
        "IsBoolean" => Is::Boolean,
        "IsTimestamp" => Is::Timestamp,
        _ => return None,
    })
}

fn relation(name: &str) -> Option<(Kind, Relation)> {
    if name == "StringMatches" {
        return Some((Kind::Text, Relation::Matches));
    }
    if name == "BooleanEquals" {
        return Some((Kind::Boolean, Relation::Equal));
    }
    let kinds = [
        ("String", Kind::Text),
        ("Numeric", Kind::Number),
        ("Timestamp", Kind::Timestamp),
    ];
    let (rest, kind) = kinds
        .into_iter()
        .find_map(|(prefix, kind)| Some((name.strip_prefix(prefix)?, kind)))?;
    let relation = match rest {
        "Equals" => Relation::Equal,
        "LessThan" => Relation::Less,
        "LessThanEquals" => Relation::LessOrEqual,
        "GreaterThan" => Relation::Greater,
        "GreaterThanEquals" => Relation::GreaterOrEqual,
        _ => return None,
    };
    Some((kind, relation))
}

fn literal(rule: &Fields<'_>, operator: &str, of: Kind) -> Result<Value> {
    let value = rule.get(operator).cloned().unwrap_or_default();
    let (fits, expected) = match of {
        Kind::Text => (value.is_string(), "String"),
        Kind::Number => (value.is_number(), "Number"),
        Kind::Boolean => (value.is_boolean(), "Boolean"),
        Kind::Timestamp => (
            value.as_str().and_then(extended_offset).is_some(),
            "Timestamp",
        ),
    };
    if fits {
        return Ok(value);
    }
    if of == Kind::Timestamp && value.is_string() {
        return invalid(&rule.at(operator), NO_TIMESTAMP);
    }
    invalid(
        &rule.at(operator),
        format!("Expected value of type {expected}"),
    )
}
