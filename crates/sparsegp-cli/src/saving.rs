//! Models that cannot be written where they were meant to go are written elsewhere: nothing that was learnt is lost.

use crate::fail::Fail;
use sparsegp::fit::Fitted;
use sparsegp::io;
use std::path::{Path, PathBuf};

/// Saves a model; where that fails, in a folder for temporary files or in that of the user. The failure says where.
pub fn save(fitted: &Fitted, path: &Path) -> Result<(), Fail> {
    save_with(path, &|path| io::save(fitted, path))
}

/// Does the same for whatever writes a model to a path.
pub fn save_with(path: &Path, write: &dyn Fn(&Path) -> sparsegp::Result<()>) -> Result<(), Fail> {
    let Err(error) = write(path) else { return Ok(()) };
    let mut others = Vec::new();
    for folder in [Some(std::env::temp_dir()), std::env::home_dir(), std::env::current_dir().ok()] {
        let Some(place) = folder.map(|folder| elsewhere(&folder, path)) else { continue };
        match write(&place) {
            Ok(()) => {
                return Err(Fail::Part(format!(
                    "{error}. The model is not lost: it was written to {}; move it to where it should be",
                    place.display()
                )));
            }
            Err(other) => others.push(other.to_string()),
        }
    }
    Err(Fail::Part(format!("{error}; nor could it be written elsewhere: {}", others.join("; "))))
}

/// Returns a name in a folder that no other file has.
fn elsewhere(folder: &Path, path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let process = std::process::id();
    let name = |n: usize| match n {
        0 => format!("{stem}-{process}.safetensors"),
        n => format!("{stem}-{process}-{n}.safetensors"),
    };
    let mut places = (0..).map(|n| folder.join(name(n)));
    places.find(|place| !place.exists()).unwrap_or_else(|| folder.join(name(0)))
}
