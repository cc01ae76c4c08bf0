use super::test_data::{bits, in_pools, uniform};
use super::*;
use proptest::prelude::*;

/// All selectors that choose among rows or clusters of them, on the same rows, with a squared-exponential kernel.
fn each(x: &Mat<f64>, m: usize, seed: u64) -> Vec<Result<Selected>> {
    let n = x.nrows();
    let diag = vec![1.0; n];
    let y = Mat::from_fn(n, 1, |i, _| (i as f64).sin());
    [
        Selection::Random,
        Selection::KMeans,
        Selection::GreedyVariance,
        Selection::GreedyElbo,
        Selection::KDpp,
    ]
    .iter()
    .map(|selection| {
        let square = |i: usize, j: usize| {
            (0..x.ncols()).map(|d| (x[(i, d)] - x[(j, d)]).powi(2)).sum::<f64>()
        };
        let mut columns = |rows: &[usize]| {
            Ok(Mat::from_fn(n, rows.len(), |i, j| (-50.0 * square(i, rows[j])).exp()))
        };
        let targets = Some(Targets { residuals: y.as_ref(), noise: 0.2 });
        let prior = Prior { diag: &diag, columns: &mut columns, targets };
        selection.choose(x.as_ref(), m, seed, Some(prior))
    })
    .collect()
}

#[test]
fn names_are_read_and_written() {
    for name in Selection::names() {
        assert_eq!(name.parse::<Selection>().unwrap().to_string(), name);
    }
    assert_eq!(Selection::default(), Selection::KMeans);
    assert_eq!(Selection::Given(Mat::zeros(1, 1)).to_string(), "given");
    assert_eq!(
        "kmean".parse::<Selection>().unwrap_err().to_string(),
        "unknown selection of inducing points `kmean`; did you mean `kmeans`? \
         Possible are `random`, `kmeans`, `greedy-variance`, `greedy-elbo`, `k-dpp`, `grid`, `oips`"
    );
    assert!("".parse::<Selection>().is_err());
}

#[test]
fn one_row_is_enough() {
    for d in [1, 3] {
        let x = uniform(1, 1, d);
        for m in [1, 5] {
            for selected in each(&x, m, 1) {
                let selected = selected.unwrap();
                assert_eq!(bits(&selected.points), bits(&x));
                assert_eq!((selected.requested, selected.note.is_some()), (m, m > 1));
            }
        }
    }
}

#[test]
fn more_points_than_rows_gives_the_rows() {
    let x = uniform(2, 7, 2);
    for selected in each(&x, 9, 1) {
        let Selected { points, requested, note, .. } = selected.unwrap();
        assert_eq!((points.nrows(), requested), (7, 9));
        assert!(note.unwrap().starts_with("9 inducing points were asked for, but"));
        assert_eq!(distinct_rows(points.as_ref(), 9).len(), 7);
    }
}

#[test]
fn duplicates_are_passed_over() {
    let base = uniform(3, 10, 2);
    // Zeros of both signs are the same value.
    let x = Mat::from_fn(50, 2, |i, j| match (i % 10, j, i < 25) {
        (0, 0, true) => 0.0,
        (0, 0, false) => -0.0,
        (row, ..) => base[(row, j)],
    });
    for m in [9, 10, 11] {
        for selected in each(&x, m, 1) {
            let selected = selected.unwrap();
            assert_eq!(selected.points.nrows(), m.min(10));
            assert_eq!(distinct_rows(selected.points.as_ref(), m).len(), m.min(10));
            assert_eq!(selected.note.is_some(), m > 10);
        }
    }
    let constant = Mat::from_fn(20, 3, |_, j| j as f64);
    for selected in each(&constant, 4, 1) {
        let selected = selected.unwrap();
        assert_eq!(bits(&selected.points), bits(&Mat::from_fn(1, 3, |_, j| j as f64)));
        assert!(selected.note.is_some());
    }
}

#[test]
fn random_takes_rows_and_every_seed_others() {
    let x = uniform(4, 200, 2);
    let rows: HashSet<_> = (0..200).map(|i| key(x.as_ref(), i)).collect();
    let draw = |seed| Selection::Random.choose(x.as_ref(), 50, seed, None).unwrap().points;
    let points = draw(1);
    assert!((0..50).all(|i| rows.contains(&key(points.as_ref(), i))));
    assert_eq!(bits(&draw(1)), bits(&points));
    assert_ne!(bits(&draw(2)), bits(&points));
}

