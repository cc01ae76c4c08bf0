use super::*;
use proptest::prelude::*;

/// A deterministic matrix of the given shape with entries in (−1, 1).
fn noise(rows: usize, cols: usize, seed: u64) -> Mat<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    Mat::from_fn(rows, cols, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
}

fn naive(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), b.ncols(), |i, j| (0..a.ncols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

fn spd(n: usize, seed: u64) -> Mat<f64> {
    let a = noise(n, n + 3, seed);
    let mut s = naive(a.as_ref(), a.transpose());
    for i in 0..n {
        s[(i, i)] += 0.1;
    }
    s
}

fn largest_difference(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()));
    let mut largest: f64 = 0.0;
    for j in 0..a.ncols() {
        for i in 0..a.nrows() {
            let difference = (a[(i, j)] - b[(i, j)]).abs();
            largest = if difference.is_nan() { f64::INFINITY } else { largest.max(difference) };
        }
    }
    largest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// The GEMM back end has had silent wrong results: random shapes, layouts and thread counts
    /// against plain loops.
    #[test]
    fn products_agree_with_plain_loops(
        m in 1usize..130, n in 1usize..130, k in 1usize..130,
        ta: bool, tb: bool, threads in 1usize..5, seed: u64,
    ) {
        let a = if ta { noise(k, m, seed) } else { noise(m, k, seed) };
        let b = if tb { noise(n, k, !seed) } else { noise(k, n, !seed) };
        let a = if ta { a.transpose() } else { a.as_ref() };
        let b = if tb { b.transpose() } else { b.as_ref() };
        let expected = naive(a, b);
        let tolerance = 1e-14 * k as f64;
        let par = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
        let mut c = Mat::full(m, n, f64::NAN);
        gemm(c.as_mut(), Accum::Replace, a, b, 1.0, par);
        prop_assert!(largest_difference(c.as_ref(), expected.as_ref()) < tolerance);
        gemm(c.as_mut(), Accum::Add, a, b, -2.5, par);
        let minus = Mat::from_fn(m, n, |i, j| -1.5 * expected[(i, j)]);
        prop_assert!(largest_difference(c.as_ref(), minus.as_ref()) < 4.0 * tolerance);
        let mut d = Mat::full(m, n, f64::NAN);
        gemm(d.as_mut().transpose_mut(), Accum::Replace, b.transpose(), a.transpose(), 1.0, par);
        prop_assert!(largest_difference(d.as_ref(), expected.as_ref()) < tolerance);
    }

    #[test]
    fn gram_and_solves_agree_with_plain_loops(
        b in 1usize..200, m in 1usize..90, seed: u64, threads in 1usize..4,
    ) {
        let par = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
        let phi = noise(b, m, seed);
        let weights: Vec<f64> = (0..b).map(|i| (i as f64 * 0.37).sin()).collect();
        let mut weighted = Mat::zeros(b, m);
        scale_rows(weighted.as_mut(), phi.as_ref(), &weights);
        let mut gram = Mat::full(m, m, 7.0);
        gram_lower(gram.as_mut(), Accum::Replace, phi.as_ref(), weighted.as_ref(), 1.0, par);
        let expected = naive(phi.transpose(), weighted.as_ref());
        for j in 0..m {
            for i in 0..m {
                if i >= j {
                    prop_assert!((gram[(i, j)] - expected[(i, j)]).abs() < 1e-14 * b as f64);
                } else {
                    prop_assert_eq!(gram[(i, j)], 7.0);
                }
            }
        }
        let a = spd(m, seed ^ 5);
        let factor = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
        let product = naive(factor.l.as_ref(), factor.l.transpose());
        prop_assert!(largest_difference(product.as_ref(), a.as_ref()) < 1e-12 * m as f64);
        // row-major right-hand side, as the blocks of rows have it
        let mut x = phi.clone();
        solve_lower(factor.l.as_ref(), x.as_mut().transpose_mut(), par);
        let back = naive(x.as_ref(), factor.l.transpose());
        prop_assert!(largest_difference(back.as_ref(), phi.as_ref()) < 1e-10);
        let mut y = phi.clone();
        solve_lower_transpose(factor.l.as_ref(), y.as_mut().transpose_mut(), par);
        let back = naive(y.as_ref(), factor.l.as_ref());
        prop_assert!(largest_difference(back.as_ref(), phi.as_ref()) < 1e-9);
    }
}

