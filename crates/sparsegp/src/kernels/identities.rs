//! Kernels that must be one another, at the same or other parameters; what only some kernels do.

use super::custom::{Custom, Kappa};
use super::radial::{Correlation, Profile, Radial};
use super::tests::{value, wave};
use super::*;
use crate::dual_numbers::Real;
use crate::linalg::Mat;
use crate::params::Param;

fn of(spec: &str, inputs: usize) -> Box<dyn Kernel> {
    parse(spec, Inputs::unnamed(inputs)).unwrap()
}

/// The largest difference of two kernels on the same rows, relative to the largest covariance.
fn difference(a: &dyn Kernel, b: &dyn Kernel, x: &Mat<f64>, z: &Mat<f64>) -> f64 {
    let (mut worst, mut largest) = (0.0_f64, 0.0_f64);
    for z in [None, Some(z.as_ref())] {
        let (a, b) = (value(a, x.as_ref(), z), value(b, x.as_ref(), z));
        for j in 0..a.ncols() {
            for i in 0..a.nrows() {
                worst = worst.max((a[(i, j)] - b[(i, j)]).abs());
                largest = largest.max(a[(i, j)].abs());
            }
        }
    }
    worst / largest
}

/// Kernels that are the same, and how far they may be apart.
const SAME: &[(&str, &str, f64)] = &[
    (
        "exponential(variance=1.7, lengthscales=0.6)",
        "matern12(variance=1.7, lengthscales=1.2)",
        1e-14,
    ),
    (
        "gamma_exponential(variance=1.7, lengthscales=[0.6, 1.4, 2.0], gamma=1)",
        "matern12(variance=1.7, lengthscales=[0.6, 1.4, 2.0])",
        1e-14,
    ),
    // exp(−ϱ²) with √2 times the lengthscale; ϱ^γ − ϱ² is of the order 10⁻⁹
    (
        "gamma_exponential(variance=1.7, lengthscales=1.1313708498984762, gamma=1.999999999)",
        "rbf(variance=1.7, lengthscales=0.8)",
        1e-8,
    ),
    // (1 + ϱ²/2α)^{−α} = exp(−ϱ²/2 + ϱ⁴/8α …)
    (
        "rational_quadratic(variance=1.7, lengthscales=0.8, alpha=1e9)",
        "rbf(variance=1.7, lengthscales=0.8)",
        1e-8,
    ),
    (
        "polynomial(variance=0.7, offset=1.4, degree=1)",
        "linear(variance=0.7) + constant(variance=1.4)",
        1e-14,
    ),
    (
        "polynomial(variance=0.7, offset=1.4, degree=2)",
        "(linear(variance=0.7) + constant(variance=1.4)) * (linear(variance=0.7) + constant(variance=1.4))",
        1e-14,
    ),
    // cos(a − b) cos(c − d) = ½ {cos(a − b + c − d) + cos(a − b − c + d)}
    (
        "cosine(variance=1.2, lengthscales=1.3, active_dims=[0]) * cosine(variance=1.5, lengthscales=1.3, active_dims=[0])",
        "cosine(variance=0.9, lengthscales=0.65, active_dims=[0]) + constant(variance=0.9)",
        1e-14,
    ),
    // exp(−½ sin²(πd/p)/ℓ²) = exp(−¼(1 − cos(2πd/p))/ℓ²), a wave to first order in 1/ℓ²
    (
        "periodic(base=rbf(variance=1.3, lengthscales=1e4, active_dims=[1]), period=0.7) * constant(variance=4e8)",
        "constant(variance=519999998.7) + cosine(variance=1.3, lengthscales=0.7, active_dims=[1])",
        1e-15,
    ),
    (
        "additive(base=matern32, variances=1.5, lengthscales=[0.8, 1.9, 0.6])",
        "matern32(variance=0.5, lengthscales=0.8, active_dims=[0]) + matern32(variance=0.5, lengthscales=1.9, active_dims=[1]) \
             + matern32(variance=0.5, lengthscales=0.6, active_dims=[2])",
        1e-15,
    ),
    (
        "additive(base=matern12, order=2, variances=[0.6, 1.2], lengthscales=[0.8, 1.9, 0.6])",
        "additive(base=matern12, variances=0.6, lengthscales=[0.8, 1.9, 0.6]) \
             + matern12(variance=0.4, lengthscales=0.8, active_dims=[0]) * matern12(variance=1, lengthscales=1.9, active_dims=[1]) \
             + matern12(variance=0.4, lengthscales=0.8, active_dims=[0]) * matern12(variance=1, lengthscales=0.6, active_dims=[2]) \
             + matern12(variance=0.4, lengthscales=1.9, active_dims=[1]) * matern12(variance=1, lengthscales=0.6, active_dims=[2])",
        1e-15,
    ),
    (
        "additive(order=2, variances=[0.6, 1.3], lengthscales=[0.8, 1.9], active_dims=[2, 0])",
        "additive(variances=0.6, lengthscales=[0.8, 1.9], active_dims=[2, 0]) \
             + rbf(variance=1.3, lengthscales=[0.8, 1.9], active_dims=[2, 0])",
        1e-15,
    ),
    (
        "periodic(base=matern32(variance=1.3, lengthscales=0.6, active_dims=[1]), period=0.7, form=gpflow)",
        "periodic(base=matern32(variance=1.3, lengthscales=0.6, active_dims=[1]), period=0.7)",
        1e-14,
    ),
    (
        "periodic(base=rbf(variance=1.3, lengthscales=[0.6, 1.7, 0.8]), period=0.7, form=gpflow)",
        "periodic(base=rbf(variance=1.3, lengthscales=[0.6, 1.7, 0.8]), period=0.7)",
        0.0,
    ),
    // far from the change points
    (
        "changepoints(kernels=[rbf(variance=1.3), linear(variance=0.4)], locations=[50], steepness=20, active_dims=[0])",
        "rbf(variance=1.3)",
        0.0,
    ),
    (
        "changepoints(kernels=[rbf(variance=1.3), constant(variance=0.3), linear(variance=0.4)], locations=[-60, -50], steepness=20, active_dims=[0])",
        "linear(variance=0.4)",
        0.0,
    ),
    (
        "changepoints(kernels=[rbf, linear, constant], locations=[0.7, -0.3], steepness=[2.5, 4.5], active_dims=[1])",
        "changepoints(kernels=[rbf, linear, constant], locations=[-0.3, 0.7], steepness=[4.5, 2.5], active_dims=[1])",
        0.0,
    ),
];

