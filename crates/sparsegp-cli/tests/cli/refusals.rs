//! Bad input is refused with a sentence that names it, and nothing is left behind.

use crate::support::{Folder, plane, snelson};

fn refused(table: &str, more: &str, parts: &[&str]) {
    let folder = Folder::new();
    folder.write("d.csv", table);
    let arguments =
        format!("fit d.csv --target y -o m.safetensors --trace t.csv --plot p.svg {more}");
    folder.refused(1, &arguments, parts);
}

#[test]
fn cells() {
    for (cell, what) in [("", "empty"), ("NaN", "NaN"), ("inf", "inf"), ("NA", "NA")] {
        let table = format!("x,y\n1,2\n{cell},3\n3,4\n");
        refused(&table, "", &["d.csv: row 2, column `x`", what, "--missing drop"]);
        let table = format!("x,y\n1,2\n2,{cell}\n3,4\n");
        refused(&table, "", &["d.csv: row 2, column `y`", "--missing drop"]);
        refused(&table, "--stream", &["d.csv: row 2, column `y`", "--missing drop"]);
    }
    refused("x,y\n1,2\nred,3\n3,4\n", "", &["d.csv: row 2, column `x`", "`red`"]);
    refused("x,y\n1,2\nred,3\n3,4\n", "--missing drop", &["row 2, column `x`", "`red`"]);
    refused("x,y\n1,2\n1,2,3\n3,4\n", "", &["d.csv", "row 2"]);
    refused("x,y\n1,2\n1\n3,4\n", "", &["d.csv", "row 2"]);
}

#[test]
fn a_bad_cell_among_the_test_rows_is_found_before_training() {
    let folder = Folder::new();
    folder.write("d.csv", "x,y\n1,2\n2,3\n3,4\n4,\n");
    folder.write("mask.csv", "t\n0\n0\n0\n1\n");
    folder.refused(
        1,
        "fit d.csv --target y --test-mask mask.csv:t -o m --max-iterations 100000",
        &["d.csv: row 4, column `y`", "--missing drop"],
    );
}

#[test]
fn columns_and_rows() {
    let good = "x,y\n1,2\n2,3\n3,4\n";
    refused("a,yy\n1,2\n2,3\n", "", &["d.csv: column `y` is not in the file", "`yy`"]);
    refused("x,x,y\n1,2,3\n2,3,4\n", "", &["d.csv: column `x`", "positions 1 and 2"]);
    refused("y\n1\n2\n", "", &["d.csv", "no input column"]);
    refused(good, "--features x,y", &["d.csv: column `y`", "both an input and a target"]);
    refused(good, "--features z", &["d.csv: column `z`", "nearest: `x`"]);
    refused(good, "--ignore z", &["d.csv: column `z`"]);
    refused(good, "--target y", &["column `y`", "twice"]);
    refused("x,y\n", "", &["d.csv", "no rows"]);
    refused("", "", &["d.csv", "empty"]);
    refused("x,y\n1,2\n", "", &["d.csv: 1 training row(s)", "at least two"]);
    refused("x,y\n1,2\n", "--split 0.5", &["d.csv: 1 row(s) cannot be split"]);
    refused("x,y\n,2\n3,\n", "--missing drop", &["d.csv", "all 2 rows were left out"]);
}

#[test]
fn files_that_are_not_tables() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.refused(1, "fit absent.csv --target y -o m", &["absent.csv: ", "No such file"]);
    folder.refused(1, "fit none/*.csv --target y -o m", &["none/*.csv", "no table is there"]);
    folder.write("zip.csv", b"PK\x03\x04 and so on");
    folder.refused(1, "fit zip.csv --target y -o m", &["zip.csv", "ZIP"]);
    folder.write("bytes.csv", [0_u8, 1, 2, 3, 0, 0]);
    folder.refused(1, "fit bytes.csv --target y -o m", &["bytes.csv", "binary"]);
}

#[test]
fn usage() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    for (more, parts) in [
        ("--split 0", &["--split", "between 0 and 1"][..]),
        ("--split 1.5", &["--split", "between 0 and 1"]),
        ("--split -0.1", &["--split", "between 0 and 1"]),
        ("--max-iterations -5", &["--max-iterations", "-5"]),
        ("--split half", &["--split", "between 0 and 1"]),
        ("--method titsias2024", &["unknown method `titsias2024`", "titsias2025"]),
        ("--kernel rgb", &["unknown kernel `rgb`", "rbf"]),
        ("--kernel 'rbf +'", &["position 5", "name of a kernel"]),
        ("--kernel 'rbf(variance=-1)'", &["variance", "-1"]),
        ("--kernel '{\"type\"'", &["not valid JSON"]),
        ("--inducing-from kmean", &["unknown selection", "`kmeans`"]),
        ("--inducing 0", &["--inducing", "at least 1"]),
        ("--mean quadratic", &["zero, constant, linear"]),
        ("--set kernel.lengthscale=2", &["`kernel.lengthscale`", "nearest: `kernel.lengthscales`"]),
        ("--set kernel.variance=-1", &["`kernel.variance`", "-1 is outside the positive numbers"]),
        ("--set kernel.variance=1,2", &["`kernel.variance`", "has 1 values, 2 were given"]),
        ("--set kernel.variance", &["PATH=VALUE"]),
        ("--set kernel.variance=big", &["`big` is not a number"]),
        ("--freeze noise", &["unknown parameter `noise`", "nearest:"]),
        ("--freeze inducing", &["unknown parameter `inducing`"]),
        ("--jitter much", &["--jitter", "absolute:1e-6"]),
        ("--learning-rate 0.1", &["--optimiser adam"]),
        ("--optimiser sgd", &["sgd", "lbfgs"]),
        ("--threads 0", &["--threads"]),
        ("--split 0.1 --test-mask s.csv:y", &["cannot be used with"]),
        ("--plot fit.gif", &["fit.gif", ".svg"]),
        ("--trace m.safetensors", &["m.safetensors would be overwritten"]),
        ("--surprise", &["--surprise"]),
    ] {
        folder.refused(2, &format!("fit s.csv --target y -o m.safetensors {more}"), parts);
    }
    folder.refused(2, "fit s.csv -o m.safetensors", &["--target"]);
    folder.refused(2, "fit s.csv --target y -o s.csv", &["s.csv would be overwritten"]);
    folder.refused(2, "dance", &["dance"]);
    assert_eq!(folder.run("").code, Some(2));
}

