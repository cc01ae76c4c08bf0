use super::parquet::{Values, write};
use super::stream::{files, select};
use super::*;
use crate::linalg::Mat;
use std::sync::Arc;
use std::time::Duration;

/// Rows of numbers: inputs, targets, weight, further number.
type Table = Vec<Vec<f64>>;

fn rows(data: &InMemory) -> Table {
    let side = |values: &[f64], i: usize| values.get(i).copied();
    (0..data.rows())
        .map(|i| {
            let x = (0..data.inputs()).map(|j| data.x[(i, j)]);
            let y = (0..data.outputs()).map(|j| data.y[(i, j)]);
            x.chain(y).chain(side(&data.weights, i)).chain(side(&data.extra, i)).collect()
        })
        .collect()
}

fn sorted(mut rows: Table) -> Table {
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    rows
}

/// The next batch, after checking its shape.
fn next(batches: &mut dyn Batches) -> Table {
    let mut batch = Minibatch::new();
    let before = batches.position();
    batches.next(&mut batch).unwrap();
    assert_eq!(batch.population(), batches.population());
    assert_eq!((batch.inputs(), batch.outputs()), (batches.inputs(), batches.outputs()));
    assert!(batch.is_resident() && batch.rows() <= batch.population());
    let after = batches.position();
    let same_epoch = after.epoch == before.epoch && after.batch == before.batch + 1;
    assert!(same_epoch || (after.epoch == before.epoch + 1 && after.batch == 0));
    rows(&batch.rows)
}

fn epoch(batches: &mut dyn Batches) -> Vec<Table> {
    let number = batches.position().epoch;
    let mut out = Vec::new();
    while batches.position().epoch == number {
        out.push(next(batches));
    }
    assert_eq!(out.len(), batches.per_epoch());
    out
}

fn small(n: usize) -> InMemory {
    let x = Mat::from_fn(n, 3, |i, j| (i * 3 + j) as f64);
    let y = Mat::from_fn(n, 2, |i, j| (i as f64 * 0.7 + j as f64).sin() * 30.0 - 4.0);
    let side = |a: f64| (0..n).map(|i| (i as f64 + 0.5) * a).collect();
    InMemory { x, y, weights: side(0.25), extra: side(100.0) }
}

/// The 989 usable rows of the files of `stream.rs`, and minibatches of them from memory, from CSV and
/// from Parquet (in stretches of at most 40 rows).
fn all_kinds(folder: &Folder, size: usize, seed: u64) -> (Table, Vec<Box<dyn Batches>>) {
    let [csv, parquet] = files(folder);
    let loaded = select(&csv).read_all().unwrap().into_source();
    let expected = sorted(rows(&loaded));
    let stream = |path: &PathBuf| -> Box<dyn Batches> {
        let source = select(path).stream().unwrap();
        Box::new(ShuffledTable::new(source, size, seed).unwrap().buffer_rows(80))
    };
    let (csv, parquet) = (stream(&csv), stream(&parquet));
    (expected, vec![Box::new(ShuffledInMemory::new(loaded, size, seed).unwrap()), csv, parquet])
}

