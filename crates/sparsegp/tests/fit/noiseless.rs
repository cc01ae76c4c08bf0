//! Real data almost without noise, with columns of few distinct values: neither the pilot nor the
//! training may end where everything is noise.

use sparsegp::data::{Mask, Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, fit};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use std::path::Path;
use std::sync::Arc;

#[test]
fn a_fit_to_bike_rentals_explains_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/data");
    let table = Table::open(folder.join("bike.csv.gz")).expect("the data set");
    let selected = table.select(&Selection::targets(["y"])).expect("a column y");
    let rows = selected.count_rows().expect("rows");
    let pick = |from: usize| {
        let flags = (0..rows).map(|i| i % 6 == from);
        selected.clone().rows_where(Arc::new(Mask::new("every sixth", flags)), true)
    };
    let training = pick(0).read_all().expect("rows");
    let dataset = Dataset::from_loaded(training, true).expect("usable rows");
    let mut options = FitOptions {
        method: "titsias2025".into(),
        inducing: Some(60),
        pilot: 400,
        ..FitOptions::default()
    };
    options.train.max_iterations = 25;
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
    let blocks = pick(3).blocks(1024, None).expect("rows");
    let scores = fitted.score(blocks).and_then(|m| m.finish()).expect("scores");
    assert!(scores.r2.expect("targets that vary") > 0.9, "{scores:?}");
    // far below the trivial model's loss: the noise is known to be small
    assert!(scores.msll.expect("targets that vary") < -1.2, "{scores:?}");
}

/// Copies of rows change the noise by little.
#[test]
fn copies_of_rows_leave_noise_where_it_is() {
    let mut rng = stream(12, "copies");
    let x = Mat::from_fn(150, 3, |_, _| 4.0 * uniform(&mut rng) - 2.0);
    let y = Mat::from_fn(150, 1, |i, _| {
        30.0 * ((2.0 * x[(i, 0)]).sin() + 0.5 * x[(i, 1)] + 0.6 * (uniform(&mut rng) - 0.5))
    });
    let with = |copies: usize| {
        let at = |i: usize| if i < 150 { i } else { 7 * (i - 149) };
        let x = Mat::from_fn(150 + copies, 3, |i, q| x[(at(i), q)]);
        let y = Mat::from_fn(150 + copies, 1, |i, _| y[(at(i), 0)]);
        let dataset = Dataset::from_arrays(x, y, true).expect("a table");
        let own = FitOptions { kernel: "matern32".into(), ..FitOptions::default() };
        fit(&dataset, &own, &Cpu::default(), &mut ()).expect("a fit")
    };
    let (alone, copied) = (with(0), with(12));
    // each on its own scale
    let noise = |own: &Fitted| own.model.noise() * own.scaler.y_scale[0].powi(2);
    let ratio = noise(&copied) / noise(&alone);
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
    // predictions know all rows, and what is reported is their evidence
    assert_eq!(copied.posterior.points().nrows(), 162);
    assert!(copied.objective().expect("trained") != alone.objective().expect("trained"));
}
