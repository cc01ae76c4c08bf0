use super::parquet::{Values, write};
use super::*;
use ::parquet::file::properties::WriterProperties;
use faer::Mat;
use std::path::Path;
use std::sync::Arc;

/// The same 1000 rows as CSV and as Parquet with row groups of awkward sizes. Every 97th `b` is missing.
pub(super) fn files(folder: &Folder) -> [PathBuf; 2] {
    let a = |i: usize| (i as f64 * 0.37).sin() * 4.0 + 1e6;
    let b = |i: usize| (i as f64 * 0.11).cos() * 1e-7;
    let y = |i: usize| (i as f64 * 0.05).sin() - 3.0;
    let present = |i: usize| i % 97 != 5;
    let mut text = "name,a,b,y\n".to_owned();
    for i in 0..1000 {
        let b = if present(i) { b(i).to_string() } else { String::new() };
        text += &format!("r{i},{},{b},{}\n", a(i), y(i));
    }
    let csv = folder.write("s.csv.gz", gzip(text));
    let mut groups = Vec::new();
    let mut start = 0;
    for size in [1, 300, 7, 0, 500, 192] {
        let rows = start..start + size;
        groups.push(vec![
            (Values::Bytes(rows.clone().map(|i| format!("r{i}").into_bytes()).collect()), None),
            (Values::Double(rows.clone().map(a).collect()), None),
            (
                Values::Double(rows.clone().filter(|&i| present(i)).map(b).collect()),
                Some(rows.clone().map(|i| i16::from(present(i))).collect()),
            ),
            (Values::Double(rows.map(y).collect()), None),
        ]);
        start += size;
    }
    assert_eq!(start, 1000);
    let parquet = folder.path("s.parquet");
    let schema = "required binary name (UTF8); required double a; optional double b; \
                  required double y;";
    let properties =
        WriterProperties::builder().set_data_page_row_count_limit(64).set_write_batch_size(16);
    write(&parquet, schema, properties, &groups);
    [csv, parquet]
}

pub(super) fn select(path: &Path) -> Selected {
    let selection = Selection::targets(["y"]).inputs(["b", "a"]).ids(["name"]);
    Table::open(path).unwrap().select(&selection).unwrap().missing(Missing::Drop)
}

/// Everything a source gives, after checking the shape of every chunk.
fn collect(source: &dyn Source, chunk_rows: usize) -> (Mat<f64>, Mat<f64>) {
    let mut x = Mat::zeros(source.rows(), source.inputs());
    let mut y = Mat::zeros(source.rows(), source.outputs());
    let mut next = 0;
    source
        .for_each_chunk(chunk_rows, &mut |rows: Rows<'_>| {
            assert_eq!(rows.start, next);
            assert_eq!(rows.x.nrows(), chunk_rows.max(1).min(source.rows() - next));
            assert_eq!(rows.y.nrows(), rows.x.nrows());
            next += rows.x.nrows();
            x.as_mut().subrows_mut(rows.start, rows.x.nrows()).copy_from(rows.x);
            y.as_mut().subrows_mut(rows.start, rows.x.nrows()).copy_from(rows.y);
            Ok(())
        })
        .unwrap();
    assert_eq!(next, source.rows());
    (x, y)
}

#[test]
fn streaming_gives_the_rows_in_memory_whatever_the_chunks() {
    let folder = Folder::new();
    for path in files(&folder) {
        let selected = select(&path);
        let loaded = selected.read_all().unwrap();
        let source = selected.stream().unwrap();
        assert_eq!((source.rows(), source.dropped(), loaded.dropped), (989, 11, 11));
        assert_eq!((source.inputs(), source.outputs()), (2, 1));
        assert_eq!(source.statistics(), &loaded.statistics());
        for chunk_rows in [0, 1, 13, 64, 300, 989, 5000] {
            // The same source again and again.
            let (x, y) = collect(&source, chunk_rows);
            assert_eq!((&x, &y), (&loaded.x, &loaded.y), "{chunk_rows}");
        }
    }
}

