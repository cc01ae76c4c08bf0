use super::*;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type,
};
use ::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// A column of a row group: values of the present rows, definition levels if it is optional.
#[derive(Clone)]
pub(super) enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Text(Vec<&'static str>),
    Bytes(Vec<Vec<u8>>),
}

pub(super) type Group = Vec<(Values, Option<Vec<i16>>)>;

pub(super) fn write(
    path: &Path,
    schema: &str,
    properties: WriterPropertiesBuilder,
    groups: &[Group],
) {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    for group in groups {
        let mut out = writer.next_row_group().unwrap();
        for (values, levels) in group {
            let mut column = out.next_column().unwrap().unwrap();
            let levels = levels.as_deref();
            match values {
                Values::Bool(v) => column.typed::<BoolType>().write_batch(v, levels, None),
                Values::Int32(v) => column.typed::<Int32Type>().write_batch(v, levels, None),
                Values::Int64(v) => column.typed::<Int64Type>().write_batch(v, levels, None),
                Values::Float(v) => column.typed::<FloatType>().write_batch(v, levels, None),
                Values::Double(v) => column.typed::<DoubleType>().write_batch(v, levels, None),
                Values::Text(v) => {
                    let v: Vec<ByteArray> = v.iter().map(|text| (*text).into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&v, levels, None)
                }
                Values::Bytes(v) => {
                    let v: Vec<ByteArray> = v.iter().map(|bytes| bytes.clone().into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&v, levels, None)
                }
            }
            .unwrap();
            column.close().unwrap();
        }
        out.close().unwrap();
    }
    writer.close().unwrap();
}

fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder()
}

const MIXED: &str = "required boolean flag; required int32 small; optional int64 big; \
                     required float single; optional double y; required binary name (UTF8);";

fn mixed() -> Vec<Group> {
    vec![
        vec![
            (Values::Bool(vec![true, false, true]), None),
            (Values::Int32(vec![-1, 2, i32::MAX]), None),
            (Values::Int64(vec![1 << 53, -9]), Some(vec![1, 0, 1])),
            (Values::Float(vec![0.1, -1.5, 3e38]), None),
            (Values::Double(vec![0.1, 0.2, 0.3]), Some(vec![1, 1, 1])),
            (Values::Text(vec!["a", "Ω b", ""]), None),
        ],
        vec![
            (Values::Bool(vec![false, true]), None),
            (Values::Int32(vec![7, 8]), None),
            (Values::Int64(vec![5, 6]), Some(vec![1, 1])),
            (Values::Float(vec![1.0, 2.0]), None),
            (Values::Double(vec![0.5]), Some(vec![1, 0])),
            (Values::Text(vec!["d", "e"]), None),
        ],
    ]
}

#[test]
fn all_types_all_codecs_several_row_groups() {
    let folder = Folder::new();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
    ];
    for codec in codecs {
        let path = folder.path("mixed.parquet");
        write(&path, MIXED, plain().set_compression(codec), &mixed());
        let table = Table::open(&path).unwrap();
        assert_eq!(table.rows(), Some(5));
        assert_eq!(table.columns(), ["flag", "small", "big", "single", "y", "name"]);
        let selection =
            Selection::targets(["y"]).inputs(["single", "flag", "small"]).ids(["name", "big"]);
        let selected = table.select(&selection).unwrap().missing(Missing::Drop);
        assert_eq!(selected.count_rows().unwrap(), 5);
        let data = selected.read_all().unwrap();
        assert_eq!((data.rows, data.dropped), (vec![0, 1, 2, 3], 1));
        assert_eq!(column(&data.x, 0), [f64::from(0.1f32), -1.5, f64::from(3e38f32), 1.0]);
        assert_eq!(column(&data.x, 1), [1.0, 0.0, 1.0, 0.0]);
        assert_eq!(column(&data.x, 2), [-1.0, 2.0, f64::from(i32::MAX), 7.0]);
        assert_eq!(column(&data.y, 0), [0.1, 0.2, 0.3, 0.5]);
        // A null identifier is an empty text, a number is written out.
        assert_eq!(data.ids[0], ["a", "Ω b", "", "d"]);
        assert_eq!(data.ids[1], ["9007199254740992", "", "-9", "5"]);
    }
}

