//! Dates and categories as inputs.

use super::parquet::{Values, write};
use super::*;
use ::parquet::file::properties::WriterProperties;
use std::sync::Arc;

const TABLE: &str = "when,colour,size,a,y\n\
                     2024-01-01,red,small,1,10\n\
                     2024-01-02T12:00,blue,large,2,20\n\
                     2024-01-04,green,small,3,30\n\
                     2023-12-31, red ,large,4,40\n";

fn encode(path: &PathBuf, options: &EncodeOptions) -> Result<Selection> {
    Table::open(path)?.encode(&Selection::targets(["y"]), options)
}

fn encoded(path: &PathBuf) -> Selection {
    encode(path, &EncodeOptions::default()).unwrap()
}

fn rows_of(x: &faer::Mat<f64>) -> Vec<Vec<f64>> {
    (0..x.nrows()).map(|i| (0..x.ncols()).map(|j| x[(i, j)]).collect()).collect()
}

const NAMES: [&str; 6] = ["when", "colour=blue", "colour=green", "colour=red", "size=small", "a"];
const ROWS: [[f64; 6]; 4] = [
    [19_723.0, 0., 0., 1., 1., 1.],
    [19_724.5, 1., 0., 0., 0., 2.],
    [19_726.0, 0., 1., 0., 1., 3.],
    [19_722.0, 0., 0., 1., 0., 4.],
];

#[test]
fn columns_become_numbers_in_every_way_of_reading() {
    let folder = Folder::new();
    let path = folder.write("t.csv", TABLE);
    let table = Table::open(&path).unwrap();
    let selected = table.select(&encoded(&path)).unwrap();
    assert_eq!(selected.input_names(), NAMES);
    let loaded = selected.read_all().unwrap();
    assert_eq!(rows_of(&loaded.x), ROWS.map(|row| row.to_vec()));
    assert_eq!(
        (loaded.input_names.clone(), column(&loaded.y, 0)),
        (NAMES.map(String::from).to_vec(), vec![10., 20., 30., 40.])
    );
    assert_eq!(loaded.columns, selected.input_columns());
    assert_eq!(loaded.columns.len(), 4);
    let mut streamed = Vec::new();
    let mut take = |rows: Rows<'_>| {
        streamed.extend(rows_of(&rows.x.to_owned()));
        Ok(())
    };
    selected.stream().unwrap().for_each_chunk(3, &mut take).unwrap();
    assert_eq!(streamed, ROWS.map(|row| row.to_vec()));
    let blocks = selected.blocks(3, None).unwrap().flat_map(|block| rows_of(&block.unwrap().x));
    assert_eq!(blocks.collect::<Vec<_>>(), ROWS.map(|row| row.to_vec()));
    // the categories are those of the file, whatever rows are chosen
    let mask = Arc::new(Mask::new("first", [true, false, false, false]));
    let some = selected.rows_where(mask, true);
    assert_eq!(some.input_names(), NAMES);
    assert_eq!(rows_of(&some.read_all().unwrap().x), [ROWS[0].to_vec()]);
}

#[test]
fn a_model_reads_other_files_as_it_read_its_own() {
    let folder = Folder::new();
    let path = folder.write("t.csv", TABLE);
    let columns = Table::open(&path).unwrap().select(&encoded(&path)).unwrap().input_columns();
    let text = serde_json::to_string(&columns).unwrap();
    let columns: Vec<InputColumn> = serde_json::from_str(&text).unwrap();
    let known = Selection::all_inputs().columns(columns);
    let read = |content: &str| {
        let other = folder.write("o.csv", content);
        Table::open(&other)?.select(&known)?.read_all()
    };
    // fewer categories, another order of columns
    let found = read("size,a,colour,when\nlarge,7,blue,1970-01-03\n").unwrap();
    assert_eq!(rows_of(&found.x), [[2.0, 1., 0., 0., 0., 7.].to_vec()]);
    let error = fails(
        read("when,colour,size,a\n2024-01-01,red,small,1\n2024-01-01,purple,small,1\n"),
        &[
            "o.csv: row 2, column `colour`",
            "`purple` is none of the categories",
            "`blue`, `green`, `red`",
        ],
    );
    assert!(matches!(error, Error::Cell { row: 2, .. }));
    fails(
        read("when,colour,size,a\n1.1.2024,red,small,1\n"),
        &["row 1, column `when`", "`1.1.2024` is not a date", "2024-12-31"],
    );
    fails(read("when,size,a\n2024-01-01,small,1\n"), &["column `colour`", "not in the file"]);
    // rows that a mask leaves out are of no matter
    let other =
        folder.write("m.csv", "when,colour,size,a\n2024-01-01,red,small,1\nnever,pink,small,1\n");
    let mask = Arc::new(Mask::new("first", [true, false]));
    let some = Table::open(&other).unwrap().select(&known).unwrap().rows_where(mask, true);
    assert_eq!(some.read_all().unwrap().x.nrows(), 1);
}

