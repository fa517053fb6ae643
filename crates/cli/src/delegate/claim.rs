//! Claims on disk: which task was taken with which token. They outlive the process.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::DelegateError;

/// A task that was taken.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Claim {
    /// Completes the activity; as good as a password for that.
    pub(super) token: String,
    pub(super) task: String,
    /// Whether a delegate that no longer lives took it.
    #[serde(skip)]
    pub(super) inherited: bool,
    #[serde(skip)]
    file: PathBuf,
}

/// The folder of a delegate, held alone.
pub(super) struct Claims {
    claims: PathBuf,
    tasks: PathBuf,
    /// Held as long as the delegate lives; the system lets go of it when it dies.
    _lock: File,
}

impl Claims {
    /// Takes the folder, and removes what scripts of a dead predecessor left in it.
    pub(super) fn open(work_dir: &Path) -> Result<Self, DelegateError> {
        // Scripts start in folders of their own, where a relative path would lead nowhere.
        let work_dir = std::path::absolute(work_dir)
            .map_err(DelegateError::file("find the folder", work_dir))?;
        let (claims, tasks) = (work_dir.join("claims"), work_dir.join("tasks"));
        private_folder(&work_dir)?;
        private_folder(&claims)?;
        let path = work_dir.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let lock = lock.map_err(DelegateError::file("open the lock", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DelegateError::Busy { path: work_dir });
            }
            Err(TryLockError::Error(source)) => {
                return Err(DelegateError::file("lock", path)(source));
            }
        }
        if tasks.exists() {
            fs::remove_dir_all(&tasks).map_err(DelegateError::file("empty the folder", &tasks))?;
        }
        private_folder(&tasks)?;
        Ok(Self {
            claims,
            tasks,
            _lock: lock,
        })
    }

    /// Claims of a dead predecessor. What cannot be read is set aside, and never stops the delegate.
    pub(super) fn left(&self) -> Result<Vec<Claim>, DelegateError> {
        let doing = "read the folder";
        let mut left = Vec::new();
        for entry in fs::read_dir(&self.claims).map_err(DelegateError::file(doing, &self.claims))? {
            let file = entry
                .map_err(DelegateError::file(doing, &self.claims))?
                .path();
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let bytes = fs::read(&file).map_err(DelegateError::file("read", &file))?;
            match serde_json::from_slice::<Claim>(&bytes) {
                Ok(claim) => left.push(Claim {
                    file,
                    inherited: true,
                    ..claim
                }),
                Err(error) => {
                    tracing::warn!(file = %file.display(), %error, "set a broken claim aside");
                    let _ = fs::rename(&file, file.with_extension("broken"));
                }
            }
        }
        Ok(left)
    }

    /// Writes a claim so that it is there after a crash.
    pub(super) fn write(&self, token: &str, task: &str) -> Result<Claim, DelegateError> {
        let file = self.claims.join(format!("{}.json", Uuid::now_v7()));
        let claim = Claim {
            token: token.to_owned(),
            task: task.to_owned(),
            inherited: false,
            file,
        };
        let part = claim.file.with_extension("part");
        let text = serde_json::json!(claim).to_string();
        write_private(&part, text.as_bytes())?;
        fs::rename(&part, &claim.file).map_err(DelegateError::file("write", &claim.file))?;
        let folder = File::open(&self.claims).and_then(|folder| folder.sync_all());
        folder.map_err(DelegateError::file("write", &self.claims))?;
        Ok(claim)
    }

    /// Forgets a claim whose activity is completed or gone.
    pub(super) fn remove(&self, claim: &Claim) {
        if let Err(error) = fs::remove_file(&claim.file) {
            tracing::warn!(file = %claim.file.display(), %error, "cannot remove a claim");
        }
    }

    /// A new folder for one script, readable by nobody else; removed when it is dropped.
    pub(super) fn task_folder(&self) -> Result<TaskFolder, DelegateError> {
        let path = self.tasks.join(Uuid::new_v4().to_string());
        TaskFolder::create(path)
    }
}

/// The folder of one script.
pub(super) struct TaskFolder(PathBuf);

impl TaskFolder {
    pub(super) fn create(path: PathBuf) -> Result<Self, DelegateError> {
        for folder in [path.clone(), path.join("work"), path.join("tmp")] {
            private_folder(&folder)?;
        }
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TaskFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "cannot remove a script's folder");
        }
    }
}

/// Makes a folder, if it is not there, that only this user can look into.
fn private_folder(folder: &Path) -> Result<(), DelegateError> {
    fs::create_dir_all(folder).map_err(DelegateError::file("create the folder", folder))?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
        .map_err(DelegateError::file("protect the folder", folder))
}

/// Writes a file that only this user can read.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), DelegateError> {
    let written = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(DelegateError::file("write", path))
}

/// The task that an activity's input names: `{"task": "<id>"}`.
pub(super) fn task_id(input: &str) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    let task = input.get("task")?.as_str()?;
    (!task.is_empty()).then(|| task.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_outlive_the_delegate_and_are_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let claims = Claims::open(folder.path()).expect("a free folder");
        let claim = claims.write("token", "run.node.0").expect("a claim");
        let mode = fs::metadata(&claim.file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(
            Claims::open(folder.path()),
            Err(DelegateError::Busy { .. })
        ));
        fs::write(claims.claims.join("torn.json"), "{\"tok").expect("a torn file");
        drop(claims);

        let claims = Claims::open(folder.path()).expect("free again");
        let left = claims.left().expect("claims");
        assert_eq!((left.len(), left[0].task.as_str()), (1, "run.node.0"));
        assert!(left[0].inherited);
        claims.remove(&left[0]);
        assert!(claims.left().expect("claims").is_empty());
    }

    #[test]
    fn a_folder_that_is_given_by_a_relative_path_is_known_by_its_absolute_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = std::env::current_dir().expect("a folder");
        let up = "../".repeat(here.components().count() - 1);
        let relative = format!(
            "{up}{}",
            folder.path().display().to_string().trim_start_matches('/')
        );
        let claims = Claims::open(Path::new(&relative)).expect("a free folder");
        assert!(claims.task_folder().expect("a folder").path().is_absolute());
    }

    #[test]
    fn inputs_name_tasks() {
        assert_eq!(task_id(r#"{"task": "a.b.0"}"#).as_deref(), Some("a.b.0"));
        for bad in ["", "{}", r#"{"task": ""}"#, r#"{"task": 1}"#, "[[["] {
            assert_eq!(task_id(bad), None, "{bad}");
        }
    }
}
