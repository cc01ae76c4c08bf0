//! What a command is to write, judged before any work.

use crate::fail::{Fail, Result};
use std::path::{Path, PathBuf};

/// Refuses outputs that are an input, or another output, under whatever spelling.
pub fn refuse_overwriting<'a>(
    outputs: impl IntoIterator<Item = &'a PathBuf>,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<()> {
    let mut taken: Vec<PathBuf> = inputs.into_iter().map(|path| place(path)).collect();
    for path in outputs {
        let own = place(path);
        if taken.contains(&own) {
            let path = path.display();
            return Err(Fail::usage(format!("{path} would be overwritten; choose another name")));
        }
        taken.push(own);
    }
    Ok(())
}

/// Refuses a table on stdout where the summary as JSON is to stand there.
pub fn refuse_both_on_stdout(output: Option<&Path>, json: bool, what: &str) -> Result<()> {
    match output.is_none() && json {
        true => Err(Fail::usage(format!(
            "--json puts the summary on stdout: give the {what} a file, -o OUT.csv"
        ))),
        false => Ok(()),
    }
}

/// Returns where a path leads; a file that is not there yet, by its folder.
fn place(path: &Path) -> PathBuf {
    let there = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(there).unwrap_or_else(|| path.to_path_buf())
}

/// Returns whether a name ends in this extension, in whatever case.
pub fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}
