use super::*;
use std::fmt::Write as _;

#[test]
fn columns_come_by_name_in_the_order_asked_for() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "junk,b,y,a\nfoo,1,2,3\n,4,5,6\n");
    let table = Table::open(&path).unwrap();
    assert_eq!(table.columns(), ["junk", "b", "y", "a"]);
    assert_eq!((table.rows(), table.path()), (None, path.as_path()));
    let selected =
        table.select(&Selection::targets(["y"]).inputs(["a", "b"]).ids(["junk"])).unwrap();
    assert_eq!(selected.input_names(), ["a", "b"]);
    assert_eq!(selected.target_names(), ["y"]);
    assert_eq!(selected.id_names(), ["junk"]);
    let data = selected.read_all().unwrap();
    assert_eq!(column(&data.x, 0), [3.0, 6.0]);
    assert_eq!(column(&data.x, 1), [1.0, 4.0]);
    assert_eq!(column(&data.y, 0), [2.0, 5.0]);
    // An identifier may be empty: it is text.
    assert_eq!(data.ids, [["foo", ""]]);
    assert_eq!((data.rows, data.dropped), (vec![0, 1], 0));
    assert_eq!(data.input_names, ["a", "b"]);
}

#[test]
fn every_number_round_trips_exactly() {
    let folder = Folder::new();
    let values = [
        "0.1",
        "1e-300",
        "-0",
        "123456789.123456789",
        "5e-324",
        "1.7976931348623157e308",
        "9007199254740993",
        "+3.5",
        ".5",
        "5.",
        "2.2250738585072011e-308",
        "0.30000000000000004",
        "1E5",
        "-7.038531e-26",
    ];
    let mut text = "x,y\n".to_owned();
    for value in values {
        writeln!(text, "{value}, {value} ").unwrap();
    }
    for (name, bytes) in [("a.csv", text.clone().into_bytes()), ("a.csv.gz", gzip(&text))] {
        let data = load(&folder.write(name, bytes)).unwrap();
        for (i, value) in values.iter().enumerate() {
            let expected: f64 = value.parse().unwrap();
            assert_eq!(data.x[(i, 0)].to_bits(), expected.to_bits());
            assert_eq!(data.y[(i, 0)].to_bits(), expected.to_bits());
        }
    }
}

