//! Files of text as people lay them out.

use super::*;

fn inputs(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>) -> (Vec<String>, Vec<f64>) {
    let path = folder.write(name, bytes);
    let data = load(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    (data.input_names, column(&data.x, 0))
}

#[test]
fn separators_and_what_stands_above_the_header() {
    let folder = Folder::new();
    for (name, text) in [
        ("bar.csv", "a|b|y\n1|2|3\n4|5|6\n"),
        ("semicolon.csv", "a;\"b, kg\";y\n1;2;3\n4;5;6\n"),
        ("commas in names.csv", "a;b (m,n);y\n1;2;3\n4;5;6\n"),
        ("tab.txt", "a\tb, kg\ty\n1\t2\t3\n4\t5\t6\n"),
        ("tab.tsv", "a\tb, kg\ty\n1\t2\t3\n4\t5\t6\n"),
        ("said.csv", "sep=;\r\na;b;y\r\n1;2;3\r\n4;5;6\r\n"),
        ("comments.csv", "# by hand\n# units: m, kg\na,b,y\n1,2,3\n4,5,6\n"),
        ("numpy.csv", "# a,b,y\n1,2,3\n4,5,6\n"),
        ("old mac.csv", "a;b;y\r1;2;3\r4;5;6\r"),
        ("end.csv", "a,b,y\n1,2,3\n4,5,6\n\u{1a}"),
        ("quotes.csv", "a, \"b\", \"y\"\n1, \"2\", \"3\"\n4, \"5\", \"6\"\n"),
        ("single.csv", "'a','b','y'\n1,2,3\n4,5,6\n"),
        ("trailing.csv", "a,b,y,,\n1,2,3,,\n4,5,6,,\n"),
    ] {
        for (name, bytes) in
            [(name.to_owned(), text.as_bytes().to_vec()), (format!("{name}.gz"), gzip(text))]
        {
            let (names, first) = inputs(&folder, &name, bytes);
            assert_eq!((names[0].as_str(), names.len()), ("a", 2), "{name}");
            assert_eq!(first, [1.0, 4.0], "{name}");
        }
    }
    let path = folder.write("t.csv", "Report of the station\n\na,b,y\n1,2,3\n4,5,6\n");
    fails(
        Table::open(path),
        &["t.csv: the first line (`Report of the station`) is not a header", "3 fields"],
    );
    let path = folder.write("blanks.txt", "a  b  y\n1  2  3\n");
    fails(Table::open(path), &["blanks.txt", "separated by blanks"]);
    let path = folder.write("nul.csv", format!("a,y\n{}1,2\0\n", "1,2\n".repeat(600)));
    fails(Table::open(path), &["nul.csv: line 602 holds a NUL byte"]);
}

#[test]
fn rows_that_do_not_fit_the_header_say_why() {
    let folder = Folder::new();
    let path = folder.write("r.csv", "a,b,y\n1,2,3,\n4,5,6,\n");
    fails(load(&path), &["row 1 has 4 fields where the header has 3", "ends with a separator"]);
    let path = folder.write("r.csv", "\"a\",\"b\",\"y\"\n\"1\",1,2,3\n\"2\",4,5,6\n");
    fails(load(&path), &["row 1 has 4 fields", "row names"]);
}

#[test]
fn an_open_quote_names_its_row() {
    let folder = Folder::new();
    let row = |i: usize| format!("{i},{},n{i}\n", i * 2);
    let rows = |range: std::ops::Range<usize>| range.map(row).collect::<String>();
    // never closed
    let open = format!("a,y,note\n{}7,14,\"n7\n{}", rows(0..7), rows(8..40));
    for (name, bytes) in [("o.csv", open.clone().into_bytes()), ("o.csv.gz", gzip(&open))] {
        let path = folder.write(name, bytes);
        let selection = Selection::targets(["y"]).inputs(["a"]);
        let selected = Table::open(&path).unwrap().select(&selection).unwrap();
        let parts = [name, "row 8 has a quote that is never closed, before `n7`"];
        fails(selected.read_all(), &parts);
        fails(selected.stream(), &parts);
        fails(selected.count_rows(), &parts);
    }
    // closed by the next one, rows later
    let swallowed = format!("a,y,note\n{}7,14,\"n7\n{}20,40,n\"20\n", rows(0..7), rows(8..20));
    let path = folder.write("s.csv", swallowed);
    let selection = Selection::targets(["y"]).inputs(["a"]);
    let selected = Table::open(&path).unwrap().select(&selection).unwrap();
    fails(selected.read_all(), &["s.csv: row 8 has a quote that is not closed in its cell"]);
    // a text of several lines is none of these
    let path =
        folder.write("n.csv", "a,y,note\n1,2,\"first\nsecond, third\"\n3,4,\"one, two\nthree\"");
    let selection = Selection::targets(["y"]).inputs(["a"]).ids(["note"]);
    let data = Table::open(&path).unwrap().select(&selection).unwrap().read_all().unwrap();
    assert_eq!(data.ids[0], ["first\nsecond, third", "one, two\nthree"]);
    fails(
        Table::open(folder.write("h.csv", "a,\"y\n1,2\n")),
        &["the header has a quote that is never closed"],
    );
}

#[test]
fn minibatches_start_below_what_stands_above_the_header() {
    let folder = Folder::new();
    let mut text = String::from("# made by hand\na;y\n");
    (0..500).for_each(|i| text += &format!("{i};{}\n", 2 * i));
    let path = folder.write("c.csv", text);
    let source =
        Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap().stream().unwrap();
    let mut batches = source.batches(50, 1).unwrap();
    let mut batch = Minibatch::default();
    let mut seen: Vec<f64> = Vec::new();
    for _ in 0..10 {
        batches.next(&mut batch).unwrap();
        let rows = &batch.rows;
        for i in 0..rows.x.nrows() {
            assert_eq!(rows.y[(i, 0)], 2.0 * rows.x[(i, 0)]);
            seen.push(rows.x[(i, 0)]);
        }
    }
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, (0..500).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn repeated_and_unnamed_columns() {
    let folder = Folder::new();
    let path = folder.write("d.csv", "a,note,note,y\n1,u,v,2\n3,u,v,4\n");
    let table = Table::open(&path).unwrap();
    fails(
        table.select(&Selection::targets(["y"])),
        &["column `note` stands at positions 2 and 3", "--ignore note"],
    );
    assert_eq!(
        table.select(&Selection::targets(["y"]).ignore(["note"])).unwrap().input_names(),
        ["a"]
    );
    let encode = |text: &str, selection: &Selection| {
        let table = Table::open(folder.write("u.csv", text)).unwrap();
        table.encode(selection, &EncodeOptions::default())
    };
    let all = Selection::targets(["y"]);
    fails(encode("a,,y\n1,2,3\n2,3,4\n", &all), &["u.csv: column 2 has no name", "--ignore ''"]);
    for (text, selection) in [
        ("a,,y\n1,2,3\n2,3,4\n", all.clone().ignore([""])),
        ("a,y,,\n1,3,,\n2,4,,\n", all.clone()),
        (",a,y\n0,1,3\n1,2,4\n", all.clone()),
        ("Unnamed: 0,a,y\n0,1,3\n1,2,4\n", all.clone()),
    ] {
        assert_eq!(encode(text, &selection).unwrap().inputs, Some(vec!["a".into()]), "{text}");
    }
    let path = folder.write("n.csv", "1,2,0\n3,4,1\n");
    fails(load(&path), &["column `y` is not in the file", "is the header missing?"]);
}
