//! Builds: runs, tests, images, uploads.

use super::common::{INT, MAP, OUTPUT_ALIAS, OUTPUT_VARIABLES, REPORTS, SHELL, TEXT_MAP};
use super::container::{CONTAINER, RESOURCES};
use crate::schema::{BOOL, TEXT, TEXT_OR_TEXTS, TEXTS, TYPE, object, typed};
use crate::shape::{Field, Object, Shape};

object!(IMAGE, "a step", [
    may "baseImageConnectorRefs": TEXT_OR_TEXTS,
    may "buildArgs": TEXT_MAP,
    may "connectorRef": TEXT,
    may "context": TEXT,
    may "dockerfile": TEXT,
    may "envDockerSecrets": TEXT_MAP,
    may "envVariables": TEXT_MAP,
    may "fileDockerSecrets": TEXT_MAP,
    may "labels": TEXT_MAP,
    may "optimize": BOOL,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "tags": TEXT_OR_TEXTS,
    may "target": TEXT,
]);

bare!(ACTION, "`Action` or `Bitrise`", [must "uses": TEXT, may "env": TEXT_MAP, may "with": TEXT_MAP]);
bare!(ARTIFACTORY_UPLOAD, "`ArtifactoryUpload`", [
    must "connectorRef": TEXT,
    must "sourcePath": TEXT,
    must "target": TEXT,
    may "baseImageConnectorRefs": TEXTS,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "uploadAsFlat": BOOL,
]);
bare!(BACKGROUND, "`Background`" + CONTAINER, [
    may "command": TEXT,
    may "entrypoint": TEXT_OR_TEXTS,
    may "envVariables": TEXT_MAP,
    may "portBindings": TEXT_MAP,
    may "reports": Shape::Object(&REPORTS),
    may "shell": SHELL,
]);
bare!(BUILD_AND_PUSH_ACR, "`BuildAndPushACR`" + IMAGE, [
    must "connectorRef": TEXT,
    must "repository": TEXT,
    must "tags": TEXT_OR_TEXTS,
    may "remoteCacheImage": TEXT,
    may "subscriptionId": TEXT,
]);
bare!(BUILD_AND_PUSH_DOCKER_REGISTRY, "`BuildAndPushDockerRegistry`" + IMAGE, [
    may "cacheFrom": TEXT_OR_TEXTS,
    may "cacheTo": TEXT,
    may "caching": BOOL,
    may "remoteCacheRepo": TEXT,
    may "repo": TEXT,
    may "registryRef": TEXT,
]);
bare!(BUILD_AND_PUSH_ECR, "`BuildAndPushECR`" + IMAGE, [
    must "account": TEXT,
    must "connectorRef": TEXT,
    must "imageName": TEXT,
    must "region": TEXT,
    must "tags": TEXT_OR_TEXTS,
    may "cacheFrom": TEXT_OR_TEXTS,
    may "cacheTo": TEXT,
    may "caching": BOOL,
    may "remoteCacheImage": TEXT,
]);
bare!(BUILD_AND_PUSH_GOOGLE, "`BuildAndPushGAR` or `BuildAndPushGCR`" + IMAGE, [
    must "connectorRef": TEXT,
    must "host": TEXT,
    must "imageName": TEXT,
    must "projectID": TEXT,
    must "tags": TEXT_OR_TEXTS,
    may "cacheFrom": TEXT_OR_TEXTS,
    may "cacheTo": TEXT,
    may "caching": BOOL,
    may "remoteCacheImage": TEXT,
]);
step!(DOWNLOAD_AWS_S3, "`DownloadAwsS3`", [
    may "connectorRef": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "downloadPath": TEXT,
    may "bucketName": TEXT,
    may "region": TEXT,
    may "paths": TEXTS,
    may "outputFilePathsContent": TEXTS,
    may "privileged": BOOL,
]);
step!(DOWNLOAD_GCS, "`DownloadGcs`", [
    may "connectorRef": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "downloadPath": TEXT,
    may "bucketName": TEXT,
    may "filePath": TEXT,
    may "outputFilePathsContent": TEXTS,
    may "privileged": BOOL,
]);
step!(DOWNLOAD_HARNESS_STORE, "`DownloadHarnessStore`", [
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "downloadPath": TEXT,
    may "files": TEXTS,
    may "outputFilePathsContent": TEXTS,
    may "privileged": BOOL,
]);
bare!(GCS_UPLOAD, "`GCSUpload`", [
    must "bucket": TEXT,
    must "connectorRef": TEXT,
    must "sourcePath": TEXT,
    may "baseImageConnectorRefs": TEXTS,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "target": TEXT,
]);
bare!(GIT_CLONE, "`GitClone`", [
    must "build": Shape::Object(&BUILD),
    may "baseImageConnectorRefs": TEXTS,
    may "cloneDirectory": TEXT,
    may "connectorRef": TEXT,
    may "depth": INT,
    may "outputFilePathsContent": TEXTS,
    may "projectName": TEXT,
    may "repoName": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "sslVerify": BOOL,
    may "lfs": BOOL,
    may "debug": BOOL,
    may "fetchTags": BOOL,
    may "sparseCheckout": TEXTS,
    may "submoduleStrategy": Shape::OneOf(&["true", "false", "recursive"]),
    may "preFetchCommand": TEXT,
    may "privileged": BOOL,
]);
bare!(HAR_UPLOAD, "`HarUpload`", [
    must "registryRef": TEXT,
    must "sourcePath": TEXT,
    must "packageType": Shape::OneOf(&[
        "CARGO", "GENERIC", "GO", "MAVEN", "NPM", "NUGET", "PYTHON", "RPM", "DART", "CONDA", "COMPOSER",
        "HUGGINGFACE",
    ]),
    may "baseImageConnectorRefs": TEXTS,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "target": TEXT,
    may "packageName": TEXT,
    may "packageVersion": TEXT,
    may "settings": TEXT_MAP,
]);
bare!(PLUGIN, "`Plugin`" + CONTAINER, [
    may "registryRef": TEXT,
    may "entrypoint": TEXT_OR_TEXTS,
    may "envVariables": TEXT_MAP,
    may "reports": Shape::Object(&REPORTS),
    may "settings": MAP,
    may "uses": TEXT,
]);
bare!(RUN, "`Run`" + CONTAINER, [
    may "command": TEXT,
    may "registryRef": TEXT,
    may "envVariables": TEXT_MAP,
    may "outputVariables": OUTPUT_VARIABLES,
    may "reports": Shape::Object(&REPORTS),
    may "shell": SHELL,
    may "outputAlias": Shape::Object(&OUTPUT_ALIAS),
]);
bare!(RUN_TESTS, "`RunTests`" + CONTAINER, [
    must "buildTool": Shape::OneOf(&[
        "Maven", "Bazel", "Gradle", "Dotnet", "Nunitconsole", "SBT", "Pytest", "Unittest", "Rspec",
    ]),
    must "language": Shape::OneOf(&["Java", "Kotlin", "Scala", "Csharp", "Python", "Ruby"]),
    may "args": TEXT,
    may "buildEnvironment": Shape::OneOf(&["Core", "Framework"]),
    may "enableTestSplitting": BOOL,
    may "envVariables": TEXT_MAP,
    may "frameworkVersion": Shape::OneOf(&["5.0", "6.0"]),
    may "namespaces": TEXT,
    may "outputVariables": OUTPUT_VARIABLES,
    may "packages": TEXT,
    may "postCommand": TEXT,
    may "preCommand": TEXT,
    may "pythonVersion": Shape::OneOf(&["3", "2"]),
    may "reports": Shape::Object(&REPORTS),
    may "runOnlySelectedTests": BOOL,
    may "shell": SHELL,
    may "testAnnotations": TEXT,
    may "testGlobs": TEXT,
    may "testRoot": TEXT,
    may "testSplitStrategy": Shape::OneOf(&["ClassTiming", "TestCount"]),
]);
bare!(S3_UPLOAD, "`S3Upload`", [
    must "bucket": TEXT,
    must "connectorRef": TEXT,
    must "region": TEXT,
    must "sourcePath": TEXT,
    may "baseImageConnectorRefs": TEXTS,
    may "endpoint": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "runAsUser": INT,
    may "stripPrefix": TEXT,
    may "target": TEXT,
]);
bare!(TEST, "`Test`" + CONTAINER, [
    may "command": TEXT,
    may "envVariables": TEXT_MAP,
    may "outputVariables": OUTPUT_VARIABLES,
    may "reports": Shape::Object(&REPORTS),
    may "shell": SHELL,
    may "intelligenceMode": BOOL,
    may "globs": TEXT_OR_TEXTS,
    may "splitStrategy": TEXT,
    may "parallelism": INT,
    may "outputAlias": Shape::Object(&OUTPUT_ALIAS),
]);

part!(BUILD, "`build`", [must "type": TYPE], typed: typed(&[
    ("PR", Shape::Object(&PR_BUILD)),
    ("branch", Shape::Object(&BRANCH_BUILD)),
    ("commitSha", Shape::Object(&COMMIT_SHA_BUILD)),
    ("tag", Shape::Object(&TAG_BUILD)),
], &[]));
part!(PR_BUILD, "the `spec` of type `PR`", [must "number": TEXT]);
part!(BRANCH_BUILD, "the `spec` of type `branch`", [must "branch": TEXT]);
part!(COMMIT_SHA_BUILD, "the `spec` of type `commitSha`", [must "commitSha": TEXT]);
part!(TAG_BUILD, "the `spec` of type `tag`", [must "tag": TEXT]);
