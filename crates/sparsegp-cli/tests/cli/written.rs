//! Options that say how the cells of a table are written.

use crate::support::{Folder, column, number};

/// Ninety rows of a plane, each cell through `write`, with `between` the columns.
fn plane(between: &str, write: impl Fn(usize, f64) -> String) -> String {
    let mut text = ["a", "b", "y"].join(between) + "\n";
    for i in 0..90 {
        let (a, b) = ((i * 7 % 90) as f64 * 25.5, (i * 11 % 90) as f64 / 4.0);
        let cells: Vec<String> = [a, b, 0.5 * a - b]
            .into_iter()
            .enumerate()
            .map(|(j, value)| write(i * 3 + j, value))
            .collect();
        text += &(cells.join(between) + "\n");
    }
    text
}

fn comma(_: usize, value: f64) -> String {
    format!("{value:.2}").replace('.', ",")
}

#[test]
fn decimal_commas_are_refused_and_read_where_they_are_said() {
    let folder = Folder::new();
    folder.write("d.csv", plane(";", comma));
    folder.write("p.csv", plane(",", |_, value| format!("{value:.2}")));
    folder.refused(
        1,
        "fit d.csv --target y -o m",
        &["d.csv: row 1, column `y`: `0,00`", "--decimal ,"],
    );
    let commas = folder.json("fit d.csv --target y --decimal , -o m");
    let points = folder.json("fit p.csv --target y -o p");
    assert_eq!(number(&commas, "/model/objective"), number(&points, "/model/objective"));
    // whatever reads a table has them
    let predicted = column(&folder.ok("predict m d.csv --decimal ,").out, "mean");
    assert_eq!(predicted, column(&folder.ok("predict p p.csv").out, "mean"));
    // and a model remembers them
    assert_eq!(predicted, column(&folder.ok("predict m d.csv").out, "mean"));
    folder.ok("score m d.csv");
    folder.ok("plot m d.csv --output p.svg");
    folder.ok("report m d.csv --output r.html");
    folder.ok("fit d.csv --from m -o n");
    assert_eq!(predicted, column(&folder.ok("predict m p.csv --decimal .").out, "mean"));
    folder.refused(1, "predict m p.csv", &["p.csv: row 1, column `a`", "--decimal ."]);
    folder.ok("compare d.csv --target y --folds 2 -- --decimal , --max-iterations 3");
    folder.refused(
        2,
        "fit d.csv --target y --decimal ; -o q",
        &["decimal separator is `;`", "`.` or `,`"],
    );
    folder.refused(
        2,
        "fit d.csv --target y --decimal , --thousands , -o q",
        &["both the decimal separator"],
    );
}

#[test]
fn thousands_words_and_dates() {
    let folder = Folder::new();
    let grouped = |_: usize, value: f64| {
        let text = format!("{value:.2}");
        match text.len() {
            7 => format!("\"{},{}\"", &text[..1], &text[1..]),
            _ => text,
        }
    };
    folder.write("t.csv", plane(",", grouped));
    folder.refused(1, "fit t.csv --target y -o m", &["t.csv: row", "--thousands ,"]);
    folder.ok("fit t.csv --target y --thousands , -o m");
    let words = |k: usize, value: f64| match k {
        19 => "unknown".into(),
        31 => "-".into(),
        _ => format!("{value:.2}"),
    };
    folder.write("w.csv", plane(",", words));
    folder.refused(
        1,
        "fit w.csv --target y --missing drop -o w",
        &["w.csv: row 7, column `b`: `unknown`", "--missing-words unknown"],
    );
    let run = folder.ok("fit w.csv --target y --missing drop --missing-words unknown,gone -o w");
    for part in [
        "2 rows with missing numbers left out",
        "column `b`",
        "`unknown` in 1 row (first: row 7)",
        "`-` in 1 row (first: row 11)",
    ] {
        assert!(run.err.contains(part), "`{}` lacks `{part}`", run.err);
    }
    let mut dates = String::from("when,y\n");
    (0..40).for_each(|i| dates += &format!("{:02}/{:02}/2024,{i}\n", 1 + i % 28, 1 + i / 28));
    folder.write("d.csv", dates);
    folder.refused(
        1,
        "fit d.csv --target y -o d",
        &["d.csv: row 1, column `when`", "--date-format '%d/%m/%Y'"],
    );
    let fit = folder.json("fit d.csv --target y --date-format when=%d/%m/%Y -o d");
    assert_eq!(fit["model"]["columns"][0]["encoding"], "date");
    folder.ok("predict d d.csv --date-format %d/%m/%Y");
    folder.refused(2, "fit d.csv --target y --date-format %d/%m -o q", &["not a format of dates"]);
}

