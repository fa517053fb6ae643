//! Security scanners.

use super::common::{FILE, INT, MAP, OUTPUT_VARIABLES, PULL_POLICY};
use super::container::RESOURCES;
use crate::schema::{BOOL, TEXT, TEXTS, object};
use crate::shape::{Field, Object, Shape};

object!(SCAN, "a step", [
    may "advanced": Shape::Object(&ADVANCED),
    may "baseImageConnectorRefs": TEXTS,
    may "connectorRef": TEXT,
    may "imagePullPolicy": PULL_POLICY,
    may "imageTag": TEXT,
    may "ingestion": Shape::Object(&FILE),
    may "outputVariables": OUTPUT_VARIABLES,
    may "privileged": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "settings": MAP,
    must "target": Shape::Object(&TARGET),
]);

bare!(REGISTRY_SCAN, "`AWSECR` or `Sysdig`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
]);
bare!(AWS_SECURITY_HUB, "`AWSSecurityHub`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
]);
bare!(ANCHORE, "`Anchore`" + SCAN, [
    must "config": Shape::OneOf(&["default", "all", "non-os", "os"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&ANCHORE_TOOL),
]);
bare!(AQUA_SECURITY, "`AquaSecurity`" + SCAN, [
    must "config": Shape::OneOf(&["default", "self-hosted"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
]);
bare!(AQUA_TRIVY, "`AquaTrivy`" + SCAN, [
    must "config": Shape::OneOf(&["default", "fs", "sbom"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "image": Shape::Object(&IMAGE),
    may "repository": Shape::Object(&REPOSITORY),
    may "sbom": Shape::Object(&SBOM),
]);
bare!(PLAIN_SCAN, "this step" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
]);
bare!(BLACK_DUCK, "`BlackDuck`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "sbom": Shape::Object(&SBOM),
    may "tool": Shape::Object(&BLACKDUCK_TOOL),
]);
bare!(BURP, "`Burp`" + SCAN, [
    must "config": Shape::OneOf(&[
        "default", "never-stop-crawl-due-to-application-errors",
        "never-stop-audit-due-to-application-errors", "minimize-false-positives",
        "minimize-false-negatives", "crawl-strategy-most-complete", "crawl-strategy-more-complete",
        "crawl-strategy-fastest", "crawl-strategy-faster", "crawl-limit-60-minutes",
        "crawl-limit-30-minutes", "crawl-limit-10-minutes", "crawl-and-audit-lightweight",
        "crawl-and-audit-fast", "crawl-and-audit-deep", "crawl-and-audit-balanced",
        "audit-coverage-thorough", "audit-coverage-maximum", "audit-checks-passive",
        "audit-checks-medium-active", "audit-checks-light-active", "audit-checks-critical-issues-only",
        "audit-checks-all-except-time-based-detection-methods",
        "audit-checks-all-except-java-script-analysis",
    ]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&BURP_TOOL),
]);
bare!(CHECKMARX, "`Checkmarx`" + SCAN, [
    must "config": Shape::OneOf(&["default", "cxsast", "cxsca", "cxosa"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&CHECKMARX_TOOL),
]);
bare!(CHECKMARX_ONE, "`CheckmarxOne`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&CHECKMARX_TOOL),
]);
bare!(SOURCE_SCAN, "`Checkov` or `ModelScan`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration"]),
]);
bare!(CORTEX_CLOUD, "`CortexCloud`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&CORTEX_CLOUD_TOOL),
]);
bare!(CUSTOM_INGEST, "`CustomIngest`" + SCAN, [
    must "config": Shape::OneOf(&["default", "sarif"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
]);
bare!(IMAGE_SCAN, "`DockerContentTrust` or `Grype`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "image": Shape::Object(&IMAGE),
]);
bare!(FORTIFY_ON_DEMAND, "`FortifyOnDemand`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&FOD_TOOL),
]);
bare!(FOSSA, "`Fossa`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&FOSSA_TOOL),
]);
bare!(GIT_HUB_ADVANCED_SECURITY, "`GitHubAdvancedSecurity`" + SCAN, [
    must "config": Shape::OneOf(&["default", "codeql", "dependabot", "secret"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
]);
bare!(HARNESS_SAST, "`HarnessSAST`" + SCAN, [
    must "config": Shape::OneOf(&["default", "sast", "sca", "sast_sca"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "tool": Shape::Object(&SHIFT_LEFT_TOOL),
]);
bare!(CODE_SCAN, "`HarnessSCA` or `ShiftLeft`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "tool": Shape::Object(&SHIFT_LEFT_TOOL),
]);
bare!(HSA_REPO_SCAN, "`HsaRepoScan`", [
    may "workspace": TEXT,
    may "path": TEXT,
    may "repoPath": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(MEND, "`Mend`" + SCAN, [
    must "config": Shape::OneOf(&["default", "sast", "sca", "container"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&MEND_TOOL),
]);
bare!(METASPLOIT, "`Metasploit`" + SCAN, [
    must "config": Shape::OneOf(&["default", "metasploit-weak-ssh", "metasploit-openssl-heartbleed"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(MYTHOS_AGENT, "`MythosAgent`" + SCAN, [
    must "config": Shape::OneOf(&["hunt_full", "hunt_incremental", "scan"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration"]),
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&MYTHOS_AGENT_TOOL),
]);
bare!(INSTANCE_SCAN, "`Nessus`, `Nikto` or `Tenable`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(NEXUS_IQ, "`NexusIQ`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&NEXUS_IQ_TOOL),
]);
bare!(NMAP, "`Nmap`" + SCAN, [
    must "config": Shape::OneOf(&[
        "default", "firewall-bypass", "unusual-port", "smb-security-mode", "vuln", "exploit",
        "no-default-cli-flags",
    ]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(OPEN_AI, "`OpenAi`" + SCAN, [
    must "config": Shape::OneOf(&["default", "full", "incremental"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration"]),
    may "auth": Shape::Object(&AUTH),
]);
bare!(OPENVAS, "`Openvas`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(OSV_SCANNER, "`OsvScanner`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration"]),
    may "image": Shape::Object(&IMAGE),
]);
bare!(PRISMA_CLOUD, "`PrismaCloud`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&PRISMA_CLOUD_TOOL),
]);
bare!(PROWLER, "`Prowler`" + SCAN, [
    must "config": Shape::OneOf(&["default", "hipaa", "gdpr", "exclude_extras"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
]);
bare!(SECURITY, "`Security`", [
    may "baseImageConnectorRefs": TEXTS,
    may "imagePullPolicy": PULL_POLICY,
    may "outputVariables": OUTPUT_VARIABLES,
    may "privileged": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "settings": MAP,
]);
bare!(SEMGREP, "`Semgrep`" + SCAN, [
    must "config": Shape::OneOf(&[
        "default", "no-default-cli-flags", "p-default", "auto-only", "auto-and-ported-security-tools",
        "auto-and-ported-security-tools-except-p-gitleaks", "scan-third-party-dependencies",
    ]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
]);
bare!(SNYK, "`Snyk`" + SCAN, [
    must "config": Shape::OneOf(&["default", "oss", "container", "iac", "code"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "sbom": Shape::Object(&SBOM),
    may "tool": Shape::Object(&SNYK_TOOL),
]);
bare!(SONARQUBE, "`Sonarqube`" + SCAN, [
    must "config": Shape::OneOf(&["default", "branch-scan"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&SONARQUBE_TOOL),
]);
bare!(TRACEABLE, "`Traceable`" + SCAN, [
    must "config": Shape::OneOf(&["default"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&TRACEABLE_TOOL),
]);
bare!(VERACODE, "`Veracode`" + SCAN, [
    must "config": Shape::OneOf(&["default", "sandbox"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&VERACODE_TOOL),
]);
bare!(WIZ, "`Wiz`" + SCAN, [
    must "config": Shape::OneOf(&["default", "wiz-container-images", "wiz-directory", "wiz-iac-templates"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&WIZ_TOOL),
]);
bare!(ZAP, "`Zap`" + SCAN, [
    must "config": Shape::OneOf(&["default", "quick", "attack", "standard"]),
    must "mode": Shape::OneOf(&["ingestion", "orchestration", "extraction"]),
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&ZAP_TOOL),
]);

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
