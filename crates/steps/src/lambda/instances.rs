//! Service instances of Lambda: one per version of a function that gets traffic, in a region.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_model::id::RunId;
use slipway_model::status::Failure;
use slipway_plan::ConnectorPlan;
use slipway_store::record::{DeployedRecord, InstanceRecord, ReplacedRecord};

use super::calls;
use super::function::LATEST;
use super::manifest::Documents;
use super::release::Release;
use super::site::Site;
use crate::context::{StepContext, StepServices, store_failure};
use crate::deployment::Replaced;
use crate::instances::{connector, no_connector};
use crate::secrets::Secrets;

/// Field of a record's target that holds the canary beside the version.
const BESIDE: &str = "beside";

/// Field that says that somebody else pointed the aliases to the version, [`Noted::moved`].
const MOVED: &str = "moved";

/// What was noted of a function before a deployment, for who brings it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Noted {
    version: String,
    #[serde(default)]
    sha256: Value,
    #[serde(default)]
    code: Value,
    #[serde(default)]
    beside: Vec<Beside>,
    /// Whether somebody else pointed the aliases to this version: which run and artifact it is of is not known.
    #[serde(default)]
    moved: bool,
}

impl Noted {
    /// What serves as the aliases of the manifests say, where none of them points to the version that is noted: somebody
    /// moved them since, or a deployment ended half way. The noted version is told then, too. `latest` is the version that
    /// `$LATEST` was published as, where it could be.
    pub(super) fn found_at(
        self,
        aliases: &[Value],
        latest: Option<&str>,
    ) -> (Self, Option<String>) {
        let versions = aliases
            .iter()
            .filter_map(|alias| match alias["FunctionVersion"].as_str() {
                Some(LATEST) => latest,
                version => version,
            });
        let versions: Vec<&str> = versions.collect();
        let Some(version) = versions
            .first()
            .filter(|_| !versions.contains(&self.version.as_str()))
        else {
            return (self, None);
        };
        let shares = |one: &Beside| {
            let mut weights = aliases
                .iter()
                .map(|alias| &alias["RoutingConfig"]["AdditionalVersionWeights"]);
            one.version != *version && weights.any(|weights| weights[&one.version].is_number())
        };
        let found = Self {
            version: (*version).to_owned(),
            // Where a package of this digest came from is as true of it.
            sha256: self.sha256,
            code: self.code,
            beside: self.beside.into_iter().filter(shares).collect(),
            moved: true,
        };
        (found, Some(self.version).filter(|noted| !noted.is_empty()))
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }
}

/// A version beside the one that gets most of the traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Beside {
    version: String,
    artifact: String,
    run: RunId,
}

/// What a run put there.
pub(super) struct Deployed {
    function: String,
    version: String,
    sha256: String,
    /// `Code` of the function.
    code: Value,
    artifact: String,
}

impl Deployed {
    /// By a release.
    pub(super) fn of(release: &Release) -> Self {
        Self::new(&release.documents, release.version(), &release.state.sha256)
    }

    pub(super) fn new(documents: &Documents, version: &str, sha256: &str) -> Self {
        Self {
            function: documents.short_name().to_owned(),
            version: version.to_owned(),
            sha256: sha256.to_owned(),
            code: documents.code(),
            artifact: documents.artifact.clone(),
        }
    }
}

/// What a run did to a function.
pub(super) enum Change {
    /// It deployed a version, in the place of this; `None` for the first deployment.
    Deployed(Option<ReplacedRecord>),
    /// It put a version beside the one that is there.
    Beside,
}

/// What is noted as deployed where the stage deploys to, if it is this function in this region.
async fn record(
    cx: &StepContext<'_>,
    site: &Site,
    function: &str,
) -> Result<Option<DeployedRecord>, Failure> {
    let stage = cx.stage();
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(None);
    };
    let place = (
        &service.identifier,
        &environment.identifier,
        &infrastructure.identifier,
    );
    let found = cx.store().find_deployed(&cx.plan().scope, place).await;
    let found = found.map_err(|error| store_failure("read what was deployed", &error))?;
    Ok(found.filter(|deployed| {
        deployed.target["region"] == site.aws.region && deployed.target["functionName"] == function
    }))
}

/// The version that is noted as deployed.
pub(super) async fn version(
    cx: &StepContext<'_>,
    site: &Site,
    function: &str,
) -> Result<Option<String>, Failure> {
    let deployed = record(cx, site, function).await?;
    let version = deployed.and_then(|found| found.target["version"].as_str().map(str::to_owned));
    Ok(version.filter(|version| !version.is_empty()))
}

