//! Flows of parameters.

use super::*;
use crate::flow::targets::Banana;

fn options() -> GfOptions {
    GfOptions { mean_rate: 0.1, spread_rate: 0.08, draws: 12, ..GfOptions::default() }
}

/// Draws with matched moments: exact for Gaussian targets, whole, by blocks and coordinate by coordinate.
#[test]
fn matched_draws_are_exact() {
    let (mean, sigma, mut target) = gaussian(4, 5.0, 9);
    let (_, precision) = covariance(4, 2.0, 5.0, 9);
    let root =
        Mat::from_fn(4, 4, |i, j| if i == j { 0.4 } else { 0.05 * (i + 2 * j) as f64 / 4.0 });
    let matched = GfOptions { matched: true, ..options() };
    for mean_flow in [MeanFlow::Plain, MeanFlow::Natural] {
        let own = GfOptions { mean_flow, ..matched.clone() };
        let mut gf = Gf::new(vec![0.1; 4], Factor::Whole(root.clone()), own).unwrap();
        flow(&mut gf, &mut target, 3000);
        all_close(gf.mean(), &mean, 1e-10);
        assert!(largest((gf.factor().covariance().unwrap() - &sigma).as_ref()) < 1e-10);
    }
    let half = Mat::from_fn(2, 2, |i, j| root[(i, j)]);
    let blocks = vec![(vec![2, 0], half.clone()), (vec![1, 3], half)];
    let mut gf = Gf::new(vec![0.1; 4], Factor::Blocks(blocks), matched.clone()).unwrap();
    flow(&mut gf, &mut target, 3000);
    let c = gf.factor().covariance().unwrap();
    for rows in [[0, 2], [1, 3]] {
        let own = Mat::from_fn(2, 2, |i, j| precision[(rows[i], rows[j])]);
        let expected = Cholesky::new(own.as_ref(), Jitter::Absolute(0.0), "Λ").unwrap().inverse();
        let found = Mat::from_fn(2, 2, |i, j| c[(rows[i], rows[j])]);
        assert!(largest((found - expected).as_ref()) < 1e-10);
    }
    assert_eq!(c[(0, 1)], 0.0);
    let mut gf = Gf::new(vec![0.1; 4], Factor::Diagonal(vec![0.4; 4]), matched).unwrap();
    flow(&mut gf, &mut target, 3000);
    all_close(gf.mean(), &mean, 1e-10);
    let c = gf.factor().covariance().unwrap();
    (0..4).for_each(|i| close(c[(i, i)], precision[(i, i)].recip(), 1e-10));
}

/// Blocks of one coordinate are the diagonal, one block is the whole.
#[test]
fn shapes_agree_where_they_mean_the_same() {
    let target = Banana::new(0.4, 0.7, 0.3, 1.0).unwrap();
    let one = |v: f64| Mat::full(1, 1, v);
    let root = normals(2, 2, 4);
    let pairs = [
        (
            Factor::Diagonal(vec![0.6, 1.2]),
            Factor::Blocks(vec![(vec![0], one(0.6)), (vec![1], one(1.2))]),
        ),
        (Factor::Whole(root.clone()), Factor::Blocks(vec![(vec![0, 1], root)])),
    ];
    for (a, b) in pairs {
        for mean_flow in [MeanFlow::Plain, MeanFlow::Natural] {
            let end = |factor: Factor| {
                let options = GfOptions { mean_flow, ..options() };
                let mut gf = Gf::new(vec![0.2, 0.5], factor, options).unwrap();
                flow(&mut gf, &mut { target }, 20);
                (gf.mean().to_vec(), gf.factor().covariance().unwrap())
            };
            let ((mean, c), (other, d)) = (end(a.clone()), end(b.clone()));
            all_close(&mean, &other, 1e-13);
            assert!(largest((c - d).as_ref()) < 1e-13);
        }
    }
}

