//! Forecasts judged from several cut-offs on.

use crate::support::{Folder, column};
use serde_json::Value;

/// Weeks of sales with a yearly wave; from row `change` on by other numbers.
fn weeks(n: usize, change: usize) -> Vec<String> {
    let row = |i: usize| {
        let day = sparsegp::data::date_text(18_630.0 + 7.0 * i as f64);
        let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
        let wave = (i as f64 * 7.0 / 365.25 * std::f64::consts::TAU).sin();
        let y = if i < change { 300.0 + 40.0 * wave + 10.0 * noise } else { 50.0 * noise - 9.0 };
        format!("{day},{y:.4}\n")
    };
    (0..n).map(row).collect()
}

fn table(rows: &[String]) -> String {
    "day,sales\n".to_owned() + &rows.concat()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is not a number"))
}

const LINE: &str = "backtest sales.csv --target sales --horizon 13w --cutoffs 3 --season 1y --kernel matern52 \
                    --max-iterations 30";

#[test]
fn scores_are_those_of_the_predictions_that_are_written() {
    let folder = Folder::new();
    folder.write("sales.csv", table(&weeks(150, 150)));
    let report = folder.json(&format!("{LINE} -o p.csv"));
    let times: Vec<&str> = report["cutoffs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["time"].as_str().unwrap())
        .collect();
    // the last of 150 weeks from 2021-01-03 on is 2023-11-12
    assert_eq!(times, ["2023-02-12", "2023-05-14", "2023-08-13"]);
    let text = folder.read("p.csv");
    assert!(
        text.starts_with(
            "cutoff,ahead,day,sales,mean,sd,q0.025,q0.975\n2023-02-12,3.25w,2023-02-19,"
        ),
        "{text}"
    );
    let [y, mean, sd] = ["sales", "mean", "sd"].map(|name| column(&text, name));
    assert_eq!(y.len(), 39);
    let all = report["scores"].as_array().unwrap().last().unwrap();
    assert_eq!((&all["ahead"], &all["rows"]), (&"all".into(), &39.into()));
    let errors: Vec<f64> = y.iter().zip(&mean).map(|(y, m)| y - m).collect();
    let rmse = (errors.iter().map(|e| e * e).sum::<f64>() / 39.0).sqrt();
    assert!((number(&all["model"]["RMSE"]) / rmse - 1.0).abs() < 1e-9);
    let nlpd = errors
        .iter()
        .zip(&sd)
        .map(|(e, s)| (s * std::f64::consts::TAU.sqrt()).ln() + 0.5 * (e / s).powi(2));
    let nlpd = nlpd.sum::<f64>() / 39.0;
    assert!((number(&all["model"]["NLPD"]) - nlpd).abs() < 1e-9);
    // by hand: the last value, and the one 52 weeks before
    let known: Vec<f64> = column(&folder.read("sales.csv"), "sales");
    let simple = |of: &dyn Fn(usize, usize) -> f64| {
        let rows =
            [110_usize, 123, 136].into_iter().flat_map(|cut| (1..14).map(move |i| (cut, cut + i)));
        let squares: Vec<f64> =
            rows.map(|(cut, row)| (known[row] - of(cut, row)).powi(2)).collect();
        (squares.iter().sum::<f64>() / 39.0).sqrt()
    };
    let [last, season] = [simple(&|cut, _| known[cut]), simple(&|_, row| known[row - 52])];
    assert!((number(&all["simple"]["last value"]["RMSE"]) / last - 1.0).abs() < 1e-9);
    assert!((number(&all["simple"]["value 1y before"]["RMSE"]) / season - 1.0).abs() < 1e-9);
    assert!(rmse < season && season < last, "{rmse} {season} {last}");
    // parts: 3.25 weeks hold three rows of thirteen, the next four of them ten
    let rows: Vec<u64> = report["scores"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["rows"].as_u64().unwrap())
        .collect();
    assert_eq!(rows, [9, 9, 9, 12, 39]);
    let shown = folder.ok(LINE);
    assert!(
        shown.out.contains("to 3.25w")
            && shown.out.contains("below that of the best simple forecast, value 1y before")
    );
}

#[test]
fn nothing_after_a_cut_off_is_seen() {
    let folder = Folder::new();
    let line = "backtest sales.csv --target sales --horizon 13w --cutoffs 2 --max-iterations 15 --season 1y -o p.csv";
    let first = |rows: &[String]| {
        folder.write("sales.csv", table(rows));
        folder.ok(line);
        let text = folder.read("p.csv");
        let lines = text.lines().filter(|own| own.starts_with("2023-05-14,"));
        let without = lines.map(|own| {
            let cells: Vec<&str> = own.split(',').collect();
            // all but what was observed
            [&cells[..3], &cells[4..]].concat().join(",")
        });
        without.collect::<Vec<_>>()
    };
    // other numbers after the first cut-off, and another order of rows
    let same = first(&weeks(150, 150));
    assert_eq!(same.len(), 13);
    assert_eq!(first(&weeks(150, 124)), same);
    let mut rows = weeks(150, 150);
    rows[124..].reverse();
    let mut found = first(&rows);
    found.reverse();
    assert_eq!(found, same);
}

#[test]
fn times_may_be_unsorted_repeated_missing_or_numbers() {
    let folder = Folder::new();
    let wave = |i: usize| (0.4 * i as f64).sin() + 0.1 * (7.0 * i as f64).cos();
    let mut rows: Vec<String> =
        (0..60).map(|i| format!("{},{:.5}\n", 0.5 * i as f64, wave(i))).collect();
    rows.push("10,0.2\n".into());
    rows.push(",0.7\n".into());
    rows.swap(3, 50);
    folder.write("wave.csv", "t,y\n".to_owned() + &rows.concat());
    let run = folder
        .ok("backtest wave.csv --target y --horizon 6 --cutoffs 4 --parts 2 --kernel rbf -o p.csv");
    assert!(
        run.err.contains("1 row without a time in `t` left out (row 62: an empty cell)"),
        "{}",
        run.err
    );
    assert!(run.out.contains("to 3 steps") && run.out.contains("to 6 steps"), "{}", run.out);
    assert_eq!(column(&folder.read("p.csv"), "t").len(), 24);
    // a blank target is refused by its cell, or left out
    rows.push("3.25,\n".into());
    folder.write("gap.csv", "t,y\n".to_owned() + &rows.concat());
    let line = "backtest gap.csv --target y --horizon 6 --cutoffs 2 --kernel rbf";
    folder.refused(1, line, &["row 63", "`y`"]);
    folder.ok(&format!("{line} --missing drop"));
}

#[test]
fn counts_have_their_own_scores_and_pictures() {
    let folder = Folder::new();
    let rows: String = (0..80).map(|i| format!("{i},{}\n", 4 + (i * 7) % 5)).collect();
    folder.write("calls.csv", format!("t,n\n{rows}"));
    let run = folder.ok(
        "backtest calls.csv -t n --horizon 8 --cutoffs 2 --parts 1 --likelihood poisson --plot b.svg --inducing 10",
    );
    assert!(run.out.contains("deviance") && run.out.contains("last value"), "{}", run.out);
    let picture = folder.read("b.svg");
    assert!(
        picture.contains("cut-offs") && picture.contains("n: 2 cut-offs, horizon 8"),
        "{picture}"
    );
}

#[test]
fn other_inputs_are_named_and_time_must_be_known() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{},{:.4}\n", i, (i * 7) % 11, (0.3 * i as f64).sin());
    folder.write("two.csv", "t,x,y\n".to_owned() + &(0..50).map(row).collect::<String>());
    let line = "backtest two.csv --target y --horizon 5 --cutoffs 2 --kernel rbf";
    folder.refused(2, line, &["which column is time", "t, x", "--time"]);
    let run = folder.ok(&format!("{line} --time t"));
    assert!(run.err.contains("the other inputs (x)"), "{}", run.err);
    let run = folder.ok(&format!("{line} --ignore x"));
    assert!(!run.err.contains("other inputs"), "{}", run.err);
}

