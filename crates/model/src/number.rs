//! Numbers as Harness reads the value of a variable of type `Number`.

use serde_json::Number;

/// Whole numbers up to here are exact as fractions, too.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The number that a text is: decimal digits, with a sign, a point and an exponent or without (`007`, `1.50`, `+.5`,
/// `1e3`); `None` for every other text, also for what is too large to be one. What is whole is a whole number,
/// however it is written.
pub fn parse(text: &str) -> Option<Number> {
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    if !text.chars().all(is_digit) {
        return None;
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let number: f64 = text.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole, and small enough to be exact"
    )]
    match number.fract() == 0.0 && number.abs() <= EXACT {
        true => Some((number as i64).into()),
        false => Number::from_f64(number),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_number_may_be_written_in_many_ways() {
        let table = [
            ("3", "3"),
            ("-3", "-3"),
            ("+3", "3"),
            ("007", "7"),
            ("1.50", "1.5"),
            ("1.0", "1"),
            (".5", "0.5"),
            ("1e3", "1000"),
            ("2.5E-1", "0.25"),
            ("9223372036854775807", "9223372036854775807"),
            ("1e300", "1e+300"),
        ];
        for (text, expected) in table {
            let number = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(number.to_string(), expected, "{text}");
        }
        let others = [
            "", " 1", "1 ", "abc", "1,5", "1_000", "0x1F", "inf", "NaN", "1e999", "--1", ".", "e",
            "1.2.3", "٣",
        ];
        for text in others {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
