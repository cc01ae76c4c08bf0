//! Odd data that are worth a warning and no more.

use crate::support::{Folder, close, column, number, plane_rows, snelson};

/// Fits a table with target `y` and gives what was said on stderr; predictions must be finite.
fn warned(folder: &Folder, table: &str, more: &str) -> String {
    folder.write("d.csv", table);
    let run = folder.ok(&format!("fit d.csv --target y -o m --max-iterations 40 {more}"));
    for name in ["mean", "sd"] {
        let values = column(&folder.ok("predict m d.csv").out, name);
        assert!(values.iter().all(|v| v.is_finite()));
    }
    let score = folder.json("score m d.csv");
    assert!(number(&score, "/scores/overall/nlpd").is_finite());
    folder.ok("inspect m");
    run.err
}

fn table(rows: usize, line: impl Fn(usize, [f64; 4]) -> String) -> String {
    let lines = plane_rows(rows).into_iter().enumerate().map(|(i, row)| line(i, row));
    lines.fold(String::from("a,b,y\n"), |text, line| text + &line + "\n")
}

#[test]
fn constant_columns() {
    let folder = Folder::new();
    let text = warned(&folder, &table(60, |_, [a, _, y, _]| format!("{a},7,{y}")), "");
    assert!(text.contains("input column `b` is constant"), "{text}");
    let text = warned(&folder, &table(60, |_, [a, b, ..]| format!("{a},{b},3")), "--inducing 5");
    assert!(text.contains("target column `y` is constant"), "{text}");
    close(column(&folder.ok("predict m d.csv").out, "mean")[0], 3.0, 1e-6);
}

#[test]
fn inputs_that_are_hardly_meant() {
    let folder = Folder::new();
    let said = |line: &dyn Fn(usize, [f64; 4]) -> String, more: &str| {
        folder.write("d.csv", table(60, line).replacen("a,b,y", "a,the id,y", 1));
        let fit = "fit d.csv --target y --kernel rbf --max-iterations 5 -o m";
        folder.ok(&format!("{fit} {more}")).err
    };
    // the target in other units
    let text = said(&|_, [a, _, y, _]| format!("{a},{},{y}", 32.0 + 1.8 * y), "");
    assert!(text.contains("input column `the id` gives the target `y` away"), "{text}");
    assert!(text.contains("`--ignore 'the id'`") && !text.contains("numbers the rows"), "{text}");
    // numbers of the rows in their order, from the last to the first, and in no order
    let ids: [&dyn Fn(usize) -> usize; 3] = [&|i| i + 1, &|i| 500 - i, &|i| 7 * i % 61];
    for id in ids {
        let text = said(&|i, [a, _, y, _]| format!("{a},{},{y}", id(i)), "");
        assert!(text.contains("input column `the id` numbers the rows"), "{text}");
        assert!(text.contains("`--ignore 'the id'`") && !text.contains("away"), "{text}");
    }
    let quiet = |text: String| {
        assert!(!text.contains("numbers the rows") && !text.contains("away"), "{text}");
    };
    // numbers that come twice, or are a few of many
    quiet(said(&|i, [a, _, y, _]| format!("{a},{},{y}", i / 2), ""));
    quiet(said(&|i, [a, _, y, _]| format!("{a},{},{y}", 3 * i), ""));
    // near the target, and not the same
    quiet(said(&|_, [a, b, y, _]| format!("{a},{},{y}", y + 0.1 * b), ""));
    // the only input is what was asked for
    quiet(said(&|i, [a, _, y, _]| format!("{a},{i},{y}"), "--ignore a"));
    quiet(said(&|_, [a, _, y, _]| format!("{a},{y},{y}"), "--ignore a"));
}

