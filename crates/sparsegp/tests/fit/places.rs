//! Places on Earth.

use crate::support::{fit, options, value};
use sparsegp::data::{
    EARTH_RADIUS, Encoding, InputColumn, Loaded, Missing, Selection, Table, input_title,
    place_point, point_place,
};
use sparsegp::fit::{
    BatchOptions, Dataset, FitOptions, Fitted, Hyperparameters, Of, Standardise, encoded,
};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Mat, Precision};
use sparsegp::rng::{stream, uniform};
use sparsegp::{io, methods};

/// The great circle between two places, by the haversine formula.
fn circle((a, b): (f64, f64), (c, d): (f64, f64)) -> f64 {
    let [a, b, c, d] = [a, b, c, d].map(f64::to_radians);
    let h = ((c - a) / 2.0).sin().powi(2) + a.cos() * c.cos() * ((d - b) / 2.0).sin().powi(2);
    2.0 * EARTH_RADIUS * h.sqrt().asin()
}

/// Places about Fiji on both sides of the date line, with values that change over some 500 km.
fn rows(count: usize) -> Vec<(f64, f64, f64)> {
    let mut rng = stream(5, "places");
    let one = |_| {
        let latitude = -40.0 + 30.0 * uniform(&mut rng);
        let east = 165.0 + 25.0 * uniform(&mut rng);
        let wave = |to| (circle((latitude, east), to) / 500.0).sin();
        let y = 300.0 + 80.0 * wave((-20.0, 180.0)) + 30.0 * wave((-45.0, 150.0));
        let longitude = if east > 180.0 { east - 360.0 } else { east };
        (latitude, longitude, y + 20.0 * (uniform(&mut rng) - 0.5))
    };
    (0..count).map(one).collect()
}

fn written(folder: &tempfile::TempDir, text: &str) -> Table {
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, text).expect("a file");
    Table::open(&path).expect("a table")
}

/// The rows with another column of numbers between latitude and longitude.
fn table(folder: &tempfile::TempDir, rows: &[(f64, f64, f64)]) -> Table {
    let line = |(i, (a, b, y)): (usize, &(f64, f64, f64))| {
        format!("{a},{},{b},{y},{}\n", (i * 7) % 11, usize::from(*y > 300.0))
    };
    let lines: String = rows.iter().enumerate().map(line).collect();
    written(folder, &format!("lat,age,long,y,high\n{lines}"))
}

fn pair() -> Vec<(String, String)> {
    vec![("lat".into(), "long".into())]
}

fn loaded(
    table: &Table,
    selection: &Selection,
    pairs: &[(String, String)],
) -> sparsegp::Result<Loaded> {
    let selection = encoded(table, selection, "", &[])?;
    let selection = table.with_places(selection, pairs)?;
    table.select(&selection)?.missing(Missing::Refuse).read_all()
}

fn dataset(table: &Table, selection: &Selection) -> Dataset {
    let scaling = Standardise::all_that(&Gaussian::new(0.1)).for_kernel("");
    let loaded = loaded(table, selection, &pair()).expect("rows");
    Dataset::from_loaded(loaded, scaling).expect("a data set")
}

fn only() -> Selection {
    Selection::targets(["y"]).inputs(["lat", "long"])
}

fn points(places: &[(f64, f64)]) -> Mat<f64> {
    Mat::from_fn(places.len(), 3, |i, q| place_point(places[i].0, places[i].1)[q])
}

fn means(fitted: &Fitted, places: &[(f64, f64)]) -> Vec<f64> {
    fitted
        .predict(points(places).as_ref(), Of::Latent)
        .expect("predictions")
        .0
        .col_as_slice(0)
        .to_vec()
}

/// The solution of a symmetric positive definite system, by elimination.
fn solved(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        let pivot = a[i].clone();
        for j in i + 1..n {
            let factor = a[j][i] / pivot[i];
            a[j].iter_mut().zip(&pivot).for_each(|(own, above)| *own -= factor * above);
            b[j] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let rest: f64 = (i + 1..n).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - rest) / a[i][i];
    }
    b
}

