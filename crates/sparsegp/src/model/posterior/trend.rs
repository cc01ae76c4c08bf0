//! What is not known of the coefficients of a mean function (Rasmussen & Williams 2006, Eq. 2.41–2.42, with a vague prior:
//! universal kriging).
//!
//! With a basis h(x), the mean being h(x)ᵀβ, rows H and the covariance A of the targets, β has the covariance
//! (HᵀA⁻¹H)⁻¹ = CCᵀ, and a function at x moves with it by r(x) = h(x) − Wᵀk(P, x): its variance is higher by ‖Cᵀr(x)‖². Without
//! inducing points A = K + Σ is what the posterior has a factor of, and W = A⁻¹H. With them A = ΦᵀΦ + Σ is that of the
//! approximation, φ = L⁻¹k(Z, x), and S = (I + ΦΣ⁻¹Φᵀ)⁻¹ is the covariance of q:
//!
//! ```text
//! W = L⁻ᵀ S ΦΣ⁻¹H        HᵀA⁻¹H = HᵀΣ⁻¹H − HᵀΣ⁻¹Φᵀ S ΦΣ⁻¹H
//! ```

use super::Posterior;
use super::closed_form::ClosedTrend;
use super::gaussian::Gaussian;
use super::law::Marginals;
use super::process::Process;
use crate::data::Source;
use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, add_row_dots, column, column_mut, gemm, par_for, product,
    solve_lower_transpose, symmetric_eigen,
};
use crate::means::Mean;
use crate::model::Model;
use crate::params::Prior;

/// Most coefficients whose covariance is looked for.
const MOST: usize = 1000;

/// Directions of coefficients with less of a variance than this part of the largest are not in the rows.
const SEEN: f64 = 1e-12;

/// Which functions a mean function is made of: the inputs, and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Basis {
    slopes: bool,
    constant: bool,
}

/// What is not known of the mean functions of all latent functions.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    basis: Basis,
    /// W (M×K) and C (K×K) of every latent function.
    own: Vec<(Mat<f64>, Mat<f64>)>,
}

impl Basis {
    /// Creates the basis of a mean function; none where nothing of it was learnt, or it is of
    /// another kind.
    fn of(mean: &dyn Mean) -> Option<Self> {
        let learnt = |name: &str| mean.params().iter().any(|(path, p)| path == name && !p.frozen);
        let own = match mean.name() {
            "constant" | "linear" => {
                Self { slopes: learnt("weights"), constant: learnt("constant") }
            }
            _ => return None,
        };
        (own.slopes || own.constant).then_some(own)
    }

    fn count(self, inputs: usize) -> usize {
        if self.slopes { inputs + usize::from(self.constant) } else { 1 }
    }

    /// Returns h at rows, B×K.
    fn at(self, x: MatRef<f64>) -> Mat<f64> {
        let slopes = if self.slopes { x.ncols() } else { 0 };
        Mat::from_fn(
            x.nrows(),
            self.count(x.ncols()),
            |i, j| if j < slopes { x[(i, j)] } else { 1.0 },
        )
    }

    /// Returns the precisions of the normal priors that coefficients were given.
    fn precisions(self, mean: &dyn Mean, inputs: usize) -> Vec<f64> {
        let of = |name: &str| {
            let found = mean.params().into_iter().find(|(path, _)| path == name);
            match found.and_then(|(_, param)| param.prior) {
                Some(Prior::Normal { scale, .. }) => scale.powi(-2),
                _ => 0.0,
            }
        };
        let slopes = if self.slopes { vec![of("weights"); inputs] } else { Vec::new() };
        let constant = self.constant.then(|| of("constant"));
        slopes.into_iter().chain(constant).collect()
    }
}

/// Returns a root C of the inverse of a covariance's inverse, 0 in directions that rows say nothing
/// of.
fn root(mut precision: Mat<f64>) -> Result<Mat<f64>> {
    let n = precision.nrows();
    let scale: Vec<f64> = (0..n).map(|i| precision[(i, i)].max(0.0).sqrt()).collect();
    let unit = |i: usize| if scale[i] > 0.0 { 1.0 / scale[i] } else { 0.0 };
    precision = Mat::from_fn(n, n, |i, j| {
        0.5 * (precision[(i, j)] + precision[(j, i)]) * unit(i) * unit(j)
    });
    let (values, vectors) = symmetric_eigen(precision.as_ref())?;
    let least = SEEN * values.iter().copied().fold(0.0, f64::max);
    Ok(Mat::from_fn(n, n, |i, j| match values[j] > least {
        true => unit(i) * vectors[(i, j)] / values[j].sqrt(),
        false => 0.0,
    }))
}

