//! What comes before the rows: Kuu, its factor and q, of latent functions that share them.

use super::forms::{self, FollowingRows};
use super::{forms::pseudo, variational};
use crate::engine::{CholeskyBasis, Pointwise, Process, ProcessSums, Spread, Through};
use crate::error::{Error, Result};
use crate::inverse_free::Solved;
use crate::kernels::inducing::{AtPoints, Inducing};
use crate::kernels::{Tape, place_of};
use crate::linalg::{
    Accum, Mat, MatMut, by_columns, column, gram_lower, lower_product, par_for, sized,
    solve_lower_transpose, times_triangular,
};
use crate::model::Model;
use crate::variational::sites::{At, SiteWork, Tying, covariance};
use crate::variational::{Parts, Statistics, Variational};
use faer::reborrow::ReborrowMut;
use std::ops::Range;

/// Latent functions that share covariance function and inducing points, with all M×M work that comes
/// before the rows.
pub(super) struct Prepared {
    pub(super) latents: Range<usize>,
    pub(super) kernel: usize,
    pub(super) set: usize,
    pub(super) z: Mat<f64>,
    pub(super) kuu: Mat<f64>,
    pub(super) tape: Tape,
    pub(super) basis: CholeskyBasis,
    pub(super) parts: Parts,
    /// Adjoints of `parts`.
    pub(super) bars: Parts,
    /// q after a natural-gradient step.
    pub(super) moved: Parts,
    /// Adjoint of Kuu.
    pub(super) kuu_bar: Mat<f64>,
    /// Whether the engine gets [`Spread::Through`], and what that takes.
    pub(super) through: bool,
    pub(super) weights: Mat<f64>,
    pub(super) forms: Vec<Mat<f64>>,
    pub(super) sites: SiteWork,
    pub(super) pseudo: pseudo::Memory,
}

impl Default for Prepared {
    fn default() -> Self {
        Self {
            latents: 0..0,
            kernel: 0,
            set: 0,
            z: Mat::new(),
            kuu: Mat::new(),
            tape: Tape::off(),
            basis: CholeskyBasis::default(),
            parts: Parts::default(),
            bars: Parts::default(),
            moved: Parts::default(),
            kuu_bar: Mat::new(),
            through: false,
            weights: Mat::new(),
            forms: Vec::new(),
            sites: SiteWork::default(),
            pseudo: pseudo::Memory::default(),
        }
    }
}

/// Returns the values at points Z of the latent functions with one of the model's kernels.
pub(super) fn at<'a>(model: &'a Model, kernel: usize, z: &'a Mat<f64>) -> AtPoints<'a> {
    AtPoints { kernel: &*model.kernels[kernel], z: z.as_ref() }
}

/// Returns sums over rows as what q is made of sees them.
pub(super) fn statistics(sums: &ProcessSums) -> Statistics<'_> {
    Statistics { phi_a: sums.phi_a.as_ref(), grams: &sums.grams }
}

impl Prepared {
    /// Computes inducing points and Kuu.
    pub(super) fn covariances(&mut self, model: &Model, record: bool) -> Result<()> {
        model.read_inducing_set(self.set, &mut self.z)?;
        let m = self.z.nrows();
        self.tape.restart(record);
        sized(&mut self.kuu, m, m);
        at(model, self.kernel, &self.z).kuu(self.kuu.as_mut(), &mut self.tape);
        Ok(())
    }

