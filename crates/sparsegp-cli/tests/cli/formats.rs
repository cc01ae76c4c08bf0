//! Files: compressed, Parquet, columns in another order, columns that nobody asked for.

use crate::support::{Folder, bundled, column, plane, plane_rows, snelson, texts};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::io::{Read, Write};
use std::sync::Arc;

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The plane as Parquet, columns in another order than the CSV has.
fn plane_parquet(rows: usize) -> Vec<u8> {
    let schema = "message m { required double y; required binary key (UTF8); \
                  required double b; required double a; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let data = plane_rows(rows);
    let mut group = writer.next_row_group().unwrap();
    for column in [Some(2), None, Some(1), Some(0)] {
        let mut out = group.next_column().unwrap().unwrap();
        match column {
            Some(j) => {
                let values: Vec<f64> = data.iter().map(|row| row[j]).collect();
                out.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
            }
            None => {
                let keys: Vec<ByteArray> =
                    (0..rows).map(|i| format!("r{i}").as_str().into()).collect();
                out.typed::<ByteArrayType>().write_batch(&keys, None, None).unwrap();
            }
        }
        out.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn csv_gzip_and_parquet_are_one() {
    let folder = Folder::new();
    folder.write("p.csv", plane(120));
    folder.write("p.csv.gz", gzip(&plane(120)));
    folder.write("p.parquet", plane_parquet(120));
    folder.write("no-ending", plane_parquet(120));
    let fit = |data: &str| {
        folder.json(&format!("fit {data} --target y --features a,b --inducing 9 --split 0.2 -o m"))
            ["model"]
            .clone()
    };
    let csv = fit("p.csv");
    for data in ["p.csv.gz", "p.parquet", "no-ending"] {
        let mut other = fit(data);
        other["training"]["seconds"] = csv["training"]["seconds"].clone();
        assert_eq!(other, csv, "{data}");
    }
    let predict = |data: &str| folder.ok(&format!("predict m {data} --id key")).out;
    let expected = predict("p.csv");
    assert_eq!(predict("p.parquet"), expected);
    assert_eq!(predict("p.csv.gz"), expected);
    let scores = |data: &str| folder.json(&format!("score m {data}"))["scores"].clone();
    assert_eq!(scores("p.parquet"), scores("p.csv"));
    // Compressed output, by its name.
    folder.ok("predict m p.parquet --id key -o out.csv.gz");
    let mut text = String::new();
    let bytes = folder.bytes("out.csv.gz");
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, expected);
}

#[test]
fn columns_are_found_by_name() {
    let folder = Folder::new();
    folder.write("p.csv", plane(60));
    folder.ok("fit p.csv --target y --features a,b -o m");
    let mut shuffled = String::from("note,b,extra,a\n");
    for [a, b, ..] in plane_rows(60) {
        shuffled += &format!("\"x, \"\"y\"\"\",{b},text,{a}\n");
    }
    folder.write("s.csv", &shuffled);
    let plain = folder.ok("predict m p.csv").out;
    assert_eq!(folder.ok("predict m s.csv").out, plain);
    let noted = folder.ok("predict m s.csv --id note --id a").out;
    let first = noted.lines().nth(1).unwrap();
    assert!(noted.starts_with("note,a,mean,sd,q0.025,q0.975\n"));
    assert_eq!(folder.ok("predict m s.csv --id note,a").out, noted);
    let drawn = folder.ok("sample m s.csv --draws 1 --id a,note").out;
    assert!(drawn.starts_with("a,note,1\n"), "{drawn}");
    assert!(first.starts_with("\"x, \"\"y\"\"\",0,"), "{first}");
}

#[test]
fn many_rows_are_streamed_in_order() {
    let folder = Folder::new();
    folder.write("p.csv", plane(60));
    folder.write("many.csv", plane(20_000));
    folder.ok("fit p.csv --target y --features a,b -o m");
    folder.ok("predict m many.csv --id key -o out.csv");
    let out = folder.read("out.csv");
    assert_eq!(texts(&out, "key"), texts(&plane(20_000), "key"));
    let first = column(&folder.ok("predict m p.csv").out, "mean");
    assert_eq!(column(&out, "mean")[..60], first[..]);
}

#[test]
fn an_existing_output_is_replaced_only_by_a_whole_one() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.ok("fit s.csv --target y --inducing 5 -o m");
    let model = folder.bytes("m");
    folder.ok("predict m s.csv -o out.csv");
    let out = folder.bytes("out.csv");
    folder.write("bad.csv", snelson() + "1,2\noops,3\n");
    folder.refused(1, "predict m bad.csv -o out.csv", &["bad.csv: row 202, column `x0`", "oops"]);
    folder.refused(1, "fit bad.csv --target y -o m", &["bad.csv: row 202"]);
    assert_eq!((folder.bytes("out.csv"), folder.bytes("m")), (out, model));
}

#[test]
fn a_model_loads_without_its_data_wherever_it_goes() {
    let folder = Folder::new();
    folder.write("d.csv", bundled("airfoil.csv.gz"));
    folder.ok("fit d.csv --target y --inducing 20 --pilot 0 --max-iterations 5 -o a.safetensors");
    let before = folder.ok("predict a.safetensors d.csv").out;
    let other = Folder::new();
    other.write("b.safetensors", folder.bytes("a.safetensors"));
    other.write("d.csv", folder.bytes("d.csv"));
    assert_eq!(other.ok("predict b.safetensors d.csv").out, before);
}
