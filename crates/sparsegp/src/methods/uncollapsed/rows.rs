//! The rows of an uncollapsed bound: targets, weights and latent functions brought together.

use crate::bounds::{self, Bound, Row, RowSlopes};
use crate::data::Rows;
use crate::engine::{Block, Description, Plan, Pointwise, Slope, Slopes};
use crate::error::Result;
use crate::likelihoods::augmented::{self, Augmented, Ratios};
use crate::likelihoods::together::Rows as Rowwise;
use crate::likelihoods::{self, Likelihood, Target};
use crate::linalg::{Mat, MatRef, column};
use crate::methods::described::Fitting;
use serde::{Deserialize, Serialize};

/// A likelihood with a bound, for any number of target columns.
pub(in crate::methods) struct LikelihoodRows<'a> {
    pub(in crate::methods) likelihood: &'a dyn Likelihood,
    pub(in crate::methods) bound: &'a dyn Bound,
    /// Factors of r, one for each latent function.
    pub(in crate::methods) v: &'a [f64],
    /// Numbers among the likelihood's parameters.
    pub(in crate::methods) params: usize,
    /// r below minus this counts as negative.
    pub(in crate::methods) rounding: f64,
    /// ∂ℓ/∂s is cut here, so that no site has less than the smallest precision.
    pub(in crate::methods) most: f64,
    /// Which of the latent functions of a target have slopes, if not all.
    pub(in crate::methods) chosen: Option<&'a [bool]>,
    /// The local variables whose sums for updates in closed form are wanted too ([`Augmented::add_ratios`]): the last
    /// of the sums.
    pub(in crate::methods) ratios: Option<&'a dyn Augmented>,
}

/// Positions among the sums; then the slopes of the likelihood's parameters, then for every latent
/// function the slope of v and the number of observed targets.
pub(in crate::methods) mod sum {
    pub const VALUE: usize = 0;
    pub const UNEXPLAINED: usize = 1;
    pub const NEGATIVE: usize = 2;
    pub const PARAMS: usize = 3;
}

impl LikelihoodRows<'_> {
    /// Returns where the slopes of v begin.
    pub(in crate::methods) fn factors(&self) -> usize {
        sum::PARAMS + self.params
    }

    /// Returns whether a latent function of a target has slopes.
    fn moves(&self, l: usize) -> bool {
        self.chosen.is_none_or(|chosen| chosen[l])
    }

    /// Returns where the numbers of observed targets begin.
    pub(in crate::methods) fn observed(&self) -> usize {
        self.factors() + self.v.len()
    }
}

impl<'a> LikelihoodRows<'a> {
    /// Returns where the sums of ratios begin.
    fn ratios_at(&self) -> usize {
        self.observed() + self.v.len()
    }

    /// Returns how many sums there are.
    pub(in crate::methods) fn sums(&self) -> usize {
        self.ratios_at() + self.ratios.map_or(0, |_| 2 * self.params)
    }

    /// Returns what is needed and given.
    pub(in crate::methods) fn needs(&self) -> Plan<'a> {
        let c = if self.bound.equal_slopes() { None } else { Some(Slope::Rows) };
        Plan { c, counts: self.chosen, ..Plan::by_rows(self.sums()) }
    }

    /// Returns what the likelihood's parameters become by these sums.
    pub(in crate::methods) fn updated(&self, sums: &[f64]) -> Vec<Option<f64>> {
        let Some(augmented) = self.ratios else { return Vec::new() };
        let (over, under) = sums[self.ratios_at()..].split_at(self.params);
        augmented::updated(augmented, over, under)
    }
}

impl LikelihoodRows<'_> {
    /// Returns the sums over some rows at means and variances (B×L) of which nothing is left
    /// unexplained, with ∂ℓ/∂μ and ∂ℓ/∂s.
    pub(in crate::methods) fn at(
        &self,
        rows: Rows<'_>,
        mu: MatRef<'_, f64>,
        s: MatRef<'_, f64>,
    ) -> (Vec<f64>, Mat<f64>, Mat<f64>) {
        let zeros = || Mat::<f64>::zeros(mu.nrows(), mu.ncols());
        let (r, mut a, mut b, mut c) = (zeros(), zeros(), zeros(), zeros());
        let mut sums = vec![0.0; self.sums()];
        let out = Slopes {
            a: a.as_mut(),
            b: b.as_mut(),
            c: c.as_mut(),
            sums: &mut sums,
            scratch: &mut Vec::new(),
        };
        self.rows(Block { rows, mu, s, r: r.as_ref() }, out);
        (sums, a, b)
    }
}

