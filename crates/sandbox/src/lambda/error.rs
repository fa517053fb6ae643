//! Errors in Lambda's words.

use crate::error::ApiError;

fn with(code: &'static str, status: u16, message: impl Into<String>) -> ApiError {
    ApiError {
        code,
        status,
        message: message.into(),
    }
}

/// A parameter that Lambda itself refuses.
pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    with("InvalidParameterValueException", 400, message)
}

/// A parameter that does not fit the API's model.
pub(super) fn validation(
    member: &str,
    value: impl std::fmt::Display,
    constraint: impl std::fmt::Display,
) -> ApiError {
    with(
        "ValidationException",
        400,
        format!(
            "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: {constraint}"
        ),
    )
}

/// A member that is not there and must be.
pub(super) fn missing(member: &str) -> ApiError {
    with(
        "ValidationException",
        400,
        format!(
            "1 validation error detected: Value null at '{member}' failed to satisfy constraint: Member must not be null"
        ),
    )
}

/// Nothing of that name.
pub(super) fn not_found(message: impl Into<String>) -> ApiError {
    with("ResourceNotFoundException", 404, message)
}

/// No such function or version.
pub(super) fn no_function(arn: &str) -> ApiError {
    not_found(format!("Function not found: {arn}"))
}

/// It is there already, or is being changed.
pub(super) fn conflict(message: impl Into<String>) -> ApiError {
    with("ResourceConflictException", 409, message)
}

/// Somebody else changed it meanwhile.
pub(super) fn changed(call: &str) -> ApiError {
    with(
        "PreconditionFailedException",
        412,
        format!(
            "The RevisionId provided does not match the latest RevisionId. Call the {call} API to retrieve the latest \
             RevisionId for your resource."
        ),
    )
}

/// The caller may not do that.
pub(super) fn denied(message: impl Into<String>) -> ApiError {
    with("AccessDeniedException", 403, message)
}

/// An error that all services share, as Lambda says it.
pub(crate) fn as_lambda_says(error: ApiError) -> ApiError {
    let (code, status) = match error.code {
        "ThrottlingException" => ("TooManyRequestsException", 429),
        "ServerException" => ("ServiceException", 500),
        "AccessDeniedException"
        | "ExpiredTokenException"
        | "MissingAuthenticationTokenException" => (error.code, 403),
        "InvalidParameterException" => ("InvalidParameterValueException", 400),
        code => (code, error.status),
    };
    ApiError {
        code,
        status,
        message: error.message,
    }
}
