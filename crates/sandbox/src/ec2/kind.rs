//! Instance types, by the way their names are made (EC2 user guide, instance type naming conventions): series, generation,
//! attributes, and size. New types that follow it are taken, also those that are not there yet.

/// Series of instance families.
const SERIES: &[&str] = &[
    "a", "c", "cc", "cr", "d", "dl", "f", "g", "gr", "h", "hpc", "hs", "i", "im", "inf", "is", "m",
    "mac", "p", "r", "t", "trn", "u", "vt", "x", "z",
];
/// Sizes without a number.
const SIZES: &[&str] = &[
    "nano", "micro", "small", "medium", "large", "xlarge", "metal",
];
/// Endings of families behind a hyphen.
const ENDINGS: &[&str] = &["flex", "ultra", "b", "gb"];

/// Whether a name is one of an instance type, as `c7gn.2xlarge` and `u-6tb1.metal` are.
pub(crate) fn is_type(name: &str) -> bool {
    name.split_once('.')
        .is_some_and(|(family, size)| is_family(family) && is_size(size))
}

fn is_family(family: &str) -> bool {
    let (first, ending) = match family.split_once('-') {
        Some((first, ending)) => (first, Some(ending)),
        None => (family, None),
    };
    if ending.is_some_and(|ending| !is_ending(ending)) {
        return false;
    }
    let digit = first.find(|letter: char| letter.is_ascii_digit());
    let (series, rest) = first.split_at(digit.unwrap_or(first.len()));
    // `u-6tb1` says how much memory it has in the place of a generation.
    let generation = digit.is_some() || ending.is_some_and(|_| series == "u");
    let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let attributes = rest
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    SERIES.contains(&series) && generation && attributes && rest.len() <= 4
}

fn is_ending(ending: &str) -> bool {
    let memory = ending.split_once("tb");
    let memory = memory.is_some_and(|(size, version)| {
        is_number(size) && (version.is_empty() || is_number(version))
    });
    // `mac2-m2pro`
    let chip = ending.starts_with('m') && ending.len() <= 8 && ending.is_ascii();
    memory || chip || ENDINGS.contains(&ending)
}

fn is_size(size: &str) -> bool {
    let times = |size: &str| size.strip_suffix("xlarge").is_some_and(is_number);
    SIZES.contains(&size) || times(size) || size.strip_prefix("metal-").is_some_and(is_metal)
}

/// `24xl` of `metal-24xl`.
fn is_metal(size: &str) -> bool {
    size.strip_suffix("xl").is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_convention() {
        for name in [
            "t3.micro",
            "m5.large",
            "m1.small",
            "c7gn.2xlarge",
            "c7i-flex.large",
            "m7i.metal-24xl",
            "u-6tb1.metal",
            "u7i-12tb.224xlarge",
            "mac2-m2pro.metal",
            "trn1n.32xlarge",
            "x2iedn.xlarge",
            "p4de.24xlarge",
        ] {
            assert!(is_type(name), "{name}");
        }
        for name in [
            "zz.small",
            "t3",
            "t3.",
            "t3.smal",
            "t3.xxlarge",
            ".micro",
            "t.micro",
            "t3micro",
            "T3.micro",
            "m5.0000xlarge",
            "m5-large.x",
            "t3.micro ",
            "m5abcdef.large",
            "ä3.micro",
            "",
        ] {
            assert!(!is_type(name), "{name}");
        }
    }
}