#[test]
fn kernels_that_are_others_at_other_parameters() {
    let (x, z) = (wave(11, 3, 0.7), wave(6, 3, 1.9));
    for (a, b, tolerance) in SAME {
        let own = difference(&*of(a, 3), &*of(b, 3), &x, &z);
        assert!(own <= *tolerance, "{a} {b}: {own:e}");
    }
}

#[test]
fn periodic_kernels_repeat() {
    let (x, z) = (wave(9, 2, 0.7), wave(5, 2, 1.9));
    let moved = Mat::from_fn(5, 2, |j, q| z[(j, q)] + if q == 0 { 3.0 * 1.7 } else { -2.0 * 0.6 });
    for base in
        ["rbf", "matern12", "matern52(variance=0.7, lengthscales=[0.3, 0.8])", "exponential"]
    {
        let k = of(&format!("periodic(base={base}, period=[1.7, 0.6])"), 2);
        let (a, b) = (
            value(&*k, x.as_ref(), Some(z.as_ref())),
            value(&*k, x.as_ref(), Some(moved.as_ref())),
        );
        for j in 0..5 {
            for i in 0..9 {
                assert!((a[(i, j)] - b[(i, j)]).abs() < 1e-13, "{base}");
            }
        }
    }
}

/// Sums of absolute sines are not a distance: with two inputs a covariance of GPflow's form has a
/// negative eigenvalue where ours has none.
#[test]
fn only_circles_are_positive_definite_with_two_inputs() {
    let x = Mat::from_fn(64, 2, |i, q| if q == 0 { (i % 8) as f64 } else { (i / 8) as f64 } / 8.0);
    let lowest = |form: &str| {
        let base = "matern52(variance=1.3, lengthscales=2.5)";
        let k = of(&format!("periodic(base={base}, period=1, form={form})"), 2);
        value(&*k, x.as_ref(), None).self_adjoint_eigenvalues(faer::Side::Lower).unwrap()[0]
    };
    assert!(lowest("circles") > -1e-13, "{:e}", lowest("circles"));
    assert!(lowest("gpflow") < -1e-6, "{:e}", lowest("gpflow"));
}

