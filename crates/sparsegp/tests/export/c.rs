//! The header, compiled.

use crate::formula::rows_for;
use crate::models::{ALL, assert_same};
use sparsegp::export::Export;
use sparsegp::fit::{Fitted, Of};
use sparsegp::linalg::Mat;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Compiles a program that prints what the functions of a header give at rows, a line for each row, and runs it.
fn run(
    folder: &Path,
    header: &str,
    name: &str,
    x: &Mat<f64>,
    functions: &[(&str, usize)],
) -> Vec<Vec<f64>> {
    std::fs::write(folder.join("model.h"), header).unwrap();
    let mut main = String::from(
        "#include \"model.h\"\n#include <stdio.h>\nint main(void)\n{\n    double a[9], b[9];\n    int i;\n",
    );
    let numbers: Vec<String> = (0..x.nrows())
        .map(|i| (0..x.ncols()).map(|d| format!("{:e}", x[(i, d)])).collect::<Vec<_>>().join(", "))
        .collect();
    let (rows, columns) = (x.nrows(), x.ncols());
    let _ = writeln!(
        main,
        "    static const double x[{rows}][{columns}] = {{{{ {} }}}};",
        numbers.join(" }, { ")
    );
    let _ = writeln!(main, "    for (i = 0; i < {rows}; i++) {{");
    for (function, count) in functions {
        let second = if *function == "probabilities" { "" } else { ", b" };
        let _ = writeln!(main, "        {name}_{function}(x[i], a{second});");
        for array in ["a", "b"].iter().take(if second.is_empty() { 1 } else { 2 }) {
            (0..*count).for_each(|p| {
                let _ = writeln!(main, "        printf(\"%.17g \", {array}[{p}]);");
            });
        }
    }
    main.push_str("        printf(\"\\n\");\n    }\n    return 0;\n}\n");
    std::fs::write(folder.join("main.c"), main).unwrap();
    let flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"];
    let compiled = Command::new("cc")
        .args(flags)
        .args(["main.c", "-o", "main", "-lm"])
        .current_dir(folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr).into_owned();
    assert!(compiled.status.success(), "{name}: {}", errors.chars().take(2000).collect::<String>());
    let out = Command::new(folder.join("main")).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().map(|line| line.split_whitespace().map(|v| v.parse().unwrap()).collect()).collect()
}

fn columns(all: &[Vec<f64>], from: usize, count: usize) -> Vec<Vec<f64>> {
    all.iter().map(|row| row[from..from + count].to_vec()).collect()
}

fn compare(folder: &Path, case: &str, fitted: &Fitted) {
    let export = Export::new(fitted).unwrap();
    let header = export.to_c("model_1").unwrap();
    if case == "wide variances of two functions" {
        assert!(header.contains("model_1_solution(") && header.contains("model_1_image("));
    }
    let x = rows_for(fitted.input_names.len());
    let outputs = export.outputs();
    let count =
        |name: &str| outputs.iter().find(|own| own.name == name).map(|own| own.columns.len());
    let latents = count("latent_mean").unwrap();
    let mut functions = vec![("latent", latents)];
    functions.extend(count("mean").map(|p| ("predict", p)));
    functions.extend(count("probabilities").map(|c| ("probabilities", c)));
    let found = run(folder, &header, "model_1", &x, &functions);
    let pair = [columns(&found, 0, latents), columns(&found, latents, latents)];
    assert_same(fitted, &x, [&pair[0], &pair[1]], Of::Latent, 1e-8, case);
    if let Some(p) = count("mean") {
        let pair = [columns(&found, 2 * latents, p), columns(&found, 2 * latents + p, p)];
        assert_same(fitted, &x, [&pair[0], &pair[1]], Of::Observations, 1e-8, case);
    }
    if count("probabilities").is_some() {
        let expected = fitted.predict_proba(x.as_ref()).unwrap();
        for (i, row) in found.iter().enumerate() {
            assert!(
                (0..2).all(|c| (row[2 * latents + c] - expected[(i, c)]).abs() < 1e-10),
                "{case} {i}"
            );
        }
    }
}

#[test]
fn compiled_headers_give_what_models_give() {
    let folder = tempfile::tempdir().unwrap();
    for (case, fitted) in ALL.iter() {
        compare(folder.path(), case, fitted);
    }
}

#[test]
fn two_headers_and_unused_functions_fit_into_one_source() {
    let folder = tempfile::tempdir().unwrap();
    let (_, fitted) = &ALL[1];
    let export = Export::new(fitted).unwrap();
    let both = export.to_c("first").unwrap() + &export.to_c("second").unwrap();
    let x = rows_for(3);
    let found = run(folder.path(), &(both.clone() + &both), "second", &x, &[("predict", 1)]);
    let (mean, _) = fitted.predict(x.as_ref(), Of::Observations).unwrap();
    assert!((found[0][0] - mean[(0, 0)]).abs() < 1e-8 * mean[(0, 0)].abs());
}

/// Names of columns are whatever a table has.
#[test]
fn hostile_names_do_not_leave_their_comment() {
    let folder = tempfile::tempdir().unwrap();
    let mut fitted = ALL[0].1.clone();
    let hostile = "a */ #error \" /* \n#error\\\n??/\u{202e}";
    fitted.columns.iter_mut().for_each(|column| column.name = hostile.into());
    fitted.target_names = vec![hostile.into()];
    let header = Export::new(&fitted).unwrap().to_c("model").unwrap();
    let x = rows_for(3);
    let found = run(folder.path(), &header, "model", &x, &[("predict", 1)]);
    assert_eq!(found.len(), x.nrows());
}

#[test]
fn a_header_that_is_too_large_is_refused_with_what_helps() {
    let x = crate::models::inputs(2010);
    let y = Mat::from_fn(2010, 1, |i, _| crate::models::target(&x, i));
    let mut own = crate::models::options("matern32", "exact");
    own.train.max_iterations = 0;
    let fitted = crate::models::learnt(x, y, &own);
    let error = Export::new(&fitted).unwrap().to_c("large").unwrap_err().to_string();
    assert!(error.contains(" numbers, some ") && error.contains("--inducing 500"), "{error}");
}
