//! The file as other programs see it, and how it is written.

use crate::support::{Parts, fitted, options, take_apart};
use sparsegp::fit::Fitted;
use sparsegp::io::{load, save};
use std::io::Read;

fn file_of(fitted: &Fitted) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    save(fitted, &path).expect("room for a file");
    std::fs::read(path).expect("the file just written")
}

/// The names that the documentation promises; matrices row by row.
#[test]
fn tensors_are_found_by_the_documented_names() {
    let own = fitted(2, &options("titsias2025", "matern52 + linear"));
    let parts = take_apart(&file_of(&own));
    let mut names: Vec<&str> = parts.header.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "__metadata__",
        "inducing.points",
        "kernel.kernels[0].lengthscales",
        "kernel.kernels[0].variance",
        "kernel.kernels[1].variance",
        "likelihood.variance",
        "mean.constant",
        "mean.weights",
        "q.mu",
        "q.sqrt",
        "training.parameters",
        "training.trace",
        "trend.roots",
        "trend.weights",
        "written.clock",
        "written.sums",
    ];
    assert_eq!(names, expected);
    let noise = own.model.noise();
    assert_eq!(parts.tensor("likelihood.variance"), (vec![], vec![noise]));
    let z = own.model.inducing_points().expect("a sparse model");
    let (shape, values) = parts.tensor("inducing.points");
    assert_eq!(shape, [9, 3]);
    assert!((0..9).all(|i| (0..3).all(|q| values[3 * i + q] == z[(i, q)])));
    let (shape, values) = parts.tensor("mean.weights");
    assert_eq!(shape, [3, 2]);
    let params = own.model.params();
    let weights = params.iter().find(|(path, _)| path == "mean.weights").expect("a linear mean").1;
    assert!((0..3).all(|q| (0..2).all(|p| values[2 * q + p] == weights.value()[3 * p + q])));
    let (shape, values) = parts.tensor("q.mu");
    assert_eq!(shape, [9, 2]);
    assert!((0..9).all(|i| (0..2).all(|p| values[2 * i + p] == own.posterior.q_mu()[(i, p)])));
    let root = own.posterior.q_sqrt()[0];
    let (shape, values) = parts.tensor("q.sqrt");
    assert_eq!(shape, [9, 9]);
    assert!((0..9).all(|i| (0..9).all(|j| values[9 * i + j] == root[(i, j)])));
    assert!((0..9).all(|i| (i + 1..9).all(|j| values[9 * i + j] == 0.0)), "a lower root");
    let model = parts.model();
    assert_eq!((&model["version"], &model["method"]), (&3.into(), &"titsias2025".into()));
    assert_eq!(model["inputs"][2], "time of day");
    assert_eq!(model["targets"][1], "température 1");

    let own = fitted(1, &options("exact", "rbf"));
    let parts = take_apart(&file_of(&own));
    assert!(!parts.header.contains_key("q.sqrt") && !parts.header.contains_key("inducing.points"));
    let (shape, values) = parts.tensor("posterior.inputs");
    assert_eq!(shape, [60, 3]);
    assert!(
        values.iter().enumerate().all(|(at, v)| *v == own.posterior.points()[(at / 3, at % 3)])
    );
    assert_eq!(parts.tensor("q.mu").0, [60, 1]);
}

/// Every offset lies in the data, tensors do not overlap, and together they are all of it.
#[test]
fn tensors_fill_the_file() {
    let parts: Parts = take_apart(&file_of(&fitted(2, &options("spherical", "rbf * linear"))));
    let tensors = parts.header.iter().filter(|(name, _)| *name != "__metadata__");
    let mut ranges: Vec<(u64, u64)> = tensors
        .map(|(_, entry)| {
            let at = |i: usize| entry["data_offsets"][i].as_u64().expect("a number");
            (at(0), at(1))
        })
        .collect();
    ranges.sort_unstable();
    assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (0, parts.data.len() as u64));
    assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
}

/// A file is replaced as a whole: who has the older one open continues to read it.
#[test]
fn writing_replaces_and_never_overwrites() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    let (first, second) = (options("exact", "rbf"), options("titsias2009", "matern12"));
    save(&fitted(1, &first), &path).expect("room for a file");
    let older = std::fs::read(&path).expect("the file just written");
    let mut open = std::fs::File::open(&path).expect("the file just written");
    save(&fitted(1, &second), &path).expect("room for a file");
    let mut still = Vec::new();
    open.read_to_end(&mut still).expect("the older file");
    assert!(still == older && std::fs::read(&path).expect("the newer file") != older);
    assert_eq!(load(&path).expect("the newer file").model.method.name(), "titsias2009");
    let left = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 1, "nothing but the model");
}

#[test]
fn a_failure_leaves_what_was_there() {
    let own = fitted(1, &options("exact", "rbf"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let older = folder.path().join("older.safetensors");
    save(&own, &older).expect("room for a file");
    let content = std::fs::read(&older).expect("the file just written");
    let taken = folder.path().join("a folder");
    std::fs::create_dir(&taken).expect("a folder");
    for path in [
        folder.path().join("missing").join("model.safetensors"),
        older.join("model.safetensors"),
        taken.clone(),
        folder.path().join("x".repeat(300)),
    ] {
        match save(&own, &path) {
            Err(sparsegp::Error::File { path: named, reason }) => {
                assert_eq!(named, path);
                assert!(!reason.is_empty());
            }
            other => panic!("{}: {other:?}", path.display()),
        }
    }
    assert_eq!(std::fs::read(&older).expect("the older file"), content);
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a folder", "older.safetensors"]);
}

/// Others may read a model whom the umask lets read files; and a socket is not replaced by a file.
#[cfg(unix)]
#[test]
fn permissions_and_special_files_are_respected() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let own = fitted(1, &options("exact", "rbf"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ordinary, model) = (folder.path().join("ordinary"), folder.path().join("model"));
    std::fs::write(&ordinary, "text").expect("room for a file");
    save(&own, &model).expect("room for a file");
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
    };
    assert_eq!(mode(&model), mode(&ordinary));
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    assert!(matches!(save(&own, &socket), Err(sparsegp::Error::File { .. })));
    let kind = std::fs::metadata(&socket).expect("the socket").file_type();
    assert!(kind.is_socket(), "it is still there");
}

/// A disk without room is an error; by a link, so that no mistake can harm the device.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let link = folder.path().join("full");
    std::os::unix::fs::symlink("/dev/full", &link).expect("a link");
    let outcome = save(&fitted(1, &options("exact", "rbf")), &link);
    assert!(matches!(outcome, Err(sparsegp::Error::File { ref path, .. }) if *path == link));
    let kind = std::fs::metadata(&link).expect("the device").file_type();
    assert!(kind.is_char_device(), "it is still there");
}
