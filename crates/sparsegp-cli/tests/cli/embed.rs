//! Rows placed in a few dimensions.

use crate::support::{Folder, bundled, column, texts};

/// What nobody has written down.
fn hidden(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_749_895).fract() * 4.0 - 2.0
}

fn cell(i: usize, j: usize) -> f64 {
    let noise = ((i * 7 + j * 13) as f64 * 0.414_213_562_373_095).fract() - 0.5;
    let j = j as f64;
    10.0 * (1.0 + j) * ((0.5 + 0.3 * j) * hidden(i) + 0.6 * j).sin() + 100.0 * j + 0.5 * noise
}

/// Five columns, a label and a key; the cell of `gap(i, j)` is empty.
fn table(rows: std::ops::Range<usize>, gap: impl Fn(usize, usize) -> bool) -> String {
    let mut text = String::from("key,a,b,c,d,e,side\n");
    for i in rows {
        text += &format!("r{i}");
        for j in 0..5 {
            text += &if gap(i, j) { ",".into() } else { format!(",{:.4}", cell(i, j)) };
        }
        text += if hidden(i) > 0.0 { ",right\n" } else { ",left\n" };
    }
    text
}

/// Of ranks: a place is some monotonic function of what is hidden.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |v: &[f64]| -> Vec<f64> {
        v.iter().map(|x| v.iter().filter(|y| *y < x).count() as f64).collect()
    };
    let (a, b, n) = (ranks(a), ranks(b), a.len() as f64);
    let middle = 0.5 * (n - 1.0);
    let both: f64 = a.iter().zip(&b).map(|(a, b)| (a - middle) * (b - middle)).sum();
    both / a.iter().map(|a| (a - middle) * (a - middle)).sum::<f64>()
}

#[test]
fn rows_are_placed_gaps_are_filled_and_new_rows_come_later() {
    let folder = Folder::new();
    folder.write("a.csv", table(0..60, |i, j| i % 9 == 4 && j == i % 5));
    // five starts end in a worse optimum on some processors
    let report = folder.json(
        "embed a.csv -d 2 --inducing 15 --id key --color side -o map.safetensors --coordinates places.csv --fill whole.csv \
         --plot map.svg --restarts 10 --seed 1",
    );
    assert_eq!((&report["rows"], &report["missing_cells"]), (&60.into(), &7.into()));
    assert_eq!(report["columns"], serde_json::json!(["a", "b", "c", "d", "e"]));
    let relevance: Vec<f64> =
        report["relevance"].as_array().unwrap().iter().map(|r| r.as_f64().unwrap()).collect();
    let most = if relevance[0] > relevance[1] { 0 } else { 1 };
    // one number is behind all columns
    assert!(relevance[1 - most] < 0.5, "{relevance:?}");
    let places = folder.read("places.csv");
    assert_eq!(texts(&places, "key")[5], "r5");
    let t: Vec<f64> = (0..60).map(hidden).collect();
    let r = correlation(&column(&places, &format!("z{}", most + 1)), &t);
    assert!(r.abs() > 0.97, "{r}");
    assert!(column(&places, "z1_sd").iter().all(|sd| *sd > 0.0 && *sd < 1.0));
    let whole = folder.read("whole.csv");
    let (values, spread) = (column(&whole, "e"), column(&whole, "e_sd"));
    for i in 0..60 {
        let gap = i % 9 == 4 && i % 5 == 4;
        assert_eq!(spread[i] > 0.0, gap);
        assert!((values[i] - cell(i, 4)).abs() < if gap { 6.0 } else { 1e-4 }, "{i}");
    }
    let picture = folder.read("map.svg");
    assert!(picture.contains("side = left") && picture.contains("relevance of the dimensions"));
    // the same rows by the saved map, and new ones
    let again = "embed a.csv --with map.safetensors --coordinates again.csv --id key";
    folder.json(again);
    let z = |name: &str| column(&folder.read(name), &format!("z{}", most + 1));
    let far = z("places.csv").into_iter().zip(z("again.csv")).map(|(a, b)| (a - b).abs());
    assert!(far.fold(0.0, f64::max) < 0.1);
    folder.write("b.csv", table(60..80, |i, j| i % 2 == 0 && j > 2));
    let out = folder.ok("embed b.csv --with map.safetensors --id key").out;
    assert_eq!(texts(&out, "key")[0], "r60");
    let t: Vec<f64> = (60..80).map(hidden).collect();
    let r = correlation(&column(&out, &format!("z{}", most + 1)), &t);
    assert!(r.abs() > 0.95, "{r}");
}

