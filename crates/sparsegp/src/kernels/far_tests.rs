//! Rows so far that squares overflow, and rows many lengthscales from each other.

use super::tests::{SPECIFICATIONS, value, wave};
use super::*;
use crate::linalg::Mat;

/// Codes such as 1e160 and 1.7e308 among the inputs: bounded kernels have bounded values there, and stationary ones that
/// fall as fast as a Matérn none.
#[test]
fn bounded_kernels_are_numbers_at_rows_whose_squares_overflow() {
    let z = wave(4, 3, 1.1);
    let far = [1e160, -3e200, 1e300, 1.7e308];
    let x = Mat::from_fn(4, 3, |i, q| if q == i % 3 { far[i] } else { 0.3 });
    let bounded = |s: &&&str| {
        // each image has its own variance
        let grows =
            ["linear", "polynomial", "order=1", "order=2", "coregion", "changepoints", "conv"];
        !grows.iter().any(|name| s.contains(name))
    };
    let mut tried = 0;
    for spec in SPECIFICATIONS.iter().filter(bounded) {
        let k = parse(spec, Inputs::unnamed(3)).unwrap();
        let mut prior = vec![0.0; 4];
        k.diag(z.as_ref(), &mut prior);
        for own in [value(&*k, x.as_ref(), Some(z.as_ref())), value(&*k, x.as_ref(), None)] {
            for i in 0..4 {
                for j in 0..4 {
                    let size = own[(i, j)].abs();
                    assert!(size <= prior[0] * (1.0 + 1e-9), "{spec} {i} {j}: {}", own[(i, j)]);
                }
            }
        }
        let falls = ["rbf(", "matern", "exponential("].iter().any(|name| spec.starts_with(name));
        if falls && !spec.contains('+') && !spec.contains('*') && !spec.contains("active_dims") {
            let k = value(&*k, x.as_ref(), Some(z.as_ref()));
            assert!(k.norm_max() < 1e-29, "{spec} {:e}", k.norm_max());
        }
        tried += 1;
    }
    assert!(tried > 15, "{tried}");
}

/// The arc-cosine kernel of order 0 depends only on directions once rows are long.
#[test]
fn angles_do_not_depend_on_how_far_a_row_is() {
    let k = parse(
        "arccosine(variance=1.7, weight_variances=0.6, bias_variance=1.4)",
        Inputs::unnamed(3),
    );
    let k = k.unwrap();
    let z = wave(5, 3, 1.1);
    let row = |size: f64| Mat::from_fn(1, 3, |_, q| size * [0.7, -1.2, 0.4][q]);
    let at = |size: f64| value(&*k, row(size).as_ref(), Some(z.as_ref()));
    for size in [1e100, 1e160, 1e300] {
        assert!((at(size) - at(1e30)).norm_max() < 1e-12, "{size:e}");
    }
}