/// Exact inference with a Matérn kernel of chords in kilometres, written down here.
#[test]
fn exact_inference_is_that_of_chords_in_kilometres() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = rows(60);
    let data = dataset(&table(&folder, &rows), &only());
    assert_eq!(
        data.input_names,
        ["place(lat, long)=x", "place(lat, long)=y", "place(lat, long)=z"]
    );
    let scale = data.scaler.x_scale[0];
    assert!(data.scaler.x_scale.iter().all(|own| *own == scale) && scale > 100.0);
    let (length, variance, noise) = (640.0, 7000.0, 90.0);
    let own = FitOptions {
        kernel: format!(
            r#"{{"type": "matern32", "variance": {{"value": {variance}, "frozen": true}},
                 "lengthscales": {{"value": {length}, "frozen": true}}}}"#
        ),
        kernel_in_data_units: true,
        likelihood: Some(format!(
            r#"{{"type": "gaussian", "variance": {{"value": {}, "frozen": true}}}}"#,
            noise / data.scaler.y_scale[0].powi(2)
        )),
        ..options("exact", 5)
    };
    let found = fit(&data, &own).expect("a fit");
    let lengths = found.parameters().into_iter().find(|row| row.path.ends_with("lengthscales"));
    let lengths = lengths.expect("lengthscales");
    assert_eq!(lengths.tied, [vec![0, 1, 2]]);
    assert!(lengths.data_units.expect("kilometres").iter().all(|own| (own - length).abs() < 1e-9));

    let kernel = |a: (f64, f64), b: (f64, f64)| {
        let chord = 2.0 * EARTH_RADIUS * (circle(a, b) / (2.0 * EARTH_RADIUS)).sin();
        let r = 3.0_f64.sqrt() * chord / length;
        variance * (1.0 + r) * (-r).exp()
    };
    let place = |row: &(f64, f64, f64)| (row.0, row.1);
    let centre = rows.iter().map(|row| row.2).sum::<f64>() / rows.len() as f64;
    let matrix: Vec<Vec<f64>> = (0..rows.len())
        .map(|i| {
            let one = |j: usize| {
                kernel(place(&rows[i]), place(&rows[j])) + if i == j { noise } else { 0.0 }
            };
            (0..rows.len()).map(one).collect()
        })
        .collect();
    let weights = solved(matrix, rows.iter().map(|row| row.2 - centre).collect());
    // west and east of the date line, where longitudes change their sign, and the pole
    let new = [(-20.0, 179.99), (-20.0, -179.99), (-33.3, -171.0), (-90.0, 12.0), (64.0, 25.0)];
    for (at, mean) in new.iter().zip(means(&found, &new)) {
        let sum: f64 = rows.iter().zip(&weights).map(|(row, w)| w * kernel(*at, place(row))).sum();
        let expected = centre + sum;
        assert!((mean - expected).abs() < 1e-9 * expected.abs(), "{at:?}: {mean} {}", centre + sum);
    }
}

