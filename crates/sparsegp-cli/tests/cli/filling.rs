//! Missing inputs that are filled.

use crate::support::{Folder, column, number};

/// Cars: the mileage falls with power, which is missing in a seventh of the rows (those are better by 5), and depends on the
/// make, which is missing in some.
fn cars() -> String {
    let row = |i: usize| {
        let power = 50.0 + 100.0 * (i as f64 * 0.618_033_988_749_895).fract();
        let gone = i % 7 == 3;
        let make = ["a", "b", ""][i % 3];
        let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
        let mean = if gone { 30.0 } else { 40.0 - 0.15 * power };
        let y = mean + [0.0, 4.0, -3.0][i % 3] + noise;
        let power = if gone { "NA".to_owned() } else { format!("{power:.3}") };
        format!("{power},{make},{},{y:.3}\n", i % 5)
    };
    "power,make,doors,mileage\n".to_owned() + &(0..150).map(row).collect::<String>()
}

const FIT: &str = "fit cars.csv --target mileage --kernel matern52 --max-iterations 60 -o m.st";

#[test]
fn rows_with_missing_inputs_are_learnt_from_and_predicted() {
    let folder = Folder::new();
    folder.write("cars.csv", cars());
    let ways = ["`--missing drop`", "`--missing mean`", "`--missing indicator`"];
    folder.refused(1, FIT, &[&["row 3", "column `make`"][..], &ways].concat());
    let run = folder.ok(&format!("{FIT} --missing indicator"));
    assert!(
        run.err.contains("missing cells are filled in `power` (21), `make` (50)"),
        "{}",
        run.err
    );
    // 90 rows are complete
    let shown = folder.ok("inspect m.st").out;
    assert!(shown.contains("where it is missing") && shown.contains("missing, a, b"), "{shown}");
    let rmse = number(&folder.json("score m.st cars.csv"), "/scores/overall/rmse");
    assert!(rmse < 0.5, "{rmse}");
    folder.write("new.csv", "power,make,doors\n,a,1\nNA,b,1\n100,,1\n100,a,1\n");
    let mean = column(&folder.ok("predict m.st new.csv").out, "mean");
    for (found, expected) in mean.iter().zip([30.0, 34.0, 22.0, 25.0]) {
        assert!((found - expected).abs() < 1.0, "{mean:?}");
    }
    // of doors all were known
    folder.write("odd.csv", "power,make,doors\n100,a,\n");
    let learnt = "a model that is fitted with `--missing mean`";
    let parts = ["row 1", "column `doors`", "pass `--missing drop`", learnt];
    folder.refused(1, "predict m.st odd.csv", &parts);
    // targets are not filled
    folder.write("bare.csv", "x,y\n1,2\n2,\n");
    let said = folder.run("fit bare.csv --target y").err;
    assert!(said.contains("`--missing drop`") && !said.contains("indicator"), "{said}");
    folder.ok("explain m.st cars.csv");
    folder.ok("plot m.st cars.csv -o p.svg");
    let options = "--kernel rbf --kernel matern52 --folds 2 -- --max-iterations 20 --missing mean";
    let compared = folder.ok(&format!("compare cars.csv --target mileage {options}"));
    assert!(compared.out.contains("matern52"), "{}", compared.out);
}

#[test]
fn only_categories_are_filled() {
    let folder = Folder::new();
    folder.write("cars.csv", cars());
    folder.refused(1, &format!("{FIT} --missing category"), &["row 4", "column `power`"]);
    let run = folder.ok(&format!("{FIT} --missing category --ignore power"));
    assert!(run.err.contains("filled in `make` (50)"), "{}", run.err);
}

#[test]
fn categories_that_no_training_row_had_are_predicted_where_that_is_asked_for() {
    let folder = Folder::new();
    let row = |i: usize| {
        let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
        let y = [0.0, 4.0, -3.0, 1.0][i % 4] + 0.1 * noise;
        format!("{},{},{y:.3}\n", ["a", "b", "c", "d"][i % 4], i % 7)
    };
    folder.write("t.csv", "make,x,y\n".to_owned() + &(0..80).map(row).collect::<String>());
    folder.ok("fit t.csv --target y --kernel rbf --max-iterations 60 -o m.st");
    folder.write("new.csv", "make,x,y\na,2,0\nz,2,0.5\nq,3,0.5\n");
    folder.refused(
        1,
        "predict m.st new.csv",
        &["row 2", "column `make`", "`z`", "`--unknown ignore`"],
    );
    let run = folder.ok("predict m.st new.csv --unknown ignore");
    assert!(run.err.contains("no training row had: 2 of `make`"), "{}", run.err);
    // between the others, and as uncertain as they are unlike
    let (mean, sd) = (column(&run.out, "mean"), column(&run.out, "sd"));
    assert!(mean[0].abs() < 0.2 && sd[0] < 0.2, "{}", run.out);
    assert!((-3.0..4.0).contains(&mean[1]) && sd[1] > 1.0 && sd[2] > 1.0, "{}", run.out);
    let scored = folder.ok("score m.st new.csv --unknown ignore");
    assert!(scored.err.contains("2 of `make`"), "{}", scored.err);
    let drawn = folder.ok("sample m.st new.csv --unknown ignore --draws 2");
    assert!(drawn.err.contains("2 of `make`"), "{}", drawn.err);
    let quiet = folder.ok("score m.st t.csv --unknown ignore");
    assert!(!quiet.err.contains("no training row had"), "{}", quiet.err);
}

/// Errors of rows with gaps are several times those of whole rows, as the input that is missing matters.
#[test]
fn intervals_of_filled_rows_are_doubted() {
    let folder = Folder::new();
    let row = |i: usize| {
        let part = |step: f64| (i as f64 * step).fract();
        let (area, age) = (100.0 * part(0.618_033_988_749_895), part(0.754_877_666_246_693));
        let y = 3.0 * area + 40.0 * age + 10.0 * part(0.569_840_290_998_053);
        let area = if i % 8 == 5 { String::new() } else { format!("{area:.3}") };
        format!("{area},{age:.4},{y:.3}\n")
    };
    folder
        .write("flats.csv", "area,age,rent\n".to_owned() + &(0..240).map(row).collect::<String>());
    let fit = "fit flats.csv --target rent --kernel rbf --max-iterations 40 -o m.st";
    for way in ["mean", "indicator"] {
        let said = folder.ok(&format!("{fit} --missing {way}")).err;
        let expected =
            "where missing cells were filled (of `area`) the errors of rows that are left out are";
        assert!(said.contains(expected) && said.contains("`--missing drop`"), "{said}");
        assert!(!said.contains("student-t"), "{said}");
    }
    let said = folder.ok(&format!("{fit} --missing drop")).err;
    assert!(!said.contains("missing cells were filled"), "{said}");
}