#[test]
fn random_is_uniform() {
    let x = Mat::from_fn(5, 1, |i, _| i as f64);
    let mut counts = [0; 5];
    for seed in 0..2000 {
        let points = Selection::Random.choose(x.as_ref(), 2, seed, None).unwrap().points;
        (0..2).for_each(|i| counts[points[(i, 0)] as usize] += 1);
    }
    // Binomial(2000, 2/5) has standard deviation 22.
    assert!(counts.iter().all(|c| (700..900).contains(c)), "{counts:?}");
}

#[test]
fn no_selector_depends_on_threads() {
    let x = uniform(5, 500, 3);
    let all = in_pools(|| {
        each(&x, 20, 1).into_iter().map(|s| bits(&s.unwrap().points)).collect::<Vec<_>>()
    });
    assert!(all.iter().all(|one| *one == all[0]));
}

#[test]
fn unusable_data_are_sentences() {
    let message = |x: &Mat<f64>, m| -> Vec<String> {
        each(x, m, 1).into_iter().map(|s| s.unwrap_err().to_string()).collect()
    };
    for error in message(&Mat::zeros(0, 2), 3) {
        assert_eq!(error, "inducing points need data, but inputs are 0×2");
    }
    for error in message(&Mat::zeros(2, 0), 3) {
        assert_eq!(error, "inducing points need data, but inputs are 2×0");
    }
    for error in message(&uniform(6, 3, 2), 0) {
        assert_eq!(error, "at least one inducing point is needed, found 0");
    }
    let mut x = uniform(7, 3, 2);
    x[(2, 1)] = f64::NAN;
    for error in message(&x, 1) {
        assert_eq!(error, "inputs, row 3, column 2, is not finite (NaN)");
    }
    let x = uniform(8, 3, 2);
    for selection in [Selection::GreedyVariance, Selection::GreedyElbo, Selection::KDpp] {
        let error = selection.choose(x.as_ref(), 2, 1, None).unwrap_err().to_string();
        assert!(error.contains(&format!("`{selection}` needs a kernel")), "{error}");
    }
    let mut columns = |rows: &[usize]| Ok(Mat::full(3, rows.len(), 1.0));
    let prior = Prior { diag: &[1.0; 3], columns: &mut columns, targets: None };
    let error = Selection::GreedyElbo.choose(x.as_ref(), 2, 1, Some(prior)).unwrap_err();
    assert!(error.to_string().contains("Gaussian noise"), "{error}");
}

#[test]
fn given_points_are_checked_and_kept() {
    let x = uniform(9, 6, 2);
    let choose = |points: Mat<f64>| Selection::Given(points).choose(x.as_ref(), 99, 1, None);
    let points = uniform(10, 4, 2);
    let selected = choose(points.clone()).unwrap();
    assert_eq!(selected, Selected { points, requested: 4, note: None, trace_left: None });
    let equal = choose(Mat::from_fn(3, 2, |_, _| 1.0)).unwrap();
    assert_eq!(equal.note.unwrap(), "only 1 of the 3 given inducing points are distinct");
    assert_eq!(equal.points.nrows(), 3);
    assert!(matches!(choose(Mat::zeros(4, 3)), Err(Error::Shape { .. })));
    assert!(matches!(choose(Mat::zeros(0, 2)), Err(Error::Invalid(_))));
    assert!(matches!(choose(Mat::full(1, 2, f64::INFINITY)), Err(Error::NonFinite { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Awkward shapes and scales, with many ties: distinct points, never more than asked for, all of
    /// the distinct rows if they are few, no panic.
    #[test]
    fn awkward_data(
        n in 1_usize..60,
        d in 1_usize..4,
        m in 1_usize..70,
        levels in 1_u32..40,
        exponent in -12_i32..=12,
        seed: u64,
    ) {
        let x = uniform(seed, n, d);
        let scale = 10_f64.powi(exponent);
        let x = Mat::from_fn(n, d, |i, j| scale * (x[(i, j)] * f64::from(levels)).floor());
        let distinct = distinct_rows(x.as_ref(), n).len();
        for (which, selected) in each(&x, m, seed).into_iter().enumerate() {
            let Selected { points, requested, note, trace_left } = selected.unwrap();
            prop_assert_eq!(requested, m);
            prop_assert!(points.nrows() >= 1 && points.nrows() <= m.min(distinct));
            prop_assert_eq!(distinct_rows(points.as_ref(), m).len(), points.nrows());
            prop_assert_eq!(note.is_some(), points.nrows() < m);
            prop_assert_eq!(trace_left.is_some(), which == 2 || which == 3);
            if which == 0 || which == 4 {
                prop_assert_eq!(points.nrows(), m.min(distinct));
            }
        }
    }
}
