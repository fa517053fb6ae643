//! What a client of a service in this process leaves out of its requests: nobody reads there who asks, how often, and
//! with which clock, and telling it is work at every call.

use aws_runtime::invocation_id::InvocationIdInterceptor;
use aws_runtime::request_info::RequestInfoInterceptor;
use aws_runtime::service_clock_skew::ServiceClockSkewInterceptor;
use aws_runtime::user_agent::UserAgentInterceptor;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::BeforeSerializationInterceptorContextRef;
use aws_smithy_runtime_api::client::interceptors::{
    Intercept, OverriddenHooks, SharedInterceptor, disable_interceptor,
};
use aws_smithy_types::config_bag::ConfigBag;

/// Why.
const NOBODY_READS: &str = "the service is in this process";

/// For `interceptor` of an SDK's configuration: the client sends no `user-agent`, `amz-sdk-invocation-id` and
/// `amz-sdk-request`, and does not compare clocks.
pub fn loopback() -> SharedInterceptor {
    SharedInterceptor::permanent(Loopback)
}

#[derive(Debug)]
struct Loopback;

impl Intercept for Loopback {
    fn name(&self) -> &'static str {
        "Loopback"
    }

    fn overridden_hooks(&self) -> OverriddenHooks {
        OverriddenHooks::READ_BEFORE_EXECUTION
    }

    fn read_before_execution(
        &self,
        _context: &BeforeSerializationInterceptorContextRef<'_>,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let state = cfg.interceptor_state();
        state.store_put(disable_interceptor::<UserAgentInterceptor>(NOBODY_READS));
        state.store_put(disable_interceptor::<InvocationIdInterceptor>(NOBODY_READS));
        state.store_put(disable_interceptor::<RequestInfoInterceptor>(NOBODY_READS));
        state.store_put(disable_interceptor::<ServiceClockSkewInterceptor>(
            NOBODY_READS,
        ));
        Ok(())
    }
}
