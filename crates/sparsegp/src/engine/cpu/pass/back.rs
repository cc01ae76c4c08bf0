//! The way back from slopes of the rows to kernels, means and inducing points.

use super::squares::squares;
use super::{Lane, ProcessScratch, Scratch, each, sum_columns};
use crate::data::Rows;
use crate::engine::{Factors, Job, Process, Spread, Through, Want};
use crate::kernels::Cotangents;
use crate::linalg::{
    Accum, MatRef, Par, add_scaled_rows, column, gemm, sized, times_triangular, zeroed,
};

/// The way back: K̄uf, and the kernels' and mean's gradients.
pub(super) fn back<'r>(
    blocks: &mut [Scratch],
    lane: &mut Lane,
    job: &Job<'_>,
    part: &(impl Fn(usize) -> Rows<'r> + Sync),
    par: Par,
) {
    let equal = job.pointwise.equal_slopes();
    let start = if lane.used { Accum::Add } else { Accum::Replace };
    let mut first = 0;
    for (at, (lane, process)) in lane.processes.iter_mut().zip(job.processes).enumerate() {
        debug_assert!(equal || !matches!(process.spread, Spread::Through(_)), "c is b");
        let l = process.mean.ncols();
        each(blocks, par, |_, s| {
            let (a, b) = (s.a.as_ref().subcols(first, l), s.b.as_ref().subcols(first, l));
            sum_columns(&mut s.weights, if equal { &s.b } else { &s.c }, first, l);
            sum_columns(&mut s.other_weights, &s.b, first, l);
            s.processes[at].slopes_of_features(process, a, (b, &s.other_weights), &s.weights);
        });
        if let Want::Adjoints { statistics } = job.want.of(process.spread) {
            let counting = job.counting(process, first).filter(|_| !statistics);
            for (j, sum) in counting.zip(&mut lane.squares) {
                squares(blocks, (at, process), Some(j), (sum, start), job.scale, par);
            }
            if let Some(psi) = lane.squares.last_mut() {
                squares(blocks, (at, process), None, (psi, start), job.scale, par);
            }
        }
        each(blocks, par, |index, s| {
            let own = &mut s.processes[at];
            own.slopes_of_covariances(process);
            zeroed(&mut own.kernel, process.kernel.num_params());
            sized(&mut own.z, process.z.nrows(), process.z.ncols());
            own.z.fill(0.0);
            let mut sinks =
                Cotangents { params: &mut own.kernel, x: None, z: Some(own.z.as_mut()) };
            let (x, z) = (part(index).x, Some(process.z));
            let (k, bar) = (own.k.as_ref(), own.other.as_mut());
            process.kernel.vjp(x, z, k, bar, &mut own.tape, &mut sinks);
            process.kernel.diag_vjp(x, &s.weights, &mut sinks);
        });
        first += l;
    }
    each(blocks, par, |index, s| {
        zeroed(&mut s.mean, job.mean_params());
        job.mean.vjp(part(index).x, s.a.as_ref(), &mut s.mean);
    });
}

impl ProcessScratch {
    /// Φ̄ = Σ {m aᵀ + 2 RRᵀΦ diag(b)} − 2 Φ diag(Σc), with E for RRᵀ where it is shared; K̄uf itself for
    /// [`Spread::Through`]. a and b are B×l, and beside b is its sum for every row. 2 diag(b) ΦᵀR takes the place of ΦᵀR.
    fn slopes_of_features(
        &mut self,
        process: &Process<'_>,
        a: MatRef<f64>,
        (b, sum): (MatRef<f64>, &[f64]),
        c: &[f64],
    ) {
        let mean = process.mean;
        let bar = &mut self.other;
        match process.spread {
            Spread::Products(Factors::Double(..)) => return self.double.slopes(a, mean, sum, c),
            Spread::Products(Factors::Single(..)) => return self.single.slopes(a, mean, sum, c),
            Spread::Through(Through { weights, .. }) => {
                sized(bar, a.nrows(), mean.nrows());
                gemm(bar.as_mut(), Accum::Replace, a, weights.transpose(), 1.0, Par::Seq);
                for (j, phi_v) in self.phi_r.iter().enumerate() {
                    add_scaled_rows(bar.as_mut(), phi_v.as_ref(), column(b, j), 2.0);
                }
                return;
            }
            Spread::Roots(_) | Spread::Shared(_) => {
                sized(bar, a.nrows(), mean.nrows());
                gemm(bar.as_mut(), Accum::Replace, a, mean.transpose(), 1.0, Par::Seq);
            }
        }
        if let Spread::Roots(roots) = process.spread {
            for (j, (phi_r, root)) in self.phi_r.iter_mut().zip(roots).enumerate() {
                let b = column(b, j);
                let none = b.iter().all(|b| *b == 0.0);
                for q in 0..phi_r.ncols() {
                    let target = phi_r.col_as_slice_mut(q);
                    target.iter_mut().zip(b).for_each(|(t, b)| *t *= 2.0 * b);
                }
                // as of latent functions that do not count
                if none {
                    continue;
                }
                let (scaled, root) = (phi_r.as_ref(), root.as_ref());
                times_triangular(bar.as_mut(), Accum::Add, scaled, root, true, Par::Seq);
            }
        } else if let Spread::Shared(Some(_)) = process.spread {
            add_scaled_rows(bar.as_mut(), self.phi_r[0].as_ref(), sum, 2.0);
        }
        add_scaled_rows(bar.as_mut(), self.phi.as_ref(), c, -2.0);
    }

    /// K̄uf in double precision, from Φ̄.
    fn slopes_of_covariances(&mut self, process: &Process<'_>) {
        let bar = &mut self.other;
        match process.spread {
            Spread::Products(Factors::Double(l, _)) => self.double.back(l, bar),
            Spread::Products(Factors::Single(l, _)) => self.single.back(l, bar),
            Spread::Through(_) => {}
            Spread::Roots(_) | Spread::Shared(_) => process.basis.pull(bar.as_mut()),
        }
    }
}
