//! AWS's errors as failures of a step: what was being done, why it failed, what to do.

use std::error::Error;
use std::fmt;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use slipway_model::status::{ErrorType, Failure};

use crate::context::patience::{Passing, met};

/// What a call was for, in words that follow "Cannot".
pub struct Doing<'a>(&'a dyn fmt::Display);

impl<'a> Doing<'a> {
    /// `doing` completes the sentence "Cannot …".
    pub fn with(doing: &'a dyn fmt::Display) -> Self {
        Self(doing)
    }
}

/// Codes that mean that nobody knows who is calling.
const AUTHENTICATION: &[&str] = &[
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IDPCommunicationError",
    "IDPRejectedClaim",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidIdentityToken",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// Codes that mean that the caller is known and may not.
const AUTHORIZATION: &[&str] = &[
    "AccessDenied",
    "AccessDeniedException",
    "NotAuthorized",
    "OptInRequired",
    "SubscriptionRequiredException",
    "UnauthorizedOperation",
];

/// Codes that mean too many calls, of the sender or at once: nothing was done.
const THROTTLED: &[&str] = &[
    "BandwidthLimitExceeded",
    "ConcurrentUpdateException",
    "EC2ThrottledException",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "ResourceContention",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Codes that mean that credentials were good and have ended.
const EXPIRED: &[&str] = &["ExpiredToken", "ExpiredTokenException", "RequestExpired"];

/// Codes that mean that AWS had an error of its own, where the HTTP status does not say so.
const OWN: &[&str] = &[
    "InternalError",
    "InternalFailure",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServerException",
    "ServiceUnavailable",
];

/// What ECS says, as a `ClientException`, of registrations of one family at the same time.
const AT_ONCE: &str = "Too many concurrent attempts";

/// HTTP statuses of errors that are not the sender's.
const PASSING_STATUSES: &[u16] = &[429, 500, 502, 503, 504];

/// Other codes, and parts of what AWS says where its code says little, with what to do.
const HINTS: &[(&str, &str)] = &[
    (
        "both a launch type and capacity provider strategy",
        " Remove `launchType` or `capacityProviderStrategy` from the definition.",
    ),
    (
        "The image id '",
        " Correct the artifact, or `ImageId` of the launch template: the image must be in this region, and belong to this \
         account or be shared with it.",
    ),
    (
        "Desired count can not be null",
        " Give the service definition a `desiredCount`.",
    ),
    (
        "Network Configuration must be provided",
        " Give the definition a `networkConfiguration` with `awsvpcConfiguration` and `subnets`.",
    ),
    (
        "validate the specified targetGroupArn",
        " Correct `targetGroupArn` of the service definition: the target group must exist, in this account and region.",
    ),
    (
        "still Draining",
        " Wait until ECS has deleted the service (INACTIVE), and run the pipeline again.",
    ),
    (
        "RuleNotFound",
        " Correct the ARN of the listener rule: it must exist, in this account and region.",
    ),
    (
        "ListenerNotFound",
        " Correct the ARN of the listener: it must exist, in this account and region.",
    ),
    (
        "TargetGroupNotFound",
        " Correct the ARN of the target group: it must exist, in this account and region.",
    ),
    (
        "does not have an associated load balancer",
        " Let a listener rule of a load balancer forward to the target group first.",
    ),
];

/// How much of an unexpected answer is told, characters.
const MOST_OF_BODY: usize = 200;

/// The AWS error code of `error`, if AWS answered with one.
pub fn code<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Option<&str> {
    error.as_service_error().and_then(|error| error.code())
}

/// `error` as the failure of a step; one that passes by itself is waited for ([`crate::advance`]).
pub fn failure<E>(doing: Doing<'_>, error: SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let passing = passing(&error);
    let failure = as_failure(doing.0, error);
    if let Some(why) = passing {
        met(why, &failure.message);
    }
    failure
}

/// Whether the same call may go through later although nobody changes anything.
pub fn is_passing<E>(error: &SdkError<E, HttpResponse>) -> bool
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    passing(error).is_some()
}

/// Why the same call may go through later.
fn passing<E>(error: &SdkError<E, HttpResponse>) -> Option<Passing>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let busy = match error {
        SdkError::ServiceError(answer) => {
            let code = answer.err().code().unwrap_or_default();
            if EXPIRED.contains(&code) {
                return Some(Passing::Expired);
            }
            let message = answer.err().message().unwrap_or_default();
            let status = answer.raw().status().as_u16();
            THROTTLED.contains(&code)
                || OWN.contains(&code)
                || PASSING_STATUSES.contains(&status)
                || message.contains(AT_ONCE)
        }
        SdkError::TimeoutError(_) => true,
        SdkError::DispatchFailure(failure) => {
            failure.is_io() || failure.is_timeout() || has_no_credentials_now(error)
        }
        _ => false,
    };
    busy.then_some(Passing::Busy)
}

/// Whether what gives credentials did not answer, or not well; where there are none at all is another matter.
fn has_no_credentials_now(error: &dyn Error) -> bool {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<CredentialsError>() {
            return matches!(
                error,
                CredentialsError::ProviderTimedOut(_) | CredentialsError::ProviderError(_)
            );
        }
        next = cause.source();
    }
    false
}

