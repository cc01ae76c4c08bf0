//! Missing cells of inputs that are filled.

use super::parquet::{Values, write};
use super::*;
use ::parquet::file::properties::WriterProperties;

const TABLE: &str = "when,colour,age,size,y\n\
                     2024-01-01,red,10,1,1\n\
                     ,,NA,2,2\n\
                     2024-01-05,blue,40,3,3\n\
                     2024-01-03,?,inf,4,4\n";

fn filled(path: &PathBuf, how: Fill) -> Result<(Selection, Vec<(String, usize)>)> {
    let table = Table::open(path)?;
    let encoded = table.encode(&Selection::targets(["y"]), &EncodeOptions::default())?;
    table.filled(&encoded, how)
}

fn rows_of(x: &faer::Mat<f64>) -> Vec<Vec<f64>> {
    (0..x.nrows()).map(|i| (0..x.ncols()).map(|j| x[(i, j)]).collect()).collect()
}

const NAMES: [&str; 8] = [
    "when",
    "when=missing",
    "colour=missing",
    "colour=blue",
    "colour=red",
    "age",
    "age=missing",
    "size",
];
const ROWS: [[f64; 8]; 4] = [
    [19_723.0, 0., 0., 0., 1., 10., 0., 1.],
    [19_725.0, 1., 1., 0., 0., 25., 1., 2.],
    [19_727.0, 0., 0., 1., 0., 40., 0., 3.],
    [19_725.0, 0., 1., 0., 0., 25., 1., 4.],
];

fn rows() -> Vec<Vec<f64>> {
    ROWS.map(|row| row.to_vec()).to_vec()
}

#[test]
fn means_and_indicators_in_every_way_of_reading() {
    let folder = Folder::new();
    let path = folder.write("t.csv", TABLE);
    let (selection, gaps) = filled(&path, Fill::Indicator).unwrap();
    assert_eq!(gaps, [("when".into(), 1), ("colour".into(), 2), ("age".into(), 2)]);
    let table = Table::open(&path).unwrap();
    let selected = table.select(&selection).unwrap();
    assert_eq!(selected.input_names(), NAMES);
    assert_eq!(rows_of(&selected.read_all().unwrap().x), rows());
    let mut streamed = Vec::new();
    let mut take = |rows: Rows<'_>| {
        streamed.extend(rows_of(&rows.x.to_owned()));
        Ok(())
    };
    selected.stream().unwrap().for_each_chunk(3, &mut take).unwrap();
    assert_eq!(streamed, rows());
    // row by row, and as a model file keeps it
    let text = serde_json::to_string(&selected.input_columns()).unwrap();
    let columns: Vec<InputColumn> = serde_json::from_str(&text).unwrap();
    for (cells, expected) in TABLE.lines().skip(1).zip(ROWS) {
        let of = |(column, cell): (&InputColumn, &str)| column.numbers(cell).unwrap();
        let found: Vec<f64> = columns.iter().zip(cells.split(',')).flat_map(of).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn means_without_indicators_and_only_categories() {
    let folder = Folder::new();
    let path = folder.write("t.csv", TABLE);
    let table = Table::open(&path).unwrap();
    let (selection, _) = filled(&path, Fill::Mean).unwrap();
    let names = NAMES.into_iter().filter(|name| !["when=missing", "age=missing"].contains(name));
    let selected = table.select(&selection).unwrap();
    assert_eq!(selected.input_names(), names.collect::<Vec<_>>());
    assert_eq!(column(&selected.read_all().unwrap().x, 4), [10., 25., 40., 25.]);
    let (selection, gaps) = filled(&path, Fill::Category).unwrap();
    assert_eq!(gaps, [("colour".into(), 2)]);
    fails(table.select(&selection).unwrap().read_all(), &["row 2", "column `when`", "empty"]);
    // rows without a target are a separate matter
    let lacking = folder.write("lacking.csv", TABLE.replace(",2\n", ",NA\n"));
    let (selection, _) = filled(&lacking, Fill::Mean).unwrap();
    let selected = Table::open(&lacking).unwrap().select(&selection).unwrap();
    fails(selected.clone().read_all(), &["row 2", "column `y`"]);
    assert_eq!(selected.missing(Missing::Drop).read_all().unwrap().dropped, 1);
}

#[test]
fn parquet_too() {
    let folder = Folder::new();
    let path = folder.path("t.parquet");
    let schema =
        "OPTIONAL int32 when (DATE); OPTIONAL byte_array colour (UTF8); OPTIONAL double age;
                  REQUIRED int64 size; REQUIRED double y;";
    let there = |levels: [i16; 4]| Some(levels.to_vec());
    let columns = vec![
        (Values::Int32(vec![19_723, 19_727, 19_725]), there([1, 0, 1, 1])),
        (Values::Text(vec!["red", "blue", "?"]), there([1, 0, 1, 1])),
        (Values::Double(vec![10., f64::NAN, 40., f64::INFINITY]), there([1; 4])),
        (Values::Int64(vec![1, 2, 3, 4]), None),
        (Values::Double(vec![1., 2., 3., 4.]), None),
    ];
    write(&path, schema, WriterProperties::builder(), &[columns]);
    let (selection, _) = filled(&path, Fill::Indicator).unwrap();
    let selected = Table::open(&path).unwrap().select(&selection).unwrap();
    assert_eq!(selected.input_names(), NAMES);
    assert_eq!(rows_of(&selected.read_all().unwrap().x), rows());
}

#[test]
fn what_cannot_be_filled_is_refused() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "a,b,y\n,1,2\nNA,2,3\n");
    fails(filled(&path, Fill::Mean), &["column `a`", "missing in all rows"]);
    // a category may be called as the missing one is shown
    let path = folder.write("t.csv", "a,y\nmissing,2\n,3\nred,4\nred,5\n");
    let (selection, _) = filled(&path, Fill::Category).unwrap();
    let selected = Table::open(&path).unwrap().select(&selection).unwrap();
    assert_eq!(selected.input_names(), ["a=(missing)", "a=missing", "a=red"]);
}