/// Every method, whatever its likelihood: one lengthscale for a place, no jump at the date line, and files that keep it.
#[test]
fn every_method_has_one_lengthscale_and_no_date_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = table(&folder, &rows(60));
    let data = dataset(&table, &only());
    let tied = |fitted: &Fitted, path: &str| {
        let all = value(&fitted.model, path);
        assert!(all.len() == 3 && all.iter().all(|own| *own == all[0]), "{path}: {all:?}");
    };
    for (method, likelihood, path) in [
        ("exact", "gaussian", "kernel.lengthscales"),
        ("titsias2025", "gaussian", "kernel.lengthscales"),
        ("vecchia", "gaussian", "kernel.lengthscales"),
        ("full-scale", "gaussian", "kernel.lengthscales"),
        ("svgp", "gaussian", "kernel.lengthscales"),
        ("nuts", "gaussian", "kernel.lengthscales"),
        ("deep", "gaussian", "layers[0].kernel.lengthscales"),
        ("tvgp", "student-t", "kernel.lengthscales"),
        ("tsvgp", "student-t", "kernel.lengthscales"),
    ] {
        let mut own = FitOptions {
            kernel: "matern32".into(),
            likelihood: Some(likelihood.into()),
            ..options(method, 6)
        };
        if !["titsias2025", "svgp", "tsvgp", "full-scale", "deep"].contains(&method) {
            own.inducing = None;
        }
        (own.gibbs.chains, own.gibbs.draws, own.gibbs.burn_in) = (1, 20, 20);
        if ["svgp", "deep"].contains(&method) {
            let entry = methods::find(method).expect("a method");
            let mut batches = BatchOptions { size: 30, ..BatchOptions::of(entry.method) };
            batches.training.epochs = Some(5);
            own.batches = Some(batches);
        }
        let found = fit(&data, &own).unwrap_or_else(|error| panic!("{method}: {error}"));
        if method != "nuts" {
            tied(&found, path);
        }
        let [west, east] = means(&found, &[(-20.0, 179.999), (-20.0, -179.999)])[..] else {
            panic!("two places")
        };
        assert!((west - east).abs() < 0.5, "{method}: {west} {east}");
        let file = folder.path().join("m.safetensors");
        io::save(&found, &file).expect("a file");
        let again = io::load(&file).expect("a model");
        assert_eq!(again.columns, found.columns, "{method}");
        assert_eq!(means(&again, &[(-20.0, 179.999)])[0], west, "{method}");
        if method != "nuts" {
            tied(&again, path);
        }
    }
    let own = FitOptions {
        likelihood: Some("bernoulli".into()),
        kernel: "rbf".into(),
        ..options("tsvgp", 10)
    };
    let scaling = Standardise { inputs: true, targets: false, robust: false, constants: true };
    let of_classes = loaded(&table, &Selection::targets(["high"]).inputs(["lat", "long"]), &pair());
    let classes = Dataset::from_loaded(of_classes.expect("rows"), scaling).expect("a data set");
    tied(&fit(&classes, &own).expect("a fit"), "kernel.lengthscales");
}

/// The optimum of the tied lengthscale is found, and averages over hyperparameters see one number.
/// The guard of mixed precision looks at slopes of hyperparameters, of which a place has one lengthscale.
#[test]
fn mixed_precision_counts_a_place_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let columns = Selection::targets(["y"]).inputs(["lat", "long", "age"]);
    let data = dataset(&table(&folder, &rows(150)), &columns);
    let own = FitOptions { kernel: "matern32".into(), ..options("titsias2025", 20) };
    let double = fit(&data, &own).expect("a fit");
    let single = fit(&data, &FitOptions { precision: Precision::Single, ..own }).expect("a fit");
    assert_eq!(single.report.as_ref().map(|own| own.precision), Some(Precision::Single));
    let [a, b] = [double, single].map(|own| own.objective().expect("an objective"));
    assert!((a - b).abs() < 1e-3 * 150.0, "{a} {b}");
}