/// A header that is too long for the file's own.
#[test]
fn maps_of_many_columns_are_read_again() {
    let folder = Folder::new();
    let many = 1500;
    let names: Vec<String> = (0..many).map(|j| format!("a_column_with_a_long_name_{j}")).collect();
    let mut text = names.join(",") + "\n";
    for i in 0..12 {
        let cells: Vec<String> = (0..many)
            .map(|j| {
                format!("{:.3}", (hidden(i) + j as f64 * 0.01).sin() + 0.1 * hidden(i * 7 + j))
            })
            .collect();
        text += &(cells.join(",") + "\n");
    }
    folder.write("wide.csv", text);
    folder.ok(
        "embed wide.csv -d 1 --inducing 5 --max-iterations 3 --restarts 1 -q -o map.safetensors",
    );
    assert!(folder.ok("embed wide.csv --with map.safetensors").out.starts_with("z1,z1_sd\n"));
    folder.refused(1, "predict map.safetensors wide.csv", &["GP-LVM"]);
}

#[test]
fn what_cannot_be_embedded_is_refused() {
    let folder = Folder::new();
    folder.write("a.csv", table(0..30, |_, _| false));
    folder.write("s.csv", bundled("snelson.csv.gz"));
    folder.ok("fit s.csv --target y -q -o model.safetensors");
    folder
        .ok("embed a.csv --ignore key,side --inducing 8 --max-iterations 20 --restarts 1 -q -o map.safetensors");
    for (code, line, parts) in [
        (
            2,
            "embed a.csv -o m.safetensors --ignore key",
            &["`side`", "labels", "--ignore side"][..],
        ),
        (2, "embed a.csv -o m.safetensors --ignore kye", &["kye", "key"]),
        (2, "embed a.csv -o a.csv", &["overwritten"]),
        (2, "embed a.csv --ignore key,side --kernel matern52 -o m.safetensors", &["matern52"]),
        (
            2,
            "embed a.csv --ignore key,side --method exact -o m.safetensors",
            &["exact", "titsias2025"],
        ),
        (2, "embed a.csv --dimensions 0 -o m.safetensors", &["--dimensions"]),
        (2, "embed a.csv --ignore key,side --plot map.txt", &[".svg"]),
        (2, "embed a.csv --with map.safetensors -o m.safetensors", &["--with"]),
        (1, "embed s.csv --with map.safetensors", &["`a`"]),
        (1, "embed a.csv --with model.safetensors", &["model.safetensors", "no GP-LVM"]),
        (1, "predict map.safetensors a.csv", &["map.safetensors", "GP-LVM", "sparsegp embed"]),
        (2, "--json embed a.csv --ignore key,side", &["--coordinates"]),
    ] {
        folder.refused(code, line, parts);
    }
    // columns of one name, before the work
    folder.write("z.csv", table(0..30, |_, _| false).replacen("key", "z1", 1));
    let line = "embed z.csv --ignore side --id z1 --inducing 8 -o m.safetensors";
    folder.refused(2, &format!("{line} --coordinates places.csv"), &["`z1`"]);
    folder.refused(2, "embed a.csv --ignore key,side -o ./a.csv", &["overwritten"]);
    folder.write("one.csv", "a,b\n1,2\n1,2\n1,2\n");
    folder.refused(2, "embed one.csv -o m.safetensors", &["do not vary"]);
}

/// Minibatches give a map like any other, near that of all rows at once, and say how they ended.
#[test]
fn many_rows_are_placed_by_minibatches() {
    let folder = Folder::new();
    folder.write("a.csv", table(0..150, |i, j| i % 11 == 4 && j == i % 5));
    let embed = "embed a.csv -d 2 --inducing 12 --restarts 1 --max-iterations 60 --ignore key,side";
    let whole = folder.json(&format!("{embed} -o whole.safetensors"));
    let own = folder.json(&format!(
        "{embed} --batch 40 --epochs 6 -o map.safetensors --coordinates places.csv --threads 2"
    ));
    let bound = |report: &serde_json::Value| report["bound"].as_f64().unwrap();
    assert!(bound(&own) > bound(&whole) - 0.05 * bound(&whole).abs(), "{own} {whole}");
    let status = own["status"].as_str().unwrap();
    assert!(status.contains("after 6 epochs"), "{status}");
    let t: Vec<f64> = (0..150).map(hidden).collect();
    let places = folder.read("places.csv");
    let r = ["z1", "z2"].map(|name| correlation(&column(&places, name), &t).abs());
    assert!(r[0].max(r[1]) > 0.9, "{r:?}");
    // the map places rows without training
    let report = folder.json("embed a.csv --with map.safetensors --coordinates again.csv");
    assert!(report["mean_log_density"].as_f64().unwrap().is_finite());
    folder.refused(2, &format!("{embed} --epochs 3"), &["--batch"]);
    let spherical = format!("{embed} --method spherical --batch 40");
    folder.refused(2, &spherical, &["`spherical` is not a sum over rows", "titsias2025"]);
}