#[test]
fn targets_that_look_like_classes() {
    let folder = Folder::new();
    let two = table(60, |_, [a, b, y, _]| format!("{a},{b},{}", if y > 0.0 { 3 } else { -1 }));
    let hint = "`y` has two values and is learnt as numbers; if they are classes, learn them as such (`--classes`";
    assert!(warned(&folder, &two, "--inducing 8").contains(hint));
    // what is said in the hint, and what was said already
    for more in ["--classes", "--likelihood student-t"] {
        let fit = format!("fit d.csv --target y -o m --max-iterations 5 --inducing 8 {more}");
        assert!(!folder.ok(&fit).err.contains(hint), "{more}");
    }
    let three = table(60, |i, [a, b, ..]| format!("{a},{b},{}", i % 3));
    assert!(!warned(&folder, &three, "--inducing 8").contains(hint));
}

#[test]
fn duplicate_rows() {
    let folder = Folder::new();
    let repeated = table(60, |i, [_, _, y, _]| format!("{},{},{y}", i % 20, i % 5));
    for more in ["", "--inducing 10", "--inducing 50"] {
        let text = warned(&folder, &repeated, more);
        assert!(text.contains("40 rows have the same inputs as an earlier row"), "{text}");
    }
    assert_eq!(number(&folder.json("inspect m"), "/inducing_points"), 20.0);
}

#[test]
fn fewer_rows_than_inducing_points() {
    let folder = Folder::new();
    let text =
        warned(&folder, &table(12, |_, [a, b, y, _]| format!("{a},{b},{y}")), "--inducing 30");
    assert!(text.contains("12 training rows are fewer than the 30 inducing points"), "{text}");
    warned(&folder, "x,y\n1,2\n3,4\n", "");
}

#[test]
fn duplicate_inducing_points() {
    let folder = Folder::new();
    folder.write("z.csv", "x0\n1\n1\n1\n2\n4\n");
    let text = warned(&folder, &snelson(), "--inducing-from z.csv");
    assert!(text.contains("only 3 of the 5 given inducing points are distinct"), "{text}");
    warned(&folder, &snelson(), "--inducing-from z.csv --freeze inducing --jitter 0");
}

#[test]
fn scales_from_tiny_to_huge() {
    let folder = Folder::new();
    for (s, t) in [(1e-12, 1e12), (1e12, 1e-12), (1e12, 1e12)] {
        let text = table(80, |_, [a, b, y, _]| format!("{},{b},{}", a * s, y * t));
        warned(&folder, &text, "--inducing 12 --plot p.svg");
        let score = folder.json("score m d.csv");
        assert!(number(&score, "/scores/overall/r2") > 0.8, "{score}");
        assert!(!folder.read("p.svg").contains("NaN"));
        warned(&folder, &text, "");
        // One input, so that the fit itself is drawn.
        warned(&folder, &text, "--features a --inducing 12 --plot p.svg");
    }
}

#[test]
fn missing_cells_can_be_left_out() {
    let folder = Folder::new();
    folder.write("d.csv", "key,x,y\na,1,1\nb,,2\nc,3,NA\nd,4,2.5\ne,5,3\nf,6,inf\n");
    let run = folder.ok("fit d.csv --target y --ignore key --missing drop -o m");
    assert!(run.err.contains("3 rows with missing numbers left out"), "{}", run.err);
    let run = folder.ok("predict m d.csv --missing drop --id key");
    let ids: Vec<&str> = run.out.lines().skip(1).map(|l| l.split(',').next().unwrap()).collect();
    assert_eq!(ids, ["a", "c", "d", "e", "f"]);
    assert!(run.err.contains("1 row with missing numbers left out"), "{}", run.err);
    assert_eq!(number(&folder.json("score m d.csv --missing drop"), "/rows"), 3.0);
}

#[test]
fn options_without_effect_are_mentioned() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let run = folder.ok("fit s.csv --target y --method exact --inducing 9 --max-iterations 3");
    let text = "--inducing has no effect with --method exact: it needs inducing points";
    assert!(run.err.contains(text), "{}", run.err);
    assert!(run.out.contains("add -o MODEL"), "{}", run.out);
}
