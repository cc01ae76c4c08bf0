//! Labels as targets.

use super::parquet::{Group, Values, write};
use super::*;
use crate::fit::{Dataset, Scaling, Standardise};
use ::parquet::file::properties::WriterProperties;
use std::sync::Arc;

fn select(path: &PathBuf) -> Selected {
    let selection = Selection::targets(["y"]).categorical();
    super::Table::open(path).unwrap().select(&selection).unwrap()
}

fn csv(folder: &Folder, name: &str, labels: &[&str]) -> PathBuf {
    let row = |(i, label): (usize, &&str)| format!("{i},{label}\n");
    let text: String = labels.iter().enumerate().map(row).collect();
    folder.write(name, format!("a,y\n{text}"))
}

fn codes(loaded: &Loaded) -> (Vec<f64>, String) {
    (column(&loaded.y, 0), loaded.classes.as_ref().unwrap().labels().join(" "))
}

#[test]
fn labels_of_any_kind_become_codes() {
    let folder = Folder::new();
    for (labels, expected, order) in [
        (["b", "a", " b", "c"], [1., 0., 1., 2.], "a b c"),
        (["10", "9", "10.0", "-1"], [2., 1., 2., 0.], "-1 9 10"),
        (["True", "false", "true", "False"], [1., 0., 1., 0.], "false true"),
        (["0.5", "0.25", "0.5", "1e3"], [1., 0., 1., 2.], "0.25 0.5 1e3"),
    ] {
        let path = csv(&folder, "l.csv", &labels);
        assert_eq!(codes(&select(&path).read_all().unwrap()), (expected.to_vec(), order.into()));
        let source = select(&path).stream().unwrap();
        assert_eq!(source.classes().unwrap().labels().join(" "), order);
        let mut streamed = Vec::new();
        let mut take = |rows: Rows<'_>| {
            streamed.extend((0..rows.y.nrows()).map(|i| rows.y[(i, 0)]));
            Ok(())
        };
        source.for_each_chunk(3, &mut take).unwrap();
        assert_eq!(streamed, expected);
    }
}

#[test]
fn parquet_labels_are_those_of_csv() {
    let folder = Folder::new();
    let inputs = |n: usize| (Values::Double((0..n).map(|i| i as f64).collect()), None);
    let texts = ["b", "a", "b", "c", "a"];
    let kinds: [(&str, Values, &[f64], &str); 4] = [
        ("binary y (UTF8)", Values::Text(texts.to_vec()), &[1., 0., 1., 2., 0.], "a b c"),
        ("int64 y", Values::Int64(vec![7, -2, 7, 30, 0]), &[2., 0., 2., 3., 1.], "-2 0 7 30"),
        ("int32 y", Values::Int32(vec![1, 0, 1, 1, 0]), &[1., 0., 1., 1., 0.], "0 1"),
        (
            "boolean y",
            Values::Bool(vec![true, false, true, true, false]),
            &[1., 0., 1., 1., 0.],
            "false true",
        ),
    ];
    for (schema, values, expected, order) in kinds {
        for dictionary in [false, true] {
            let path = folder.path("l.parquet");
            let properties = WriterProperties::builder().set_dictionary_enabled(dictionary);
            let groups: [Group; 2] =
                [vec![inputs(5), (values.clone(), None)], vec![inputs(5), (values.clone(), None)]];
            write(&path, &format!("required double a; required {schema};"), properties, &groups);
            let holds = super::Table::open(&path).unwrap().holds_labels("y").unwrap();
            assert_eq!(holds, order.starts_with(char::is_alphabetic), "{schema}");
            let twice = [expected, expected].concat();
            assert_eq!(
                codes(&select(&path).read_all().unwrap()),
                (twice, order.into()),
                "{schema}"
            );
        }
    }
}

#[test]
fn the_first_value_tells_labels_from_numbers() {
    let folder = Folder::new();
    for (labels, holds) in [
        (["a", "b", "1"], true),
        (["", "NA", "yes"], true),
        (["true", "false", "true"], true),
        (["1", "red", "2"], false),
        (["", "0.5", "red"], false),
        (["", "", ""], false),
    ] {
        let table = super::Table::open(csv(&folder, "l.csv", &labels)).unwrap();
        assert_eq!(table.holds_labels("y").unwrap(), holds, "{labels:?}");
        fails(table.holds_labels("z"), &["l.csv: column `z`", "nearest: `a`, `y`"]);
    }
}

