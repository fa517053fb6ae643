//! Lambda of the sandbox account as boto3 reads it: its waiters end when they should, its listings page, its errors
//! have AWS's codes.

use std::process::Command;

use slipway_tests::LocalProcess;

const SCRIPT: &str = r#"
import boto3, botocore, sys
lam = boto3.client("lambda", endpoint_url=sys.argv[1], region_name="us-east-1",
                   aws_access_key_id="AKIATEST", aws_secret_access_key="x")
ROLE = "arn:aws:iam::123456789012:role/shop"
soon = {"Delay": 1, "MaxAttempts": 30}

def create(name, **more):
    made = lam.create_function(FunctionName=name, Runtime="nodejs22.x", Handler="index.handler", Role=ROLE,
                               Code={"ZipFile": b"PK\x03\x04" + name.encode()}, **more)
    assert made["State"] == "Pending", made["State"]
    lam.get_waiter("function_active_v2").wait(FunctionName=name, WaiterConfig=soon)

create("shop", Tags={"team": "shop"})
lam.update_function_code(FunctionName="shop", ZipFile=b"PK\x03\x04two")
try:
    lam.update_function_configuration(FunctionName="shop", Timeout=9)
    sys.exit("changed while it was being changed")
except lam.exceptions.ResourceConflictException as error:
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 409
lam.get_waiter("function_updated_v2").wait(FunctionName="shop", WaiterConfig=soon)
version = lam.publish_version(FunctionName="shop")["Version"]
lam.get_waiter("published_version_active").wait(FunctionName="shop", Qualifier=version, WaiterConfig=soon)
lam.create_alias(FunctionName="shop", Name="live", FunctionVersion=version)
assert lam.get_alias(FunctionName="shop", Name="live")["FunctionVersion"] == version == "1"
assert lam.get_function(FunctionName="shop")["Tags"] == {"team": "shop"}

full = {"SubnetIds": ["subnet-full-1"], "SecurityGroupIds": ["sg-1"]}
lam.update_function_configuration(FunctionName="shop", VpcConfig=full)
try:
    lam.get_waiter("function_updated_v2").wait(FunctionName="shop", WaiterConfig=soon)
    sys.exit("the waiter did not see the failure")
except botocore.exceptions.WaiterError as error:
    assert error.last_response["Configuration"]["LastUpdateStatusReasonCode"] == "SubnetOutOfIPAddresses"

for name in "abcde":
    create(name)
pages = lam.get_paginator("list_functions").paginate(PaginationConfig={"PageSize": 2})
names = [function["FunctionName"] for page in pages for function in page["Functions"]]
assert names == ["a", "b", "c", "d", "e", "shop"], names
pages = lam.get_paginator("list_versions_by_function").paginate(FunctionName="shop", PaginationConfig={"PageSize": 1})
versions = [one["Version"] for page in pages for one in page["Versions"]]
assert versions == ["$LATEST", "1"], versions
for call, code in [
    (lambda: lam.get_function(FunctionName="none"), "ResourceNotFoundException"),
    (lambda: lam.create_alias(FunctionName="shop", Name="live", FunctionVersion="1"), "ResourceConflictException"),
    (lambda: lam.publish_version(FunctionName="a", CodeSha256="x"), "InvalidParameterValueException"),
    (lambda: lam.publish_version(FunctionName="a", RevisionId="x"), "PreconditionFailedException"),
    (lambda: lam.update_function_configuration(FunctionName="a", Timeout=901), "ValidationException"),
]:
    try:
        call()
        sys.exit(f"no {code}")
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == code, error
print("well")
"#;

#[test]
fn boto3_reads_lambda_as_it_reads_aws() {
    let python = std::env::var_os("SLIPWAY_PYTHON_BOTO3").expect(
        "SLIPWAY_PYTHON_BOTO3 names a python3 with boto3; `cargo xtask conformance` sets it",
    );
    let dir = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(dir.path());
    let done = Command::new(python)
        .args(["-c", SCRIPT, local.url()])
        .output();
    let done = done.expect("python3 starts");
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(said.trim(), "well", "{errors}");
}