#[test]
fn each_row_comes_once_in_an_epoch_and_epochs_differ() {
    let folder = Folder::new();
    for size in [1, 64, 100, 989, 5000] {
        let (expected, kinds) = all_kinds(&folder, size, 7);
        for mut batches in kinds {
            assert_eq!(batches.population(), 989);
            assert_eq!(batches.per_epoch(), 989_usize.div_ceil(size));
            let epochs: Vec<_> = (0..3).map(|_| epoch(&mut *batches)).collect();
            for one in &epochs {
                assert_eq!(sorted(one.concat()), expected);
                let sizes: Vec<usize> = one.iter().map(Vec::len).collect();
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
            // With one batch an epoch from memory, rows come in the order of memory.
            if size < 989 {
                assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
                let first: Vec<Table> = epochs.iter().map(|one| sorted(one[0].clone())).collect();
                assert!(first[0] != first[1] && first[1] != first[2], "{size}");
            }
        }
    }
}

#[test]
fn seeds_give_different_batches_and_one_seed_the_same() {
    let folder = Folder::new();
    let run = |seed| -> Vec<Vec<Table>> {
        all_kinds(&folder, 50, seed).1.iter_mut().map(|b| epoch(&mut **b)).collect()
    };
    let (a, again, b) = (run(1), run(1), run(2));
    assert_eq!(a, again);
    for (a, b) in a.iter().zip(&b) {
        assert_ne!(a, b);
    }
}

#[test]
fn a_run_resumes_from_any_position_bit_for_bit() {
    let folder = Folder::new();
    let (_, kinds) = all_kinds(&folder, 130, 3);
    for mut batches in kinds {
        let mut run = Vec::new();
        for _ in 0..3 * batches.per_epoch() {
            run.push((batches.position(), next(&mut *batches)));
        }
        for at in [0, 23, 1, 8, 7, 9, 15, 16, 22] {
            let text = serde_json::to_string(&run[at].0).unwrap();
            batches.seek(serde_json::from_str(&text).unwrap()).unwrap();
            for (position, expected) in run.iter().skip(at).take(3) {
                assert_eq!(batches.position(), *position);
                assert_eq!(&next(&mut *batches), expected, "{position:?}");
            }
        }
        let to = Position { epoch: 0, batch: 8 };
        fails(batches.seek(to), &["no batch 8", "an epoch of 8 batches", "another batch size"]);
        // A refused position changes nothing.
        batches.seek(run[5].0).unwrap();
        assert!(batches.seek(Position { epoch: 1, batch: usize::MAX }).is_err());
        assert_eq!(next(&mut *batches), run[5].1);
    }
}

#[test]
fn the_estimates_of_an_epoch_average_to_the_sum_and_each_has_no_bias() {
    let data = small(10);
    let total: f64 = data.y.col_as_slice(0).iter().sum();
    let mut batches = ShuffledInMemory::new(&data, 4, 11).unwrap();
    let mut batch = Minibatch::new();
    let epochs = 40_000;
    let (mut sums, mut squares) = ([0.0; 3], [0.0; 3]);
    for _ in 0..epochs {
        let mut mean = 0.0;
        for (sum, square) in sums.iter_mut().zip(&mut squares) {
            batches.next(&mut batch).unwrap();
            let b = batch.rows() as f64;
            let estimate = 10.0 / b * batch.rows.y.col_as_slice(0).iter().sum::<f64>();
            mean += b / 10.0 * estimate;
            *sum += estimate;
            *square += (estimate - total).powi(2);
        }
        // Ten numbers below 40.
        assert!((mean - total).abs() < 10.0 * 400.0 * f64::EPSILON, "{mean} {total}");
    }
    // Sampling b of n without replacement: variance n²/b (1 − b/n) s² with divisor n − 1.
    let n = 10.0;
    let s2 =
        data.y.col_as_slice(0).iter().map(|y| (y - total / n).powi(2)).sum::<f64>() / (n - 1.0);
    for (t, b) in [4.0, 3.0, 3.0].into_iter().enumerate() {
        let variance = n * n / b * (1.0 - b / n) * s2;
        let error = sums[t] / f64::from(epochs) - total;
        assert!(error.abs() < 5.0 * (variance / f64::from(epochs)).sqrt(), "batch {t}: {error}");
        let ratio = squares[t] / f64::from(epochs) / variance;
        assert!((ratio - 1.0).abs() < 0.05, "batch {t}: {ratio}");
    }
}

#[test]
fn weights_and_further_numbers_stay_with_their_rows() {
    let data = small(57);
    let whole = sorted(rows(&data));
    let mut batches = data.batches(10, 0).unwrap();
    assert_eq!(sorted(epoch(&mut *batches).concat()), whole);
    let folder = Folder::new();
    let mut text = "e,a,w,y,b\n".to_owned();
    for i in 0..57 {
        text += &format!("{},{i},{},{},{}\n", 3 * i + 1, i as f64 / 8.0, -i, i * i);
    }
    let path = folder.write("w.csv", text);
    let selection = Selection::targets(["y"]).weight("w").extra("e");
    let selected = super::Table::open(&path).unwrap().select(&selection).unwrap();
    let source = selected.stream().unwrap();
    let mut batches = source.batches(10, 0).unwrap();
    assert_eq!((batches.inputs(), batches.outputs()), (2, 1));
    for row in epoch(&mut *batches).concat() {
        let i = row[0];
        assert_eq!(row, [i, i * i, -i, i / 8.0, 3.0 * i + 1.0]);
    }
}

#[test]
fn streamed_batches_are_standardised_as_the_stream_is() {
    let folder = Folder::new();
    for path in files(&folder) {
        let source = select(&path).stream().unwrap().standardised();
        let mut whole = Table::new();
        let collect = &mut |part: Rows<'_>| {
            whole.extend(rows(&InMemory::new(part.x.to_owned(), part.y.to_owned()).unwrap()));
            Ok(())
        };
        source.for_each_chunk(100, collect).unwrap();
        let mut batches = ShuffledTable::new(source, 64, 5).unwrap();
        assert_eq!(sorted(epoch(&mut batches).concat()), sorted(whole));
    }
}