#[test]
fn what_is_not_a_class_is_reported() {
    let folder = Folder::new();
    let mut text = String::from("x,y\n");
    (0..80).for_each(|i| text += &format!("{i},name {i}\n"));
    folder.write("c.csv", text);
    folder.refused(
        1,
        "fit c.csv --target y -o m",
        &["c.csv: column `y` holds 80 different texts", "--classes"],
    );
    let mut text = String::from("x,y\n");
    (0..80).for_each(|i| text += &format!("{i},{} hp\n", i * 3));
    folder.write("u.csv", text);
    folder.refused(
        1,
        "fit u.csv --target y -o m",
        &["u.csv: row 1, column `y`: `0 hp`", "`hp`", "--classes"],
    );
    folder.write("o.csv", "x,y,note\n1,2,n\n2,3,\"n\n3,4,n\n5,6,n\n");
    folder.refused(
        1,
        "fit o.csv --target y -o m",
        &["o.csv: row 2 has a quote that is never closed"],
    );
}

#[test]
fn levels_have_the_order_that_is_given() {
    let folder = Folder::new();
    let mut text = String::from("x,y\n");
    for i in 0..120 {
        let x = (i * 37 % 120) as f64 / 20.0;
        let level = ["low", "medium", "high"]
            [((x + 0.3 * (i as f64).sin()) / 2.1).clamp(0.0, 2.0) as usize];
        text += &format!("{x},{level}\n");
    }
    folder.write("o.csv", text);
    folder.refused(
        1,
        "fit o.csv --target y -l ordinal -o m",
        &["levels of `y` are texts", "`high`, `low`, `medium`", "--levels "],
    );
    let fit = folder.json(
        "fit o.csv --target y -l ordinal --levels low,medium,high,extreme -o m --max-iterations 30",
    );
    let classes: Vec<&str> =
        fit["model"]["classes"].as_array().unwrap().iter().filter_map(|v| v.as_str()).collect();
    assert_eq!(classes, ["low", "medium", "high", "extreme"]);
    assert!(number(&fit, "/scores/train/overall/accuracy") > 0.7);
    folder.refused(
        1,
        "fit o.csv --target y -l ordinal --levels low,high -o q",
        &["o.csv: row", "`medium`"],
    );
    folder.refused(2, "fit o.csv --target y --levels low,low -o q", &["`low` is given twice"]);
    folder.refused(
        2,
        "fit o.csv --target x -l gaussian --levels a,b -o q",
        &["`--levels` orders classes"],
    );
}

/// Forty rows whose names are not ASCII.
fn named() -> String {
    let row = |i: i32| format!("{i},{},{}\n", if i % 3 == 0 { "Köln" } else { "Zürich" }, i * 2);
    format!("Größe,Ort,y\n{}", (0..40).map(row).collect::<String>())
}

