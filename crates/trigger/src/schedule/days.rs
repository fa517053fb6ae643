//! Which days: of the month and of the week, with what Quartz has beyond numbers (`L`, `W`, `#`).

use super::field::{DAY, Kind, QUARTZ_WEEKDAY, UNIX_WEEKDAY};
use super::list;

/// The two fields that say which days, as croner reads them, and what it cannot say.
pub(super) struct Days {
    /// Of the month.
    pub(super) month: String,
    /// Of the week: 0 is Sunday.
    pub(super) week: String,
    /// `L-3`: so many days before the last of the month, and on no other.
    pub(super) before_last: Option<u8>,
}

impl Days {
    /// Whether it is any day.
    pub(super) fn every(&self) -> bool {
        self.month == "*" && self.week == "*" && self.before_last.is_none()
    }

    /// Of a UNIX expression: where both fields name days, either will do.
    pub(super) fn unix(month: &str, week: &str) -> Result<Self, String> {
        for (kind, text) in [(&DAY, month), (&UNIX_WEEKDAY, week)] {
            if text.contains('?') {
                return Err(kind.wrong(text, "`?` is for expressions of `type: QUARTZ`; write `*`"));
            }
            let special = |part: &str| {
                let bytes = part.as_bytes();
                part.contains('#')
                    || part.eq_ignore_ascii_case("L")
                    || (bytes.iter().any(u8::is_ascii_digit) && part.ends_with(['L', 'W']))
            };
            if text.split(',').any(special) {
                let why = "`L`, `W` and `#` are for expressions of `type: QUARTZ`";
                return Err(kind.wrong(text, why));
            }
        }
        let week = UNIX_WEEKDAY.values(week)?;
        let week = week.map(|days| days.into_iter().map(|day| day % 7).collect::<Vec<_>>());
        Ok(Self {
            month: list(DAY.values(month)?.as_deref()),
            week: list(sorted(week).as_deref()),
            before_last: None,
        })
    }

    /// Of a Quartz expression: one of the fields says nothing (`?`).
    pub(super) fn quartz(month: &str, week: &str) -> Result<Self, String> {
        let open = |text: &str| matches!(text, "*" | "?");
        if month == "?" && week == "?" {
            return Err(
                "the fields of the day of the month and the day of the week are both `?`: one of them must name days, \
                 or be `*`"
                    .to_owned(),
            );
        }
        if !open(month) && !open(week) {
            return Err(format!(
                "`{month}` (day of the month) and `{week}` (day of the week) are both given: write `?` for one of them"
            ));
        }
        let week = quartz_week(week)?;
        let upper = month.to_ascii_uppercase();
        let (month, before_last) = match upper.as_str() {
            "L" | "LW" => (upper, None),
            text => match (text.strip_prefix("L-"), text.strip_suffix('W')) {
                (Some(before), _) => before_the_last(before, month)?,
                (_, Some(day)) => {
                    let day = DAY.value(day, month).map_err(|_| {
                        DAY.wrong(month, "`W` stands behind one day (`15W`) or `L` (`LW`)")
                    })?;
                    (format!("{day}W"), None)
                }
                (None, None) if text.contains('L') => {
                    let why = "`L` stands alone, or with a number of days before the last (`L-3`)";
                    return Err(DAY.wrong(month, why));
                }
                (None, None) => (list(DAY.values(month)?.as_deref()), None),
            },
        };
        Ok(Self {
            month,
            week,
            before_last,
        })
    }
}

/// `L-3`: the days of the month that can be it, and the number.
fn before_the_last(before: &str, text: &str) -> Result<(String, Option<u8>), String> {
    let read = before.parse::<u8>().ok().filter(|before| *before <= 30);
    let Some(before) = read else {
        let why = "`L-` goes with a number of days, 0 to 30";
        return Err(DAY.wrong(text, why));
    };
    let possible = (28..=31_u16).filter_map(|length| length.checked_sub(before.into()));
    let possible: Vec<u16> = possible.filter(|day| *day > 0).collect();
    Ok((list(Some(&possible)), Some(before)))
}

/// Days of the week as Quartz writes them, for croner: `6#3`, `6L`, `MON-FRI`.
fn quartz_week(text: &str) -> Result<String, String> {
    let kind: &Kind = &QUARTZ_WEEKDAY;
    let upper = text.to_ascii_uppercase();
    if upper == "L" {
        return Ok("6".to_owned());
    }
    if let Some((day, nth)) = upper.split_once('#') {
        let day = kind.value(day, text)? - 1;
        let nth = nth.parse::<u8>().ok().filter(|nth| (1..=5).contains(nth));
        let why = "`#` goes with one to five behind it: `6#3` is the third Friday of the month";
        let nth = nth.ok_or_else(|| kind.wrong(text, why))?;
        return Ok(format!("{day}#{nth}"));
    }
    if let Some(day) = upper.strip_suffix('L') {
        let day = kind.value(day, text)? - 1;
        return Ok(format!("{day}#L"));
    }
    let days = kind.values(text)?;
    let days = days.map(|days| days.into_iter().map(|day| day - 1).collect::<Vec<_>>());
    Ok(list(days.as_deref()))
}

/// In order, each once; `None` for all seven.
fn sorted(days: Option<Vec<u16>>) -> Option<Vec<u16>> {
    let mut days = days?;
    days.sort_unstable();
    days.dedup();
    (days.len() < 7).then_some(days)
}
