//! What rows contribute to a job: sums that can be added, with one list of their parts for all who
//! add, send or read them.

use super::{Job, Plan, Process, Want};
use crate::linalg::{
    Mat, MatMut, MatRef, Par, column, column_mut, mirror_lower, par_for, sized, zeroed,
};
use faer::reborrow::ReborrowMut;
use rayon::prelude::*;

/// What the rows contribute to one [`Process`].
#[derive(Clone, Debug)]
pub struct ProcessSums {
    /// Φa, M×l.
    pub phi_a: Mat<f64>,
    /// Φ diag(b) Φᵀ of every latent function, or Φ diag(Σ b) Φᵀ where they share their variances;
    /// both triangles. ΦΦᵀ where b is one number for all rows. Empty for those that do not count
    /// ([`counts`](field@Plan::counts)).
    pub grams: Vec<Mat<f64>>,
    /// Φ diag(Σ c) Φᵀ, c summed over the latent functions, or ΦΦᵀ where c is one number for all
    /// rows; both triangles. None where `grams` tell it, c being b or both being constant.
    pub gram_c: Option<Mat<f64>>,
    /// Ψ = Φ̄Φᵀ, of which the lower triangle counts, for [`Want::Adjoints`].
    pub psi: Option<Mat<f64>>,
    /// 2Φ diag(b) ΦᵀR of every latent function, of which the lower triangle counts, for
    /// [`Want::Adjoints`] without statistics: then there are no `grams`.
    pub roots: Vec<Mat<f64>>,
    /// Gradient with respect to the parameters of the process' inducing variables and their kernel, in their
    /// order ([`num_params`](crate::kernels::inducing::Inducing::num_params)), without the part through Kuu.
    pub inducing: Vec<f64>,
    /// Memory of M×M matrices that the last job did not ask for.
    spare: Vec<Mat<f64>>,
}

impl Default for ProcessSums {
    fn default() -> Self {
        Self {
            phi_a: Mat::new(),
            grams: Vec::new(),
            gram_c: None,
            psi: None,
            roots: Vec::new(),
            inducing: Vec::new(),
            spare: Vec::new(),
        }
    }
}

/// What a job gives. Everything has the scale. A job writes into the memory of an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// The sums of what rows contribute ([`Plan::sums`]).
    pub sums: Vec<f64>,
    /// Gradient with respect to the mean function's parameters.
    pub mean: Vec<f64>,
    /// One for each process. What was not asked for is empty.
    pub processes: Vec<ProcessSums>,
}

/// One vector or matrix, to read.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    /// All of it.
    pub(super) all: MatRef<'a, f64>,
    /// Whether only the lower triangle counts.
    pub(super) lower: bool,
}

/// The same, to write.
pub(super) struct PartMut<'a> {
    pub(super) all: MatMut<'a, f64>,
    pub(super) lower: bool,
}

fn vector(values: &[f64]) -> Part<'_> {
    Part { all: MatRef::from_column_major_slice(values, values.len(), 1), lower: false }
}

fn vector_mut(values: &mut [f64]) -> PartMut<'_> {
    let rows = values.len();
    PartMut { all: MatMut::from_column_major_slice_mut(values, rows, 1), lower: false }
}

impl Part<'_> {
    /// Returns what counts of a column.
    pub(super) fn column(&self, j: usize) -> &[f64] {
        &column(self.all, j)[if self.lower { j } else { 0 }..]
    }
}

impl PartMut<'_> {
    /// Returns what counts of a column.
    pub(super) fn column(&mut self, j: usize) -> &mut [f64] {
        let from = if self.lower { j } else { 0 };
        &mut column_mut(self.all.rb_mut(), j)[from..]
    }

    /// Adds another part of its shape times a factor.
    fn add(&mut self, other: Part<'_>, factor: f64) {
        for j in 0..self.all.ncols() {
            let terms = other.column(j).iter();
            self.column(j).iter_mut().zip(terms).for_each(|(t, v)| *t += factor * v);
        }
    }
}

impl ProcessSums {
    /// Returns the vectors and matrices that are not M×M.
    fn small(&self) -> [Part<'_>; 2] {
        [Part { all: self.phi_a.as_ref(), lower: false }, vector(&self.inducing)]
    }

    fn small_mut(&mut self) -> [PartMut<'_>; 2] {
        let Self { phi_a, inducing, .. } = self;
        [PartMut { all: phi_a.as_mut(), lower: false }, vector_mut(inducing)]
    }

    /// Returns the M×M matrices, of which lower triangles are summed.
    fn squares(&self) -> impl Iterator<Item = &Mat<f64>> {
        self.grams.iter().chain(&self.roots).chain(&self.gram_c).chain(&self.psi)
    }

    fn squares_mut(&mut self) -> impl Iterator<Item = &mut Mat<f64>> {
        let Self { grams, roots, gram_c, psi, .. } = self;
        grams.iter_mut().chain(roots).chain(gram_c).chain(psi)
    }

    /// Sets zeros in the shape of what a job wants, but for the M×M matrices.
    fn clear_small(&mut self, want: Want, process: &Process<'_>) {
        let (m, l) = (process.inducing.len(), process.mean.ncols());
        sized(&mut self.phi_a, if want.phi_a() { m } else { 0 }, l);
        self.phi_a.fill(0.0);
        let params = if want.gradients() { process.inducing.num_params() } else { 0 };
        zeroed(&mut self.inducing, params);
    }