impl LikelihoodRows<'_> {
    /// Returns the likelihood with all expectations of a column of targets computed together, where
    /// that costs less.
    fn together(&self, block: &Block<'_>, p: usize) -> Option<Rowwise<'_>> {
        if !self.likelihood.in_blocks() {
            return None;
        }
        let noting = Rowwise::of(self.likelihood);
        let k = self.likelihood.latents();
        let default = self.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let mut params = vec![0.0; self.params];
        let [mut a, mut b, mut c, mut by_v, mut variance] = std::array::from_fn(|_| vec![0.0; k]);
        for (i, y) in column(block.rows.y, p).iter().enumerate() {
            let weight = block.rows.weights.get(i).copied().unwrap_or(1.0);
            if y.is_nan() || weight == 0.0 {
                continue;
            }
            let of = |all: MatRef<'_, f64>| (p * k..p * k + k).map(|l| all[(i, l)]).collect();
            let (mu, s, r): (Vec<f64>, Vec<f64>, Vec<f64>) =
                (of(block.mu), of(block.s), of(block.r));
            let extra = block.rows.extra.get(i).copied().unwrap_or(default);
            let target = Target { y: *y, extra };
            let v = &self.v[p * k..p * k + k];
            let row = Row { target, weight, mu: &mu, s: &s, r: &r, v };
            let out =
                RowSlopes { a: &mut a, b: &mut b, c: &mut c, v: &mut by_v, params: &mut params };
            self.bound.row(&noting, &row, out, &mut variance);
        }
        Some(noting.answer())
    }
}

impl Pointwise for LikelihoodRows<'_> {
    fn plan(&self) -> Plan<'_> {
        self.needs()
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let k = self.likelihood.latents();
        let default = self.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let (factors, counts) = (self.factors(), self.observed());
        out.scratch.clear();
        out.scratch.resize(self.params + 8 * k, 0.0);
        let (params, numbers) = out.scratch.split_at_mut(self.params);
        let mut parts = numbers.chunks_exact_mut(k);
        let [mu, s, r, a, b, c, by_v, variance] =
            std::array::from_fn(|_| parts.next().expect("eight parts"));
        for p in 0..block.rows.y.ncols() {
            let first = p * k;
            let y = column(block.rows.y, p);
            let together = self.together(&block, p);
            let likelihood: &dyn Likelihood = match &together {
                Some(own) => own,
                None => self.likelihood,
            };
            let v = &self.v[first..first + k];
            for (i, y) in y.iter().enumerate() {
                let weight = block.rows.weights.get(i).copied().unwrap_or(1.0);
                for l in 0..k {
                    let unexplained = block.r[(i, first + l)];
                    out.sums[sum::UNEXPLAINED] += unexplained;
                    if unexplained < -self.rounding {
                        out.sums[sum::NEGATIVE] += 1.0;
                    }
                }
                if y.is_nan() || weight == 0.0 {
                    for l in first..first + k {
                        out.a[(i, l)] = 0.0;
                        out.b[(i, l)] = 0.0;
                        out.c[(i, l)] = 0.0;
                    }
                    continue;
                }
                for l in 0..k {
                    mu[l] = block.mu[(i, first + l)];
                    s[l] = block.s[(i, first + l)];
                    r[l] = block.r[(i, first + l)];
                }
                let extra = block.rows.extra.get(i).copied().unwrap_or(default);
                let row = Row { target: Target { y: *y, extra }, weight, mu, s, r, v };
                let slopes = RowSlopes {
                    a: &mut *a,
                    b: &mut *b,
                    c: &mut *c,
                    v: &mut *by_v,
                    params: &mut *params,
                };
                out.sums[sum::VALUE] += self.bound.row(likelihood, &row, slopes, variance);
                for l in 0..k {
                    let share = if self.moves(l) { 1.0 } else { 0.0 };
                    out.a[(i, first + l)] = share * a[l];
                    out.b[(i, first + l)] = share * b[l].min(weight * self.most);
                    out.c[(i, first + l)] = share * c[l];
                    out.sums[factors + first + l] += by_v[l];
                    out.sums[counts + first + l] += 1.0;
                }
                for (sum, slope) in out.sums[sum::PARAMS..].iter_mut().zip(params.iter()) {
                    *sum += slope;
                }
                if let Some(augmented) = self.ratios {
                    let sums = &mut out.sums[self.ratios_at()..];
                    let (over, under) = sums.split_at_mut(self.params);
                    let mut ratios = Ratios { weight, over, under };
                    augmented.add_ratios(row.target, mu, variance, &mut ratios);
                }
            }
        }
    }

    fn describe(&self) -> Result<Description> {
        Description::new(LIKELIHOOD_ROWS, &self.sent())
    }
}

