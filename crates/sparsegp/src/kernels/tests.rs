use super::*;
use crate::linalg::{Mat, column};
use crate::params::{free_values, set_free_values};
use crate::testing::check_kernel;

pub(crate) fn wave(rows: usize, cols: usize, seed: f64) -> Mat<f64> {
    Mat::from_fn(rows, cols, |i, j| {
        (1.7 * i as f64 + 2.3 * j as f64 * seed + seed).sin() * 1.3 + 0.2 * j as f64
    })
}

/// Every registered kernel, nested ones, active dimensions, one and many lengthscales, far from 1.
pub(crate) const SPECIFICATIONS: &[&str] = &[
    "rbf(variance=1.7, lengthscales=[0.8, 1.9, 0.6])",
    "rbf(variance=0.6, lengthscales=1.4)",
    "rbf(variance=0.6, lengthscales=[0.4], active_dims=[2])",
    "matern12(variance=2.1, lengthscales=[0.8, 1.9, 0.6])",
    "matern32(variance=0.4, lengthscales=[0.8, 1.9, 0.6])",
    "matern52(variance=1.3, lengthscales=[0.9, 0.5], active_dims=[2, 0])",
    "exponential(variance=2.1, lengthscales=[0.8, 1.9, 0.6])",
    "gamma_exponential(variance=1.4, lengthscales=[0.8, 1.9, 0.6], gamma=1.7)",
    "gamma_exponential(variance=1.4, lengthscales=0.7, gamma=0.6)",
    "rational_quadratic(variance=1.4, lengthscales=[0.8, 1.9, 0.6], alpha=0.7)",
    "rational_quadratic(variance=0.3, lengthscales=1.2, alpha=8.5, active_dims=[1, 2])",
    "periodic(base=rbf(variance=1.7, lengthscales=[0.8, 1.9, 0.6]), period=[1.7, 2.6, 0.8])",
    "periodic(base=matern12(variance=0.7, lengthscales=0.4, active_dims=[1]), period=2.3)",
    "periodic(base=matern32(variance=1.6, lengthscales=[0.4, 1.3], active_dims=[2, 0]), period=2.3)",
    "periodic(base=rational_quadratic(variance=1.6, lengthscales=0.7, alpha=0.6), period=2.3)",
    "periodic(base=matern52(variance=1.6, lengthscales=0.6, active_dims=[2]), period=1.9, form=gpflow)",
    "additive(base=rbf, order=3, variances=[1.7, 0.6, 2.3], lengthscales=[0.8, 1.9, 0.6])",
    // not of input 2, where two rows are nearer to each other than the step of differences
    "additive(base=matern32, order=2, variances=[0.4, 1.3], lengthscales=0.7, active_dims=[0, 1])",
    "additive(base=matern52, variances=1.6, lengthscales=[0.9, 0.5], active_dims=[2, 0])",
    "additive(base=matern12, order=2, variances=[0.4, 1.3], lengthscales=[0.8, 1.9], active_dims=[1, 0])",
    "additive(base=exponential, order=1, variances=2.1, lengthscales=0.6, active_dims=[1])",
    "cosine(variance=1.6, lengthscales=[2.8, 1.9, 3.6])",
    "cosine(variance=0.6, lengthscales=2.4, active_dims=[2, 1])",
    "polynomial(variance=0.7, offset=1.4, degree=2)",
    "polynomial(variance=[0.7, 0.2, 1.2], offset=0.4)",
    "polynomial(variance=0.7, offset=1.4, degree=1, active_dims=[1])",
    "arccosine(variance=1.7, weight_variances=0.6, bias_variance=1.4)",
    "arccosine(order=1, variance=1.7, weight_variances=[0.6, 1.2, 0.3], bias_variance=0.4)",
    "arccosine(order=2, variance=0.4, weight_variances=0.6, bias_variance=0.7, active_dims=[2, 0])",
    "coregion(W=[[0.7, -0.4], [1.3, 0.2], [-0.6, 0.9]], kappa=[0.3, 0.8, 1.4], active_dims=[1])",
    "coregion(output_dim=2, W=[0.7, -0.4], kappa=0.6, active_dims=[0]) * rbf(variance=1.3, lengthscales=0.8)",
    "changepoints(kernels=[rbf(variance=1.4, lengthscales=0.7), linear(variance=0.6), \
     matern32(variance=0.8, lengthscales=1.2) + white(variance=0.3)], locations=[0.7, -0.4], \
     steepness=[3.2, 1.7], active_dims=[2])",
    "changepoints(kernels=[rbf(variance=1.4, lengthscales=0.7), constant(variance=0.6)], \
     locations=[0.2], steepness=2.4, active_dims=[0])",
    "convolutional(image=[1, 3, 1], patch=[1, 2], weights=[0.7, -0.4], \
     base=rbf(variance=1.4, lengthscales=[0.8, 1.3]))",
    "conv(image=[1, 2, 1], patch=[1, 1], weights=[0.6, 1.3], normalise=false, base=matern52 + linear(variance=0.3), \
     active_dims=[2, 0])",
    "warped(base=rbf(variance=1.4, lengthscales=[0.7, 1.6, 0.9]), a=[0.6, 1.7, 2.3], b=[1.9, 0.5, 1.4], location=[0.3, -0.4, 0.1], \
     scale=[0.7, 1.8, 1.2])",
    "warped(base=matern32(variance=0.8, lengthscales=1.2) + linear(variance=0.6) * rbf, a=0.6, b=[1.9, 0.5], scale=1.3, \
     active_dims=[2, 0])",
    "categorical(variance=1.4, active_dims=[1])",
    "rbf(variance=1.3, lengthscales=0.8) * categorical(variance=0.7, similarity=0.3, active_dims=[0, 2])",
    "linear(variance=0.7)",
    "linear(variance=[0.7, 1.2, 2.0])",
    "linear(variance=[0.7], active_dims=[1], ard=true)",
    "constant(variance=2.5)",
    "white(variance=0.3)",
    "rbf(variance=1.7, lengthscales=[0.8, 1.9, 0.6]) + linear(variance=0.4) + white(variance=0.2)",
    "matern32(variance=1.2, lengthscales=0.9) * linear(variance=0.7) * constant(variance=0.8)",
    "(rbf(variance=1.2,lengthscales=0.9) + matern52(variance=0.4,lengthscales=1.1)) \
     * (linear(variance=0.3) + constant(variance=1.4)) + white(variance=0.1)",
];

