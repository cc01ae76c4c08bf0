//! Uncollapsed bounds: q(u) is a parameter, any likelihood, any part of the rows.
//!
//! F = Σᵢ ℓ(yᵢ; μᵢ, sᵢ, rᵢ) − Σ_l KL(q(u_l)‖p(u_l)), with ℓ of a [`Bound`]. One pass over the rows gives
//! value and all gradients: with G_l = Φ diag(b_l) Φᵀ and S_l = R_l R_lᵀ,
//!
//! ```text
//! m̄ = Φa − m        R̄ = tril(2 G R − R) + diag(1/Rⱼⱼ)
//! Ψ = Σ_l {m (Φa)ᵀ + 2 R (G R)ᵀ} − 2 Φ diag(Σc) Φᵀ       K̄uu = −½ L⁻ᵀ mirror(Ψ) L⁻¹
//! ```
//!
//! (Hensman et al. 2013, 2015; the adjoint of the Cholesky factor as in [`CholeskyBasis::kuu_bar`]). Where rows are few
//! they sum 2GR and Ψ = Φ̄Φᵀ themselves ([`Want::Adjoints`]), for less than the products with G. Where they are many, and the
//! slopes of s and r the same, r + s and K̄uf come from one product with (S − I)L⁻¹ ([`Spread::Through`]). A
//! minibatch multiplies the sums over rows by N/B ([`Source::scale`]), which leaves value and
//! gradient unbiased; the penalty of the factors v counts rows, and so has that factor too.

pub(crate) mod guesses;
pub(super) mod mixed;
pub(super) mod promise;
pub(crate) mod pseudo;
pub(super) mod rows;
mod untied;

pub use crate::bounds::{Augmented, Bound, Hensman, Spherical, Titsias2025};
pub use mixed::shape as mixed_shape;
pub use pseudo::Following;

use super::{Diagnostics, Evaluation, Method, RowSite, Sampler};
use crate::data::Source;
use crate::engine::{
    CholeskyBasis, Engine, Job, Passed, Pointwise, Process, ProcessSums, Spread, Through, Want,
};
use crate::error::{Error, Result};
use crate::inverse_free::Solved;
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{
    Accum, Mat, MatMut, by_columns, column, gram_lower, lower_product, par_for, sized,
    solve_lower_transpose, times_triangular,
};
use crate::means::{Mean, Zero};
use crate::model::{Model, Posterior};
use crate::variational::sites::{At, SiteWork, Tying, covariance};
use crate::variational::{self, NaturalStep, Parts, Statistics, Variational};
use faer::reborrow::ReborrowMut;
use mixed::MixedRows;
use rows::{LikelihoodRows, sum};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use untied::{Recording, Seen};

/// A method that trains q(u).
pub struct Uncollapsed {
    /// Its name.
    pub name: &'static str,
    /// What a row contributes.
    pub bound: &'static dyn Bound,
    /// What samples the posterior in the end.
    pub sampler: Option<Sampler>,
    /// How q is kept.
    pub keeps: Keeps,
}

/// How q is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// By its moments.
    Moments,
    /// As sites ([`variational::sites`]).
    Sites,
    /// As pseudo-observations: L-SVGP ([`crate::inverse_free`]).
    Pseudo,
    /// The same, with an auxiliary T for the inverse of Kuu + Λ: R-SVGP.
    Relaxed,
}

impl Uncollapsed {
    /// Whether q moves by natural-gradient steps where they are asked for.
    pub fn steps_naturally(&self) -> bool {
        matches!(self.keeps, Keeps::Moments | Keeps::Sites)
    }
}

impl std::fmt::Debug for Uncollapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Uncollapsed({})", self.name)
    }
}

/// Latent functions that share covariance function and inducing points, with all M×M work that comes
/// before the rows.
struct Prepared {
    latents: Range<usize>,
    kernel: usize,
    set: usize,
    z: Mat<f64>,
    kuu: Mat<f64>,
    tape: Tape,
    basis: CholeskyBasis,
    parts: Parts,
    /// Adjoints of `parts`.
    bars: Parts,
    /// q after a natural-gradient step.
    moved: Parts,
    /// Adjoint of Kuu.
    kuu_bar: Mat<f64>,
    /// Whether the engine gets [`Spread::Through`], and what that takes.
    through: bool,
    weights: Mat<f64>,
    forms: Vec<Mat<f64>>,
    sites: SiteWork,
    pseudo: pseudo::Memory,
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

impl Prepared {
    /// Inducing points and Kuu.
    fn covariances(&mut self, model: &Model, record: bool) -> Result<()> {
        model.read_inducing_set(self.set, &mut self.z)?;
        let m = self.z.nrows();
        self.tape.restart(record);
        sized(&mut self.kuu, m, m);
        let kernel = &model.kernels[self.kernel];
        kernel.evaluate(self.z.as_ref(), None, self.kuu.as_mut(), &mut self.tape);
        Ok(())
    }

