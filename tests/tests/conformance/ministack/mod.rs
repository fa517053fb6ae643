//! The golden pipelines of AWS against ministack, an emulator of AWS by other people: the sandbox account is not the only
//! judge. Each pipeline runs wherever ministack has the calls; where it cannot, docs/sandbox-judges.md says what is seen
//! and whose fault it is, and this test holds that list against what happens. ministack checks the signature of each
//! call, the trust of the assumed role with its external id, and whether docs/deploy-role.json allows the call.

mod account;
mod front;
mod lane;
mod lanes;

use std::collections::BTreeMap;
use std::sync::Arc;

use slipway_tests::{SandboxProcess, checkout};

use account::{Hands, Ministack};
use front::Front;
use lane::Open;

/// What ministack lacks or does otherwise: the words to be seen, by the id of the row.
fn rows() -> BTreeMap<String, Vec<String>> {
    let path = checkout("docs/sandbox-judges.md");
    let text = std::fs::read_to_string(path).expect("docs/sandbox-judges.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (id, rest) = row.split_once("` |").expect("an id in a cell of its own");
        let seen = rest.split(" | ").nth(1).expect("what is seen");
        let words = seen.split('`').skip(1).step_by(2).map(str::to_owned);
        (id.to_owned(), words.collect())
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_golden_pipelines_run_on_ministack_where_it_has_the_calls() {
    let rows = Arc::new(rows());
    let listed: Vec<&str> = rows.keys().map(String::as_str).collect();
    let mut expected = lanes::lacking();
    expected.sort_unstable();
    assert_eq!(listed, expected, "rows of docs/sandbox-judges.md");

    let ministack = Ministack::start().await;
    let sandbox = SandboxProcess::start(&[]);
    let hands = Arc::new(Hands::of(&ministack));
    let (front, url) = Front::serve(ministack.url(), sandbox.url()).await;
    let playing: Vec<_> = lanes::LANES
        .iter()
        .map(|lane| {
            let open = Open::new(lane, (&url, ministack.url()), &hands, &rows);
            std::thread::spawn(move || open.play())
        })
        .collect();
    let mut faults = Vec::new();
    let mut ended = Vec::new();
    for (lane, thread) in lanes::LANES.iter().zip(playing) {
        let (open, found) = thread.join().expect("the lane's thread");
        faults.extend(
            found
                .into_iter()
                .map(|fault| format!("{}: {fault}", lane.id)),
        );
        ended.push(open);
    }
    // What stands still does so however long the others take.
    for open in ended {
        let looking = tokio::task::spawn_blocking(move || open.still_stalled());
        faults.extend(looking.await.expect("the lane's end"));
    }
    drop(hands);
    ministack.end().await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for (service, operations) in front.judged() {
        println!(
            "{service}: {} operations judged: {operations:?}",
            operations.len()
        );
        assert!(lanes::SERVICES.contains(&service.as_str()), "{service}");
    }
    assert_eq!(front.judged().len(), lanes::SERVICES.len());
}
