//! New rows without the old ones.

use crate::support::{fit, options, table};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, UpdateOptions, sample_rows, update};
use sparsegp::inducing::select::Selection;
use sparsegp::linalg::{Mat, MatRef};

fn largest(a: MatRef<f64>) -> f64 {
    (0..a.nrows()).flat_map(|i| (0..a.ncols()).map(move |j| a[(i, j)].abs())).fold(0.0, f64::max)
}

/// Rows `from..to` of the same data on the same scales.
fn part(all: &Dataset, from: usize, to: usize) -> Dataset {
    let rows = sample_rows(&*all.source, all.source.rows(), 0).expect("rows");
    let cut = |a: &Mat<f64>| a.as_ref().subrows(from, to - from).to_owned();
    let some = |a: &[f64]| a.get(from..to).unwrap_or_default().to_vec();
    let own = InMemory {
        x: cut(&rows.x),
        y: cut(&rows.y),
        weights: some(&rows.weights),
        extra: some(&rows.extra),
    };
    let mut dataset = table(8, 1);
    dataset.scaler = all.scaler.clone();
    dataset.input_names = all.input_names.clone();
    dataset.target_names = all.target_names.clone();
    dataset.classes = all.classes.clone();
    dataset.rows = to - from;
    dataset.source = Box::new(own);
    dataset
}

/// The model conditioned on the rows of a dataset, its hyperparameters as they are.
fn conditioned(fitted: &Fitted, data: &Dataset) -> (Mat<f64>, Mat<f64>) {
    let posterior = fitted.model.posterior(&Cpu::default(), &*data.source).expect("a posterior");
    posterior.predict_f(grid().as_ref()).expect("predictions")
}

fn grid() -> Mat<f64> {
    Mat::from_fn(30, 1, |i, _| i as f64 / 6.0 - 2.5)
}

fn predicted(fitted: &Fitted) -> (Mat<f64>, Mat<f64>) {
    fitted.posterior.predict_f(grid().as_ref()).expect("predictions")
}

fn still() -> UpdateOptions {
    UpdateOptions { correlation: 0.0, ..UpdateOptions::default() }
}

/// With points that stay, a fit to the first rows and updates are the posterior of all rows.
#[test]
fn old_and_new_rows_are_one_posterior() {
    let all = table(120, 1);
    let own = FitOptions { inducing: Some(12), ..options("titsias2009", 20) };
    let first = fit(&part(&all, 0, 50), &own).expect("a fit");
    let (mean, variance) = conditioned(&first, &all);
    let (one, report) =
        update(&first, &part(&all, 50, 90), &still(), &mut |_, _| Ok(())).expect("an update");
    assert_eq!((report.rows, report.added, one.rows), (40, 0, 90));
    let (two, second) =
        update(&one, &part(&all, 90, 120), &still(), &mut |_, _| Ok(())).expect("an update");
    let (own_mean, own_variance) = predicted(&two);
    assert!(largest((&own_mean - &mean).as_ref()) < 1e-6);
    assert!(largest((&own_variance - &variance).as_ref()) < 1e-6);
    assert_eq!(two.model.method.name(), "svgp");
    // the evidence of all rows is that of the first ones and what the updates add
    let bound = |rows: &Dataset| {
        first.model.evaluate(&Cpu::default(), &*rows.source).expect("a bound").value
            + first.scaler.log_jacobian() * rows.rows as f64
    };
    let sum = bound(&part(&all, 0, 50)) + report.bound + second.bound;
    assert!((sum - bound(&all)).abs() < 1e-5 * bound(&all).abs(), "{sum} {}", bound(&all));
    let reported = two.objective().expect("an objective");
    assert!((reported - sum).abs() < 1e-5 * sum.abs(), "{reported} {sum}");
    // the model that was given is as it was
    assert!(
        largest((&predicted(&first).0 - &conditioned(&first, &part(&all, 0, 50)).0).as_ref())
            < 1e-9
    );
}

