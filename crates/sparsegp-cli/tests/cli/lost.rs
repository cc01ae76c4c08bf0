//! Nothing lost, nothing silent: disks that are full, folders that are read-only or vanish, signals.

use crate::support::{Folder, plane};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};

const FIT: &str = "fit p.csv --target y --ignore key";

/// Starts a training that would take very long, and waits until it is under way.
fn under_way(folder: &Folder, arguments: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    let arguments = format!(
        "{FIT} --inducing 20 --optimiser adam --max-iterations 10000000 --pilot 0 {arguments}"
    );
    let mut command = folder.command(&arguments);
    command.env("TMPDIR", folder.path("tmp")).env("HOME", folder.path("tmp"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("iteration 10 ") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "training ended early");
    }
    (child, lines)
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

fn ended(child: Child, mut lines: BufReader<std::process::ChildStderr>) -> (Option<i32>, String) {
    let mut err = String::new();
    lines.read_to_string(&mut err).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), err + &String::from_utf8(output.stdout).unwrap())
}

fn prepared() -> Folder {
    let folder = Folder::new();
    folder.write("p.csv", plane(300));
    std::fs::create_dir(folder.path("tmp")).unwrap();
    folder
}

/// The model that was written elsewhere, as the message says.
fn rescued(folder: &Folder, text: &str) -> String {
    assert!(text.contains("The model is not lost"), "{text}");
    let place = text.split("it was written to ").nth(1).unwrap().split("; ").next().unwrap();
    assert!(place.contains("/tmp/"), "{place}");
    folder.ok(&format!("inspect '{place}'"));
    place.to_owned()
}

#[test]
fn a_full_disk_at_the_end_loses_nothing() {
    let folder = prepared();
    symlink("/dev/full", folder.path("m")).unwrap();
    let mut command = folder.command(&format!("{FIT} --inducing 8 --max-iterations 3 -o m"));
    let output = command.env("TMPDIR", folder.path("tmp")).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("No space left"), "{err}");
    // what there is to show is shown
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("RMSE") && !out.contains("model written to"), "{out}");
    let place = rescued(&folder, &err);
    folder.ok(&format!("score '{place}' p.csv"));
}

/// A limit of the size of files ends no program, and leaves an older file as it was.
#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let folder = prepared();
    folder.ok(&format!("{FIT} --inducing 8 --max-iterations 2 -o m"));
    let older = folder.bytes("m");
    let program = env!("CARGO_BIN_EXE_sparsegp");
    // 300 rows of exact inference, 150 kB of inputs of 60 columns; at most 100 kB
    let mut wide = String::from("y");
    (0..60).for_each(|q| wide += &format!(",x{q}"));
    for i in 0..300 {
        wide += &format!("\n{}", f64::from(i).sin());
        (0..60).for_each(|q| wide += &format!(",{}", f64::from(i * (q + 2)).cos()));
    }
    folder.write("w.csv", wide + "\n");
    let line = format!(
        "ulimit -f 100; exec {program} fit w.csv --target y --method exact --kernel 'rbf(ard=false)' \
         --max-iterations 2 -o m"
    );
    let mut command = Command::new("bash");
    command.args(["-c", &line]).current_dir(folder.path("")).env("TMPDIR", folder.path("tmp"));
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("File too large") && err.contains("nor could it be written"), "{err}");
    assert_eq!(folder.bytes("m"), older);
}

/// A folder that vanishes while the training runs.
#[test]
fn a_vanished_folder_loses_nothing() {
    let folder = prepared();
    std::fs::create_dir(folder.path("gone")).unwrap();
    let (child, lines) = under_way(&folder, "-o gone/m.safetensors");
    std::fs::remove_dir_all(folder.path("gone")).unwrap();
    signal(&child, "-INT");
    let (code, text) = ended(child, lines);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("gone/m.safetensors") && text.contains("does not exist"), "{text}");
    rescued(&folder, &text);
}

/// A checkpoint that can no longer be written is a warning, at once; the training continues and its
/// model is kept.
#[test]
fn a_checkpoint_that_cannot_be_written_is_a_warning() {
    let folder = prepared();
    std::fs::create_dir(folder.path("gone")).unwrap();
    let (child, mut lines) =
        under_way(&folder, "-o m.safetensors --checkpoint gone/run --checkpoint-every 0.05");
    std::fs::remove_dir_all(folder.path("gone")).unwrap();
    let mut line = String::new();
    while !line.contains("could not be written") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no warning");
    }
    assert!(line.contains("warning: the checkpoint gone/run"), "{line}");
    assert!(line.contains("continues"), "{line}");
    signal(&child, "-INT");
    let (code, text) = ended(child, lines);
    assert_eq!(code, Some(0), "{text}");
    let model = folder.json("inspect m.safetensors");
    assert!(model["warnings"].to_string().contains("the checkpoint gone/run"), "{model}");
}

/// SIGTERM is taken as Ctrl-C.
#[test]
fn a_machine_that_is_shut_down_keeps_the_best_state() {
    let folder = prepared();
    let (child, lines) = under_way(&folder, "-o m.safetensors");
    signal(&child, "-TERM");
    let (code, text) = ended(child, lines);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("the best parameters found"), "{text}");
    folder.ok("score m.safetensors p.csv");
}

/// What cannot be written is refused before the training. (The superuser may write anywhere but into /proc.)
#[test]
fn places_that_cannot_be_written_are_refused_at_once() {
    let folder = prepared();
    std::fs::create_dir(folder.path("locked")).unwrap();
    std::fs::set_permissions(folder.path("locked"), PermissionsExt::from_mode(0o555)).unwrap();
    let own = std::fs::write(folder.path("locked/probe"), "").is_err();
    let locked = if own { "locked" } else { "/proc" };
    for option in ["-o", "--checkpoint", "--trace"] {
        let line = format!("{FIT} {option} {locked}/m");
        folder.refused(1, &line, &[&format!("{locked}/m"), "cannot be written"]);
        let line = format!("{FIT} {option} nowhere/m");
        folder.refused(1, &line, &["nowhere/m", "its folder does not exist"]);
    }
}

/// A bit that has changed is named by whatever reads the file.
#[test]
fn a_flipped_bit_is_named() {
    let folder = prepared();
    folder.ok(&format!("{FIT} --inducing 8 --max-iterations 2 -o m"));
    let mut bytes = folder.bytes("m");
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[header + 3] ^= 4;
    folder.write("bad", &bytes);
    for command in ["inspect bad", "predict bad p.csv", "score bad p.csv"] {
        folder.refused(1, command, &["bad: is damaged: tensor `", "checksum"]);
    }
    bytes[header + 3] ^= 4;
    bytes[20] ^= 1;
    folder.write("bad", &bytes);
    folder.refused(1, "inspect bad", &["bad: is damaged: its header"]);
}