    /// Kuu, its factor and the whitened q, or what takes their place.
    fn prepare(
        &mut self,
        model: &Model,
        q: &Variational,
        record: bool,
        following: Option<(&Following, Option<&dyn Source>)>,
    ) -> Result<Option<Solved>> {
        self.covariances(model, record)?;
        let m = self.z.nrows();
        if q.points() != m && q.tying() != Some(Tying::Untied) {
            return Err(Error::Shape {
                what: "q.mu".into(),
                expected: format!("{m} rows, one per inducing point"),
                found: format!("{}", q.points()),
            });
        }
        if q.pseudo().is_some() {
            return self.prepare_pseudo(model, q, following);
        }
        self.basis.renew(self.kuu.as_ref(), model.jitter, "Kuu")?;
        let (latents, factor) = (self.latents.clone(), self.basis.factor());
        match q.tying() {
            // of rows: later
            Some(Tying::Untied) => Ok(()),
            Some(tying) => self.sites.posterior(q, &At { tying, latents, factor }, &mut self.parts),
            None => q.read_whitened(latents, factor, &mut self.parts),
        }?;
        Ok(None)
    }

    /// Adjoints of whitened mean and roots into `bars`. Where the rows have not given Ψ, adds to it what it is beyond
    /// −2Φ diag(Σc) Φᵀ.
    fn moments(&mut self, rows: &mut ProcessSums, mut psi: Option<MatMut<'_, f64>>) {
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

    /// What the lower triangle of Ψ begins with where the rows have not given it: −2Φ diag(Σc) Φᵀ.
    fn begin_psi(sums: &ProcessSums, psi: &mut Mat<f64>) {
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

    /// Whether rows are few beside what M×M matrices cost: without these (the way of [`Want::Adjoints`]) it is
    /// 2M²B operations more, and 3M³ fewer for every latent function.
    fn few(&self, rows: usize) -> bool {
        3 * rows < 5 * self.z.nrows() * self.latents.len()
    }

    /// Whether Ψ and the adjoints of roots should come from the rows.
    fn by_rows(&self, q: &Variational, pointwise: &dyn Pointwise, rows: usize) -> bool {
        // of other sites Ψ has more parts than Φ̄Φᵀ
        let of_moments = q.tying().is_none_or(|tying| tying == Tying::Whitened);
        of_moments && (self.few(rows) || !pointwise.equal_slopes())
    }

    /// L⁻ᵀm and (S − I)L⁻¹ of every latent function.
    fn prepare_through(&mut self) {
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

    /// From K̄uu and what the rows gave to the gradients of kernel and inducing points.
    fn finish(
        &mut self,
        model: &Model,
        sums: &mut ProcessSums,
        kernel: &mut [f64],
        inducing: &mut [f64],
    ) {
        let mut sinks = Cotangents { params: &mut sums.kernel, x: Some(sums.z.as_mut()), z: None };
        model.kernels[self.kernel].vjp(
            self.z.as_ref(),
            None,
            self.kuu.as_ref(),
            self.kuu_bar.as_mut(),
            &mut self.tape,
            &mut sinks,
        );
        let start = model.kernels[..self.kernel].iter().map(|k| k.num_params()).sum::<usize>();
        kernel[start..].iter_mut().zip(&sums.kernel).for_each(|(t, v)| *t += v);
        let start = model.inducing[..self.set].iter().map(|z| z.len()).sum::<usize>();
        for j in 0..sums.z.ncols() {
            let target = &mut inducing[start + j * self.z.nrows()..];
            target.iter_mut().zip(column(sums.z.as_ref(), j)).for_each(|(t, v)| *t += v);
        }
    }

    /// As the engine wants it.
    fn process<'a>(&'a self, model: &'a Model) -> Process<'a> {
        if model.q.as_ref().is_some_and(|q| q.pseudo().is_some()) {
            return self.pseudo_process(model);
        }
        let spread = if self.through {
            Spread::Through(Through { weights: self.weights.as_ref(), forms: &self.forms })
        } else {
            Spread::Roots(&self.parts.roots)
        };
        Process {
            kernel: &*model.kernels[self.kernel],
            z: self.z.as_ref(),
            basis: &self.basis,
            mean: self.parts.mean.as_ref(),
            spread,
        }
    }
}

/// A pass over rows at a model's q, with what it takes to make steps of it. It keeps its memory from
/// pass to pass ([`Uncollapsed::renew`]).
#[derive(Default)]
pub struct Step {
    /// Value of the bound.
    pub value: f64,
    /// What the numerics had to do.
    pub diagnostics: Diagnostics,
    /// How T was brought up to date ([`Uncollapsed::follow`]).
    pub solved: Option<Solved>,
    processes: Vec<Prepared>,
    /// Factors of the unexplained variances, one for each latent function.
    v: Vec<f64>,
    passed: Passed,
    natural: NaturalStep,
    /// Which latent functions of a target move, if not all ([`Step::choose`]).
    chosen: Option<Vec<bool>>,
    /// What the numbers among the likelihood's parameters become in closed form at this q, after a pass for the
    /// value; none for those without such an update.
    pub updated: Vec<Option<f64>>,
    /// Whether ∂ℓ/∂s was cut so that sites stay precisions.
    clipped: bool,
    /// Sums of untied sites.
    untied: Passed,
    /// What their step needs of the rows.
    seen: Mutex<Seen>,
}

/// Whether a latent function is among the chosen ones of its target.
fn moves(chosen: &Option<Vec<bool>>, latent: usize) -> bool {
    chosen.as_ref().is_none_or(|chosen| chosen[latent % chosen.len()])
}

/// The q of a model.
fn variational(model: &Model) -> Result<&Variational> {
    model.q.as_ref().ok_or_else(|| {
        Error::Invalid(format!("method `{}` needs a q to start from", model.method.name()))
    })
}

/// The processes of a model: one where all is shared, else one for each latent function.
fn prepare(
    model: &Model,
    record: bool,
    following: Option<(&Following, Option<&dyn Source>)>,
    processes: &mut Vec<Prepared>,
) -> Result<Option<Solved>> {
    let q = variational(model)?;
    let latents = q.latents();
    let shared = model.kernels.len() == 1 && model.inducing.len() == 1;
    let fits = |count: usize| count == 1 || count == latents;
    if !fits(model.kernels.len()) || !fits(model.inducing.len()) {
        return Err(Error::Invalid(format!(
            "{latents} latent functions need one kernel and one set of inducing points, or one for \
             each; there are {} kernels and {} sets",
            model.kernels.len(),
            model.inducing.len()
        )));
    }
    let (count, each) = if shared { (1, latents) } else { (latents, 1) };
    processes.resize_with(count, Prepared::default);
    let mut solved = None;
    for (index, process) in processes.iter_mut().enumerate() {
        process.latents = index * each..(index + 1) * each;
        let of = |count: usize| if count == 1 { 0 } else { index };
        (process.kernel, process.set) = (of(model.kernels.len()), of(model.inducing.len()));
        solved = process.prepare(model, q, record, following)?;
    }
    Ok(solved)
}

impl Uncollapsed {
    /// Refuses to mix latent functions where that is not derived: with factors of their own, or sites of rows; and
    /// a matrix for other than so many target columns.
    fn check_mixing(&self, model: &Model, outputs: Option<usize>) -> Result<()> {
        let Some(mixing) = model.likelihood.mixing() else { return Ok(()) };
        let untied = model.q.as_ref().is_some_and(|q| q.tying() == Some(Tying::Untied));
        if self.bound.has_factors() || untied || !self.steps_naturally() {
            return Err(Error::Invalid(format!(
                "latent functions are mixed by `svgp` and `tsvgp` with tied sites; the method is `{}`",
                self.name
            )));
        }
        let rows = mixed_shape(mixing).0;
        match outputs.filter(|outputs| *outputs != rows) {
            None => Ok(()),
            Some(outputs) => Err(Error::Shape {
                what: "likelihood.mixing".into(),
                expected: format!("{outputs} rows, one for every target column"),
                found: format!("{rows}"),
            }),
        }
    }

    /// One pass over `data` at the model's parameters.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn step(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
    ) -> Result<Step> {
        let mut step = Step::default();
        self.renew(&mut step, model, engine, data, want)?;
        Ok(step)
    }

    /// Ties the sites of a model, if it has untied ones, by their natural parameters: q(u) stays what
    /// it is, and stands without the rows.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn tie(&self, model: &mut Model, engine: &dyn Engine, data: &dyn Source) -> Result<()> {
        if let Some(q) = model.q.as_ref().filter(|q| q.tying() == Some(Tying::Untied)) {
            let step = self.step(model, engine, data, Want::Value)?;
            model.q = Some(untied::tie(&step, q));
        }
        Ok(())
    }

    /// The same in the memory of an earlier step. After an error the step holds nothing of use.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    pub fn renew(
        &self,
        step: &mut Step,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
    ) -> Result<()> {
        self.pass(step, model, engine, [data, data], want)
    }