fn zoo() -> Vec<Box<dyn Kernel>> {
    SPECIFICATIONS.iter().map(|s| parse(s, Inputs::unnamed(3)).unwrap()).collect()
}

pub(crate) fn value(k: &dyn Kernel, x: MatRef<f64>, z: Option<MatRef<f64>>) -> Mat<f64> {
    let mut out = Mat::full(x.nrows(), z.map_or(x.nrows(), |z| z.nrows()), f64::NAN);
    k.evaluate(x, z, out.as_mut(), &mut Tape::off());
    out
}

#[test]
fn every_registered_kernel_is_in_the_zoo() {
    let json: String = zoo().iter().map(|k| k.to_json().to_string()).collect();
    for entry in REGISTRY {
        assert!(
            json.contains(&format!("\"type\":\"{}\"", entry.name)),
            "{} is missing",
            entry.name
        );
    }
}

#[test]
fn covariances_are_symmetric_psd_and_agree_with_cross_and_diag() {
    let x = wave(23, 3, 1.1);
    for k in zoo() {
        let own = value(&*k, x.as_ref(), None);
        let cross = value(&*k, x.as_ref(), Some(x.as_ref()));
        let mut diag = vec![0.0; 23];
        k.diag(x.as_ref(), &mut diag);
        let has_white = k.to_json().to_string().contains("white");
        for i in 0..23 {
            assert!((own[(i, i)] - diag[i]).abs() < 1e-12 * (1.0 + diag[i]), "{}", k.name());
            for j in 0..23 {
                assert!((own[(i, j)] - own[(j, i)]).abs() < 1e-13, "{}", k.name());
                if i != j || !has_white {
                    assert!((own[(i, j)] - cross[(i, j)]).abs() < 1e-7, "{} {i} {j}", k.name());
                }
            }
        }
        let eigenvalues = own.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        assert!(eigenvalues[0] > -1e-12 * 23.0 * diag[0].max(1.0), "{}", k.name());
    }
}

