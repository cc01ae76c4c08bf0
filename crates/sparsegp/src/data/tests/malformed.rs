use super::*;

#[test]
fn empty_in_every_way() {
    let folder = Folder::new();
    fails(load(&folder.write("zero.csv", "")), &["zero.csv: the file is empty"]);
    fails(load(&folder.write("zero.csv.gz", gzip(""))), &["zero.csv.gz: the file is empty"]);
    fails(load(&folder.write("zero.parquet", "")), &["zero.parquet: the file is empty"]);
    fails(load(&folder.write("blank.csv", "\n\n\n")), &["the file is empty"]);
    for text in ["a,y\n", "a,y", "a,y\n\n\n"] {
        fails(load(&folder.write("h.csv", text)), &["h.csv: has a header but no rows"]);
    }
    let path = folder.write("h.csv", "a,y\n");
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    fails(selected.stream(), &["has a header but no rows"]);
    let mut blocks = selected.blocks(10, None).unwrap();
    fails(blocks.next().unwrap(), &["has a header but no rows"]);
    assert!(blocks.next().is_none());
    fails(selected.count_rows(), &["has a header but no rows"]);
}

#[test]
fn absent_files_and_folders() {
    let folder = Folder::new();
    let error = fails(Table::open(folder.path("no.csv")), &["no.csv: No such file"]);
    assert!(matches!(error, Error::File { .. }));
    fails(Table::open(folder.path("")), &["no table is there"]);
    fails(Table::open(folder.path("*.csv")), &["*.csv: no table is there"]);
}

#[test]
fn ragged_rows_name_row_and_counts() {
    let folder = Folder::new();
    let path = folder.write("r.csv", "a,b,y\n1,2,3\n4,5\n6,7,8\n");
    fails(load(&path), &["r.csv: row 2 has 2 fields where the header has 3"]);
    let path = folder.write("r.csv", "a,b,y\n1,2,3,4\n");
    fails(load(&path), &["row 1 has 4 fields where the header has 3", "mend the row"]);
    let path = folder.write("r.csv", "a,b,y\n1\n");
    fails(load(&path), &["row 1 has 1 field where the header has 3"]);
    // Dropping rows with missing cells does not excuse a ragged one.
    let path = folder.write("r.csv", "a,b,y\n1,2,3\n4,5\n");
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    fails(selected.missing(Missing::Drop).read_all(), &["row 2 has 2 fields"]);
    let path = folder.write("q.csv", "a,b,y\n1,\"2,3\n4,5,6\n7,8,9\n");
    fails(load(&path), &["q.csv: row 1 has a quote that is never closed, before `2,3`"]);
    // Decimal commas make ragged rows.
    let path = folder.write("d.csv", "a,y\n1,5,2,5\n");
    fails(load(&path), &["row 1 has 4 fields where the header has 2"]);
}

#[test]
fn doubled_and_absent_columns() {
    let folder = Folder::new();
    let error = fails(
        load(&folder.write("d.csv", "a,b,a,y\n1,2,3,4\n")),
        &["d.csv: column `a` stands at positions 1 and 3 of the header"],
    );
    assert!(matches!(error, Error::Column { .. }));
    let path = folder.write("n.csv", "temperature,pressure,y\n1,2,3\n");
    let table = Table::open(&path).unwrap();
    let error = fails(
        table.select(&Selection::targets(["y"]).inputs(["temprature"])),
        &["n.csv: column `temprature` is not in the file; nearest: `temperature`"],
    );
    assert!(matches!(error, Error::Column { .. }));
    fails(table.select(&Selection::targets(["Y"])), &["column `Y`", "nearest: `y`"]);
    let path = folder.write("one.csv", "y\n1\n");
    fails(load(&path), &["one.csv: no input column is left of the 1 in the file (`y`)"]);
}

#[test]
fn a_header_of_data_is_refused_and_numbered_columns_are_not() {
    let folder = Folder::new();
    let path = folder.write("nohead.csv", "0.25,1.5,-3\n0.5,2.5,-4\n");
    fails(
        Table::open(&path),
        &["nohead.csv: the first line (0.25,1.5,-3) holds numbers", "put a header line above it"],
    );
    let table = Table::open(folder.write("pandas.csv", "0,1,2\n0.5,1.5,2.5\n")).unwrap();
    assert_eq!(table.columns(), ["0", "1", "2"]);
    // An index without a name is not an input unless it is asked for.
    let table = Table::open(folder.write("index.csv", ",a,y\n0,0.5,1\n1,0.7,2\n")).unwrap();
    assert_eq!(table.select(&Selection::targets(["y"])).unwrap().input_names(), ["a"]);
    let asked = table.select(&Selection::targets(["y"]).inputs([""])).unwrap();
    assert_eq!(column(&asked.read_all().unwrap().x, 0), [0.0, 1.0]);
}

