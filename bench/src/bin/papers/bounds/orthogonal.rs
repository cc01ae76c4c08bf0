//! ODVGP and SOLVE-GP as an SVGP whose q(u) has a restricted form.
//!
//! SOLVE-GP (Shi, Titsias & Mnih 2020, Eqs. 7 to 11) has two kinds of inducing variables: u at M points, and v at others, of
//! what u leaves of the process, with covariance C_vv = K_vv − K_vu K_uu⁻¹ K_uv. They are independent a priori, and q(u, v) is
//! q(u) q(v). With the points of u first, the lower root of the covariance of all values f(Z) is [[L_u, 0], [K_vu L_u⁻ᵀ, L_C]],
//! where L_C L_Cᵀ = C_vv. So whitened values of f(Z) are L_u⁻¹u and L_C⁻¹v, one above the other, and SOLVE-GP is the SVGP whose
//! whitened covariance is block-diagonal. ODVGP (Salimbeni et al. 2018) is SOLVE-GP with the covariance of v that it has a priori
//! (Shi, Titsias & Mnih 2020, §3.2): the second block is I.

use sparsegp::model::Model;
use sparsegp::params::{Role, Transform};

/// Which entries of the whitened root of q(u) are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All.
    Free,
    /// Two blocks: SOLVE-GP.
    Orthogonal,
    /// The first block; the second stays I: ODVGP.
    Decoupled,
}

impl Form {
    /// Returns whether it trains entry (i, j) of the root, of which the first M rows are the first block's.
    fn trains(self, m: usize, (i, j): (usize, usize)) -> bool {
        let first = i < m;
        match self {
            Self::Free => true,
            Self::Orthogonal => first || j >= m,
            Self::Decoupled => first,
        }
    }
}

