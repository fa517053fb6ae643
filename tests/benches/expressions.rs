//! `cargo xtask bench`: evaluations of expressions a second, against the floor that they cannot go below: a
//! look-up in a hash map and a copy of the text that is found.
//!
//! Blocks are interleaved with the floor, and medians are printed: the machine drifts.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use slipway_expr::{Context, Limits, Segment, Template, Value, condition, evaluate_json, parse};

/// Evaluations in one block.
const BLOCK: usize = 100_000;
/// Blocks of each kind.
const BLOCKS: usize = 11;
/// Evaluations a second that simple expressions are meant to reach.
const AIM: f64 = 1e6;

/// What is known, by path.
struct World(HashMap<Vec<Segment>, Value>);

impl World {
    fn new() -> Self {
        let known = [
            ("pipeline.name", Value::from("ship")),
            ("pipeline.sequenceId", Value::Int(16)),
            ("pipeline.variables.tag", Value::from("1.10.3")),
            ("env.name", Value::from("prod-eu")),
            ("stage.variables.count", Value::from("3")),
            ("service.name", Value::from("shop")),
        ];
        let path = |text: &str| {
            text.split('.')
                .map(|key| Segment::Key(key.into()))
                .collect()
        };
        Self(known.map(|(text, value)| (path(text), value)).into())
    }
}

impl Context for World {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        self.0.get(path).cloned()
    }
}

/// Expressions as pipelines have them, and whether the aim is meant for them.
const EXPRESSIONS: &[(&str, bool)] = &[
    ("<+pipeline.name>", true),
    ("<+pipeline.variables.tag>", true),
    ("<+pipeline.sequenceId>", true),
    ("image:<+pipeline.variables.tag>", true),
    ("<+<+env.name> == \"prod-eu\">", true),
    ("<+env.name == \"x\"?\"a\":\"b\">", true),
    ("<+<+env.name>.contains(\"eu\")>", true),
    ("<+pipeline.sequenceId.toString()>", true),
    ("<+<+env.name>.replace(\"-\", \"_\").toUpperCase()>", false),
    ("<+<+pipeline.variables.tag>.split(\"\\\\.\")[1]>", false),
    ("<+<+env.name> =~ \"prod-.*\">", false),
    ("<+service.name>-<+env.name>-<+pipeline.sequenceId>", false),
];

fn main() {
    let world = World::new();
    println!("expressions, median of {BLOCKS} blocks of {BLOCK}");
    let floor = median(&mut |_| look_up(&world));
    println!("  floor: look-up and copy            {floor:12.0} /s");
    let mut slow = Vec::new();
    for (text, simple) in EXPRESSIONS {
        let template = parse(text).expect("well formed");
        let rate = median(&mut |_| evaluate(&template, &world));
        println!("  {text:<50} {rate:12.0} /s  {:5.1} x floor", floor / rate);
        if *simple && rate < AIM {
            slow.push(*text);
        }
    }
    for (name, run) in [
        ("parsed and evaluated", parsed as fn(&World)),
        ("condition, parsed and evaluated", conditions),
        ("document of 10 texts", documents),
    ] {
        let rate = median(&mut |_| run(&world));
        println!("  {name:<50} {rate:12.0} /s  {:5.1} x floor", floor / rate);
    }
    match slow.as_slice() {
        [] => println!("  simple evaluations reach the aim of {AIM:.0} a second"),
        slow => println!("  below the aim of {AIM:.0} a second: {}", slow.join(", ")),
    }
}

fn look_up(world: &World) {
    let path = [Segment::Key("pipeline".into()), Segment::Key("name".into())];
    black_box(world.0.get(black_box(path.as_slice())).cloned());
}

fn evaluate(template: &Template, world: &World) {
    let value = template.evaluate(black_box(world), &Limits::default());
    black_box(value).expect("defined");
}

fn parsed(world: &World) {
    let template = parse(black_box("<+pipeline.variables.tag>")).expect("well formed");
    evaluate(&template, world);
}

fn conditions(world: &World) {
    let text = black_box("<+env.name> == \"prod-eu\" && <+stage.variables.count> > 2");
    black_box(condition(text, world, &Limits::default())).expect("defined");
}

fn documents(world: &World) {
    let document = serde_json::json!({
        "a": "<+env.name>", "b": "x", "c": "<+service.name>", "d": ["y", "z", "<+env.name>"],
        "e": {"f": "plain", "g": "<+pipeline.name>", "h": "w", "i": 1},
    });
    black_box(evaluate_json(
        black_box(&document),
        world,
        &Limits::default(),
    ))
    .expect("defined");
}

/// The median rate of all blocks, a second.
fn median(run: &mut dyn FnMut(usize)) -> f64 {
    let mut rates: Vec<f64> = (0..BLOCKS)
        .map(|_| {
            let began = Instant::now();
            (0..BLOCK).for_each(&mut *run);
            BLOCK as f64 / began.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[BLOCKS / 2]
}
