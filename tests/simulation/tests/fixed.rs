//! The part of the simulation that runs in `cargo xtask test`: a fixed set of seeds, and that the simulation itself can be
//! trusted. `cargo xtask simulate` plays as many as one has time for.

use slipway_simulation::ast::{
    Action, Case, Kind, Node, Pipeline, Script, Stage, Step, Strategy, When,
};
use slipway_simulation::{check, play, seed, simulate};

/// Seeds of every test run.
const SEEDS: std::ops::Range<u64> = 0..40;

#[test]
fn a_fixed_set_of_seeds_holds_every_check() {
    for seed in SEEDS {
        if let Err(finding) = simulate(seed) {
            panic!("{}", finding.told());
        }
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 8, 21, 34] {
        let (first, second) = (seed::case(seed), seed::case(seed));
        assert_eq!(first, second);
        let (first, second) = (play::play(&first, true), play::play(&second, true));
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert!(first.trace.len() > 10, "seed {seed}: {:?}", first.trace);
    }
}

fn script(id: &str, script: Script, action: Option<Action>) -> Node {
    let strategy = |action| Strategy {
        errors: Vec::new(),
        action,
    };
    Node::Step(Step {
        id: id.to_owned(),
        kind: Kind::Script(script),
        timeout: 600,
        when: When::DEFAULT,
        strategies: action.map(strategy).into_iter().collect(),
        turns: None,
    })
}

fn case(action: Action) -> Case {
    let stage = Stage {
        id: "one".to_owned(),
        deploys: None,
        when: When::DEFAULT,
        steps: vec![
            script("a", Script::Bad, Some(action)),
            script("b", Script::Good, None),
        ],
        rollback: vec![script("undo", Script::Good, None)],
        strategies: Vec::new(),
        timeout: None,
    };
    Case {
        seed: 1,
        pipeline: Pipeline {
            groups: vec![vec![stage]],
            timeout: None,
        },
        starts: vec![0],
        words: Vec::new(),
        faults: Vec::new(),
    }
}

#[test]
fn what_is_not_as_the_model_says_is_found() {
    let (ignores, rolls_back) = (case(Action::Ignore), case(Action::StageRollback));
    let seen = play::play(&ignores, false);
    assert_eq!(
        check::check(&ignores, &seen, 10),
        Ok(check::Judged::Exactly)
    );
    let wrong = check::check(&rolls_back, &seen, 10).expect_err("another case");
    assert!(wrong.contains("undo"), "{wrong}");
}

#[test]
fn what_is_left_behind_or_done_twice_is_found() {
    let case = case(Action::StageRollback);
    let seen = || play::play(&case, false);
    assert_eq!(check::check(&case, &seen(), 10), Ok(check::Judged::Exactly));

    let mut held = seen();
    held.holds.push("hold#queue/acme/line".to_owned());
    let mut open = seen();
    open.open = 1;
    let mut twice = seen();
    twice.deeds.extend(twice.deeds.first().cloned());
    let mut waits = seen();
    waits.runs[0].waits.push("a pause".to_owned());
    let mut silent = seen();
    let record = silent.runs[0].record.as_mut().expect("it ended");
    record.stages[0].failure = None;
    let mut late = seen();
    late.runs[0].ended_ms += 3_600_000;
    let table = [
        (held, "still holds"),
        (open, "still open"),
        (twice, "twice"),
        (waits, "left behind"),
        (silent, "does not say how that went"),
        (late, "the model says 0 s"),
    ];
    for (seen, expected) in table {
        let wrong = check::check(&case, &seen, 10).expect_err(expected);
        assert!(wrong.contains(expected), "{wrong}");
    }
}
