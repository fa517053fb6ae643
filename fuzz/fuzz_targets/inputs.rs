//! Any text as a runtime input, as the inputs of a pipeline, and as a value that is checked.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use slipway_model::inputs::{self, RuntimeInput};
use slipway_model::{Diagnostic, Parsed, emit, entity, render, yaml};

/// Asks for something of every form.
const PIPELINE: &str = "
pipeline:
  identifier: p
  name: p
  projectIdentifier: x
  orgIdentifier: y
  variables:
    - {name: a, type: String, value: <+input>}
    - {name: b, type: String, value: '<+input>.default(x).allowedValues(x,y)'}
    - {name: c, type: Number, value: '<+input>.regex(^[0-9]+$)'}
    - {name: d, type: String, value: '<+input>.selectManyFrom(q,r)'}
  stages:
    - stage:
        identifier: s
        name: s
        type: Custom
        timeout: <+input>
        spec:
          execution:
            steps:
              - step:
                  identifier: w
                  name: w
                  type: Wait
                  spec: {duration: <+input>.default(1m)}
";

static ASKING: LazyLock<Parsed> = LazyLock::new(|| {
    entity::parse("p.yaml", PIPELINE).unwrap_or_else(|faults| panic!("{faults:?}"))
});

/// Showing faults takes longer than finding them: a few are enough.
fn few(faults: &[Diagnostic]) -> &[Diagnostic] {
    faults.get(..4).unwrap_or(faults)
}

fuzz_target!(|text: &str| {
    let (request, value) = text.split_once('\n').unwrap_or((text, ""));
    if let Some(input) = RuntimeInput::parse(request) {
        let _ = input.check(value);
        if let Some(default) = &input.default {
            let _ = input.check(default);
        }
    }
    let Ok(tree) = yaml::parse("i.yaml", text) else {
        return;
    };
    match inputs::merge(&ASKING, &[&tree]) {
        Ok(merged) => {
            let printed = emit::to_yaml(&merged.tree);
            assert!(entity::parse("m.yaml", &printed).is_ok(), "{printed}");
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            let shown = render::render(few(&faults), |_| Some(text), false);
            assert!(!shown.is_empty());
        }
    }
    if let Ok(asking) = entity::parse("f.yaml", text) {
        if let Some(template) = inputs::template(&asking.tree) {
            let _ = emit::to_yaml(&template);
        }
        let _ = inputs::merge(&asking, &[&tree]);
    }
});
