//! Variables and their types.

use super::tests::plan;

#[test]
fn numbers_are_numbers_however_they_are_written() {
    let planned = |variables: &str| {
        let pipeline = format!(
            "pipeline: {{identifier: web, name: Web, variables: [{variables}], stages: [{{stage: {{identifier: s, name: S, type: Custom,
               spec: {{execution: {{steps: [{{step: {{identifier: w, name: W, type: Wait, spec: {{duration: 10s}},
                 strategy: {{repeat: {{times: '<+pipeline.variables.n + 1 > 3 ? 2 : 1>'}}}}}}}}]}}}}}}}}]}}"
        );
        plan(&pipeline).map(|plan| {
            let turns = match &plan.groups[0][0].steps[0] {
                crate::Node::Parallel(block) => block.branches.len(),
                crate::Node::Step(_) | crate::Node::Group(_) => 0,
            };
            (plan.variables[0].value.to_string(), turns)
        })
    };
    let table = [
        ("value: 3", "3", 2),
        ("value: 007", "7", 2),
        ("value: '1.50'", "1.5", 1),
        ("value: 1e1", "10", 2),
        ("value: '', default: 02", "2", 1),
    ];
    for (value, read, turns) in table {
        let found = planned(&format!("{{name: n, type: Number, {value}}}")).unwrap();
        assert_eq!(found, (read.to_owned(), turns), "{value}");
    }
    let refused = planned("{name: n, type: Number, value: '', default: two}").map(|_| ());
    assert!(
        refused.unwrap_err()[0]
            .to_string()
            .contains("the variable `n` is a Number, and `two` is none")
    );
}