/// Every combination of structures at sizes that are divided among threads: entries outside a structure are
/// neither read nor written, and the bits do not depend on the threads.
#[test]
fn divided_products_agree_with_plain_loops_in_every_structure() {
    let structures = [WHOLE, LOWER, UPPER];
    let inside = |structure: Structure, i: usize, j: usize| match structure {
        Structure::TriangularLower => i >= j,
        Structure::TriangularUpper => i <= j,
        _ => true,
    };
    let shown = |structure, a: &Mat<f64>, other: f64| {
        let entry = |i, j| if inside(structure, i, j) { a[(i, j)] } else { other };
        Mat::from_fn(a.nrows(), a.ncols(), entry)
    };
    let n = 269;
    let (first, second) = (noise(n, n, 3), noise(n, n, 4));
    for of_a in structures {
        for of_b in structures {
            let (a, b) = (shown(of_a, &first, f64::NAN), shown(of_b, &second, f64::NAN));
            let whole = {
                let (a, b) = (shown(of_a, &first, 0.0), shown(of_b, &second, 0.0));
                naive(a.as_ref(), b.as_ref())
            };
            for of_dst in structures {
                let results = [0, 1, 2, 3].map(|threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    let mut out = Mat::full(n, n, 0.25);
                    pool.expect("threads").install(|| {
                        let (a, b) = ((a.as_ref(), of_a), (b.as_ref(), of_b));
                        let par = if threads == 0 { Par::Seq } else { par_for(1000) };
                        structured((out.as_mut(), of_dst), Accum::Replace, a, b, 1.5, par);
                        structured((out.as_mut(), of_dst), Accum::Add, a, b, -0.5, par);
                    });
                    out
                });
                let expected = |i, j| if inside(of_dst, i, j) { whole[(i, j)] } else { 0.25 };
                let expected = Mat::from_fn(n, n, expected);
                // without threads, and divided for one or more of them
                for result in &results[..2] {
                    let difference = largest_difference(result.as_ref(), expected.as_ref());
                    let what = format!("{of_dst:?} of {of_a:?} and {of_b:?}");
                    assert!(difference < 1e-12, "{what}: {difference}");
                }
                assert!(results[1] == results[2] && results[1] == results[3]);
            }
        }
    }
    // sides that differ: the one factor's structure does not touch
    let (rows, tall) = (311, noise(311, n, 5));
    let lower = shown(LOWER, &second, f64::NAN);
    let expected = naive(tall.as_ref(), shown(LOWER, &second, 0.0).as_ref());
    let mut out = Mat::full(rows, n, f64::NAN);
    let factors = ((tall.as_ref(), WHOLE), (lower.as_ref(), LOWER));
    structured((out.as_mut(), WHOLE), Accum::Replace, factors.0, factors.1, 1.0, par_for(1000));
    assert!(largest_difference(out.as_ref(), expected.as_ref()) < 1e-12);
    let mut out = Mat::full(n, rows, f64::NAN);
    let (left, right) = ((lower.transpose(), UPPER), (tall.transpose(), WHOLE));
    structured((out.as_mut(), WHOLE), Accum::Replace, left, right, 1.0, par_for(1000));
    assert!(largest_difference(out.transpose(), expected.as_ref()) < 1e-12);
}