#[test]
fn nulls_and_nans_name_row_and_column_of_the_whole_file() {
    let folder = Folder::new();
    let path = folder.path("m.parquet");
    write(&path, MIXED, plain(), &mixed());
    let table = Table::open(&path).unwrap();
    let choose = |input: &str| table.select(&Selection::targets(["y"]).inputs([input])).unwrap();
    fails(
        choose("flag").read_all(),
        &["m.parquet: row 5, column `y`: the cell is null", "--missing drop"],
    );
    fails(choose("big").read_all(), &["row 2, column `big`: the cell is null"]);
    let path = folder.path("n.parquet");
    let group = |a: Vec<f64>| vec![(Values::Double(a), None), (Values::Float(vec![1.0; 2]), None)];
    write(
        &path,
        "required double a; required float y;",
        plain(),
        &[group(vec![1.0, 2.0]), group(vec![f64::NAN, 2.0]), group(vec![1.0, f64::INFINITY])],
    );
    fails(load(&path), &["row 3, column `a`: `NaN` is not a number", "--missing drop"]);
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let data = selected.missing(Missing::Drop).read_all().unwrap();
    assert_eq!((data.rows, data.dropped), (vec![0, 1, 3, 4], 2));
    assert_eq!(column(&data.x, 0), [1.0, 2.0, 2.0, 1.0]);
}

#[test]
fn annotations_change_the_number() {
    let folder = Folder::new();
    let path = folder.path("a.parquet");
    write(
        &path,
        "required int32 u (UINT_32); required int64 v (INTEGER(64, false)); \
         required int32 money (DECIMAL(9, 2)); required int64 cents (DECIMAL(18, 3)); \
         required int32 y;",
        plain(),
        &[vec![
            (Values::Int32(vec![-1]), None),
            (Values::Int64(vec![-1]), None),
            (Values::Int32(vec![-12345]), None),
            (Values::Int64(vec![1001]), None),
            (Values::Int32(vec![-1]), None),
        ]],
    );
    let data = load(&path).unwrap();
    assert_eq!(data.x[(0, 0)], f64::from(u32::MAX));
    assert_eq!(data.x[(0, 1)], u64::MAX as f64);
    assert_eq!((data.x[(0, 2)], data.x[(0, 3)], data.y[(0, 0)]), (-123.45, 1.001, -1.0));
}

#[test]
fn columns_that_are_not_numbers() {
    let folder = Folder::new();
    let path = folder.path("t.parquet");
    write(&path, MIXED, plain(), &mixed());
    let table = Table::open(&path).unwrap();
    let texts = table.select(&Selection::targets(["y"]).inputs(["name"])).unwrap();
    fails(
        texts.missing(Missing::Drop).read_all(),
        &[
            "t.parquet: row 1, column `name`: `a` is text where a number is needed",
            "--missing-words a",
        ],
    );
    let path = folder.path("nested.parquet");
    write(
        &path,
        "required double a; required group g { required double b; required double c; } \
         repeated double many; required double y;",
        plain(),
        &[],
    );
    let table = Table::open(&path).unwrap();
    assert_eq!(table.columns(), ["a", "g", "many", "y"]);
    fails(table.select(&Selection::targets(["y"])), &["column `g` is nested", "flat column"]);
    let many = Selection::targets(["y"]).inputs(["many"]);
    fails(table.select(&many), &["column `many` is nested (a repeated field)"]);
    fails(table.select(&Selection::all_inputs().inputs(["a"]).ids(["g"])), &["`g` is nested"]);
    let path = folder.path("types.parquet");
    write(
        &path,
        "required int96 old; required fixed_len_byte_array(4) f; required double y;",
        plain(),
        &[],
    );
    let table = Table::open(&path).unwrap();
    let selected = |name| table.select(&Selection::targets(["y"]).inputs([name]));
    fails(selected("old"), &["`old` holds dates where numbers are needed"]);
    let dated =
        crate::data::InputColumn { name: "old".into(), encoding: crate::data::Encoding::Date };
    let dated = Selection::targets(["y"]).columns([dated]);
    assert!(table.select(&dated).is_ok(), "moments of old writers are read");
    fails(selected("f"), &["`f` is of the type FIXED_LEN_BYTE_ARRAY"]);
}

