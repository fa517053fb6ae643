//! Documents through the SDK, whole: the operation is the SDK's (endpoint, signature, retries, errors),
//! the body is the user's, also where the SDK does not know a field.

use std::sync::{Arc, Mutex};

use aws_sdk_ecs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::AfterDeserializationInterceptorContextRef;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;

/// Replaces the body of a request before it is signed; for `customize().mutate_request(…)`.
pub fn whole(document: &Value) -> impl Fn(&mut HttpRequest) + Send + Sync + 'static {
    let body = document.to_string();
    move |request| {
        request
            .headers_mut()
            .insert("content-length", body.len().to_string());
        *request.body_mut() = SdkBody::from(body.as_str());
    }
}

/// Keeps the body of an answer as JSON, with what the SDK's types leave out; for
/// `customize().interceptor(…)`.
#[derive(Clone, Debug, Default)]
pub struct Answer(Arc<Mutex<Value>>);

impl Answer {
    /// The answer; `Null` when there was none or it was not JSON.
    pub fn take(&self) -> Value {
        self.0.lock().map_or(Value::Null, |mut body| body.take())
    }
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for Answer {
    fn name(&self) -> &'static str {
        "SlipwayAnswer"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let bytes = context.response().body().bytes().unwrap_or_default();
        if let (Ok(mut body), Ok(answer)) = (self.0.lock(), serde_json::from_slice(bytes)) {
            *body = answer;
        }
        Ok(())
    }
}
