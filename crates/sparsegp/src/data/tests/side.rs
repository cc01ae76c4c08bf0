//! Weights, further numbers, and targets that are missing.

use super::parquet::{Values, write};
use super::*;
use crate::fit::{Dataset, Standardise};
use ::parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// The same rows as CSV and Parquet: e (further number), a, w (weight), y, z. Rows 1 and 3 lack a target.
fn files(folder: &Folder) -> [PathBuf; 2] {
    let text = "e,a,w,y,z\n2,10,0.5,1,5\n3,20,0,NA,6\n4,40,2,3,7\n5,80,1,inf,\n";
    let csv = folder.write("s.csv", text);
    let parquet = folder.path("s.parquet");
    let schema = "required int32 e; required double a; required float w; optional double y; \
                  optional double z;";
    let group = vec![
        (Values::Int32(vec![2, 3, 4, 5]), None),
        (Values::Double(vec![10., 20., 40., 80.]), None),
        (Values::Float(vec![0.5, 0., 2., 1.]), None),
        (Values::Double(vec![1., 3., f64::INFINITY]), Some(vec![1, 0, 1, 1])),
        (Values::Double(vec![5., 6., 7.]), Some(vec![1, 1, 1, 0])),
    ];
    write(&parquet, schema, WriterProperties::builder(), &[group]);
    [csv, parquet]
}

fn selection() -> Selection {
    Selection::targets(["y", "z"]).weight("w").extra("e")
}

fn select(path: &PathBuf) -> Selected {
    super::Table::open(path).unwrap().select(&selection()).unwrap()
}

#[test]
fn side_columns_are_not_inputs_and_come_with_the_rows() {
    let folder = Folder::new();
    for path in files(&folder) {
        let selected = select(&path).missing(Missing::Drop);
        assert_eq!(
            (selected.input_names(), selected.target_names()),
            (vec!["a".to_owned()], vec!["y".to_owned(), "z".to_owned()])
        );
        let names = (selected.weight_name(), selected.extra_name());
        assert_eq!(names, (Some("w".into()), Some("e".into())));
        let loaded = selected.read_all().unwrap();
        assert_eq!((&loaded.weights, &loaded.extra), (&vec![0.5, 2.0], &vec![2.0, 4.0]));
        assert_eq!((column(&loaded.x, 0), column(&loaded.y, 1)), (vec![10., 40.], vec![5., 7.]));
        let mask = Mask::new("m", [false, true, true, true]);
        let part = loaded.rows_where(&mask, true).unwrap();
        assert_eq!((part.weights, part.extra), (vec![2.0], vec![4.0]));
        let block = selected.blocks(9, None).unwrap().next().unwrap().unwrap();
        assert_eq!((block.weights, block.extra), (vec![0.5, 2.0], vec![2.0, 4.0]));
        // The scaler is not for them.
        let source = selected.stream().unwrap().standardised();
        let mut found = Vec::new();
        let mut take = |rows: Rows<'_>| {
            found.push((rows.start, rows.x[(0, 0)], rows.weights.to_vec(), rows.extra.to_vec()));
            Ok(())
        };
        source.for_each_chunk(1, &mut take).unwrap();
        // places and scales are of rows that count by their weights: y has the variance 0.64, two inputs differ by 2
        let expected = [(0, -1.6, 0.5, 2.0 / 0.64), (1, 0.4, 2.0, 4.0 / 0.64)];
        for (own, (start, x, weight, extra)) in found.iter().zip(expected) {
            assert_eq!((own.0, &own.2), (start, &vec![weight]));
            assert!((own.1 - x).abs() < 1e-15 && (own.3[0] - extra).abs() < 1e-14);
        }
        assert_eq!(found.len(), 2);
        let dataset = Dataset::from_table(source, true).unwrap();
        assert_eq!((dataset.weight_name, dataset.extra_name), names_of("w", "e"));
    }
}

fn names_of(weight: &str, extra: &str) -> (Option<String>, Option<String>) {
    (Some(weight.into()), Some(extra.into()))
}

#[test]
fn missing_targets_are_kept_on_request_and_nothing_else() {
    let folder = Folder::new();
    for path in files(&folder) {
        fails(select(&path).read_all(), &["row 2, column `y`", "--missing drop"]);
        let selected = select(&path).missing(Missing::Keep);
        let loaded = selected.read_all().unwrap();
        assert_eq!((loaded.dropped, loaded.rows.clone()), (0, vec![0, 1, 2, 3]));
        let missing = |j| column(&loaded.y, j).iter().map(|y| y.is_nan()).collect::<Vec<_>>();
        assert_eq!(missing(0), [false, true, false, true]);
        assert_eq!(missing(1), [false, false, false, true]);
        let statistics = loaded.statistics();
        assert_eq!(statistics.present_targets(), [2, 3]);
        assert_eq!(statistics.rows(), 4);
        let scaler = statistics.scaler();
        // by the weights ½, 0, 2, 1
        let expected = [(scaler.y_mean[0], 2.6), (scaler.y_scale[0], 0.8), (scaler.y_mean[1], 6.6)];
        expected.into_iter().for_each(|(a, b)| assert!((a - b).abs() < 1e-15 * 8.0));
        let source = selected.stream().unwrap();
        assert_eq!(source.statistics(), &statistics);
        let mut batch = Minibatch::new();
        source.batches(4, 0).unwrap().next(&mut batch).unwrap();
        assert_eq!(column(&batch.rows.y, 0).iter().filter(|y| y.is_nan()).count(), 2);
        let dataset = Dataset::from_loaded(loaded, true).unwrap();
        assert!((dataset.target_mean[0] - 2.6).abs() < 1e-15);
        // As an input the same column is refused.
        let selection = Selection::targets(["z"]).inputs(["a", "y"]);
        let table = super::Table::open(&path).unwrap();
        let selected = table.select(&selection).unwrap().missing(Missing::Keep);
        fails(selected.read_all(), &["row 2, column `y`"]);
    }
    let path = folder.write("none.csv", "a,y\n1,\n2,NA\n");
    let selected = super::Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let loaded = selected.missing(Missing::Keep).read_all().unwrap();
    fails(Dataset::from_loaded(loaded, true), &["target column `y` is missing in all rows"]);
}