    /// Moves untied sites of some rows alone by a step of size `rate` (Adam et al. 2021, without the
    /// factor N/B: a site is visited once in a while, and stays meanwhile). `all` are the rows of the
    /// sites, `some` those at `places` among them.
    ///
    /// # Errors
    /// As for [`Uncollapsed::renew`]; [`Error::Invalid`] if sites are tied, or for other places.
    pub fn visit_rows(
        &self,
        step: &mut Step,
        model: &mut Model,
        engine: &dyn Engine,
        (all, some, places): (&dyn Source, &dyn Source, &[usize]),
        rate: f64,
    ) -> Result<()> {
        let fits = places.len() == some.rows() && places.iter().all(|place| *place < all.rows());
        if variational(model)?.tying() != Some(Tying::Untied) || !fits {
            return Err(Error::Invalid(
                "rows are visited by their places among untied sites".into(),
            ));
        }
        self.pass(step, model, engine, [all, some], Want::Statistics)?;
        let Some(q) = &mut model.q else { return variational(model).map(|_| ()) };
        step.seen.get_mut().unwrap_or_else(PoisonError::into_inner).step_at(q, places, rate);
        Ok(())
    }

    /// One pass over rows, at the q of untied sites of others.
    fn pass(
        &self,
        step: &mut Step,
        model: &Model,
        engine: &dyn Engine,
        [of_sites, data]: [&dyn Source; 2],
        want: Want,
    ) -> Result<()> {
        self.prepare_step(step, model, data, want, None)?;
        if variational(model)?.tying() == Some(Tying::Untied) {
            let q = variational(model)?;
            untied::check(q, of_sites)?;
            let Step { processes, untied: sites, .. } = step;
            untied::prepare(processes, model, q, engine, of_sites, sites)?;
        }
        self.sum(step, model, engine, data, want)
    }