/// Rows where nothing was known become points, up to a number.
#[test]
fn far_rows_become_points() {
    let all = table(120, 1);
    let own = FitOptions { inducing: Some(6), ..options("titsias2025", 20) };
    let first = fit(&part(&all, 0, 60), &own).expect("a fit");
    let mut far = sample_rows(&*part(&all, 60, 120).source, 60, 0).expect("rows");
    far.x = Mat::from_fn(60, far.x.ncols(), |i, j| far.x[(i, j)] + 9.0);
    let mut new = part(&all, 60, 120);
    new.source = Box::new(far.clone());
    let (wide, report) =
        update(&first, &new, &UpdateOptions::default(), &mut |_, _| Ok(())).expect("an update");
    assert!(report.added > 1 && report.uncovered == 0, "{report:?}");
    let at = far.x.as_ref().subrows(0, 20);
    let sd =
        |fitted: &Fitted| largest(fitted.posterior.predict_f(at).expect("predictions").1.as_ref());
    assert!(sd(&wide) < 0.3 * sd(&first), "{} {}", sd(&wide), sd(&first));
    let few = UpdateOptions { most_points: Some(7), ..UpdateOptions::default() };
    let (narrow, report) = update(&first, &new, &few, &mut |_, _| Ok(())).expect("an update");
    assert_eq!((report.points, report.added), (7, 1));
    assert!(
        report.uncovered > 0
            && narrow.warnings.iter().any(|w| w.contains("no inducing point is near"))
    );
}

/// Any likelihood: the posterior of counts comes near that of all rows, and forgetting widens it.
#[test]
fn counts_are_taken_up_and_forgotten() {
    let counts = |all: &Dataset| {
        let mut rows = sample_rows(&*all.source, all.source.rows(), 0).expect("rows");
        rows.y = Mat::from_fn(rows.y.nrows(), 1, |i, _| (1.5 + 1.2 * rows.y[(i, 0)]).exp().floor());
        let mut own = part(all, 0, 2);
        own.scaler.y_mean = vec![0.0];
        own.scaler.y_scale = vec![1.0];
        own.rows = rows.x.nrows();
        own.source = Box::new(rows);
        own
    };
    let all = counts(&table(160, 1));
    let own = FitOptions {
        likelihood: Some("poisson".into()),
        inducing: Some(10),
        ..options("tsvgp", 30)
    };
    let first = fit(&part(&all, 0, 80), &own).expect("a fit");
    let (one, _) =
        update(&first, &part(&all, 80, 160), &still(), &mut |_, _| Ok(())).expect("an update");
    // q of all rows under the same hyperparameters
    let whole = FitOptions {
        freeze: vec!["kernel".into(), "mean".into(), "inducing".into()],
        batches: None,
        selection: Selection::Given(first.model.inducing_points().expect("points")),
        inducing: None,
        ..own
    };
    let set =
        first.model.params().into_iter().filter(|(path, _)| {
            ["kernel", "mean"].iter().any(|own| path.to_string().starts_with(own))
        });
    let set: Vec<(String, Vec<f64>)> =
        set.map(|(path, p)| (path.to_string(), p.value().to_vec())).collect();
    let whole = FitOptions { set, pilot: 0, ..whole };
    let both = fit(&all, &whole).expect("a fit");
    let ((a, va), (b, vb)) = (predicted(&one), predicted(&both));
    let (far, wide) = (largest((&a - &b).as_ref()), largest((&va - &vb).as_ref()));
    assert!(far < 0.1 && wide < 0.02, "{far} {wide}");
    assert!(largest((&predicted(&first).0 - &b).as_ref()) > 2.0 * largest((&a - &b).as_ref()));
    let forget = UpdateOptions { forget: 0.1, ..still() };
    let (less, _) =
        update(&first, &part(&all, 80, 160), &forget, &mut |_, _| Ok(())).expect("an update");
    let (_, wider) = predicted(&less);
    assert!((0..30).all(|i| wider[(i, 0)] > va[(i, 0)] - 1e-9));
    assert!((0..30).any(|i| wider[(i, 0)] > 1.1 * va[(i, 0)]));
}

#[test]
fn what_cannot_be_updated_is_refused_by_name() {
    let all = table(60, 1);
    let relaxed = FitOptions { likelihood: Some("laplace".into()), ..options("tvgp", 5) };
    let relaxed = fit(&all, &relaxed).expect("a fit");
    let refused = |fitted: &Fitted, options: &UpdateOptions, data: &Dataset| {
        update(fitted, data, options, &mut |_, _| Ok(())).expect_err("a refusal").to_string()
    };
    assert!(refused(&relaxed, &still(), &all).contains("--inducing"));
    let own = FitOptions { inducing: Some(6), ..options("titsias2009", 5) };
    let sparse = fit(&all, &own).expect("a fit");
    for (forget, correlation, name) in [
        (0.0, 0.5, "forget"),
        (1.5, 0.5, "forget"),
        (1.0, 1.0, "correlation"),
        (1.0, -0.1, "correlation"),
    ] {
        let wrong = UpdateOptions { forget, correlation, ..UpdateOptions::default() };
        assert!(refused(&sparse, &wrong, &all).contains(name), "{forget} {correlation}");
    }
    let mut other = part(&all, 0, 60);
    other.input_names = vec!["another".into()];
    assert!(refused(&sparse, &still(), &other).contains("another"));
}

