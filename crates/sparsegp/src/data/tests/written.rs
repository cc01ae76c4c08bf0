//! Cells as people write them: words among numbers, other notations, dates.

use super::parquet::{Values, write};
use super::*;
use ::parquet::file::properties::WriterProperties;

fn fit(path: &PathBuf, options: &ReadOptions) -> Result<Loaded> {
    let table = Table::open_with(path, options)?;
    let selection = Selection::targets(["y"]);
    let labels = table.holds_labels("y")?;
    let selection = if labels { selection.categorical() } else { selection };
    let selection = table.encode(&selection, &EncodeOptions::default())?;
    table.select(&selection)?.missing(Missing::Drop).read_all()
}

/// A table of ninety rows in which some rows hold a word in one column.
fn with(word: &str, target: bool, first: bool) -> String {
    let mut text = String::from("a,b,y\n");
    for i in 0..90 {
        let odd = if first { i % 10 == 0 } else { i % 10 == 5 };
        let (b, y) = (i * 7 % 90, i * 11 % 90);
        text += &match (odd, target) {
            (true, true) => format!("{i},{b},{word}\n"),
            (true, false) => format!("{i},{word},{y}\n"),
            _ => format!("{i},{b},{y}\n"),
        };
    }
    text
}

#[test]
fn words_among_numbers_are_missing_values_or_named() {
    let folder = Folder::new();
    let plain = ReadOptions::default();
    for (target, column) in [(false, "b"), (true, "y")] {
        for first in [true, false] {
            let row = if first { 1 } else { 6 };
            for word in [
                "NA", "N/A", "n/a", "NULL", "null", "None", "none", "-", "--", ".", "#DIV/0!",
                "#N/A", "?", "\\N", "<NA>", "NaT", "inf",
            ] {
                let path = folder.write("w.csv", with(word, target, first));
                let data = fit(&path, &plain).unwrap_or_else(|error| panic!("{word}: {error}"));
                assert_eq!((data.x.shape(), data.dropped), ((81, 2), 9), "{word}");
                assert!(data.classes.is_none(), "{word}");
                let refuse =
                    Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
                let named = format!("w.csv: row {row}, column `{column}`");
                fails(refuse.read_all(), &[&named, "--missing drop"]);
                fails(refuse.stream(), &[&named]);
                if !["NA", "null"].contains(&word) {
                    let said = format!("`{word}` in 9 rows (first: row {row})");
                    assert!(data.remarks[0].contains(&said), "{:?}", data.remarks);
                    assert!(data.remarks[0].contains(&format!("column `{column}`")));
                }
            }
            for word in ["unknown", "missing", "130 hp", "\"12,5\"", "12%", "x"] {
                let path = folder.write("w.csv", with(word, target, first));
                let bare = word.trim_matches('"');
                let named = format!("w.csv: row {row}, column `{column}`: `{bare}`");
                fails(fit(&path, &plain), &[&named]);
                let with_word = ReadOptions { missing_words: vec![bare.into()], ..plain.clone() };
                assert_eq!(fit(&path, &with_word).unwrap().dropped, 9, "{word}");
            }
        }
    }
    // far below the rows that are looked at
    let mut text = String::from("a,y\n");
    (0..3000).for_each(|i| text += &format!("{i},{i}\n"));
    let path = folder.write("far.csv", text + "unknown,1\n-,2\n1,2\n");
    fails(fit(&path, &plain), &["far.csv: row 3001, column `a`: `unknown`"]);
    let with_word = ReadOptions { missing_words: vec!["unknown".into()], ..plain };
    assert_eq!(fit(&path, &with_word).unwrap().dropped, 2);
}

#[test]
fn numbers_in_other_notations_are_refused_with_the_option_that_reads_them() {
    let folder = Folder::new();
    let with = |decimal, thousands| ReadOptions { decimal, thousands, ..ReadOptions::default() };
    let cases: [(&str, &str, ReadOptions, f64); 5] = [
        ("12,5", "--decimal ,", with(',', None), 12.5),
        ("1.152,25", "--decimal , --thousands .", with(',', Some('.')), 1152.25),
        ("\"1,152.5\"", "--thousands ,", with('.', Some(',')), 1152.5),
        ("1\u{a0}152", "--thousands ' '", with('.', Some(' ')), 1152.0),
        ("1'152", "--thousands '", with('.', Some('\'')), 1152.0),
    ];
    for (cell, option, options, value) in cases {
        let path = folder.write("n.csv", format!("a;y\n{cell};1\n{cell};2\n{cell};3\n"));
        fails(fit(&path, &ReadOptions::default()), &["n.csv: row 1, column `a`", option]);
        assert_eq!(column(&fit(&path, &options).unwrap().x, 0), [value; 3], "{cell}");
        let path = folder.write("t.csv", format!("y;a\n{cell};1\n{cell};2\n{cell};3\n"));
        fails(fit(&path, &ReadOptions::default()), &["t.csv: row 1, column `y`", option]);
        assert_eq!(column(&fit(&path, &options).unwrap().y, 0), [value; 3], "{cell}");
    }
    // no option reads these: the cell is named
    for cell in ["12%", "$12", "12 kg"] {
        let path = folder.write("n.csv", format!("a;y\n{cell};1\n{cell};2\n{cell};3\n"));
        fails(
            fit(&path, &ReadOptions::default()),
            &["row 1, column `a`", "write only the numbers", "--categorical a"],
        );
    }
    // these mean only one thing
    let path = folder.write("m.csv", "a,y\n\u{2212}1.5,1\n1.5D+01,2\n+3,3\n");
    assert_eq!(column(&fit(&path, &ReadOptions::default()).unwrap().x, 0), [-1.5, 15.0, 3.0]);
}

