//! Any text as YAML: as a tree, as an entity, and printed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use slipway_model::{Diagnostic, emit, entity, render, yaml};

/// Showing faults takes longer than finding them: a few are enough.
fn few(faults: &[Diagnostic]) -> &[Diagnostic] {
    faults.get(..4).unwrap_or(faults)
}

fuzz_target!(|text: &str| {
    if let Ok(tree) = yaml::parse("f.yaml", text) {
        let printed = emit::to_yaml(&tree);
        let again = yaml::parse("f.yaml", &printed)
            .unwrap_or_else(|fault| panic!("{fault:?} in what was printed:\n{printed}"));
        assert_eq!(emit::to_yaml(&again), printed);
    }
    match entity::parse_documents("f.yaml", text) {
        Ok(entities) => {
            for parsed in &entities {
                let _ = parsed.to_json();
            }
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            let shown = render::render(few(&faults), |_| Some(text), false);
            assert!(!shown.is_empty());
        }
    }
});