/// What was trained with local variables takes up rows with them, in any number of updates: outliers, which make other posteriors
/// wider, have sites like all others.
#[test]
fn local_variables_stay_with_their_models() {
    let mut all = table(150, 1);
    let rows = sample_rows(&*all.source, 150, 0).expect("rows");
    let y = Mat::from_fn(150, 1, |i, _| rows.y[(i, 0)] + if i % 10 == 3 { 6.0 } else { 0.0 });
    all.source = Box::new(InMemory { y, ..rows });
    let noise = Some("student-t".to_owned());
    let own = |method| FitOptions {
        inducing: Some(12),
        likelihood: noise.clone(),
        ..options(method, 20)
    };
    let held = |report: &sparsegp::fit::UpdateReport| {
        report.warnings.iter().any(|w| w.contains("no information"))
    };
    for (method, after) in [("cavi", "svi"), ("svi", "svi"), ("tsvgp", "svgp")] {
        let first = fit(&part(&all, 0, 60), &own(method)).expect("a fit");
        let take = |fitted: &Fitted, from, to| {
            update(fitted, &part(&all, from, to), &still(), &mut |_, _| Ok(())).expect("an update")
        };
        let (one, report) = take(&first, 60, 110);
        let (two, second) = take(&one, 110, 150);
        assert_eq!(held(&report) || held(&second), after == "svgp", "{method}: {report:?}");
        assert_eq!(two.model.method.name(), after);
        let bytes = sparsegp::io::to_bytes(&two).expect("a file");
        let again = sparsegp::io::from_bytes(&bytes).expect("a model");
        assert_eq!(predicted(&again).0, predicted(&two).0, "{method}");
    }
}

/// Weights, missing cells and a constant target: the objective is what it was and what the update adds, in the data's units.
#[test]
fn objectives_add_up_with_weights_gaps_and_constants() {
    let rows = |n: usize, from: usize, constant: bool| {
        let at = |i: usize| (from + i) as f64;
        let x = Mat::from_fn(n, 1, |i, _| (0.618 * at(i)).fract() * 4.0 - 2.0);
        let y = Mat::from_fn(n, 2, |i, p| match p {
            1 if constant => 7.0,
            1 => 100.0 * (x[(i, 0)] + 0.3 * (9.0 * at(i)).sin()),
            _ => (2.0 * x[(i, 0)]).sin() + 0.2 * (5.0 * at(i)).sin(),
        });
        let weights = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
        InMemory { x, y, weights, extra: Vec::new() }
    };
    for constant in [false, true] {
        let own = FitOptions { inducing: Some(12), ..options("svgp", 20) };
        let first = Dataset::from_rows(rows(60, 0, constant), true).expect("rows");
        let fitted = fit(&first, &own).expect("a fit");
        let scaling = sparsegp::fit::Scaling::Given(fitted.scaler.clone());
        let later = Dataset::from_rows(rows(40, 60, constant), scaling).expect("rows");
        let (updated, report) =
            update(&fitted, &later, &still(), &mut |_, _| Ok(())).expect("an update");
        let (before, after) = (fitted.objective().unwrap(), updated.objective().unwrap());
        assert!((before + report.bound - after).abs() < 1e-8 * after.abs(), "{constant}");
    }
}

