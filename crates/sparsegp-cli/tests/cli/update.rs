//! New rows for saved models.

use crate::support::Folder;
use std::process::Stdio;
use std::time::Duration;

fn row(i: usize, shift: f64) -> String {
    let x = shift + (i as f64 * 0.618_033_988_749_895).fract() * 8.0;
    let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
    format!("{x:.5},{:.5}\n", 20.0 + 5.0 * x.sin() + noise)
}

fn rows(n: usize, from: usize, shift: f64) -> String {
    (from..from + n).map(|i| row(i, shift)).collect()
}

#[test]
fn rows_are_taken_up_once_and_old_ones_are_not_needed() {
    let folder = Folder::new();
    folder.write("a.csv", format!("x,y\n{}", rows(120, 0, 0.0)));
    folder.write("b.csv", format!("x,y\n{}", rows(100, 500, 6.0)));
    folder.ok("fit a.csv --target y --inducing 12 -o m.safetensors");
    let before = folder.json("score m.safetensors b.csv");
    let report = folder.json("update m.safetensors b.csv -o u.safetensors");
    assert_eq!((&report["rows"], &report["rows_in_all"]), (&100.into(), &220.into()));
    assert!(report["added_points"].as_u64().unwrap() >= 1 && report["uncovered"] == 0);
    // the scores are those of the model that has not seen the rows
    let rmse = |json: &serde_json::Value| json["rmse"].as_f64().unwrap();
    let (own, seen) = (&report["before"]["overall"], &before["scores"]["overall"]);
    assert!((rmse(own) - rmse(seen)).abs() < 1e-12, "{report} {before}");
    for table in ["a.csv", "b.csv"] {
        let after = folder.json(&format!("score u.safetensors {table}"));
        let after = &after["scores"]["overall"];
        // the noise has a standard deviation of 0.29
        assert!(rmse(after) < 0.36, "{table} {after}");
    }
    // once
    folder.refused(
        2,
        "update u.safetensors b.csv -o v.safetensors",
        &["100 rows before", "--again"],
    );
    folder.refused(2, "update m.safetensors a.csv -o v.safetensors", &["fitted on", "--again"]);
    assert!(!folder.path("v.safetensors").exists());
    let twice = folder.json("update u.safetensors b.csv --again -o v.safetensors");
    assert_eq!(twice["rows_in_all"], 320);
    // over itself, and the same bytes but for the clock
    folder.ok("update m.safetensors b.csv -o m.safetensors");
    let predicted = |model: &str| folder.ok(&format!("predict {model} b.csv")).out;
    assert_eq!(predicted("m.safetensors"), predicted("u.safetensors"));
}

#[test]
fn a_table_that_grows_is_followed() {
    let folder = Folder::new();
    let mut table = format!("x,y\n{}", rows(80, 0, 0.0));
    folder.write("log.csv", &table);
    folder.ok("fit log.csv --target y --inducing 12 --split 0.1 -o m.safetensors");
    for (step, from) in [(40, 80), (30, 120)] {
        table += &rows(step, from, 3.0);
        folder.write("log.csv", &table);
        let report = folder.json("update m.safetensors log.csv -o m.safetensors");
        assert_eq!(report["rows"], step, "{report}");
        folder.refused(2, "update m.safetensors log.csv -o m.safetensors", &["no further rows"]);
    }
    // what the fit held out is still unseen
    let run = folder.ok("score m.safetensors log.csv");
    assert!((run.out + &run.err).contains("8 rows"), "{}", run.err);
}

#[test]
fn points_are_chosen_by_correlation() {
    let folder = Folder::new();
    folder.write("a.csv", format!("x,y\n{}", rows(150, 0, 0.0)));
    let fit = |how: &str| {
        let line = "fit a.csv --target y --method titsias2009 --max-iterations 20";
        let run =
            folder.ok(&format!("{line} --inducing 40 --inducing-from '{how}' -o m.safetensors"));
        let points = folder.json("inspect m.safetensors");
        (points["inducing_points"].as_u64(), run.err, points.to_string())
    };
    let (few, said, all) = fit("oips(0.5)");
    assert!(said.contains("are enough for correlations of 0.5"), "{said} {all}");
    let (more, ..) = fit("oips(0.95)");
    assert!(few < more, "{few:?} {more:?} {all}");
    let line = "fit a.csv --target y --inducing 9 --inducing-from 'oips(1.5)'";
    folder.refused(2, line, &["between 0 and 1"]);
}