#[test]
fn flat_columns_beside_nested_ones_are_found() {
    let folder = Folder::new();
    let path = folder.path("beside.parquet");
    let one = |value: f64| (Values::Double(vec![value]), None);
    write(
        &path,
        "required group g { required double b; required double c; } required double a; \
         required double y;",
        plain(),
        &[vec![one(1.0), one(2.0), one(3.0), one(4.0)]],
    );
    let table = Table::open(&path).unwrap();
    let data = table.select(&Selection::targets(["y"]).ignore(["g"])).unwrap().read_all().unwrap();
    assert_eq!((data.x[(0, 0)], data.y[(0, 0)]), (3.0, 4.0));
}

#[test]
fn text_that_is_not_text() {
    let folder = Folder::new();
    let path = folder.path("bytes.parquet");
    let bytes = Values::Bytes(vec![b"ok".to_vec(), b"\xff\xfe".to_vec()]);
    let group = vec![(bytes, None), (Values::Double(vec![1.0, 2.0]), None)];
    write(&path, "required binary id; required double a;", plain(), &[group]);
    let selection = Selection::all_inputs().ids(["id"]);
    let selected = Table::open(&path).unwrap().select(&selection).unwrap();
    fails(selected.read_all(), &["bytes.parquet: row 2, column `id`", "not UTF-8"]);
}

#[test]
fn doubled_names_and_no_rows() {
    let folder = Folder::new();
    let path = folder.path("d.parquet");
    write(&path, "required double a; required double a;", plain(), &[]);
    let table = Table::open(&path).unwrap();
    fails(table.select(&Selection::all_inputs()), &["column `a` stands at positions 1 and 2"]);
    write(&path, "required double a; required double y;", plain(), &[]);
    fails(load(&path), &["d.parquet: has a header but no rows"]);
}

#[test]
fn a_wrong_extension_still_works() {
    let folder = Folder::new();
    for name in ["really.csv", "really.csv.gz", "really"] {
        let path = folder.path(name);
        let group = vec![(Values::Double(vec![1.0]), None), (Values::Double(vec![2.0]), None)];
        write(&path, "required double a; required double y;", plain(), &[group]);
        assert_eq!(load(&path).unwrap().y[(0, 0)], 2.0);
    }
}

/// Some rows with nulls, in pages and row groups of awkward sizes.
fn damaged_sample(path: &Path) {
    let group = |n: i32| {
        let levels: Vec<i16> = (0..n).map(|i| i16::from(i % 5 != 0)).collect();
        let present = levels.iter().filter(|level| **level > 0).count();
        vec![
            (Values::Double((0..n).map(|i| f64::from(i).sin()).collect()), None),
            (Values::Int32((0..present as i32).collect()), Some(levels)),
        ]
    };
    let properties = plain()
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(7)
        .set_write_batch_size(3);
    write(path, "required double a; optional int32 y;", properties, &[group(40), group(23)]);
}

#[test]
fn truncated_files_say_so() {
    let folder = Folder::new();
    let path = folder.path("whole.parquet");
    damaged_sample(&path);
    let bytes = std::fs::read(&path).unwrap();
    for end in (4..bytes.len()).step_by(13) {
        let cut = folder.write("cut.parquet", &bytes[..end]);
        let error = fails(load(&cut), &["cut.parquet: cannot be read as Parquet", "truncated"]);
        assert!(matches!(error, Error::File { .. }));
    }
}

#[test]
fn no_damaged_byte_panics() {
    let folder = Folder::new();
    let path = folder.path("whole.parquet");
    damaged_sample(&path);
    let bytes = std::fs::read(&path).unwrap();
    for i in 0..bytes.len() {
        for value in [bytes[i] ^ 0xff, bytes[i] ^ 1] {
            let mut flipped = bytes.clone();
            flipped[i] = value;
            let path = folder.write("flipped.parquet", &flipped);
            // An error or other numbers: there is no checksum to tell.
            let _ = Table::open(&path).and_then(|table| {
                let selected = table.select(&Selection::targets(["y"]))?;
                selected.missing(Missing::Drop).read_all()
            });
        }
    }
}