#[test]
fn another_class_is_refused_where_the_classes_are_known() {
    let folder = Folder::new();
    let known = select(&csv(&folder, "train.csv", &["a", "b", "c"])).read_all().unwrap();
    let classes = known.classes.unwrap();
    let path = csv(&folder, "test.csv", &["c", "b", "d"]);
    let parts =
        ["test.csv: row 3, column `y`", "`d` is none of the classes", "knows: `a`, `b`, `c`"];
    let selected = select(&path).classes(classes.clone());
    fails(selected.read_all(), &parts);
    fails(selected.stream(), &parts);
    fails(selected.blocks(2, None).unwrap().nth(1).unwrap(), &parts);
    // Codes are the model's, though the file has fewer classes.
    let path = csv(&folder, "fewer.csv", &["c", "c"]);
    let selected = select(&path).classes(classes);
    assert_eq!(column(&selected.read_all().unwrap().y, 0), [2.0, 2.0]);
    let block = selected.blocks(9, None).unwrap().next().unwrap().unwrap();
    assert_eq!(column(&block.y, 0), [2.0, 2.0]);
    fails(select(&path).blocks(9, None), &["classes are known", "`Selected::classes`"]);
}

#[test]
fn rows_that_are_left_out_bring_no_class() {
    let folder = Folder::new();
    let path = folder.write("d.csv", "a,y,w\n1,p,1\n2,q,1\n,r,1\n4,,1\n5,s,\n6,t,1\n");
    let selection = Selection::targets(["y"]).categorical().weight("w");
    let mask = Arc::new(Mask::new("m", [false, false, false, false, false, true]));
    let selected = super::Table::open(&path).unwrap().select(&selection).unwrap();
    let loaded = selected.rows_where(mask, false).missing(Missing::Drop).read_all().unwrap();
    assert_eq!(codes(&loaded), (vec![0.0, 1.0], "p q".into()));
    assert_eq!((loaded.dropped, loaded.rows), (3, vec![0, 1]));
}

#[test]
fn what_is_not_a_set_of_classes_is_refused() {
    let folder = Folder::new();
    let path = csv(&folder, "one.csv", &["a", "a"]);
    fails(select(&path).read_all(), &["one.csv: column `y`", "only one class, `a`"]);
    let many: Vec<String> = (0..1200).map(|i| format!("{}", f64::from(i) / 7.0)).collect();
    let path = csv(&folder, "many.csv", &many.iter().map(String::as_str).collect::<Vec<_>>());
    fails(select(&path).stream(), &["many.csv: row 1001, column `y`", "is it a label"]);
    let path = csv(&folder, "gap.csv", &["a", "", "b"]);
    fails(select(&path).read_all(), &["gap.csv: row 2, column `y`: the cell is empty"]);
    let path = folder.write("two.csv", "a,y,z\n1,2,3\n");
    let selection = Selection::targets(["y", "z"]).categorical();
    fails(super::Table::open(&path).unwrap().select(&selection), &["`z`", "second target"]);
}

#[test]
fn a_data_set_keeps_codes_as_they_are() {
    let folder = Folder::new();
    let path = csv(&folder, "l.csv", &["x", "z", "y", "x", "z"]);
    for standardise in [
        Scaling::from(true),
        Standardise { inputs: true, targets: true, robust: false, constants: false }.into(),
    ] {
        let selected = select(&path);
        for dataset in [
            Dataset::from_loaded(selected.read_all().unwrap(), standardise.clone()).unwrap(),
            Dataset::from_table(selected.stream().unwrap(), standardise).unwrap(),
        ] {
            assert_eq!(dataset.classes.unwrap().labels(), ["x", "y", "z"]);
            let scaler = &dataset.scaler;
            assert_eq!((&scaler.y_mean[..], &scaler.y_scale[..]), (&[0.0][..], &[1.0][..]));
            assert_eq!((scaler.x_mean[0], scaler.x_scale[0]), (2.0, 2f64.sqrt()));
            let mut batch = Minibatch::new();
            dataset.source.batches(5, 0).unwrap().next(&mut batch).unwrap();
            let mut found = column(&batch.rows.y, 0);
            found.sort_by(f64::total_cmp);
            assert_eq!(found, [0.0, 0.0, 1.0, 2.0, 2.0]);
        }
    }
}
