//! The gradient of the bound in L, for where an optimiser moves L as it does all else (van der Wilk, John,
//! Artemev & Hensman 2022), and for tests.

use super::root::Root;
use super::{LSpace, Preconditioner};
use crate::linalg::{Accum, Mat, MatRef, column, gemm, mirror_lower, par_for, product, symmetrise};

impl LSpace {
    /// Computes L̄, for comparison with natural gradients: not for the hot path.
    pub(super) fn pull_root(
        &self,
        kappa: f64,
        phi_alpha: MatRef<f64>,
        gram: MatRef<f64>,
        out: &mut [f64],
    ) {
        let (m, latents) = (self.mean.nrows(), self.mean.ncols());
        let (par, half) = (par_for(m), 0.5 * kappa * latents as f64);
        let e = self.inversion.residual();
        let less = Mat::from_fn(m, m, |i, j| f64::from(u8::from(i == j)) - e[(i, j)]);
        let more = Mat::from_fn(m, m, |i, j| f64::from(u8::from(i == j)) + e[(i, j)]);
        let mut g = gram.to_owned();
        mirror_lower(g.as_mut());
        let mut j = Mat::zeros(m, m);
        self.add_j(j.as_mut(), 1.0);
        mirror_lower(j.as_mut());
        let mut j_bar = &less * faer::Scale(half);
        gemm(
            j_bar.as_mut(),
            Accum::Add,
            self.mean.as_ref(),
            self.mean.transpose(),
            -0.5 * kappa,
            par,
        );
        symmetrise(j_bar.as_mut());
        let mut x = product(phi_alpha, self.mean.transpose());
        x -= product(g.as_ref(), less.as_ref()) * faer::Scale(2.0);
        x += product(more.as_ref(), self.core.as_ref()) * faer::Scale(2.0);
        x += product(j.as_ref(), j_bar.as_ref()) * faer::Scale(2.0);
        x += match self.preconditioner {
            Preconditioner::Identity => {
                product(self.h.as_ref(), self.mean.transpose()) * faer::Scale(-1.0)
            }
            Preconditioner::Naive => product(self.w.as_ref(), self.h.transpose()),
            Preconditioner::Inverse => {
                product(self.w.as_ref(), product(less.as_ref(), self.h.as_ref()).transpose())
            }
        };
        let Root::Product(l) = &self.root else { return out.fill(0.0) };
        let mut bar = Mat::new();
        self.root.solve(x.as_ref(), true, &mut bar);
        let mut rest = out;
        for j in 0..m {
            let (own, tail) = rest.split_at_mut(m - j);
            own.copy_from_slice(&column(bar.as_ref(), j)[j..]);
            own[0] -= kappa * latents as f64 / l[(j, j)];
            rest = tail;
        }
    }
}
