//! Files and folders of YAML that commands are given.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Largest file that is read; the language's own limit is lower and says so.
const FILE_LIMIT: u64 = 16 << 20;

/// Name and text of every file: folders are searched for `.yaml` and `.yml`, `-` is standard input.
///
/// # Errors
/// When a file cannot be read, is too large or not UTF-8, or when there is none.
pub fn read(paths: &[PathBuf]) -> Result<Vec<(String, String)>, CliError> {
    let mut sources = Vec::new();
    for path in paths {
        collect(path, &mut sources)?;
    }
    if sources.is_empty() {
        return Err(CliError::Usage(
            "no .yaml or .yml file was found".to_owned(),
        ));
    }
    Ok(sources)
}

fn collect(path: &Path, into: &mut Vec<(String, String)>) -> Result<(), CliError> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .take(FILE_LIMIT)
            .read_to_string(&mut text)
            .map_err(|source| CliError::File {
                what: "reading standard input".to_owned(),
                source,
            })?;
        into.push(("-".to_owned(), text));
        return Ok(());
    }
    let failed = |source| CliError::File {
        what: format!("reading {}", path.display()),
        source,
    };
    let kind = std::fs::metadata(path).map_err(failed)?;
    if kind.is_dir() {
        for entry in sorted(path).map_err(failed)? {
            let hidden = entry
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with('.'));
            let link = std::fs::symlink_metadata(&entry).is_ok_and(|m| m.is_symlink());
            let yaml = entry.extension().is_some_and(|e| e == "yaml" || e == "yml");
            // Links are not followed: a folder may come from somebody else's repository.
            if !hidden && !link && (entry.is_dir() || yaml) {
                collect(&entry, into)?;
            }
        }
        return Ok(());
    }
    if kind.len() > FILE_LIMIT {
        let why = format!(
            "{} has {} bytes: a file may have {FILE_LIMIT}",
            path.display(),
            kind.len()
        );
        return Err(CliError::Usage(why));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::Usage(format!("{} is not UTF-8 text", path.display())))?;
    into.push((path.display().to_string(), text));
    Ok(())
}

fn sorted(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::collect;

    #[test]
    fn a_folder_gives_its_yaml_files_in_order_without_hidden_ones() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["b.yml", "a.yaml", ".hidden.yaml", "note.txt"] {
            std::fs::write(dir.path().join(name), name).expect("a file");
        }
        let mut found = Vec::new();
        collect(dir.path(), &mut found).expect("readable");
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a.yaml", "b.yml"]);
    }
}