#[test]
fn other_encodings_are_read() {
    let folder = Folder::new();
    let text = named();
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let wide = |mark: &str| -> Vec<u8> {
        format!("{mark}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    folder.write("utf8.csv", &text);
    folder.write("latin.csv", latin);
    folder.write("wide.csv", wide("\u{feff}"));
    folder.write("bare.csv", wide(""));
    let expected = folder.json("fit utf8.csv --target y -o m");
    assert_eq!(expected["model"]["inputs"], serde_json::json!(["Größe", "Ort=Zürich"]));
    let refused = ["latin.csv: the name of column 1", "is not UTF-8 text", "--encoding latin1"];
    folder.refused(1, "fit latin.csv --target y", &refused);
    folder.refused(1, "fit bare.csv --target y", &["UTF-16", "--encoding utf-16le"]);
    folder.refused(2, "fit latin.csv --target y --encoding klingon", &["`klingon`", "latin1"]);
    for line in ["latin.csv --encoding latin1", "wide.csv", "bare.csv --encoding utf-16le"] {
        let found = folder.json(&format!("fit {line} --target y -o n"));
        assert_eq!(found["model"]["inputs"], expected["model"]["inputs"], "{line}");
        assert_eq!(number(&found, "/model/objective"), number(&expected, "/model/objective"));
        // of a large file
        let streamed = folder.json(&format!("fit {line} --target y --stream -o n"));
        assert_eq!(streamed["model"]["inputs"], expected["model"]["inputs"], "{line}");
        let file = line.split(' ').next().unwrap();
        assert_eq!(column(&folder.ok(&format!("predict n {file}")).out, "mean").len(), 40);
    }
}

#[test]
fn control_characters_in_names_are_escaped() {
    let folder = Folder::new();
    let rows: String = (0..30).map(|i| format!("{i},{}\n", i * 2)).collect();
    folder.write("c.csv", format!("a\u{1b}[31m,y\n{rows}"));
    let run = folder.ok("fit c.csv --target y -o m");
    assert!(run.out.contains("a\\u{1b}[31m") && !run.out.contains('\u{1b}'), "{}", run.out);
    folder.ok("report m c.csv --output r.html");
    assert!(!folder.read("r.html").contains('\u{1b}'));
    folder.write("d.csv", format!("a\u{1b}[31m,y\nx,1\n{rows}"));
    folder.refused(1, "predict m d.csv", &["row 1, column `a\\u{1b}[31m`: `x`"]);
}

#[test]
fn numbers_that_become_many_classes_are_a_warning() {
    let folder = Folder::new();
    let row = |i: i32| format!("{i},{}\n", f64::from(i * 7 % 30) / 4.0);
    folder.write("q.csv", format!("x,y\n{}", (0..60).map(row).collect::<String>()));
    let run = folder.ok("fit q.csv --target y --classes --max-iterations 1");
    let warning = "target column `y` has 30 classes, and all of them are numbers";
    assert!(run.err.contains(warning), "{}", run.err);
}

#[test]
fn kernels_take_values_in_the_units_of_the_data() {
    let folder = Folder::new();
    let day = |i: i32| {
        let (days, y) =
            (f64::from(i * 9), (f64::from(i * 9) / 365.25 * std::f64::consts::TAU).sin());
        format!("{},{y:.4}\n", sparsegp::data::date_text(days))
    };
    folder.write("d.csv", format!("day,y\n{}", (0..200).map(day).collect::<String>()));
    let line = "--kernel 'periodic(period=365.25)'";
    let own =
        format!("fit d.csv --target y {line} --freeze kernel.period --kernel-units data -o m");
    let run = folder.ok(&own);
    assert!(!run.err.contains("rows span"), "{}", run.err);
    assert!(folder.ok("inspect m").out.contains("365.2"), "{}", folder.ok("inspect m").out);
    // without that a period of 365.25 standard deviations, and a word
    let run = folder.ok(&format!("fit d.csv --target y {line} --max-iterations 1"));
    assert!(run.err.contains("--kernel-units data"), "{}", run.err);
    let long = line.replace("365.25", "9000");
    let run =
        folder.ok(&format!("fit d.csv --target y {long} --kernel-units data --max-iterations 1"));
    assert!(run.err.contains("times what the rows span"), "{}", run.err);
}

#[test]
fn a_target_of_many_classes_is_named() {
    let folder = Folder::new();
    for (classes, named) in [(12, false), (31, true)] {
        let rows = (0..124).map(|i| format!("{i},c{:02}\n", i % classes));
        folder.write("c.csv", format!("x,y\n{}", rows.collect::<String>()));
        let said = folder.ok("fit c.csv --target y --max-iterations 1 --pilot 0 -o m").err;
        let words = format!("`y` is learnt as {classes} classes");
        assert_eq!(said.contains(&words), named, "{said}");
    }
}
