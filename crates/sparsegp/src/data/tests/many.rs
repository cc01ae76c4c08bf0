//! Several files as one table.

use super::parquet::{Values, write};
use super::*;
use ::parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// Folders `year=2023` and `year=2024` with two files each, of which one has its columns in another order.
fn years(folder: &Folder) -> PathBuf {
    for (year, from) in [(2023, 0), (2024, 20)] {
        std::fs::create_dir_all(folder.path(&format!("rows/year={year}/kind=k{}", from / 20)))
            .unwrap();
        for part in 0..2 {
            let rows = (0..10).map(|i| (from + part * 10 + i) as f64);
            let text: String = match part {
                0 => rows.map(|a| format!("{a},{}\n", 2.0 * a)).collect(),
                _ => rows.map(|a| format!("{},{a}\n", 2.0 * a)).collect(),
            };
            let header = if part == 0 { "a,y\n" } else { "y,a\n" };
            let name = format!("rows/year={year}/kind=k{}/part{part}.csv", from / 20);
            folder.write(&name, format!("{header}{text}"));
        }
    }
    folder.write("rows/_SUCCESS", "");
    folder.path("rows")
}

fn table(path: &PathBuf) -> Result<Selected> {
    let table = Table::open(path)?;
    let selection = table.encode(&Selection::targets(["y"]), &EncodeOptions::default())?;
    table.select(&selection)
}

#[test]
fn a_folder_is_one_table_with_the_columns_of_its_names() {
    let folder = Folder::new();
    let path = years(&folder);
    let selected = table(&path).unwrap();
    assert_eq!(selected.input_names(), ["a", "year", "kind=k1"]);
    let data = selected.read_all().unwrap();
    let all: Vec<f64> = (0..40).map(f64::from).collect();
    assert_eq!(column(&data.x, 0), all);
    assert_eq!(column(&data.y, 0), all.iter().map(|a| 2.0 * a).collect::<Vec<_>>());
    let halves = |first: f64, second: f64| [vec![first; 20], vec![second; 20]].concat();
    assert_eq!(
        (column(&data.x, 1), column(&data.x, 2)),
        (halves(2023.0, 2024.0), halves(0.0, 1.0))
    );
    assert_eq!(data.rows, (0..40).collect::<Vec<_>>());
    assert_eq!(selected.count_rows().unwrap(), 40);
    let length = std::fs::metadata(path.join("year=2023/kind=k0/part0.csv")).unwrap().len();
    assert!(Table::open(&path).unwrap().bytes().unwrap() > 3 * length);
    // a mask is over the rows of all files
    let mask = Arc::new(Mask::new("m", (0..40).map(|i| i % 7 == 3)));
    let some = selected.clone().rows_where(mask, true).read_all().unwrap();
    assert_eq!(column(&some.x, 0), [3.0, 10.0, 17.0, 24.0, 31.0, 38.0]);
    assert_eq!(some.rows, [3, 10, 17, 24, 31, 38]);
    // patterns
    let of = |pattern: &str| table(&folder.path(pattern)).unwrap().read_all().unwrap();
    assert_eq!(of("rows/year=2024/*/*.csv").x.shape(), (20, 1 + 1));
    assert_eq!(of("rows/year=*").x.shape(), (40, 3));
    assert_eq!(of("rows/*/*/part1.csv").x.nrows(), 20);
}

#[test]
fn minibatches_come_from_all_files() {
    let folder = Folder::new();
    let source = table(&years(&folder)).unwrap().stream().unwrap();
    assert_eq!((source.rows(), source.inputs()), (40, 3));
    for seed in 0..5 {
        let mut batches = source.batches(8, seed).unwrap();
        let mut batch = Minibatch::default();
        let mut seen: Vec<f64> = Vec::new();
        for _ in 0..5 {
            batches.next(&mut batch).unwrap();
            for i in 0..batch.rows.x.nrows() {
                let (a, year) = (batch.rows.x[(i, 0)], batch.rows.x[(i, 1)]);
                assert_eq!(
                    (batch.rows.y[(i, 0)], year),
                    (2.0 * a, if a < 20.0 { 2023.0 } else { 2024.0 })
                );
                seen.push(a);
            }
        }
        assert!(
            seen[..8].iter().any(|a| *a < 20.0) && seen[..8].iter().any(|a| *a >= 20.0),
            "{seen:?}"
        );
        seen.sort_by(f64::total_cmp);
        assert_eq!(seen, (0..40).map(f64::from).collect::<Vec<_>>());
    }
}

#[test]
fn parquet_files_too() {
    let folder = Folder::new();
    let group = |from: i64| {
        let values: Vec<i64> = (from..from + 5).collect();
        vec![
            (Values::Int64(values.clone()), None),
            (Values::Double(values.iter().map(|v| *v as f64 / 2.0).collect()), None),
        ]
    };
    for (name, from) in [("a.parquet", 0), ("b.parquet", 10)] {
        let schema = "required int64 a; required double y;";
        write(
            &folder.path(name),
            schema,
            WriterProperties::builder(),
            &[group(from), group(from + 5)],
        );
    }
    let path = folder.path("*.parquet");
    let selected = table(&path).unwrap();
    assert_eq!(
        (Table::open(&path).unwrap().rows(), selected.count_rows().unwrap()),
        (Some(20), 20)
    );
    let all: Vec<f64> = (0..20).map(f64::from).collect();
    assert_eq!(column(&selected.read_all().unwrap().x, 0), all);
    let source = selected.stream().unwrap();
    let mut batches = source.batches(4, 3).unwrap();
    let mut batch = Minibatch::default();
    let mut seen: Vec<f64> = Vec::new();
    for _ in 0..5 {
        batches.next(&mut batch).unwrap();
        (0..batch.rows.x.nrows()).for_each(|i| {
            assert_eq!(batch.rows.y[(i, 0)], batch.rows.x[(i, 0)] / 2.0);
            seen.push(batch.rows.x[(i, 0)]);
        });
    }
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, all);
}

#[test]
fn errors_name_the_file() {
    let folder = Folder::new();
    let path = years(&folder);
    folder.write("rows/year=2024/kind=k1/part1.csv", "y,a\n1,2\n3,x\n");
    fails(table(&path).unwrap().read_all(), &["part1.csv: row 2, column `a`: `x` is text"]);
    folder.write("rows/year=2024/kind=k1/part1.csv", "y,b\n1,2\n");
    fails(table(&path), &["part1.csv: column `b` is not in", "part0.csv", "same columns"]);
    folder.write("rows/year=2024/kind=k1/part1.csv", "y\n1\n");
    fails(table(&path), &["part1.csv: column `a` is in", "not in this file"]);
    folder.write("rows/year=2024/kind=k1/part1.csv", "y,a\n1\n");
    fails(table(&path), &["part1.csv: row 1 has 1 field"]);
}