#[test]
fn missing_cells_are_refused_or_dropped() {
    let folder = Folder::new();
    let holes =
        "when,colour,y\n,red,1\n2024-01-01,,2\n2024-01-02,blue,3\nNA,red,4\n2024-01-03,?,5\n";
    let path = folder.write("h.csv", holes);
    let selected = Table::open(&path).unwrap().select(&encoded(&path)).unwrap();
    assert_eq!(selected.input_names(), ["when", "colour=red"]);
    fails(
        selected.read_all(),
        &["h.csv: row 1, column `when`", "the cell is empty", "--missing drop"],
    );
    let dropped = selected.missing(Missing::Drop).read_all().unwrap();
    assert_eq!((rows_of(&dropped.x), dropped.dropped), (vec![vec![19_724.0, 0.0]], 4));
}

#[test]
fn codes_and_categories_can_be_asked_for() {
    let folder = Folder::new();
    let path = folder.write("c.csv", "group,level,y\nb,3,1\na,1,2\nc,3,3\n");
    let options = EncodeOptions { categorical: vec!["level".into()], codes: vec!["group".into()] };
    let selection = encode(&path, &options).unwrap();
    let loaded = Table::open(&path).unwrap().select(&selection).unwrap().read_all().unwrap();
    assert_eq!(loaded.input_names, ["group", "level=3"]);
    assert_eq!(rows_of(&loaded.x), [[1., 1.], [0., 0.], [2., 1.]].map(|row| row.to_vec()));
    let stray = EncodeOptions { categorical: vec!["y".into()], ..EncodeOptions::default() };
    fails(encode(&path, &stray), &["column `y`", "is not an input column"]);
    // a column of numbers is not a column of codes
    let plain = EncodeOptions { codes: vec!["level".into()], ..EncodeOptions::default() };
    assert!(!encode(&path, &plain).unwrap().encodings.contains_key("level"));
}

#[test]
fn identifiers_are_not_categories() {
    let folder = Folder::new();
    let mut text = String::from("name,y\n");
    (0..300).for_each(|i| text += &format!("person {i},{i}\n"));
    let path = folder.write("i.csv", text);
    fails(
        encode(&path, &EncodeOptions::default()),
        &["column `name`", "300 in the 300", "`person 0`", "--ignore name"],
    );
    let codes = EncodeOptions { codes: vec!["name".into()], ..EncodeOptions::default() };
    assert!(encode(&path, &codes).is_ok(), "codes may be more");
}

#[test]
fn tables_of_numbers_stay_as_they_are() {
    let folder = Folder::new();
    let path = folder.write("n.csv", "a,b,y\n1,NA,3\n4,5,6\n");
    let selection = encoded(&path);
    assert!(selection.encodings.is_empty());
    assert_eq!(selection.inputs, Some(vec!["a".into(), "b".into()]));
    // a text further down is a mistake, as ever
    let path = folder.write("n.csv", "a,y\n1,3\nx,6\n");
    let selected = Table::open(&path).unwrap().select(&encoded(&path)).unwrap();
    fails(
        selected.read_all(),
        &["row 2, column `a`", "`x` is text where a number is needed", "--categorical"],
    );
}