/// At coincident points the value is the variance, and no slope is infinite.
#[test]
fn kinks_are_exact_and_exert_no_force() {
    let x = wave(12, 3, 1.3);
    let z = Mat::from_fn(4, 3, |i, j| x[(3 * i, j)]);
    for spec in [
        "matern12(variance=1.9, lengthscales=0.7)",
        "exponential(variance=1.9, lengthscales=0.7)",
        "gamma_exponential(variance=1.9, lengthscales=0.7, gamma=0.3)",
        "periodic(base=matern12(variance=1.9, lengthscales=0.7), period=0.9)",
        "periodic(base=gamma_exponential(variance=1.9, gamma=0.4), period=0.9, form=gpflow)",
        "arccosine(variance=1.9, weight_variances=0.7, bias_variance=0.3)",
    ] {
        let k = of(spec, 3);
        let mut tape = Tape::recording();
        let mut out = Mat::zeros(12, 4);
        k.evaluate(x.as_ref(), Some(z.as_ref()), out.as_mut(), &mut tape);
        for i in 0..4 {
            assert!((out[(3 * i, i)] - 1.9).abs() < 1e-15, "{spec}");
        }
        let (mut params, mut bar) = (vec![0.0; k.num_params()], Mat::full(12, 4, 1.0));
        let (mut x_bar, mut z_bar) = (Mat::zeros(12, 3), Mat::zeros(4, 3));
        let mut sinks =
            Cotangents { params: &mut params, x: Some(x_bar.as_mut()), z: Some(z_bar.as_mut()) };
        k.vjp(x.as_ref(), Some(z.as_ref()), out.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
        let finite = |m: &Mat<f64>| (0..3).all(|q| m.col_as_slice(q).iter().all(|v| v.is_finite()));
        assert!(finite(&x_bar) && finite(&z_bar) && params.iter().all(|v| v.is_finite()), "{spec}");
    }
}

/// 1 − θ/π for angles down to 10⁻⁹, where an arc cosine of a rounded cosine knows no digit: θ = ε/(1 + x²)
/// between (x, 1) and (x + ε, 1) to first order.
#[test]
fn small_angles_of_the_arc_cosine_are_accurate() {
    let k = of("arccosine(variance=1.3, weight_variances=1, bias_variance=1)", 1);
    for step in [1e-9, 1e-7, 1e-5] {
        let x = Mat::full(1, 1, 0.7);
        let z = Mat::full(1, 1, 0.7 + step);
        let own = value(&*k, x.as_ref(), Some(z.as_ref()))[(0, 0)];
        let theta = (1.3 - own) / 1.3 * std::f64::consts::PI;
        let expected = (z[(0, 0)].atan() - x[(0, 0)].atan()).abs();
        assert!((theta - expected).abs() < 1e-6 * step + 3e-15, "{step}: {theta:e} {expected:e}");
    }
}

/// κ = (1 + ϱ²/2α)^{−α} and e^{−ϱ} as somebody would give them.
#[derive(Clone, Debug)]
struct Own(bool);

impl Kappa for Own {
    fn name(&self) -> &'static str {
        if self.0 { "rational_quadratic" } else { "matern12" }
    }

    fn shapes(&self) -> Vec<(&'static str, Param)> {
        if self.0 { vec![("alpha", Param::positive(0.7))] } else { Vec::new() }
    }

    fn kappa<T: Real>(&self, d2: T, shapes: &[T]) -> T {
        match shapes {
            [alpha] => (-(*alpha * (d2 / (*alpha * 2.0)).ln_1p())).exp(),
            _ => (-d2.sqrt()).exp(),
        }
    }
}

/// The same with its slope.
#[derive(Clone, Copy, Debug, Default)]
struct OwnProfile;

impl Profile for OwnProfile {
    const NAME: &'static str = "matern12";
    const SLOPE_OVER_VALUE: Option<f64> = None;
    const EXACT_DISTANCES: bool = true;

    fn value_and_slope<const FMA: bool>(d2: f64) -> (f64, f64) {
        let value = (-d2.sqrt()).exp();
        (value, if d2 > 0.0 { -0.5 * value / d2.sqrt() } else { 0.0 })
    }
}

