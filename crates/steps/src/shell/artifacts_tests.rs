//! Lists as scripts write them, good and bad.

use std::collections::BTreeMap;

use slipway_plan::ArtifactVersion;

use super::{Chosen, Listing};

/// As Nexus answers (docs: add-a-custom-artifact-source-for-cd).
const NEXUS: &str = r#"{"items": [
  {"name": "web", "version": "1.9", "group": null, "assets": [{"downloadUrl": "https://n.example/web/1.9", "size": 7}]},
  {"name": "web", "version": "1.10", "group": null, "assets": [{"downloadUrl": "https://n.example/web/1.10?key=hunter2", "size": 8}]},
  {"name": "web", "version": "1.2-rc", "group": null, "assets": []}
]}"#;

fn listing(wanted: ArtifactVersion) -> Listing {
    let attributes = [
        ("URL", "assets[0].downloadUrl"),
        ("size", "assets[0].size"),
        ("group", "group"),
        ("gone", "a.b[3].c"),
    ];
    Listing {
        source: 2,
        array: "$.items".to_owned(),
        version: "version".to_owned(),
        attributes: attributes
            .map(|(name, path)| (name.to_owned(), path.to_owned()))
            .into(),
        wanted,
        every: false,
    }
}

fn exact(version: &str) -> ArtifactVersion {
    ArtifactVersion::Exact(version.to_owned())
}

fn pattern(pattern: &str) -> ArtifactVersion {
    ArtifactVersion::Pattern(pattern.to_owned())
}

fn choose(listing: &Listing, list: &str) -> Result<Chosen, String> {
    listing.choose(list.as_bytes(), |text| text.replace("hunter2", "****"))
}

#[test]
fn a_version_is_chosen_with_its_attributes() {
    let table = [
        (exact("1.9"), "1.9"),
        (pattern(r"1\.\d+"), "1.10"),
        (pattern(".*-rc"), "1.2-rc"),
        (ArtifactVersion::Last, "1.10"),
    ];
    for (wanted, version) in table {
        let chosen = choose(&listing(wanted), NEXUS).unwrap();
        assert_eq!((chosen.source, &*chosen.found.version), (2, version));
    }
    let found = choose(&listing(exact("1.10")), NEXUS).unwrap().found;
    let told = [
        ("URL", "https://n.example/web/1.10?key=****"),
        ("size", "8"),
    ];
    let told = told.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found.metadata, BTreeMap::from(told));
    assert_eq!(found.digest, None);
}

#[test]
fn an_array_may_be_the_whole_document_and_hold_plain_versions() {
    let bare = |version: &str, list: &str| {
        let listing = Listing {
            array: "$".to_owned(),
            version: version.to_owned(),
            attributes: BTreeMap::new(),
            ..listing(ArtifactVersion::Last)
        };
        choose(&listing, list).map(|chosen| chosen.found.version)
    };
    assert_eq!(
        bare("$", r#"["1.9", "1.10", "1.1"]"#),
        Ok("1.10".to_owned())
    );
    assert_eq!(
        bare("$.build", r#"[{"build": 9}, {"build": 10}]"#),
        Ok("10".to_owned())
    );
}

#[test]
fn what_cannot_be_used_is_told_with_what_to_do() {
    let paths = |array: &str, version: &str| Listing {
        array: array.to_owned(),
        version: version.to_owned(),
        ..listing(ArtifactVersion::Last)
    };
    let good = || listing(ArtifactVersion::Last);
    let table = [
        (
            good(),
            "",
            "wrote nothing into the file that $HARNESS_ARTIFACT_RESULT_PATH names",
        ),
        (
            good(),
            "<html>hunter2</html>",
            "is no JSON (line 1, column 1)",
        ),
        (
            good(),
            r#"{"items": {}}"#,
            "and not to an array: correct the path (`$.items`)",
        ),
        (
            good(),
            r#"{"artifacts": []}"#,
            "`artifactsArrayPath` does not lead to the artifacts",
        ),
        (
            good(),
            r#"{"items": []}"#,
            "its script lists 0 artifacts, and none of them has a version at all",
        ),
        (
            good(),
            r#"{"items": [{"version": "1"}, {"name": "web"}]}"#,
            "in artifact 2 of the list",
        ),
        (
            good(),
            r#"{"items": [{"version": {}}]}"#,
            "a version is a text or a number",
        ),
        (
            good(),
            r#"{"items": [{"version": " "}]}"#,
            "a version is a text or a number",
        ),
        (
            good(),
            r#"{"items": [{"version": "v-hunter2"}]}"#,
            "holds the value of a secret",
        ),
        (paths("$.items[", "version"), NEXUS, "is no path"),
        (paths("$.items", "a..["), NEXUS, "is no path"),
        (
            listing(exact("7")),
            NEXUS,
            "its script lists 3 artifacts, and none of them has a version called 7",
        ),
        (
            listing(pattern("7.*")),
            NEXUS,
            "that matches `7.*` as a whole",
        ),
        (listing(pattern("(")), NEXUS, "is no regular expression"),
    ];
    for (listing, list, expected) in table {
        let told = choose(&listing, list).unwrap_err();
        assert!(told.contains(expected), "{list}: {told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    let mut broken = good();
    broken
        .attributes
        .insert("URL".to_owned(), "assets[".to_owned());
    let told = choose(&broken, NEXUS).unwrap_err();
    assert!(
        told.starts_with("the attribute `URL` has `assets[`, "),
        "{told}"
    );
    let large = format!(
        r#"{{"items": [{{"version": "1", "group": "{}"}}]}}"#,
        "x".repeat(70_000)
    );
    let told = choose(&good(), &large).unwrap_err();
    assert!(told.contains("take attributes out"), "{told}");
    let deep = "[".repeat(100_000);
    assert!(choose(&good(), &deep).unwrap_err().contains("no JSON"));
}

#[test]
fn who_wants_all_is_told_each_version_once_by_name() {
    let every = Listing {
        every: true,
        ..listing(ArtifactVersion::Last)
    };
    let all = |list: &str| every.all(list.as_bytes(), |text| text.replace("hunter2", "****"));
    let twice = NEXUS.replace("1.2-rc", "1.9");
    let told = all(&twice).unwrap();
    let versions: Vec<&str> = told.iter().map(|found| &*found.version).collect();
    assert_eq!(versions, ["1.9", "1.10"]);
    assert_eq!(
        told[1].metadata["URL"],
        "https://n.example/web/1.10?key=****"
    );
    assert_eq!(all(r#"{"items": []}"#), Ok(Vec::new()));

    let secret = all(&NEXUS.replace("1.9\"", "hunter2\"")).unwrap_err();
    assert!(secret.contains("holds the value of a secret"), "{secret}");
    assert!(!secret.contains("hunter2"), "{secret}");
    let long = format!(
        r#"{{"items": [{{"version": "1", "group": "{0}"}}, {{"version": "2", "group": "{0}"}}]}}"#,
        "g".repeat(1_200_000)
    );
    let why = all(&long).unwrap_err();
    assert!(why.contains("let it list the newest only"), "{why}");
}
