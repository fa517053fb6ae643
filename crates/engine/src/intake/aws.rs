//! Events of AWS that EventBridge brings: a push to CodeCommit is a happening like a webhook; a new image or object has the
//! feeds asked at once that watch its repository or bucket, instead of at their next time.
//!
//! Such an event is not believed further than that: what is new is what the registry says to the login of the feed's own
//! connector, so that an event from elsewhere starts nothing, and what polling sees as well starts nothing twice. Events say
//! nothing of accounts of Slipway, so that triggers are listed by what they listen to over all accounts.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_model::id::AccountId;
use slipway_store::Accept;
use slipway_trigger::webhook::{Heard, read_event_bridge};
use slipway_trigger::{FeedSpec, Provider, Source, Trigger};

use super::handle::{Starting, handle_by_id};
use super::listen::{feed_of, find_trigger, read_trigger};
use super::poll::{Polled, hurry};
use super::{Happening, OLDEST_MS, Offer, accept};
use crate::error::{Doing, RunError};
use crate::error_name::ErrorName;

/// What pushes to CodeCommit are listed under.
const CODE_COMMIT: &str = "aws/codecommit";

/// The file of a bucket of charts that changes with each new version.
const INDEX: &str = "index.yaml";

/// What a trigger is listed under for events of AWS; `None` where none are for it.
pub(super) fn source_of(trigger: &Trigger) -> Option<String> {
    match &trigger.source {
        Source::Webhook(spec) if spec.provider == Provider::AwsCodeCommit => {
            Some(CODE_COMMIT.to_owned())
        }
        Source::Artifact(spec) | Source::Manifest(spec) => of_feed(spec),
        _ => None,
    }
}

fn of_feed(spec: &FeedSpec) -> Option<String> {
    let text = |value: &Value| {
        let text = value.as_str().map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match spec.kind.as_str() {
        "Ecr" => {
            let [region, image] = ["region", "imagePath"].map(|field| text(&spec.spec[field]));
            Some(of_images(&region?, &image?))
        }
        "AmazonS3" => Some(of_bucket(&text(&spec.spec["bucketName"])?)),
        "HelmChart" if spec.spec["store"]["type"] == "S3" => {
            Some(of_bucket(&text(&spec.spec["store"]["spec"]["bucketName"])?))
        }
        _ => None,
    }
}

fn of_images(region: &str, repository: &str) -> String {
    format!("aws/ecr/{region}/{repository}")
}

/// Names of buckets are unlike in all accounts and regions.
fn of_bucket(bucket: &str) -> String {
    format!("aws/s3/{bucket}")
}

/// Something that a registry of an account of AWS has new.
struct News<'e> {
    source: String,
    /// The account of AWS.
    account: &'e str,
    /// The object, of a bucket.
    key: Option<&'e str>,
    happened_ms: i64,
}

/// Hears events, several of which may be about one feed.
pub struct Hearing<'a> {
    on: Starting<'a>,
    /// The feeds that were asked, by their keys.
    asked: BTreeSet<String>,
}

impl<'a> Hearing<'a> {
    /// Hears nothing yet.
    pub fn new(on: Starting<'a>) -> Self {
        Self {
            on,
            asked: BTreeSet::new(),
        }
    }