impl Trend {
    /// Returns Jᵀ = Cᵀr at rows, from covariances with the points; B×K.
    fn moved(&self, l: usize, x: MatRef<f64>, k: MatRef<f64>) -> Mat<f64> {
        let (weights, root) = &self.own[l];
        let mut r = self.basis.at(x);
        gemm(r.as_mut(), Accum::Add, k, weights.as_ref(), -1.0, Par::Seq);
        product(r.as_ref(), root.as_ref())
    }

    /// Adds to the variances of a term of a latent function, from its covariances with the points: what is put down to it
    /// moves with the mean function, which itself is a part of it at `x` if that is given.
    pub(super) fn widen_term(
        &self,
        l: usize,
        x: Option<MatRef<f64>>,
        k: MatRef<f64>,
        to: &mut [f64],
    ) {
        let (weights, root) = &self.own[l];
        let none = || Mat::zeros(k.nrows(), weights.ncols());
        let mut r = x.map_or_else(none, |x| self.basis.at(x));
        gemm(r.as_mut(), Accum::Add, k, weights.as_ref(), -1.0, Par::Seq);
        let moved = product(r.as_ref(), root.as_ref());
        add_row_dots(moved.as_ref(), moved.as_ref(), to);
    }

    /// Adds to the variances of the latent functions.
    pub(super) fn widen(&self, law: &Gaussian, x: MatRef<f64>, known: &mut Marginals) {
        for p in &*law.processes {
            let k = p.covariances(x);
            for l in p.latents.clone() {
                let moved = self.moved(l, x, k.as_ref());
                add_row_dots(
                    moved.as_ref(),
                    moved.as_ref(),
                    column_mut(known.variance.as_mut(), l),
                );
            }
        }
    }

    /// Adds to the covariances of the latent function `l` between rows.
    pub(super) fn add_covariances(&self, l: usize, p: &Process, x: MatRef<f64>, to: MatMut<f64>) {
        let moved = self.moved(l, x, p.covariances(x).as_ref());
        gemm(to, Accum::Add, moved.as_ref(), moved.transpose(), 1.0, par_for(x.nrows()));
    }

    /// Returns what covariances with the points, and the slopes of the mean function, are
    /// multiplied with in slopes of the variance of the latent function `l`: B×M and B×D.
    pub(super) fn cotangents(
        &self,
        l: usize,
        x: MatRef<f64>,
        k: MatRef<f64>,
    ) -> (Mat<f64>, Mat<f64>) {
        let (weights, root) = &self.own[l];
        let twice = faer::Scale(2.0) * product(self.moved(l, x, k).as_ref(), root.transpose());
        let mut of_points = Mat::zeros(x.nrows(), weights.nrows());
        gemm(
            of_points.as_mut(),
            Accum::Replace,
            twice.as_ref(),
            weights.transpose(),
            -1.0,
            Par::Seq,
        );
        let slopes = Mat::from_fn(x.nrows(), x.ncols(), |i, q| match self.basis.slopes {
            true => twice[(i, q)],
            false => 0.0,
        });
        (of_points, slopes)
    }

    /// Returns coefficients by which drawn functions differ from the mean function, K×S for normal
    /// numbers K×S.
    pub(super) fn drawn(&self, l: usize, normal: MatRef<f64>) -> Mat<f64> {
        product(self.own[l].1.as_ref(), normal)
    }

    /// Returns what the covariances with the points are multiplied with for these coefficients,
    /// M×S.
    pub(super) fn answer(&self, l: usize, coefficients: MatRef<f64>) -> Mat<f64> {
        let weights = &self.own[l].0;
        let mut answer = Mat::zeros(weights.nrows(), coefficients.ncols());
        let par = par_for(weights.nrows());
        gemm(answer.as_mut(), Accum::Replace, weights.as_ref(), coefficients, -1.0, par);
        answer
    }

    /// Returns the values of the basis for these coefficients, B×S.
    pub(super) fn values(&self, x: MatRef<f64>, coefficients: MatRef<f64>) -> Mat<f64> {
        product(self.basis.at(x).as_ref(), coefficients)
    }

    /// Returns the number of coefficients of a function.
    pub(super) fn count(&self) -> usize {
        self.own[0].1.nrows()
    }
}

/// Sums over rows of a latent function: ΦΣ⁻¹H (M×K) and HᵀΣ⁻¹H (K×K).
struct Sums {
    cross: Mat<f64>,
    gram: Mat<f64>,
}

/// What files keep: whether inputs and 1 are in the basis; W and C of all latent functions one beside the other, without W where
/// it follows from the rest.
#[cfg(feature = "files")]
pub(crate) struct SavedTrend {
    pub(crate) basis: [bool; 2],
    pub(crate) weights: Option<Mat<f64>>,
    pub(crate) roots: Mat<f64>,
}

