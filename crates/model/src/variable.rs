//! Variables of an account, an organization or a project.

use crate::inputs::RuntimeInput;
use crate::tree::Ref;

/// The value of a variable, as its `spec` says: `fixedValue`, or else `defaultValue`; of `valueType` `FIXED_SET`
/// it must be one of `allowedValues`, of `REGEX` it must match `regex`.
///
/// # Errors
/// The field at fault, with what is wrong.
pub fn value_of(variable: Ref<'_>) -> Result<String, (&'static str, String)> {
    let text = |field: &str| {
        let text = variable.at(&["spec", field]).and_then(Ref::text);
        text.filter(|text| !text.is_empty())
    };
    let kind = text("valueType").unwrap_or("FIXED");
    let (field, value) = match (text("fixedValue"), text("defaultValue")) {
        (Some(value), _) => ("fixedValue", value),
        (None, Some(value)) if kind != "FIXED" => ("defaultValue", value),
        _ => return Err(("fixedValue", "must not be empty".to_owned())),
    };
    let mut allowed = RuntimeInput::default();
    match kind {
        "FIXED_SET" => {
            let list = variable.at(&["spec", "allowedValues"]);
            let single = list.and_then(Ref::text).filter(|text| !text.is_empty());
            let items = list.into_iter().flat_map(Ref::items).filter_map(Ref::text);
            allowed.allowed = items.chain(single).map(str::to_owned).collect();
            if allowed.allowed.is_empty() {
                return Err(("allowedValues", "must not be empty".to_owned()));
            }
        }
        "REGEX" => {
            let pattern = text("regex").ok_or(("regex", "must not be empty".to_owned()))?;
            allowed.regex = Some(pattern.to_owned());
        }
        _ => {}
    }
    match allowed.check(value) {
        Ok(()) => Ok(value.to_owned()),
        Err(expected) => Err((field, format!("must be {expected}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::value_of;
    use crate::yaml;

    fn told(spec: &str) -> String {
        let tree = yaml::parse("v", &format!("spec: {spec}")).unwrap();
        match value_of(tree.root()) {
            Ok(value) => value,
            Err((field, message)) => format!("{field} {message}"),
        }
    }

    #[test]
    fn a_value_is_one_that_the_variable_allows() {
        let cases = [
            ("{valueType: FIXED, fixedValue: 7}", "7"),
            (
                "{valueType: FIXED, defaultValue: 7}",
                "fixedValue must not be empty",
            ),
            (
                "{valueType: FIXED_SET, allowedValues: [a, b], fixedValue: b}",
                "b",
            ),
            (
                "{valueType: FIXED_SET, allowedValues: [a, b], defaultValue: a}",
                "a",
            ),
            (
                "{valueType: FIXED_SET, allowedValues: [a, b], defaultValue: c}",
                "defaultValue must be one of a, b",
            ),
            (
                "{valueType: FIXED_SET, fixedValue: c}",
                "allowedValues must not be empty",
            ),
            (
                "{valueType: REGEX, regex: 'v[0-9]+', fixedValue: v12}",
                "v12",
            ),
            (
                "{valueType: REGEX, regex: 'v[0-9]+', fixedValue: xv12}",
                "fixedValue must be a text that matches v[0-9]+",
            ),
            (
                "{valueType: REGEX, regex: 'v[0-9', fixedValue: v1}",
                "fixedValue must be a pattern that can be used; v[0-9 cannot",
            ),
            (
                "{valueType: REGEX, fixedValue: v1}",
                "regex must not be empty",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(told(spec), expected, "{spec}");
        }
    }
}