/// Large products, which are packed: factors stored by columns and by rows, a view with its rows reversed, a result that
/// held no numbers; the bits do not depend on the threads among which they are divided.
#[test]
fn large_products_agree_with_plain_loops_however_they_are_stored() {
    fn agree<T: Real>(tolerance: f64) {
        let (m, n, k) = (301, 517, 211);
        let of = |a: Mat<f64>| Mat::from_fn(a.nrows(), a.ncols(), |i, j| T::of(a[(i, j)]));
        let as_double = |a: &Mat<T>| {
            let entry = |i, j| -> f64 { a[(i, j)].into() };
            Mat::from_fn(a.nrows(), a.ncols(), entry)
        };
        let (a, b) = (of(noise(m, k, 3)), of(noise(k, n, 4)));
        let whole = naive(as_double(&a).as_ref(), as_double(&b).as_ref());
        let (at, bt) = (a.transpose().to_owned(), b.transpose().to_owned());
        let upside_down = a.as_ref().reverse_rows().to_owned();
        for a in [a.as_ref(), at.transpose(), upside_down.as_ref().reverse_rows()] {
            for b in [b.as_ref(), bt.transpose()] {
                let results = [0, 1, 2, 3, 7].map(|threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    let (mut out, mut across) =
                        (Mat::full(m, n, T::of(f64::NAN)), Mat::full(n, m, T::of(f64::NAN)));
                    pool.expect("threads").install(|| {
                        let par = if threads == 0 { Par::Seq } else { par_for(1000) };
                        gemm(out.as_mut(), Accum::Replace, a, b, T::of(1.5), par);
                        gemm(out.as_mut(), Accum::Add, a, b, T::of(-0.5), par);
                        gemm(across.transpose_mut(), Accum::Replace, a, b, T::of(1.0), par);
                    });
                    (out, across)
                });
                for result in
                    [as_double(&results[0].0).as_ref(), as_double(&results[0].1).transpose()]
                {
                    let difference = largest_difference(result, whole.as_ref());
                    assert!(difference < tolerance, "{difference}");
                }
                assert!(results.iter().all(|other| *other == results[0]));
            }
        }
    }
    agree::<f64>(1e-12);
    agree::<f32>(1e-4);
}