#[test]
fn truncated_and_damaged_gzip() {
    let folder = Folder::new();
    let mut text = "a,y\n".to_owned();
    for i in 0..20_000 {
        text += &format!("{},{}\n", f64::from(i).sin(), i);
    }
    let whole = gzip(&text);
    let path = folder.write("cut.csv.gz", &whole[..whole.len() / 2]);
    let error =
        fails(load(&path), &["cut.csv.gz: the gzip data end too early", "truncated", "rows"]);
    assert!(matches!(error, Error::File { .. }));
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    fails(selected.stream(), &["truncated"]);
    // The checksum at the end, the first bytes, and nothing but the magic.
    fails(load(&folder.write("tail.gz", &whole[..whole.len() - 3])), &["truncated"]);
    fails(load(&folder.write("head.gz", &whole[..30])), &["head.gz", "truncated"]);
    fails(load(&folder.write("magic.gz", b"\x1f\x8b")), &["magic.gz"]);
    let mut flipped = whole.clone();
    let end = flipped.len() - 6;
    flipped[end] ^= 0xff;
    fails(load(&folder.write("crc.gz", flipped)), &["crc.gz: the gzip data are damaged", "again"]);
}

#[test]
fn other_formats_are_called_by_name() {
    let folder = Folder::new();
    for (name, bytes, said) in [
        (
            "sheet.xlsx",
            &b"PK\x03\x04\x14\0\0\0\0\0"[..],
            "spreadsheet; unpack it or export it as CSV",
        ),
        ("a.csv.zst", b"\x28\xb5\x2f\xfd\x04\0\0\0\0", "Zstandard"),
        ("a.feather", b"ARROW1\0\0\0\0\0\0", "Arrow (Feather)"),
        ("a.parquet", b"PARE\x15\0\0\0\0\0", "encrypted Parquet"),
        (
            "utf16.csv",
            b"a\0,\0y\0\n\x001\0,\x002\0\n\0",
            "UTF-16 text without a byte order mark: pass `--encoding utf-16le`",
        ),
        ("b.parquet", b"garbage\0\x01\x02garbage", "does not begin with `PAR1`"),
        ("c.bin", b"garbage\0\x01\x02garbage", "neither CSV (plain or gzip) nor Parquet"),
        (
            "latin.csv",
            b"gr\xf6\xdfe,y\n1,2\n",
            "column 1 in the header (`gr\u{fffd}\u{fffd}e`) is not UTF-8 text: pass `--encoding latin1`",
        ),
    ] {
        let error = fails(Table::open(folder.write(name, bytes)), &[name, said]);
        assert!(matches!(error, Error::File { .. }));
    }
    let path = folder.write("p.parquet.gz", gzip(b"PAR1\x15\0\x15\0"));
    fails(Table::open(path), &["Parquet file inside gzip"]);
    // A column may have such a name.
    let table = Table::open(folder.write("names.csv", "PAR1,BZh,y\n1,2,3\n")).unwrap();
    assert_eq!(table.columns(), ["PAR1", "BZh", "y"]);
}

#[test]
fn no_damage_to_a_csv_panics() {
    let folder = Folder::new();
    let text = b"id,a,b,y\nx,1,2,3\n\"y z\",4.5,-5e3,6\nz,7,8,9\n";
    for whole in [text.to_vec(), gzip(text)] {
        for i in 0..whole.len() {
            for value in [0, b'"', b',', b'\n', 0xff, whole[i] ^ 1] {
                let mut bytes = whole.clone();
                bytes[i] = value;
                let path = folder.write("f", &bytes);
                // An error or a table, both are fine.
                let _ = Table::open(&path).and_then(|table| {
                    let names = table.columns().to_vec();
                    let last = names[names.len() - 1].clone();
                    let selected = table.select(&Selection::targets([last]).ids(["id"]))?;
                    selected.missing(Missing::Drop).read_all()
                });
            }
            let path = folder.write("f", &whole[..i]);
            let _ = load(&path);
        }
    }
}
