//! The engine for the processor's cores.

mod blocks;
mod buffers;
mod pass;
mod products;
mod timings;

pub use timings::Timings;

use super::{
    Engine, Folded, Job, Local, Passed, Prepared, Shelf, Slope, Unfolded, Whitened, lanes,
};
use crate::data::Source;
use crate::error::{Error, Result};
use crate::linalg::zeroed;
use crate::linalg::{Mat, mirror_lower, sized};
use blocks::{Back, Pull, fold_block};
use buffers::{Lane, Scratch, add, multiply, sum_lower};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Works on blocks of rows with the threads of the current rayon pool. Keeps its buffers from call
/// to call.
#[derive(Debug, Default)]
pub struct Cpu {
    scratch: Mutex<Vec<Scratch>>,
    lanes: Mutex<Vec<Lane>>,
    pass_scratch: Mutex<Vec<pass::Scratch>>,
    pass_lanes: Mutex<Vec<pass::Lane>>,
    shelf: Shelf,
    stop: Option<Arc<AtomicBool>>,
}

impl Cpu {
    /// An engine that can be asked to stop while it goes over rows: when the flag is set,
    /// [`Engine::fold`], [`Engine::unfold`] or exact inference ends within a block with [`Error::Interrupted`], and the
    /// flag is down again. (Passes, which are of minibatches or of few rows, end by themselves.)
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..Self::default() }
    }

    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let take = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = take().unwrap_or_default();
        let result = work(&mut scratch);
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        result
    }

    /// Where the time on rows has gone since the last reset.
    pub fn timings(&self) -> Timings {
        let mut total = Timings::default();
        for scratch in self.scratch.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            total.add(&scratch.timings);
        }
        total
    }

    /// Starts the clocks of [`Cpu::timings`] anew.
    pub fn reset_timings(&self) {
        for scratch in self.scratch.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            scratch.timings = Timings::default();
        }
    }

    fn take_lanes(&self, features: usize) -> Vec<Lane> {
        let mut lanes =
            std::mem::take(&mut *self.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        lanes.resize_with(lanes::count(features, 1), Lane::default);
        lanes.iter_mut().for_each(|lane| lane.used = false);
        lanes
    }

    fn give_lanes(&self, lanes: Vec<Lane>) {
        *self.lanes.lock().unwrap_or_else(PoisonError::into_inner) = lanes;
    }
}

impl Engine for Cpu {
    fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn go_on(&self) -> Result<()> {
        match &self.stop {
            Some(stop) if stop.swap(false, Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    fn fold(
        &self,
        prepared: Prepared<'_>,
        q: Option<Whitened<'_>>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Folded> {
        let plan = local.plan();
        let (m, p) = (prepared.z.nrows(), data.outputs());
        let mut lanes = self.take_lanes(m);
        let outcome = lanes::sweep(data, &mut lanes, |lane, rows| {
            self.go_on()?;
            self.with_scratch(|s| fold_block(s, lane, &prepared, q, local, plan, rows));
            Ok(())
        });
        let folded = outcome.map(|()| {
            let mut total = Folded {
                sums: vec![0.0; plan.sums],
                phi_a: Mat::zeros(m, p),
                gram: Mat::zeros(m, m),
                gram_c: plan.needs_second_gram().then(|| Mat::zeros(m, m)),
            };
            for lane in lanes.iter().filter(|lane| lane.used) {
                total.sums.iter_mut().zip(&lane.sums).for_each(|(t, v)| *t += v);
                add(total.phi_a.as_mut(), lane.phi_a.as_ref());
            }
            sum_lower(total.gram.as_mut(), &lanes, |l| l.used.then_some(&l.gram), scale);
            mirror_lower(total.gram.as_mut());
            if let Some(sum) = &mut total.gram_c {
                sum_lower(sum.as_mut(), &lanes, |l| l.used.then_some(&l.gram_c), scale);
                mirror_lower(sum.as_mut());
            }
            total.sums.iter_mut().for_each(|v| *v *= scale);
            multiply(total.phi_a.as_mut(), scale);
            total
        });
        self.give_lanes(lanes);
        folded
    }

    fn unfold(
        &self,
        prepared: Prepared<'_>,
        q: Whitened<'_>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Unfolded> {
        let plan = local.plan();
        let m = prepared.z.nrows();
        let pull = match (plan.b, plan.c) {
            (Slope::Constant(b), Slope::Constant(c)) if !plan.variances => {
                // Φ̄ = m aᵀ + (2bS − 2cI)Φ: one symmetric matrix for all rows
                let mut a = Mat::from_fn(m, m, |i, j| 2.0 * b * scale * q.covariance[(i, j)]);
                for i in 0..m {
                    a[(i, i)] -= 2.0 * c * scale;
                }
                Pull::Matrix { w: prepared.basis.pull_through(a), c: c * scale }
            }
            _ => Pull::Features,
        };
        let weights = prepared.basis.weights(q.mean);
        let num_kernel = prepared.kernel.num_params();
        let num_mean = prepared.mean.num_params();
        let mut lanes = self.take_lanes(m);
        let outcome = lanes::sweep(data, &mut lanes, |lane, rows| {
            self.go_on()?;
            if !lane.used {
                lane.used = true;
                zeroed(&mut lane.sums, plan.sums);
                zeroed(&mut lane.kernel, num_kernel);
                zeroed(&mut lane.mean, num_mean);
                sized(&mut lane.z, m, prepared.z.ncols());
                lane.z.fill(0.0);
            }
            self.with_scratch(|s| {
                let back = Back { prepared, q, weights: weights.as_ref(), local, plan, scale };
                match &pull {
                    Pull::Matrix { w, c } => back.by_matrix(s, lane, rows, w.as_ref(), *c),
                    Pull::Features => back.by_features(s, lane, rows),
                }
            });
            Ok(())
        });
        let unfolded = outcome.map(|()| {
            let mut total = Unfolded {
                sums: vec![0.0; plan.sums],
                kernel: vec![0.0; num_kernel],
                mean: vec![0.0; num_mean],
                z: Mat::zeros(m, prepared.z.ncols()),
            };
            for lane in lanes.iter().filter(|lane| lane.used) {
                total.sums.iter_mut().zip(&lane.sums).for_each(|(t, v)| *t += v * scale);
                total.kernel.iter_mut().zip(&lane.kernel).for_each(|(t, v)| *t += v);
                total.mean.iter_mut().zip(&lane.mean).for_each(|(t, v)| *t += v);
                add(total.z.as_mut(), lane.z.as_ref());
            }
            total
        });
        self.give_lanes(lanes);
        unfolded
    }

    fn pass(&self, job: &Job<'_>, data: &dyn Source, out: &mut Passed) -> Result<()> {
        pass::run(self, job, data, out)
    }
}