#[test]
fn layouts_that_mean_the_same() {
    let folder = Folder::new();
    let expect = |name: &str, bytes: &[u8]| {
        let data = load(&folder.write(name, bytes)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(data.input_names, ["a b", "c"], "{name}");
        assert_eq!((column(&data.x, 0), column(&data.x, 1)), (vec![1.0, 4.0], vec![2.0, 5.0]));
        assert_eq!(column(&data.y, 0), [3.0, 6.0], "{name}");
    };
    let plain = b"a b,c,y\n1,2,3\n4,5,6\n";
    expect("plain.csv", plain);
    expect("no-final-newline.csv", &plain[..plain.len() - 1]);
    expect("windows.csv", b"a b,c,y\r\n1,2,3\r\n4,5,6\r\n");
    expect("bom.csv", b"\xef\xbb\xbfa b,c,y\n1,2,3\n4,5,6\n");
    expect("bom.csv.gz", &gzip(b"\xef\xbb\xbfa b,c,y\n1,2,3\n4,5,6\n"));
    expect("quoted.csv", b"\"a b\",\"c\",y\n\"1\",2,3\n4,5,\"6\"\n");
    expect("spaces.csv", b"a b , c, y\n 1, 2 ,3\n4,5 , 6\n");
    expect("blank-lines.csv", b"a b,c,y\n1,2,3\n\n4,5,6\n\n\n");
    expect("tabs.tsv", b"a b\tc\ty\n1\t2\t3\n4\t5\t6\n");
    expect("tabs.tsv.gz", &gzip(b"a b\tc\ty\n1\t2\t3\n4\t5\t6\n"));
    expect("tabs.csv", b"a b\tc\ty\n1\t2\t3\n4\t5\t6\n");
    expect("semicolons.csv", b"a b;c;y\n1;2;3\n4;5;6\n");
    // The bytes decide, not the name.
    expect("not-compressed.csv.gz", plain);
    expect("compressed.csv", &gzip(plain));
    expect("text.parquet", plain);
    expect("no-extension", plain);
    // Two gzip members, as `cat a.gz b.gz` makes them.
    expect("two.csv.gz", &[gzip(b"a b,c,y\n1,2,3\n"), gzip(b"4,5,6\n")].concat());
    expect("multi.csv.gz", &[gzip(b"a b,c,"), gzip(b"y\n1,2,3\n4,5,6\n")].concat());
}

#[test]
fn unchosen_columns_are_never_parsed() {
    let folder = Folder::new();
    let path = folder.write("a.csv", b"a,text,latin,y\n1,foo,\xe9\xe8,2\n3,\"x,\ny\",\xff,4\n");
    let selection = Selection::targets(["y"]).inputs(["a"]);
    let data = Table::open(&path).unwrap().select(&selection).unwrap().read_all().unwrap();
    assert_eq!((column(&data.x, 0), column(&data.y, 0)), (vec![1.0, 3.0], vec![2.0, 4.0]));
    let by_ignoring = Selection::targets(["y"]).ignore(["text", "latin"]);
    assert_eq!(Table::open(&path).unwrap().select(&by_ignoring).unwrap().input_names(), ["a"]);
    let latin = Selection::targets(["y"]).inputs(["a"]).ids(["latin"]);
    fails(
        Table::open(&path).unwrap().select(&latin).unwrap().read_all(),
        &["a.csv: row 1, column `latin`", "not UTF-8"],
    );
}

#[test]
fn missing_cells_are_refused_by_name() {
    let folder = Folder::new();
    for (cell, said) in [
        ("", "the cell is empty"),
        ("  ", "the cell is empty"),
        ("NA", "`NA` is a missing value"),
        ("null", "`null` is a missing value"),
        ("None", "`None` is a missing value"),
        ("?", "`?` is a missing value"),
        ("NaN", "`NaN` is not a number"),
        ("nan", "`nan` is not a number"),
        ("inf", "`inf` is not finite"),
        ("-Infinity", "`-Infinity` is not finite"),
        ("1e999", "`1e999` is not finite"),
    ] {
        let path = folder.write("m.csv", format!("a,bb,y\n1,2,3\n4,{cell},6\n"));
        let error =
            fails(load(&path), &["m.csv: row 2, column `bb`: ", said, "--missing drop", "leave"]);
        assert!(matches!(error, Error::Cell { row: 2, .. }));
        let path = folder.write("t.csv", format!("a,y\n1,{cell}\n"));
        fails(load(&path), &["t.csv: row 1, column `y`", said]);
    }
}

#[test]
fn text_is_refused_under_either_policy() {
    let folder = Folder::new();
    for (cell, shown) in [
        ("abc", "`abc`"),
        ("1.5 kg", "`1.5 kg`"),
        ("\"1,5\"", "`1,5`"),
        ("0x10", "`0x10`"),
        ("true", "`true`"),
        ("1_000", "`1_000`"),
        ("N/A maybe", "`N/A maybe`"),
    ] {
        // The second text stands behind a missing cell of the same row.
        for (text, row) in [
            (format!("a,bb,y\n1,2,3\n4,{cell},6\n"), "row 2"),
            (format!("a,bb,y\n,{cell},6\n4,5,6\n"), "row 1"),
        ] {
            let path = folder.write("t.csv", text);
            let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
            let drop = selected.missing(Missing::Drop);
            fails(drop.read_all(), &["t.csv: ", row, "column `bb`", shown, "a number is needed"]);
        }
    }
    let long = "é".repeat(5000);
    let path = folder.write("long.csv", format!("a,y\n{long},1\n"));
    let text = fails(load(&path), &["`éé", "…`"]).to_string();
    assert!(text.len() < 500, "{}", text.len());
    let path = folder.write("bytes.csv", b"a,y\n1\xff,1\n");
    fails(load(&path), &["row 1, column `a`", "is text"]);
}

#[test]
fn dropped_rows_are_counted_and_indices_kept() {
    let folder = Folder::new();
    let text = "id,a,b,y\nr0,1,2,3\nr1,,2,3\nr2,4,5,6\nr3,7,8,NA\nr4,9,inf,1\nr5,10,11,12\n";
    let path = folder.write("d.csv", text);
    let table = Table::open(&path).unwrap();
    let selected = table.select(&Selection::targets(["y"]).ids(["id"])).unwrap();
    let data = selected.clone().missing(Missing::Drop).read_all().unwrap();
    assert_eq!(data.rows, [0, 2, 5]);
    assert_eq!(data.dropped, 3);
    assert_eq!(column(&data.x, 0), [1.0, 4.0, 10.0]);
    assert_eq!(column(&data.x, 1), [2.0, 5.0, 11.0]);
    assert_eq!(column(&data.y, 0), [3.0, 6.0, 12.0]);
    assert_eq!(data.ids, [["r0", "r2", "r5"]]);
    fails(selected.read_all(), &["row 2, column `a`"]);
    // Only chosen columns count.
    let narrow = table.select(&Selection::targets(["y"]).inputs(["a"])).unwrap();
    assert_eq!(narrow.missing(Missing::Drop).read_all().unwrap().rows, [0, 2, 4, 5]);
    let path = folder.write("all.csv", "a,y\n,1\nNA,2\n");
    let all = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    fails(all.missing(Missing::Drop).read_all(), &["all.csv", "all 2 rows were left out"]);
}

#[test]
fn a_wide_table() {
    let folder = Folder::new();
    let names: Vec<String> = (0..784).map(|j| format!("p{j}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    for i in 0..50 {
        for j in 0..784 {
            write!(text, "{},", (i * j) % 256).unwrap();
        }
        writeln!(text, "{}", i % 10).unwrap();
    }
    let data = load(&folder.write("wide.csv.gz", gzip(&text))).unwrap();
    assert_eq!((data.x.shape(), data.y.shape()), ((50, 784), (50, 1)));
    assert!((0..50).all(|i| (0..784).all(|j| data.x[(i, j)] == ((i * j) % 256) as f64)));
}

#[test]
fn counting_rows_parses_nothing() {
    let folder = Folder::new();
    let path = folder.write("c.csv", "a,y\nfoo,\n1,NA\n,\n");
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    assert_eq!(selected.count_rows().unwrap(), 3);
    let mask = std::sync::Arc::new(Mask::new("m", [true, false, false]));
    assert_eq!(selected.rows_where(mask, true).count_rows().unwrap(), 3);
}

#[test]
fn duplicates_among_rows() {
    let folder = Folder::new();
    let path = folder.write("d.csv", "a,b,y\n1,2,0\n0,3,1\n1,2,2\n-0,3,3\n1,2,4\n2,1,5\n");
    let data = load(&path).unwrap();
    assert_eq!(duplicate_rows(data.x.as_ref()), 3);
    assert_eq!(duplicate_rows(data.x.as_ref().subrows(4, 2)), 0);
    assert_eq!(duplicate_rows(data.x.as_ref().subrows(0, 0)), 0);
}

#[test]
fn statistics_of_what_was_read() {
    let folder = Folder::new();
    let data = load(&folder.write("s.csv", "a,b,y\n1,5,2\n3,5,2\n")).unwrap();
    let statistics = data.statistics();
    let scaler = statistics.scaler();
    assert_eq!((scaler.x_mean, scaler.x_scale), (vec![2.0, 5.0], vec![1.0, 1.0]));
    assert_eq!((statistics.constant_inputs(), statistics.constant_targets()), (vec![1], vec![0]));
    let source = data.into_source();
    assert_eq!((source.rows(), source.inputs(), source.outputs()), (2, 2, 1));
}