#[test]
fn masks() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.write("short.csv", format!("t\n{}", "0\n1\n".repeat(50)));
    folder.write("long.csv", format!("t\n{}", "0\n1\n".repeat(150)));
    folder.write("three.csv", format!("t\n{}", "0\n3\n".repeat(100)));
    folder.write("none.csv", format!("t\n{}", "0\n".repeat(200)));
    for (spec, parts) in [
        ("short.csv:t", &["short.csv:t", "100", "a row for each data row"][..]),
        ("long.csv:t", &["200 rows", "300", "a row for each data row"]),
        ("three.csv:t", &["three.csv: row 2, column `t`", "neither 0"]),
        ("none.csv:t", &["none.csv", "marks none of its 200 rows"]),
        ("none.csv:u", &["none.csv: column `u`", "nearest: `t`"]),
        ("none.csv", &["FILE:COLUMN"]),
    ] {
        folder.refused(1, &format!("fit s.csv --target y -o m --test-mask {spec}"), parts);
    }
}

#[test]
fn outputs_are_checked_before_training() {
    let folder = Folder::new();
    folder.write("p.csv", plane(300));
    std::fs::create_dir(folder.path("folder")).unwrap();
    // So many iterations of so slow an optimiser would not end.
    let fit = "fit p.csv --target y --ignore key --optimiser adam --max-iterations 1000000000";
    for option in ["-o", "--trace", "--plot"] {
        let arguments = format!("{fit} {option} nowhere/out.svg");
        folder.refused(1, &arguments, &["nowhere/out.svg", "folder does not exist"]);
    }
    folder.refused(1, &format!("{fit} -o folder"), &["folder: is a folder"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.refused(
        1,
        "fit s.csv --target y --inducing 5 --max-iterations 3 -o /dev/full",
        &["/dev/full", "No space left"],
    );
    folder.ok("fit s.csv --target y --inducing 5 --max-iterations 3 -o m");
    for out in ["-o /dev/full", "-o /dev/full --quantiles 0.1"] {
        folder.refused(1, &format!("predict m s.csv {out}"), &["/dev/full", "No space left"]);
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = folder.command("predict m s.csv").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("No space left"));
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn models() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.ok("fit s.csv --target y --inducing 5 --max-iterations 3 -o m");
    let whole = folder.bytes("m");
    for length in [0, 4, 100, whole.len() / 2, whole.len() - 1] {
        folder.write("cut", &whole[..length]);
        for command in ["inspect cut", "predict cut s.csv -o out.csv", "score cut s.csv"] {
            folder.refused(1, command, &["cut: is not a complete sparsegp model file"]);
        }
    }
    let data = vec![0_u8; 8];
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F64, vec![1], &data);
    let foreign = safetensors::serialize([("w", view.unwrap())], None).unwrap();
    folder.write("foreign", foreign);
    folder.refused(1, "inspect foreign", &["foreign: is not a complete sparsegp model file"]);
    folder.refused(1, "inspect s.csv", &["s.csv: is not a complete sparsegp model file"]);
    folder.refused(1, "inspect nothing", &["nothing: No such file"]);
}

#[test]
fn predicting_and_scoring() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.write("x.csv", "x1,y\n1,2\n");
    folder.write("hole.csv", "x0,y\n1,2\n,3\n");
    folder.write("mean.csv", "x0,mean\n1,2\n");
    folder.write("fresh.csv", "x0,y\n1,2\n");
    folder.ok("fit s.csv --target y --inducing 5 --max-iterations 3 -o m");
    let out = "-o out.csv";
    for (arguments, parts) in [
        (format!("predict m x.csv {out}"), &["x.csv: column `x0`", "nearest: `x1`"][..]),
        (format!("predict m hole.csv {out}"), &["hole.csv: row 2, column `x0`", "--missing drop"]),
        (format!("predict m s.csv --id key {out}"), &["s.csv: column `key`"]),
        ("predict m s.csv -o nowhere/out.csv".into(), &["nowhere/out.csv"]),
        ("score m hole.csv".into(), &["hole.csv: row 2", "--missing drop"]),
        ("score m mean.csv".into(), &["mean.csv: column `y`"]),
    ] {
        folder.refused(1, &arguments, parts);
    }
    for (arguments, parts) in [
        (format!("predict m mean.csv --id mean {out}"), &["--id mean"][..]),
        (format!("predict m s.csv --quantiles 0,1 {out}"), &["--quantiles", "between 0 and 1"]),
        ("predict m s.csv -o s.csv".into(), &["overwritten"]),
        ("predict m s.csv --json".into(), &["-o OUT.csv"]),
        ("score m fresh.csv --on train".into(), &["--test-mask", "fresh.csv"]),
    ] {
        folder.refused(2, &arguments, parts);
    }
    // Machines learn of it on stdout too.
    let run = folder.run("score m x.csv --json");
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((json["exit_code"].as_i64(), run.code), (Some(1), Some(1)));
    assert!(json["error"].as_str().unwrap().contains("column `x0`"), "{json}");
}