#[cfg(feature = "files")]
fn other_trend() -> Error {
    let (expected, found) = ("that of its mean function".into(), "another".into());
    Error::Shape { what: "the uncertainty of a mean function".into(), expected, found }
}

impl Gaussian {
    /// Returns A⁻¹H, by the factor of the covariance of all targets.
    fn exact_weights(&self, basis: Basis, p: &Process) -> Mat<f64> {
        p.factor.solve(basis.at(p.points.as_ref()).as_ref())
    }

    /// Finds the trend from the factor of the covariance of all targets.
    fn exact_trend(&self, basis: Basis) -> Result<Trend> {
        let precisions = basis.precisions(&*self.mean, self.inputs());
        let mut own = Vec::with_capacity(self.latents());
        for p in &*self.processes {
            let (h, weights) = (basis.at(p.points.as_ref()), self.exact_weights(basis, p));
            let mut precision = product(h.transpose(), weights.as_ref());
            precisions.iter().enumerate().for_each(|(i, v)| precision[(i, i)] += v);
            let root = root(precision)?;
            own.extend(p.latents.clone().map(|_| (weights.clone(), root.clone())));
        }
        Ok(Trend { basis, own })
    }

    /// Finds the trend by a pass over the rows.
    fn sparse_trend(&self, basis: Basis, noise: f64, data: &dyn Source) -> Result<Trend> {
        let (inputs, k) = (self.inputs(), basis.count(self.inputs()));
        let m = self.q_mu.nrows();
        let none = || Sums { cross: Mat::zeros(m, k), gram: Mat::zeros(k, k) };
        let mut all: Vec<Sums> = (0..self.latents()).map(|_| none()).collect();
        data.for_each_chunk(1 << 13, &mut |rows| {
            let par = par_for(rows.x.nrows());
            let h = basis.at(rows.x);
            for p in &*self.processes {
                let mut phi = p.covariances(rows.x);
                p.project(phi.as_mut(), par);
                for l in p.latents.clone() {
                    let precise = |i: usize| {
                        let weight = rows.weights.get(i).copied().unwrap_or(1.0);
                        let known = rows.extra.get(i).copied().unwrap_or(0.0);
                        if rows.y[(i, l)].is_nan() { 0.0 } else { weight / (noise + known) }
                    };
                    let weighed = Mat::from_fn(h.nrows(), k, |i, j| precise(i) * h[(i, j)]);
                    let Sums { cross, gram } = &mut all[l];
                    let by = weighed.as_ref();
                    gemm(cross.as_mut(), Accum::Add, phi.transpose(), by, 1.0, par);
                    gemm(gram.as_mut(), Accum::Add, h.transpose(), by, 1.0, par);
                }
            }
            Ok(())
        })?;
        let precisions = basis.precisions(&*self.mean, inputs);
        let mut own = Vec::with_capacity(all.len());
        for p in &*self.processes {
            for (at, l) in p.latents.clone().enumerate() {
                let Sums { cross, gram: mut precision } = std::mem::replace(&mut all[l], none());
                let Some(q) = p.root(at) else {
                    return Err(Error::Invalid("q has no covariance".into()));
                };
                let image = product(q.transpose(), cross.as_ref());
                let mut weights = product(q.as_ref(), image.as_ref());
                solve_lower_transpose(p.factor.l.as_ref(), weights.as_mut(), par_for(m));
                let to = precision.as_mut();
                gemm(to, Accum::Add, image.transpose(), image.as_ref(), -1.0, Par::Seq);
                precisions.iter().enumerate().for_each(|(i, v)| precision[(i, i)] += v);
                own.push((weights, root(precision)?));
            }
        }
        Ok(Trend { basis, own })
    }
}

impl Posterior {
    /// Returns the posterior whose variances know that the coefficients of the mean function were learnt from the rows, under Gaussian
    /// noise; where there is no such form for it, with a sentence that says so.
    ///
    /// # Errors
    /// What reading the rows gives.
    pub(crate) fn with_trend(
        self,
        model: &Model,
        data: &dyn Source,
    ) -> Result<(Self, Option<String>)> {
        let Some(basis) = Basis::of(&*model.mean) else { return Ok((self, None)) };
        let Some(noise) = model.likelihood.as_gaussian().map(|own| own.variance.scalar()) else {
            return Ok((self, None));
        };
        let reason = match self.law.alone() {
            _ if basis.count(data.inputs()) > MOST => "more than 1000 of them",
            Some(own) if own.mixing.is_some() => "mixed functions",
            Some(own) if own.is_exact() => {
                let trend = own.exact_trend(basis)?;
                return Ok((self.trended(trend), None));
            }
            Some(own) if own.processes.iter().all(|p| !p.roots.is_empty()) => {
                if data.sharded().is_none() {
                    let trend = own.sparse_trend(basis, noise, data)?;
                    return Ok((self.trended(trend), None));
                }
                "rows in other processes"
            }
            _ => "this method",
        };
        Ok((self, Some(certain(reason))))
    }

