//! Tables of lines: who has a hold, who waits, and who is called when something changes.

use slipway_model::id::{RunId, StageId};

use super::{Claim, Line};
use crate::Holder;

/// `run` for a whole run, `run.stage` for one of its stages.
fn holder(name: &str) -> Holder {
    let (run, stage) = name.split_once('.').unwrap_or((name, ""));
    Holder {
        run: RunId::new(run),
        stage: StageId::new(stage),
        attempt: 0,
    }
}

/// A claim of `name`, a part of its run and of the runs `above`.
fn claim(name: &str, stage: &str, above: &[&str]) -> Claim {
    let (run, _) = name.split_once('.').unwrap_or((name, ""));
    let own = (run != name).then_some(run);
    let within = own.iter().chain(above).map(|name| holder(name)).collect();
    Claim {
        holder: holder(name),
        within,
        widens: (run == name).then(|| holder(&format!("{run}.{stage}"))),
        token: Some(format!("run:{run}")),
    }
}

fn names(line: &Line) -> Vec<String> {
    let holders = line.0.iter().map(|entry| &entry.holder);
    let names = holders.map(|holder| match holder.stage.as_str() {
        "" => holder.run.to_string(),
        stage => format!("{}.{stage}", holder.run),
    });
    names.collect()
}

/// Asks in order, each as `(name, stage that asks, runs above)`; answers with how many each waits for.
fn asked(line: &mut Line, claims: &[(&str, &str, &[&str])]) -> Vec<usize> {
    let mut ahead = Vec::new();
    for (name, stage, above) in claims {
        ahead.push(line.place(&claim(name, stage, above)).ahead);
    }
    ahead
}

#[test]
fn a_run_does_not_wait_for_a_stage_that_asks_for_it() {
    let mut line = Line::default();
    let first = [("a.s", "s", &[][..]), ("b", "x", &[]), ("a", "s", &[])];
    assert_eq!(asked(&mut line, &first), [0, 1, 0]);
    assert_eq!(names(&line), ["a", "a.s", "b"]);
    // Another stage of it has it then as well, without a place; the stranger still waits for all of it.
    assert_eq!(asked(&mut line, &[("a.t", "t", &[])]), [0]);
    assert!(line.leave(&holder("a.s")));
    assert_eq!(line.called(), ["run:a"]);
    assert!(line.leave(&holder("a")) && !line.leave(&holder("a")));
    assert_eq!(line.called(), ["run:b"]);
}

#[test]
fn a_run_waits_for_another_stage_of_its_own() {
    let mut line = Line::default();
    let claims = [("a.s", "s", &[][..]), ("a", "t", &[]), ("a.u", "u", &[])];
    assert_eq!(asked(&mut line, &claims), [0, 1, 1]);
    // The first stage goes on to hold it for the run: who waited is called, and has it.
    assert_eq!(asked(&mut line, &[("a", "s", &[])]), [0]);
    assert_eq!(line.parts_of(&holder("a")), ["run:a"]);
    assert_eq!(
        asked(&mut line, &[("a.u", "u", &[]), ("a", "t", &[])]),
        [0, 0]
    );
}

#[test]
fn children_have_what_their_parents_hold_one_after_the_other() {
    let mut line = Line::default();
    let above: &[&str] = &["p", "g"];
    let claims = [
        ("g", "s", &[][..]),
        ("stranger", "s", &[]),
        ("p", "s", &["g"]),
        ("c.s", "s", above),
        ("d.s", "s", above),
        ("q", "s", &["g"]),
        ("c", "s", above),
    ];
    // `d` waits for `c`, in both of its names, and `q` for `p` and its children.
    assert_eq!(asked(&mut line, &claims), [0, 1, 0, 0, 1, 3, 0]);
    assert_eq!(names(&line), ["g", "p", "c", "c.s", "d.s", "q", "stranger"]);
    assert_eq!(
        asked(&mut line, &[("d.s", "s", above), ("q", "s", &["g"])]),
        [2, 4]
    );
    assert_eq!(
        line.ahead_of(|own| own.run.as_str() == "d"),
        [holder("c"), holder("c.s")]
    );
    for name in ["c.s", "c"] {
        assert!(line.leave(&holder(name)));
    }
    assert!(line.called().contains(&"run:d".to_owned()));
    assert!(!line.called().contains(&"run:stranger".to_owned()));
    // Those above may be gone before a child has stopped: nobody comes before it has.
    for name in ["g", "p", "q"] {
        assert!(line.leave(&holder(name)));
    }
    assert_eq!(
        asked(&mut line, &[("d.s", "s", above), ("stranger", "s", &[])]),
        [0, 1]
    );
}

#[test]
fn who_waited_before_the_run_around_it_had_it_is_called_and_moves_up() {
    let mut line = Line::default();
    let child: (&str, &str, &[&str]) = ("c.s", "s", &["p"]);
    let claims = [("p.s", "s", &[][..]), ("stranger", "s", &[]), child];
    assert_eq!(asked(&mut line, &claims), [0, 1, 2]);
    assert_eq!(asked(&mut line, &[("p", "s", &[])]), [0]);
    assert_eq!(line.parts_of(&holder("p")), ["run:p", "run:c"]);
    // It waits for the stage of its parent, as it did, and no longer for the stranger.
    assert_eq!(asked(&mut line, &[child]), [1]);
    assert!(line.leave(&holder("p.s")));
    assert_eq!(line.called(), ["run:p", "run:c"]);
    assert_eq!(asked(&mut line, &[child]), [0]);
    assert_eq!(names(&line), ["p", "c.s", "stranger"]);
}
