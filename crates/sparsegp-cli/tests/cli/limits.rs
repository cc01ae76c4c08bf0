//! Bounds of hyperparameters and limits of time.

use crate::support::{Folder, number, snelson};

#[test]
fn bounds_in_specifications_hold_and_are_warned_of() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let run = folder.ok(
        "fit s.csv --target y -o m.safetensors --kernel 'rbf(lengthscales={min: 0.6, max: 10})' \
         --likelihood 'gaussian(variance={min: 0.2})' --mean '{\"type\": \"constant\", \"constant\": {\"min\": 0.5}}'",
    );
    for path in ["kernel.lengthscales", "likelihood.variance", "mean.constant"] {
        assert!(run.err.contains(&format!("{path} ended at its bound")), "{path}: {}", run.err);
    }
    // the model keeps them
    let shown = folder.ok("inspect m.safetensors").out;
    assert!(shown.contains("interval (0.6, 10)"), "{shown}");
    let run = folder.ok("fit s.csv --target y --kernel 'rbf(lengthscales={min: 0.01, max: 10})'");
    assert!(!run.err.contains("bound"), "{}", run.err);
}

#[test]
fn bounds_that_cannot_be_are_refused() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    for (options, parts) in [
        (
            "--kernel 'rbf(lengthscales={min: 2, max: 1})'",
            ["lengthscales", "`min` is 2 and `max` is 1"],
        ),
        ("--kernel 'rbf(variance={min: -1})'", ["variance", "`min` is -1"]),
        ("--kernel 'rbf(lengthscales={value: 3, max: 1})'", ["lengthscales", "3 is outside"]),
        ("--likelihood 'gaussian(variance={min: 0})'", ["variance", "`min` is 0"]),
        ("--mean '{\"type\": \"constant\", \"constnat\": 1}'", ["constnat", "constant"]),
    ] {
        folder.refused(2, &format!("fit s.csv --target y {options}"), &parts);
    }
}

/// A limit that is over at once: the start is what there is, it is saved and scored, and with a checkpoint the same command
/// resumes.
#[test]
fn a_time_limit_ends_a_training_with_what_there_is() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let fit = "fit s.csv --target y -o m.safetensors --time-limit 1e-9";
    let json = folder.json(fit);
    let stopped = json["model"]["training"]["stopped"].as_str().unwrap_or_default();
    assert!(stopped.contains("stopped at the time limit of 0 s"), "{json}");
    assert_eq!(json["model"]["training"]["converged"], false);
    assert!(number(&json, "/scores/train/overall/rmse") > 0.0);
    assert!(folder.files().contains(&"m.safetensors".to_owned()));
    let out = folder.ok(&format!("{fit} --checkpoint c")).out;
    assert!(out.contains("the same training resumes from its checkpoint"), "{out}");
    for (limit, text) in
        [("0", "positive"), ("-3s", "positive"), ("5 parsecs", "min"), ("inf", "positive")]
    {
        folder.refused(
            2,
            &format!("fit s.csv --target y '--time-limit={limit}'"),
            &["--time-limit", text],
        );
    }
    for limit in ["90", "90s", "5min", "1.5h"] {
        folder.ok(&format!("fit s.csv --target y --max-iterations 1 --time-limit {limit}"));
    }
}

/// Days of which most are missing.
#[test]
fn a_weekly_period_of_few_days_is_found() {
    let folder = Folder::new();
    let mut state = 5_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut table = "day,y\n".to_owned();
    for day in 0..365 {
        if uniform() < 0.27 {
            let phase = std::f64::consts::TAU * f64::from(day) / 7.0;
            let y = phase.sin() + 0.3 * (2.0 * phase).cos() + 0.5 * (uniform() - 0.5);
            table += &format!("{day},{y}\n");
        }
    }
    folder.write("d.csv", table);
    let json = folder.json("fit d.csv --target y --kernel periodic");
    let rows = json["model"]["parameters"].as_array().expect("parameters");
    let period = rows.iter().find(|row| row["path"] == "kernel.period").expect("a period");
    let period = period["data_units"][0].as_f64().expect("a number");
    assert!((period / 7.0 - 1.0).abs() < 2e-3, "{period}");
}