#[test]
fn dates_take_a_format() {
    let folder = Folder::new();
    let path = folder.write("d.csv", "when,y\n31/12/2024,1\n01/02/2025,2\n02/02/2025,3\n");
    fails(
        fit(&path, &ReadOptions::default()),
        &["d.csv: row 1, column `when`", "--date-format '%d/%m/%Y'"],
    );
    for format in ["%d/%m/%Y", "when=%d/%m/%Y"] {
        let options = ReadOptions { date_formats: vec![format.into()], ..ReadOptions::default() };
        assert_eq!(column(&fit(&path, &options).unwrap().x, 0), [20_088.0, 20_120.0, 20_121.0]);
    }
    let wrong = ReadOptions { date_formats: vec!["%d/%m".into()], ..ReadOptions::default() };
    fails(fit(&path, &wrong), &["`%d/%m` is not a format of dates", "%Y"]);
    let path =
        folder.write("z.csv", "when,y\n2024-03-25 00:00:00 CET,1\n2024-03-26 00:00:00 CET,2\n");
    fails(fit(&path, &ReadOptions::default()), &["row 1, column `when`", "begins like a date"]);
    let path = folder.write("y.csv", "a,y\n1,2024-03-25\n2,2024-03-26\n");
    fails(fit(&path, &ReadOptions::default()), &["column `y` holds dates"]);
}

#[test]
fn targets_of_many_texts_are_not_classes_in_silence() {
    let folder = Folder::new();
    let mut text = String::from("a,y\n");
    (0..80).for_each(|i| text += &format!("{i},name {i}\n"));
    let path = folder.write("c.csv", text);
    fails(
        fit(&path, &ReadOptions::default()),
        &["c.csv: column `y` holds 80 different texts", "--classes"],
    );
}

#[test]
fn all_rows_left_out_names_the_columns() {
    let folder = Folder::new();
    let path = folder.write("m.csv", "a,b,c,y\n,1,,1\n2,,,2\n3,,,3\n");
    let parts = ["all 3 rows were left out", "`c` in 3, `b` in 2, `a` in 1"];
    let selected = |path: &PathBuf| {
        let table = Table::open(path).unwrap();
        table.select(&Selection::targets(["y"])).unwrap().missing(Missing::Drop)
    };
    fails(selected(&path).read_all(), &parts);
    let path = folder.path("m.parquet");
    let group = vec![
        (Values::Double(vec![2.0, 3.0]), Some(vec![0, 1, 1])),
        (Values::Double(vec![]), Some(vec![0, 0, 0])),
        (Values::Double(vec![1.0, 2.0, 3.0]), None),
    ];
    let schema = "optional double a; optional double c; required double y;";
    write(&path, schema, WriterProperties::builder(), &[group]);
    fails(selected(&path).read_all(), &["all 3 rows", "`c` in 3, `a` in 1"]);
}

#[test]
fn parquet_texts_truth_values_and_long_numbers_are_those_of_csv() {
    let folder = Folder::new();
    let path = folder.path("p.parquet");
    let group = vec![
        (Values::Text(vec!["1.5", "-", "3"]), None),
        (Values::Bool(vec![true, false, true]), None),
        (Values::Int64(vec![9_007_199_254_740_993, 9_007_199_254_740_992, 5]), None),
        (Values::Double(vec![1.0, 2.0, 3.0]), None),
    ];
    let schema =
        "required binary a (UTF8); required boolean k; required int64 id; required double y;";
    write(&path, schema, WriterProperties::builder(), &[group]);
    let csv = folder.write(
        "p.csv",
        "a,k,id,y\n1.5,True,9007199254740993,1\n-,False,9007199254740992,2\n3,True,5,3\n",
    );
    for path in [path, csv] {
        let table = Table::open(&path).unwrap();
        let options = EncodeOptions { categorical: vec!["id".into()], ..EncodeOptions::default() };
        let selection = table.encode(&Selection::targets(["y"]).ids(["id", "k"]), &options);
        let selection = selection.unwrap_err().to_string();
        assert!(selection.contains("`id`"), "{selection}");
        let asked = Selection::targets(["y"]).inputs(["a", "k", "id"]).ids(["id"]);
        let selection = table.encode(&asked, &options).unwrap();
        let data = table.select(&selection).unwrap().missing(Missing::Drop).read_all().unwrap();
        let names = ["a", "k=true", "id=5", "id=9007199254740992", "id=9007199254740993"];
        assert_eq!(data.input_names, names);
        assert_eq!((column(&data.x, 0), column(&data.x, 1)), (vec![1.5, 3.0], vec![1.0, 1.0]));
        assert_eq!(column(&data.x, 4), [1.0, 0.0]);
        assert_eq!(data.ids[0], ["9007199254740993", "5"]);
    }
}