#[test]
fn distances_far_from_the_origin_keep_their_accuracy() {
    // more active columns than the direct form takes, so that the product form is used
    let x = Mat::from_fn(9, 7, |i, j| 1e6 + (i as f64 * 1.3 + j as f64).sin());
    let z = Mat::from_fn(5, 7, |i, j| 1e6 + (i as f64 * 0.7 - j as f64).cos());
    let k = parse("rbf(variance=1.3, lengthscales=0.8)", Inputs::unnamed(7)).unwrap();
    let fast = value(&*k, x.as_ref(), Some(z.as_ref()));
    for i in 0..9 {
        for j in 0..5 {
            let d2: f64 = (0..7).map(|q| ((x[(i, q)] - z[(j, q)]) / 0.8).powi(2)).sum();
            assert!((fast[(i, j)] - 1.3 * (-0.5 * d2).exp()).abs() < 1e-9);
        }
    }
}

/// Symmetry, diagonals, K(X, X′), and all slopes against differences.
#[test]
fn every_kernel_passes_the_checks_that_other_crates_have() {
    for (rows, dims) in [(11, 3), (19, 7)] {
        let kernels: Vec<_> = if dims == 3 {
            zoo()
        } else {
            [
                "rbf",
                "matern32",
                "matern52",
                "matern12",
                "rbf*linear + matern32",
                "rational_quadratic",
                "gamma_exponential",
                "periodic(base=matern32) * exponential",
                "cosine + polynomial(degree=2)",
                "additive(base=matern52, order=5)",
                "rbf + additive(base=matern52, order=2)",
                "arccosine(order=1)",
                "changepoints(kernels=[rbf, linear, matern32], active_dims=[4])",
            ]
            .iter()
            .map(|s| {
                let mut k = parse(s, Inputs::unnamed(dims)).unwrap();
                let lengthscales: Vec<f64> = (0..dims).map(|q| 1.5 + 0.3 * q as f64).collect();
                k.initialise(&lengthscales, 1.7);
                k
            })
            .collect()
        };
        let x = wave(rows, dims, 0.9);
        let z = wave(6, dims, 1.6);
        for kernel in kernels {
            check_kernel(&*kernel, x.as_ref(), z.as_ref()).unwrap();
        }
    }
}

#[test]
fn coincident_points_are_exact_for_the_kink_of_matern12() {
    let x = wave(12, 7, 1.3);
    let z = Mat::from_fn(4, 7, |i, j| x[(3 * i, j)]);
    let k = parse("matern12(variance=1.9, lengthscales=0.7)", Inputs::unnamed(7)).unwrap();
    let v = value(&*k, x.as_ref(), Some(z.as_ref()));
    for i in 0..4 {
        assert_eq!(v[(3 * i, i)], 1.9);
    }
}

#[test]
fn specifications_round_trip_through_json() {
    for k in zoo() {
        let json = k.to_json();
        let again = build(&json, Inputs::unnamed(3)).unwrap();
        assert_eq!(json, again.to_json());
        let x = wave(5, 3, 0.4);
        let (a, b) = (value(&*k, x.as_ref(), None), value(&*again, x.as_ref(), None));
        for j in 0..5 {
            assert_eq!(column(a.as_ref(), j), column(b.as_ref(), j));
        }
        let free = free_values(|v| k.visit(v));
        let mut third = k.clone_box();
        set_free_values(|v| third.visit_mut(v), &free);
        let frozen: usize =
            k.params().iter().map(|(_, p)| if p.frozen { p.len() } else { 0 }).sum();
        assert_eq!(free.len() + frozen, k.num_params());
    }
}

#[test]
fn the_language_binds_as_arithmetic_does_and_flags_survive() {
    let names: Vec<String> = ["age", "height"].iter().map(|s| s.to_string()).collect();
    let inputs = Inputs::named(&names);
    let k = parse("rbf + linear*constant + white", inputs).unwrap();
    let paths: Vec<String> = k.params().into_iter().map(|(p, _)| p).collect();
    assert_eq!(
        paths,
        [
            "kernels[0].variance",
            "kernels[0].lengthscales",
            "kernels[1].kernels[0].variance",
            "kernels[1].kernels[1].variance",
            "kernels[2].variance"
        ]
    );
    let bare = parse("rbf(active_dims=[height, age], ard=false)", inputs).unwrap();
    assert_eq!(bare.to_json()["active_dims"], serde_json::json!([1, 0]));
    let k = parse(
        r#"rbf(active_dims=["height"], variance={"value": 2.5, "frozen": true,
           "prior": {"type": "gamma", "concentration": 2, "rate": 3}})"#,
        inputs,
    )
    .unwrap();
    let params = k.params();
    assert!(params[0].1.frozen && params[0].1.prior.is_some());
    assert_eq!(params[0].1.scalar(), 2.5);
    assert_eq!(params[1].1.len(), 1);
    let json = k.to_json();
    assert_eq!(json, build(&json, inputs).unwrap().to_json());
}