#[test]
fn user_defined_kernels_are_the_same_as_built_in_ones() {
    fn check<C: Correlation>(correlation: C, shape: &str) {
        let name = correlation.name();
        let spec = format!("{name}(variance=1.7, lengthscales=[0.6, 1.9, 0.8]{shape})");
        let built_in = of(&spec, 3);
        let json = built_in.to_json();
        let entries = json.as_object().unwrap();
        let own = Radial::read(correlation.clone(), &Args::new(name, entries, Inputs::unnamed(3)))
            .unwrap();
        assert_eq!(own.to_json(), json);
        assert_eq!(own.units(), built_in.units());
        let (x, z) = (wave(8, 3, 0.8), wave(5, 3, 2.1));
        let mut found = Vec::new();
        for k in [&own as &dyn Kernel, &*built_in] {
            let mut tape = Tape::recording();
            let mut out = Mat::zeros(8, 5);
            let (mut params, mut z_bar) = (vec![0.0; k.num_params()], Mat::zeros(5, 3));
            k.evaluate(x.as_ref(), Some(z.as_ref()), out.as_mut(), &mut tape);
            let mut bar = wave(8, 5, 1.4);
            let mut sinks = Cotangents { params: &mut params, x: None, z: Some(z_bar.as_mut()) };
            k.vjp(x.as_ref(), Some(z.as_ref()), out.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
            for m in [&out, &z_bar] {
                params.extend((0..m.ncols()).flat_map(|j| m.col_as_slice(j).to_vec()));
            }
            found.push(params);
        }
        assert_eq!(found[0].len(), found[1].len());
        for (a, b) in found[0].iter().zip(&found[1]) {
            assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{name}: {a} {b}");
        }
        // and with all that starts by itself
        let fresh = Radial::new(correlation, Inputs::unnamed(2)).unwrap();
        assert_eq!(fresh.params()[1].1.value(), [1.0, 1.0]);
    }
    check(Custom::new(Own(true)).unwrap(), ", alpha=0.9");
    check(Custom::new(Own(false)).unwrap(), "");
    check(OwnProfile, "");
}

#[derive(Clone, Debug)]
struct Greedy;

impl Kappa for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn shapes(&self) -> Vec<(&'static str, Param)> {
        vec![("a", Param::positive(1.0)); 5]
    }

    fn kappa<T: Real>(&self, d2: T, _: &[T]) -> T {
        (-d2).exp()
    }
}

#[test]
fn user_defined_kernels_with_too_many_shapes_are_refused() {
    let error = Custom::new(Greedy).unwrap_err().to_string();
    assert!(error.contains("kernel greedy: shape parameters are at most 4 scalars"), "{error}");
}

/// Inputs on very different scales, targets of a variance far from 1: the mean prior variance is near what
/// was asked for, and all is finite and in range.
#[test]
fn starting_values_explain_the_variance() {
    let scales = [0.02, 7.0, 300.0];
    let x = Mat::from_fn(200, 3, |i, q| {
        scales[q] * ((i * (q + 3)) as f64 * 0.77 + 0.4).sin() * 2.0_f64.sqrt()
    });
    let y = Mat::from_fn(200, 1, |i, _| (i as f64 * 1.3).cos() * 15.0);
    for spec in [
        "rbf",
        "exponential",
        "gamma_exponential",
        "rational_quadratic",
        "periodic",
        "periodic(base=matern32)",
        "cosine",
        "linear",
        "linear(ard=true)",
        "polynomial(degree=1)",
        "polynomial(degree=2)",
        "arccosine",
        "arccosine(order=1)",
        "arccosine(order=2, ard=true)",
        "coregion(output_dim=4, rank=2, active_dims=[1])",
        "rbf * coregion(output_dim=3, active_dims=[1])",
        "changepoints(kernels=[rbf, matern32], active_dims=[1])",
        "periodic * rbf + linear",
    ] {
        let mut k = of(spec, 3);
        k.initialise(&scales, 112.0);
        k.initialise_from_rows(x.as_ref(), y.as_ref());
        let mut diag = vec![0.0; 200];
        k.diag(x.as_ref(), &mut diag);
        let mean = diag.iter().sum::<f64>() / 200.0;
        assert!((mean / 112.0).ln().abs() < 0.7, "{spec}: {mean}");
        let k = value(&*k, x.as_ref(), None);
        // neither all the same nor all independent
        let off: f64 =
            (1..200).map(|i| k[(i, i - 1)] / (diag[i] * diag[i - 1]).sqrt()).sum::<f64>() / 199.0;
        assert!(off.abs() < 0.995 && off.is_finite(), "{spec}: {off}");
    }
}

