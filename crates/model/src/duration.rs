//! Durations as Harness writes them: `30s`, `10m`, `1h 30m`, `2d`, `1w`.

use std::time::Duration;

/// Longest duration that is accepted, in seconds: 53 weeks, the longest timeout of Harness (docs: platform/approvals/
/// adding-harness-approval-stages). On AWS an execution of Step Functions ends after a year, and the run with it.
const LONGEST_SECONDS: u64 = 53 * 7 * 24 * 60 * 60;

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It does not have the form.
    #[error(
        "`{0}` is no duration; write whole numbers with units w, d, h, m, s such as `30s`, `10m` or `1h 30m`"
    )]
    Form(String),
    /// It is nothing, or longer than 53 weeks.
    #[error("`{0}` is out of range; a duration is from 1 second to 53 weeks")]
    Range(String),
}

/// Reads a duration. Units are `w`, `d`, `h`, `m` and `s`, in any order, with or without spaces between.
///
/// # Errors
/// When the text has another form, or the duration is zero or longer than 53 weeks.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let duration = parse_from_zero(text)?;
    if duration.is_zero() {
        return Err(DurationError::Range(
            crate::diagnostic::shown(text).into_owned(),
        ));
    }
    Ok(duration)
}

/// Like [`parse`], for a length that an expression computed and that may come out as nothing (`0s`).
///
/// # Errors
/// When the text has another form, or the duration is longer than 53 weeks.
pub fn parse_from_zero(text: &str) -> Result<Duration, DurationError> {
    let form = || DurationError::Form(crate::diagnostic::shown(text).into_owned());
    let range = || DurationError::Range(crate::diagnostic::shown(text).into_owned());
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(form());
    }
    let mut seconds: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let mut after = after.chars();
        let unit: u64 = match after.next() {
            Some('s')
                if !after
                    .as_str()
                    .starts_with(|c: char| c.is_ascii_alphabetic()) =>
            {
                1
            }
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            Some('w') => 604_800,
            _ => return Err(form()),
        };
        if number.is_empty() {
            return Err(form());
        }
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        seconds = part
            .and_then(|part| seconds.checked_add(part))
            .filter(|total| *total <= LONGEST_SECONDS)
            .ok_or_else(range)?;
        rest = after.as_str().trim_start();
    }
    Ok(Duration::from_secs(seconds))
}

/// A time limit as YAML writes it: `1h 30m`.
pub fn shown(limit: Duration) -> String {
    let seconds = limit.as_secs();
    let parts = [
        (seconds / 3_600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    if parts.is_empty() {
        "0s".to_owned()
    } else {
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let good = [
            ("10m", 600),
            ("5s", 5),
            ("1h 30m", 5_400),
            ("1h30m", 5_400),
            ("2d", 172_800),
            ("1w", 604_800),
            ("53w", 32_054_400),
            (" 90s ", 90),
        ];
        for (text, seconds) in good {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "10",
            "m",
            "ten minutes",
            "10ms",
            "-1m",
            "1.5h",
            "NaN",
            "10m,",
        ] {
            assert_eq!(parse(text), Err(DurationError::Form(text.to_owned())));
        }
        for text in ["0s", "372d", "54w", "2147483648w", "99999999999999999999s"] {
            assert_eq!(parse(text), Err(DurationError::Range(text.to_owned())));
        }
        assert_eq!(parse_from_zero("0s"), Ok(Duration::ZERO));
    }
}