/// Kind of the description of [`LikelihoodRows`].
pub(in crate::methods) const LIKELIHOOD_ROWS: &str = "likelihood rows";

/// [`LikelihoodRows`] as they are sent.
#[derive(Serialize, Deserialize)]
pub(in crate::methods) struct SentRows {
    likelihood: String,
    bound: String,
    v: Vec<f64>,
    rounding: f64,
    most: f64,
    chosen: Option<Vec<bool>>,
    ratios: bool,
}

impl LikelihoodRows<'_> {
    /// Returns what another process needs to know.
    pub(in crate::methods) fn sent(&self) -> SentRows {
        SentRows {
            likelihood: self.likelihood.to_json().to_string(),
            bound: self.bound.name().into(),
            v: self.v.to_vec(),
            rounding: self.rounding,
            most: self.most,
            chosen: self.chosen.map(<[bool]>::to_vec),
            ratios: self.ratios.is_some(),
        }
    }
}

impl SentRows {
    /// Returns the number of latent functions, of all targets.
    pub(in crate::methods) fn latents(&self) -> usize {
        self.v.len()
    }
}

/// [`LikelihoodRows`] that own what they refer to.
pub(in crate::methods) struct OwnRows {
    likelihood: Box<dyn Likelihood>,
    bound: &'static dyn Bound,
    sent: SentRows,
}

impl OwnRows {
    /// Creates the rows from what was sent.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for other rows, and for a likelihood that cannot be read.
    pub(in crate::methods) fn of(sent: SentRows, rows: Fitting) -> Result<Self> {
        let likelihood = likelihoods::parse(&sent.likelihood)?;
        let each = likelihood.latents();
        let of_chosen = sent.chosen.as_ref().is_none_or(|chosen| chosen.len() == each);
        Fitting::check(of_chosen && sent.v.len() == each * rows.outputs)?;
        Ok(Self { likelihood, bound: bounds::find(&sent.bound)?, sent })
    }

    /// Returns the rows as they were.
    pub(in crate::methods) fn rows(&self) -> LikelihoodRows<'_> {
        LikelihoodRows {
            likelihood: &*self.likelihood,
            bound: self.bound,
            v: &self.sent.v,
            params: self.likelihood.num_params(),
            rounding: self.sent.rounding,
            most: self.sent.most,
            chosen: self.sent.chosen.as_deref(),
            ratios: match self.sent.ratios {
                true => self.bound.closed_form(&*self.likelihood),
                false => None,
            },
        }
    }

    /// Returns the likelihood.
    pub(in crate::methods) fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }
}

impl Pointwise for OwnRows {
    fn plan(&self) -> Plan<'_> {
        self.rows().needs()
    }
    fn rows(&self, block: Block<'_>, out: Slopes<'_>) {
        Pointwise::rows(&OwnRows::rows(self), block, out);
    }
}

/// Returns the rows of a description.
pub(in crate::methods) fn described(
    description: &Description,
    rows: Fitting,
) -> Result<Box<dyn Pointwise>> {
    let own = OwnRows::of(description.state()?, rows)?;
    Fitting::check(own.sent.v.len() == rows.latents && own.likelihood.mixing().is_none())?;
    Ok(Box::new(own))
}