/// What is noted of a function; `None` where Slipway has not deployed it.
pub(super) async fn noted(
    cx: &StepContext<'_>,
    site: &Site,
    function: &str,
) -> Result<Option<Noted>, Failure> {
    let deployed = record(cx, site, function).await?;
    Ok(deployed.and_then(|known| Noted::deserialize(known.target).ok()))
}

/// Where the package of this digest came from, as far as it is noted.
pub(super) async fn source(
    cx: &StepContext<'_>,
    site: &Site,
    function: &str,
    sha256: &str,
) -> Result<Option<Value>, Failure> {
    let deployed = record(cx, site, function).await?;
    let known = deployed.filter(|deployed| deployed.target["sha256"] == sha256);
    let code = known.map(|deployed| deployed.target["code"].clone());
    Ok(code.filter(|code| code["S3Bucket"].is_string()))
}

/// Notes what this run did, and what there is now. Answers with what expressions see.
pub(super) async fn note(
    cx: &mut StepContext<'_>,
    site: &Site,
    deployed: &Deployed,
    change: Change,
) -> Result<Vec<Value>, Failure> {
    let known = record(cx, site, &deployed.function).await?;
    let canary = Beside {
        version: deployed.version.clone(),
        artifact: deployed.artifact.clone(),
        run: cx.run().clone(),
    };
    let record = match (change, known) {
        (Change::Beside, Some(mut known)) if known.target["version"] != deployed.version => {
            // One of before keeps its traffic until some is shifted.
            let mut beside = beside(&known.target);
            beside.retain(|one| one.version != canary.version);
            beside.push(canary);
            known.target[BESIDE] = json!(beside);
            Some(known)
        }
        (Change::Beside, Some(known)) => Some(known),
        (Change::Beside, None) => made(cx, site, deployed, None)?,
        (Change::Deployed(before), _) => made(cx, site, deployed, before)?,
    };
    put(cx, site, record).await
}

/// The versions beside the one that gets most of the traffic.
fn beside(target: &Value) -> Vec<Beside> {
    Vec::deserialize(&target[BESIDE]).unwrap_or_default()
}

/// Notes that a version shares the traffic with the main one alone: others that did get none any more.
pub(super) async fn shares_alone(
    cx: &mut StepContext<'_>,
    site: &Site,
    (function, version): (&str, &str),
) -> Result<(), Failure> {
    let Some(mut known) = record(cx, site, function).await? else {
        return Ok(());
    };
    let all = beside(&known.target);
    let kept: Vec<&Beside> = all.iter().filter(|one| one.version == version).collect();
    if kept.len() == all.len() {
        return Ok(());
    }
    known.target[BESIDE] = json!(kept);
    put(cx, site, Some(known)).await.map(|_| ())
}

/// Notes that the deployment of the version `undone` was undone, by its own run or by a later one: what was `noted` before
/// is there again, or nothing. Earlier versions of Slipway did not write down what was noted: then it is what `back` says.
pub(super) async fn restored(
    cx: &mut StepContext<'_>,
    site: &Site,
    (back, undone): (&Deployed, Option<&str>),
    (replaced, noted): (Option<&Replaced>, Option<&Noted>),
) -> Result<(), Failure> {
    let Some(mut known) = record(cx, site, &back.function).await? else {
        return Ok(());
    };
    let moved = noted.is_some_and(|noted| noted.moved);
    let was_noted = undone.is_some_and(|undone| known.target["version"] == undone);
    let record = if was_noted {
        let before = replaced.and_then(|replaced| replaced.before.clone());
        made(cx, site, back, before)?.map(|record| DeployedRecord {
            restores: replaced.map(|replaced| replaced.run.clone()),
            artifact: replaced
                .and_then(|replaced| replaced.artifact.clone())
                .filter(|_| !moved),
            target: with(record.target, noted),
            ..record
        })
    } else {
        // A canary was only beside it.
        known.target[BESIDE] = match noted {
            Some(noted) => json!(noted.beside),
            None => json!([]),
        };
        if moved {
            known.target = with(known.target, noted);
            known.artifact = None;
        }
        Some(known)
    };
    put(cx, site, record).await.map(|_| ())
}

/// A record's target with what was noted in its place.
fn with(mut target: Value, noted: Option<&Noted>) -> Value {
    if let Some(noted) = noted {
        target["version"] = json!(noted.version);
        target["sha256"] = noted.sha256.clone();
        target["code"] = noted.code.clone();
        target[BESIDE] = json!(noted.beside);
        target[MOVED] = json!(noted.moved);
    }
    target
}

impl Deployed {
    /// What was there before a deployment that is undone.
    pub(super) fn before(
        function: &str,
        version: &str,
        (sha256, source): (&str, Option<&Value>),
    ) -> Self {
        Self {
            function: function.to_owned(),
            version: version.to_owned(),
            sha256: sha256.to_owned(),
            code: source.cloned().unwrap_or_default(),
            artifact: String::new(),
        }
    }
}

