//! Nothing is lost: a kill while a file is written leaves the old one or the new one.

use crate::support::{fitted, options};
use sparsegp::io::{load, save};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FOLDER: &str = "SPARSEGP_TEST_SAVES_INTO";

/// Writes two models by turns into a folder until it is killed; nothing on its own.
#[test]
fn child_that_saves_without_end() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let models = ["exact", "titsias2025"].map(|method| fitted(1, &options(method, "rbf")));
    loop {
        models.iter().for_each(|m| save(m, &folder.join("m")).expect("room for a file"));
    }
}

#[cfg(unix)]
#[test]
fn a_kill_leaves_the_old_file_or_the_new_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m");
    let mut seen = Vec::new();
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "lost::child_that_saves_without_end"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("a child");
        let start = Instant::now();
        while !path.exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "the child writes nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(60_000 + 1370 * round));
        // SIGKILL
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        seen.push(load(&path).expect("a whole file").model.method.name());
    }
    assert!(seen.iter().all(|name| ["exact", "titsias2025"].contains(name)), "{seen:?}");
    other_files_are_not_models(folder.path());
}

/// What a kill leaves beside the file has a different name.
#[cfg(unix)]
fn other_files_are_not_models(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let part = name.starts_with(".m.") && name.ends_with(".part");
        assert!(name == "m" || part, "{name}");
    }
}
