//! What expressions mean, as tables: text on the left, value or error on the right.

use indexmap::IndexMap;
use serde_json::json;
use slipway_expr::{
    Context, Limits, Segment, Value, check_condition, condition, evaluate_json, parse,
};

/// A context over a JSON document, with variables that are defined by expressions.
struct World {
    known: Value,
    defined: IndexMap<&'static str, &'static str>,
}

impl Context for World {
    fn lookup(&self, path: &[Segment]) -> Option<Value> {
        self.known.descend(path).cloned()
    }

    fn definition(&self, path: &[Segment]) -> Option<String> {
        let names: Option<Vec<_>> = path.iter().map(Segment::key).collect();
        self.defined
            .get(names?.join(".").as_str())
            .map(|text| (*text).to_owned())
    }

    fn call(&self, functor: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        (functor == "configFile.getAsString").then(|| match arguments {
            [Value::String(id)] if id == "app" => Ok("port=80".into()),
            _ => Err("there is no such config file".to_owned()),
        })
    }
}

fn world() -> World {
    World {
        known: Value::from_json(&json!({
            "env": {"name": "prod-eu", "x-auth": "t"},
            "pipeline": {
                "name": "Ship It", "sequenceId": 7,
                "variables": {"tag": "1.10", "list": "a,b,,", "flag": "true", "n": 2.5, "none": null,
                    "evil": "<+secrets.getValue(\"account.root\")>"},
                "stages": {"build": {"status": "Succeeded", "hosts": ["h1", {"ip": "10.0.0.1"}]}}
            },
            "matrix": {"weight": "30", "stage": "build"},
            "httpResponseBody": "{\"status\":1,\"data\":{\"content\":[{\"uuid\":\"u\"}]}}",
        })),
        defined: IndexMap::from([
            (
                "stage.variables.image",
                "repo/app:<+pipeline.variables.tag>",
            ),
            ("stage.variables.a", "<+stage.variables.b>"),
            ("stage.variables.b", "x<+stage.variables.a>"),
            (
                "stage.variables.token",
                "<+secrets.getValue(\"account.tok\")>",
            ),
        ]),
    }
}

fn evaluate(text: &str) -> String {
    let outcome = parse(text).map_err(|e| e.to_string()).and_then(|template| {
        template
            .evaluate(&world(), &Limits::default())
            .map_err(|e| e.full_text())
    });
    match outcome {
        Ok(value) => value.to_shown_json().to_string(),
        Err(message) => format!("! {message}"),
    }
}

fn table(texts: &[&str]) -> String {
    texts
        .iter()
        .map(|text| format!("{text}  =>  {}\n", evaluate(text)))
        .collect()
}