    /// Computes adjoints of whitened mean and roots into `bars`. Where the rows have not given Ψ,
    /// adds to it what it is beyond −2Φ diag(Σc) Φᵀ.
    pub(super) fn moments(&mut self, rows: &mut ProcessSums, mut psi: Option<MatMut<'_, f64>>) {
        let m = self.z.nrows();
        let par = par_for(m);
        let ProcessSums { phi_a, grams, roots: by_rows, .. } = rows;
        if let Some(psi) = &mut psi {
            let (mean, phi_a) = (self.parts.mean.transpose(), phi_a.transpose());
            gram_lower(psi.rb_mut(), Accum::Add, mean, phi_a, 1.0, par);
        }
        self.bars.sized(m, self.parts.roots.len());
        for (at, (root, bar)) in self.parts.roots.iter().zip(&mut self.bars.roots).enumerate() {
            let root = root.as_ref();
            let factor = match (grams.get(at), by_rows.get_mut(at)) {
                (Some(gram), _) if gram.nrows() == m => {
                    times_triangular(bar.as_mut(), Accum::Replace, gram.as_ref(), root, false, par);
                    if let Some(psi) = &mut psi {
                        // 2 R (GR)ᵀ, of which (2GR)Rᵀ is the transpose
                        lower_product(psi.rb_mut(), Accum::Add, root, bar.transpose(), 2.0, par);
                    }
                    2.0
                }
                (None, Some(own)) if own.nrows() == m => {
                    std::mem::swap(bar, own);
                    1.0
                }
                // it does not move
                _ => continue,
            };
            by_columns(bar.as_mut(), &mut vec![(); m], &|j, own, ()| {
                let root = column(root, j);
                own[j..].iter_mut().zip(&root[j..]).for_each(|(b, r)| *b = factor * *b - r);
                own[j] += 1.0 / root[j];
            });
        }
        for l in 0..self.parts.roots.len() {
            for i in 0..m {
                self.bars.mean[(i, l)] = phi_a[(i, l)] - self.parts.mean[(i, l)];
            }
        }
    }

    /// Computes what the lower triangle of Ψ begins with where the rows have not given it: −2Φ
    /// diag(Σc) Φᵀ.
    pub(super) fn begin_psi(sums: &ProcessSums, psi: &mut Mat<f64>) {
        let m = psi.nrows();
        for j in 0..m {
            let target = &mut psi.col_as_slice_mut(j)[j..];
            match &sums.gram_c {
                Some(gram) => target.copy_from_slice(&column(gram.as_ref(), j)[j..]),
                None => {
                    target.fill(0.0);
                    // those that do not move are empty
                    for gram in sums.grams.iter().filter(|gram| gram.nrows() == m) {
                        let source = &column(gram.as_ref(), j)[j..];
                        target.iter_mut().zip(source).for_each(|(t, v)| *t += v);
                    }
                }
            }
            target.iter_mut().for_each(|t| *t *= -2.0);
        }
    }

    /// Returns whether rows are few beside what M×M matrices cost: without these (the way of
    /// [`Want::Adjoints`]) it is 2M²B operations more, and 3M³ fewer for every latent function.
    pub(super) fn few(&self, rows: usize) -> bool {
        3 * rows < 5 * self.z.nrows() * self.latents.len()
    }

    /// Returns whether Ψ and the adjoints of roots should come from the rows.
    pub(super) fn by_rows(
        &self,
        form: &dyn forms::Form,
        pointwise: &dyn Pointwise,
        rows: usize,
    ) -> bool {
        form.takes_adjoints() && (self.few(rows) || pointwise.plan().c.is_some())
    }

    /// Says whether products go through the engine, and then makes L⁻ᵀm and (S − I)L⁻¹ of every latent function.
    pub(super) fn prepare_through(&mut self, through: bool) {
        self.through = through;
        if !through {
            return;
        }
        let (m, factor) = (self.z.nrows(), self.basis.factor().l.as_ref());
        let par = par_for(m);
        sized(&mut self.weights, m, self.parts.mean.ncols());
        self.weights.copy_from(&self.parts.mean);
        solve_lower_transpose(factor, self.weights.as_mut(), par);
        self.forms.resize_with(self.parts.roots.len(), Mat::new);
        for (form, root) in self.forms.iter_mut().zip(&self.parts.roots) {
            covariance(root.as_ref(), form);
            for j in 0..m {
                form[(j, j)] -= 1.0;
            }
            solve_lower_transpose(factor, form.as_mut().transpose_mut(), par);
        }
    }

