//! When scheduled actions recur.

use crate::error::ApiError;

use super::request::validation;

/// Least and greatest number of each field: minute, hour, day of the month, month, day of the week.
const FIELDS: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];
const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Checks a cron expression of Unix, which is not that of EventBridge (Auto Scaling API reference, `Recurrence`).
pub(super) fn check(recurrence: &str) -> Result<(), ApiError> {
    let fields: Vec<&str> = recurrence.split_ascii_whitespace().collect();
    let fits = fields.len() == FIELDS.len()
        && fields
            .iter()
            .enumerate()
            .all(|(at, field)| field.split(',').all(|item| is_item(at, item)));
    match fits {
        true => Ok(()),
        false => Err(validation(format!(
            "Given recurrence string: {recurrence} is invalid"
        ))),
    }
}

/// `*`, a number, a range of two, and each of them by steps.
fn is_item(at: usize, item: &str) -> bool {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    let steps = step.is_none_or(|step| step.parse::<u32>().is_ok_and(|step| step > 0));
    let ranges = match range.split_once('-') {
        _ if range == "*" => true,
        None => number(at, range).is_some(),
        Some((from, to)) => match (number(at, from), number(at, to)) {
            (Some(from), Some(to)) => from <= to,
            _ => false,
        },
    };
    steps && ranges
}

fn number(at: usize, text: &str) -> Option<u32> {
    let named = |names: &[&str]| {
        let found = names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text))?;
        u32::try_from(found).ok()
    };
    let name = match at {
        3 => named(&MONTHS).map(|month| month + 1),
        4 => named(&DAYS),
        _ => None,
    };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = name.or_else(|| text.parse().ok().filter(|_| digits))?;
    let (least, most) = FIELDS[at];
    (least..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        for good in ["0 9 * * *", "*/15 8-18 1,15 JAN-MAR mon-fri", "0 0 31 12 7"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "0 9 * *",
            "0 9 * * * *",
            "60 9 * * *",
            "0 24 * * *",
            "0 9 0 * *",
            "0 9 * 13 *",
            "0 9 ? * *",
            "0 9 * * 8",
            "5-1 9 * * *",
            "*/0 9 * * *",
            "+5 9 * * *",
            "cron(0 9 * * ? *)",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
