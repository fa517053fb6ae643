//! `Filter.N`: names with values, of which one must fit; `*` and `?` stand for any text and any letter.

use super::request::missing;
use crate::error::ApiError;
use crate::fields::Fields;

/// The filters of a request.
pub(super) struct Filters<'a>(Vec<(&'a str, Vec<&'a str>)>);

impl<'a> Filters<'a> {
    pub(super) fn read(request: Fields<'a>) -> Result<Self, ApiError> {
        let mut filters = Vec::new();
        for item in request.objects("Filter")? {
            let item = Fields(item);
            let name = item.text("Name")?.ok_or_else(|| missing("Filter.Name"))?;
            filters.push((name, item.texts("Value")?));
        }
        Ok(Self(filters))
    }

    /// Whether every filter fits something whose fields `values` tells; `None` for a filter that is not known.
    pub(super) fn fit(
        &self,
        values: impl Fn(&str) -> Option<Vec<String>>,
    ) -> Result<bool, ApiError> {
        for (name, wanted) in &self.0 {
            let found = values(name).ok_or_else(|| {
                ApiError::client(
                    "InvalidParameterValue",
                    format!("The filter '{name}' is invalid"),
                )
            })?;
            let fits = |value: &String| wanted.iter().any(|wanted| matches(wanted, value));
            if !found.iter().any(fits) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a text fits a pattern. Takes time of the product of both lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut fits = vec![false; text.len() + 1];
    fits[0] = true;
    for letter in pattern.chars() {
        let mut next = vec![false; text.len() + 1];
        let mut seen = false;
        for (at, slot) in next.iter_mut().enumerate() {
            seen |= fits[at];
            *slot = match letter {
                '*' => seen,
                '?' => at > 0 && fits[at - 1],
                letter => at > 0 && fits[at - 1] && text[at - 1] == letter,
            };
        }
        fits = next;
    }
    fits.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("shop-*", "shop-1", true),
            ("shop-*", "cart-1", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*-v*-x", "a-v1-v2-x", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