/// Returns factors of Adam's rate for the free numbers of a model whose q is the whitened prior: 0 for entries of its root that
/// the form does not train, and else those that the library would take, where lengthscales begin at 1.
pub fn rates(model: &Model, m: usize, form: Form) -> Vec<f64> {
    let mut all = Vec::new();
    for (path, param) in model.params().into_iter().filter(|(_, param)| !param.frozen) {
        if path == "q.sqrt" {
            let points = model.q.as_ref().map_or(0, |q| q.points());
            let lower = (0..points).flat_map(|j| (j..points).map(move |i| (i, j)));
            all.extend(lower.map(|at| f64::from(u8::from(form.trains(m, at)))));
            continue;
        }
        all.extend(param.value().iter().map(|value| match (param.role(), param.transform()) {
            (Role::Points, _) | (_, Transform::Identity) => 1.0,
            (_, transform) => (value / transform.slope_at(*value)).clamp(1.0, 10.0),
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Form, rates};
    use sparsegp::engine::Cpu;
    use sparsegp::fit::{BatchOptions, Dataset, FitOptions, fit, prepare};
    use sparsegp::kernels::Tape;
    use sparsegp::linalg::{Accum, Cholesky, Jitter, Mat, MatRef, Par, gemm};
    use sparsegp::optim::AdamOptions;
    use sparsegp::train::StochasticOptions;

    fn times(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
        let mut c = Mat::zeros(a.nrows(), b.ncols());
        gemm(c.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
        c
    }

    fn minus(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
        Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] - b[(i, j)])
    }

    /// The lower Cholesky factor, column by column.
    fn lower(a: &Mat<f64>) -> Mat<f64> {
        let n = a.nrows();
        let mut l = Mat::zeros(n, n);
        for j in 0..n {
            for i in j..n {
                let below: f64 = (0..j).map(|k| l[(i, k)] * l[(j, k)]).sum();
                let left: f64 = a[(i, j)] - below;
                l[(i, j)] = if i == j { left.sqrt() } else { left / l[(j, j)] };
            }
        }
        l
    }

    /// Predictions by the formulas of the paper, from what is trained of q(u) and q(v): Eqs. 9 and 10.
    fn of_the_paper(fitted: &sparsegp::fit::Fitted, x: &Mat<f64>, m: usize) -> [Vec<f64>; 2] {
        let model = &fitted.model;
        let z = model.inducing_points().expect("points");
        let k = |a: MatRef<f64>, b: MatRef<f64>| {
            let mut out = Mat::zeros(a.nrows(), b.nrows());
            model.kernel().evaluate(a, Some(b), out.as_mut(), &mut Tape::off());
            out
        };
        let (u, v) = (z.as_ref().subrows(0, m), z.as_ref().subrows(m, z.nrows() - m));
        let factor =
            |a: &Mat<f64>| Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "a").expect("a");
        let of_u = factor(&k(u, u));
        // of the orthogonal process: c(a, b) = k(a, b) − k(a, u) K_uu⁻¹ k(u, b)
        let c = |a: MatRef<f64>, b: MatRef<f64>| {
            minus(&k(a, b), &times(k(a, u).as_ref(), of_u.solve(k(u, b).as_ref()).as_ref()))
        };
        let cvv = c(v, v);
        let of_v = factor(&cvv);
        let q = model.q.as_ref().expect("a q");
        let (root, mean) = (q.root(0), q.first.matrix());
        let part = |at: usize, len: usize, lower: Mat<f64>| {
            let mean = times(lower.as_ref(), mean.subrows(at, len));
            let root = times(lower.as_ref(), root.as_ref().submatrix(at, at, len, len));
            (mean, times(root.as_ref(), root.as_ref().transpose()))
        };
        let (mu, su) = part(0, m, lower(&k(u, u)));
        let (mv, sv) = part(m, z.nrows() - m, lower(&cvv));
        let x = x.as_ref();
        let (au, av) = (of_u.solve(k(u, x).as_ref()), of_v.solve(c(v, x).as_ref()));
        let (cxx, dv) = (c(x, x), minus(&sv, &cvv));
        let quadratic = |a: &Mat<f64>, s: &Mat<f64>, i: usize| -> f64 {
            let sa = times(s.as_ref(), a.as_ref());
            (0..a.nrows()).map(|r| a[(r, i)] * sa[(r, i)]).sum()
        };
        let linear = |a: &Mat<f64>, b: &Mat<f64>, i: usize| -> f64 {
            (0..a.nrows()).map(|r| a[(r, i)] * b[(r, 0)]).sum()
        };
        let means = (0..x.nrows()).map(|i| linear(&au, &mu, i) + linear(&av, &mv, i));
        let variances =
            (0..x.nrows()).map(|i| cxx[(i, i)] + quadratic(&au, &su, i) + quadratic(&av, &dv, i));
        [means.collect(), variances.collect()]
    }

    #[test]
    fn predictions_are_those_of_the_papers_formulas() {
        let n = 60;
        let x = Mat::from_fn(n, 2, |i, j| ((i * (3 + 4 * j)) % 23) as f64 / 7.0);
        let y = Mat::from_fn(n, 1, |i, _| (2.0 * x[(i, 0)]).sin() - 0.4 * x[(i, 1)]);
        let dataset = Dataset::from_arrays(x.clone(), y, false).expect("rows");
        let m = 5;
        for form in [Form::Orthogonal, Form::Decoupled] {
            let training = StochasticOptions {
                epochs: Some(40),
                adam: AdamOptions { learning_rate: 0.05, ..AdamOptions::default() },
                natural: None,
                ..StochasticOptions::default()
            };
            let mut options = FitOptions {
                kernel: "matern32(variance=1.7, lengthscales=1.3, ard=false)".into(),
                method: "svgp".into(),
                inducing: Some(2 * m),
                pilot: 0,
                jitter: Jitter::Relative(1e-13),
                mean: Some("zero".into()),
                set: vec![("likelihood.variance".into(), vec![0.3])],
                batches: Some(BatchOptions { size: 20, training }),
                ..FitOptions::default()
            };
            let engine = Cpu::default();
            let start = prepare(&dataset, &options, &engine, &mut ()).expect("a start").model;
            let factors = rates(&start, m, form);
            assert_eq!(factors.len(), start.free_count());
            options.batches.as_mut().expect("batches").training.adam.multipliers = factors;
            let fitted = fit(&dataset, &options, &engine, &mut ()).expect("a fit");
            let root = fitted.model.q.as_ref().expect("a q").root(0);
            let moved = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>| -> f64 {
                let all = rows.flat_map(|i| cols.clone().map(move |j| (i, j)));
                all.map(|(i, j)| (root[(i, j)] - f64::from(u8::from(i == j))).abs()).sum()
            };
            assert_eq!(moved(m..2 * m, 0..m), 0.0, "the blocks are joined");
            assert!(moved(0..m, 0..m) > 0.5, "q(u) was not trained");
            assert_eq!(moved(m..2 * m, m..2 * m) > 0.0, form == Form::Orthogonal);
            let new = Mat::from_fn(7, 2, |i, j| 0.4 * i as f64 - 0.2 * j as f64);
            let (mean, variance) = fitted.posterior.predict_f(new.as_ref()).expect("predictions");
            let [means, variances] = of_the_paper(&fitted, &new, m);
            for i in 0..7 {
                assert!((mean[(i, 0)] - means[i]).abs() < 1e-7, "{} {}", mean[(i, 0)], means[i]);
                assert!((variance[(i, 0)] - variances[i]).abs() < 1e-7);
            }
        }
    }
}
