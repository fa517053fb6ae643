//! AWS's managed policies, as far as they let roles be passed.

use serde_json::{Value, json};

/// ARNs of AWS's own begin so.
const PREFIX: &str = "arn:aws:iam::aws:policy/";

/// Whether a policy can be attached: AWS's own ones are all taken to be there, and nobody can create others here.
pub(super) fn is_there(arn: &str) -> bool {
    arn.strip_prefix(PREFIX)
        .is_some_and(|name| !name.is_empty())
}

/// What a policy says of `iam:PassRole` (AWS managed policy reference).
pub(super) fn document(arn: &str) -> Value {
    let name = arn.strip_prefix(PREFIX).unwrap_or_default();
    let passes_to = |service: Option<&str>| {
        let condition = match service {
            Some(service) => json!({"StringLike": {"iam:PassedToService": service}}),
            None => json!({}),
        };
        json!({"Statement": {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*", "Condition": condition}})
    };
    match name {
        "AdministratorAccess" | "IAMFullAccess" => passes_to(None),
        "AmazonECS_FullAccess" => passes_to(Some("ecs-tasks.amazonaws.com")),
        "AWSLambda_FullAccess" => passes_to(Some("lambda.amazonaws.com")),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_own_policies_are_there_and_no_others() {
        assert!(is_there(
            "arn:aws:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy"
        ));
        for none in [
            "arn:aws:iam::aws:policy/",
            "arn:aws:iam::123456789012:policy/own",
            "x",
        ] {
            assert!(!is_there(none), "{none}");
        }
    }
}