    /// Handles an event of EventBridge: what was done, for people. Repeating it does no harm.
    ///
    /// # Errors
    /// When the event cannot be read, or the store or Step Functions cannot be reached.
    pub async fn hear(&mut self, event: &Value) -> Result<String, RunError> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        let what = (text("/source"), text("/detail-type"));
        let (source, key) = match what {
            (Some("aws.codecommit"), _) => return self.pushed(event).await,
            (Some("aws.ecr"), Some("ECR Image Action")) => {
                let pushed = text("/detail/action-type") == Some("PUSH")
                    && text("/detail/result") == Some("SUCCESS");
                if !pushed {
                    return Ok("no image was pushed".to_owned());
                }
                let repository = must(event, "/detail/repository-name")?;
                (of_images(must(event, "/region")?, repository), None)
            }
            (Some("aws.s3"), Some("Object Created")) => {
                let key = must(event, "/detail/object/key")?;
                (of_bucket(must(event, "/detail/bucket/name")?), Some(key))
            }
            _ => return Ok("nothing listens to such events".to_owned()),
        };
        let news = News {
            source,
            account: must(event, "/account")?,
            key,
            happened_ms: time(event)?,
        };
        self.asks(&news).await
    }

    /// Asks the feeds in which there is something new.
    async fn asks(&mut self, news: &News<'_>) -> Result<String, RunError> {
        let runs = self.on.runs;
        let listed = runs.store.listeners_everywhere(&news.source).await;
        let listed = listed.doing(|| format!("list the triggers on {}", news.source))?;
        let mut polled = Polled::default();
        for place in listed {
            let Some(record) = find_trigger(runs, &place).await? else {
                continue;
            };
            let Ok(trigger) = read_trigger(&record) else {
                continue;
            };
            let Some((spec, feed)) = feed_of(&trigger, &place.scope) else {
                continue;
            };
            let is_its = trigger.enabled
                && source_of(&trigger).as_ref() == Some(&news.source)
                && is_about(spec, news);
            if !is_its || !self.asked.insert(feed.key()) {
                continue;
            }
            hurry(self.on, &place.scope, &feed, news.happened_ms, &mut polled).await?;
        }
        let Polled { asked, new, .. } = polled;
        tracing::info!(
            source = news.source,
            asked,
            new,
            "feeds were asked for an event of AWS"
        );
        Ok(format!("{asked} feeds were asked, {new} versions are new"))
    }

    /// A push to CodeCommit, for each account that has a trigger on any.
    async fn pushed(&self, event: &Value) -> Result<String, RunError> {
        let runs = self.on.runs;
        let heard = read_event_bridge(event).map_err(unreadable)?;
        if let Heard::Ignored(why) = heard {
            return Ok(why);
        }
        let listed = runs.store.listeners_everywhere(CODE_COMMIT).await;
        let listed = listed.doing(|| "list the triggers on CodeCommit".to_owned())?;
        let accounts: BTreeSet<AccountId> = listed
            .into_iter()
            .map(|place| place.scope.account)
            .collect();
        let body = event.to_string().into_bytes();
        let mut started = 0;
        for event in heard.events() {
            let now_ms = runs.clock.now_ms();
            let is_old = |at_ms| now_ms.saturating_sub(at_ms) > OLDEST_MS;
            if event.happened_ms.is_some_and(is_old) {
                return Ok("it happened more than 90 days ago".to_owned());
            }
            for account in &accounts {
                let delivery = event.delivery.as_ref();
                let offer = Offer {
                    account: account.clone(),
                    delivery: delivery.map(|id| format!("{CODE_COMMIT}:{id}")),
                    body: body.clone(),
                    happening: Happening::Webhook {
                        event: Box::new(event.clone()),
                        to: None,
                        within: None,
                        signed: Vec::new(),
                        by_hand: false,
                    },
                };
                let (record, accepted) = accept(runs, offer).await?;
                // Known ones too: whoever accepted it may have died before it was handled.
                let id = match accepted {
                    Accept::New => record.id,
                    Accept::Known(id) | Accept::Altered(id) => id,
                };
                let outcomes = Box::pin(handle_by_id(self.on, &id)).await?;
                started += outcomes.iter().filter(|it| it.run.is_some()).count();
            }
        }
        Ok(format!("{started} runs"))
    }
}

/// Whether a feed is about what is new.
fn is_about(spec: &FeedSpec, news: &News<'_>) -> bool {
    let registry = spec.spec["registryId"].as_str().unwrap_or_default().trim();
    let chart_only = spec.kind == "HelmChart";
    let is_index = news.key.is_some_and(|key| key.ends_with(INDEX));
    (registry.is_empty() || registry == news.account) && (!chart_only || is_index)
}

fn must<'e>(event: &'e Value, path: &str) -> Result<&'e str, RunError> {
    let found = event.pointer(path).and_then(Value::as_str);
    let found = found.filter(|text| !text.is_empty());
    found.ok_or_else(|| unreadable(format!("`{}` is missing", path.replace('/', "."))))
}

fn time(event: &Value) -> Result<i64, RunError> {
    let text = must(event, "/time")?;
    let time: Result<jiff::Timestamp, _> = text.parse();
    let time = time.map_err(|why| unreadable(format!("its `time` cannot be read: {why}")))?;
    Ok(time.as_millisecond())
}

fn unreadable(why: String) -> RunError {
    let message = format!("an event of EventBridge is not as AWS documents it: {why}");
    RunError::refused(ErrorName::InvalidRequest, message)
}