#[test]
fn a_mask_leaves_each_of_its_rows_once_in_whatever_row_group() {
    let folder = Folder::new();
    // Whole row groups (1, 300, 7, 0, 500, 192 rows), parts of them, and scattered rows.
    let masks = [
        Mask::new("groups", (0..1000).map(|i| i < 1 || (301..808).contains(&i))),
        Mask::new("parts", (0..1000).map(|i| (250..305).contains(&i) || i > 900)),
        Mask::new("scattered", (0..1000).map(|i| i % 3 == 1)),
    ];
    for path in files(&folder) {
        for mask in &masks {
            for flag in [false, true] {
                let selected = select(&path).rows_where(Arc::new(mask.clone()), flag);
                let expected = sorted(rows(&selected.read_all().unwrap().into_source()));
                let mut batches =
                    ShuffledTable::new(selected.stream().unwrap(), 32, 1).unwrap().buffer_rows(90);
                for _ in 0..3 {
                    assert_eq!(sorted(epoch(&mut batches).concat()), expected);
                }
            }
        }
    }
}

/// 4000 rows whose first 1000 are of one class and whose others are of another, with an index; as CSV with a byte-order
/// mark, quotes and Windows lines, and as Parquet with one row group.
fn sorted_files(folder: &Folder) -> [PathBuf; 2] {
    let class = |i: usize| f64::from(u8::from(i >= 1000));
    let mut text = "\u{feff}\"i\nd\",note,y\r\n".to_owned();
    (0..4000).for_each(|i| text += &format!("{i},\"a, \n{i}\",{}\r\n", class(i)));
    let csv = folder.write("sorted.csv", text);
    let parquet = folder.path("sorted.parquet");
    let properties = ::parquet::file::properties::WriterProperties::builder()
        .set_data_page_row_count_limit(300)
        .set_write_batch_size(100);
    let columns = vec![
        (Values::Double((0..4000).map(f64::from).collect()), None),
        (Values::Double((0..4000).map(class).collect()), None),
    ];
    write(&parquet, "required double id; required double y;", properties, &[columns]);
    [csv, parquet]
}

#[test]
fn batches_of_a_sorted_file_are_samples_of_all_of_it() {
    let folder = Folder::new();
    for (path, input) in sorted_files(&folder).iter().zip(["i\nd", "id"]) {
        let selection = Selection::targets(["y"]).inputs([input]);
        let selected = super::Table::open(path).unwrap().select(&selection).unwrap();
        for buffer in [1200, 2400, 100_000] {
            let source = selected.stream().unwrap();
            let mut batches = ShuffledTable::new(source, 100, 4).unwrap().buffer_rows(buffer);
            assert!(batches.remark().is_none());
            let own = epoch(&mut batches);
            let mut firsts: Vec<usize> = Vec::new();
            for batch in &own {
                let first = batch.iter().filter(|row| row[1] == 0.0).count();
                // 25 expected; hypergeometric standard deviation 4.3, and pieces of Parquet are of 1024 rows
                let parts = path.extension().is_some_and(|e| e == "parquet") && buffer < 8000;
                assert!(parts || (8..=42).contains(&first), "{first} of {path:?} by {buffer}");
                firsts.push(first);
            }
            let (low, high) = (firsts.iter().min().unwrap(), firsts.iter().max().unwrap());
            assert!(*low < *high && firsts.iter().sum::<usize>() == 1000);
            let mut all: Vec<f64> = own.concat().iter().map(|row| row[0]).collect();
            all.sort_by(f64::total_cmp);
            assert!(all.into_iter().eq((0..4000).map(f64::from)));
        }
    }
}

