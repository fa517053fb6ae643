//! The ECS manifests of the corpus are read and fit the requests that they are for.

use serde_json::Value;
use slipway_expr::{Context, Limits, Segment};
use slipway_steps::aws::document::{conform, read};

use crate::corpus::rows;

/// Knows every name, and gives a text that can also be a number.
struct Anything;

impl Context for Anything {
    fn lookup(&self, _path: &[Segment]) -> Option<slipway_expr::Value> {
        Some("1".into())
    }
}

#[test]
fn every_ecs_manifest_fits_its_request() {
    let shapes = [
        ("manifest:EcsTaskDefinition", "RegisterTaskDefinition"),
        ("manifest:EcsServiceDefinition", "CreateService"),
        (
            "manifest:EcsScalableTargetDefinition",
            "RegisterScalableTarget",
        ),
        ("manifest:EcsScalingPolicyDefinition", "PutScalingPolicy"),
    ];
    let (mut seen, mut faults) = (0, Vec::new());
    for row in rows() {
        let shape = shapes.iter().find(|(kind, _)| *kind == row.kind);
        let Some((_, shape)) = shape else { continue };
        seen += 1;
        if let Err(why) = fits(shape, &row.path, &row.text()) {
            faults.push(format!("{}: {why}", row.path));
        }
    }
    assert!(seen > 0, "the corpus has no ECS manifests");
    assert_eq!(faults, Vec::<String>::new());
}

fn fits(shape: &str, path: &str, text: &str) -> Result<(), String> {
    let written: Value = read(path, text)?;
    let resolved = slipway_expr::evaluate_json(&written, &Anything, &Limits::default());
    let (resolved, _) = resolved.map_err(|error| error.to_string())?;
    conform(shape, resolved)
        .map(drop)
        .map_err(|faults| faults.join("; "))
}