/// Dates by type, moments in three units, texts.
#[test]
fn parquet_is_read_as_csv_is() {
    let folder = Folder::new();
    let path = folder.path("t.parquet");
    let day = 86_400_i64;
    let moments = |unit: i64| Values::Int64([0, day / 2, 3 * day].map(|s| s * unit).to_vec());
    let group = vec![
        (Values::Int32(vec![19_723, 19_724, 19_722]), None),
        (moments(1_000), None),
        (moments(1_000_000), None),
        (moments(1_000_000_000), None),
        (Values::Text(vec!["red", "blue", "red"]), Some(vec![1, 1, 1])),
        (Values::Text(vec!["2024-01-01", "2024-01-02T12:00:00Z", "2023-12-31"]), None),
        (Values::Double(vec![1.0, 2.0, 3.0]), None),
    ];
    let schema = "required int32 date (DATE); required int64 ms (TIMESTAMP(MILLIS,true)); \
                  required int64 us (TIMESTAMP(MICROS,false)); required int64 ns (TIMESTAMP(NANOS,true)); \
                  optional binary colour (UTF8); required binary text (UTF8); required double y;";
    write(&path, schema, WriterProperties::builder(), &[group]);
    let selection = encoded(&path);
    assert_eq!(selection.encodings.len(), 6);
    let loaded = Table::open(&path).unwrap().select(&selection).unwrap().read_all().unwrap();
    assert_eq!(loaded.input_names, ["date", "ms", "us", "ns", "colour=red", "text"]);
    let expected = [
        [19_723.0, 0.0, 0.0, 0.0, 1.0, 19_723.0],
        [19_724.0, 0.5, 0.5, 0.5, 0.0, 19_724.5],
        [19_722.0, 3.0, 3.0, 3.0, 1.0, 19_722.0],
    ];
    assert_eq!(rows_of(&loaded.x), expected.map(|row| row.to_vec()));
    // the same model reads CSV, and texts are dates
    let csv = folder.write(
        "t.csv",
        "date,ms,us,ns,colour,text,y\n2024-01-01,1970-01-01,1970-01-01 12:00,1970-01-04,blue,2024-01-01,1\n",
    );
    let found = Table::open(&csv).unwrap().select(&selection).unwrap().read_all().unwrap();
    assert_eq!(rows_of(&found.x), [[19_723.0, 0.0, 0.5, 3.0, 0.0, 19_723.0].to_vec()]);
    let texts = Table::open(&path).unwrap().texts("ms").unwrap();
    assert_eq!(texts, ["1970-01-01", "1970-01-01T12:00:00Z", "1970-01-04"]);
}

#[test]
fn parquet_names_the_cell_and_skips_what_is_missing() {
    let folder = Folder::new();
    let path = folder.path("t.parquet");
    let colours = Values::Text(vec!["red", "blue", "pink"]);
    let group =
        vec![(colours, Some(vec![1, 1, 0, 1])), (Values::Double(vec![1.0, 2.0, 3.0, 4.0]), None)];
    let schema = "optional binary colour (UTF8); required double y;";
    write(&path, schema, WriterProperties::builder(), &[group]);
    let all = Categories::new(["red", "blue"]).unwrap();
    let column = InputColumn { name: "colour".into(), encoding: Encoding::OneHot(all) };
    let known = Selection::targets(["y"]).columns([column]);
    let selected = Table::open(&path).unwrap().select(&known).unwrap();
    fails(selected.read_all(), &["row 3, column `colour`", "the value is missing"]);
    let dropped = selected.clone().missing(Missing::Drop);
    fails(dropped.read_all(), &["row 4, column `colour`", "`pink` is none of the categories"]);
    let mask = Arc::new(Mask::new("most", [true, true, true, false]));
    let some = dropped.rows_where(mask, true).read_all().unwrap();
    assert_eq!((rows_of(&some.x), some.dropped), (vec![vec![1.0], vec![0.0]], 1));
    // nor are dates numbers, unless a model knows them as dates; as labels and identifiers they are texts
    let dated = folder.path("d.parquet");
    let group = vec![(Values::Int32(vec![1, 2]), None), (Values::Double(vec![1.0, 2.0]), None)];
    write(
        &dated,
        "required int32 d (DATE); required double y;",
        WriterProperties::builder(),
        &[group],
    );
    let table = Table::open(&dated).unwrap();
    for wrong in [
        Selection::targets(["y"]).inputs(["d"]),
        Selection::targets(["d"]).inputs(["y"]),
        Selection::targets(Vec::<String>::new()).inputs(["y"]).weight("d"),
    ] {
        fails(table.select(&wrong), &["column `d`", "holds dates where numbers are needed"]);
    }
    assert!(table.select(&Selection::targets(["d"]).inputs(["y"]).categorical()).is_ok());
    assert!(table.select(&Selection::all_inputs().inputs(["y"]).ids(["d"])).is_ok());
    // numbers are not dates
    let when = InputColumn { name: "y".into(), encoding: Encoding::Date };
    let wrong = Selection::all_inputs().columns([when]);
    fails(
        Table::open(&path).unwrap().select(&wrong),
        &["column `y`", "holds numbers where the model needs dates"],
    );
}

