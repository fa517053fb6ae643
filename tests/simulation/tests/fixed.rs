//! The part of the simulation that runs in `cargo xtask test`: a fixed set of seeds, and that the simulation itself can be
//! trusted. `cargo xtask simulate` plays as many as one has time for.

use slipway_model::status::Status;
use slipway_simulation::ast::{
    Action, Case, Child, Fault, Http, Kind, Node, Pipeline, Said, Script, Stage, Step, Strategy,
    When, Word,
};
use slipway_simulation::faults::Traced;
use slipway_simulation::model::{self, Delays};
use slipway_simulation::seen::SeenChild;
use slipway_simulation::{check, play, seed, simulate};
use slipway_world::tap::Verdict;

/// Seeds of every test run.
const SEEDS: std::ops::Range<u64> = 0..40;

/// Seeds in which a fault was found that no other test had shown.
const FOUND: [u64; 36] = [
    107, 280, 1_015, 1_229, 3_283, 5_366, 7_024, 7_443, 8_064, 100_008, 102_175, 202_035, 206_262,
    703_315, 701_867, 704_469, 905_999, 901_029, 951_297, 11_881, 20_479, 21_212, 27_152, 35_890,
    38_394, 38_476, 55_132, 60_316, 64_346, 66_427, 80_634, 80_784, 82_651, 86_854, 89_237, 97_722,
];

#[test]
fn a_fixed_set_of_seeds_holds_every_check() {
    for seed in SEEDS.chain(FOUND) {
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
        let (first, second) = (
            play::play(&first, Traced::Kept),
            play::play(&second, Traced::Kept),
        );
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert!(first.trace.len() > 10, "seed {seed}: {:?}", first.trace);
    }
}

fn script(id: &str, script: Script, action: Option<Action>) -> Node {
    step(id, Kind::Script(script), action)
}

fn step(id: &str, kind: Kind, action: Option<Action>) -> Node {
    let strategy = |action| Strategy {
        errors: Vec::new(),
        action,
    };
    Node::Step(Step {
        id: id.to_owned(),
        kind,
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
        turns: None,
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
        notices: None,
        freeze: None,
    }
}

#[test]
fn what_is_not_as_the_model_says_is_found() {
    let (ignores, rolls_back) = (case(Action::Ignore), case(Action::StageRollback));
    let seen = play::play(&ignores, Traced::No);
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
    let seen = || play::play(&case, Traced::No);
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

/// A stage that posts, one that runs another pipeline, and notices of all that.
fn talkative() -> Case {
    let http = Http {
        posts: true,
        good: true,
    };
    let child = Child {
        time: 30,
        good: true,
    };
    let mut case = case(Action::Ignore);
    let stage = case.pipeline.groups[0][0].clone();
    case.pipeline.groups[0][0].steps = vec![step("a", Kind::Http(http), None)];
    case.pipeline.groups.push(vec![Stage {
        id: "two".to_owned(),
        steps: vec![step("pipeline", Kind::Chained(child), None)],
        rollback: Vec::new(),
        ..stage
    }]);
    case.notices = Some(0);
    case
}

#[test]
fn a_paused_run_begins_nothing_nor_does_the_run_of_its_stage() {
    let mut waits = case(Action::Ignore);
    let steps = &mut waits.pipeline.groups[0][0].steps;
    steps.push(step("c", Kind::Wait(40), None));
    steps.push(script("d", Script::Good, None));
    let mut runs_another = talkative();
    runs_another.pipeline.groups.remove(0);
    runs_another.notices = None;

    let said = |at, word| Said { at, run: 0, word };
    for mut case in [waits, runs_another] {
        case.words = vec![said(10, Word::Pause), said(100, Word::Resume)];
        let seen = play::play(&case, Traced::No);
        assert_eq!(seen.runs[0].ended_ms / 1_000, 100);
        assert_eq!(check::check(&case, &seen, 10), Ok(check::Judged::Exactly));

        // To the end of the time that a pipeline has which names none: the same as in `slipway_plan`.
        case.words.pop();
        let ended_ms = model::play(&case, Delays::none())[0].ended_ms;
        assert_eq!(ended_ms / 1_000, 30 * 24 * 3_600);
    }
}

#[test]
fn what_is_posted_twice_or_told_to_nobody_or_started_twice_is_found() {
    let case = talkative();
    let seen = || play::play(&case, Traced::No);
    assert_eq!(check::check(&case, &seen(), 10), Ok(check::Judged::Exactly));

    let mut posted = seen();
    posted.runs[0].asked.push("a".to_owned());
    let mut silent = seen();
    silent.runs[0].told.clear();
    let mut started = seen();
    let again = started.runs[0].children.pop().expect("a child");
    started.runs[0].children.push(SeenChild {
        status: Status::Running,
        ..again
    });
    let table = [
        (posted, "asked 2 times in 1 attempts"),
        (silent, "nobody was told of PipelineEnd"),
        (started, "leaves"),
    ];
    for (seen, expected) in table {
        let wrong = check::check(&case, &seen, 10).expect_err(expected);
        assert!(wrong.contains(expected), "{wrong}");
    }
}

#[test]
fn a_token_that_is_sent_again_changes_nothing_and_one_that_is_lost_is_survived() {
    for (verdict, expected) in [
        (
            Verdict::Again(std::time::Duration::from_secs(5)),
            check::Judged::Exactly,
        ),
        (Verdict::Lose, check::Judged::WithoutModel),
    ] {
        let mut case = case(Action::Ignore);
        case.faults = (1..=4)
            .map(|number| Fault::Token { number, verdict })
            .collect();
        let seen = play::play(&case, Traced::Kept);
        let hit = seen.trace.iter().filter(|line| line.contains("FAULT"));
        assert!(hit.count() > 0, "{:?}", seen.trace);
        assert_eq!(check::check(&case, &seen, 10), Ok(expected));
    }
}
