//! The names of methods and functions, to tell the nearest one to who misspells one.

use crate::value::Value;

const STRING: &[&str] = &[
    "charAt",
    "codePointAt",
    "compareTo",
    "compareToIgnoreCase",
    "concat",
    "contains",
    "contentEquals",
    "endsWith",
    "equals",
    "equalsIgnoreCase",
    "hashCode",
    "indexOf",
    "intern",
    "isBlank",
    "isEmpty",
    "join",
    "lastIndexOf",
    "length",
    "lines",
    "matches",
    "regionMatches",
    "repeat",
    "replace",
    "replaceAll",
    "replaceFirst",
    "size",
    "split",
    "startsWith",
    "strip",
    "stripLeading",
    "stripTrailing",
    "subSequence",
    "substring",
    "toCharArray",
    "toLowerCase",
    "toString",
    "toUpperCase",
    "trim",
];

const LIST: &[&str] = &[
    "contains",
    "containsAll",
    "equals",
    "get",
    "indexOf",
    "isEmpty",
    "lastIndexOf",
    "length",
    "size",
    "subList",
    "toString",
];

const MAP: &[&str] = &[
    "containsKey",
    "containsValue",
    "equals",
    "get",
    "getOrDefault",
    "isEmpty",
    "keySet",
    "size",
    "toString",
    "values",
];

const NUMBER: &[&str] = &[
    "compareTo",
    "doubleValue",
    "equals",
    "floatValue",
    "intValue",
    "longValue",
    "toString",
];

const TIME: &[&str] = &[
    "compareTo",
    "equals",
    "format",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHour",
    "getMinute",
    "getMonth",
    "getMonthValue",
    "getNano",
    "getSecond",
    "getYear",
    "isAfter",
    "isBefore",
    "isEqual",
    "minusDays",
    "minusHours",
    "minusMinutes",
    "minusMonths",
    "minusNanos",
    "minusSeconds",
    "minusWeeks",
    "minusYears",
    "plusDays",
    "plusHours",
    "plusMinutes",
    "plusMonths",
    "plusNanos",
    "plusSeconds",
    "plusWeeks",
    "plusYears",
    "toEpochDay",
    "toEpochMilli",
    "toEpochSecond",
    "toLocalDate",
    "toString",
];

const FUNCTIONS: &[&str] = &[
    "configFile.getAsBase64",
    "configFile.getAsString",
    "currentDate",
    "currentTime",
    "date.currentDate",
    "date.currentTime",
    "datetime.currentDate",
    "datetime.currentTime",
    "exportedVariables.getValue",
    "fileStore.getAsBase64",
    "fileStore.getAsString",
    "json.format",
    "json.list",
    "json.object",
    "json.select",
    "regex.extract",
    "regex.match",
    "regex.replace",
    "secrets.getValue",
    "xml.select",
];

fn methods(value: &Value) -> &'static [&'static str] {
    match value {
        Value::String(_) => STRING,
        Value::List(_) => LIST,
        Value::Map(_) => MAP,
        Value::Int(_) | Value::Float(_) => NUMBER,
        Value::Time(_) => TIME,
        Value::Bool(_) => &["booleanValue", "equals", "toString"],
        Value::Null => &["equals", "toString"],
        Value::Secret(_) => &["concat", "toString"],
    }
}

/// Whether values of this kind have a method of this name.
pub(super) fn is_method(value: &Value, name: &str) -> bool {
    methods(value).contains(&name)
}

/// The method whose name is nearest, if one is near.
pub(super) fn nearest_method(value: &Value, name: &str) -> Option<&'static str> {
    nearest(methods(value), name)
}

/// The function whose full name is nearest, if one is near.
pub(crate) fn nearest_function(name: &str) -> Option<&'static str> {
    nearest(FUNCTIONS, name)
}

fn nearest(names: &'static [&'static str], name: &str) -> Option<&'static str> {
    // Longer than any name: nothing is near, and the distance is not worth its work.
    if name.len() > 48 {
        return None;
    }
    let wanted = name.to_lowercase();
    names
        .iter()
        .map(|known| (strsim::osa_distance(&known.to_lowercase(), &wanted), known))
        .filter(|(distance, known)| *distance <= 2 && *distance * 3 < known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| *known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Meter;
    use crate::time::Moment;
    use crate::{Limits, Reason};

    /// Every combination of up to four arguments of these.
    fn arguments() -> Vec<Vec<Value>> {
        let moment = Value::from(Moment::from_ms(0).expect("1970"));
        let single = [
            Value::Int(0),
            Value::from("0"),
            Value::List(Vec::new()),
            moment,
        ];
        let mut all = vec![Vec::new()];
        let mut last = all.clone();
        for _ in 0..4 {
            last = last
                .iter()
                .flat_map(|before| {
                    single.iter().map(|value| {
                        let mut longer = before.clone();
                        longer.push(value.clone());
                        longer
                    })
                })
                .collect();
            all.extend(last.clone());
        }
        all
    }

    #[test]
    fn every_name_is_a_method() {
        let limits = Limits::default();
        let time = Moment::from_ms(1).expect("1970");
        let values = [
            vec!["text".into()],
            vec![Value::List(vec![Value::Int(0)])],
            vec![Value::Map(
                [("0".to_owned(), Value::Null)].into_iter().collect(),
            )],
            vec![Value::Int(1), Value::Float(1.5)],
            vec![time.into(), time.day().into()],
            vec![Value::Bool(true)],
            vec![Value::Null],
        ];
        for kind in values {
            for name in methods(&kind[0]) {
                let works = kind.iter().any(|value| {
                    arguments().iter().any(|arguments| {
                        let mut meter = Meter::new(&limits);
                        let outcome = super::super::call(value, name, arguments, &mut meter);
                        outcome.is_ok()
                    })
                });
                assert!(works, "{}: {name}", kind[0].kind());
            }
        }
    }

    #[test]
    fn slips_are_understood() {
        let text = Value::from("a");
        for (slip, meant) in [
            ("touppercase", Some("toUpperCase")),
            ("toUpper", None),
            ("lenght", Some("length")),
            ("indexof", Some("indexOf")),
            ("x", None),
        ] {
            assert_eq!(nearest_method(&text, slip), meant, "{slip}");
        }
        assert_eq!(nearest_function("json.selct"), Some("json.select"));
        assert_eq!(nearest_function(&"a".repeat(100_000)), None);
        let limits = Limits::default();
        let mut meter = Meter::new(&limits);
        let error = super::super::call(&text, "lenght", &[], &mut meter).expect_err("a slip");
        assert!(
            matches!(
                error,
                Reason::NoMethod {
                    nearest: Some("length"),
                    ..
                }
            ),
            "{error}"
        );
    }
}
