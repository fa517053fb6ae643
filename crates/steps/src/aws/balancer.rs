//! What steps of every swimlane know of Elastic Load Balancing.

use aws_sdk_elasticloadbalancingv2::types::Action;

/// To be sent with actions that AWS told: it never tells the secret of an identity provider's client, and asks for this
/// word instead (ELBv2 API reference, `AuthenticateOidcActionConfig`).
pub(crate) fn keep_client_secrets(actions: &mut [Action]) {
    let providers = actions
        .iter_mut()
        .filter_map(|action| action.authenticate_oidc_config.as_mut());
    for provider in providers {
        provider.use_existing_client_secret = Some(true);
    }
}
