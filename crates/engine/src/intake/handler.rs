//! Has an accepted event handled, or a webhook registered, at once, by the function `trigger`.

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use serde_json::{Value, json};
use slipway_store::TriggerPlace;

/// How the function that handles events is invoked.
#[derive(Clone, Debug)]
pub struct Handler {
    /// Invokes functions.
    pub lambda: aws_sdk_lambda::Client,
    /// The function `trigger`.
    pub function: String,
}

impl Handler {
    /// Has an event handled, without waiting for it. Where that fails, the sweep of the next minute does it.
    pub async fn wake(&self, event: &str) {
        self.invoke(&json!({"event": event})).await;
    }

    /// Has the triggers decide anew that refused an event, as it came again. Where that fails, whoever sends it may send it
    /// once more.
    pub async fn ask_again(&self, event: &str) {
        self.invoke(&json!({"event": event, "again": true})).await;
    }

    /// Has the webhook of a trigger registered at its provider, without waiting for it. Where that fails, the sweep of the
    /// next minute does it.
    pub async fn register(&self, place: &TriggerPlace) {
        self.invoke(&json!({"hook": place})).await;
    }

    async fn invoke(&self, asked: &Value) {
        let invoke = self.lambda.invoke().function_name(&self.function);
        let invoke = invoke
            .invocation_type(InvocationType::Event)
            .payload(Blob::new(asked.to_string()));
        if let Err(why) = invoke.send().await {
            let why = aws_sdk_lambda::error::DisplayErrorContext(why);
            tracing::warn!(event = %asked, error = %why, "it waits for the next sweep");
        }
    }
}
