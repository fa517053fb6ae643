//! What was probably meant.

/// Names that are told at most.
const MOST_TOLD: usize = 3;

/// Names that are compared at most: of a place with more, the first.
const MOST_COMPARED: usize = 10_000;

/// Ends a sentence about something that does not exist with what is there and nearest to it.
pub(crate) fn instead<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<(usize, &str)> = names
        .take(MOST_COMPARED)
        .map(|name| (distance(wanted, name), name))
        .collect();
    names.sort();
    names.truncate(MOST_TOLD);
    let told: Vec<String> = names.iter().map(|(_, name)| format!("`{name}`")).collect();
    match told.as_slice() {
        [] => "; nothing is there".to_owned(),
        told => format!("; the nearest that exist: {}", told.join(", ")),
    }
}

/// How far a name is from the wanted one; its last part counts most, because folders are mistaken as a whole.
fn distance(wanted: &str, name: &str) -> usize {
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    strsim::osa_distance(wanted, name) + 2 * strsim::osa_distance(&last(wanted), &last(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first() {
        let names = [
            "ecs/service.yaml",
            "README.md",
            "ecs/task.yaml",
            "ecs/task.yml",
        ];
        let told = instead("deploy/task.yaml", names.into_iter());
        assert_eq!(
            told,
            "; the nearest that exist: `ecs/task.yaml`, `ecs/task.yml`, `ecs/service.yaml`"
        );
        assert_eq!(instead("x", [].into_iter()), "; nothing is there");
    }
}