#[test]
fn lengthscales_are_learnt_in_kilometres() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = table(&folder, &rows(150));
    let data = dataset(&table, &Selection::targets(["y"]).ignore(["high"]));
    assert_eq!(
        data.input_names,
        ["place(lat, long)=x", "place(lat, long)=y", "place(lat, long)=z", "age"]
    );
    let own = FitOptions {
        kernel: "matern52".into(),
        hyperparameters: Hyperparameters::Laplace,
        ..options("exact", 100)
    };
    let found = fit(&data, &own).expect("a fit");
    let all = found.parameters();
    let lengths = all.iter().find(|row| row.path.ends_with("lengthscales")).expect("lengthscales");
    let own = lengths.data_units.as_ref().expect("units");
    assert!(own[0] == own[1] && own[1] == own[2] && own[0] > 200.0 && own[0] < 3000.0, "{own:?}");
    // age has nothing to do with it
    assert!(own[3] > 10.0, "{own:?}");
    assert_eq!(input_title(&data.input_names[1]), "place(lat, long)");
    assert_eq!(input_title("colour=x"), "colour=x");
    assert!(!found.warnings.iter().any(|text| text.contains("look like places")));
    // a value for each column of the table is enough
    for (spec, expected) in [
        ("matern52(lengthscales=[700, 4])", [700.0, 700.0, 700.0, 4.0]),
        ("matern52(lengthscales=[700, 600, 500, 4])", [700.0, 600.0, 500.0, 4.0]),
    ] {
        let own =
            FitOptions { kernel: spec.into(), kernel_in_data_units: true, ..options("exact", 0) };
        let found = fit(&data, &own).expect("a fit");
        let all = found.parameters();
        let row = all.iter().find(|row| row.path.ends_with("lengthscales")).expect("lengthscales");
        let own = row.data_units.as_ref().expect("units");
        assert!(own.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{spec}: {own:?}");
        assert_eq!(row.tied.is_empty(), expected[1] != 700.0);
    }
    // a kernel is given a place by either of its columns
    let own = FitOptions {
        kernel: "matern32(active_dims=[lat, long]) + linear(active_dims=[age])".into(),
        ..options("exact", 10)
    };
    let found = fit(&data, &own).expect("a fit");
    let text = found.model.kernel().to_json().to_string();
    assert!(text.contains(r#""active_dims":[0,1,2]"#) && text.contains(r#""active_dims":[3]"#));
    assert!(text.contains(r#""tied":[[0,1,2]]"#), "{text}");
}

#[test]
fn what_is_not_a_place_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        "lat,long,y,note,day\n-20,170,1,a,2024-01-01\n91,20,2,b,2024-01-02\n10,30,3,a,2024-01-03\n";
    let refused = |text: &str, selection: Selection, pairs: &[(&str, &str)], words: &[&str]| {
        let table = written(&folder, text);
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let error = loaded(&table, &selection, &pairs).expect_err("a refusal").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let y = || Selection::targets(["y"]);
    let lat = [("lat", "long")];
    refused(text, y(), &lat, &["rows.csv", "row 2, column `lat`", "`91`", "LATITUDE,LONGITUDE"]);
    let far = text.replace("91,20", "9,361");
    refused(&far, y(), &lat, &["row 2, column `long`", "`361`", "LATITUDE,LONGITUDE"]);
    let gap = text.replace("91,20", "9,");
    refused(&gap, y(), &lat, &["row 2, column `long`", "--missing drop"]);
    refused(text, y(), &[("lat", "lon")], &["column `lon`", "nearest: `long`"]);
    refused(text, y(), &[("lat", "note")], &["column `note`", "holds text"]);
    refused(text, y(), &[("lat", "day")], &["column `day`", "holds dates"]);
    refused(text, y(), &[("lat", "long"), ("long", "lat")], &["column `long`", "given twice"]);
    refused(text, y(), &[("lat", "lat")], &["column `lat`", "given twice"]);
    refused(text, y(), &[("lat", "y")], &["column `y`", "not an input column"]);
    refused(text, y().ignore(["long"]), &lat, &["column `long`", "not an input column"]);
    // the other order of columns is what people mean
    let fine = text.replace("91,20", "9,20");
    let data = loaded(&written(&folder, &fine), &y().ignore(["note", "day"]), &pair());
    let data = data.expect("rows");
    let place = point_place([0, 1, 2].map(|q| data.x[(0, q)]));
    assert!((place.0 + 20.0).abs() < 1e-9 && (place.1 - 170.0).abs() < 1e-9);
    // rows with a gap are left out, and counted once
    let table = written(&folder, &gap.replace("-20,170", ",170"));
    let selection = encoded(&table, &y().ignore(["note", "day"]), "", &[]).expect("columns");
    let selection = table.with_places(selection, &pair()).expect("places");
    let rows = table.select(&selection).expect("columns").missing(Missing::Drop).read_all();
    let rows = rows.expect("rows");
    assert_eq!((rows.x.nrows(), rows.dropped), (1, 2));
}

#[test]
fn places_that_are_one_are_named_and_columns_that_look_like_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let same = written(&folder, "lat,long,y\n52.5,13.4,1\n52.5,13.4,2\n52.5,13.4,4\n");
    let data = dataset(&same, &Selection::targets(["y"]));
    let said = |data: &Dataset, word: &str| data.warnings.iter().any(|text| text.contains(word));
    assert!(said(&data, "all rows are at one `place(lat, long)`"), "{:?}", data.warnings);
    assert!(!said(&data, "is constant"), "{:?}", data.warnings);
    assert_eq!(data.scaler.x_scale, [1.0; 3]);

    let of = |header: &str, rows: &str| {
        let table = written(&folder, &format!("{header},y\n{rows}"));
        let loaded = loaded(&table, &Selection::targets(["y"]), &[]).expect("rows");
        Dataset::from_loaded(loaded, true).expect("a data set")
    };
    let rows = "52.5,13.4,1\n48.9,2.4,2\n40.4,-3.7,4\n";
    let found = of("Latitude,LON", rows);
    let note = "columns `Latitude` and `LON` look like places on Earth: `--places Latitude,LON`";
    assert!(said(&found, note), "{:?}", found.warnings);
    for (header, rows) in [
        ("lat,x", rows),
        ("flat,long", rows),
        ("lat,long", "520,13.4,1\n48.9,2.4,2\n40.4,-3.7,4\n"),
        ("lat,long", "52.5,1300,1\n48.9,2.4,2\n40.4,-3.7,4\n"),
        // of one place nothing is far
        ("lat,long", "52.5,13.4,1\n52.5,2.4,2\n52.5,-3.7,4\n"),
        ("lat,long", "52.5,a,1\n52.5,b,2\n52.5,a,4\n"),
        ("lat,latitude,long", "52.5,1,13.4,1\n48.9,2,2.4,2\n40.4,3,-3.7,4\n"),
    ] {
        let found = of(header, rows);
        assert!(!said(&found, "look like places"), "{header}: {:?}", found.warnings);
    }
}

/// A file that is streamed gives the same points and the same scale; and cells of new rows are read alike.
#[test]
fn streams_and_single_rows_have_the_same_points() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = table(&folder, &rows(70));
    let selection = encoded(&table, &Selection::targets(["y"]).ignore(["high"]), "", &[]);
    let selection = table.with_places(selection.expect("columns"), &pair()).expect("places");
    let selected = table.select(&selection).expect("columns");
    let streamed = Dataset::from_table(selected.stream().expect("rows"), true).expect("a data set");
    let whole = Dataset::from_loaded(selected.read_all().expect("rows"), true).expect("a data set");
    assert_eq!(streamed.input_names, whole.input_names);
    for q in 0..4 {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
        assert!(close(streamed.scaler.x_scale[q], whole.scaler.x_scale[q]));
        assert!(close(streamed.scaler.x_mean[q], whole.scaler.x_mean[q]));
    }
    let column =
        InputColumn { name: "lat".into(), encoding: Encoding::Place { longitude: "long".into() } };
    assert_eq!(
        (column.sources(), column.title()),
        (vec!["lat", "long"], "place(lat, long)".into())
    );
    assert_eq!(column.of_numbers(&[-20.0, 170.0]), Ok(place_point(-20.0, 170.0).to_vec()));
    assert!(column.of_numbers(&[95.0, 170.0]).expect_err("a refusal").contains("column `lat`"));
    assert!(column.of_numbers(&[5.0, -270.0]).expect_err("a refusal").contains("column `long`"));
    assert!(column.numbers("5").expect_err("a refusal").contains("`long`"));
}
