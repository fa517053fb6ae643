//! Filters by tags.

use slipway_expr::Value;
use slipway_model::{Code, Ref};

use super::Resolver;
use super::known::Known;

impl Resolver<'_> {
    /// Whether something with these tags passes the filters that concern its kind; without such a filter it
    /// does.
    pub(super) fn passes(
        &mut self,
        filters: Option<Ref<'_>>,
        kind: &str,
        tags: &[(String, String)],
        known: &Known<'_>,
    ) -> bool {
        let mut concerned = false;
        for filter in filters.into_iter().flat_map(Ref::items) {
            let entities = filter.get("entities").into_iter().flat_map(Ref::items);
            if !entities.filter_map(Ref::text).any(|entity| entity == kind) {
                continue;
            }
            concerned = true;
            let Some(spec) = filter
                .get("spec")
                .filter(|_| filter.get_text("type") == Some("tags"))
            else {
                return true;
            };
            let wanted = self.wanted_tags(spec, known);
            let has = |(key, value): &(String, String)| {
                let mut own = tags.iter().filter(|(own, _)| own == key);
                own.any(|(_, own)| value.is_empty() || own == value)
            };
            let passes = match spec.get_text("matchType") {
                Some("any") => wanted.iter().any(has),
                _ => wanted.iter().all(has),
            };
            if passes {
                return true;
            }
        }
        !concerned
    }

    fn wanted_tags(&mut self, spec: Ref<'_>, known: &Known<'_>) -> Vec<(String, String)> {
        let Some(tags) = spec.get("tags") else {
            return Vec::new();
        };
        if tags.is_expression() {
            return match known.value(tags.text().unwrap_or_default()) {
                Ok(Value::Map(map)) => {
                    let pairs = map.iter().map(|(key, value)| {
                        let value = value.to_shown_json();
                        (key.clone(), value.as_str().unwrap_or_default().to_owned())
                    });
                    pairs.collect()
                }
                Ok(other) => {
                    let message = format!("it is {}; tags are a mapping", other.kind());
                    self.fault(Code::BadExpression, tags, message);
                    Vec::new()
                }
                Err(reason) => {
                    let message = format!("this must be known before the run begins: {reason}");
                    self.fault(Code::BadExpression, tags, message);
                    Vec::new()
                }
            };
        }
        let pairs = tags
            .entries()
            .map(|(key, value)| (key.to_owned(), value.text().unwrap_or_default().to_owned()));
        let bare = tags.items().filter_map(Ref::text).chain(tags.text());
        let bare = bare.map(|key| match key.split_once(':') {
            Some((key, value)) => (key.trim().to_owned(), value.trim().to_owned()),
            None => (key.to_owned(), String::new()),
        });
        pairs.chain(bare).collect()
    }
}