#[test]
fn lengthscales_are_one_per_input_unless_said_otherwise() {
    let count = |s: &str| parse(s, Inputs::unnamed(4)).unwrap().params()[1].1.len();
    assert_eq!(count("rbf"), 4);
    assert_eq!(count("rbf(ard=false)"), 1);
    assert_eq!(count("rbf(active_dims=[0,3])"), 2);
    assert_eq!(count("rbf(lengthscales=0.5)"), 1);
    assert_eq!(count("rbf(lengthscales=0.5, ard=true)"), 4);
}

#[test]
fn mistakes_are_named_with_what_would_be_right() {
    let names = vec!["age".to_owned(), "height".to_owned()];
    let refuse = |s: &str| parse(s, Inputs::named(&names)).unwrap_err().to_string();
    for between in [" + ", "*"] {
        let many = vec!["rbf"; 101].join(between);
        assert!(refuse(&many).contains("101 kernels are combined; 100 are the most"));
        assert!(parse(&many[between.len() + 3..], Inputs::named(&names)).is_ok());
    }
    for (spec, expected) in [
        ("mattern52", "nearest: matern52"),
        ("rbf + mattern52", "specification `rbf + mattern52` at position 6: unknown kernel"),
        ("rbf + ", "position 6"),
        ("rbf(lengthscale=1)", "unknown entry `lengthscale`; known: variance, lengthscales"),
        ("rbf(variance=-1)", "-1 is outside the positive numbers"),
        ("rbf(variance=abc)", "\"abc\" is not a number"),
        ("rbf(variance=[1,2)", "`[1,2)` is not a value"),
        ("rbf(active_dims=[2])", "2 is out of range, there are 2 input columns"),
        ("rbf(active_dims=[\"weight\"])", "no input column is called `weight`; nearest: height"),
        ("periodic(active_dims=[age])", "inside: periodic(base=rbf(active_dims=…))"),
        ("periodic(base=rbf, period=365.25d)", "`365.25d` is a number with a unit"),
        ("rbf(active_dims=[0,0])", "given twice"),
        ("rbf(lengthscales=[1,2,3])", "3 values for 2 active input columns"),
        ("rbf + categorical(active_dims=[age, height])", "are read as groups by `categorical`"),
        ("categorical(similarity=1)", "1 is outside the interval (0, 1)"),
        ("additive(order=3)", "`order` is 3; it is at most the number of active input columns, 2"),
        ("additive(order=2, variances=[1,2,3])", "has 2 values, 3 were given"),
        ("{\"type\": \"additive\", \"base\": {}}", "its base is the name of one of rbf"),
        ("additive(base=linear)", "one of rbf, matern12, matern32, matern52, exponential, not"),
        ("additive(base=rbf(lengthscales=2))", "`active_dims` are entries of `additive` itself"),
        ("(rbf", "expected `)`"),
        ("rbf rbf", "expected `+`, `*` or the end"),
        ("", "expected the name of a kernel"),
        ("{\"type\": \"rbf\"", "not valid JSON"),
        ("{\"kind\": \"rbf\"}", "`type` is missing"),
    ] {
        let sentence = refuse(spec);
        assert!(sentence.contains(expected), "{spec}: {sentence}");
    }
}

/// Six inputs are enough for distances by products; lengthscales far below most distances, and pairs of
/// points that differ by one of them in one input: ϱ² = 1 among norms of 10¹⁴.
#[test]
fn near_points_far_from_the_centre_keep_their_distance() {
    let spec = "rbf(variance=1.7, lengthscales=[3e-7, 2e-7, 2.0, 2.0, 2.0, 2.0])";
    let k = parse(spec, Inputs::unnamed(6)).unwrap();
    let far = wave(12, 6, 1.1);
    let x = Mat::from_fn(24, 6, |i, q| {
        far[(i / 2, q)] + if q == 0 { 3e-7 * (i % 2) as f64 } else { 0.0 }
    });
    let own = value(&*k, x.as_ref(), None);
    // the difference of two rounded numbers near 1 is 3·10⁻⁷ to 2⁻⁵³/3·10⁻⁷ ≈ 4·10⁻¹⁰
    let expected = 1.7 * (-0.5_f64).exp();
    for i in (0..24).step_by(2) {
        assert!((own[(i + 1, i)] - expected).abs() < 1e-8, "{} {expected}", own[(i + 1, i)]);
    }
}

