//! The arrows of docs/ARCHITECTURE.md, kept by `cargo metadata`: a room depends on the rooms named here and
//! on no other.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Room, and the rooms it may depend on outside its own tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("slipway-clock", &[]),
    ("slipway-expr", &[]),
    ("slipway-model", &["slipway-expr"]),
    ("slipway-plan", &["slipway-expr", "slipway-model"]),
    ("slipway-trigger", &["slipway-expr", "slipway-model"]),
    (
        "slipway-store",
        &["slipway-clock", "slipway-model", "slipway-plan"],
    ),
    (
        "slipway-engine",
        &[
            "slipway-clock",
            "slipway-expr",
            "slipway-model",
            "slipway-plan",
            "slipway-store",
            "slipway-trigger",
        ],
    ),
    (
        "slipway-steps",
        &[
            "slipway-clock",
            "slipway-engine",
            "slipway-expr",
            "slipway-model",
            "slipway-plan",
            "slipway-store",
        ],
    ),
    (
        "slipway-source",
        &[
            "slipway-clock",
            "slipway-engine",
            "slipway-model",
            "slipway-plan",
            "slipway-steps",
            "slipway-trigger",
        ],
    ),
    ("slipway-asl", &["slipway-clock"]),
    ("slipway-sandbox", &["slipway-clock"]),
];

/// Rooms that no function may need: a Lambda never carries local mode.
const LOCAL_ONLY: &[&str] = &["slipway-asl", "slipway-sandbox", "slipway-cli"];

fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata");
    let names: BTreeSet<String> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    metadata
        .packages
        .iter()
        .map(|package| {
            let normal = package
                .dependencies
                .iter()
                .filter(|d| d.kind == DependencyKind::Normal && names.contains(&d.name))
                .map(|d| d.name.clone())
                .collect();
            (package.name.to_string(), normal)
        })
        .collect()
}

#[test]
fn every_room_depends_only_on_the_rooms_below_it() {
    let edges = edges();
    for (room, allowed) in ARROWS {
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        let found = edges
            .get(*room)
            .unwrap_or_else(|| panic!("{room} is not in the workspace"));
        let extra: Vec<_> = found.difference(&allowed).collect();
        assert!(extra.is_empty(), "{room} must not depend on {extra:?}");
    }
}

#[test]
fn no_function_carries_local_mode() {
    for (package, found) in edges() {
        if package.starts_with("slipway-fn-") {
            let extra: Vec<_> = found
                .iter()
                .filter(|name| LOCAL_ONLY.contains(&name.as_str()))
                .collect();
            assert!(extra.is_empty(), "{package} must not depend on {extra:?}");
        }
    }
}

/// SECURITY Y16: an archive that is never unpacked cannot climb out of a folder. Who adds one of these to a room brings
/// the tests of that row with it, as the sandbox has them for packages of functions; `xtask` and tests only pack.
#[test]
fn y16_only_the_sandbox_unpacks_archives() {
    const UNPACKERS: &[&str] = &[
        "async_zip",
        "sevenz-rust2",
        "tar",
        "tokio-tar",
        "unrar",
        "zip",
    ];
    const MAY: &[(&str, &str)] = &[("slipway-sandbox", "zip"), ("xtask", "zip")];
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata");
    for package in &metadata.packages {
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let unpacks = UNPACKERS.contains(&name) && dependency.kind == DependencyKind::Normal;
            let may = MAY.contains(&(package.name.as_str(), name));
            assert!(!unpacks || may, "{} depends on {name}", package.name);
        }
    }
}

#[test]
fn every_package_is_in_the_drawing_or_above_it() {
    let drawn: BTreeSet<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    let above = |name: &str| {
        let others = [
            "slipway-cli",
            "slipway-simulation",
            "slipway-tests",
            "slipway-world",
            "xtask",
        ];
        name.starts_with("slipway-fn-") || others.contains(&name)
    };
    for package in edges().keys() {
        assert!(
            drawn.contains(package.as_str()) || above(package),
            "{package} is a new room: add it to ARROWS and to docs/ARCHITECTURE.md"
        );
    }
}