#[test]
fn a_triangle_is_mirrored_and_a_matrix_made_symmetric() {
    for n in [1, 2, 31, 32, 33, 70, 96] {
        let a = noise(n, n, n as u64);
        let (mut mirrored, mut mean) = (a.clone(), a.clone());
        mirror_lower(mirrored.as_mut());
        symmetrise(mean.as_mut());
        for j in 0..n {
            for i in 0..n {
                assert_eq!(mirrored[(i, j)], a[(i.max(j), i.min(j))]);
                let half = 0.5 * (a[(i.max(j), i.min(j))] + a[(i.min(j), i.max(j))]);
                assert_eq!(mean[(i, j)], half);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Products with triangular factors, which read nothing above the diagonal and do not change
    /// what they do not compute.
    #[test]
    fn triangular_products_agree_with_plain_loops(
        n in 1usize..130, rows in 1usize..90, threads in 1usize..4, seed: u64,
    ) {
        let par = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
        let full = noise(n, n, seed);
        let lower = Mat::from_fn(n, n, |i, j| if i >= j { full[(i, j)] } else { 0.0 });
        let marked = Mat::from_fn(n, n, |i, j| if i >= j { full[(i, j)] } else { f64::NAN });
        let a = noise(rows, n, !seed);
        let tolerance = 1e-14 * n as f64;
        for transposed in [false, true] {
            let l = if transposed { lower.transpose() } else { lower.as_ref() };
            let mut out = Mat::full(rows, n, f64::NAN);
            let own = marked.as_ref();
            times_triangular(out.as_mut(), Accum::Replace, a.as_ref(), own, transposed, par);
            prop_assert!(largest_difference(out.as_ref(), naive(a.as_ref(), l).as_ref()) < tolerance);
        }
        let b = noise(n, n, seed ^ 7);
        let expected = naive(lower.as_ref(), b.as_ref());
        let mut out = Mat::full(n, n, 0.5);
        lower_product(out.as_mut(), Accum::Add, marked.as_ref(), b.as_ref(), 2.0, par);
        let mut gram = Mat::zeros(marked.ncols(), marked.ncols());
        inner_gram(gram.as_mut(), marked.as_ref(), par);
        let expected_gram = naive(lower.transpose(), lower.as_ref());
        for j in 0..n {
            for i in 0..n {
                let (own, gram) = (out[(i, j)], gram[(i, j)]);
                if i >= j {
                    prop_assert!((own - 0.5 - 2.0 * expected[(i, j)]).abs() < 2.0 * tolerance);
                    prop_assert!((gram - expected_gram[(i, j)]).abs() < tolerance);
                } else {
                    prop_assert!(own == 0.5 && gram == 0.0);
                }
            }
        }
    }
}

#[test]
fn inverses_and_roots() {
    for n in [1, 2, 7, 40, 97, 230] {
        let a = spd(n, 3 + n as u64);
        let factor = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
        let identity = Mat::<f64>::identity(n, n);
        let product = naive(a.as_ref(), factor.inverse().as_ref());
        assert!(largest_difference(product.as_ref(), identity.as_ref()) < 1e-9);
        let root = Cholesky::inverse_root(a.as_ref(), Jitter::Relative(0.0), "A").unwrap();
        for j in 0..n {
            for i in 0..j {
                assert_eq!(root[(i, j)], 0.0);
            }
        }
        let inverse = naive(root.as_ref(), root.transpose());
        assert!(largest_difference(inverse.as_ref(), factor.inverse().as_ref()) < 1e-9);
        let s = spd(n, 77);
        // what is above the diagonal is not read
        let lower = Mat::from_fn(n, n, |i, j| if i < j { f64::NAN } else { s[(i, j)] });
        let sandwich = sandwich_inverse(factor.l.as_ref(), lower, Par::Seq);
        let back =
            naive(factor.l.transpose(), naive(sandwich.as_ref(), factor.l.as_ref()).as_ref());
        assert!(largest_difference(back.as_ref(), s.as_ref()) < 1e-9);
        assert_eq!(sandwich, sandwich.transpose());
    }
}

#[test]
fn the_adjoint_of_the_factorisation_passes_differences_with_jitter() {
    let n = 6;
    let a = spd(n, 11);
    let l_bar = noise(n, n, 12);
    for jitter in [Jitter::Absolute(0.03), Jitter::Relative(0.02)] {
        let value = |a: &Mat<f64>| {
            let factor = Cholesky::new(a.as_ref(), jitter, "A").unwrap();
            let mut total = 0.0;
            for j in 0..n {
                for i in j..n {
                    total += l_bar[(i, j)] * factor.l[(i, j)];
                }
            }
            total
        };
        let factor = Cholesky::new(a.as_ref(), jitter, "A").unwrap();
        let mut a_bar = factor.adjoint(l_bar.as_ref());
        factor.pull_jitter(&mut a_bar);
        for j in 0..n {
            for i in j..n {
                let h = 1e-6;
                let moved = |sign: f64| {
                    let mut b = a.clone();
                    b[(i, j)] += sign * h;
                    if i != j {
                        b[(j, i)] += sign * h;
                    }
                    value(&b)
                };
                let difference = (moved(1.0) - moved(-1.0)) / (2.0 * h);
                let own = if i == j { a_bar[(i, i)] } else { a_bar[(i, j)] + a_bar[(j, i)] };
                assert!((own - difference).abs() < 1e-7, "{i},{j}: {own} against {difference}");
            }
        }
    }
}

#[test]
fn the_jitter_ladder_climbs_and_reports() {
    // rank one: exactly singular
    let a = Mat::from_fn(4, 4, |i, j| 3.0 * (1.0 + i as f64) * (1.0 + j as f64));
    let factor = Cholesky::new(a.as_ref(), Jitter::Relative(1e-18), "Kuu").unwrap();
    assert!(factor.jitter > 0.0 && factor.relative > 1e-18);
    let error = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "Kuu").unwrap_err();
    assert!(error.is_recoverable());
    let sentence = error.to_string();
    assert!(sentence.contains("4×4 matrix Kuu") && sentence.contains("pivot"), "{sentence}");
    let indefinite = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 3.0 });
    assert!(Cholesky::new(indefinite.as_ref(), Jitter::default(), "A").is_err());
    let nan = Mat::from_fn(2, 2, |_, _| f64::NAN);
    assert!(matches!(
        Cholesky::new(nan.as_ref(), Jitter::default(), "A"),
        Err(crate::Error::NonFinite { .. })
    ));
    let mut off_diagonal = spd(3, 1);
    off_diagonal[(2, 0)] = f64::NAN;
    assert!(Cholesky::new(off_diagonal.as_ref(), Jitter::default(), "A").is_err());
}

#[test]
fn exp_is_accurate_on_every_path() {
    let arguments: Vec<f64> = (0..200_000).map(|i| -708.0 + i as f64 * 0.007_085).collect();
    let mut fast = arguments.clone();
    exp::exp_in_place(&mut fast);
    let mut worst: f64 = 0.0;
    for (x, y) in arguments.iter().zip(&fast) {
        for value in [*y, exp::exp::<false>(*x)] {
            worst = worst.max((value / x.exp() - 1.0).abs());
        }
    }
    assert!(worst < 4.0 * f64::EPSILON, "largest relative error {worst:e}");
    let mut edges = [0.0, -0.0, -1e4, f64::NEG_INFINITY, f64::NAN, 1e4];
    exp::exp_in_place(&mut edges);
    assert_eq!(edges[0], 1.0);
    assert_eq!(edges[1], 1.0);
    assert!(edges[2] < 1e-300 && edges[3] < 1e-300);
    assert!(edges[4].is_nan());
    assert!(edges[5] > 1e300);
}