    /// What comes before the rows.
    fn prepare_step(
        &self,
        step: &mut Step,
        model: &Model,
        data: &dyn Source,
        want: Want,
        following: Option<&Following>,
    ) -> Result<()> {
        self.bound.check(&*model.likelihood)?;
        self.check_mixing(model, Some(data.outputs()))?;
        let q = variational(model)?;
        let latents = model.latents(data.outputs());
        if q.latents() != latents {
            return Err(Error::Shape {
                what: "q.mu".into(),
                expected: format!("{latents} columns, one per latent function"),
                found: format!("{}", q.latents()),
            });
        }
        if q.pseudo().is_some() {
            self.check_pseudo(model)?;
        }
        step.check_choice(model)?;
        step.clipped = q.tying().is_some() && want == Want::Statistics;
        let following = following.map(|how| (how, Some(data)));
        step.solved = prepare(model, want.gradients(), following, &mut step.processes)?;
        Ok(())
    }

    /// The pass over the rows.
    fn sum(
        &self,
        step: &mut Step,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
    ) -> Result<()> {
        let q = variational(model)?;
        let latents = q.latents();
        let untied = q.tying() == Some(Tying::Untied);
        let Step { processes, v, passed, seen, clipped, chosen, .. } = step;
        v.clear();
        let mixing = model.likelihood.mixing();
        // one for every latent function that the likelihood sees
        let seen_by_rows = mixing.map_or(latents, |w| mixed_shape(w).0);
        let factor = |l: usize| if self.bound.has_factors() { q.factor_of(l) } else { 1.0 };
        v.extend((0..seen_by_rows).map(factor));
        let trace = |k: &Mat<f64>| (0..k.nrows()).map(|i| k[(i, i)]).sum::<f64>();
        let smallest = processes
            .iter()
            .map(|p| trace(&p.kuu) / p.kuu.nrows().max(1) as f64)
            .fold(f64::INFINITY, f64::min);
        let rows = LikelihoodRows {
            likelihood: &*model.likelihood,
            bound: self.bound,
            v,
            params: model.likelihood.num_params(),
            // R-SVGP's φᵀφ may be more than the prior variance: what is left of E is in s
            rounding: if q.root.is_some() { f64::INFINITY } else { 1e-8 * smallest },
            // what moves sites alone: they stay precisions
            most: if *clipped { -0.5 * q.floor } else { f64::INFINITY },
            chosen: chosen.as_deref(),
            // they are of all rows
            ratios: match want {
                Want::Value => self.bound.closed_form(&*model.likelihood),
                _ => None,
            },
        };
        let by_rows = processes.iter().all(|p| p.by_rows(q, &rows, data.rows()));
        let want = match want {
            Want::Adjoints { .. } if !by_rows => Want::Gradients,
            want => want,
        };
        let products = want == Want::Gradients && self.bound.equal_slopes() && chosen.is_none();
        for process in processes.iter_mut() {
            process.through = products && q.pseudo().is_none() && !process.few(data.rows());
            if process.through {
                process.prepare_through();
            }
        }
        let scale = data.scale();
        let mean = &*model.mean;
        let recording = Recording { inner: &rows, mean, rows: data.rows(), seen };
        let inputs = data.inputs();
        let mixed = mixing.map(|mixing| MixedRows { inner: &rows, mixing, mean, inputs });
        let (pointwise, mean): (&dyn Pointwise, &dyn Mean) = match &mixed {
            // the mean is that of the targets
            Some(mixed) => (mixed, &Zero),
            None if untied => (&recording, mean),
            None => (&rows, mean),
        };
        match processes.as_slice() {
            // the usual case, which needs no list
            [one] => {
                let processes = &[one.process(model)];
                engine.pass(&Job { processes, mean, pointwise, scale, want }, data, passed)
            }
            many => {
                let all: Vec<Process<'_>> = many.iter().map(|p| p.process(model)).collect();
                let processes = &all[..];
                engine.pass(&Job { processes, mean, pointwise, scale, want }, data, passed)
            }
        }?;
        let mut value = passed.sums[sum::VALUE];
        for p in processes.iter() {
            if q.pseudo().is_some() {
                value -= p.pseudo.lspace.kl();
                continue;
            }
            for (at, root) in p.parts.roots.iter().enumerate() {
                value -= variational::kl(column(p.parts.mean.as_ref(), at), root.as_ref());
            }
        }
        step.updated = rows.updated(&passed.sums);
        for (l, v) in rows.v.iter().enumerate() {
            value -= 0.5 * passed.sums[rows.observed() + l] * (v - v.ln() - 1.0);
        }
        step.diagnostics = Diagnostics {
            jitter: processes.iter().map(|p| p.basis.factor().jitter).fold(0.0, f64::max),
            unexplained: passed.sums[sum::UNEXPLAINED],
            prior_variance: None,
            negative: passed.sums[sum::NEGATIVE] as usize,
            residual: processes.first().and_then(Prepared::pseudo_residual),
        };
        step.value = super::finite(value, "the bound")?;
        if untied && want == Want::Gradients {
            untied::add_gradients(step, model, q, engine, data)?;
        }
        Ok(())
    }
}

impl Step {
    /// Chooses, from the next pass on, which latent functions of every target move; none for all of them again.
    ///
    /// The others are looked at, so that the value and the slopes of the likelihood's parameters are what they
    /// were, but nothing is summed for them: of q's parameters only those that were chosen have natural gradients,
    /// the same ones as without a choice, and steps leave the others where they are. Other gradients
    /// are those that come through the chosen ones, times K by their number. So, if every choice of so many has the
    /// same probability, a gradient is one of all on average; [`Step::gradient`] leaves that of q out.
    ///
    /// It is for q by whitened moments, with one kernel and one set of inducing points.
    pub fn choose(&mut self, chosen: Option<Vec<bool>>) {
        self.chosen = chosen;
    }

