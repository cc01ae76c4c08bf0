//! What lanes accumulate, and their sum.

use super::{Lane, ProcessLane, Scratch};
use crate::engine::cpu::buffers::{Buffer, add, multiply, sum_lower};
use crate::engine::{Job, Passed, ProcessSums, Want};
use crate::linalg::{Mat, mirror_lower, sized, zeroed};

impl Lane {
    /// One of its M×M sums, if it has been used.
    fn square(&self, process: usize, slot: usize) -> Option<&Buffer> {
        self.used.then(|| &self.processes[process].squares[slot])
    }

    /// Sizes and empties what the job adds to; matrices are emptied by their first sum.
    pub(super) fn start(&mut self, job: &Job<'_>) {
        if self.used {
            return;
        }
        zeroed(&mut self.sums, job.pointwise.sums());
        zeroed(&mut self.mean, job.mean_params());
        self.processes.resize_with(job.processes.len(), ProcessLane::default);
        let mut first = 0;
        for (lane, process) in self.processes.iter_mut().zip(job.processes) {
            let (m, l) = (process.z.nrows(), process.mean.ncols());
            if job.want == Want::Value {
                continue;
            }
            sized(&mut lane.phi_a, m, l);
            lane.phi_a.fill(0.0);
            let count = job.counting(process, first).count() + usize::from(job.sums_more(process));
            lane.squares.resize_with(count, Buffer::default);
            lane.squares.iter_mut().for_each(|sum| sized(sum, m, m));
            first += l;
            if job.want.gradients() {
                zeroed(&mut lane.kernel, process.kernel.num_params());
                sized(&mut lane.z, m, process.z.ncols());
                lane.z.fill(0.0);
            }
        }
    }

    /// Adds the small sums of a block.
    pub(super) fn add(&mut self, block: &Scratch, want: Want) {
        let add_all = |target: &mut [f64], source: &[f64]| {
            target.iter_mut().zip(source).for_each(|(t, v)| *t += v);
        };
        add_all(&mut self.sums, &block.sums);
        if want == Want::Value {
            return;
        }
        for (lane, own) in self.processes.iter_mut().zip(&block.processes) {
            add(lane.phi_a.as_mut(), own.phi_a.as_ref());
            if want.gradients() {
                add_all(&mut lane.kernel, &own.kernel);
                add(lane.z.as_mut(), own.z.as_ref());
            }
        }
        if want.gradients() {
            add_all(&mut self.mean, &block.mean);
        }
    }
}

/// One of the M×M sums of a process, of which the lower triangle counts, over the lanes; 0 without rows.
fn total_lower(sum: &mut Mat<f64>, m: usize, lanes: &mut [Lane], (at, slot): (usize, usize)) {
    if let [lane] = lanes
        && lane.used
    {
        return std::mem::swap(sum, &mut lane.processes[at].squares[slot]);
    }
    sized(sum, m, m);
    sum_lower(sum.as_mut(), lanes, |lane| lane.square(at, slot), 1.0);
}

/// The sums of the lanes.
pub(super) fn total(job: &Job<'_>, lanes: &mut [Lane], out: &mut Passed) {
    let scale = job.scale;
    let add_all = |target: &mut [f64], source: &[f64]| {
        target.iter_mut().zip(source).for_each(|(t, v)| *t += v * scale);
    };
    zeroed(&mut out.sums, job.pointwise.sums());
    zeroed(&mut out.mean, job.mean_params());
    for lane in lanes.iter().filter(|lane| lane.used) {
        add_all(&mut out.sums, &lane.sums);
        add_all(&mut out.mean, &lane.mean);
    }
    if job.want == Want::Value {
        out.processes.clear();
        return;
    }
    out.processes.resize_with(job.processes.len(), ProcessSums::default);
    let mut first = 0;
    for (at, (process, sums)) in job.processes.iter().zip(&mut out.processes).enumerate() {
        let (m, l) = (process.z.nrows(), process.mean.ncols());
        let gradients = job.want.gradients();
        let want = job.want.of(process.spread);
        let of_roots = want == (Want::Adjoints { statistics: false });
        let ProcessSums { grams, roots, .. } = sums;
        let (all, none) = if of_roots { (roots, grams) } else { (grams, roots) };
        none.clear();
        all.resize_with(process.grams(), Mat::new);
        let mut counting = job.counting(process, first).enumerate().peekable();
        for (j, gram) in all.iter_mut().enumerate() {
            let Some((slot, _)) = counting.next_if(|(_, own)| *own == j) else {
                *gram = Mat::new();
                continue;
            };
            total_lower(gram, m, lanes, (at, slot));
            if !of_roots {
                mirror_lower(gram.as_mut());
            }
        }
        let last = (at, job.counting(process, first).count());
        first += l;
        if matches!(want, Want::Adjoints { .. }) {
            total_lower(sums.psi.get_or_insert_with(Mat::new), m, lanes, last);
            sums.gram_c = None;
        } else {
            sums.psi = None;
            if job.sums_more(process) {
                let gram_c = sums.gram_c.get_or_insert_with(Mat::new);
                total_lower(gram_c, m, lanes, last);
                mirror_lower(gram_c.as_mut());
            } else if job.pointwise.equal_slopes() {
                sums.gram_c = None;
            }
        }
        sized(&mut sums.phi_a, m, l);
        sized(&mut sums.z, m, process.z.ncols());
        sums.phi_a.fill(0.0);
        sums.z.fill(0.0);
        zeroed(&mut sums.kernel, if gradients { process.kernel.num_params() } else { 0 });
        for lane in lanes.iter().filter(|lane| lane.used).map(|lane| &lane.processes[at]) {
            add(sums.phi_a.as_mut(), lane.phi_a.as_ref());
            if gradients {
                add_all(&mut sums.kernel, &lane.kernel);
                add(sums.z.as_mut(), lane.z.as_ref());
            }
        }
        multiply(sums.phi_a.as_mut(), scale);
        multiply(sums.z.as_mut(), scale);
    }
}
