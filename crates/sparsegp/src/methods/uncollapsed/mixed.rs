//! Rows of target columns that are mixtures of common latent functions (linear coregionalisation): f = m(x) + W g.
//!
//! With independent g_q ~ N(μ_q, s_q + r_q) the marginals of f_p are N(m_p + Σ W_pq μ_q, Σ W_pq² (s_q + r_q)). From
//! slopes a, b, c of every f_p follow those of g_q, Σ_p W_pq a_p, Σ_p W_pq² b_p, Σ_p W_pq² c_p, and ∂ℓ/∂W_pq = a_p μ_q +
//! 2W_pq (b_p s_q + c_p r_q).

use super::rows::{LikelihoodRows, OwnRows, SentRows};
use crate::engine::{Block, Description, Plan, Pointwise, Slopes};
use crate::error::{Error, Result};
use crate::likelihoods::mixing_shape;
use crate::linalg::{Mat, column, column_mut};
use crate::means::{self, Mean};
use crate::methods::described::Fitting;
use crate::params::Param;
use faer::reborrow::ReborrowMut;

/// The rows of the targets, and how they are mixed. Sums are those of the rows, then ∂ℓ/∂W column by column, then
/// the gradient of the mean function.
pub(super) struct MixedRows<'a> {
    pub(super) inner: &'a LikelihoodRows<'a>,
    pub(super) mixing: &'a Param,
    pub(super) mean: &'a dyn Mean,
    /// Inputs D.
    pub(super) inputs: usize,
}

impl MixedRows<'_> {
    /// Returns where ∂ℓ/∂W begins.
    pub(super) fn by_mixing(&self) -> usize {
        self.inner.sums()
    }

    /// Returns where the gradient of the mean function begins.
    pub(super) fn by_mean(&self) -> usize {
        self.inner.sums() + self.mixing.len()
    }

    /// Returns what is needed and given.
    fn needs(&self) -> Plan<'static> {
        let sums = self.by_mean() + self.mean.num_params();
        Plan { c: self.inner.needs().c, ..Plan::by_rows(sums) }
    }
}

impl Pointwise for MixedRows<'_> {
    fn plan(&self) -> Plan<'_> {
        self.needs()
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let n = block.mu.nrows();
        let (outputs, latents) = mixing_shape(self.mixing);
        let w = |p: usize, q: usize| self.mixing.value()[q * outputs + p];
        let zeros = || Mat::<f64>::zeros(n, outputs);
        let (mut mu, mut s, mut r) = (zeros(), zeros(), zeros());
        self.mean.evaluate(block.rows.x, mu.as_mut());
        for p in 0..outputs {
            for q in 0..latents {
                let add = |to: &mut Mat<f64>, from: &[f64], weight: f64| {
                    let to = to.col_as_slice_mut(p).iter_mut();
                    to.zip(from).for_each(|(t, v)| *t += weight * v);
                };
                add(&mut mu, column(block.mu, q), w(p, q));
                add(&mut s, column(block.s, q), w(p, q) * w(p, q));
                add(&mut r, column(block.r, q), w(p, q) * w(p, q));
            }
        }
        let (mut a, mut b, mut c) = (zeros(), zeros(), zeros());
        let own = self.by_mixing();
        self.inner.rows(
            Block { rows: block.rows, mu: mu.as_ref(), s: s.as_ref(), r: r.as_ref() },
            Slopes {
                a: a.as_mut(),
                b: b.as_mut(),
                c: c.as_mut(),
                sums: &mut out.sums[..own],
                scratch: out.scratch,
            },
        );
        let by_mean = self.by_mean();
        self.mean.vjp(block.rows.x, a.as_ref(), &mut out.sums[by_mean..]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for q in 0..latents {
            let [mut a_q, mut b_q, mut c_q] =
                [&mut out.a, &mut out.b, &mut out.c].map(|m| column_mut(m.rb_mut(), q));
            [&mut a_q, &mut b_q, &mut c_q].into_iter().for_each(|m| m.fill(0.0));
            for p in 0..outputs {
                let (a, b) = (a.col_as_slice(p), b.col_as_slice(p));
                // c is not written where it is b
                let c = if self.needs().c.is_none() { b } else { c.col_as_slice(p) };
                let (w, square) = (w(p, q), w(p, q) * w(p, q));
                a_q.iter_mut().zip(a).for_each(|(t, v)| *t += w * v);
                b_q.iter_mut().zip(b).for_each(|(t, v)| *t += square * v);
                c_q.iter_mut().zip(c).for_each(|(t, v)| *t += square * v);
                let spread = dot(b, column(block.s, q)) + dot(c, column(block.r, q));
                out.sums[own + q * outputs + p] += dot(a, column(block.mu, q)) + 2.0 * w * spread;
            }
        }
    }

    fn describe(&self) -> Result<Description> {
        let mean = means::to_json(self.mean).to_string();
        Description::new(MIXED_ROWS, &(self.inner.sent(), mean, self.inputs))
    }
}

/// Kind of the description of [`MixedRows`].
pub(in crate::methods) const MIXED_ROWS: &str = "mixed rows";

/// [`MixedRows`] that own what they refer to.
struct OwnMixed {
    inner: OwnRows,
    mean: Box<dyn Mean>,
    inputs: usize,
}

impl OwnMixed {
    fn of<T>(&self, work: impl FnOnce(&MixedRows<'_>) -> T) -> T {
        let inner = self.inner.rows();
        let mixing = self.inner.likelihood().mixing().expect("looked at when it was made");
        work(&MixedRows { inner: &inner, mixing, mean: &*self.mean, inputs: self.inputs })
    }
}

impl Pointwise for OwnMixed {
    fn plan(&self) -> Plan<'_> {
        self.of(|own| own.needs())
    }
    fn rows(&self, block: Block<'_>, out: Slopes<'_>) {
        self.of(|own| own.rows(block, out));
    }
}

/// Returns the rows of a description.
pub(in crate::methods) fn described(
    description: &Description,
    rows: Fitting,
) -> Result<Box<dyn Pointwise>> {
    let (sent, mean, inputs): (SentRows, String, usize) = description.state()?;
    let inner = OwnRows::of(sent, rows)?;
    let damaged = || Error::Invalid("the request is damaged".into());
    let (outputs, latents) = inner.likelihood().mixing().map(mixing_shape).ok_or_else(damaged)?;
    Fitting::check([inputs, outputs, latents] == [rows.inputs, rows.outputs, rows.latents])?;
    let json = serde_json::from_str(&mean).map_err(|_| damaged())?;
    let mean = means::from_json(&json, inputs, outputs)?;
    Ok(Box::new(OwnMixed { inner, mean, inputs }))
}