#[test]
fn both_formats_hold_the_same_table() {
    let folder = Folder::new();
    let [csv, parquet] = files(&folder).map(|path| select(&path).read_all().unwrap());
    assert_eq!((csv.x, csv.y), (parquet.x, parquet.y));
    assert_eq!((csv.ids, csv.rows), (parquet.ids, parquet.rows));
}

#[test]
fn a_standardised_stream_is_the_standardised_table() {
    let folder = Folder::new();
    for path in files(&folder) {
        let selected = select(&path);
        let mut loaded = selected.read_all().unwrap();
        let scaler = Scaler::fit(loaded.x.as_ref(), loaded.y.as_ref());
        scaler.scale_x(loaded.x.as_mut()).unwrap();
        scaler.scale_y(loaded.y.as_mut()).unwrap();
        let source = selected.stream().unwrap().standardised();
        assert_eq!(source.scaler(), &scaler);
        let (x, y) = collect(&source, 100);
        assert_eq!((&x, &y), (&loaded.x, &loaded.y));
        let given = selected.stream().unwrap().with_scaler(scaler).unwrap();
        assert_eq!(collect(&given, 77).0, x);
        fails(given.with_scaler(Scaler::identity(3, 1)), &["input means of the scaler"]);
    }
}

#[test]
fn a_split_can_be_streamed() {
    let folder = Folder::new();
    for path in files(&folder) {
        let selected = select(&path);
        let mask = Arc::new(Mask::random(selected.count_rows().unwrap(), 0.1, 3).unwrap());
        let all = selected.read_all().unwrap();
        let mut rows = 0;
        for flag in [false, true] {
            let part = all.rows_where(&mask, flag).unwrap();
            let source = selected.clone().rows_where(mask.clone(), flag).stream().unwrap();
            rows += source.rows();
            let (x, y) = collect(&source, 50);
            assert_eq!((&x, &y), (&part.x, &part.y));
            assert_eq!(source.statistics(), &part.statistics());
        }
        assert_eq!(rows, 989);
    }
}

#[test]
fn cells_of_rows_that_the_mask_leaves_out_do_not_matter() {
    let folder = Folder::new();
    let path = folder.write("d.csv", "a,y\n1,2\nfoo,3\n,4\n5,6\n");
    let mask = Arc::new(Mask::new("m", [false, true, true, false]));
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    assert_eq!(selected.clone().rows_where(mask.clone(), false).stream().unwrap().rows(), 2);
    fails(selected.rows_where(mask, true).stream(), &["row 2, column `a`", "`foo`"]);
}

#[test]
fn the_first_error_ends_the_pass() {
    let folder = Folder::new();
    for path in files(&folder) {
        let source = select(&path).stream().unwrap();
        let mut calls = 0;
        let result = source.for_each_chunk(10, &mut |_| {
            calls += 1;
            if calls == 3 { Err(Error::Interrupted) } else { Ok(()) }
        });
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(calls, 3);
        // And the source is none the worse for it.
        assert_eq!(collect(&source, 500).0.nrows(), 989);
    }
}

#[test]
fn a_stream_checks_every_cell_before_the_first_pass() {
    let folder = Folder::new();
    for path in files(&folder) {
        let selected = select(&path).missing(Missing::Refuse);
        fails(selected.stream(), &["row 6, column `b`", "--missing drop"]);
    }
}

#[test]
fn a_file_that_changes_is_noticed() {
    let folder = Folder::new();
    let path = folder.write("c.csv", "a,y\n1,2\n3,4\n");
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let source = selected.stream().unwrap();
    let pass = || source.for_each_chunk(10, &mut |_| Ok(()));
    folder.write("c.csv", "a,y\n1,2\n3,4\n5,6\n");
    fails(pass(), &["c.csv: has 3 usable rows now and had 2", "do not change the file"]);
    folder.write("c.csv", "b,a,y\n1,2,3\n");
    fails(pass(), &["has changed since its header was read"]);
    std::fs::remove_file(&path).unwrap();
    fails(pass(), &["c.csv: No such file"]);
}

