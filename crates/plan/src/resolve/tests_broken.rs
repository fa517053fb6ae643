//! Texts broken at random places: planning answers, whatever they say.

use proptest::prelude::*;
use slipway_model::entity;

use super::tests::{ENTITIES, PIPELINE, entities, plan, plan_with};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_pipeline_breaks_the_planner(at in 0..PIPELINE.len(), length in 0..60usize, put in "\\PC{0,12}|<\\+input>|<\\+pipeline\\.variables\\.tag>|null|\\[\\]|\\{\\}") {
        let end = (at + length).min(PIPELINE.len());
        if PIPELINE.is_char_boundary(at) && PIPELINE.is_char_boundary(end) {
            let mut broken = PIPELINE.to_owned();
            broken.replace_range(at..end, &put);
            let _ = plan(&broken);
        }
    }

    #[test]
    fn no_entity_breaks_the_planner(which in 0..ENTITIES.len(), at in 0..900usize, length in 0..60usize, put in "\\PC{0,12}|<\\+input>|null|\\[\\]") {
        let mut broken = entities();
        let text = &broken[which];
        let (at, end) = (at.min(text.len()), (at + length).min(text.len()));
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            broken[which].replace_range(at..end, &put);
            if entity::parse("e", &broken[which]).is_ok() {
                let _ = plan_with(PIPELINE, &broken, "pipeline: {}");
            }
        }
    }
}
