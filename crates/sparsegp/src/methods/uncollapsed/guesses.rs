//! A q to start from where the prior is unsuitable for it: what guesses of the latent values make
//! of the rows.
//!
//! Under a wide prior E[exp f] is so large that a natural-gradient step from the prior leads nowhere: its precisions are those of
//! the prior's own explosion. Sites at guesses of f, λ₂ = −∂² log p/∂f² and λ₁ = ∂ log p/∂f + λ₂ (f − m(x)), are the first step
//! of iterated weighted least squares (McCullagh & Nelder 1989, §2.5), which begins with what a target itself says of f.

use super::rows::{LikelihoodRows, OwnRows, SentRows};
use super::{forms, prepared::prepare, variational};
use crate::data::{Rows, Source};
use crate::engine::{
    Block, Description, Engine, Job, Passed, Plan, Pointwise, Process, Slopes, Sweep, Want, sweep,
};
use crate::error::{Error, Result};
use crate::likelihoods::{self, Likelihood, Target};
use crate::linalg::{Mat, MatRef, column};
use crate::means::{self, Mean};
use crate::methods::described::Fitting;
use crate::model::{Model, WithQ};
use crate::variational::Variational;

/// Guesses of the latent values at all rows.
#[derive(Debug)]
pub(crate) struct Guesses {
    /// Σ log p(y | f) at them: about as high as any bound can come, whatever the prior.
    pub(crate) value: f64,
    /// What all targets say together, where a single target does not say it.
    pooled: Vec<f64>,
}

/// Returns constants under which targets are not surprising, of every latent function
/// ([`crate::likelihoods::Likelihood::initialise`]).
pub(crate) fn constants(model: &Model, data: &dyn Source) -> Result<Vec<f64>> {
    if let Some(rows) = data.sharded() {
        return constants(model, &rows.spread()?);
    }
    let mut all = vec![Vec::new(); data.outputs()];
    let default = model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    data.for_each_chunk(1 << 14, &mut |rows| {
        for (p, targets) in all.iter_mut().enumerate() {
            for (i, y) in column(rows.y, p).iter().enumerate() {
                let counts = rows.weights.get(i).is_none_or(|w| *w > 0.0);
                if counts && y.is_finite() {
                    let extra = rows.extra.get(i).copied().unwrap_or(default);
                    targets.push(Target { y: *y, extra });
                }
            }
        }
        Ok(())
    })?;
    let none = vec![0.0; model.likelihood.latents()];
    let of = |own: &Vec<Target>| match own.is_empty() {
        true => none.clone(),
        false => as_it_is(model).initialise(own),
    };
    Ok(all.iter().flat_map(of).collect())
}

/// Returns the likelihood with its parameters as they are, whatever its targets would say of them.
fn as_it_is(model: &Model) -> Box<dyn Likelihood> {
    let mut own = model.likelihood.clone();
    own.params_mut().into_iter().for_each(|(_, param)| param.given = true);
    own
}

impl Guesses {
    /// Finds what every target says of its latent value; of several that it depends on, what all
    /// targets say together. None for a q that cannot be set by them.
    ///
    /// # Errors
    /// Those of reading the rows.
    pub(crate) fn of(model: &Model, data: &dyn Source) -> Result<Option<Self>> {
        let likelihood = &*model.likelihood;
        let cannot = |q: &Variational| !forms::of(q).takes_guesses(q);
        if likelihood.mixing().is_some() || model.q.as_ref().is_none_or(cannot) {
            return Ok(None);
        }
        let pooled = if likelihood.latents() == 1 { Vec::new() } else { constants(model, data)? };
        let guessing = Guessing { own: as_it_is(model), pooled };
        let value = sweep(data, &guessing)?[0];
        Ok(Some(Self { value, pooled: guessing.pooled }))
    }