#[test]
fn what_cannot_be_judged_is_refused_by_name() {
    let folder = Folder::new();
    folder.write("sales.csv", table(&weeks(40, 40)));
    let refused = |code, line: &str, words: &[&str]| {
        folder.refused(code, &format!("backtest sales.csv --target sales {line}"), words);
    };
    refused(1, "--horizon 2moons", &["horizon `2moons`", "`52w`"]);
    refused(1, "--horizon 2y", &["horizon `2y`", "2021-01-03", "shorter"]);
    refused(1, "--horizon 13w --cutoffs 9", &["cutoffs 9", "at most 2 fit"]);
    refused(1, "--horizon 13w --every often", &["every `often`"]);
    refused(2, "--horizon 4w --split 0.1", &["--split", "one training"]);
    refused(2, "--horizon 4w --checkpoint c.st", &["--checkpoint"]);
    refused(2, "--horizon 4w --plot b.txt", &["--plot", "SVG or PNG"]);
    refused(2, "--horizon 4w -o sales.csv", &["overwritten"]);
    refused(2, "--horizon 4w --classes", &["holds classes"]);
    refused(2, "--horizon 4w --cutoffs 0", &["cutoffs"]);
    let run = folder.ok("help backtest");
    assert!(run.out.contains("--season") && !run.out.contains("--split "), "{}", run.out);
}
