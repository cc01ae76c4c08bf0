//! Against dense matrices.

use super::{
    Accum, Cholesky, Jitter, Mat, Pattern, SparseCholesky, gemm, par_for, product, solve_lower,
};
use crate::error::Error;
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// Lists of rows in a plane that are near each other, some of one row, and a matrix that is a sum of one for each list.
struct Problem {
    cliques: Vec<Vec<u32>>,
    pattern: Arc<Pattern>,
    entries: Vec<f64>,
    dense: Mat<f64>,
}

fn problem(size: usize, most: usize, seed: u64) -> Problem {
    let mut rng = rng::stream(seed, "sparse");
    let place: Vec<[f64; 2]> =
        (0..size).map(|_| [rng::uniform(&mut rng), rng::uniform(&mut rng)]).collect();
    let near = |i: usize| {
        let away =
            |j: &u32| (0..2).map(|q| (place[*j as usize][q] - place[i][q]).powi(2)).sum::<f64>();
        let mut all: Vec<u32> = (0..size as u32).collect();
        all.sort_by(|a, b| away(a).total_cmp(&away(b)));
        all.truncate(1 + (i * 7) % most);
        all.sort_unstable();
        all
    };
    let cliques: Vec<Vec<u32>> = (0..size).map(near).collect();
    let pattern = Arc::new(Pattern::of_cliques(size, cliques.iter().map(|own| &own[..])).unwrap());
    let (mut entries, mut dense) = (vec![0.0; pattern.entries()], Mat::zeros(size, size));
    for clique in &cliques {
        let n = clique.len();
        let root: Mat<f64> = Mat::from_fn(n, n, |_, _| StandardNormal.sample(&mut rng));
        let own = product(root.as_ref(), root.transpose());
        pattern.add(&mut entries, clique, own.as_ref());
        for (i, a) in clique.iter().enumerate() {
            clique
                .iter()
                .enumerate()
                .for_each(|(j, b)| dense[(*a as usize, *b as usize)] += own[(i, j)]);
        }
    }
    for i in 0..size {
        entries[pattern.diagonal()[i]] += 0.3;
        dense[(i, i)] += 0.3;
    }
    Problem { cliques, pattern, entries, dense }
}

fn inverse(a: &Mat<f64>) -> Mat<f64> {
    let factor = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
    let mut root = Mat::identity(a.nrows(), a.nrows());
    solve_lower(factor.l.as_ref(), root.as_mut(), par_for(a.nrows()));
    product(root.transpose(), root.as_ref())
}

#[test]
fn factors_and_selected_inverses_are_those_of_dense_matrices() {
    for (size, most) in [(1, 1), (2, 2), (40, 1), (90, 6), (260, 25), (150, 150)] {
        let own = problem(size, most, size as u64);
        let factor = SparseCholesky::new(&own.pattern, &own.entries, "A").unwrap();
        let dense = Cholesky::new(own.dense.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
        let log_det: f64 = 2.0 * (0..size).map(|i| dense.l[(i, i)].ln()).sum::<f64>();
        assert!((factor.log_det() - log_det).abs() < 1e-9 * (1.0 + log_det.abs()), "{size}");
        let right = inverse(&own.dense);
        let scale = right.norm_max();
        let selected = factor.inverse(&|| Ok(())).unwrap();
        for (i, found) in selected.diagonal().iter().enumerate() {
            assert!((found - right[(i, i)]).abs() < 1e-10 * scale, "{size}, {i}");
        }
        for clique in &own.cliques {
            let mut found = Mat::zeros(clique.len(), clique.len());
            selected.of_clique(clique, found.as_mut());
            for (i, a) in clique.iter().enumerate() {
                for (j, b) in clique.iter().enumerate() {
                    let right = right[(*a as usize, *b as usize)];
                    assert!((found[(i, j)] - right).abs() < 1e-10 * scale, "{size}");
                }
            }
        }
        let b = Mat::from_fn(size, 3, |i, j| ((i + 5 * j) as f64).sin());
        let mut x = b.clone();
        factor.solve(&mut x);
        assert!((&x - product(right.as_ref(), b.as_ref())).norm_max() < 1e-9 * scale * b.norm_l2());
        let w = factor.whitened(b.as_ref());
        let forms = product(w.transpose(), w.as_ref());
        assert!((&forms - product(b.transpose(), x.as_ref())).norm_max() < 1e-9 * forms.norm_max());
        let mut work = Mat::zeros(size, 3);
        let some =
            |j: usize| (j as u32..size as u32).step_by(9).map(move |i| (i, 0.4 + f64::from(i % 5)));
        let all: Vec<Vec<(u32, f64)>> = (0..3).map(|j| some(j).collect()).collect();
        for (own, found) in all.iter().zip(factor.forms(&all, &mut work)) {
            let mut alone = Mat::<f64>::zeros(size, 1);
            own.iter().for_each(|(i, own)| alone[(*i as usize, 0)] = *own);
            let form = product(alone.transpose(), product(right.as_ref(), alone.as_ref()).as_ref());
            assert!((found - form[(0, 0)]).abs() <= 1e-9 * form[(0, 0)], "{size}");
        }
        assert!(work.norm_max() == 0.0, "what was worked with is left");
        // of the identity the draws are a root of the inverse
        let root = factor.drawn(Mat::identity(size, size));
        let mut squared = Mat::zeros(size, size);
        gemm(squared.as_mut(), Accum::Replace, root.as_ref(), root.transpose(), 1.0, par_for(size));
        assert!((&squared - &right).norm_max() < 1e-10 * scale, "{size}");
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_refused() {
    let mut own = problem(60, 5, 3);
    own.entries[own.pattern.diagonal()[17]] -= 1e3;
    let error = SparseCholesky::new(&own.pattern, &own.entries, "A").unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite { pivot: 17, .. }), "{error}");
    own.entries[own.pattern.diagonal()[17]] = f64::NAN;
    assert!(SparseCholesky::new(&own.pattern, &own.entries, "A").is_err());
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let own = problem(700, 60, 9);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let factor = SparseCholesky::new(&own.pattern, &own.entries, "A").unwrap();
            (factor.log_det().to_bits(), factor.inverse(&|| Ok(())).unwrap().diagonal())
        })
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one.0, three.0);
    assert!(one.1.iter().zip(&three.1).all(|(a, b)| a.to_bits() == b.to_bits()));
}
