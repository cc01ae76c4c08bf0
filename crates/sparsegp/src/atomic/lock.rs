//! Files that one process at a time works with.

use crate::error::{Error, Result};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Keeps others from a file that is written again and again: by a lock of a file beside it, which ends with this value or with the
/// process, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a file.
    ///
    /// # Errors
    /// [`Error::File`] if another process has it, or the file beside it cannot be made.
    pub fn of(path: &Path) -> Result<Self> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let beside = PathBuf::from(beside);
        let fail = |reason: String| Error::File { path: path.into(), reason };
        let open = File::options().create(true).truncate(false).write(true).open(&beside);
        let file = open.map_err(|error| fail(format!("cannot be locked: {}", error.kind())))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(fail(
                "is in use by another run of the program: wait for it, or name another file".into(),
            )),
            // file systems without locks
            Err(TryLockError::Error(_)) | Ok(()) => Ok(Self { file, path: beside }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // removed while it is held: whoever opens it later makes another
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let lock = Lock::of(&path).unwrap();
        let text = Lock::of(&path).unwrap_err().to_string();
        assert!(text.contains("is in use by another run"), "{text}");
        drop(lock);
        drop(Lock::of(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
