//! Ctrl-C.

use crate::support::{Folder, plane};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

fn interrupt(child: &Child) {
    signal(child, "-INT");
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn the_first_keeps_the_best_state() {
    let folder = Folder::new();
    folder.write("p.csv", plane(1500));
    // It would take very long: Adam never converges.
    let arguments = "fit p.csv --target y --ignore key --inducing 60 --optimiser adam \
                     --max-iterations 10000000 -o m.safetensors --plot p.svg --trace t.json";
    let mut child =
        folder.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("iteration 10 ") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "training ended early");
    }
    interrupt(&child);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{rest}");
    assert!(rest.contains("stopping after the present step"), "{rest}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the best parameters found"), "{text}");
    assert_eq!(folder.files(), ["m.safetensors", "p.csv", "t.json"]);
    let model = folder.json("inspect m.safetensors");
    assert!(model["training"]["iterations"].as_u64().unwrap() >= 10);
    folder.ok("score m.safetensors p.csv");
}

#[test]
fn before_there_is_anything_to_keep_nothing_is_written() {
    let folder = Folder::new();
    folder.write("p.csv", plane(4000));
    let mut child = folder
        // Exact inference: one evaluation takes a while.
        .command("fit p.csv --target y --ignore key --method exact -o m.safetensors")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    assert!(lines.read_line(&mut text).unwrap() > 0);
    interrupt(&child);
    lines.read_line(&mut text).unwrap();
    interrupt(&child);
    lines.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    assert_eq!(folder.files(), ["p.csv"]);
}

/// Starts a training that would take very long, and waits until it is under way.
fn long(folder: &Folder, more: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    let arguments = format!(
        "fit p.csv --target y --ignore key --inducing 20 --optimiser adam --max-iterations 10000000 {more}"
    );
    let mut command = folder.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("iteration 10 ") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "training ended early");
    }
    (child, lines)
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_terminal_keeps_the_best_state() {
    let folder = Folder::new();
    folder.write("p.csv", plane(300));
    let (child, mut lines) = long(&folder, "-o m.safetensors");
    signal(&child, "-HUP");
    signal(&child, "-HUP");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0), "{rest}");
    assert_eq!(folder.files(), ["m.safetensors", "p.csv"]);
}

#[test]
fn a_checkpoint_is_of_one_run_at_a_time() {
    let folder = Folder::new();
    folder.write("p.csv", plane(300));
    let (child, mut lines) = long(&folder, "--checkpoint c -o m.safetensors");
    let refused = folder.run("fit p.csv --target y --ignore key --inducing 20 --checkpoint c");
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains("in use by another run"), "{}", refused.err);
    interrupt(&child);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0), "{rest}");
    assert!(!folder.files().contains(&"c.lock".to_owned()));
}
