use super::*;
use crate::inverse_free::Adjoints;
use crate::inverse_free::traces::probes;
use crate::linalg::Cholesky;
use crate::rng;

struct Draw {
    kuu: Mat<f64>,
    lambda: Vec<f64>,
    l: Mat<f64>,
    m: Mat<f64>,
    phi_alpha: Mat<f64>,
    gram: Mat<f64>,
}

fn draw(size: usize, latents: usize, seed: u64) -> Draw {
    let mut generator = rng::stream(seed, "a problem");
    let mut next = || 2.0 * rng::uniform(&mut generator) - 1.0;
    let kuu = Mat::from_fn(size, size, |i, j| {
        let d = (i as f64 - j as f64) * 0.4;
        1.3 * (-0.5 * d * d).exp()
    });
    let lambda: Vec<f64> = (0..size).map(|_| 0.05 + 0.3 * next().abs()).collect();
    let tilde = Mat::from_fn(size, size, |i, j| kuu[(i, j)] + if i == j { lambda[i] } else { 0.0 });
    let exact = Cholesky::inverse_root(tilde.as_ref(), Jitter::Absolute(0.0), "K̃").unwrap();
    let l = Mat::from_fn(size, size, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => exact[(i, j)] * (1.0 + 0.15 * next()),
        std::cmp::Ordering::Greater => exact[(i, j)] + 0.05 * next(),
    });
    let m = Mat::from_fn(size, latents, |_, _| next());
    let phi_alpha = Mat::from_fn(size, latents, |_, _| next());
    let half = Mat::from_fn(size, size, |_, _| next());
    let gram = &half + half.transpose();
    Draw { kuu, lambda, l, m, phi_alpha, gram }
}

impl Draw {
    fn tilde(&self) -> Tilde<'_> {
        Tilde { kuu: self.kuu.as_ref(), jitter: 0.0, lambda: &self.lambda }
    }

    fn at(&self, estimate: Estimate, xi: Mat<f64>) -> LSpace {
        let mut own = LSpace::default();
        own.set_probes(estimate, |out| *out = xi);
        let inverse = Preconditioner::Inverse;
        own.relaxed(self.tilde(), self.l.as_ref(), self.m.as_ref(), inverse);
        own
    }

    /// KL, and then K̄uu, m̃̄ and λ̄ one after the other.
    fn all(&self, own: &mut LSpace) -> Vec<f64> {
        let size = self.lambda.len();
        let mut kuu = Mat::new();
        let mut mean = vec![0.0; size * self.m.ncols()];
        let mut lambda = vec![0.0; size];
        let out = Adjoints { kuu: &mut kuu, mean: &mut mean, lambda: &mut lambda, root: None };
        own.pull(-0.7, self.phi_alpha.as_ref(), self.gram.as_ref(), out);
        let mut all = vec![own.kl()];
        (0..size).for_each(|j| all.extend_from_slice(column(kuu.as_ref(), j)));
        all.extend(mean);
        all.extend(lambda);
        all
    }
}

#[test]
fn estimates_are_unbiased_in_value_and_gradient() {
    let problem = draw(7, 2, 1);
    let exact = problem.all(&mut problem.at(Estimate::LSpace, Mat::new()));
    let mut spreads = Vec::new();
    for estimate in [Estimate::Plain, Estimate::LSpace] {
        let count = 2000;
        let (mut sums, mut squares) = (vec![0.0; exact.len()], vec![0.0; exact.len()]);
        for draw in 0..count {
            let mut xi = Mat::new();
            probes(7, 2, 5, draw, &mut xi);
            let own = problem.all(&mut problem.at(estimate, xi));
            for (at, v) in own.iter().enumerate() {
                sums[at] += v;
                squares[at] += v * v;
            }
        }
        let n = count as f64;
        let mut beyond = 0;
        for (at, exact) in exact.iter().enumerate() {
            let mean = sums[at] / n;
            let error = ((squares[at] / n - mean * mean).max(0.0) / n).sqrt();
            // four standard errors, and rounding where there is no variance
            let room = 4.0 * error + 1e-9 * (1.0 + exact.abs());
            beyond += usize::from((mean - exact).abs() > room);
        }
        assert_eq!(beyond, 0, "{estimate:?}");
        spreads.push(squares[0] / n - (sums[0] / n).powi(2));
    }
    // the estimate in L-space has by far the smaller variance
    assert!(spreads[1] < 0.3 * spreads[0], "{spreads:?}");
}

#[test]
fn in_l_space_the_variance_vanishes_with_the_residual() {
    let mut problem = draw(7, 1, 4);
    let mut inversion = Inversion::default();
    let mut own = LSpace::default();
    own.relaxed(problem.tilde(), problem.l.as_ref(), problem.m.as_ref(), Preconditioner::Inverse);
    let tilde = own.tilde().to_owned();
    inversion.solve(tilde.as_ref(), &mut problem.l, &SolverOptions::strict(), None).unwrap();
    let exact = problem.at(Estimate::LSpace, Mat::new()).kl();
    for (estimate, holds) in [(Estimate::LSpace, true), (Estimate::Plain, false)] {
        let mut worst = 0.0_f64;
        for number in 0..20 {
            let mut xi = Mat::new();
            probes(7, 1, 9, number, &mut xi);
            worst = worst.max((problem.at(estimate, xi).kl() - exact).abs());
        }
        assert_eq!(worst < 1e-10, holds, "{estimate:?}: {worst}");
    }
}

/// The slope in κ is the gradient of the KL divergence: the way back is linear in what it is given.
#[test]
fn the_way_back_is_linear_in_the_slopes() {
    let problem = draw(6, 2, 8);
    let zero = |rows: usize, cols: usize| Mat::<f64>::zeros(rows, cols);
    let pull = |kappa: f64, phi_alpha: &Mat<f64>, gram: &Mat<f64>| {
        let mut own = problem.at(Estimate::LSpace, Mat::new());
        let (mut kuu, mut mean, mut lambda) = (Mat::new(), vec![0.0; 12], vec![0.0; 6]);
        let mut root = vec![0.0; 21];
        let out =
            Adjoints { kuu: &mut kuu, mean: &mut mean, lambda: &mut lambda, root: Some(&mut root) };
        own.pull(kappa, phi_alpha.as_ref(), gram.as_ref(), out);
        let mut all: Vec<f64> = (0..6).flat_map(|j| column(kuu.as_ref(), j).to_vec()).collect();
        all.extend(mean.iter().chain(&lambda).chain(&root));
        all
    };
    let all = pull(-1.3, &problem.phi_alpha, &problem.gram);
    let of_rows = pull(0.0, &problem.phi_alpha, &problem.gram);
    let of_kl = pull(1.0, &zero(6, 2), &zero(6, 6));
    for ((all, rows), kl) in all.iter().zip(&of_rows).zip(&of_kl) {
        assert!((all - (rows - 1.3 * kl)).abs() < 1e-11 * (1.0 + all.abs()), "{all} {rows} {kl}");
    }
}
