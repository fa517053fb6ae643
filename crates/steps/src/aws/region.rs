//! Regions by their names (AWS Account Management reference guide, *Enable or disable AWS Regions*, and the guides of
//! AWS China and AWS GovCloud): a name that no region has is refused before anybody looks for its endpoints.

/// The regions of 2026.
const REGIONS: &[&str] = &[
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eusc-de-east-1",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-west-1",
    "us-west-2",
];

/// Why there is no region of this name; `None` where there is one, or where it may be newer than this version of Slipway:
/// a new number in an area and a direction that AWS has.
pub(super) fn unknown(name: &str) -> Option<String> {
    let place = |name: &str| {
        let (place, number) = name.rsplit_once('-')?;
        let numbered = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        numbered.then(|| place.to_owned())
    };
    let named = place(name);
    if named.is_some() && REGIONS.iter().any(|region| place(region) == named) {
        return None;
    }
    let distance = |region: &&&str| strsim::osa_distance(&name.to_lowercase(), region);
    let nearest = REGIONS
        .iter()
        .min_by_key(distance)
        .copied()
        .unwrap_or_default();
    Some(format!(
        "AWS has no region `{name}`; did you mean `{nearest}`?"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_region_has_are_told_with_the_nearest() {
        for (name, expected) in [
            ("eu-west-1", None),
            ("us-gov-west-1", None),
            // Perhaps of next year.
            ("eu-west-4", None),
            ("mars-1", Some("ca-west-1")),
            ("eu-west1", Some("eu-west-1")),
            ("eu-wst-1", Some("eu-west-1")),
            ("EU-WEST-1", Some("eu-west-1")),
            ("eu-west-1a", Some("eu-west-1")),
            ("us-east", Some("us-east-1")),
            ("eu-west-", Some("eu-west-1")),
        ] {
            let told = unknown(name);
            let nearest = expected
                .map(|nearest| format!("AWS has no region `{name}`; did you mean `{nearest}`?"));
            assert_eq!(told, nearest, "{name}");
        }
    }
}