/// The record of a deployment by this run; `None` where nothing is tracked.
fn made(
    cx: &StepContext<'_>,
    site: &Site,
    deployed: &Deployed,
    before: Option<ReplacedRecord>,
) -> Result<Option<DeployedRecord>, Failure> {
    let stage = cx.stage();
    let (Some(service), Some(environment), Some(infrastructure)) =
        (&stage.service, &stage.environment, &stage.infrastructure)
    else {
        return Ok(None);
    };
    Ok(Some(DeployedRecord {
        scope: cx.plan().scope.clone(),
        service: service.identifier.clone(),
        environment: environment.identifier.clone(),
        infrastructure: infrastructure.identifier.clone(),
        deployment_type: "AwsLambda".to_owned(),
        target: json!({
            "region": site.aws.region,
            "functionName": deployed.function,
            "version": deployed.version,
            "sha256": deployed.sha256,
            "code": deployed.code,
            "connector": connector(cx, infrastructure)?,
            BESIDE: [],
        }),
        run: cx.run().clone(),
        restores: None,
        artifact: Some(deployed.artifact.clone()).filter(|artifact| !artifact.is_empty()),
        before,
        counted: None,
        uncounted: None,
    }))
}

async fn put(
    cx: &mut StepContext<'_>,
    site: &Site,
    record: Option<DeployedRecord>,
) -> Result<Vec<Value>, Failure> {
    let Some(mut record) = record else {
        return Ok(Vec::new());
    };
    let now = cx.clock().now_ms();
    let found = found(site, &record, now).await?;
    record.counted = u32::try_from(found.len()).ok().map(|count| (count, now));
    cx.deployed(&record, &found).await?;
    Ok(found.into_iter().map(|instance| instance.info).collect())
}

/// The versions of `deployed` that exist.
async fn found(
    site: &Site,
    deployed: &DeployedRecord,
    now_ms: i64,
) -> Result<Vec<InstanceRecord>, Failure> {
    let target = &deployed.target;
    let function = target["functionName"].as_str().unwrap_or_default();
    let version = target["version"].as_str().unwrap_or_default().to_owned();
    let run = Some(deployed.deployer().clone()).filter(|_| target[MOVED] != true);
    let main = (version, deployed.artifact.clone(), run);
    let beside = beside(target)
        .into_iter()
        .map(|one| (one.version, Some(one.artifact), Some(one.run)));
    let mut instances = Vec::new();
    for (version, artifact, run) in std::iter::once(main).chain(beside) {
        if version.is_empty() {
            continue;
        }
        let Some(configuration) = calls::configuration(site, function, Some(&version)).await?
        else {
            continue;
        };
        instances.push(InstanceRecord {
            scope: deployed.scope.clone(),
            service: deployed.service.clone(),
            environment: deployed.environment.clone(),
            infrastructure: deployed.infrastructure.clone(),
            key: configuration["FunctionArn"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            info: info(site, &configuration),
            artifact,
            run,
            seen_ms: now_ms,
        });
    }
    Ok(instances)
}

/// What expressions see of an instance (`deploymentInfoOutcome.serverInstanceInfoList[i]`).
fn info(site: &Site, configuration: &Value) -> Value {
    json!({
        "type": "AwsLambdaServerInstanceInfo",
        "region": site.aws.region,
        "functionName": configuration["FunctionName"],
        "functionArn": configuration["FunctionArn"],
        "version": configuration["Version"],
        "runtime": configuration["Runtime"],
        "handler": configuration["Handler"],
        "memorySize": configuration["MemorySize"],
        "packageType": configuration["PackageType"],
        "lastModified": configuration["LastModified"],
    })
}

/// Counts what there is of `deployed` now, with the credentials of its connector.
pub(crate) async fn count(
    services: &StepServices,
    deployed: &DeployedRecord,
) -> Result<Vec<InstanceRecord>, Failure> {
    let target = &deployed.target;
    let connector: ConnectorPlan = serde_json::from_value(target["connector"].clone())
        .map_err(|_| no_connector(deployed.infrastructure.as_str()))?;
    let region = target["region"].as_str().unwrap_or_default();
    let mut secrets = Secrets::new(&*services.secrets, &deployed.scope);
    let targets = &services.aws;
    let aws = targets
        .target(
            &connector,
            &connector.spec,
            &deployed.scope,
            region,
            &mut secrets,
        )
        .await?;
    let site = Site {
        aws,
        infrastructure: deployed.infrastructure.to_string(),
    };
    found(&site, deployed, services.clock.now_ms()).await
}
