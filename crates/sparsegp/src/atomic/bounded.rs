//! Files that are read whole, if they are what they should be.

use crate::error::{Error, Result};
use crate::limits::FILE;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes by which a file is known.
const BEGINNING: usize = 64;

/// Reads a file whose beginning is accepted: nothing but the first bytes of others.
///
/// # Errors
/// [`Error::File`] if it cannot be read, is longer than the environment variable `SPARSEGP_MAX_FILE_BYTES` says (4 GiB), or is refused by `accept`.
pub fn read_bounded(
    path: &Path,
    accept: impl Fn(&[u8]) -> std::result::Result<(), String>,
) -> Result<Vec<u8>> {
    let io = |error: std::io::Error| Error::io(path, &error);
    let fail = |reason: String| Error::File { path: path.into(), reason };
    let mut file = File::open(path).map_err(io)?;
    let mut content = Vec::new();
    file.by_ref().take(BEGINNING as u64).read_to_end(&mut content).map_err(io)?;
    accept(&content).map_err(fail)?;
    let limit = FILE.now();
    let length = file.metadata().map_or(0, |data| data.len());
    if length <= limit {
        let rest = (limit + 1).saturating_sub(content.len() as u64);
        file.take(rest).read_to_end(&mut content).map_err(io)?;
    }
    if length.max(content.len() as u64) > limit {
        return Err(fail(FILE.exceeded("is")));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_not_read() {
        let accept = |first: &[u8]| match first.starts_with(b"ours") {
            true => Ok(()),
            false => Err(format!("begins with {:?}", first.first())),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let long = [b"ours".to_vec(), vec![7; 1000]].concat();
        std::fs::write(&path, &long).unwrap();
        assert_eq!(read_bounded(&path, accept).unwrap(), long);
        std::fs::write(&path, b"theirs").unwrap();
        assert!(read_bounded(&path, accept).unwrap_err().to_string().contains("begins with"));
        if cfg!(target_os = "linux") {
            // it has no end
            let text = read_bounded(Path::new("/dev/zero"), accept).unwrap_err().to_string();
            assert!(text.contains("begins with Some(0)"), "{text}");
        }
    }
}