/// What was carried goes through a file, and further rows add to it to the bits of a run at once; a model whose points
/// were moved since continues from its posterior.
#[test]
fn what_rows_said_is_kept_in_the_file() {
    let all = table(120, 1);
    let own = FitOptions { inducing: Some(12), ..options("titsias2009", 20) };
    let first = fit(&part(&all, 0, 50), &own).expect("a fit");
    assert!(first.carried.is_empty());
    let take = |fitted: &Fitted, from, to| {
        let rows = part(&all, from, to);
        update(fitted, &rows, &still(), &mut |_, _| Ok(())).expect("an update").0
    };
    let one = take(&first, 50, 90);
    assert_eq!(one.carried.len(), 1);
    let bytes = sparsegp::io::to_bytes(&one).expect("a file");
    let again = sparsegp::io::from_bytes(&bytes).expect("a model");
    assert_eq!(again.carried, one.carried);
    let (at_once, resumed) = (take(&one, 90, 120), take(&again, 90, 120));
    assert_eq!(at_once.carried, resumed.carried);
    assert_eq!(predicted(&at_once).1, predicted(&resumed).1);
    let mut moved = one.clone();
    moved.carried[0].z[(0, 0)] += 1.0;
    let moved = take(&moved, 90, 120);
    assert!(largest((&predicted(&moved).0 - &predicted(&at_once).0).as_ref()) < 1e-6);
    assert_ne!(moved.carried, at_once.carried);
}

/// Points by correlation take a pilot's lengthscales, and a kernel that left them is reported.
#[test]
fn points_by_correlation_and_the_kernel_that_training_found() {
    let wavy = |x: f64| (3.0 * x).sin();
    let mut data = table(150, 1);
    let x = Mat::from_fn(150, 1, |i, _| (i as f64 * 0.618).fract() * 4.0 - 2.0);
    let y = Mat::from_fn(150, 1, |i, _| wavy(x[(i, 0)]) + 0.1 * (i as f64 * 1.7).sin());
    data.source = Box::new(InMemory { x, y, weights: Vec::new(), extra: Vec::new() });
    let by = |pilot| FitOptions {
        inducing: Some(60),
        selection: Selection::Oips(0.8),
        pilot,
        ..options("titsias2009", 60)
    };
    let said = |f: &Fitted| f.warnings.iter().filter(|w| w.contains("have shrunk")).count();
    let (blind, flown) = (fit(&data, &by(0)).expect("a fit"), fit(&data, &by(500)).expect("a fit"));
    assert_eq!((said(&blind), said(&flown)), (1, 0), "{:?} {:?}", blind.warnings, flown.warnings);
    let points = |f: &Fitted| f.model.inducing_points().expect("points").nrows();
    assert!(points(&flown) > 2 * points(&blind), "{} {}", points(&flown), points(&blind));
    // one note, of the points that were taken
    let notes = flown.warnings.iter().filter(|w| w.contains("are enough")).count();
    assert_eq!(notes, 1, "{:?}", flown.warnings);
}

/// A kernel that is learnt from new rows too predicts them better, and old rows are still there.
#[test]
fn kernel_and_noise_are_learnt_from_new_rows() {
    let at = |i: usize| (i as f64 * 0.618).fract();
    let rows = |from: usize, n: usize, low: f64, noise: f64| {
        let mut data = table(n, 1);
        let x = Mat::from_fn(n, 1, |i, _| low + 2.0 * at(from + i));
        let wavy = |i: usize| (4.0 * x[(i, 0)]).sin() + noise * (17.0 * (from + i) as f64).sin();
        let y = Mat::from_fn(n, 1, |i, _| wavy(i));
        data.source = Box::new(InMemory { x, y, weights: Vec::new(), extra: Vec::new() });
        data
    };
    // little noise at first, and much of it later
    let own = FitOptions { inducing: Some(15), ..options("titsias2009", 60) };
    let first = fit(&rows(0, 60, -2.0, 0.05), &own).expect("a fit");
    let mut later = rows(500, 400, -1.0, 0.6);
    later.scaler = first.scaler.clone();
    let with = |train, train_points| {
        let options = UpdateOptions { train, train_points, ..UpdateOptions::default() };
        update(&first, &later, &options, &mut |_, _| Ok(())).expect("an update")
    };
    let ((kept, still), (learnt, more), (moved, most)) =
        (with(0, false), with(30, false), with(30, true));
    assert_eq!(kept.model.noise(), first.model.noise());
    assert!(learnt.model.noise() > 3.0 * first.model.noise(), "{}", learnt.model.noise());
    assert!(
        more.bound > still.bound + 50.0 && most.bound >= more.bound - 1e-3,
        "{more:?} {most:?}"
    );
    // points move only where that is asked for, and what is trained is as it was
    let points = |f: &Fitted| f.model.inducing_points().expect("points");
    assert_eq!(points(&learnt), points(&kept));
    assert_ne!(points(&moved), points(&kept));
    let frozen = |f: &Fitted| f.model.params().iter().filter(|(_, p)| p.frozen).count();
    assert_eq!(frozen(&moved), frozen(&first));
    // a place that new rows say nothing of
    let x = Mat::from_fn(1, 1, |_, _| -1.6);
    let f = moved.posterior.predict_f(x.as_ref()).expect("a prediction").0[(0, 0)];
    assert!((f - (4.0 * -1.6_f64).sin()).abs() < 0.3, "{f}");
}

