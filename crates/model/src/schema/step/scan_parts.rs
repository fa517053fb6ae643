//! What security scanners have in common, and what each tool wants to know.

use super::common::INT;
use crate::schema::{BOOL, TEXT};
use crate::shape::{Field, Object, Shape};

part!(ADVANCED, "`advanced`", [
    may "args": Shape::Object(&ARGS),
    may "fail_on_severity": Shape::OneOf(&["critical", "high", "medium", "low", "none"]),
    may "include_raw": BOOL,
    may "log": Shape::Object(&LOG),
]);
part!(ARGS, "`args`", [may "cli": TEXT, may "passthrough": TEXT]);
part!(LOG, "`log`", [
    may "level": Shape::OneOf(&["info", "debug", "warning", "error"]),
    may "serializer": Shape::OneOf(&["simple", "basic", "bunyan", "simple_onprem", "onprem"]),
]);
part!(AUTH, "`auth`", [
    must "access_token": TEXT,
    may "access_id": TEXT,
    may "domain": TEXT,
    may "region": TEXT,
    may "ssl": BOOL,
    may "type": Shape::OneOf(&["apiKey", "usernamePassword", "aws", "azure", "gcp"]),
    may "version": TEXT,
]);
part!(IMAGE, "`image`", [
    must "type": Shape::OneOf(&[
        "aws_ecr", "docker_v2", "jfrog_artifactory", "local_image", "local_archive", "harness",
    ]),
    may "access_id": TEXT,
    may "access_token": TEXT,
    may "domain": TEXT,
    may "name": TEXT,
    may "region": TEXT,
    may "tag": TEXT,
    may "registry": TEXT,
    may "image_path": TEXT,
]);
part!(TARGET, "`target`", [
    must "type": Shape::OneOf(&["repository", "container", "instance", "configuration"]),
    may "name": TEXT,
    may "variant": TEXT,
    may "detection": Shape::OneOf(&["manual", "auto"]),
    may "workspace": TEXT,
]);
part!(ANCHORE_TOOL, "`tool`", [may "image_name": TEXT, may "ingest_tool_severity": BOOL]);
part!(REPOSITORY, "`repository`", [
    must "type": Shape::OneOf(&["harness", "local"]),
    may "registry": TEXT,
    may "name": TEXT,
    may "version": TEXT,
]);
part!(SBOM, "`sbom`", [may "format": Shape::OneOf(&["spdx-json", "cyclonedx-json"]), may "generate": BOOL]);
part!(BLACKDUCK_TOOL, "`tool`", [may "project_name": TEXT, may "project_version": TEXT]);
part!(INSTANCE, "`instance`", [
    may "domain": TEXT,
    may "password": TEXT,
    may "path": TEXT,
    may "port": INT,
    may "protocol": TEXT,
    may "username": TEXT,
]);
part!(BURP_TOOL, "`tool`", [
    may "scan_id": TEXT,
    may "site_id": TEXT,
    may "start_urls": TEXT,
    may "in_scope_url_prefixes": TEXT,
    may "out_of_scope_url_prefixes": TEXT,
]);
part!(CHECKMARX_TOOL, "`tool`", [
    may "project_name": TEXT,
    may "team_name": TEXT,
    may "ingest_tool_severity": BOOL,
    may "environment_id": TEXT,
    may "context": TEXT,
    may "scan_type": Shape::OneOf(&["DAST", "DASTAPI"]),
]);
part!(CORTEX_CLOUD_TOOL, "`tool`", [may "image_id": TEXT, may "ingest_tool_severity": BOOL]);
part!(FOD_TOOL, "`tool`", [
    may "app_name": TEXT,
    may "audit_type": TEXT,
    may "data_center": TEXT,
    may "entitlement": TEXT,
    may "lookup_type": TEXT,
    may "owner_id": TEXT,
    may "release_name": TEXT,
    may "scan_settings": TEXT,
    may "scan_type": TEXT,
    may "target_language": TEXT,
    may "target_language_version": TEXT,
]);
part!(FOSSA_TOOL, "`tool`", [may "policy_name": TEXT, may "project_name": TEXT, may "team_name": TEXT]);
part!(SHIFT_LEFT_TOOL, "`tool`", [may "target_language": TEXT, may "app_name": TEXT]);
part!(MEND_TOOL, "`tool`", [
    may "exclude": TEXT,
    may "include": TEXT,
    may "product_name": TEXT,
    may "product_token": TEXT,
    may "project_name": TEXT,
    may "project_token": TEXT,
]);
part!(MYTHOS_AGENT_TOOL, "`tool`", [may "model": TEXT, may "base_url": TEXT]);
part!(NEXUS_IQ_TOOL, "`tool`", [
    must "lookup_id": TEXT,
    may "project_name": TEXT,
    may "organization_id": TEXT,
    may "product_lookup_type": TEXT,
    may "exclude": TEXT,
]);
part!(PRISMA_CLOUD_TOOL, "`tool`", [may "ingest_tool_severity": BOOL, may "honor_grace_period": BOOL]);
part!(SNYK_TOOL, "`tool`", [may "ingest_tool_severity": BOOL]);
part!(SONARQUBE_TOOL, "`tool`", [
    may "pull_request_key": TEXT,
    may "pull_request_branch": TEXT,
    may "pull_request_base": TEXT,
    may "branch_name": TEXT,
    may "analysis_detection": Shape::OneOf(&["manual", "auto"]),
    may "exclude": TEXT,
    may "include": TEXT,
    may "java": Shape::Object(&JAVA_PARAMETERS),
    may "project_key": TEXT,
]);
part!(JAVA_PARAMETERS, "`java`", [may "binaries": TEXT, may "libraries": TEXT]);
part!(TRACEABLE_TOOL, "`tool`", [
    must "suite_id": TEXT,
    may "scan_id": TEXT,
    may "runner_id": TEXT,
    may "scan_name": TEXT,
]);
part!(VERACODE_TOOL, "`tool`", [may "app_id": TEXT, may "project_name": TEXT, may "sandbox_id": TEXT]);
part!(WIZ_TOOL, "`tool`", [must "project_id": TEXT]);
part!(ZAP_TOOL, "`tool`", [may "context": TEXT, may "port": INT]);