/// The flow of Γ is −(∂F/∂Γ)ΓᵀΓ: F falls at the rate of its square in the metric, by central differences.
#[test]
fn the_factor_flows_down_the_free_energy() {
    let mut target = Banana::new(0.4, 0.7, 0.3, 1.0).unwrap();
    let e = particles::matched_normals(2, 9, &mut stream(3, "test")).unwrap();
    let gf = Gf::new(vec![0.2, 0.5], Factor::Whole(normals(2, 2, 4)), options()).unwrap();
    let own = gf.flow(&mut target, e.as_ref()).unwrap();
    let (Factor::Whole(gamma), Factor::Whole(flow)) = (gf.factor(), &own.factor) else {
        panic!("another shape")
    };
    let h = 1e-5;
    let mut slope = Mat::zeros(2, 2);
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut energy = |by: f64| {
            let mut moved = gamma.clone();
            moved[(i, j)] += by;
            let gf = Gf::new(vec![0.2, 0.5], Factor::Whole(moved), options()).unwrap();
            gf.flow(&mut target, e.as_ref()).unwrap().free_energy
        };
        slope[(i, j)] = (energy(h) - energy(-h)) / (2.0 * h);
    }
    let expected = product(slope.as_ref(), product(gamma.transpose(), gamma.as_ref()).as_ref());
    assert!(largest((&expected + flow).as_ref()) < 1e-8, "{expected:?} {flow:?}");
}

/// What vanishes at an optimum is ‖ḡ‖² + Σ_b ‖Ψ_bb − Π_b‖², whichever way the mean goes: against matrices of D×D.
#[test]
fn stationarity_is_of_the_gradient() {
    let mut target = Banana::new(0.4, 0.7, 0.3, 1.0).unwrap();
    let e = normals(2, 9, 7);
    let root = normals(2, 2, 4);
    let column = Mat::from_fn(2, 1, |i, _| root[(i, 0)]);
    let one = |v: f64| Mat::full(1, 1, v);
    for (factor, blocks) in [
        (Factor::Whole(root), vec![vec![0, 1]]),
        (Factor::Whole(column), vec![vec![0, 1]]),
        (Factor::Diagonal(vec![0.6, -1.2]), vec![vec![0], vec![1]]),
        (Factor::Blocks(vec![(vec![1], one(0.6)), (vec![0], one(1.2))]), vec![vec![1], vec![0]]),
    ] {
        let e = e.as_ref().subrows(0, factor.width());
        let dense = match &factor {
            Factor::Whole(own) => own.clone(),
            Factor::Diagonal(own) => Mat::from_fn(2, 2, |i, j| if i == j { own[i] } else { 0.0 }),
            Factor::Blocks(_) => Mat::from_fn(2, 2, |i, j| [[0.0, 1.2], [0.6, 0.0]][i][j]),
        };
        let x = product(dense.as_ref(), e);
        let x = Mat::from_fn(2, 9, |i, s| x[(i, s)] + [0.2, 0.5][i]);
        let own = Evaluation::of(&mut target, x.as_ref()).unwrap();
        let psi = product(own.gradient.as_ref(), product(dense.as_ref(), e).transpose())
            * faer::Scale(1.0 / 9.0);
        let mut expected: f64 = own.mean_gradient().iter().map(|g| g * g).sum();
        let gram = product(dense.transpose(), dense.as_ref());
        let inverse = Cholesky::new(gram.as_ref(), Jitter::Absolute(0.0), "ΓᵀΓ").unwrap().inverse();
        let on = product(product(dense.as_ref(), inverse.as_ref()).as_ref(), dense.transpose());
        for rows in &blocks {
            for (i, j) in rows.iter().flat_map(|i| rows.iter().map(move |j| (*i, *j))) {
                expected += (psi[(i, j)] - on[(i, j)]).powi(2);
            }
        }
        for mean_flow in [MeanFlow::Plain, MeanFlow::Natural] {
            let options = GfOptions { mean_flow, ..options() };
            let mut gf = Gf::new(vec![0.2, 0.5], factor.clone(), options).unwrap();
            close(gf.step_with(&mut target, e, 0).unwrap().stationarity, expected, 1e-12);
        }
    }
}