/// What old rows said of the noise is not forgotten: trained on a row at a time its variance was that of the last row.
#[test]
fn noise_that_is_learnt_row_by_row_is_that_of_all_rows() {
    let mut rng = sparsegp::rng::stream(5, "row by row");
    let x = Mat::from_fn(160, 1, |i, _| (i as f64 * 0.618).fract() * 4.0 - 2.0);
    let normal = |rng: &mut _| (0..12).map(|_| sparsegp::rng::uniform(rng)).sum::<f64>() - 6.0;
    let y = Mat::from_fn(160, 1, |i, _| (2.0 * x[(i, 0)]).sin() + 0.3 * normal(&mut rng));
    let mut all = table(160, 1);
    all.source = Box::new(InMemory { x, y, weights: Vec::new(), extra: Vec::new() });
    let own = |likelihood: &str, method: &str| FitOptions {
        inducing: Some(15),
        likelihood: Some(likelihood.into()),
        ..options(method, 60)
    };
    for (likelihood, method, path) in [
        ("gaussian", "titsias2009", "likelihood.variance"),
        ("student-t", "tsvgp", "likelihood.scale"),
    ] {
        let own = own(likelihood, method);
        let of = |fitted: &Fitted| {
            let params = fitted.model.params();
            params.iter().find(|(own, _)| own == path).expect("noise").1.scalar()
        };
        let whole = of(&fit(&all, &own).expect("a fit"));
        let mut fitted = fit(&part(&all, 0, 100), &own).expect("a fit");
        let first = of(&fitted);
        for i in 100..160 {
            let train = UpdateOptions { train: 20, ..UpdateOptions::default() };
            let one = part(&all, i, i + 1);
            fitted = update(&fitted, &one, &train, &mut |_, _| Ok(())).expect("an update").0;
            let ratio = (of(&fitted) / first).ln().abs();
            assert!(ratio < 0.5, "{likelihood}, row {i}: {} from {first}", of(&fitted));
        }
        let apart = (of(&fitted) / whole).ln().abs();
        assert!(apart < 0.25, "{likelihood}: {} and {whole} of all rows", of(&fitted));
    }
}

/// Rows that are added to those of exact inference: as if all had been there, at the same hyperparameters.
#[test]
fn exact_inference_takes_up_rows() {
    let all = table(60, 1);
    // rows that correlate more than this with a point become none: values that are not at their optimum keep them apart
    let early = FitOptions { pilot: 0, ..options("exact", 10) };
    let first = fit(&part(&all, 0, 40), &early).expect("a fit");
    let every = UpdateOptions { correlation: 0.999_999, ..still() };
    let (both, report) =
        update(&first, &part(&all, 40, 60), &every, &mut |_, _| Ok(())).expect("an update");
    assert_eq!((report.rows, both.rows), (20, 60));
    assert!(report.points > 40);
    let set = first.model.params().into_iter();
    let set = set.map(|(path, param)| (path, param.value().to_vec())).collect();
    let mut known = FitOptions { set, ..options("exact", 1) };
    known.freeze = ["kernel", "likelihood"].map(String::from).to_vec();
    let whole = fit(&part(&all, 0, 60), &known).expect("a fit");
    let x = Mat::from_fn(30, 1, |i, _| i as f64 / 5.0 - 3.0);
    let of = |fitted: &Fitted| fitted.posterior.predict_f(x.as_ref()).expect("predictions");
    let ((a, va), (b, vb)) = (of(&both), of(&whole));
    let (far, wide) = (largest((&a - &b).as_ref()), largest((&va - &vb).as_ref()));
    assert!(far < 1e-2 && wide < 1e-3, "{far} {wide}");
    // what the new rows add to the evidence
    let objective = |fitted: &Fitted| fitted.objective().expect("a training");
    let gain = objective(&whole) - objective(&first);
    let reported = report.bound;
    assert!((gain - reported).abs() < 0.05, "{gain} {reported}");
}
