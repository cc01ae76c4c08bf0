//! M×M sums over the rows of blocks.

use super::{Lane, ProcessScratch, Scratch, each, sum_columns};
use crate::engine::cpu::buffers::Buffer;
use crate::engine::{Factors, Job, Process, Spread, Want};
use crate::linalg::{Accum, Par, gram_lower, scale_rows, sized};

/// Φ diag(b) Φᵀ and Φ diag(Σc) Φᵀ.
pub(super) fn statistics(blocks: &mut [Scratch], lane: &mut Lane, job: &Job<'_>, par: Par) {
    let accum = if lane.used { Accum::Add } else { Accum::Replace };
    let mut first = 0;
    for (at, (lane, process)) in lane.processes.iter_mut().zip(job.processes).enumerate() {
        let (l, from) = (process.mean.ncols(), first);
        first += l;
        let want = job.want.of(process.spread);
        if want == (Want::Adjoints { statistics: false }) {
            // on the way back
            continue;
        }
        for (j, gram) in job.counting(process, from).zip(&mut lane.squares) {
            // latent functions that share their variances share this sum
            let (from, count) = match process.spread {
                Spread::Roots(_) | Spread::Through(_) => (from + j, 1),
                Spread::Shared(_) | Spread::Products(_) => (from, l),
            };
            each(blocks, par, |_, s| {
                sum_columns(&mut s.weights, &s.b, from, count);
                s.processes[at].weigh(process, &s.weights);
            });
            squares(blocks, (at, process), None, (gram, accum), job.scale, par);
        }
        if want == Want::Gradients
            && job.sums_more(process)
            && let Some(sum) = lane.squares.last_mut()
        {
            each(blocks, par, |_, s| {
                sum_columns(&mut s.weights, &s.c, from, l);
                s.processes[at].weigh(process, &s.weights);
            });
            squares(blocks, (at, process), None, (sum, accum), job.scale, par);
        }
    }
}

/// The lower triangle of a sum over blocks of Φ times what is in `other`, Φ̄ or [`ProcessScratch::weigh`]'s weighed features, or of Φ
/// times 2 diag(b) ΦᵀR of one latent function, M×M.
pub(super) fn squares(
    blocks: &mut [Scratch],
    (at, process): (usize, &Process<'_>),
    of_root: Option<usize>,
    (target, mut accum): (&mut Buffer, Accum),
    scale: f64,
    par: Par,
) {
    for s in blocks {
        let (own, target) = (&mut s.processes[at], target.as_mut());
        match (process.spread, of_root) {
            (Spread::Products(Factors::Double(..)), _) => {
                own.double.gram(target, accum, scale, par);
            }
            (Spread::Products(Factors::Single(..)), _) => {
                own.single.gram(target, accum, scale, par);
            }
            (_, Some(j)) => {
                let (phi, phi_r) = (own.phi.as_ref(), own.phi_r[j].as_ref());
                gram_lower(target, accum, phi, phi_r, scale, par);
            }
            (_, None) => {
                gram_lower(target, accum, own.other.as_ref(), own.phi.as_ref(), scale, par);
            }
        }
        accum = Accum::Add;
    }
}

impl ProcessScratch {
    /// Features with each row multiplied by its weight.
    fn weigh(&mut self, process: &Process<'_>, weights: &[f64]) {
        match process.spread {
            Spread::Products(Factors::Double(..)) => self.double.weigh(weights),
            Spread::Products(Factors::Single(..)) => self.single.weigh(weights),
            _ => {
                let phi = self.phi.as_ref();
                sized(&mut self.other, phi.nrows(), phi.ncols());
                scale_rows(self.other.as_mut(), phi, weights);
            }
        }
    }
}