    /// Shapes the M×M matrices. `first` is the process' first latent function.
    fn shape(&mut self, want: Want, plan: &Plan<'_>, process: &Process<'_>, first: usize) {
        let Self { grams, gram_c, psi, roots, spare, .. } = self;
        let (m, want) = (process.inducing.len(), want.of(process.spread));
        let before = grams.drain(..).chain(roots.drain(..)).chain(gram_c.take()).chain(psi.take());
        spare.extend(before.filter(|a| a.nrows() > 0));
        let mut square = || {
            let mut own = spare.pop().unwrap_or_else(Mat::new);
            sized(&mut own, m, m);
            own
        };
        let each = process.spread.is_each();
        let mut all = |list: &mut Vec<Mat<f64>>| {
            let counts = |j: usize| !each || plan.counts(first + j);
            list.extend(
                (0..process.grams()).map(|j| if counts(j) { square() } else { Mat::new() }),
            );
        };
        match want {
            Want::Adjoints { statistics: false } => all(roots),
            _ if want.grams() => all(grams),
            _ => {}
        }
        *gram_c = (want.second_gram() && plan.needs_second_gram()).then(&mut square);
        *psi = matches!(want, Want::Adjoints { .. }).then(&mut square);
    }
}

impl Passed {
    /// Sets zeros in the shape of a job, without M×M matrices.
    pub(super) fn clear_small(&mut self, job: &Job<'_>, plan: &Plan<'_>) {
        zeroed(&mut self.sums, plan.sums);
        zeroed(&mut self.mean, job.mean.num_params());
        self.processes.resize_with(job.processes.len(), ProcessSums::default);
        let all = self.processes.iter_mut().zip(job.processes);
        all.for_each(|(own, process)| own.clear_small(job.want, process));
    }

    /// Sets zeros in the shape of a job; M×M matrices are only shaped, and begin with their first
    /// term.
    pub(super) fn clear(&mut self, job: &Job<'_>, plan: &Plan<'_>) {
        self.clear_small(job, plan);
        let mut first = 0;
        for (own, process) in self.processes.iter_mut().zip(job.processes) {
            own.shape(job.want, plan, process, first);
            first += process.mean.ncols();
        }
    }

    /// Visits every part that another process sends, or reads.
    pub(super) fn for_each_part(&self, mut f: impl FnMut(Part<'_>)) {
        f(vector(&self.sums));
        f(vector(&self.mean));
        for own in &self.processes {
            own.small().into_iter().for_each(&mut f);
            own.squares().for_each(|a| f(Part { all: a.as_ref(), lower: true }));
        }
    }

    /// Visits the same parts, to write.
    pub(super) fn for_each_part_mut<E>(
        &mut self,
        mut f: impl FnMut(PartMut<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        f(vector_mut(&mut self.sums))?;
        f(vector_mut(&mut self.mean))?;
        for own in &mut self.processes {
            own.small_mut().into_iter().try_for_each(&mut f)?;
            own.squares_mut().try_for_each(|a| f(PartMut { all: a.as_mut(), lower: true }))?;
        }
        Ok(())
    }

    /// Adds other sums of the same job times a factor, but for the M×M matrices.
    pub(super) fn add_small(&mut self, other: &Self, factor: f64) {
        vector_mut(&mut self.sums).add(vector(&other.sums), factor);
        vector_mut(&mut self.mean).add(vector(&other.mean), factor);
        for (own, other) in self.processes.iter_mut().zip(&other.processes) {
            let pairs = own.small_mut().into_iter().zip(other.small());
            pairs.for_each(|(mut own, other)| own.add(other, factor));
        }
    }

    /// Adds any number of sums of the same job, in their order, to one that is clear. M×M matrices
    /// are added on all threads, column by column.
    pub(super) fn add_all<'a>(&mut self, terms: impl Iterator<Item = &'a Self> + Clone + Sync) {
        terms.clone().for_each(|term| self.add_small(term, 1.0));
        for (at, own) in self.processes.iter_mut().enumerate() {
            for (slot, sum) in own.squares_mut().enumerate() {
                let of = |term: &'a Self| term.processes[at].squares().nth(slot);
                sum_lower(sum.as_mut(), terms.clone().filter_map(of));
            }
        }
    }

    /// Makes symmetric matrices of lower triangles.
    pub(super) fn mirror(&mut self) {
        for own in &mut self.processes {
            own.grams.iter_mut().chain(&mut own.gram_c).for_each(|a| mirror_lower(a.as_mut()));
        }
    }
}

/// Computes the sum of lower triangles, in their order, on all threads.
fn sum_lower<'a>(mut sum: MatMut<f64>, terms: impl Iterator<Item = &'a Mat<f64>> + Clone + Sync) {
    // to wake threads takes longer than to add up little
    let columns = match par_for(sum.ncols()) {
        Par::Seq => sum.ncols().max(1),
        Par::Rayon(_) => 32,
    };
    sum.rb_mut().par_col_chunks_mut(columns).enumerate().for_each(|(chunk, mut part)| {
        for j in 0..part.ncols() {
            let from = chunk * columns + j;
            let target = &mut column_mut(part.rb_mut(), j)[from..];
            target.fill(0.0);
            for term in terms.clone() {
                let source = &column(term.as_ref(), from)[from..];
                target.iter_mut().zip(source).for_each(|(t, v)| *t += v);
            }
        }
    });
}
