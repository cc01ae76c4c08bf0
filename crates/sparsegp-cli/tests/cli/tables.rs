//! What the table itself does to a fit: its order, equal rows, constant targets, codes for missing values, outliers.

use crate::support::{Folder, close, column, number, plane_rows};
use std::io::Write;

/// Rows sorted by class: P(yes | x) = 1/(1 + exp(−3 sin 2x)), x on a grid of a Weyl sequence.
fn sorted_by_class(rows: usize) -> String {
    let mut lines: Vec<(bool, f64)> = (0..rows)
        .map(|i| {
            let x = (i as f64 * 0.618_033_988_749_895).fract() * 4.0 - 2.0;
            let u = ((i as f64 * 12.9898).sin() * 43_758.545).rem_euclid(1.0);
            (u < 1.0 / (1.0 + (-3.0 * (2.0 * x).sin()).exp()), (x * 1e4).round() / 1e4)
        })
        .collect();
    lines.sort_by_key(|line| line.0);
    lines.into_iter().fold("x,y\n".to_owned(), |text, (yes, x)| {
        text + &format!("{x},{}\n", if yes { "yes" } else { "no" })
    })
}

/// More rows than the buffer of minibatches holds: streamed they are learnt as in memory.
#[test]
fn a_sorted_file_is_streamed_as_well_as_it_is_learnt_in_memory() {
    let folder = Folder::new();
    let text = sorted_by_class(265_000);
    folder.write("s.csv", &text);
    let test: String = text
        .lines()
        .enumerate()
        .filter(|(i, _)| i % 100 == 0)
        .map(|(_, l)| format!("{l}\n"))
        .collect();
    folder.write("t.csv", &test);
    let fit = "--target y --inducing 15 --epochs 1 --batch 2000 --pilot 200 -o m";
    let loss = |more: &str| {
        folder.ok(&format!("fit s.csv {fit} {more}"));
        number(&folder.json("score m t.csv"), "/scores/overall/log_loss")
    };
    let (streamed, memory) = (loss("--stream"), loss(""));
    assert!((streamed - memory).abs() < 0.02, "{streamed} and {memory}");
    // compressed, it can only be read in order
    let file = std::fs::File::create(folder.path("s.csv.gz")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
    let quick = fit.replace("15", "3").replace("--pilot 200", "--pilot 0");
    let run = folder.ok(&format!("fit s.csv.gz {quick} --stream"));
    assert!(run.err.contains("s.csv.gz are in an order: `y`"), "{}", run.err);
    assert!(run.err.contains("decompress it"), "{}", run.err);
}

#[test]
fn equal_rows_count_as_often_as_they_are_there() {
    let folder = Folder::new();
    let rows = plane_rows(25);
    let line = |i: usize| format!("{},{},{}", rows[i][0], rows[i][1], rows[i][2].exp());
    let times = |i: usize| 1 + i % 3;
    let (mut repeated, mut weighted) = ("a,b,y\n".to_owned(), "a,b,y,w\n".to_owned());
    for i in 0..25 {
        (0..times(i)).for_each(|_| repeated += &format!("{}\n", line(i)));
        weighted += &format!("{},{}\n", line(i), times(i));
    }
    folder.write("r.csv", repeated);
    folder.write("w.csv", weighted);
    folder.ok("fit r.csv --target y -o r");
    folder.ok("fit w.csv --target y --weight w -o w");
    let (one, other) = (folder.json("inspect r"), folder.json("inspect w"));
    // the same table in other words, to the bit
    assert_eq!(number(&one, "/objective"), number(&other, "/objective"));
    assert_eq!(number(&one, "/rows"), 49.0);
    assert_eq!(folder.ok("predict r r.csv").out, folder.ok("predict w r.csv").out);
    // continuing needs no column of weights
    folder.ok("fit r.csv --from r -o again --max-iterations 3");
    folder.write("same.csv", "a,b,y\n".to_owned() + &"1.5,2,3\n".repeat(50));
    folder.ok("fit same.csv --target y -o same");
    close(column(&folder.ok("predict same same.csv").out, "mean")[0], 3.0, 1e-6);
}

#[test]
fn a_constant_target_beside_another() {
    let folder = Folder::new();
    let rows = plane_rows(60);
    let text = |wide: bool| {
        let head = if wide { "a,b,c,y\n" } else { "a,b,y\n" };
        rows.iter().fold(head.to_owned(), |text, [a, b, y, _]| {
            text + &if wide { format!("{a},{b},-7,{y}\n") } else { format!("{a},{b},{y}\n") }
        })
    };
    folder.write("wide.csv", text(true));
    folder.write("alone.csv", text(false));
    let run = folder.ok("fit wide.csv --target c --target y -o wide");
    assert!(run.err.contains("target column `c` is -7 in all rows"), "{}", run.err);
    folder.ok("fit alone.csv --target y -o alone");
    let objective = |name: &str| number(&folder.json(&format!("inspect {name}")), "/objective");
    close(objective("wide"), objective("alone"), 1e-9);
    let (wide, alone) =
        (folder.ok("predict wide wide.csv").out, folder.ok("predict alone wide.csv").out);
    for (name, own) in [("y_mean", "mean"), ("y_sd", "sd")] {
        let pairs = column(&wide, name).into_iter().zip(column(&alone, own));
        pairs.for_each(|(a, b)| close(a, b, 1e-6));
    }
    assert!(column(&wide, "c_mean").iter().all(|v| *v == -7.0));
    assert!(column(&wide, "c_sd").iter().all(|v| *v < 1e-9));
    folder.ok("score wide wide.csv");
}

#[test]
fn codes_for_missing_values_and_outliers_are_said() {
    let folder = Folder::new();
    let rows = plane_rows(120);
    let code = rows.iter().enumerate().fold("a,b,y\n".to_owned(), |text, (i, [a, b, y, _])| {
        let a = if i % 50 == 7 { -9999.0 } else { *a };
        text + &format!("{a},{b},{y}\n")
    });
    folder.write("code.csv", code);
    for more in ["", "--stream"] {
        let run = folder.ok(&format!("fit code.csv --target y --max-iterations 5 {more}"));
        assert!(run.err.contains("input column `a` holds -9999 in 3 of 120 rows"), "{}", run.err);
        assert!(run.err.contains("--missing drop"), "{}", run.err);
    }
    let gross = rows.iter().enumerate().fold("a,b,y\n".to_owned(), |text, (i, [a, b, y, _])| {
        text + &format!("{a},{b},{}\n", if i == 40 { 1e6 } else { *y })
    });
    folder.write("gross.csv", gross);
    let run = folder.ok("fit gross.csv --target y --max-iterations 2");
    assert!(run.err.contains("target column `y` holds 1000000 in 1 of 120 rows"), "{}", run.err);
    assert!(run.err.contains("`student-t`"), "{}", run.err);
    let run = folder.ok("fit gross.csv --target y --likelihood student-t -o m");
    assert!(run.err.contains("holds 1000000 in 1 of 120 rows"), "{}", run.err);
    let mean = column(&folder.ok("predict m gross.csv").out, "mean");
    let errors = rows.iter().zip(&mean).map(|([.., y, _], m)| (y - m).powi(2));
    let rmse = (errors.sum::<f64>() / 120.0).sqrt();
    assert!(rmse < 0.25, "{rmse}");
}
