//! The YAML of hostile and careless writers.

use std::fmt::Write as _;

use super::*;
use crate::tree::Ref;

fn fault(text: &str) -> String {
    match parse("p.yaml", text) {
        Ok(tree) => panic!("accepted with {} nodes", tree.len()),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn keys_and_values_know_their_place() {
    let tree = parse("p.yaml", "a:\n  - b: 1\n    \"c d\": |\n      x\n      y\n").unwrap();
    let item = tree.root().get("a").unwrap().items().next().unwrap();
    let place = |place: Place| (place.line, place.column);
    assert_eq!(place(item.key_place("c d").unwrap()), (3, 5));
    let b = item.get("b").unwrap();
    assert_eq!((place(b.place()), b.path().as_str()), ((2, 8), "a[0].b"));
    let c = item.get("c d").unwrap();
    assert_eq!(
        (c.text(), c.path().as_str()),
        (Some("x\ny\n"), "a[0][\"c d\"]")
    );
}

#[test]
fn faults_of_syntax_and_structure_say_where() {
    let cases = [
        ("a: [1, 2", "p.yaml:2:1: this is not YAML"),
        (
            "a: 1\nb:\n  c: 2\n  c: 3\n",
            "p.yaml:4:3: b.c: the key `c` stands here and at line 3, column 3",
        ),
        ("? [a]\n: b\n", "p.yaml:1:3: a key must be a text"),
        ("", "p.yaml:1:1: the text holds no YAML document"),
        (
            "---\na: 1\n---\nb: 1\n",
            "p.yaml:4:1: a second document begins here",
        ),
        (
            "a: !!python/object:os.system x",
            "YAML tags (`!…`) are not accepted",
        ),
        ("a: !!binary aGk=", "YAML tags (`!…`) are not accepted"),
        (
            "a: !Include /etc/passwd",
            "YAML tags (`!…`) are not accepted",
        ),
        ("a: !!map {}", "YAML tags (`!…`) are not accepted"),
        (
            "a: &x [*x]",
            "this alias names nothing that is complete before it",
        ),
        ("a: *nobody", "p.yaml:1:4: this is not YAML"),
    ];
    for (text, expected) in cases {
        let fault = fault(text);
        assert!(fault.contains(expected), "{text:?}: {fault}");
    }
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let names = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{names}]").unwrap();
    }
    let began = std::time::Instant::now();
    assert!(fault(&bomb).contains("too many nodes"));
    assert!(began.elapsed().as_secs() < 5);
}

#[test]
fn aliases_cannot_multiply_bytes_or_depth() {
    let mut long = format!("a: &a {}\nb:\n", "x".repeat(1_000_000));
    long.push_str(&"  - *a\n".repeat(4));
    assert!(fault(&long).contains("too many nodes"));

    let mut deep = format!("a0: &a0 {}x{}\n", "[".repeat(60), "]".repeat(60));
    deep.push_str("a1: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[*a0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n");
    assert!(fault(&deep).contains("levels"));
}

#[test]
fn an_alias_is_the_value_it_names() {
    let tree = parse("p.yaml", "a: &x {k: [1, 2]}\nb: *x\n").unwrap();
    let b = tree.root().get("b").unwrap();
    assert_eq!(
        b.get("k")
            .unwrap()
            .items()
            .filter_map(Ref::text)
            .collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert_eq!(b.get("k").unwrap().path(), "b.k");
}

#[test]
fn size_depth_and_comments_are_bounded() {
    assert!(fault(&"a".repeat(MOST_BYTES + 1)).contains("at most 3145728 (3 MiB) are read"));
    let scalar = format!("a: {}", "x".repeat(2_000_000));
    assert_eq!(
        parse("p", &scalar)
            .unwrap()
            .root()
            .get_text("a")
            .unwrap()
            .len(),
        2_000_000
    );
    let comments = format!("{}a: 1\n", "#\n".repeat(1_000_000));
    assert!(parse("p", &comments).is_ok());
    for nested in [
        "[".repeat(10_000),
        "{a: ".repeat(10_000),
        "- ".repeat(10_000),
    ] {
        let fault = fault(&nested);
        assert!(fault.contains("nested too deep"), "{fault}");
    }
    let mut block = String::new();
    for level in 0..1_000 {
        writeln!(block, "{}a:", " ".repeat(level)).unwrap();
    }
    assert!(fault(&block).contains("nested too deep"));
    let wide = format!("a: [{}]", "1,".repeat(MOST_NODES));
    assert!(fault(&wide).contains("too many nodes"));
}

#[test]
fn documents_of_one_text_are_told_apart() {
    let trees = parse_documents("p", "---\n# nothing\n---\na: 1\n---\nb: 2\n...\n").unwrap();
    let keys: Vec<_> = trees
        .iter()
        .flat_map(|tree| tree.root().entries().map(|(key, _)| key))
        .collect();
    assert_eq!(keys, ["a", "b"]);
}