fn as_failure<E>(doing: &dyn fmt::Display, error: SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let Some(service) = error.as_service_error() else {
        return unanswered(doing, &error);
    };
    let code = service.code().unwrap_or("no code").to_owned();
    let message = match (service.message(), error.raw_response()) {
        (Some(message), _) => message.to_owned(),
        (None, Some(answer)) => answered(answer),
        (None, None) => "AWS gave no message".to_owned(),
    };
    let (kind, advice) = advice(&code, &message);
    Failure {
        error: kind,
        message: format!("Cannot {doing}: {message} ({code}).{advice}"),
        left_behind: None,
    }
}

/// An answer without an error's message, in a line: it may come from a gateway or proxy before AWS.
fn answered(answer: &HttpResponse) -> String {
    let status = answer.status();
    let body = answer.body().bytes().unwrap_or_default();
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let start: String = line.chars().take(MOST_OF_BODY).collect();
    let more = if start.len() < line.len() { "…" } else { "" };
    match start.as_str() {
        "" => format!("the answer has HTTP status {status} and no body"),
        start => format!("the answer has HTTP status {status} and reads `{start}{more}`"),
    }
}

fn advice(code: &str, message: &str) -> (ErrorType, &'static str) {
    if AUTHENTICATION.contains(&code) {
        return (
            ErrorType::Authentication,
            " AWS does not accept the connector's credentials: check its keys, \
             or renew them when they have expired; and that the account is open, has this region enabled, and is of the \
             region's partition.",
        );
    }
    if AUTHORIZATION.contains(&code) {
        return (
            ErrorType::Authorization,
            " Allow the action in the policies of the connector's role or user, service control \
             policies included.",
        );
    }
    if THROTTLED.contains(&code) {
        return (
            ErrorType::Unknown,
            " AWS still refused after all retries because of too many calls in this account and \
             region: run fewer deployments at once, or set a longer backoff in the connector.",
        );
    }
    let advice = match code {
        "ClusterNotFoundException" => {
            " Create the cluster, or correct `cluster` and `region` of the infrastructure definition."
        }
        "ServerException" | "InternalFailure" | "ServiceUnavailable" => {
            " AWS had an error of its own, also after all retries: try again."
        }
        _ => {
            let mut hints = HINTS.iter();
            let hint = hints.find(|(part, _)| code == *part || message.contains(part));
            hint.map_or("", |(_, advice)| advice)
        }
    };
    (ErrorType::Unknown, advice)
}

/// No answer that could be read: not sent, not reached, timed out, cut off.
fn unanswered<E: Error + Send + Sync + 'static>(
    doing: &dyn fmt::Display,
    error: &SdkError<E, HttpResponse>,
) -> Failure {
    let (kind, what, advice) = match error {
        SdkError::TimeoutError(_) => (
            ErrorType::Connectivity,
            "AWS did not answer in time",
            " Check the network and that the region is right.",
        ),
        SdkError::DispatchFailure(failure) if failure.is_user() || failure.is_other() => (
            ErrorType::Authentication,
            "the request could not be prepared",
            " Check the connector's credentials.",
        ),
        SdkError::DispatchFailure(_) => (
            ErrorType::Connectivity,
            "AWS cannot be reached",
            " Check the network, the region and the endpoint.",
        ),
        SdkError::ResponseError(unread) => {
            let answer = answered(unread.raw());
            let message = format!(
                "Cannot {doing}: the answer cannot be read: {}; {answer}. Whether AWS did what was asked is not known; \
                 a retry looks first.",
                causes(error)
            );
            return Failure {
                error: ErrorType::Connectivity,
                message,
                left_behind: None,
            };
        }
        _ => (
            ErrorType::Authentication,
            "the request could not be prepared",
            "",
        ),
    };
    Failure {
        error: kind,
        message: format!("Cannot {doing}: {what}: {}.{advice}", causes(error)),
        left_behind: None,
    }
}

/// The chain of causes below `error`, which itself says only "dispatch failure" or the like.
fn causes(error: &dyn Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        next = cause.source();
    }
    if texts.is_empty() {
        return error.to_string();
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::body::SdkBody;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;
    use crate::aws::query::QueryError;

    fn told(status: u16, body: &str) -> String {
        let status = status.try_into().expect("a status");
        let raw = HttpResponse::new(status, SdkBody::from(body));
        let error = QueryError::from(ErrorMetadata::builder().build());
        failure(
            Doing::with(&"look at it"),
            SdkError::service_error(error, raw),
        )
        .message
    }

    #[test]
    fn an_answer_without_a_code_is_told() {
        insta::assert_snapshot!(told(400, "{\"error\": \n \"Unsupported service\"}"), @r#"Cannot look at it: the answer has HTTP status 400 and reads `{"error": "Unsupported service"}` (no code)."#);
        insta::assert_snapshot!(told(502, ""), @"Cannot look at it: the answer has HTTP status 502 and no body (no code).");
        let long = told(503, &"é".repeat(300));
        assert!(long.contains("é…`"), "{long}");
        assert_eq!(long.matches('é').count(), MOST_OF_BODY);
    }
}