    /// Refuses a choice among what has none.
    fn check_choice(&self, model: &Model) -> Result<()> {
        let Some(chosen) = &self.chosen else { return Ok(()) };
        let each = model.likelihood.latents();
        if chosen.len() != each || !chosen.contains(&true) {
            return Err(Error::Shape {
                what: "the choice of latent functions".into(),
                expected: format!("some of {each}, those of a target"),
                found: format!("{} of {}", chosen.iter().filter(|c| **c).count(), chosen.len()),
            });
        }
        let shared = model.kernels.len() == 1 && model.inducing.len() == 1;
        let whitened = variational(model)?.form == variational::Form::Whitened;
        if shared && whitened && model.likelihood.mixing().is_none() {
            return Ok(());
        }
        Err(Error::Invalid(
            "some of the classes at a time are for latent functions that share their kernel and inducing \
             points, with q by whitened moments"
                .into(),
        ))
    }

    /// By how much gradients through the latent functions that move are to be multiplied.
    fn share(&self) -> f64 {
        self.chosen.as_ref().map_or(1.0, |chosen| {
            chosen.len() as f64 / chosen.iter().filter(|c| **c).count() as f64
        })
    }

    /// Gradient with respect to every constrained parameter, in the order of [`Model::params`], into
    /// `out`; the step must have been made with [`Want::Gradients`] or [`Want::Adjoints`]. To be asked once. With
    /// statistics and Ψ of the rows the part of a frozen q is left 0.
    pub fn gradient(&mut self, model: &Model, out: &mut [f64]) {
        out.fill(0.0);
        let share = self.share();
        let Self { processes, passed, chosen, .. } = self;
        if share != 1.0 {
            passed.mean.iter_mut().for_each(|g| *g *= share);
            for sums in &mut passed.processes {
                sums.kernel.iter_mut().for_each(|g| *g *= share);
                sums.z *= faer::Scale(share);
            }
        }
        let gradient = model.parts_of(out);
        let Some(q) = &model.q else { return };
        let likelihood = gradient.likelihood.len();
        gradient.likelihood.copy_from_slice(&passed.sums[sum::PARAMS..][..likelihood]);
        match model.likelihood.mixing() {
            None => gradient.mean.copy_from_slice(&passed.mean),
            Some(mixing) => {
                // W is the last of the likelihood's parameters
                let from = sum::PARAMS + likelihood + 2 * mixed_shape(mixing).0;
                let (by_mixing, by_mean) = passed.sums[from..].split_at(mixing.len());
                gradient.likelihood[likelihood - mixing.len()..].copy_from_slice(by_mixing);
                gradient.mean.copy_from_slice(by_mean);
            }
        }
        for (own, sums) in processes.iter_mut().zip(&mut passed.processes) {
            let m = own.z.nrows();
            if q.pseudo().is_some() {
                let gram = sums.grams[0].as_ref();
                own.pull_pseudo(q, sums.phi_a.as_ref(), gram, gradient.q);
                own.finish(model, sums, &mut *gradient.kernel, &mut *gradient.inducing);
                continue;
            }
            let mut psi = std::mem::replace(&mut own.kuu_bar, Mat::new());
            let given = sums.psi.is_some();
            match &mut sums.psi {
                Some(by_rows) => std::mem::swap(&mut psi, by_rows),
                None => {
                    sized(&mut psi, m, m);
                    Prepared::begin_psi(sums, &mut psi);
                }
            }
            match q.tying() {
                Some(tying) if tying != Tying::Whitened => {
                    let rows = Statistics { phi_a: sums.phi_a.as_ref(), grams: &sums.grams };
                    own.sites.add_psi(tying, &own.parts, rows, psi.as_mut());
                }
                tying => {
                    // what natural-gradient steps move: nobody asks for gradients of it
                    let natural = q.stays() && !sums.grams.is_empty();
                    let whitened = q.form == variational::Form::Whitened;
                    let unasked = tying.is_some() || chosen.is_some() || natural && whitened;
                    let needed = !given || !unasked;
                    if needed {
                        own.moments(sums, (!given).then(|| psi.as_mut()));
                    }
                    if chosen.is_some() {
                        psi *= faer::Scale(share);
                    } else if tying.is_none() && needed {
                        let (latents, factor) = (own.latents.clone(), own.basis.factor());
                        q.pull(latents, factor, &own.parts, &mut own.bars, &mut psi, gradient.q);
                    }
                }
            }
            own.kuu_bar = own.basis.kuu_bar(psi);
            own.finish(model, sums, &mut *gradient.kernel, &mut *gradient.inducing);
        }
        if let Some(v) = &q.v {
            let latents = v.len();
            let (slopes, counts) = passed.sums[sum::PARAMS + likelihood..].split_at(latents);
            let start = gradient.q.len() - latents;
            for (l, g) in gradient.q[start..].iter_mut().enumerate() {
                *g = slopes[l] - 0.5 * counts[l] * (1.0 - 1.0 / v.value()[l]);
            }
        }
    }