/// Slopes of lengthscales where all rows are 10⁶ lengthscales apart, and K is diagonal, are 0; where rows come in pairs
/// they are those of the pairs: Σ K̄ σ²κ′ (−2)(x − z)²/ℓ³, here of a squared exponential in plain sums.
#[test]
fn slopes_of_rows_far_apart_are_those_of_the_near_ones() {
    for (d, step) in [(2, 1e6), (6, 1e7)] {
        for pairs in [false, true] {
            let spec = "rbf(variance=1.3, lengthscales=0.8)";
            let k = parse(spec, Inputs::unnamed(d)).unwrap();
            let n = 20;
            // the second of a pair is off in the first column
            let x = Mat::from_fn(n, d, |i, q| {
                let place = if pairs { i / 2 } else { i } as f64 * step;
                place + if pairs && i % 2 == 1 && q == 0 { 0.5 } else { 0.0 }
            });
            let weights = wave(n, n, 0.7);
            let slopes = |z: Option<MatRef<f64>>| {
                let mut tape = Tape::recording();
                let mut own = Mat::zeros(n, n);
                k.evaluate(x.as_ref(), z, own.as_mut(), &mut tape);
                let (mut bar, mut params) = (weights.clone(), vec![0.0; k.num_params()]);
                let (mut at_x, mut at_z) = (Mat::zeros(n, d), Mat::zeros(n, d));
                let mut sinks = Cotangents {
                    params: &mut params,
                    x: Some(at_x.as_mut()),
                    z: z.is_some().then(|| at_z.as_mut()),
                };
                k.vjp(x.as_ref(), z, own.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
                (params, at_x, at_z)
            };
            let (mut by_length, mut by_x) = (0.0, Mat::<f64>::zeros(n, d));
            let mut by_z = Mat::<f64>::zeros(n, d);
            for i in 0..n {
                for j in 0..n {
                    let square: f64 = (0..d).map(|q| (x[(i, q)] - x[(j, q)]).powi(2)).sum();
                    let h = -0.5 / 0.64 * 1.3 * weights[(i, j)] * (-0.5 * square / 0.64).exp();
                    by_length -= 2.0 * square * h / 0.8;
                    for q in 0..d {
                        let both = 2.0 * h * (x[(i, q)] - x[(j, q)]);
                        by_x[(i, q)] += both;
                        by_z[(j, q)] -= both;
                    }
                }
            }
            // scaled rows of the size 10⁸ are rounded by 10⁻⁸ of a lengthscale
            let tolerance = 1e-6;
            let cross = slopes(Some(x.as_ref()));
            let own = slopes(None);
            for (params, _, _) in [&cross, &own] {
                let apart = (params[1] - by_length).abs();
                assert!(
                    apart <= tolerance * by_length.abs(),
                    "{d} {pairs}: {} {by_length}",
                    params[1]
                );
            }
            for (found, right) in [(&cross.1, &by_x), (&cross.2, &by_z), (&own.1, &(&by_x + &by_z))]
            {
                assert!((found - right).norm_max() <= tolerance * right.norm_max(), "{d} {pairs}");
            }
        }
    }
}

/// Where κ′ has no bound, slopes of lengthscales and rows are those of the distances, also of rows that are equal but for rounding:
/// as sums of squares less products, they were of the size of the others.
#[test]
fn slopes_of_near_rows_have_their_digits() {
    let specs = [
        "matern12(variance=1.7, lengthscales=[0.6, 1.3])",
        "exponential(variance=0.7, lengthscales=[0.6, 1.3])",
        "gamma_exponential(variance=1.4, lengthscales=[0.6, 1.3], gamma=0.8)",
        "additive(base=matern12, variances=0.7, lengthscales=[0.6, 1.3])",
    ];
    // pairs of rows apart by 1e-16 and 1e-9
    let n = 24;
    let at = |i: usize, q: usize| 3.0 * (1.7 * (i / 3) as f64 + q as f64).sin() + 0.4;
    let near = |i: usize| [0.0, 2e-16, 1e-9][i % 3];
    let x = Mat::from_fn(n, 2, |i, q| at(i, q) + near(i) * (q as f64 + 1.0));
    let bar =
        Mat::from_fn(n, n, |i, j| (0.3 * (i + j) as f64).cos() + (0.7 * (i * j) as f64).sin());
    let bar = &bar + bar.transpose();
    for spec in specs {
        let kernel = parse(spec, Inputs::unnamed(2)).unwrap();
        let mut tape = Tape::recording();
        let mut k = Mat::zeros(n, n);
        kernel.evaluate(x.as_ref(), None, k.as_mut(), &mut tape);
        let mut params = vec![0.0; kernel.num_params()];
        let mut sinks = Cotangents { params: &mut params, x: None, z: None };
        kernel.vjp(x.as_ref(), None, k.as_ref(), bar.clone().as_mut(), &mut tape, &mut sinks);
        for (slot, found) in params.iter().enumerate() {
            let moved = |by: f64| {
                let mut own = kernel.clone_box();
                let mut at = 0;
                own.visit_mut(&mut |_, param| {
                    for value in param.value_mut() {
                        *value += if at == slot { by } else { 0.0 };
                        at += 1;
                    }
                });
                let k = value(&*own, x.as_ref(), None);
                (0..n)
                    .flat_map(|j| (0..n).map(move |i| (i, j)))
                    .map(|ij| k[ij] * bar[ij])
                    .sum::<f64>()
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!(
                (found - slope).abs() < 1e-6 * (1.0 + slope.abs()),
                "{spec} {slot}: {found} and {slope}"
            );
        }
    }
}