/// Whenever an update is killed, the model is the old one or the new one.
#[test]
fn a_killed_update_leaves_a_model() {
    let folder = Folder::new();
    folder.write("a.csv", format!("x,y\n{}", rows(120, 0, 0.0)));
    folder.write("b.csv", format!("x,y\n{}", rows(2000, 500, 0.0)));
    folder.ok("fit a.csv --target y --inducing 30 -o m.safetensors");
    let (mut old, mut killed) = (120, 0);
    for wait in 0..12 {
        let mut command = folder.command("update m.safetensors b.csv --again -o m.safetensors");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(3 * wait));
        child.kill().unwrap(); // SIGKILL
        killed += u32::from(!child.wait().unwrap().success());
        let rows = folder.json("inspect m.safetensors")["rows"].as_u64().unwrap();
        assert!([old, old + 2000].contains(&rows), "{rows} after {old}");
        old = rows;
    }
    assert!(killed > 0, "every update was done before it was killed");
}

/// A broken sensor's reading is one row: it takes neither the digits nor the evidence of the others.
#[test]
fn one_absurd_input_spoils_no_other_row() {
    let folder = Folder::new();
    folder.write("a.csv", format!("x,y\n{}", rows(120, 0, 0.0)));
    folder.ok("fit a.csv --target y --inducing 12 -o m.safetensors");
    let good = rows(100, 500, 0.0);
    folder.write("good.csv", format!("x,y\n{good}"));
    let plain = folder.json("update m.safetensors good.csv -o u.safetensors");
    for absurd in ["1e14", "-1e17", "1e20"] {
        folder.write("b.csv", format!("x,y\n{good}{absurd},20\n"));
        let report = folder.json("update m.safetensors b.csv -o u.safetensors");
        let bound = |report: &serde_json::Value| report["bound"].as_f64().unwrap();
        // one more row of the prior's density
        let more = bound(&report) - bound(&plain);
        assert!((-10.0..1.0).contains(&more), "{absurd}: {more} nats more");
        let after = folder.json("score u.safetensors good.csv");
        let rmse = after["scores"]["overall"]["rmse"].as_f64().unwrap();
        assert!(rmse < 0.36, "{absurd}: {rmse}");
    }
}

#[test]
fn what_cannot_be_updated_is_refused() {
    let folder = Folder::new();
    folder.write("a.csv", format!("x,y\n{}", rows(60, 0, 0.0)));
    folder.write("b.csv", format!("x,y\n{}", rows(20, 90, 0.0)));
    folder.write("bad.csv", "x,y\n1,2\n3,\n");
    folder.ok("fit a.csv --target y --likelihood laplace --method tvgp -o e.safetensors");
    folder.refused(1, "update e.safetensors b.csv -o n.safetensors", &["--inducing"]);
    // exact inference has the rows for points
    folder.ok("fit a.csv --target y -o x.safetensors");
    let grown = folder.json("update x.safetensors b.csv -o n.safetensors");
    assert!(grown["points"].as_u64().unwrap() >= 60, "{grown}");
    folder.ok("fit a.csv --target y --inducing 8 -o m.safetensors");
    folder.refused(1, "update m.safetensors bad.csv -o n.safetensors", &["row 2", "`y`"]);
    let report = folder.json("update m.safetensors bad.csv --missing drop -o n.safetensors");
    assert_eq!((&report["rows"], &report["dropped"]), (&1.into(), &1.into()));
    for wrong in ["--forget 0", "--forget 1.5", "--correlation 1"] {
        let line = format!("update m.safetensors b.csv {wrong} -o n.safetensors");
        let name = wrong.split_whitespace().next().unwrap().trim_start_matches("--");
        folder.refused(2, &line, &[name]);
    }
    let few = folder.json("update m.safetensors b.csv --correlation 0 -o n.safetensors");
    assert_eq!(few["added_points"], 0);
    folder.refused(2, "update m.safetensors b.csv -o b.csv", &["overwritten"]);
}
