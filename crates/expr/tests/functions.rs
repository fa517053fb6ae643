//! Methods and functions, as tables.

mod world;

use serde_json::json;
use world::World;

fn world() -> World {
    let books = json!({"books": [
        {"title": "One", "price": 30, "tags": ["x", "y"]},
        {"title": "Two", "price": 10.5, "tags": ["z"]},
        {"title": "Three", "price": 20, "tags": []},
    ], "data": {"pins": {"mvn://a-b": "0.1", "k.l": "dotted"}}});
    World::new(&json!({
        "body": books.to_string(),
        "xml": r#"<?xml version="1.0"?>
<shop xmlns="urn:shop" xmlns:p="urn:p">
  <book kind="web" id="1"><title lang="en">Alpha</title><price>30.5</price></book>
  <book kind="web" id="2"><title>Beta &amp; Co</title><price>20</price></book>
  <book kind="old" id="3"><title>Gamma</title><price>10</price><p:note>n</p:note></book>
</shop>"#,
        "text": "prod-environment-variable", "abc": "def:ghi", "version": "5.6.0", "s": " Päd ",
        "label": {"maintainer": "dev@example.com", "multi.author": "x"},
        "n": 7, "f": 2.5,
    }))
}

#[test]
fn strings() {
    world().check(&[
        ("<+abc.split(':')[1]>", r#""ghi""#),
        (r"<+version.split('\\.')[1]>", r#""6""#),
        (r"<+version.split('.')>", "[]"),
        ("<+text.split('-')[0]>", r#""prod""#),
        (
            r#"<+text.split("-", 2)>"#,
            r#"["prod","environment-variable"]"#,
        ),
        (r#"<+"a1b22c".split("[0-9]+")>"#, r#"["a","b","c"]"#),
        (r#"<+"abc".split("")>"#, r#"["a","b","c"]"#),
        ("<+<+version>.charAt(0)>", r#""5""#),
        ("<+<+text>.substring(0,4)>", r#""prod""#),
        (
            r#"<+<+text>.substring(<+<+text>.indexOf("v")>)>"#,
            r#""vironment-variable""#,
        ),
        ("<+<+text>.substring(99)>", "! position 99 is outside"),
        ("<+<+text>.substring(3, 1)>", "! is outside"),
        ("<+<+text>.substring(-1)>", "! positions from 0"),
        (r#"<+<+text>.indexOf("e", 9)>"#, "13"),
        (r#"<+<+text>.lastIndexOf("e")>"#, "24"),
        (r#"<+<+text>.lastIndexOf("e", 9)>"#, "5"),
        (r#"<+<+text>.startsWith("env", 5)>"#, "true"),
        (
            r#"<+<+text>.startsWith("prod") && <+text>.endsWith("able")>"#,
            "true",
        ),
        (
            r#"<+<+text>.replace("-", "_").toUpperCase()>"#,
            r#""PROD_ENVIRONMENT_VARIABLE""#,
        ),
        (
            r#"<+<+text>.replaceFirst("[-]", "+")>"#,
            r#""prod+environment-variable""#,
        ),
        (
            r#"<+<+text>.replaceAll("(\w+)-(\w+)", "$2.$1")>"#,
            r#""environment.prod-variable""#,
        ),
        (r#"<+<+text>.matches("[a-z-]+")>"#, "true"),
        (r#"<+<+text>.matches("[a-z]+")>"#, "false"),
        (r#"<+<+text>.matches("[\w-]{1,63}")>"#, "true"),
        (r#"<+"a1 b".matches("^\w\d\s[^\W\d]$")>"#, "true"),
        (r#"<+"é".matches("\w") || "٣".matches("[\d]")>"#, "false"),
        (r#"<+"é-".matches("\W[\S]")>"#, "true"),
        (r#"<+"]^".matches("[]^]+")>"#, "true"),
        (r#"<+"\\w".matches("\\\\w")>"#, "true"),
        ("<+<+s>.trim().length()>", "3"),
        ("<+<+s>.stripLeading()>", r#""Päd ""#),
        ("<+<+s>.isBlank() || <+s>.isEmpty()>", "false"),
        ("<+<+s>.trim().toCharArray()>", r#"["P","ä","d"]"#),
        (r#"<+"ab".repeat(3)>"#, r#""ababab""#),
        (r#"<+"hello".hashCode()>"#, "99162322"),
        (r#"<+"apple".compareTo("apricot")>"#, "-2"),
        (r#"<+"A".compareToIgnoreCase("a")>"#, "0"),
        (r#"<+"abcdef".regionMatches(2, "xxcd", 2, 2)>"#, "true"),
        (
            r#"<+"abCDef".regionMatches(true, 2, "xxcd", 2, 2)>"#,
            "true",
        ),
        (r#"<+"".join("-", ["a", "b"])>"#, r#""a-b""#),
        (r#"<+"".join("-", "a", "b", "c")>"#, r#""a-b-c""#),
        (r#"<+"a\nb".lines()>"#, r#"["a","b"]"#),
        ("<+<+text>.getClass()>", "! a string has no getClass()"),
        ("<+<+text>.getBytes()>", "! a string has no getBytes()"),
        ("<+<+text>.contains()>", "! a string has no contains()"),
        (
            "<+<+text>.contains(<+label>)>",
            "! works on strings, not on a map",
        ),
    ]);
}

#[test]
fn lists_maps_and_numbers() {
    world().check(&[
        (r#"<+<+label>.get("maintainer")>"#, r#""dev@example.com""#),
        (r#"<+<+label>.get("multi.author")>"#, r#""x""#),
        (r#"<+label.get("maintainer")>"#, r#""dev@example.com""#),
        (r#"<+<+label>.get("nope")>"#, "null"),
        (r#"<+<+label>.getOrDefault("nope", "d")>"#, r#""d""#),
        (r#"<+<+label>.containsKey("maintainer")>"#, "true"),
        (
            r#"<+<+label>.keySet()>"#,
            r#"["maintainer","multi.author"]"#,
        ),
        (r#"<+<+label>.size()>"#, "2"),
        (r#"<+["a","b","a"].indexOf("b")>"#, "1"),
        (r#"<+["a","b","a"].lastIndexOf("a")>"#, "2"),
        (r#"<+["a","b","c"].subList(1, 3)>"#, r#"["b","c"]"#),
        (r#"<+["a","b","c"].subList(2, 4)>"#, "! is outside"),
        (r#"<+["a","b"].containsAll(["b"])>"#, "true"),
        ("<+[].isEmpty()>", "true"),
        ("<+n.doubleValue()>", "7.0"),
        ("<+f.intValue()>", "2"),
        ("<+n.compareTo(8)>", "-1"),
        ("<+n.equals(7)>", "true"),
        ("<+true.toString()>", r#""true""#),
    ]);
}

#[test]
fn json_functions() {
    world().check(&[
        ("<+json.object(body).books.get(1).title>", r#""Two""#),
        ("<+json.object(body).books[2].price>", "20"),
        (
            "<+json.object(body).nope>",
            "! `nope of a map` is not defined",
        ),
        ("<+<+json.object(body).nope> == null>", "true"),
        (r#"<+json.select("data.pins.mvn://a-b", body)>"#, r#""0.1""#),
        (r#"<+json.select("data.pins['k.l']", body)>"#, r#""dotted""#),
        (r#"<+json.select("$.books[0].title", body)>"#, r#""One""#),
        (r#"<+json.select("books[-1].title", body)>"#, r#""Three""#),
        (
            r#"<+json.select("books[*].title", body)>"#,
            r#"["One","Two","Three"]"#,
        ),
        (
            r#"<+json.select("books[0:2].title", body)>"#,
            r#"["One","Two"]"#,
        ),
        (
            r#"<+json.select("books[0,2]['title']", body)>"#,
            r#"["One","Three"]"#,
        ),
        (
            r#"<+json.select("$..title", body)>"#,
            r#"["One","Two","Three"]"#,
        ),
        (r#"<+json.select("..tags[0]", body)>"#, r#"["x","z"]"#),
        (r#"<+json.select("books[?(@.price<11)].title", body)>"#, r#"["Two"]"#),
        (r#"<+json.select("$..book[?(@.a)]", body)>"#, "[]"),
        (r#"<+json.select("books[?(@.price>=20 && @.title!='One' || @.tags[1]=='y')].price", body)>"#, "[30,20]"),
        (r#"<+json.select("books[?(@['title'] == 'One')].tags[*]", body)>"#, r#"["x","y"]"#),
        (r#"<+json.select("books[?(@.title < 'x')]", body)>"#, "[]"),
        (r#"<+json.select("books[?(@[?(@.a)])]", body)>"#, "! is no path"),
        (r#"<+json.select("books[?(1)]", body)>"#, "! is no path"),
        (
            r#"<+json.select("books[9]", body)>"#,
            "! there is nothing at",
        ),
        (r#"<+json.select("books[", body)>"#, "! is no path"),
        (r#"<+json.select("a", "{")>"#, "! not JSON (line 1"),
        (r#"<+json.list("books", body).get(2).title>"#, r#""Three""#),
        (
            r#"<+json.list("data", body)>"#,
            "! there is a map at that path",
        ),
        (
            "<+json.format(<+label>)>",
            r#""{\"maintainer\":\"dev@example.com\",\"multi.author\":\"x\"}""#,
        ),
        ("<+json.nope(body)>", "! json has no nope(_)"),
    ]);
}

#[test]
fn xml_functions() {
    world().check(&[
        (r#"<+xml.select("/shop/book[1]/title", xml)>"#, r#""Alpha""#),
        (
            r#"<+xml.select("//book[title='Beta & Co']/@id", xml)>"#,
            r#""2""#,
        ),
        (
            r#"<+xml.select("//book[last()]/title/text()", xml)>"#,
            r#""Gamma""#,
        ),
        (
            r#"<+xml.select("/shop/book[@kind='web'][2]/price", xml)>"#,
            r#""20""#,
        ),
        (r#"<+xml.select("count(//book[price > 15])", xml)>"#, "2"),
        (r#"<+xml.select("sum(//price) div 2", xml)>"#, "30.25"),
        (r#"<+xml.select("//p:note", xml)>"#, r#""n""#),
        (r#"<+xml.select("name(//note)", xml)>"#, r#""p:note""#),
        (r#"<+xml.select("//title[@lang]/../@id", xml)>"#, r#""1""#),
        (
            r#"<+xml.select("//note/ancestor::book/@id", xml)>"#,
            r#""3""#,
        ),
        (
            r#"<+xml.select("//book[3]/preceding-sibling::book[1]/@id", xml)>"#,
            r#""2""#,
        ),
        (
            r#"<+xml.select("//book[1]/following::price[2]", xml)>"#,
            r#""10""#,
        ),
        (
            r#"<+xml.select("//note/preceding::title[1]", xml)>"#,
            r#""Gamma""#,
        ),
        (
            r#"<+xml.select("(//title | //price)[2]", xml)>"#,
            r#""30.5""#,
        ),
        (
            r#"<+xml.select("concat(//book[2]/@kind, '-', string-length('abc'))", xml)>"#,
            r#""web-3""#,
        ),
        (
            r#"<+xml.select("substring('12345', 2, 3)", xml)>"#,
            r#""234""#,
        ),
        (
            r#"<+xml.select("substring-after('a=b', '=')", xml)>"#,
            r#""b""#,
        ),
        (
            r#"<+xml.select("translate('bar', 'abc', 'AB')", xml)>"#,
            r#""BAr""#,
        ),
        (
            r#"<+xml.select("normalize-space('  a  b ')", xml)>"#,
            r#""a b""#,
        ),
        (r#"<+xml.select("boolean(//nope)", xml)>"#, "false"),
        (
            r#"<+xml.select("//book/@id = 3 and not(//book/@id > 3)", xml)>"#,
            "true",
        ),
        (
            r#"<+xml.select("-(3 - 1) mod 2 = 0 or false()", xml)>"#,
            "true",
        ),
        (
            r#"<+xml.select("starts-with(local-name(/*), 'sh')", xml)>"#,
            "true",
        ),
        (r#"<+xml.select("//nope", xml)>"#, "! there is nothing at"),
        (r#"<+xml.select("//book[", xml)>"#, "! a name is expected"),
        (
            r#"<+xml.select("document('/etc/passwd')", xml)>"#,
            "! there is no function `document`",
        ),
        (r#"<+xml.select("/a", "<a><b></a>")>"#, "! not XML (line 1"),
        (r#"<+xml.select("/a", "")>"#, "! not XML"),
    ]);
}

#[test]
fn patterns_and_dates() {
    world().check(&[
        (r#"<+regex.extract("[0-9]+", "v12-3")>"#, r#""12""#),
        (r#"<+regex.extract("x", "v12-3")>"#, "! nothing matches"),
        (r#"<+regex.match("^v[0-9]+", "v12-3")>"#, "true"),
        (r#"<+regex.replace("[0-9]+", "n", "v12-3")>"#, r#""vn-n""#),
        ("<+currentDate()>", r#""2026-01-31""#),
        (
            "<+currentDate().plusDays(2).plusMonths(1)>",
            r#""2026-03-02""#,
        ),
        ("<+currentDate().plusMonths(1)>", r#""2026-02-28""#),
        (
            "<+currentDate().plusYears(1).minusWeeks(1)>",
            r#""2027-01-24""#,
        ),
        ("<+currentTime()>", r#""2026-01-31T22:05:09.007Z""#),
        (
            "<+currentTime().plusHours(2).plusMinutes(1).plusSeconds(1).plusNanos(1)>",
            r#""2026-02-01T00:06:10.007000001Z""#,
        ),
        ("until <+datetime.currentDate()>", r#""until 2026-01-31""#),
        (
            r#"<+currentTime().format("yyyyMMdd-HHmmss'Z'")>"#,
            r#""20260131-220509Z""#,
        ),
        (
            r#"<+date.currentDate().format("EEE d MMM yy")>"#,
            r#""Sat 31 Jan 26""#,
        ),
        ("<+currentDate().getDayOfWeek()>", r#""SATURDAY""#),
        ("<+currentTime().getHour() >= 22>", "true"),
        ("<+currentTime().toEpochMilli()>", "1769897109007"),
        (
            "<+currentDate().isBefore(currentDate().plusDays(1))>",
            "true",
        ),
        (r#"<+currentDate() == "2026-01-31">"#, "true"),
        ("<+currentDate().plusDays(1) > currentDate()>", "true"),
        (
            "<+currentDate().plusHours(1)>",
            "! plusHours(): a date has none",
        ),
        (
            "<+currentDate().plusDays(9223372036854775807)>",
            "! outside of the years",
        ),
        (
            "<+currentTime().minusYears(99999)>",
            "! outside of the years",
        ),
        (r#"<+currentDate().format("QQQ")>"#, "! is not one of"),
        ("<+now()>", "! the language has no now()"),
        (
            r#"<+configFile.getAsString("id")>"#,
            "! files cannot be read where",
        ),
        (
            r#"<+fileStore.getAsBase64("/a")>"#,
            "! files cannot be read where",
        ),
    ]);
}