#[test]
fn a_gzip_file_in_an_order_that_the_buffer_cannot_undo_is_remarked_on() {
    let folder = Folder::new();
    let text = |sorted: bool| {
        (0..4000).fold("x,y\n".to_owned(), |text, i| {
            let class = if sorted { i / 2000 } else { (i * 7919 / 13) % 2 };
            text + &format!("{},{class}\n", (i * 31) % 97)
        })
    };
    for sorted in [true, false] {
        let path = folder.write("o.csv.gz", gzip(text(sorted)));
        let table = super::Table::open(&path).unwrap();
        let selected = table.select(&Selection::targets(["y"])).unwrap();
        let source = selected.stream_in_stretches(1000).unwrap();
        let remark = |buffer| {
            ShuffledTable::new(source.clone(), 100, 0).unwrap().buffer_rows(buffer).remark()
        };
        assert_eq!(remark(10_000), None);
        match remark(2000) {
            Some(text) => {
                assert!(sorted && text.contains("o.csv.gz") && text.contains("`y`"), "{text}");
                assert!(text.contains("1000 rows") && text.contains("decompress it"), "{text}");
            }
            None => assert!(!sorted),
        }
    }
}

#[test]
fn memory_is_bounded_by_the_buffer() {
    let folder = Folder::new();
    for path in files(&folder) {
        for buffer in [0, 2, 51, 200, 5000] {
            let source = select(&path).stream().unwrap();
            let mut batches = ShuffledTable::new(source, 100, 2).unwrap().buffer_rows(buffer);
            for _ in 0..2 {
                epoch(&mut batches);
            }
            let held = batches.most_rows_held();
            assert!(held > 0 && held <= buffer.max(2), "{held} of {buffer}");
        }
    }
}

#[test]
fn timing_does_not_matter() {
    let folder = Folder::new();
    for path in files(&folder) {
        let run = |pause: &dyn Fn(usize)| -> Vec<Table> {
            let source = select(&path).stream().unwrap();
            let mut batches = ShuffledTable::new(source, 100, 2).unwrap().buffer_rows(160);
            let all = (0..20).map(|i| {
                pause(i);
                next(&mut batches)
            });
            all.collect()
        };
        let quick = run(&|_| {});
        assert_eq!(run(&|i| std::thread::sleep(Duration::from_millis([0, 3, 1][i % 3]))), quick);
        let elsewhere = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| run(&|_| {}))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(elsewhere.iter().all(|other| *other == quick));
    }
}

#[test]
fn a_changed_file_is_an_error_and_the_run_continues_when_it_is_back() {
    let folder = Folder::new();
    let text =
        |n: usize| (0..n).fold("a,y\n".to_owned(), |text, i| text + &format!("{i},{}\n", i * i));
    let path = folder.write("c.csv", text(100));
    let selected = super::Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let source = selected.stream().unwrap();
    let open = || ShuffledTable::new(source.clone(), 30, 0).unwrap().buffer_rows(20);
    let expected = epoch(&mut open());
    for other in [text(99), text(150), "b\n1\n".to_owned(), text(30).replace("7,", "foo,")] {
        folder.write("c.csv", &other);
        let mut batches = open();
        let mut batch = Minibatch::new();
        let failure = (0..8).find_map(|_| batches.next(&mut batch).err()).unwrap().to_string();
        assert!(failure.contains("c.csv: "), "{failure}");
        if other.len() > 400 {
            assert!(failure.contains("usable rows now and had 100"), "{failure}");
        }
        let position = batches.position();
        folder.write("c.csv", text(100));
        assert_eq!(next(&mut batches), expected[position.batch], "{position:?}");
    }
    std::fs::remove_file(&path).unwrap();
    fails(open().next(&mut Minibatch::new()), &["c.csv: No such file"]);
}

#[test]
fn impossible_sizes_are_refused() {
    let data = small(5);
    fails(ShuffledInMemory::new(&data, 0, 0), &["minibatches of 0 row(s)", "at least 1"]);
    fails(data.batches(0, 0), &["minibatches of 0 row(s)"]);
    fails(small(0).batches(3, 0), &["from 0 row(s)"]);
    let folder = Folder::new();
    let source = select(&files(&folder)[0]).stream().unwrap();
    fails(source.batches(0, 0), &["minibatches of 0 row(s) cannot be drawn from 989"]);
}