/// Against the error function, and further out Laplace's continued fraction 1/(t + 1/(t + 2/(t + …))).
#[test]
fn sines_and_cosines_are_accurate() {
    let mut angles: Vec<f64> = (0..40_000).map(|i| -300.0 + 0.015_03 * f64::from(i)).collect();
    angles.extend((0..2000).map(|i| (f64::from(i) - 1000.0) * std::f64::consts::FRAC_PI_4));
    angles.extend((0..4000).map(|i| 249.9 * f64::from(i)));
    angles.extend([0.0, -0.0, 1e-300, -1e-20, 3e-9, 1e6, -1e6, 999_999.5]);
    let (mut cos, mut sin) = (angles.clone(), vec![0.0; angles.len()]);
    exp::sin_cos_in_place(&mut cos, &mut sin);
    for ((x, sin), cos) in angles.iter().zip(&sin).zip(&cos) {
        let slow = exp::sin_cos::<false>(*x);
        for (own, expected) in
            [(*sin, x.sin()), (*cos, x.cos()), (slow.0, x.sin()), (slow.1, x.cos())]
        {
            assert!((own - expected).abs() < 3e-16, "{x}: {own:e} {expected:e}");
        }
        if x.abs() < 1e-8 {
            assert_eq!(*sin, *x, "small angles are their sines");
        }
    }
    // too large for that, or none
    let (mut cos, mut sin) = ([3e9, f64::INFINITY, f64::NAN, 1.0], [0.0; 4]);
    exp::sin_cos_in_place(&mut cos, &mut sin);
    assert_eq!(
        [cos[0], sin[0], cos[3], sin[3]],
        [3e9_f64.cos(), 3e9_f64.sin(), 1_f64.cos(), 1_f64.sin()]
    );
    assert!(cos[1].is_nan() && sin[1].is_nan() && cos[2].is_nan() && sin[2].is_nan());
}

#[test]
fn mills_ratio_is_accurate() {
    for j in 0..4000 {
        let t = 0.01 * f64::from(j);
        let expected = if t < 5.0 {
            let tail = 0.5 * libm::erfc(t * std::f64::consts::FRAC_1_SQRT_2);
            tail * (0.5 * t * t).exp() * std::f64::consts::TAU.sqrt()
        } else {
            1.0 / (1..100).rev().fold(t, |rest, k| t + f64::from(k) / rest)
        };
        // t/√2 and t²/2 are rounded
        let tolerance = 1e-15 + if t < 5.0 { 3e-16 * (1.0 + t * t) } else { 0.0 };
        for own in [exp::mills::<true>(t), exp::mills::<false>(t)] {
            assert!((own / expected - 1.0).abs() < tolerance, "{t}: {own} for {expected}");
        }
    }
    for t in [40.0, 1e3, 1e6, 1e9] {
        let z: f64 = 1.0 / (t * t);
        let series = (1.0 - z + 3.0 * z * z - 15.0 * z * z * z) / t;
        let tolerance = 110.0 * z.powi(4) + 1e-15;
        assert!((exp::mills::<false>(t) / series - 1.0).abs() < tolerance, "{t}");
    }
    assert!(exp::mills::<false>(f64::INFINITY) <= 1e-10 && exp::mills::<true>(f64::NAN).is_nan());
}