    /// Goes from K̄uu and what the rows gave to the gradients of kernel and inducing points.
    pub(super) fn finish(
        &mut self,
        model: &Model,
        sums: &mut ProcessSums,
        kernel: &mut [f64],
        inducing: &mut [f64],
    ) {
        let own = at(model, self.kernel, &self.z);
        let (k, bar) = (self.kuu.as_ref(), self.kuu_bar.as_mut());
        own.pull_kuu(k, bar, &mut self.tape, &mut sums.inducing);
        let (by_kernel, by_points) = sums.inducing.split_at(own.kernel.num_params());
        let add = |target: &mut [f64], values: &[f64]| {
            target.iter_mut().zip(values).for_each(|(t, v)| *t += v);
        };
        let start = model.kernels[..self.kernel].iter().map(|k| k.num_params()).sum::<usize>();
        add(&mut kernel[start..], by_kernel);
        let start = model.inducing[..self.set].iter().map(|z| z.len()).sum::<usize>();
        add(&mut inducing[start..], by_points);
    }

    /// Returns its inducing variables, with the covariances of the model's kernel.
    pub(super) fn inducing<'a>(&'a self, model: &'a Model) -> AtPoints<'a> {
        at(model, self.kernel, &self.z)
    }

    /// Returns it as the engine wants it, by whitened moments.
    pub(super) fn whitened_process<'a>(&'a self, inducing: &'a dyn Inducing) -> Process<'a> {
        let spread = if self.through {
            Spread::Through(Through { weights: self.weights.as_ref(), forms: &self.forms })
        } else {
            Spread::Roots(&self.parts.roots)
        };
        Process { inducing, basis: &self.basis, mean: self.parts.mean.as_ref(), spread }
    }

    /// Goes from Ψ to K̄uu, in the memory of both: that of the rows where they have given it
    /// (`true`), else begun by their sums; `add` adds what else there is.
    pub(super) fn with_psi(
        &mut self,
        sums: &mut ProcessSums,
        add: impl FnOnce(&mut Self, &mut ProcessSums, &mut Mat<f64>, bool),
    ) {
        let mut psi = std::mem::replace(&mut self.kuu_bar, Mat::new());
        let given = sums.psi.is_some();
        match &mut sums.psi {
            Some(by_rows) => std::mem::swap(&mut psi, by_rows),
            None => {
                sized(&mut psi, self.z.nrows(), self.z.nrows());
                Self::begin_psi(sums, &mut psi);
            }
        }
        add(self, sums, &mut psi, given);
        self.kuu_bar = self.basis.kuu_bar(psi);
    }

    /// Does [`SiteWork::centre`] of these latent functions.
    pub(super) fn centre(&mut self, q: &mut Variational, tying: Tying, each: usize) -> f64 {
        let at = At { tying, latents: self.latents.clone(), factor: self.basis.factor() };
        self.sites.centre(q, &at, &mut self.parts, each)
    }
}

/// Prepares the processes of a model: one where all is shared, else one for each latent function.
pub(super) fn prepare(
    model: &Model,
    record: bool,
    following: Option<FollowingRows<'_>>,
    processes: &mut Vec<Prepared>,
) -> Result<Option<Solved>> {
    let q = variational(model)?;
    let latents = q.latents();
    let fits = |count: usize| count == 1 || count == latents;
    if !fits(model.kernels.len()) || !fits(model.inducing.len()) {
        return Err(Error::Invalid(format!(
            "{latents} latent functions need one kernel and one set of inducing points, or one for \
             each; there are {} kernels and {} sets",
            model.kernels.len(),
            model.inducing.len()
        )));
    }
    let (count, each) = if model.shares_points() { (1, latents) } else { (latents, 1) };
    processes.resize_with(count, Prepared::default);
    let (form, mut solved) = (forms::of(q), None);
    for (index, process) in processes.iter_mut().enumerate() {
        process.latents = index * each..(index + 1) * each;
        process.kernel = place_of(model.kernels.len(), index);
        process.set = place_of(model.inducing.len(), index);
        process.covariances(model, record)?;
        form.check_points(q, process.z.nrows())?;
        solved = form.prepare(process, model, q, following)?;
    }
    Ok(solved)
}
