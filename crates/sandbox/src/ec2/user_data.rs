//! User data: what an instance is told when it starts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::ApiError;

/// Most bytes, decoded (EC2 user guide, "Run commands at launch using user data").
const LONGEST: usize = 16 * 1024;

fn decode(user_data: &str) -> Option<Vec<u8>> {
    let text: String = user_data.split_ascii_whitespace().collect();
    STANDARD.decode(text).ok()
}

/// Refuses what is not base64, or more than an instance takes.
pub(super) fn check(user_data: &str) -> Result<(), ApiError> {
    let malformed = |message: &str| Err(ApiError::client("InvalidUserData.Malformed", message));
    match decode(user_data) {
        None => malformed("Invalid BASE64 encoding of user data."),
        Some(bytes) if bytes.len() > LONGEST => malformed("User data is limited to 16384 bytes"),
        Some(_) => Ok(()),
    }
}

/// The ECS cluster that the instance joins: `ECS_CLUSTER=name` of the agent's configuration (Amazon ECS developer guide,
/// "Bootstrapping Amazon ECS Linux container instances"), or `cluster` of `[settings.ecs]` on Bottlerocket.
pub(crate) fn cluster(user_data: &str) -> Option<String> {
    let bytes = decode(user_data)?;
    let text = String::from_utf8_lossy(&bytes);
    let ends = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-' || letter == '_');
    let rest = match text.split_once("ECS_CLUSTER=") {
        Some((_, rest)) => rest,
        None => {
            let (_, section) = text.split_once("[settings.ecs]")?;
            let mut lines = section.lines().map(str::trim);
            let line = lines.find(|line| line.starts_with("cluster"))?;
            line.split_once('=')?.1
        }
    };
    let rest = rest.trim_start_matches([' ', '"', '\'']);
    let name = rest.split(ends).next().unwrap_or_default();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters() {
        for (text, cluster) in [
            (
                "#!/bin/bash\necho ECS_CLUSTER=shop >> /etc/ecs/ecs.config\n",
                Some("shop"),
            ),
            ("cat <<EOF\nECS_CLUSTER='a_b-1'\nEOF", Some("a_b-1")),
            ("[settings.ecs]\ncluster = \"shop\"\n", Some("shop")),
            ("#!/bin/bash\nyum update", None),
            ("ECS_CLUSTER=", None),
        ] {
            assert_eq!(
                super::cluster(&STANDARD.encode(text)).as_deref(),
                cluster,
                "{text}"
            );
        }
        assert_eq!(super::cluster("no base64!"), None);
        assert!(check("no base64!").is_err() && check("").is_ok());
        assert!(check(&STANDARD.encode(vec![0; LONGEST + 1])).is_err());
    }
}