/// log over all magnitudes and finely around 1; log(1 + x) down to where it is x.
#[test]
fn ln_is_accurate_on_every_path() {
    struct Logarithms<'a>(&'a [f64], bool, &'a mut Vec<f64>);
    impl exp::Vectorised for Logarithms<'_> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            let Self(values, one_more, out) = self;
            let one = |v: &f64| if one_more { exp::ln_1p::<FMA>(*v) } else { exp::ln::<FMA>(*v) };
            out.extend(values.iter().map(one));
        }
    }
    let powers = (0..100_000).map(|i| (-708.0 + i as f64 * 0.014_1).exp());
    let around = (1..100_000).map(|i| 0.5 + i as f64 * 1.5e-5);
    let near = (-40..=40).map(|i: i32| 1.0 + f64::from(i) * f64::EPSILON);
    let arguments: Vec<f64> = powers.chain(around).chain(near).collect();
    for one_more in [false, true] {
        let mut fast = Vec::new();
        exp::dispatch(Logarithms(&arguments, one_more, &mut fast));
        let mut worst: f64 = 0.0;
        for (x, y) in arguments.iter().zip(&fast) {
            let slow = if one_more { exp::ln_1p::<false>(*x) } else { exp::ln::<false>(*x) };
            let expected = if one_more { x.min(1e300).ln_1p() } else { x.ln() };
            for value in [*y, slow] {
                let error = (value - expected).abs();
                worst = worst.max(if expected == 0.0 { error } else { error / expected.abs() });
            }
        }
        assert!(worst < 4.0 * f64::EPSILON, "{one_more}: largest relative error {worst:e}");
    }
    assert_eq!(exp::ln_1p::<false>(0.0), 0.0);
    assert_eq!(exp::ln::<true>(1.0), 0.0);
    assert!(exp::ln::<false>(f64::NAN).is_nan() && exp::ln_1p::<false>(f64::NAN).is_nan());
    assert!(exp::ln::<false>(f64::INFINITY) > 709.0 && exp::ln_1p::<true>(f64::INFINITY) > 690.0);
}

#[test]
fn factorisations_give_the_same_bits_on_any_number_of_threads() {
    let n = 800;
    let a = spd(n, 21);
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let factor = Cholesky::new(a.as_ref(), Jitter::default(), "A").unwrap();
            let inverse = factor.inverse();
            let sandwich = sandwich_inverse(factor.l.as_ref(), a.clone(), par_for(n));
            let mut product = Mat::zeros(n, n);
            gemm(product.as_mut(), Accum::Replace, a.as_ref(), inverse.as_ref(), 1.0, par_for(n));
            let sum = |m: &Mat<f64>| {
                (0..n).fold(0u64, |h, j| {
                    column(m.as_ref(), j).iter().fold(h, |h, v| {
                        h.rotate_left(5).wrapping_mul(0x100_0000_01B3) ^ v.to_bits()
                    })
                })
            };
            [sum(&factor.l), sum(&inverse), sum(&sandwich), sum(&product)]
        })
    };
    let one = bits(1);
    for threads in [2, 3] {
        assert_eq!(one, bits(threads), "{threads} threads");
    }
}

/// One column or row included: those go another way.
#[test]
fn threads_do_not_change_the_bits() {
    let n = 800;
    let l = Mat::from_fn(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 2.5 + (i as f64).sin(),
        std::cmp::Ordering::Greater => 0.1 * ((i * 7 + j * 3) as f64).sin(),
    });
    for columns in [1, 2, 3, n] {
        let b = Mat::from_fn(n, columns, |i, j| ((i * (j + 1)) as f64 * 0.3).sin());
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("a pool of threads").install(|| {
                let par = Par::rayon(0);
                let (mut lower, mut upper) = (b.clone(), b.clone());
                solve_lower(l.as_ref(), lower.as_mut(), par);
                solve_lower_transpose(l.as_ref(), upper.as_mut(), par);
                let right = product(l.as_ref(), b.as_ref());
                let left = product(b.transpose(), l.as_ref()).transpose().to_owned();
                [lower, upper, right, left]
            })
        };
        let one = on(1);
        for threads in [2, 3] {
            assert!(one == on(threads), "{columns} columns on {threads} threads");
        }
    }
}

proptest! {
    #[test]
    fn products_in_place_are_products(
        n in 1usize..40,
        m in 1usize..150,
        transposed in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let x = noise(n, m, seed);
        let mut l = noise(m, m, seed ^ 77);
        // what is above the diagonal is not read
        let full = l.clone();
        clear_upper(l.as_mut());
        let other = if transposed { l.transpose() } else { l.as_ref() };
        let expected = naive(x.as_ref(), other);
        let mut own = x.clone();
        multiply_lower(own.as_mut(), full.as_ref(), transposed);
        prop_assert!(largest_difference(own.as_ref(), expected.as_ref()) < 1e-12 * m as f64);
    }
}

