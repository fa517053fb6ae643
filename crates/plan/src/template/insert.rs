//! `insert`: the places of a template where its user adds stages or steps.

use slipway_model::Ref;
use slipway_model::graft::Part;

use super::link::Chain;
use super::{Expander, Role};

impl Expander<'_> {
    /// Inserted stages stand in the list itself. Inserted steps are called by the path of their insert
    /// (`execution.steps.<insert>.steps.<step>`), as those of a step group are, so they become one. Nothing is
    /// inserted where nothing is given.
    pub(super) fn insert(
        &mut self,
        item: Ref<'_>,
        insert: Ref<'_>,
        chain: &Chain,
        level: usize,
        out: &mut Vec<Part>,
    ) {
        if let Some(stages) = insert.get("stages").filter(|stages| stages.is_list()) {
            out.extend(self.items(stages, Role::Elements, chain, level + 1));
            return;
        }
        let steps = insert.get("steps");
        let Some(steps) = steps.filter(|steps| steps.items().len() > 0) else {
            return;
        };
        let mut pairs = Vec::new();
        for (key, place, value) in insert.fields() {
            let part = match key {
                "identifier" | "name" => self.graft.copy(value),
                "steps" => self.value(steps, Role::Elements, chain, level + 1),
                _ => continue,
            };
            pairs.push(self.graft.pair(insert, key, place, part));
        }
        let group = self.graft.map(insert, pairs);
        let place = item.key_place("insert").unwrap_or_default();
        let pair = self.graft.pair(item, "stepGroup", place, group);
        out.push(self.graft.map(item, vec![pair]));
    }
}