#[test]
fn periods_and_places_start_from_rows_unless_they_are_given() {
    let x = Mat::from_fn(150, 1, |i, _| (i as f64 * 0.618_034).fract() * 8.0 - 4.0);
    let y =
        Mat::from_fn(150, 1, |i, _| (std::f64::consts::TAU * x[(i, 0)] / 0.57).sin() + x[(i, 0)]);
    let started = |spec: &str, path: &str| {
        let mut k = of(spec, 1);
        k.initialise(&[2.3], 1.0);
        k.initialise_from_rows(x.as_ref(), y.as_ref());
        let params = k.params();
        params.iter().find(|(own, _)| own == path).unwrap().1.value().to_vec()
    };
    for (spec, path) in [
        ("periodic", "period"),
        ("rbf + periodic(base=matern52) * rbf", "kernels[1].kernels[0].period"),
        ("cosine", "lengthscales"),
        ("changepoints(kernels=[periodic, rbf])", "kernels[0].period"),
    ] {
        assert!((started(spec, path)[0] / 0.57 - 1.0).abs() < 0.02, "{spec}");
    }
    assert_eq!(started("periodic(period=1.9)", "period"), [1.9]);
    assert_eq!(started("cosine(lengthscales=1.9)", "lengthscales"), [1.9]);
    let places = started("changepoints(kernels=[rbf, rbf, rbf, rbf])", "locations");
    for (own, expected) in places.iter().zip([-2.0, 0.0, 2.0]) {
        assert!((own - expected).abs() < 0.1, "{places:?}");
    }
    assert_eq!(started("changepoints(kernels=[rbf, rbf], locations=1.3)", "locations"), [1.3]);
}

#[test]
fn labels_are_named_and_checked() {
    let names: Vec<String> = ["t", "site"].iter().map(|s| s.to_string()).collect();
    let spec = "rbf(active_dims=[t]) * coregion(output_dim=3, active_dims=[site]) + changepoints(\
                kernels=[rbf(active_dims=[t]), coregion(output_dim=2, active_dims=[site])], active_dims=[t])";
    let k = parse(spec, Inputs::named(&names)).unwrap();
    assert_eq!(k.labels(), [1, 1]);
    let row = |label: f64| Mat::from_fn(1, 2, |_, q| if q == 0 { 7.3 } else { label });
    assert!(k.check(row(1.0).as_ref()).is_ok());
    for (label, message) in [
        (2.0, "`coregion`: 2 in input column 1 is none of the labels 0, …, 1"),
        (-1.0, "-1 in input column 1 is none of the labels 0, …, 2"),
        (0.4, "0.4 in input column 1 is none"),
        (f64::NAN, "NaN in input column 1 is none"),
        (f64::INFINITY, "inf in input column 1 is none"),
    ] {
        let error = k.check(row(label).as_ref()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        // and whatever is asked of it all the same, there is an answer
        assert!(value(&*k, row(label).as_ref(), None).nrows() == 1);
    }
}

#[test]
fn kernels_within_kernels_are_written_as_kernels() {
    let inputs = Inputs::unnamed(2);
    for (short, long) in [
        ("periodic", r#"{"type": "periodic", "base": {"type": "rbf"}}"#),
        ("periodic(base=matern52)", r#"{"type": "periodic", "base": "matern52"}"#),
        (
            "periodic(base=rbf(lengthscales=0.5, active_dims=[1]), period=2.5)",
            r#"{"type": "periodic", "base": {"type": "rbf", "lengthscales": 0.5, "active_dims": [1]}, "period": 2.5}"#,
        ),
        (
            "changepoints(kernels=[rbf+linear, periodic(base=rbf(variance=2)) * (rbf + white)], active_dims=[0])",
            r#"{"type": "changepoints", "active_dims": [0], "kernels": ["rbf + linear", {"type": "product", "kernels":
                [{"type": "periodic", "base": {"type": "rbf", "variance": 2}}, "rbf + white"]}]}"#,
        ),
        (
            "changepoints(kernels=[rbf, (linear)], active_dims=[1])",
            r#"{"type": "changepoints", "kernels": ["rbf", "linear"], "active_dims": [1]}"#,
        ),
    ] {
        let (short, long) = (parse(short, inputs).unwrap(), parse(long, inputs).unwrap());
        assert_eq!(short.to_json(), long.to_json());
    }
    let names = vec!["t".to_owned(), "site".to_owned()];
    for (spec, expected) in [
        (
            "periodic(base=linear)",
            "its base is a kernel of distances, such as `rbf` or `matern52`, not `linear`",
        ),
        ("periodic(base=rbf + linear)", "not `sum`"),
        ("periodic(base=periodic)", "not `periodic`"),
        ("periodic(base=rbf(lengthscale=1))", "unknown entry `lengthscale`"),
        ("periodic(base=mattern52)", "nearest: matern52"),
        ("periodic(base=rbf())x, period=2)", "expected `+`, `*` or the end"),
        ("periodic(base=rbf(variance=1) +)", "expected the name of a kernel"),
        ("periodic(base=[rbf(variance=1))", "expected `,` or `]`"),
        ("periodic(form=other)", "`form` is `circles`, or `gpflow`"),
        ("periodic(period=[1,2,3])", "3 values for 2 active input columns"),
        ("periodic(period=-1)", "-1 is outside the positive numbers"),
        ("gamma_exponential(gamma=2)", "2 is outside the interval (0, 2)"),
        ("polynomial(degree=0)", "`degree` is a whole number from 1 on, not 0"),
        ("polynomial(degree=2.5)", "`degree` is a whole number from 1 on, not 2.5"),
        ("polynomial(degree=1000)", "`degree` is 1000; it is at most 50"),
        ("arccosine(order=3)", "`order` is 0, 1 or 2, not 3"),
        ("changepoints(kernels=[rbf, linear])", "give `active_dims`, such as `active_dims=[t]`"),
        ("changepoints(kernels=[rbf], active_dims=[0])", "`kernels` are at least two"),
        ("changepoints(active_dims=[0])", "`kernels` is a list of kernels"),
        (
            "changepoints(kernels=[rbf, linear], locations=[1, 2], active_dims=[0])",
            "`locations` has 2 values for 1 change points",
        ),
        ("changepoints(kernels=[rbf, linear], steepness=-2, active_dims=[0])", "-2 is outside"),
        ("coregion(active_dims=[site])", "say how many labels there are, such as `output_dim=3`"),
        ("coregion(output_dim=3)", "it looks at one input column, not at 2"),
        ("coregion(output_dim=0, active_dims=[1])", "`output_dim` is a whole number from 1 on"),
        ("coregion(output_dim=99999, active_dims=[1])", "`output_dim` is 99999; at most 4096"),
        (
            "coregion(output_dim=3, kappa=[1, 2], active_dims=[1])",
            "`output_dim` is 3, and 2 are given",
        ),
        (
            "coregion(W=[[1, 2], [3]], active_dims=[1])",
            "`W` is a list of rows of 2 numbers, not [3]",
        ),
        ("coregion(W=[[1, 2], [3, 4]], rank=1, active_dims=[1])", "`rank` is 1, and 2 are given"),
        (
            "coregion(W=[[1, 2], [3, 4]], kappa=[1, 2, 3], active_dims=[1])",
            "has 2 values, 3 were given",
        ),
        ("coregion(W=[[1, a], [3, 4]], active_dims=[1])", "\"a\" is not a number"),
    ] {
        let error = parse(spec, Inputs::named(&names)).unwrap_err().to_string();
        assert!(error.contains(expected), "{spec}: {error}");
    }
}