proptest! {
    #[test]
    fn single_precision_keeps_what_it_says(
        n in 1usize..60,
        m in 1usize..60,
        seed in any::<u64>(),
    ) {
        let whole = Structure::Rectangular;
        let (lower, upper) = (Structure::TriangularLower, Structure::TriangularUpper);
        let (a, b) = (noise(n, m, seed), noise(m, n, seed ^ 5));
        let mut square = noise(m, m, seed ^ 9);
        clear_upper(square.as_mut());
        let room = 4.0 * (m as f64).sqrt() * SINGLE_ROUNDING * m as f64;
        for accum in [Accum::Replace, Accum::Add] {
            let start = noise(n, n, seed ^ 13);
            for structure in [whole, lower, upper] {
                let (mut own, mut exact) = (start.clone(), start.clone());
                let (left, right) = ((a.as_ref(), whole), (b.as_ref(), whole));
                structured((exact.as_mut(), structure), accum, left, right, -0.7, Par::Seq);
                let target = (own.as_mut(), structure);
                structured_in(Precision::Single, target, accum, left, right, -0.7, Par::Seq);
                prop_assert!(largest_difference(own.as_ref(), exact.as_ref()) < room);
                if m > 3 {
                    // it is rounded
                    prop_assert!(n < 2 || own != exact);
                }
            }
        }
        let (mut own, mut exact) = (Mat::zeros(n, m), Mat::zeros(n, m));
        let (left, right) = ((a.as_ref(), whole), (square.transpose(), upper));
        structured((exact.as_mut(), whole), Accum::Replace, left, right, 1.0, Par::Seq);
        let target = (own.as_mut(), whole);
        structured_in(Precision::Single, target, Accum::Replace, left, right, 1.0, Par::Seq);
        prop_assert!(largest_difference(own.as_ref(), exact.as_ref()) < room);
    }
}

#[test]
fn the_inverse_square_root_is_symmetric_and_undoes_the_matrix() {
    let a = spd(23, 5);
    let root = inverse_square_root(a.as_ref(), 1e-12).unwrap();
    assert!(largest_difference(root.as_ref(), root.transpose()) < 1e-12 * root.norm_max());
    let whitened = naive(naive(root.as_ref(), a.as_ref()).as_ref(), root.as_ref());
    assert!(largest_difference(whitened.as_ref(), Mat::identity(23, 23).as_ref()) < 1e-10);
    // of rank 4: the projection on what is there
    let b = noise(9, 4, 7);
    let a = naive(b.as_ref(), b.transpose());
    let root = inverse_square_root(a.as_ref(), 1e-10).unwrap();
    let projection = naive(naive(root.as_ref(), a.as_ref()).as_ref(), root.as_ref());
    let trace: f64 = (0..9).map(|i| projection[(i, i)]).sum();
    assert!((trace - 4.0).abs() < 1e-8, "{trace}");
    let mut nan = spd(4, 1);
    nan[(2, 1)] = f64::NAN;
    assert!(matches!(inverse_square_root(nan.as_ref(), 0.0), Err(crate::Error::NonFinite { .. })));
}

/// On a stack no larger than a thread's; the halves are those of one solve.
#[test]
fn large_triangles_are_multiplied_and_solved_on_a_small_stack() {
    let (n, k) = (4200, 512);
    let l = Mat::from_fn(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => f64::NAN,
        std::cmp::Ordering::Equal => 2.0 + (i as f64).sin(),
        std::cmp::Ordering::Greater => (i as f64 * 0.3 + j as f64).cos() / n as f64,
    });
    let x = Mat::from_fn(n, k, |i, j| (i as f64 * 0.7 + j as f64).sin());
    let times = |factor: (MatRef<f64>, Structure)| {
        let mut product = Mat::zeros(n, k);
        let (dst, right) = ((product.as_mut(), WHOLE), (x.as_ref(), WHOLE));
        structured(dst, Accum::Replace, factor, right, 1.0, Par::rayon(0));
        product
    };
    let work = || {
        let mut forward = times((l.as_ref(), LOWER));
        let mut backward = times((l.as_ref().transpose(), UPPER));
        solve_lower(l.as_ref(), forward.as_mut(), Par::rayon(0));
        solve_lower_transpose(l.as_ref(), backward.as_mut(), Par::rayon(0));
        assert!(largest_difference(forward.as_ref(), x.as_ref()) < 1e-12);
        assert!(largest_difference(backward.as_ref(), x.as_ref()) < 1e-12);
    };
    let threads = rayon::ThreadPoolBuilder::new().num_threads(2).stack_size(3 << 18);
    threads.build().unwrap().install(work);
}