    /// Returns what files keep of the mean function's uncertainty, where there is some.
    #[cfg(feature = "files")]
    pub(crate) fn trend(&self) -> Option<SavedTrend> {
        let own = self.law.alone()?;
        let Trend { basis, own: all } = own.trend.as_ref()?;
        let (k, columns) = (all[0].1.nrows(), all.len() * all[0].1.nrows());
        let weights = || Mat::from_fn(all[0].0.nrows(), columns, |i, j| all[j / k].0[(i, j % k)]);
        let roots = Mat::from_fn(k, columns, |i, j| all[j / k].1[(i, j % k)]);
        let weights = (!own.is_exact()).then(weights);
        Some(SavedTrend { basis: [basis.slopes, basis.constant], weights, roots })
    }

    /// Says what is lost with this posterior when rows are added to it: what was not known of the mean function.
    pub(crate) fn lost_trend(&self) -> Option<String> {
        let known = self.law.alone().is_some_and(|own| own.trend.is_some());
        known.then(|| certain("rows were added by an update"))
    }

    /// Returns the posterior with what [`Posterior::trend`] gave.
    ///
    /// # Errors
    /// [`Error::Shape`] for matrices of another model.
    #[cfg(feature = "files")]
    pub(crate) fn with_saved_trend(self, saved: SavedTrend) -> Result<Self> {
        let SavedTrend { basis: [slopes, constant], weights, roots } = saved;
        let basis = Basis { slopes, constant };
        let Some(law) = self.law.alone().filter(|_| slopes || constant) else {
            return Err(other_trend());
        };
        let (m, k, latents) = (law.q_mu.nrows(), basis.count(law.inputs()), law.latents());
        let weights = match weights {
            Some(weights) => weights,
            None if law.is_exact() => {
                let mut all = Mat::zeros(m, latents * k);
                for p in &*law.processes {
                    let own = law.exact_weights(basis, p);
                    for l in p.latents.clone() {
                        all.as_mut().subcols_mut(l * k, k).copy_from(&own);
                    }
                }
                all
            }
            None => return Err(other_trend()),
        };
        let fits = (weights.nrows(), roots.nrows()) == (m, k)
            && (weights.ncols(), roots.ncols()) == (latents * k, latents * k)
            && weights.is_all_finite()
            && roots.is_all_finite();
        if !fits {
            return Err(other_trend());
        }
        let part = |of: &Mat<f64>, l: usize| of.as_ref().subcols(l * k, k).to_owned();
        let own = (0..latents).map(|l| (part(&weights, l), part(&roots, l))).collect();
        Ok(self.trended(Trend { basis, own }))
    }

    fn trended(self, trend: Trend) -> Self {
        match self.law.alone() {
            Some(own) => {
                let law = Gaussian { trend: Some(trend), ..own.clone() };
                Self { law: std::sync::Arc::new(law), ..self }
            }
            None => self,
        }
    }
}

/// Says that coefficients count as certain.
fn certain(why: &str) -> String {
    format!(
        "intervals take the trained mean function for certain ({why}): far from the rows they are too narrow; the kernel \
         `linear` instead, as in `rbf + linear`, has its uncertainty"
    )
}

impl Gaussian {
    /// Returns what is not known of the mean function, for those who write it down.
    pub(super) fn closed_trend(&self) -> Option<ClosedTrend<'_>> {
        let Trend { basis: Basis { slopes, constant }, own } = self.trend.as_ref()?;
        let own = own.iter().map(|(weights, root)| (weights, root)).collect();
        Some(ClosedTrend { slopes: *slopes, constant: *constant, own })
    }

    /// Returns whether this is exact inference, whose factor is that of the covariance of all
    /// targets.
    pub(super) fn is_exact(&self) -> bool {
        self.processes.iter().all(|p| p.roots.is_empty() && p.pseudo.is_none())
    }

    /// Adds slopes of its variances by what is not known of the mean function.
    pub(super) fn add_trend_slopes(&self, x: MatRef<f64>, variances: &mut [Mat<f64>]) {
        let Some(trend) = &self.trend else { return };
        for p in &*self.processes {
            for l in p.latents.clone() {
                let mut of_mean = Mat::new();
                p.pull(x, false, &mut variances[l], |k| {
                    let (of_points, slopes) = trend.cotangents(l, x, k.as_ref());
                    of_mean = slopes;
                    of_points
                });
                for q in 0..x.ncols() {
                    let own = column(of_mean.as_ref(), q).iter();
                    variances[l].col_as_slice_mut(q).iter_mut().zip(own).for_each(|(v, s)| *v += s);
                }
            }
        }
    }
}