/// Flags and priors of parameters in every place, through JSON.
#[test]
fn parameters_of_every_kernel_may_be_frozen_and_have_priors() {
    let flags = r#""frozen": true, "prior": {"type": "gamma", "concentration": 2.0, "rate": 3.0}}"#;
    for spec in super::tests::SPECIFICATIONS {
        let mut k = of(spec, 3);
        let own = params_with_flags(&mut *k);
        let again = build(&k.to_json(), Inputs::unnamed(3)).unwrap();
        assert_eq!(again.to_json(), k.to_json(), "{spec}");
        let found = again.params().iter().filter(|(_, p)| p.frozen && p.prior.is_some()).count();
        assert_eq!(found, own, "{spec}");
    }
    let spec = format!(r#"coregion(W={{"value": [[0.4], [1.3]], {flags}, active_dims=[0])"#);
    let k = of(&spec, 2);
    assert_eq!(k.params()[0].1.value(), [0.4, 1.3]);
    assert!(k.params()[0].1.frozen && k.params()[0].1.given);
    let spec = format!(r#"gamma_exponential(gamma={{{flags})"#);
    assert!(of(&spec, 2).params()[2].1.frozen && !of(&spec, 2).params()[2].1.given);
}

fn params_with_flags(k: &mut dyn Kernel) -> usize {
    let mut params = k.params_mut();
    for (_, param) in &mut params {
        param.frozen = true;
        param.prior = Some(crate::params::Prior::Normal { loc: 0.3, scale: 1.7 });
    }
    params.len()
}