/// Triangles that threads share by columns, and the inverse made of products: right, and the same bits on any number of threads.
#[test]
fn middle_sizes_are_solved_and_inverted_alike_on_all_threads() {
    let (n, k) = (401, 407);
    let a = spd(n, 12);
    let x = noise(n, k, 13);
    let results = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let factor = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
            let (mut forward, mut backward) = (x.clone(), x.transpose().to_owned());
            solve_lower(factor.l.as_ref(), forward.as_mut(), par_for(n));
            // rows of a block side by side, as engines have them
            let rows = backward.as_mut().transpose_mut();
            solve_lower_transpose(factor.l.as_ref(), rows, par_for(n));
            let inverse = factor.inverse();
            (factor.l, forward, backward, inverse)
        })
    });
    let (l, forward, backward, inverse) = &results[0];
    assert!(results.iter().all(|other| *other == results[0]));
    let back = naive(l.as_ref(), forward.as_ref());
    assert!(largest_difference(back.as_ref(), x.as_ref()) < 1e-11);
    let back = naive(l.transpose(), backward.transpose());
    assert!(largest_difference(back.as_ref(), x.as_ref()) < 1e-11);
    let product = naive(a.as_ref(), inverse.as_ref());
    let identity = Mat::<f64>::identity(n, n);
    assert!(largest_difference(product.as_ref(), identity.as_ref()) < 1e-10);
}

#[test]
fn columns_of_sized_matrices_fall_on_different_places_of_the_caches() {
    fn aside<T: Real>(rows: usize) {
        let mut a = Mat::<T>::new();
        sized(&mut a, rows, 3);
        let bytes = a.col_stride() as usize * size_of::<T>();
        assert!(!bytes.is_multiple_of(1024), "{rows} rows, {bytes} bytes");
        assert!(bytes <= rows * size_of::<T>() + 128, "{rows} rows, {bytes} bytes");
        let memory = a.as_ptr();
        // the same memory again, whatever it had between
        for (rows, cols) in [(rows - 1, 3), (1, 1), (0, 0), (rows, 2), (rows, 3)] {
            sized(&mut a, rows, cols);
            assert_eq!((a.nrows(), a.ncols(), a.as_ptr()), (rows, cols, memory));
        }
        // a wide matrix has not the rows of the tall one before it
        sized(&mut a, 2, rows);
        assert!(a.col_stride() as usize <= 64 / size_of::<T>());
    }
    for rows in [120, 123, 128, 256, 384, 1000, 1020, 1023, 1024, 2048] {
        aside::<f64>(rows);
        aside::<f32>(rows);
    }
}

#[test]
fn the_distance_of_columns_changes_no_bit() {
    let n = 256;
    let (a, b) = (spd(n, 31), noise(n, n, 32));
    let mut apart = Mat::new();
    sized(&mut apart, n, n);
    apart.copy_from(&b);
    let factor = Cholesky::new(a.as_ref(), Jitter::default(), "A").unwrap();
    let beside = factor.l.clone();
    assert_ne!(factor.l.col_stride(), beside.col_stride());
    assert_ne!(apart.col_stride(), b.col_stride());
    let through = |l: MatRef<'_, f64>, b: MatRef<'_, f64>| {
        let (mut x, mut y) = (b.to_owned(), Mat::zeros(n, n));
        solve_lower(l, x.as_mut(), Par::Seq);
        gram_lower(y.as_mut(), Accum::Replace, b, x.as_ref(), 1.0, Par::Seq);
        times_triangular(x.as_mut(), Accum::Add, b, l, true, Par::Seq);
        mirror_lower(y.as_mut());
        product(x.as_ref(), y.as_ref())
    };
    let (one, other) =
        (through(factor.l.as_ref(), apart.as_ref()), through(beside.as_ref(), b.as_ref()));
    for (u, v) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))).map(|at| (one[at], other[at])) {
        assert_eq!(u.to_bits(), v.to_bits());
    }
}

#[test]
fn work_in_parts_is_done_once_and_in_order_on_any_number_of_threads() {
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            for count in [0, 1, 2, 1000] {
                let squares = each(count, |i| (i * i).to_string());
                assert_eq!(squares, (0..count).map(|i| (i * i).to_string()).collect::<Vec<_>>());
            }
            let (mut first, mut second) = (0, String::new());
            join(|| first += 3, || second.push('x'));
            assert_eq!((first, second.as_str()), (3, "x"));
        });
    }
}
