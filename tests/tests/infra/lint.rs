//! cfn-lint over the templates.

use std::process::Command;

use slipway_tests::checkout;

#[test]
fn cfn_lint_finds_nothing() {
    let lint = std::env::var("SLIPWAY_CFN_LINT").unwrap_or_else(|_| "cfn-lint".to_owned());
    let output = Command::new(&lint)
        .args([checkout("infra/data.yaml"), checkout("infra/app.yaml")])
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "cannot run {lint} ({error}): run the tests with `cargo xtask test`, which installs \
                 cfn-lint, or `pip install cfn-lint==1.58.0` and set SLIPWAY_CFN_LINT to its path"
            )
        });
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