#[test]
fn equal_summands_start_apart() {
    let x = Mat::from_fn(40, 1, |i, _| i as f64 * 0.1);
    let y = Mat::from_fn(40, 1, |i, _| (i as f64 * 0.7).sin());
    let started = |spec: &str| {
        let mut kernel = parse(spec, Inputs::unnamed(1)).unwrap();
        kernel.initialise(&[1.2], 2.5);
        kernel.initialise_from_rows(x.as_ref(), y.as_ref());
        let listed = crate::params::listed(|visitor| kernel.visit(visitor));
        let lengths = listed.iter().filter(|(path, _)| path.ends_with("lengthscales"));
        lengths.map(|(_, param)| param.scalar()).collect::<Vec<f64>>()
    };
    for spec in ["rbf + rbf + rbf", "exponential + exponential + exponential"] {
        let lengths = started(spec);
        assert!((lengths[0] / lengths[1] - 3.0).abs() < 1e-12, "{spec}: {lengths:?}");
        assert!((lengths[1] / lengths[2] - 3.0).abs() < 1e-12, "{spec}: {lengths:?}");
    }
    // others are as they were, and what is given stays
    let (rbf, both) = (started("rbf"), started("rbf + matern32"));
    assert_eq!(both[0], rbf[0]);
    assert_eq!(started("rbf(lengthscales=0.7) + rbf(lengthscales=0.7)"), [0.7, 0.7]);
}

#[test]
fn a_large_covariance_is_shared_by_threads_and_is_what_a_block_of_rows_gives() {
    const ROWS: usize = 600; // three chunks of columns, the last of them short
    let of = |spec: &str, z: bool, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (kernel, x) = (parse(spec, Inputs::unnamed(6)).unwrap(), wave(ROWS, 6, 0.83));
            let (x, z) = (x.as_ref(), z.then_some(x.as_ref()));
            let mut tape = Tape::recording();
            let mut k = Mat::zeros(ROWS, ROWS);
            kernel.evaluate(x, z, k.as_mut(), &mut tape);
            let mut bar = wave(ROWS, ROWS, 0.37);
            let mut params = vec![0.0; kernel.num_params()];
            let (mut by_x, mut by_z) = (Mat::zeros(ROWS, 6), Mat::zeros(ROWS, 6));
            let sink = z.is_some().then_some(by_z.as_mut());
            let (own, x_bar) = (&mut params, Some(by_x.as_mut()));
            let mut sinks = Cotangents { params: own, x: x_bar, z: sink };
            kernel.vjp(x, z, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
            (k, params, by_x + by_z)
        })
    };
    for spec in [
        "rbf(variance=1.7, lengthscales=[1.8, 2.9, 1.6, 2.2, 3.1, 1.3])",
        "matern32(variance=0.4, lengthscales=[0.8, 1.9, 0.6], active_dims=[4, 0, 2])",
        "matern12(variance=2.1, lengthscales=2.4)",
        "rational_quadratic(variance=1.4, lengthscales=1.9, alpha=0.7)",
        "additive(base=matern52, order=2, variances=[1.3, 0.4], lengthscales=[1.8, 2.9, 1.6, 2.2, 3.1, 1.3])",
    ] {
        let (k, params, by_x) = of(spec, false, 3);
        assert!((k.clone(), params.clone(), by_x.clone()) == of(spec, false, 1), "{spec}: bits");
        let (other, rows, by_rows) = of(spec, true, 1);
        assert!((&k - &other).norm_max() < 1e-12 * k.norm_max(), "{spec}: values");
        let largest = params.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        for (own, other) in params.iter().zip(&rows) {
            assert!((own - other).abs() < 1e-9 * largest, "{spec}: {params:?} {rows:?}");
        }
        assert!((&by_x - &by_rows).norm_max() < 1e-9 * by_x.norm_max(), "{spec}: inputs");
    }
}