#[test]
fn a_file_whose_cells_change_is_noticed() {
    let folder = Folder::new();
    let path = folder.write("c.csv", "a,w,y\n1,1,2\n3,1,4\n5,2,6\n");
    let selection = Selection::targets(["y"]).weight("w");
    let selected = Table::open(&path).unwrap().select(&selection).unwrap();
    let source = selected.stream().unwrap();
    let pass = || source.for_each_chunk(2, &mut |_| Ok(()));
    pass().unwrap();
    for other in [
        "a,w,y\n1,1,2\n3,1,4\n5,2,7\n",
        "a,w,y\n1,1,2\n3,2,4\n5,1,6\n",
        "a,w,y\n3,1,4\n1,1,2\n5,2,6\n",
    ] {
        folder.write("c.csv", other);
        fails(pass(), &["c.csv: has changed since it was first read"]);
        let mut batches = source.batches(2, 0).unwrap();
        let mut out = Minibatch::default();
        fails(batches.next(&mut out), &["c.csv: has changed since it was first read"]);
    }
}

#[test]
fn blocks_keep_order_ids_and_row_numbers() {
    let folder = Folder::new();
    for path in files(&folder) {
        let selected = select(&path);
        let mut loaded = selected.read_all().unwrap();
        let scaler = Scaler::fit(loaded.x.as_ref(), loaded.y.as_ref());
        scaler.scale_x(loaded.x.as_mut()).unwrap();
        for size in [1, 100, 256, 2000] {
            let mut blocks = selected.blocks(size, Some(&scaler)).unwrap();
            let mut start = 0;
            for block in blocks.by_ref() {
                let block = block.unwrap();
                let n = block.x.nrows();
                assert_eq!(n, size.min(989 - start));
                assert_eq!(block.start, start);
                assert_eq!(block.x.as_ref(), loaded.x.as_ref().subrows(start, n));
                // Targets stay as they are in the file.
                assert_eq!(block.y.as_ref(), loaded.y.as_ref().subrows(start, n));
                assert_eq!(block.rows, loaded.rows[start..start + n]);
                let ids: Vec<String> = block.rows.iter().map(|row| format!("r{row}")).collect();
                assert_eq!(block.ids, [ids]);
                start += n;
            }
            assert_eq!((start, blocks.dropped()), (989, 11));
        }
        fails(selected.blocks(10, Some(&Scaler::identity(1, 1))), &["input means"]);
    }
}

#[test]
fn prediction_needs_no_targets() {
    let folder = Folder::new();
    let path = folder.write("p.csv", "b,a\n1,2\n3,4\n");
    let selection = Selection::targets(["y"]).inputs(["a", "b"]).targets_if_present();
    let selected = Table::open(&path).unwrap().select(&selection).unwrap();
    assert!(selected.target_names().is_empty());
    // The scaler of a model with a target.
    let mut scaler = Scaler::identity(2, 1);
    scaler.x_mean[0] = 2.0;
    let blocks: Result<Vec<Block>> = selected.blocks(1, Some(&scaler)).unwrap().collect();
    let blocks = blocks.unwrap();
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[1].y.shape(), (1, 0));
    assert_eq!((blocks[1].x[(0, 0)], blocks[1].x[(0, 1)]), (2.0, 3.0));
}

#[test]
fn blocks_end_after_an_error() {
    let folder = Folder::new();
    let path = folder.write("e.csv", "a,y\n1,2\n3,4\nfoo,6\n7,8\n");
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let mut blocks = selected.blocks(2, None).unwrap();
    assert!(blocks.next().unwrap().is_ok());
    fails(blocks.next().unwrap(), &["e.csv: row 3, column `a`: `foo`"]);
    assert!(blocks.next().is_none());
}

#[test]
fn two_threads_can_read_one_source() {
    let folder = Folder::new();
    for path in files(&folder) {
        let source = select(&path).stream().unwrap().standardised();
        let expected = collect(&source, 64);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(collect(&source, 10), expected));
            }
        });
    }
}