#[test]
fn times_without_a_date_are_refused_in_every_unit() {
    let folder = Folder::new();
    for (schema, values) in [
        ("int32 t (TIME(MILLIS,true))", Values::Int32(vec![1000, 2000])),
        ("int64 t (TIME(MICROS,true))", Values::Int64(vec![1000, 2000])),
        ("int64 t (TIME(NANOS,false))", Values::Int64(vec![1000, 2000])),
        ("int32 t (TIME_MILLIS)", Values::Int32(vec![1000, 2000])),
        ("int64 t (TIME_MICROS)", Values::Int64(vec![1000, 2000])),
    ] {
        let path = folder.path("t.parquet");
        let group = vec![(values, None), (Values::Double(vec![1.0, 2.0]), None)];
        let schema = format!("required {schema}; required double y;");
        write(&path, &schema, WriterProperties::builder(), &[group]);
        let table = Table::open(&path).unwrap();
        // as an input, a target and an identifier
        for selection in [
            Selection::targets(["y"]),
            Selection::targets(["t"]),
            Selection::targets(["y"]).inputs(["t"]).ids(["t"]),
        ] {
            fails(table.select(&selection), &["column `t`", "times of day", "hours"]);
        }
    }
}

#[test]
fn unknown_categories_are_as_far_from_the_others_as_these_are_from_each_other() {
    let folder = Folder::new();
    let path = folder.write("t.csv", TABLE);
    let columns = Table::open(&path).unwrap().select(&encoded(&path)).unwrap().input_columns();
    let colour = columns[1].clone();
    let ignoring: Vec<InputColumn> =
        columns.into_iter().map(|own| own.with_unknown(Unknown::Ignore)).collect();
    let known = Selection::all_inputs().columns(ignoring);
    let csv = "a,when,size,colour\n1,2024-01-01,small,purple\n2,2024-01-01,huge,red\n\
               3,2024-01-01,large,blue\n4,2024-01-01,large,green\n";
    let other = folder.write("o.csv", csv);
    let selected = Table::open(&other).unwrap().select(&known).unwrap();
    let found = rows_of(&selected.read_all().unwrap().x);
    let colours: Vec<&[f64]> = found.iter().map(|row| &row[1..4]).collect();
    let between = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    };
    for i in 0..4 {
        for j in 0..i {
            let apart = between(colours[i], colours[j]);
            assert!((apart - 2_f64.sqrt()).abs() < 1e-12, "{i}, {j}: {apart}");
        }
    }
    assert_eq!(found.iter().map(|row| row[4]).collect::<Vec<f64>>(), [1.0, 0.5, 0.0, 0.0]);
    let which: Vec<bool> = colours.iter().map(|own| colour.is_unknown(own)).collect();
    assert_eq!(which, [true, false, false, false]);
    // from Parquet too
    let texts = |all: &[&str]| Values::Bytes(all.iter().map(|text| (*text).into()).collect());
    let group = vec![
        (Values::Double(vec![1.0]), None),
        (texts(&["2024-01-01"]), None),
        (texts(&["small"]), None),
        (texts(&["purple"]), None),
    ];
    let schema = "required double a; required binary when (UTF8); required binary size (UTF8); \
                  required binary colour (UTF8);";
    let path = folder.path("o.parquet");
    write(&path, schema, WriterProperties::builder(), &[group]);
    let read = Table::open(&path).unwrap().select(&known).unwrap().read_all().unwrap();
    assert_eq!(rows_of(&read.x), found[..1]);
    // a cell by itself; codes have no place for another
    let column = InputColumn {
        name: "c".into(),
        encoding: Encoding::OneHot(Categories::new(["a", "b"]).unwrap()),
    };
    assert!(column.numbers("z").unwrap_err().contains("--unknown ignore"));
    assert_eq!(column.with_unknown(Unknown::Ignore).numbers("z"), Ok(vec![0.5]));
    let codes = Encoding::Code(Categories::new(["a", "b"]).unwrap());
    let codes = InputColumn { name: "c".into(), encoding: codes }.with_unknown(Unknown::Ignore);
    assert!(!codes.numbers("z").unwrap_err().contains("--unknown"));
}
