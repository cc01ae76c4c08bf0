use super::*;
use std::sync::Arc;

#[test]
fn random_splits_have_the_right_size_and_always_the_same_rows() {
    let mask = Mask::random(20, 0.25, 7).unwrap();
    assert_eq!((mask.rows(), mask.count(true), mask.count(false)), (20, 5, 15));
    // A value-stability test: models are compared on splits that were drawn years ago.
    assert_eq!(mask.indices(true), PINNED_20);
    assert_eq!(Mask::random(20, 0.25, 7).unwrap(), mask);
    assert_ne!(Mask::random(20, 0.25, 8).unwrap(), mask);
    let large = Mask::random(100_003, 0.1, 42).unwrap();
    assert_eq!(large.count(true), 10_000);
    assert_eq!(large.indices(true)[..5], PINNED_LARGE);
    let mut all = large.indices(true);
    all.extend(large.indices(false));
    all.sort_unstable();
    assert!(all.into_iter().eq(0..100_003));
    assert_eq!((large.get(100_002).is_some(), large.get(100_003)), (true, None));
}

const PINNED_20: [usize; 5] = [2, 4, 11, 13, 16];
const PINNED_LARGE: [usize; 5] = [10, 13, 20, 23, 25];

#[test]
fn every_row_is_as_likely_to_be_a_test_row() {
    let mut counts = [0u32; 10];
    for seed in 0..20_000 {
        for row in Mask::random(10, 0.3, seed).unwrap().indices(true) {
            counts[row] += 1;
        }
    }
    // 6000 expected with a standard deviation of 65.
    assert!(counts.iter().all(|&count| (5600..6400).contains(&count)), "{counts:?}");
}

#[test]
fn small_and_impossible_splits() {
    assert_eq!(Mask::random(2, 0.01, 1).unwrap().count(true), 1);
    assert_eq!(Mask::random(3, 0.999, 1).unwrap().count(false), 1);
    for fraction in [0.0, 1.0, -0.1, 2.0, f64::NAN] {
        fails(Mask::random(10, fraction, 1), &["test fraction", "between 0 and 1"]);
    }
    fails(Mask::random(1, 0.5, 1), &["1 row(s) cannot be split"]);
}

#[test]
fn masks_from_files() {
    let folder = Folder::new();
    let path = folder.write("m.csv.gz", gzip("split0,split1\n0,1\n1,0\n0,1.0\n"));
    let spec = |column: &str| format!("{}:{column}", path.display());
    let mask = Mask::open(&spec("split0")).unwrap();
    assert_eq!((mask.indices(true), mask.rows()), (vec![1], 3));
    assert_eq!(mask.name(), spec("split0"));
    assert_eq!(Mask::open(&spec("split1")).unwrap().indices(true), [0, 2]);
    fails(Mask::open(&spec("split7")), &["column `split7`", "nearest: `split0`"]);
    fails(Mask::open("masks.csv"), &["`masks.csv` must be FILE:COLUMN", "masks.csv.gz:split0"]);
    fails(Mask::open("masks.csv:"), &["must be FILE:COLUMN"]);
    fails(Mask::open("/nowhere/m.csv:a"), &["/nowhere/m.csv: No such file"]);
    let open = |text: &str| Mask::open(&format!("{}:s", folder.write("b.csv", text).display()));
    fails(open("s\n0\n2\n"), &["b.csv: row 2, column `s`: `2` is neither 0 (training row)"]);
    fails(open("s\n0\n0.5\n"), &["`0.5` is neither 0"]);
    fails(open("t,s\n0,0\n1,\n"), &["row 2, column `s`: the cell is empty"]);
    fails(open("s\n0\n0\n"), &["column `s` marks none of its 2 rows as test rows"]);
    fails(open("s\n1\n1\n"), &["column `s` marks all of its 2 rows as test rows"]);
}

#[test]
fn a_long_mask_crosses_blocks_and_words() {
    let folder = Folder::new();
    let flags: Vec<bool> = (0..40_000).map(|i| i % 7 == 0 || i % 64 == 63).collect();
    let mut text = "s\n".to_owned();
    flags.iter().for_each(|&flag| text += if flag { "1\n" } else { "0\n" });
    let path = folder.write("m.csv", text);
    let mask = Mask::open(&format!("{}:s", path.display())).unwrap();
    assert!(flags.iter().enumerate().all(|(i, &flag)| mask.get(i) == Some(flag)));
    assert_eq!(mask.count(true), flags.iter().filter(|flag| **flag).count());
}

#[test]
fn masked_rows_in_memory_and_from_the_file_agree() {
    let folder = Folder::new();
    let path = folder.write("d.csv", "id,a,y\np,1,10\nq,2,20\nr,3,30\ns,,40\nt,5,50\n");
    let mask = Arc::new(Mask::new("m", [true, false, true, false, false]));
    let table = Table::open(&path).unwrap();
    let selected =
        table.select(&Selection::targets(["y"]).ids(["id"])).unwrap().missing(Missing::Drop);
    let all = selected.read_all().unwrap();
    for (flag, rows, dropped) in [(true, vec![0, 2], 0), (false, vec![1, 4], 1)] {
        let read = selected.clone().rows_where(mask.clone(), flag).read_all().unwrap();
        let picked = all.rows_where(&mask, flag).unwrap();
        assert_eq!((&read.rows, read.dropped), (&rows, dropped));
        assert_eq!((&read.x, &read.y, &read.ids), (&picked.x, &picked.y, &picked.ids));
        assert_eq!(picked.rows, rows);
    }
    fails(
        all.rows_where(&Mask::new("short", [true]), true),
        &["mask short", "at least 5", "1 rows"],
    );
}

#[test]
fn a_mask_must_fit_the_data() {
    let folder = Folder::new();
    let path = folder.write("d.csv", "a,y\n1,10\n2,20\n3,30\n");
    let selected = Table::open(&path).unwrap().select(&Selection::targets(["y"])).unwrap();
    let with = |flags: &[bool], flag| {
        selected.clone().rows_where(Arc::new(Mask::new("M:s", flags.iter().copied())), flag)
    };
    fails(with(&[true; 2], true).read_all(), &["d.csv: has more rows than the 2 of the mask M:s"]);
    fails(with(&[true; 4], true).read_all(), &["has 3 rows but the mask M:s has 4"]);
    fails(with(&[true; 4], true).stream(), &["has 3 rows but the mask M:s has 4"]);
    fails(with(&[true; 3], false).read_all(), &["the mask M:s keeps none of the 3 rows"]);
}