#[test]
fn weights_that_are_none_are_refused() {
    let folder = Folder::new();
    let selection = Selection::targets(["y"]).weight("w");
    let open = |text: &str| {
        let path = folder.write("w.csv", text);
        super::Table::open(&path).unwrap().select(&selection).unwrap()
    };
    let negative = open("a,w,y\n1,1,2\n3,-0.25,4\n5,-1,6\n");
    let parts = ["w.csv: row 2, column `w`: the weight `-0.25` is negative"];
    fails(negative.read_all(), &parts);
    fails(negative.stream(), &parts);
    // Rows that are not read do not matter.
    let mask = Arc::new(Mask::new("m", [false, true, true]));
    assert!(negative.rows_where(mask, false).read_all().is_ok());
    for missing in [Missing::Refuse, Missing::Keep] {
        let infinite = open("a,w,y\n1,inf,2\n").missing(missing);
        fails(infinite.read_all(), &["row 1, column `w`: `inf` is not finite"]);
    }
    let zeros = open("a,w,y\n1,0,2\n2,0,3\n").read_all().unwrap();
    fails(Dataset::from_loaded(zeros, true), &["weights of all rows are 0"]);
}

#[test]
fn side_columns_that_cannot_be_are_refused() {
    let folder = Folder::new();
    let path = folder.write("c.csv", "a,w,y\n1,1,2\n");
    let table = super::Table::open(&path).unwrap();
    fails(table.select(&Selection::targets(["y"]).weight("ww")), &["column `ww`", "nearest: `w`"]);
    fails(table.select(&Selection::targets(["y"]).weight("y")), &["`y`", "target and the weight"]);
    fails(table.select(&Selection::targets(["y"]).extra("y")), &["and the further number"]);
    // An exposure may be an input too, if that is asked for.
    let both = Selection::targets(["y"]).inputs(["a", "w"]).extra("w");
    let loaded = table.select(&both).unwrap().read_all().unwrap();
    assert_eq!((column(&loaded.x, 1), loaded.extra), (vec![1.0], vec![1.0]));
}

#[test]
fn inputs_and_targets_are_standardised_separately() {
    let folder = Folder::new();
    let path = folder.write("c.csv", "a,y\n1,3\n5,7\n");
    let selected = super::Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    for inputs in [false, true] {
        for targets in [false, true] {
            let chosen = Standardise { inputs, targets, robust: false, constants: false };
            for dataset in [
                Dataset::from_loaded(selected.read_all().unwrap(), chosen).unwrap(),
                Dataset::from_table(selected.stream().unwrap(), chosen).unwrap(),
            ] {
                let scaler = &dataset.scaler;
                let x = if inputs { (3.0, 2.0) } else { (0.0, 1.0) };
                let y = if targets { (5.0, 2.0) } else { (0.0, 1.0) };
                assert_eq!((scaler.x_mean[0], scaler.x_scale[0]), x);
                assert_eq!((scaler.y_mean[0], scaler.y_scale[0]), y);
                let check = &mut |rows: Rows<'_>| {
                    assert_eq!(rows.x[(0, 0)], (1.0 - x.0) / x.1);
                    assert_eq!(rows.y[(0, 0)], (3.0 - y.0) / y.1);
                    Ok(())
                };
                dataset.source.for_each_chunk(9, check).unwrap();
            }
        }
    }
}

#[test]
fn standard_deviations_that_are_none_are_refused() {
    let folder = Folder::new();
    let plain = Selection::targets(["y"]).deviations([("a".to_owned(), "s".to_owned())]);
    let open = |text: &str| {
        let path = folder.write("s.csv", text);
        let table = super::Table::open(&path).unwrap();
        let encoded = table.encode(&plain, &Default::default()).unwrap();
        table.select(&encoded)
    };
    let message = ["row 3, column `s`: the standard deviation `-0.25` is negative"];
    // rows that are left out count
    let negative = open("a,s,y\n,1,2\n3,0,4\n5,-0.25,6\n").unwrap().missing(Missing::Drop);
    fails(negative.read_all(), &message);
    fails(negative.stream(), &message);
    for (cells, holds) in [(["low", "high"], "text"), (["2024-01-02", "2024-01-03"], "dates")] {
        let text = format!("a,s,y\n1,{},2\n3,{},4\n5,{},7\n", cells[0], cells[1], cells[0]);
        fails(
            open(&text),
            &["column `s`", &format!("holds {holds}"), "standard deviations of `a`"],
        );
    }
}