    /// Returns the q that they make.
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`].
    pub(crate) fn q(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Option<Variational>> {
        let q = variational(model)?;
        let Some(WithQ { bound, .. }) = model.method.with_q() else { return Ok(None) };
        let ones = vec![1.0; q.latents()];
        let inner = LikelihoodRows {
            likelihood: &*model.likelihood,
            bound,
            v: &ones,
            params: model.likelihood.num_params(),
            rounding: f64::INFINITY,
            most: -0.5 * q.floor,
            chosen: None,
            ratios: None,
        };
        let guessing = Guessing { own: as_it_is(model), pooled: self.pooled.clone() };
        let (mean, inputs) = (&*model.mean, data.inputs());
        let rows = AtGuesses { inner: &inner, guessing: &guessing, mean, inputs };
        let form = forms::of(q);
        if form.sees_rows() {
            return of_rows(q, &rows, data);
        }
        // sums over rows need features, and no q
        let prior = Variational::prior(q.points(), q.latents(), false);
        let trial = Model { q: Some(prior), ..model.clone() };
        let (mut processes, mut passed) = (Vec::new(), Passed::default());
        prepare(&trial, false, None, &mut processes)?;
        let inducing: Vec<_> = processes.iter().map(|p| p.inducing(&trial)).collect();
        let pairs = processes.iter().zip(&inducing);
        let all: Vec<Process<'_>> = pairs.map(|(p, u)| p.whitened_process(u)).collect();
        let scale = data.population() as f64 / data.rows().max(1) as f64;
        let want = Want::Statistics;
        engine.pass(
            &Job { processes: &all, mean, pointwise: &rows, scale, want },
            data,
            &mut passed,
        )?;
        drop(all);
        let mut found = q.clone();
        if q.tying().is_some() {
            found.first.value_mut().fill(0.0);
            found.second.value_mut().fill(0.0);
        }
        for (own, sums) in processes.iter_mut().zip(&passed.processes) {
            form.take_guesses(own, sums, &mut found)?;
        }
        Ok(Some(found))
    }
}

/// Returns the sites of all rows.
fn of_rows(
    q: &Variational,
    rows: &AtGuesses<'_>,
    data: &dyn Source,
) -> Result<Option<Variational>> {
    let (n, latents) = (q.points(), q.latents());
    let mut found = q.clone();
    let mut sums = vec![0.0; rows.needs().sums];
    data.for_each_chunk(1 << 12, &mut |chunk| {
        let count = chunk.x.nrows();
        let zeros = || Mat::<f64>::zeros(count, latents);
        let (still, mut a, mut b, mut c) = (zeros(), zeros(), zeros(), zeros());
        let start = chunk.start;
        let block = Block { rows: chunk, mu: still.as_ref(), s: still.as_ref(), r: still.as_ref() };
        let scratch = &mut Vec::new();
        let out = Slopes { a: a.as_mut(), b: b.as_mut(), c: c.as_mut(), sums: &mut sums, scratch };
        rows.rows(block, out);
        for l in 0..latents {
            for i in 0..count {
                found.first.value_mut()[l * n + start + i] = a[(i, l)];
                found.second.value_mut()[l * n + start + i] = -2.0 * b[(i, l)];
            }
        }
        Ok(())
    })?;
    Ok(Some(found))
}

/// How a row's latent values are guessed.
struct Guessing {
    /// The likelihood, whose parameters stay.
    own: Box<dyn Likelihood>,
    pooled: Vec<f64>,
}

impl Guessing {
    /// Calls `f` with the place of every target that counts (row, column), itself and its guesses.
    fn each(&self, rows: &Rows<'_>, mut f: impl FnMut(usize, usize, Target, &[f64])) {
        let mut own = self.own.clone();
        let k = own.latents();
        let default = own.extra().and_then(|e| e.default).unwrap_or(1.0);
        for p in 0..rows.y.ncols() {
            for (i, y) in column(rows.y, p).iter().enumerate() {
                let weight = rows.weights.get(i).copied().unwrap_or(1.0);
                if y.is_nan() || weight == 0.0 {
                    continue;
                }
                let extra = rows.extra.get(i).copied().unwrap_or(default);
                let target = Target { y: *y, extra };
                match k {
                    1 => f(i, p, target, &own.initialise(&[target])),
                    _ => f(i, p, target, &self.pooled[p * k..(p + 1) * k]),
                }
            }
        }
    }
}

/// Kind of the description of [`Guessing`] as a sweep.
pub(in crate::methods) const GUESSES: &str = "guesses";

impl Sweep for Guessing {
    fn sums(&self) -> usize {
        1
    }

    fn add(&self, rows: &Rows<'_>, sums: &mut [f64]) -> Result<()> {
        self.each(rows, |i, _, target, f| {
            let log = self.own.log_prob(target, f);
            let weight = rows.weights.get(i).copied().unwrap_or(1.0);
            sums[0] += if log.is_finite() { weight * log } else { 0.0 };
        });
        Ok(())
    }

    fn describe(&self) -> Result<Description> {
        Description::new(GUESSES, &(self.own.to_json().to_string(), &self.pooled))
    }
}

impl Guessing {
    fn described(likelihood: &str, pooled: Vec<f64>, rows: Fitting) -> Result<Self> {
        let mut own = likelihoods::parse(likelihood)?;
        let wanted = if own.latents() == 1 { 0 } else { own.latents() * rows.outputs };
        Fitting::check(pooled.len() == wanted)?;
        own.params_mut().into_iter().for_each(|(_, param)| param.given = true);
        Ok(Self { own, pooled })
    }
}

/// Returns the sweep of a description.
pub(in crate::methods) fn described(
    description: &Description,
    rows: Fitting,
) -> Result<Box<dyn Sweep>> {
    let (likelihood, pooled): (String, Vec<f64>) = description.state()?;
    Ok(Box::new(Guessing::described(&likelihood, pooled, rows)?))
}

/// Rows whose latent values are guesses, as sites: a is λ₁, b is −½λ₂.
struct AtGuesses<'a> {
    inner: &'a LikelihoodRows<'a>,
    guessing: &'a Guessing,
    mean: &'a dyn Mean,
    inputs: usize,
}

/// Kind of the description of [`AtGuesses`].
pub(in crate::methods) const AT_GUESSES: &str = "rows at guesses";

/// [`AtGuesses`] that own what they refer to.
struct OwnAtGuesses {
    inner: OwnRows,
    guessing: Guessing,
    mean: Box<dyn Mean>,
    inputs: usize,
}

impl OwnAtGuesses {
    fn of<T>(&self, work: impl FnOnce(&AtGuesses<'_>) -> T) -> T {
        let inner = self.inner.rows();
        let Self { guessing, mean, inputs, .. } = self;
        work(&AtGuesses { inner: &inner, guessing, mean: &**mean, inputs: *inputs })
    }
}

impl Pointwise for OwnAtGuesses {
    fn plan(&self) -> Plan<'_> {
        self.of(|own| own.needs())
    }
    fn rows(&self, block: Block<'_>, out: Slopes<'_>) {
        self.of(|own| own.rows(block, out));
    }
}

/// Returns the rows of a description.
pub(in crate::methods) fn rows_described(
    description: &Description,
    rows: Fitting,
) -> Result<Box<dyn Pointwise>> {
    let (sent, pooled, mean, inputs): (SentRows, Vec<f64>, String, usize) = description.state()?;
    let outputs = sent.latents();
    Fitting::check(inputs == rows.inputs && outputs == rows.latents)?;
    let inner = OwnRows::of(sent, rows)?;
    let likelihood = inner.likelihood().to_json().to_string();
    let guessing = Guessing::described(&likelihood, pooled, rows)?;
    let json =
        serde_json::from_str(&mean).map_err(|_| Error::Invalid("the request is damaged".into()))?;
    let mean = means::from_json(&json, inputs, outputs)?;
    Ok(Box::new(OwnAtGuesses { inner, guessing, mean, inputs }))
}

impl Pointwise for AtGuesses<'_> {
    fn plan(&self) -> Plan<'_> {
        self.needs()
    }

    fn describe(&self) -> Result<Description> {
        let mean = means::to_json(self.mean).to_string();
        let state = (self.inner.sent(), &self.guessing.pooled, mean, self.inputs);
        Description::new(AT_GUESSES, &state)
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let (n, latents) = (block.rows.x.nrows(), block.mu.ncols());
        let k = self.inner.likelihood.latents();
        let mut guess = Mat::zeros(n, latents);
        self.guessing.each(&block.rows, |i, p, _, f| {
            f.iter().enumerate().for_each(|(l, f)| guess[(i, p * k + l)] = *f);
        });
        let known = Mat::<f64>::zeros(n, latents);
        let mut offset = Mat::zeros(n, latents);
        self.mean.evaluate(block.rows.x, offset.as_mut());
        for _ in 0..self.most_moves(block.r) {
            self.slopes(&block, guess.as_ref(), known.as_ref(), &mut out);
            let mut any = false;
            for i in 0..n {
                for l in 0..latents {
                    let step = out.a[(i, l)] / (-2.0 * out.b[(i, l)]);
                    if step.abs() > NEAR {
                        guess[(i, l)] += step.clamp(-1.0, 1.0);
                        any = true;
                    }
                }
            }
            if !any {
                break;
            }
        }
        self.slopes(&block, guess.as_ref(), known.as_ref(), &mut out);
        for l in 0..latents {
            for i in 0..n {
                let (a, b) = (out.a[(i, l)], out.b[(i, l)]);
                let first = a - 2.0 * b * (guess[(i, l)] - offset[(i, l)]);
                let finite = first.is_finite() && b.is_finite();
                let (first, b) = if finite { (first, b) } else { (0.0, 0.0) };
                (out.a[(i, l)], out.b[(i, l)], out.c[(i, l)]) = (first, b, b);
            }
        }
    }
}

/// A guess to which Newton's step would add less than this is near enough.
const NEAR: f64 = 0.5;

/// Most such steps.
const MOVES: f64 = 1000.0;

impl AtGuesses<'_> {
    /// Returns what is needed and given.
    fn needs(&self) -> Plan<'static> {
        Plan { variances: false, c: None, ..Plan::by_rows(self.inner.sums()) }
    }

    /// Returns the most moves towards the best mean. What inducing points leave unexplained, r,
    /// moves the best mean away from the guess: by r/2 where the link is exponential. So many steps
    /// of Newton's, none longer than 1, come there; with several latent functions they might lead
    /// astray.
    fn most_moves(&self, r: MatRef<'_, f64>) -> usize {
        if self.inner.likelihood.latents() > 1 {
            return 0;
        }
        let largest = (0..r.ncols()).flat_map(|l| column(r, l)).fold(0.0, |m: f64, r| m.max(*r));
        largest.min(MOVES) as usize
    }

    /// Computes slopes where f ~ N(guess, r).
    fn slopes(
        &self,
        block: &Block<'_>,
        guess: MatRef<'_, f64>,
        known: MatRef<'_, f64>,
        out: &mut Slopes<'_>,
    ) {
        let out = Slopes {
            a: out.a.as_mut(),
            b: out.b.as_mut(),
            c: out.c.as_mut(),
            sums: &mut *out.sums,
            scratch: &mut *out.scratch,
        };
        self.inner.rows(Block { rows: block.rows, mu: guess, s: known, r: block.r }, out);
    }
}
