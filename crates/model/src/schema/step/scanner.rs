//! Security scanners.

use super::common::{FILE, INT, MAP, OUTPUT_VARIABLES, PULL_POLICY};
use super::container::RESOURCES;
use super::scan_parts::{
    ADVANCED, ANCHORE_TOOL, AUTH, BLACKDUCK_TOOL, BURP_TOOL, CHECKMARX_TOOL, CORTEX_CLOUD_TOOL,
    FOD_TOOL, FOSSA_TOOL, IMAGE, INSTANCE, MEND_TOOL, MYTHOS_AGENT_TOOL, NEXUS_IQ_TOOL,
    PRISMA_CLOUD_TOOL, REPOSITORY, SBOM, SHIFT_LEFT_TOOL, SNYK_TOOL, SONARQUBE_TOOL, TARGET,
    TRACEABLE_TOOL, VERACODE_TOOL, WIZ_TOOL, ZAP_TOOL,
};
use crate::schema::{BOOL, TEXT, TEXTS, object};
use crate::shape::{Field, Object, Shape};

const DEFAULT: Shape = Shape::OneOf(&["default"]);
const MODE: Shape = Shape::OneOf(&["ingestion", "orchestration", "extraction"]);
const NO_EXTRACTION: Shape = Shape::OneOf(&["ingestion", "orchestration"]);

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
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
]);
bare!(AWS_SECURITY_HUB, "`AWSSecurityHub`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
]);
bare!(ANCHORE, "`Anchore`" + SCAN, [
    must "config": Shape::OneOf(&["default", "all", "non-os", "os"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&ANCHORE_TOOL),
]);
bare!(AQUA_SECURITY, "`AquaSecurity`" + SCAN, [
    must "config": Shape::OneOf(&["default", "self-hosted"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
]);
bare!(AQUA_TRIVY, "`AquaTrivy`" + SCAN, [
    must "config": Shape::OneOf(&["default", "fs", "sbom"]),
    must "mode": MODE,
    may "image": Shape::Object(&IMAGE),
    may "repository": Shape::Object(&REPOSITORY),
    may "sbom": Shape::Object(&SBOM),
]);
bare!(PLAIN_SCAN, "this step" + SCAN, [must "config": DEFAULT, must "mode": MODE]);
bare!(BLACK_DUCK, "`BlackDuck`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
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
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&BURP_TOOL),
]);
bare!(CHECKMARX, "`Checkmarx`" + SCAN, [
    must "config": Shape::OneOf(&["default", "cxsast", "cxsca", "cxosa"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&CHECKMARX_TOOL),
]);
bare!(CHECKMARX_ONE, "`CheckmarxOne`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&CHECKMARX_TOOL),
]);
bare!(SOURCE_SCAN, "`Checkov` or `ModelScan`" + SCAN, [must "config": DEFAULT, must "mode": NO_EXTRACTION]);
bare!(CORTEX_CLOUD, "`CortexCloud`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&CORTEX_CLOUD_TOOL),
]);
bare!(CUSTOM_INGEST, "`CustomIngest`" + SCAN, [
    must "config": Shape::OneOf(&["default", "sarif"]),
    must "mode": MODE,
]);
bare!(IMAGE_SCAN, "`DockerContentTrust` or `Grype`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "image": Shape::Object(&IMAGE),
]);
bare!(FORTIFY_ON_DEMAND, "`FortifyOnDemand`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&FOD_TOOL),
]);
bare!(FOSSA, "`Fossa`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&FOSSA_TOOL),
]);
bare!(GIT_HUB_ADVANCED_SECURITY, "`GitHubAdvancedSecurity`" + SCAN, [
    must "config": Shape::OneOf(&["default", "codeql", "dependabot", "secret"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
]);
bare!(HARNESS_SAST, "`HarnessSAST`" + SCAN, [
    must "config": Shape::OneOf(&["default", "sast", "sca", "sast_sca"]),
    must "mode": MODE,
    may "tool": Shape::Object(&SHIFT_LEFT_TOOL),
]);
bare!(CODE_SCAN, "`HarnessSCA` or `ShiftLeft`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
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
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&MEND_TOOL),
]);
bare!(METASPLOIT, "`Metasploit`" + SCAN, [
    must "config": Shape::OneOf(&["default", "metasploit-weak-ssh", "metasploit-openssl-heartbleed"]),
    must "mode": MODE,
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(MYTHOS_AGENT, "`MythosAgent`" + SCAN, [
    must "config": Shape::OneOf(&["hunt_full", "hunt_incremental", "scan"]),
    must "mode": NO_EXTRACTION,
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&MYTHOS_AGENT_TOOL),
]);
bare!(INSTANCE_SCAN, "`Nessus`, `Nikto` or `Tenable`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(NEXUS_IQ, "`NexusIQ`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&NEXUS_IQ_TOOL),
]);
bare!(NMAP, "`Nmap`" + SCAN, [
    must "config": Shape::OneOf(&[
        "default", "firewall-bypass", "unusual-port", "smb-security-mode", "vuln", "exploit",
        "no-default-cli-flags",
    ]),
    must "mode": MODE,
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(OPEN_AI, "`OpenAi`" + SCAN, [
    must "config": Shape::OneOf(&["default", "full", "incremental"]),
    must "mode": NO_EXTRACTION,
    may "auth": Shape::Object(&AUTH),
]);
bare!(OPENVAS, "`Openvas`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "instance": Shape::Object(&INSTANCE),
]);
bare!(OSV_SCANNER, "`OsvScanner`" + SCAN, [
    must "config": DEFAULT,
    must "mode": NO_EXTRACTION,
    may "image": Shape::Object(&IMAGE),
]);
bare!(PRISMA_CLOUD, "`PrismaCloud`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&PRISMA_CLOUD_TOOL),
]);
bare!(PROWLER, "`Prowler`" + SCAN, [
    must "config": Shape::OneOf(&["default", "hipaa", "gdpr", "exclude_extras"]),
    must "mode": MODE,
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
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
]);
bare!(SNYK, "`Snyk`" + SCAN, [
    must "config": Shape::OneOf(&["default", "oss", "container", "iac", "code"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "sbom": Shape::Object(&SBOM),
    may "tool": Shape::Object(&SNYK_TOOL),
]);
bare!(SONARQUBE, "`Sonarqube`" + SCAN, [
    must "config": Shape::OneOf(&["default", "branch-scan"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&SONARQUBE_TOOL),
]);
bare!(TRACEABLE, "`Traceable`" + SCAN, [
    must "config": DEFAULT,
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&TRACEABLE_TOOL),
]);
bare!(VERACODE, "`Veracode`" + SCAN, [
    must "config": Shape::OneOf(&["default", "sandbox"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "tool": Shape::Object(&VERACODE_TOOL),
]);
bare!(WIZ, "`Wiz`" + SCAN, [
    must "config": Shape::OneOf(&["default", "wiz-container-images", "wiz-directory", "wiz-iac-templates"]),
    must "mode": MODE,
    may "auth": Shape::Object(&AUTH),
    may "image": Shape::Object(&IMAGE),
    may "tool": Shape::Object(&WIZ_TOOL),
]);
bare!(ZAP, "`Zap`" + SCAN, [
    must "config": Shape::OneOf(&["default", "quick", "attack", "standard"]),
    must "mode": MODE,
    may "instance": Shape::Object(&INSTANCE),
    may "tool": Shape::Object(&ZAP_TOOL),
]);