#[test]
fn paths_and_text() {
    insta::assert_snapshot!(table(&[
        "plain, 1 > 0",
        "<+pipeline.sequenceId>",
        "v<+pipeline.sequenceId>",
        "<+env.name>/<+pipeline.name>",
        "<+ env.name >",
        r#"<+env["x-auth"]>"#,
        r#"<+env."x-auth">"#,
        r#"<+env.get("x-auth").toUpperCase()>"#,
        r#"<+pipeline.stages.get("build").hosts.get(1).ip>"#,
        "<+pipeline.stages.build.hosts[1].ip>",
        "<+pipeline.stages.build.hosts.0>",
        "<+pipeline.stages.<+matrix.stage>.status>",
        "<+pipeline.stages.bu<+\"il\">d.status>",
        "<+<+pipeline.stages.build>.status>",
        "<+pipeline.stages.build.hosts>",
        "hosts: <+pipeline.stages.build.hosts>",
        "<+stage.variables.image>",
        "<+pipeline.variables.evil>",
        "<+configFile.getAsString(\"app\")>",
        "a <+env.name> 2>&1 > /dev/null",
        "x=<+env.name>>5",
    ]), @r#"
    plain, 1 > 0  =>  "plain, 1 > 0"
    <+pipeline.sequenceId>  =>  7
    v<+pipeline.sequenceId>  =>  "v7"
    <+env.name>/<+pipeline.name>  =>  "prod-eu/Ship It"
    <+ env.name >  =>  "prod-eu"
    <+env["x-auth"]>  =>  "t"
    <+env."x-auth">  =>  "t"
    <+env.get("x-auth").toUpperCase()>  =>  "T"
    <+pipeline.stages.get("build").hosts.get(1).ip>  =>  "10.0.0.1"
    <+pipeline.stages.build.hosts[1].ip>  =>  "10.0.0.1"
    <+pipeline.stages.build.hosts.0>  =>  "h1"
    <+pipeline.stages.<+matrix.stage>.status>  =>  "Succeeded"
    <+pipeline.stages.bu<+"il">d.status>  =>  "Succeeded"
    <+<+pipeline.stages.build>.status>  =>  "Succeeded"
    <+pipeline.stages.build.hosts>  =>  ["h1",{"ip":"10.0.0.1"}]
    hosts: <+pipeline.stages.build.hosts>  =>  "hosts: [\"h1\",{\"ip\":\"10.0.0.1\"}]"
    <+stage.variables.image>  =>  "repo/app:1.10"
    <+pipeline.variables.evil>  =>  "<+secrets.getValue(\"account.root\")>"
    <+configFile.getAsString("app")>  =>  "port=80"
    a <+env.name> 2>&1 > /dev/null  =>  "a prod-eu 2>&1 > /dev/null"
    x=<+env.name>>5  =>  "x=prod-eu>5"
    "#);
}

#[test]
fn operators_and_literals() {
    insta::assert_snapshot!(table(&[
        "<+1 + 2 * 3 - 4 / 2 % 2>",
        "<+(1 + 2) * -3>",
        "<+7 / 2>",
        "<+7 / 2.0>",
        "<+(100 - <+matrix.weight>)>",
        "<+1 + 2.5>",
        "<+<+pipeline.name> + \"_suffix\">",
        "<+<+pipeline.variables.n> > 2>",
        "<+(1 > 2)>",
        "<+1 >= 2 || 3 le 3 and not false>",
        "<+<+pipeline.variables.flag> == true>",
        "<+<+pipeline.variables.tag> == 1.1>",
        "<+<+env.name> == 'prod-eu'?\"yes\":\"no\">",
        "<+ <+env.name> == \"x\" ? 1 : <+env.name>.contains(\"eu\") ? 2 : 3>",
        r#"<+<+env.name>==\"prod-eu\"?<+pipeline.name>:"none">"#,
        r#"<+<+env.name> =~ ["<+env.name>","All"]>"#,
        "<+<+env.name> =~ \"prod-.*\">",
        "<+<+env.name> !~ \"prod\">",
        "<+<+env.name> =^ \"prod\" && <+env.name> =$ \"eu\">",
        "<+pipeline.variables.none ?: 'default'>",
        "<+pipeline.variables.missing ?? 'default'>",
        "<+pipeline.variables.missing == null>",
        "<+empty(pipeline.variables.missing)>",
        "<+size(pipeline.stages.build.hosts)>",
        "<+{'a': 1, b: [true, null]}>",
        r#"<+"tab\tquote\"u\u00e9 \d">"#,
    ]), @r#"
    <+1 + 2 * 3 - 4 / 2 % 2>  =>  7
    <+(1 + 2) * -3>  =>  -9
    <+7 / 2>  =>  3
    <+7 / 2.0>  =>  3.5
    <+(100 - <+matrix.weight>)>  =>  70
    <+1 + 2.5>  =>  3.5
    <+<+pipeline.name> + "_suffix">  =>  "Ship It_suffix"
    <+<+pipeline.variables.n> > 2>  =>  true
    <+(1 > 2)>  =>  false
    <+1 >= 2 || 3 le 3 and not false>  =>  true
    <+<+pipeline.variables.flag> == true>  =>  true
    <+<+pipeline.variables.tag> == 1.1>  =>  true
    <+<+env.name> == 'prod-eu'?"yes":"no">  =>  "yes"
    <+ <+env.name> == "x" ? 1 : <+env.name>.contains("eu") ? 2 : 3>  =>  2
    <+<+env.name>==\"prod-eu\"?<+pipeline.name>:"none">  =>  "Ship It"
    <+<+env.name> =~ ["<+env.name>","All"]>  =>  true
    <+<+env.name> =~ "prod-.*">  =>  true
    <+<+env.name> !~ "prod">  =>  true
    <+<+env.name> =^ "prod" && <+env.name> =$ "eu">  =>  true
    <+pipeline.variables.none ?: 'default'>  =>  "default"
    <+pipeline.variables.missing ?? 'default'>  =>  "default"
    <+pipeline.variables.missing == null>  =>  true
    <+empty(pipeline.variables.missing)>  =>  true
    <+size(pipeline.stages.build.hosts)>  =>  2
    <+{'a': 1, b: [true, null]}>  =>  {"a":1,"b":[true,null]}
    <+"tab\tquote\"u\u00e9 \d">  =>  "tab\tquote\"ué \\d"
    "#);
}

#[test]
fn methods_and_functions() {
    insta::assert_snapshot!(table(&[
        "<+pipeline.name.replace(\" \", \"-\").toLowerCase()>",
        "<+<+pipeline.variables.list>.split(',')>",
        "<+pipeline.variables.tag.split('\\.')[1]>",
        "<+<+env.name>.substring(<+<+env.name>.indexOf(\"-\")>)>",
        "<+env.name.substring(0,4)>",
        "<+env.name.charAt(0)>",
        "<+env.name.replaceAll(\"([a-z]+)-\", \"$1_\")>",
        "<+pipeline.sequenceId.toString()>",
        "<+json.object(httpResponseBody).data.content.get(0).uuid>",
        "<+json.select(\"data.content[0].uuid\", httpResponseBody)>",
        "<+json.format(<+pipeline.stages.build>)>",
        "<+regex.extract(\"[0-9]+\", <+pipeline.variables.tag>)>",
        r#"<+pipeline.variables.list.replace(',','\",\"')>"#,
    ]), @r#"
    <+pipeline.name.replace(" ", "-").toLowerCase()>  =>  "ship-it"
    <+<+pipeline.variables.list>.split(',')>  =>  ["a","b"]
    <+pipeline.variables.tag.split('\.')[1]>  =>  "10"
    <+<+env.name>.substring(<+<+env.name>.indexOf("-")>)>  =>  "-eu"
    <+env.name.substring(0,4)>  =>  "prod"
    <+env.name.charAt(0)>  =>  "p"
    <+env.name.replaceAll("([a-z]+)-", "$1_")>  =>  "prod_eu"
    <+pipeline.sequenceId.toString()>  =>  "7"
    <+json.object(httpResponseBody).data.content.get(0).uuid>  =>  "u"
    <+json.select("data.content[0].uuid", httpResponseBody)>  =>  "u"
    <+json.format(<+pipeline.stages.build>)>  =>  "{\"status\":\"Succeeded\",\"hosts\":[\"h1\",{\"ip\":\"10.0.0.1\"}]}"
    <+regex.extract("[0-9]+", <+pipeline.variables.tag>)>  =>  "1"
    <+pipeline.variables.list.replace(',','\",\"')>  =>  "a\\\",\\\"b\\\",\\\"\\\",\\\""
    "#);
}

#[test]
fn errors_name_what_is_wrong() {
    insta::assert_snapshot!(table(&[
        "<+pipeline.variables.missing>",
        "deploy to <+env.nam>!",
        "<+env.name.nope>",
        "<+\"a\" < \"b\">",
        "<+pipeline.name && true>",
        "<+1 / 0>",
        "<+9223372036854775807 + 1>",
        "<+env.name.getClass()>",
        "<+env.name * 2>",
        "<+stage.variables.a>",
        "<+configFile.getAsString(\"x\")>",
        "<+date.now()>",
        "<+env.name =~ \"(?=x)\">",
        "<+env.name",
        "<+env.>",
        "<+>",
        "<+\"open>",
        "<+if (true) {1>",
        "<+99999999999999999999>",
    ]), @r#"
    <+pipeline.variables.missing>  =>  ! `<+pipeline.variables.missing>` cannot be evaluated: `pipeline.variables.missing` is not defined here; check its spelling and that it exists before this point
    deploy to <+env.nam>!  =>  ! `<+env.nam>` cannot be evaluated: `env.nam` is not defined here; check its spelling and that it exists before this point
    <+env.name.nope>  =>  ! `<+env.name.nope>` cannot be evaluated: `env.name.nope` is not defined here; check its spelling and that it exists before this point
    <+"a" < "b">  =>  ! `<+"a" < "b">` cannot be evaluated: `<` works on two numbers, not on a string and a string
    <+pipeline.name && true>  =>  ! `<+pipeline.name && true>` cannot be evaluated: `&&` works on true or false, not on the string "Ship It"
    <+1 / 0>  =>  ! `<+1 / 0>` cannot be evaluated: `/`: the result is no number of 64 bits (or a division by zero)
    <+9223372036854775807 + 1>  =>  ! `<+9223372036854775807 + 1>` cannot be evaluated: `+`: the result is no number of 64 bits (or a division by zero)
    <+env.name.getClass()>  =>  ! `<+env.name.getClass()>` cannot be evaluated: a string has no getClass()
    <+env.name * 2>  =>  ! `<+env.name * 2>` cannot be evaluated: `*` works on two numbers, not on a string and a number
    <+stage.variables.a>  =>  ! `<+stage.variables.a>` cannot be evaluated: the definition refers to itself: stage.variables.a -> stage.variables.b -> stage.variables.a
    <+configFile.getAsString("x")>  =>  ! `<+configFile.getAsString("x")>` cannot be evaluated: configFile.getAsString(): there is no such config file
    <+date.now()>  =>  ! `<+date.now()>` cannot be evaluated: date has no now()
    <+env.name =~ "(?=x)">  =>  ! `<+env.name =~ "(?=x)">` cannot be evaluated: the regular expression "(?=x)": it is not well formed, or uses look-around or back-references
    <+env.name  =>  ! expected an operator or the closing `>`, found the end of the text (byte 10)
    <+env.>  =>  ! expected the name of a property or method, found `>` (byte 6)
    <+>  =>  ! expected an operand, found `>` (byte 2)
    <+"open>  =>  ! expected a string that is closed by the same quote, found `"open>` (byte 2)
    <+if (true) {1>  =>  ! expected an operand, found the end of the text (byte 15)
    <+99999999999999999999>  =>  ! expected a number of 64 bits, found `999999999999` (byte 2)
    "#);
}

#[test]
fn secrets_stay_opaque() {
    insta::assert_snapshot!(table(&[
        "<+secrets.getValue(\"account.tok\")>",
        "Bearer <+stage.variables.token>",
        "<+\"Basic \" + <+secrets.getValue('org.t')>>",
        "<+<+env.name>==\"prod-eu\"?<+secrets.getValue(\"p\")>:<+secrets.getValue(\"d\")>>",
        "<+<+stage.variables.token> != null>",
        "<+<+stage.variables.token> == \"guess\">",
        "<+stage.variables.token.length()>",
        "<+json.format([<+stage.variables.token>])>",
        "<+secrets.getValue(\"bad ref\")>",
    ]), @r#"
    <+secrets.getValue("account.tok")>  =>  "<+secrets.getValue(\"account.tok\")>"
    Bearer <+stage.variables.token>  =>  "Bearer <+secrets.getValue(\"account.tok\")>"
    <+"Basic " + <+secrets.getValue('org.t')>>  =>  "Basic <+secrets.getValue(\"org.t\")>"
    <+<+env.name>=="prod-eu"?<+secrets.getValue("p")>:<+secrets.getValue("d")>>  =>  "<+secrets.getValue(\"p\")>"
    <+<+stage.variables.token> != null>  =>  true
    <+<+stage.variables.token> == "guess">  =>  ! `<+<+stage.variables.token> == "guess">` cannot be evaluated: `==` needs the value of a secret; secrets can only be passed on whole or joined to other text
    <+stage.variables.token.length()>  =>  ! `<+stage.variables.token.length()>` cannot be evaluated: length() needs the value of a secret; secrets can only be passed on whole or joined to other text
    <+json.format([<+stage.variables.token>])>  =>  ! `<+json.format([<+stage.variables.token>])>` cannot be evaluated: json.format() needs the value of a secret; secrets can only be passed on whole or joined to other text
    <+secrets.getValue("bad ref")>  =>  ! `<+secrets.getValue("bad ref")>` cannot be evaluated: secrets.getValue(): `bad ref` is not a secret reference: letters, digits, `_`, `-`, `$`, `/` and dots are, as in `account.token`
    "#);
}

#[test]
fn conditions() {
    let cases = [
        ("<+env.name> == \"prod-eu\"", Ok(true)),
        ("\"true\" == \"true\"", Ok(true)),
        ("false", Ok(false)),
        ("<+pipeline.variables.flag>", Ok(true)),
        ("<+pipeline.sequenceId> > 5", Ok(true)),
        (
            "<+pipeline.sequenceId>>5 && !<+pipeline.variables.flag>",
            Ok(false),
        ),
        ("<+pipeline.stages.build.status> == 'Success'", Ok(false)),
        ("<+json.object(httpResponseBody).status> == 1", Ok(true)),
        ("<+env.name>", Err("works on true or false")),
        ("", Err("expected an operand")),
        (
            "(${env.name} == 'a')",
            Err("FirstGen wrote `<+…>`), found `${env.name} `"),
        ),
        ("<+env.name> == \"a\" extra", Err("expected an operator")),
        ("<+missing> == \"a\"", Err("`missing` is not defined")),
    ];
    for (text, expected) in cases {
        let outcome = condition(text, &world(), &Limits::default());
        match (outcome, expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{text}"),
            (Err(error), Err(part)) => {
                assert!(
                    error.full_text().contains(part),
                    "{text}: {}",
                    error.full_text()
                );
            }
            (outcome, expected) => panic!("{text}: {outcome:?}, not {expected:?}"),
        }
    }
    assert!(check_condition("<+missing> == 1").is_ok());
}

#[test]
fn a_document_keeps_its_shape_and_names_the_place_of_an_error() {
    let document = json!({"url": "https://x/<+env.name>", "list": ["<+pipeline.sequenceId>", 3],
        "auth": "Bearer <+secrets.getValue(\"account.tok\")>"});
    let (value, secrets) = evaluate_json(&document, &world(), &Limits::default()).expect("defined");
    assert_eq!(value["url"], "https://x/prod-eu");
    assert_eq!(value["list"], json!([7, 3]));
    assert_eq!(
        secrets.iter().map(|s| s.as_str()).collect::<Vec<_>>(),
        ["account.tok"]
    );
    let shown = Value::from_marked_json(&value).to_shown_json();
    assert_eq!(shown["auth"], "Bearer <+secrets.getValue(\"account.tok\")>");

    let wrong = json!({"a": [{"b": "<+nope.x>"}]});
    let error = evaluate_json(&wrong, &world(), &Limits::default()).expect_err("undefined");
    assert_eq!(error.place.as_deref(), Some("$.a[0].b"));
}

#[test]
fn references_are_found_without_evaluating() {
    let template = parse(
        "<+env.name> <+pipeline.stages.<+matrix.x>.status> <+json.object(body).a> \
         <+secrets.getValue(\"account.tok\")> <+a[0]['b c'].trim()> <+env.name> <+b.get('c-d').e>",
    )
    .expect("well formed");
    let paths: Vec<_> = template
        .references()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        paths,
        [
            "env.name",
            "pipeline.stages.…",
            "matrix.x",
            "body",
            "a[0][\"b c\"]",
            "b[\"c-d\"].e"
        ]
    );
    assert_eq!(template.secrets()[0].as_str(), "account.tok");
}
