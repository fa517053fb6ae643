//! Software supply chain: SBOM, signatures, attestations.

use super::common::{FILE, MAP, PULL_POLICY};
use super::container::{INFRASTRUCTURE, RESOURCES};
use crate::schema::{BOOL, TEXT, TEXT_OR_TEXTS, TEXTS, TYPE, object, typed};
use crate::shape::{Field, Object, Shape, Typed};

object!(CHAIN, "a step", [
    may "imagePullPolicy": PULL_POLICY,
    may "imageTag": TEXT,
    may "overrideConnectorRef": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);

bare!(CD_SSCA_ENFORCEMENT, "`CdSscaEnforcement`", [
    must "infrastructure": Shape::Object(&INFRASTRUCTURE),
    must "policy": Shape::Object(&ENFORCEMENT_POLICY),
    must "source": Shape::Object(&SBOM_SOURCE),
    must "verifyAttestation": Shape::Object(&VERIFY_ATTESTATION),
]);
bare!(CD_SSCA_ORCHESTRATION, "`CdSscaOrchestration`", [
    must "infrastructure": Shape::Object(&INFRASTRUCTURE),
    must "source": Shape::Object(&SBOM_SOURCE),
    must "tool": Shape::Object(&SBOM_ORCHESTRATION_TOOL),
    may "attestation": Shape::Object(&ATTESTATION),
]);
bare!(DEPLOY_ATTESTATION, "`DeployAttestation`", [
    must "deployStepRef": TEXT,
    must "oidcProvider": Shape::OneOf(&["harness", "non-harness"]),
    may "resources": Shape::Object(&RESOURCES),
    may "overrideConnectorRef": TEXT,
    may "imageTag": TEXT,
    may "settings": MAP,
]);
bare!(ENFORCE_ATTESTATION, "`EnforceAttestation`" + CHAIN, [
    must "policy": Shape::Object(&POLICY),
    must "source": Shape::Object(&ENFORCE_ATTESTATION_SOURCE),
    may "verifyAttestationSignatures": BOOL,
    may "attestedEventScope": Shape::Object(&ATTESTED_EVENT_SCOPE),
]);
bare!(SLSA_VERIFICATION, "`SlsaVerification`" + CHAIN, [
    may "source": Shape::Object(&SLSA_VERIFICATION_SOURCE),
    may "verify_attestation": Shape::Object(&SLSA_VERIFY_ATTESTATION),
]);
bare!(AIBOM_ORCHESTRATION, "`SscaAibomOrchestration`" + CHAIN, [
    must "source": Shape::Object(&SSCA_AIBOM_SOURCE),
    may "format": Shape::OneOf(&["CycloneDX"]),
    may "additionalCliFlags": TEXT,
]);
bare!(ARTIFACT_SIGNING, "`SscaArtifactSigning`" + CHAIN, [
    may "source": Shape::Object(&ARTIFACT_SIGNING_SOURCE),
    may "uploadSignature": Shape::Object(&UPLOAD_SIGNATURE),
    may "signing": Shape::Object(&SIGNING_ATTESTATION),
]);
bare!(ARTIFACT_VERIFICATION, "`SscaArtifactVerification`" + CHAIN, [
    may "source": Shape::Object(&ARTIFACT_SIGNING_SOURCE),
    may "verifySign": Shape::Object(&SLSA_VERIFY_ATTESTATION),
]);
bare!(COMPLIANCE, "`SscaCompliance`" + CHAIN, [must "source": Shape::Object(&SSCA_COMPLIANCE_SOURCE)]);
bare!(ENFORCEMENT, "`SscaEnforcement`" + CHAIN, [
    must "policy": Shape::Object(&POLICY),
    must "source": Shape::Object(&SBOM_SOURCE),
    may "verifyAttestation": Shape::Object(&VERIFY_ATTESTATION),
]);
bare!(JUNIT_ATTESTATION, "`SscaJunitAttestation`" + CHAIN, [
    must "repoUrl": TEXT,
    must "branch": TEXT,
    must "junitReportPath": TEXT,
    must "oidcProvider": Shape::OneOf(&["harness", "non-harness"]),
    may "settings": MAP,
]);
bare!(ORCHESTRATION, "`SscaOrchestration`" + CHAIN, [
    must "source": Shape::Object(&SBOM_SOURCE),
    may "attestation": Shape::Object(&ATTESTATION),
    may "ingestion": Shape::Object(&FILE),
    may "mode": Shape::OneOf(&["generation", "ingestion"]),
    may "tool": Shape::Object(&SBOM_ORCHESTRATION_TOOL),
    may "sbom_drift": Shape::Object(&SBOM_DRIFT),
]);
bare!(PR_ATTESTATION, "`SscaPrAttestation`" + CHAIN, [
    must "repoUrl": TEXT,
    must "branch": TEXT,
    must "sourcePlatform": Shape::OneOf(&["GITHUB", "GITLAB", "BITBUCKET", "HARNESS"]),
    must "oidcProvider": Shape::OneOf(&["harness", "non-harness"]),
    may "connectorRef": TEXT,
    may "prNumber": TEXT,
    may "settings": MAP,
]);
bare!(PROVENANCE, "`provenance`" + CHAIN, [
    may "source": Shape::Object(&PROVENANCE_SOURCE),
    may "attestation": Shape::Object(&SIGNING_ATTESTATION),
]);

part!(ENFORCEMENT_POLICY, "`policy`", [must "store": Shape::Object(&POLICY_STORE)]);
part!(POLICY_STORE, "`store`", [must "type": TYPE], typed: typed(&[
    ("Harness", Shape::Object(&FILE)),
], &[]));
part!(SBOM_SOURCE, "`source`", [must "type": TYPE], typed: typed(&[
    ("image", Shape::Object(&IMAGE_SBOM_SOURCE)),
    ("repository", Shape::Object(&REPOSITORY_SBOM_SOURCE)),
    ("docker", Shape::Object(&IMAGE_SBOM_SOURCE)),
    ("ecr", Shape::Object(&ECR_SBOM_SOURCE)),
    ("gcr", Shape::Object(&GCR_SBOM_SOURCE)),
    ("acr", Shape::Object(&ACR_SBOM_SOURCE)),
    ("gar", Shape::Object(&GCR_SBOM_SOURCE)),
    ("har", Shape::Object(&HAR_SBOM_SOURCE)),
    ("local", Shape::Object(&LOCAL_SOURCE)),
], &[]));
part!(IMAGE_SBOM_SOURCE, "an image", [must "image": TEXT, may "connector": TEXT]);
part!(REPOSITORY_SBOM_SOURCE, "the `spec` of type `repository`", [
    must "url": TEXT,
    must "variant_type": Shape::OneOf(&["branch", "git_tag", "commit"]),
    must "variant": TEXT,
    may "path": TEXT,
    may "cloned_codebase": TEXT,
]);
part!(ECR_SBOM_SOURCE, "the `spec` of type `ecr`", [
    must "image": TEXT,
    may "connector": TEXT,
    may "region": TEXT,
    may "account": TEXT,
]);
part!(GCR_SBOM_SOURCE, "an image at Google", [
    must "connector": TEXT,
    must "host": TEXT,
    must "project_id": TEXT,
    must "image": TEXT,
]);
part!(ACR_SBOM_SOURCE, "the `spec` of type `acr`", [
    must "connector": TEXT,
    must "image": TEXT,
    may "subscription_id": TEXT,
]);
part!(HAR_SBOM_SOURCE, "the `spec` of type `har`", [must "registry": TEXT, must "image": TEXT]);
part!(LOCAL_SOURCE, "the `spec` of type `local`", [
    must "artifact_name": TEXT,
    may "workspace": TEXT,
    may "version": TEXT,
]);
part!(VERIFY_ATTESTATION, "`verifyAttestation`", [may "type": TYPE], typed: typed(&[
    ("cosign", Shape::Object(&ANY_PUBLIC_KEY)),
    ("keyless", Shape::Object(&KEYLESS)),
    ("keybased", Shape::Object(&PUBLIC_KEY)),
    ("secret-manager", Shape::Object(&MANAGED_KEY)),
], &[]));
part!(ANY_PUBLIC_KEY, "the `spec` of type `cosign`", [
    may "publicKey": TEXT,
    may "connector": TEXT,
    may "key": TEXT,
]);
part!(KEYLESS, "the `spec` of type `keyless`", [may "oidcProvider": Shape::OneOf(&["harness", "non-harness"])]);
part!(PUBLIC_KEY, "the `spec` of type `keybased`", [must "publicKey": TEXT]);
part!(MANAGED_KEY, "the `spec` of type `secret-manager`", [must "connector": TEXT, must "key": TEXT]);
part!(ATTESTATION, "`attestation`", [may "type": TYPE], typed: typed(&[
    ("cosign", Shape::Object(&ANY_PRIVATE_KEY)),
    ("keyless", Shape::Object(&KEYLESS)),
    ("keybased", Shape::Object(&PRIVATE_KEY)),
    ("secret-manager", Shape::Object(&MANAGED_KEY)),
], &[]));
part!(ANY_PRIVATE_KEY, "the `spec` of type `cosign`", [
    may "privateKey": TEXT,
    may "password": TEXT,
    may "connector": TEXT,
    may "key": TEXT,
]);
part!(PRIVATE_KEY, "the `spec` of type `keybased`", [must "privateKey": TEXT, must "password": TEXT]);
part!(SBOM_ORCHESTRATION_TOOL, "`tool`", [must "type": TYPE], typed: typed(&[
    ("Syft", Shape::Object(&SYFT_SBOM_ORCHESTRATION)),
    ("cdxgen", Shape::Object(&CDXGEN_SBOM_ORCHESTRATION)),
], &[]));
part!(SYFT_SBOM_ORCHESTRATION, "the `spec` of type `Syft`", [
    may "format": Shape::OneOf(&["spdx-json", "cyclonedx-json"]),
]);
part!(CDXGEN_SBOM_ORCHESTRATION, "the `spec` of type `cdxgen`", [
    may "format": Shape::OneOf(&["cyclonedx-json"]),
    may "cli_flags": TEXT,
]);
part!(POLICY, "`policy`", [may "store": Shape::Object(&POLICY_STORE), may "policySets": TEXTS]);
part!(ENFORCE_ATTESTATION_SOURCE, "`source`", [must "type": TYPE], typed: typed(&[
    ("image", Shape::Object(&IMAGE_SBOM_SOURCE)),
    ("docker", Shape::Object(&IMAGE_SBOM_SOURCE)),
    ("ecr", Shape::Object(&ECR_SBOM_SOURCE)),
    ("gcr", Shape::Object(&GCR_SBOM_SOURCE)),
    ("acr", Shape::Object(&ACR_SBOM_SOURCE)),
    ("gar", Shape::Object(&GCR_SBOM_SOURCE)),
    ("har", Shape::Object(&HAR_SBOM_SOURCE)),
], &[]));
part!(ATTESTED_EVENT_SCOPE, "`attestedEventScope`", [
    must "scope": TYPE,
], typed: Some(Typed { by: "scope", field: "eventTypes", shapes: &[
    ("specific", Shape::List(&Shape::OneOf(&["Code", "Test", "Build", "Security", "Custom"]))),
], names: &["all"] }));
part!(SLSA_VERIFICATION_SOURCE, "`source`", [may "type": TYPE], typed: typed(&[
    ("Docker", Shape::Object(&SLSA_DOCKER_SOURCE)),
    ("Gcr", Shape::Object(&SLSA_GCR_SOURCE)),
    ("Ecr", Shape::Object(&SLSA_ECR_SOURCE)),
    ("Acr", Shape::Object(&SLSA_ACR_SOURCE)),
    ("Gar", Shape::Object(&SLSA_GCR_SOURCE)),
    ("Har", Shape::Object(&SLSA_HAR_SOURCE)),
    ("Local", Shape::Object(&LOCAL_ARTIFACT)),
], &[]));
part!(SLSA_DOCKER_SOURCE, "the `spec` of type `Docker`", [
    must "image_path": TEXT,
    may "connector": TEXT,
    may "tag": TEXT,
]);
part!(SLSA_GCR_SOURCE, "an image at Google", [
    must "connector": TEXT,
    must "host": TEXT,
    must "project_id": TEXT,
    must "image_name": TEXT,
    may "tag": TEXT,
]);
part!(SLSA_ECR_SOURCE, "the `spec` of type `Ecr`", [
    must "image": TEXT,
    may "connector": TEXT,
    may "region": TEXT,
    may "account": TEXT,
    may "tag": TEXT,
]);
part!(SLSA_ACR_SOURCE, "the `spec` of type `Acr`", [
    must "connector": TEXT,
    must "image_path": TEXT,
    may "subscription_id": TEXT,
    may "tag": TEXT,
]);
part!(SLSA_HAR_SOURCE, "the `spec` of type `Har`", [must "registry": TEXT, must "image": TEXT, may "tag": TEXT]);
part!(LOCAL_ARTIFACT, "a local artifact", [
    must "type": Shape::OneOf(&["manual", "auto"]),
    must "workspace": TEXT,
    may "artifact_name": TEXT,
    may "version": TEXT,
]);
part!(SLSA_VERIFY_ATTESTATION, "the check of a signature", [may "type": TYPE], typed: typed(&[
    ("cosign", Shape::Object(&ANY_PUBLIC_KEY_SLSA)),
    ("keyless", Shape::Object(&KEYLESS)),
    ("keybased", Shape::Object(&PUBLIC_KEY_SLSA)),
    ("secret-manager", Shape::Object(&MANAGED_KEY)),
], &[]));
part!(ANY_PUBLIC_KEY_SLSA, "the `spec` of type `cosign`", [
    may "public_key": TEXT,
    may "connector": TEXT,
    may "key": TEXT,
]);
part!(PUBLIC_KEY_SLSA, "the `spec` of type `keybased`", [must "public_key": TEXT]);
part!(SSCA_AIBOM_SOURCE, "`source`", [must "type": TYPE], typed: typed(&[
    ("repository", Shape::Object(&REPOSITORY_SBOM_SOURCE)),
], &[]));
part!(ARTIFACT_SIGNING_SOURCE, "`source`", [may "type": TYPE], typed: typed(&[
    ("docker", Shape::Object(&DOCKER_SOURCE)),
    ("gcr", Shape::Object(&GCR_SBOM_SOURCE)),
    ("ecr", Shape::Object(&ECR_SOURCE)),
    ("acr", Shape::Object(&ACR_SBOM_SOURCE)),
    ("gar", Shape::Object(&GCR_SBOM_SOURCE)),
    ("har", Shape::Object(&HAR_SBOM_SOURCE)),
    ("local", Shape::Object(&LOCAL_ARTIFACT)),
], &[]));
part!(DOCKER_SOURCE, "the `spec` of type `docker`", [must "connector": TEXT, must "image": TEXT]);
part!(ECR_SOURCE, "the `spec` of type `ecr`", [
    must "connector": TEXT,
    must "region": TEXT,
    must "account": TEXT,
    must "image": TEXT,
]);
part!(UPLOAD_SIGNATURE, "`uploadSignature`", [may "upload": BOOL]);
part!(SIGNING_ATTESTATION, "a signature", [may "type": TYPE], typed: typed(&[
    ("cosign", Shape::Object(&ANY_SIGNING_KEY)),
    ("keyless", Shape::Object(&KEYLESS)),
    ("keybased", Shape::Object(&SIGNING_KEY)),
    ("secret-manager", Shape::Object(&MANAGED_KEY)),
], &[]));
part!(ANY_SIGNING_KEY, "the `spec` of type `cosign`", [
    may "private_key": TEXT,
    may "password": TEXT,
    may "connector": TEXT,
    may "key": TEXT,
]);
part!(SIGNING_KEY, "the `spec` of type `keybased`", [must "private_key": TEXT, must "password": TEXT]);
part!(SSCA_COMPLIANCE_SOURCE, "`source`", [must "type": TYPE], typed: typed(&[
    ("scm", Shape::Object(&REPOSITORY_SSCA_COMPLIANCE_SOURCE)),
    ("github", Shape::Object(&REPOSITORY_SSCA_COMPLIANCE_SOURCE)),
    ("harness", Shape::Object(&HARNESS_SSCA_COMPLIANCE_SOURCE)),
], &[]));
part!(REPOSITORY_SSCA_COMPLIANCE_SOURCE, "a repository", [
    must "connectorRef": TEXT,
    must "scan_org": BOOL,
    may "repoName": TEXT,
]);
part!(HARNESS_SSCA_COMPLIANCE_SOURCE, "the `spec` of type `harness`", [
    must "type": Shape::OneOf(&["pipeline"]),
    must "pipelineIds": TEXT_OR_TEXTS,
]);
part!(SBOM_DRIFT, "`sbom_drift`", [
    must "base": TYPE,
], typed: Some(Typed { by: "base", field: "spec", shapes: &[
    ("repository", Shape::Object(&REPOSITORY_SBOM_DRIFT)),
], names: &["baseline", "last_generated_sbom"] }));
part!(REPOSITORY_SBOM_DRIFT, "the `spec` of type `repository`", [
    must "variant": TEXT,
    may "variant_type": Shape::OneOf(&["branch", "git_tag", "commit"]),
]);
part!(PROVENANCE_SOURCE, "`source`", [may "type": TYPE], typed: typed(&[
    ("docker", Shape::Object(&PROVENANCE_DOCKER_SOURCE)),
    ("gcr", Shape::Object(&PROVENANCE_GCR_SOURCE)),
    ("ecr", Shape::Object(&PROVENANCE_ECR_SOURCE)),
    ("acr", Shape::Object(&PROVENANCE_ACR_SOURCE)),
    ("gar", Shape::Object(&PROVENANCE_GCR_SOURCE)),
    ("har", Shape::Object(&PROVENANCE_HAR_SOURCE)),
    ("local", Shape::Object(&LOCAL_ARTIFACT)),
], &[]));
part!(PROVENANCE_DOCKER_SOURCE, "the `spec` of type `docker`", [
    must "connector": TEXT,
    must "repo": TEXT,
    may "digest": TEXT,
]);
part!(PROVENANCE_GCR_SOURCE, "an image at Google", [
    must "connector": TEXT,
    must "host": TEXT,
    must "projectID": TEXT,
    must "imageName": TEXT,
    may "digest": TEXT,
]);
part!(PROVENANCE_ECR_SOURCE, "the `spec` of type `ecr`", [
    must "connector": TEXT,
    must "image": TEXT,
    may "region": TEXT,
    may "account": TEXT,
    may "digest": TEXT,
]);
part!(PROVENANCE_ACR_SOURCE, "the `spec` of type `acr`", [
    must "connector": TEXT,
    must "repository": TEXT,
    may "subscriptionId": TEXT,
    may "digest": TEXT,
]);
part!(PROVENANCE_HAR_SOURCE, "the `spec` of type `har`", [
    must "registry": TEXT,
    must "image": TEXT,
    may "digest": TEXT,
]);
