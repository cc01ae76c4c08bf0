//! Files that appear whole or not at all, are read whole within bounds, and are one run's at a time.

mod bounded;
mod lock;

pub use bounded::read_bounded;
pub use lock::Lock;

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;

/// A file that is written beside its destination and moved there by [`AtomicFile::commit`]; without
/// that nothing is left of it. A destination that is there but no regular file (a device, a pipe) is
/// written to as it is; a link is followed.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Beside(NamedTempFile, PathBuf),
    Direct(File),
}

fn builder() -> tempfile::Builder<'static, 'static> {
    #[allow(unused_mut)]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // what any new file gets; the process's mask still applies
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

impl AtomicFile {
    /// Opens a file to write.
    ///
    /// # Errors
    /// [`Error::File`] if the folder is absent or not writable, or `path` is a folder.
    pub fn create(path: &Path) -> Result<Self> {
        let fail = |reason: &str| Err(Error::File { path: path.into(), reason: reason.into() });
        let sink = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return fail("is a folder; give the name of a file to write");
            }
            Ok(found) if !found.is_file() => Sink::Direct(
                File::options().write(true).open(path).map_err(|e| Error::io(path, &e))?,
            ),
            found => {
                let end = match found {
                    Ok(_) => fs::canonicalize(path).map_err(|e| Error::io(path, &e))?,
                    Err(_) => path.to_owned(),
                };
                let folder = match end.parent() {
                    Some(parent) if !parent.as_os_str().is_empty() => parent,
                    _ => Path::new("."),
                };
                if !folder.is_dir() {
                    return fail("cannot be written: its folder does not exist; create it first");
                }
                let prefix = format!(".{}.", end.file_name().unwrap_or_default().display());
                remove_abandoned(folder, &prefix);
                let file = builder().prefix(&prefix).suffix(PART).tempfile_in(folder);
                let file = file.map_err(|error| Error::File {
                    path: path.into(),
                    reason: format!("cannot be written: {}", error.kind()),
                })?;
                // says that somebody writes it; where there are no locks its age says it
                let _ = file.as_file().try_lock();
                Sink::Beside(file, end)
            }
        };
        Ok(Self { path: path.into(), sink })
    }

    /// Moves the file to its destination.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn commit(self) -> Result<()> {
        let Self { path, sink } = self;
        match sink {
            Sink::Direct(mut file) => file.flush(),
            Sink::Beside(mut file, end) => file
                .flush()
                .and_then(|()| file.as_file().sync_all())
                .and_then(|()| file.persist(&end).map(drop).map_err(|e| e.error))
                .inspect(|()| keep_name(&end)),
        }
        .map_err(|e| Error::io(path, &e))
    }
}

/// What names of files end with that are being written.
const PART: &str = ".part";
/// How long a file that is being written is kept though no process has its lock.
const FRESH: Duration = Duration::from_secs(60);

/// Removes what writers of the same file left that were killed.
fn remove_abandoned(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_part = name.to_str().is_some_and(|n| n.starts_with(prefix) && n.ends_with(PART));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if !is_part || age().is_none_or(|age| age < FRESH) {
            continue;
        }
        let unlocked = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if unlocked {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Says what went wrong without the name of the temporary file, which nobody knows.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" at path ").next().unwrap_or(&text).to_owned()
}

/// Has the name of a file written where power may fail. Systems that do not know it refuse, which
/// is not a failure of the file.
fn keep_name(path: &Path) {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Beside(file, _) => file.write(bytes),
            Sink::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Beside(file, _) => file.flush(),
            Sink::Direct(file) => file.flush(),
        }
    }
}

/// Bytes that are written to find out whether there is room.
const PROBE: usize = 64 << 10;

/// Finds out whether a file can be written at `path`, before there is anything to write: the folder is there, new files may be made
/// in it, and the disk has room for a small one. Nothing is left behind, and an existing file stays as it is.
///
/// # Errors
/// As for [`AtomicFile::create`].
pub fn check_writable(path: &Path) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    let fail = |e: io::Error| Error::File {
        path: path.into(),
        reason: format!("cannot be written: {}", plain(&e)),
    };
    match &mut file.sink {
        Sink::Beside(file, _) => {
            file.write_all(&[0; PROBE]).and_then(|()| file.as_file().sync_data()).map_err(fail)
        }
        Sink::Direct(_) => Ok(()),
    }
}

/// Writes a file at once.
///
/// # Errors
/// [`Error::File`].
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content).map_err(|e| Error::File { path: path.into(), reason: plain(&e) })?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomically(&path, b"one").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        drop(file);
        check_writable(&path).unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"one".to_vec(), vec!["a".into()])
        );
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"two").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn what_killed_writers_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let old = std::time::SystemTime::now() - 2 * FRESH;
        let left = |name: &str| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(old).unwrap();
            file
        };
        drop((left(".a.x7Yq.part"), left(".b.x7Yq.part"), left(".a.note")));
        let held = left(".a.busy.part");
        held.try_lock().unwrap();
        File::create(folder.path().join(".a.new.part")).unwrap();
        write_atomically(&path, b"one").unwrap();
        let mut all = names(folder.path());
        all.sort();
        assert_eq!(all, [".a.busy.part", ".a.new.part", ".a.note", ".b.x7Yq.part", "a"]);
    }

    #[test]
    fn folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let text = check_writable(folder.path()).unwrap_err().to_string();
        assert!(text.contains("is a folder"), "{text}");
        let text = check_writable(&folder.path().join("b/c")).unwrap_err().to_string();
        assert!(text.contains("folder does not exist"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_are_ordinary() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        write_atomically(&path, b"one").unwrap();
        let ordinary = folder.path().join("ordinary");
        fs::write(&ordinary, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&ordinary));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_atomically(&link, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error_and_stays_a_device() {
        let path = Path::new("/dev/full");
        let text = write_atomically(path, b"one").unwrap_err().to_string();
        assert!(text.starts_with("/dev/full: No space left"), "{text}");
        assert!(!fs::metadata(path).unwrap().is_file());
    }
}
