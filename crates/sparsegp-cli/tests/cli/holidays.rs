//! Effects of holidays.

use crate::support::{Folder, column, texts};

const START: f64 = 18_630.0;

fn day(i: usize) -> String {
    sparsegp::data::date_text(START + i as f64)
}

/// 300 days of sales that are higher by 30 every 40th day, and by 12 the day after; the next such day is day 300.
fn folder() -> Folder {
    let folder = Folder::new();
    let row = |i: usize| {
        let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
        let wave = (i as f64 / 150.0 * std::f64::consts::TAU).sin();
        let fair = [30.0, 12.0].get((i + 20) % 40).copied().unwrap_or(0.0);
        format!("{},{:.4}\n", day(i), 200.0 + 20.0 * wave + fair + 3.0 * noise)
    };
    folder.write("sales.csv", "day,sales\n".to_owned() + &(0..300).map(row).collect::<String>());
    let fairs: String = (0..8).map(|k| format!("{},fair,1\n", day(20 + 40 * k))).collect();
    folder.write("fairs.csv", format!("date,name,after\n{fairs}"));
    folder
}

const FIT: &str = "fit sales.csv --target sales --holidays fairs.csv --kernel matern52 --max-iterations 60 -o m.st";

#[test]
fn days_to_come_have_the_effects_of_days_before() {
    let folder = folder();
    let fitted = folder.ok(FIT);
    assert!(fitted.out.contains("with the holidays fair, fair +1"), "{}", fitted.out);
    let run = folder.ok("forecast m.st sales.csv --horizon 3 --terms");
    let mean = column(&run.out, "mean");
    assert!(
        (mean[0] - mean[2] - 30.0).abs() < 4.0 && (mean[1] - mean[2] - 12.0).abs() < 4.0,
        "{mean:?}"
    );
    // the term of the holidays is nothing on other days
    let term = column(&run.out, "holidays_mean");
    assert!(term[0] > 20.0 && term[2].abs() < 1e-9, "{term:?}");
    assert!(run.err.contains("end with 2021-10-31"), "{}", run.err);
    // by a table it is the same
    let days = texts(&run.out, "day").join("\n");
    folder.write("next.csv", format!("day\n{days}\n"));
    let predicted = folder.ok("predict m.st next.csv --id day --terms");
    assert_eq!(predicted.out, run.out);
    assert!(predicted.err.contains("end with 2021-10-31"), "{}", predicted.err);
    folder.write("early.csv", format!("day\n{}\n", day(40)));
    assert!(!folder.ok("predict m.st early.csv").err.contains("holidays"));
    folder.ok("forecast m.st sales.csv --horizon 5 -o f.csv --plot f.svg");
    let shown = folder.ok("inspect m.st");
    assert!(shown.out.contains("fair +1"), "{}", shown.out);
}

#[test]
fn backtests_comparisons_and_updates_know_holidays() {
    let folder = folder();
    let options = "--kernel matern52 --max-iterations 20";
    let line =
        format!("backtest sales.csv --target sales --horizon 20 --cutoffs 2 --parts 1 {options}");
    let rmse = |line: &str| {
        let report = folder.json(line);
        report["scores"].as_array().unwrap().last().unwrap()["model"]["RMSE"].as_f64().unwrap()
    };
    let (with, without) = (rmse(&format!("{line} --holidays fairs.csv")), rmse(&line));
    assert!(with < 0.7 * without, "{with} {without}");
    let compared = folder.json(&format!(
        "compare sales.csv --target sales --folds 2 --ordered day -- --holidays fairs.csv {options}"
    ));
    assert_eq!(compared["choices"][0]["done"], 2);
    folder.ok(FIT);
    folder.write("more.csv", format!("day,sales\n{},230\n{},212\n", day(300), day(301)));
    folder.ok("update m.st more.csv -o n.st");
    folder.ok("forecast n.st more.csv --horizon 2 --step 1d");
}

#[test]
fn calendars_and_methods_that_do_not_fit_are_refused() {
    let folder = folder();
    let fit = "fit sales.csv --target sales --holidays";
    folder.write("bad.csv", "date,name\nsoon,fair\n");
    folder.refused(1, &format!("{fit} bad.csv"), &["row 1, column `date`", "soon"]);
    folder.write("bad.csv", "day,name\n2021-05-01,fair\n");
    folder.refused(1, &format!("{fit} bad.csv"), &["column `date`"]);
    folder.refused(1, &format!("{fit} none.csv"), &["none.csv"]);
    folder.refused(1, &format!("{fit} fairs.csv --method markov"), &["holidays", "`markov`"]);
    folder.refused(1, &format!("{fit} fairs.csv --method deep"), &["holidays", "deep"]);
    folder.write("numbers.csv", "t,y\n1,2\n2,3\n3,5\n");
    folder.refused(1, "fit numbers.csv --target y --holidays fairs.csv", &["`t` is not a date"]);
}