/// Fewer columns than rows: the widest directions of a Gaussian.
#[test]
fn low_ranks_find_the_widest_directions() {
    let (mean, sigma, mut target) = gaussian(5, 30.0, 2);
    let matched = GfOptions { matched: true, spread_rate: 0.05, mean_rate: 0.3, ..options() };
    let mut gf = Gf::new(vec![0.0; 5], Factor::Whole(normals(5, 2, 1)), matched).unwrap();
    flow(&mut gf, &mut target, 4000);
    all_close(gf.mean(), &mean, 1e-9);
    let (wide, _) = crate::linalg::symmetric_eigen(sigma.as_ref()).unwrap();
    let c = gf.factor().covariance().unwrap();
    let (own, _) = crate::linalg::symmetric_eigen(c.as_ref()).unwrap();
    all_close(&own[3..], &wide[3..], 1e-9);
    let expected: f64 = wide[3..].iter().map(|v| v.ln()).sum();
    close(gf.factor().log_determinant().unwrap(), expected, 1e-9);
}

/// Independent draws come near with falling rates, the same way for the same seed.
#[test]
fn draws_come_near_and_depend_only_on_the_seed() {
    let (mean, sigma, mut target) = gaussian(3, 4.0, 2);
    let schedule = Schedule::Power { after: 200.0, exponent: 0.8 };
    let run_with = |seed: u64, target: &mut dyn Target| {
        let own = GfOptions { schedule, seed, ..options() };
        let root = Mat::from_fn(3, 3, |i, j| if i == j { 0.6 } else { 0.0 });
        let mut gf = Gf::new(vec![0.0; 3], Factor::Whole(root), own).unwrap();
        flow(&mut gf, target, 6000);
        gf
    };
    let gf = run_with(1, &mut target);
    let off: f64 = gf.mean().iter().zip(&mean).map(|(a, b)| (a - b).powi(2)).sum();
    assert!(off.sqrt() < 0.05, "{off}");
    assert!(largest((gf.factor().covariance().unwrap() - &sigma).as_ref()) < 0.15);
    assert_eq!(run_with(1, &mut target).mean(), gf.mean());
    assert_ne!(run_with(2, &mut target).mean(), gf.mean());
}

#[test]
fn factors_that_do_not_fit() {
    let with = |factor: Factor| Gf::new(vec![0.0; 2], factor, options()).unwrap_err().to_string();
    assert!(with(Factor::Whole(Mat::zeros(2, 3))).contains("from 1 to 2 columns"));
    assert!(with(Factor::Whole(Mat::zeros(2, 2))).contains("lost its rank"));
    assert!(with(Factor::Whole(Mat::full(2, 2, f64::NAN))).contains("not finite"));
    assert!(with(Factor::Diagonal(vec![1.0])).contains("2 dimensions"));
    assert!(with(Factor::Diagonal(vec![1.0, 0.0])).contains("log|ΓᵀΓ|"));
    assert!(with(Factor::Blocks(vec![(vec![0], Mat::full(1, 1, 1.0))])).contains("in no block"));
    let few = GfOptions { matched: true, draws: 2, ..options() };
    let error = Gf::new(vec![0.0; 2], Factor::Diagonal(vec![1.0; 2]), few).unwrap_err();
    assert!(error.to_string().contains("too few"));
    let gf = Gf::new(vec![0.0; 2], Factor::Diagonal(vec![1.0; 2]), options()).unwrap();
    let error = gf.flow(&mut Banana::default(), Mat::zeros(3, 4).as_ref()).unwrap_err();
    assert!(error.to_string().contains("2 dimensions"));
}
