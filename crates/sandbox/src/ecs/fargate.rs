//! Task sizes of Fargate ("Task CPU and memory", Amazon ECS developer guide).

use crate::error::ApiError;

/// CPU units, then memory in MiB: from, to, in steps of.
const SIZES: [(i64, i64, i64, i64); 7] = [
    (256, 512, 2_048, 512),
    (512, 1_024, 4_096, 1_024),
    (1_024, 2_048, 8_192, 1_024),
    (2_048, 4_096, 16_384, 1_024),
    (4_096, 8_192, 30_720, 1_024),
    (8_192, 16_384, 61_440, 4_096),
    (16_384, 32_768, 122_880, 8_192),
];

/// `256`, `.25 vCPU` or `1 vcpu` as CPU units.
pub(super) fn cpu_units(text: &str) -> Option<i64> {
    with_unit(text, "vcpu", 1_024.0)
}

/// `512`, `0.5GB` or `2 gb` as MiB.
pub(super) fn memory_mib(text: &str) -> Option<i64> {
    with_unit(text, "gb", 1_024.0)
}

fn with_unit(text: &str, unit: &str, factor: f64) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    let Some(number) = text.strip_suffix(unit) else {
        return text.parse().ok().filter(|units: &i64| *units > 0);
    };
    let number: f64 = number.trim().parse().ok()?;
    let units = (number * factor).round();
    // Beyond a million units nothing is valid, and the conversion below would be lossy.
    (1.0..1e6).contains(&units).then_some(units as i64)
}

/// Whether Fargate offers the size.
pub(super) fn check(cpu: i64, memory: i64) -> Result<(), ApiError> {
    let fits = SIZES.iter().any(|&(units, from, to, step)| {
        // 256 CPU units take 512, 1024 and 2048 MiB, not 1536.
        units == cpu
            && (from..=to).contains(&memory)
            && (memory - from) % step == 0
            && !(units == 256 && memory == 1_536)
    });
    if fits {
        return Ok(());
    }
    Err(ApiError::client_exception(format!(
        "No Fargate configuration exists for given values: {cpu} CPU, {memory} memory. \
         See the Amazon ECS documentation for the valid values."
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (cpu, memory, fits) in [
            (256, 512, true),
            (256, 1_536, false),
            (512, 512, false),
            (4_096, 30_720, true),
            (8_192, 20_480, true),
            (8_192, 17_408, false),
            (300, 512, false),
        ] {
            assert_eq!(check(cpu, memory).is_ok(), fits, "{cpu} {memory}");
        }
    }

    #[test]
    fn units() {
        assert_eq!(cpu_units(".25 vCPU"), Some(256));
        assert_eq!(cpu_units("1024"), Some(1_024));
        assert_eq!(memory_mib("0.5GB"), Some(512));
        assert_eq!(memory_mib("1e300GB"), None);
        assert_eq!(memory_mib("lots"), None);
    }
}