    /// How far whitened sums of sites are from their fixed point, for sites: the slopes of the bound
    /// with respect to γ₁ (M×l, of all latent functions) and Γ₂ (M×M each). Empty after a pass without statistics.
    pub fn site_slopes(&self) -> Vec<(Mat<f64>, Vec<Mat<f64>>)> {
        let pairs = self.processes.iter().zip(&self.passed.processes);
        pairs
            .filter(|(_, sums)| !sums.grams.is_empty())
            .map(|(own, sums)| {
                let rows = Statistics { phi_a: sums.phi_a.as_ref(), grams: &sums.grams };
                let mut work = own.sites.clone();
                let mut first = Mat::zeros(own.z.nrows(), own.latents.len());
                let second = (0..own.latents.len()).map(|at| {
                    let (w, y) = work.back(&own.parts, rows, at);
                    first.as_mut().col_mut(at).copy_from(w.col(0));
                    y
                });
                let second = second.collect();
                (first, second)
            })
            .collect()
    }

    /// The slopes of the bound with respect to the whitened means of all latent functions, Φa − m
    /// ([`NaturalStep`]), M numbers of each in turn. Empty after a pass without statistics.
    pub fn mean_slopes(&self) -> Vec<f64> {
        let pairs = self.processes.iter().zip(&self.passed.processes);
        pairs
            .filter(|(_, sums)| !sums.grams.is_empty())
            .flat_map(|(own, sums)| {
                let slopes = &sums.phi_a - &own.parts.mean;
                (0..slopes.ncols())
                    .flat_map(|l| column(slopes.as_ref(), l).to_vec())
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Moves sites so that the latent functions of a target have an average of 0, where only their differences matter
    /// ([`crate::likelihoods::Likelihood::shift_invariant`]) and they share their kernel: the likelihood's part of the bound stays, and
    /// KL(q‖p) is least so (derived in [`SiteWork::centre`](crate::variational::sites::SiteWork::centre)). Natural-gradient steps of each function by its own curvature come there but slowly.
    /// The pass is one at the moved sites afterwards.
    pub fn centre(&mut self, model: &mut Model) {
        let each = model.likelihood.latents();
        let ([own], None, true) =
            (&mut self.processes[..], &self.chosen, model.likelihood.shift_invariant())
        else {
            return;
        };
        let Some((q, tying)) = model.q.as_mut().and_then(|q| q.tying().map(|tying| (q, tying)))
        else {
            return;
        };
        let at = At { tying, latents: own.latents.clone(), factor: own.basis.factor() };
        // first: it reads what is stored
        if tying == Tying::Untied {
            self.seen.get_mut().unwrap_or_else(PoisonError::into_inner).centre(q, each);
        }
        self.value += own.sites.centre(q, &at, &mut own.parts, each);
    }

    /// The natural gradient of every latent function that moves, with its index, of M + M² numbers
    /// ([`NaturalStep::gradient`]). Empty after a pass without statistics.
    pub fn natural_gradients(&mut self) -> Vec<(usize, Vec<f64>)> {
        let Self { processes, passed, natural, chosen, .. } = self;
        let mut all = Vec::new();
        let pairs = processes.iter().zip(&passed.processes);
        for (own, sums) in pairs.filter(|(_, sums)| !sums.grams.is_empty()) {
            for (at, l) in own.latents.clone().enumerate().filter(|(_, l)| moves(chosen, *l)) {
                let rows = Statistics { phi_a: sums.phi_a.as_ref(), grams: &sums.grams };
                all.push((l, natural.gradient(&own.parts, rows, at)));
            }
        }
        all
    }

    /// [`Step::natural`] for the latent functions of one turn ([`Bound::turns`]) alone, each with its size.
    ///
    /// # Errors
    /// As for [`Step::natural`].
    pub fn natural_turn(
        &mut self,
        model: &mut Model,
        bound: &dyn Bound,
        turn: usize,
        rate: &dyn Fn(usize) -> f64,
    ) -> Result<()> {
        let each = model.likelihood.latents();
        if bound.turns(&*model.likelihood) == 1 {
            return self.natural_each(model, rate);
        }
        let before = model.q.clone();
        self.natural_each(model, rate)?;
        if let (Some(q), Some(before)) = (&mut model.q, before) {
            let stays = (0..q.latents())
                .filter(|l| bound.turn(&*model.likelihood, l % each) != turn)
                .collect::<Vec<_>>();
            q.copy_latents(&before, &stays);
        }
        Ok(())
    }

    /// Moves the model's q by a natural-gradient step of size `rate` from what this pass saw.
    ///
    /// # Errors
    /// As for [`NaturalStep::make`]; [`Error::Invalid`] for diagonal covariances and
    /// pseudo-observations. The model is unchanged then.
    pub fn natural(&mut self, model: &mut Model, rate: f64) -> Result<()> {
        self.natural_each(model, &|_| rate)
    }

    /// The same with a size for every latent function; sites take the first.
    ///
    /// # Errors
    /// As for [`Step::natural`].
    pub fn natural_each(&mut self, model: &mut Model, rate: &dyn Fn(usize) -> f64) -> Result<()> {
        if variational(model)?.pseudo().is_some() {
            return Err(Error::Invalid(
                "pseudo-observations move by Adam: there are no natural-gradient steps of them"
                    .into(),
            ));
        }
        let Self { processes, passed, natural, seen, clipped, chosen, .. } = self;
        let rate = |l: usize| if moves(chosen, l) { rate(l) } else { 0.0 };
        let tying = variational(model)?.tying();
        let without = passed.processes.iter().any(|sums| sums.grams.is_empty());
        if passed.processes.len() != processes.len() || without {
            return Err(Error::Invalid("a step needs a pass with statistics".into()));
        }
        for (own, sums) in processes.iter_mut().zip(&passed.processes) {
            let rows = Statistics { phi_a: sums.phi_a.as_ref(), grams: &sums.grams };
            // precisions stay precisions: there is no step too long
            let means = if tying.is_some() && *clipped {
                &sums.phi_a
            } else {
                let first = own.latents.start;
                natural.make(&own.parts, rows, |l| rate(first + l), &mut own.moved)?;
                &own.moved.mean
            };
            let mut all = (0..means.ncols()).flat_map(|l| column(means.as_ref(), l));
            if let Some(value) = all.find(|v| !v.is_finite()) {
                return Err(Error::NonFinite { what: "the new mean of q".into(), value: *value });
            }
        }
        let Some(q) = &mut model.q else { return variational(model).map(|_| ()) };
        let rate = rate(0);
        if tying == Some(Tying::Untied) {
            seen.get_mut().unwrap_or_else(PoisonError::into_inner).step(q, rate);
            return Ok(());
        }
        for (own, sums) in processes.iter_mut().zip(&passed.processes) {
            let (latents, factor) = (own.latents.clone(), own.basis.factor());
            match tying {
                Some(tying) => {
                    let rows = Statistics { phi_a: sums.phi_a.as_ref(), grams: &sums.grams };
                    let at = At { tying, latents, factor };
                    own.sites.step(q, &at, &own.parts, rows, rate);
                }
                None => q.set_whitened(latents, factor, &mut own.moved)?,
            }
        }
        Ok(())
    }
}

impl Method for Uncollapsed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn uncollapsed(&self) -> Option<&Uncollapsed> {
        Some(self)
    }

    fn sampler(&self) -> Option<Sampler> {
        self.sampler
    }

    fn row_site(&self) -> RowSite {
        if self.steps_naturally() { RowSite::Bound(self.bound) } else { RowSite::None }
    }

    fn check(&self, model: &Model) -> Result<()> {
        if !self.steps_naturally() {
            self.check_pseudo(model)?;
        }
        self.check_mixing(model, None)?;
        self.bound.check(&*model.likelihood)
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let mut step = self.step(model, engine, data, Want::Adjoints { statistics: false })?;
        let mut gradient = vec![0.0; model.num_params()];
        step.gradient(model, &mut gradient);
        Ok(Evaluation { value: step.value, gradient, diagnostics: step.diagnostics })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        let mut tied = model.clone();
        self.tie(&mut tied, engine, data)?;
        Posterior::of_q(&tied)
    }
}
