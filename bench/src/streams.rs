//! A sparse posterior with one kernel that is updated batch by batch, and rows for it.

use sparsegp::error::Result;
use sparsegp::inducing::select::oips::{accept, normalised};
use sparsegp::kernels::{self, Inputs, Kernel, Tape};
use sparsegp::likelihoods::{self, Likelihood};
use sparsegp::linalg::{Jitter, Mat, MatRef};
use sparsegp::online::{Batch, Site, SolveOptions, Update};
use sparsegp::optim::{Adam, AdamOptions, Lbfgs, LbfgsOptions, Objective, Optimiser};

/// Covariances.
pub fn covariances(kernel: &dyn Kernel, a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let mut k = Mat::zeros(a.nrows(), b.nrows());
    kernel.evaluate(a, Some(b), k.as_mut(), &mut Tape::off());
    k
}

/// A squared exponential kernel.
pub fn rbf(variance: f64, lengthscale: f64, inputs: usize) -> Box<dyn Kernel> {
    let spec = format!("rbf(ard=false, lengthscales={lengthscale:?}, variance={variance:?})");
    kernels::parse(&spec, Inputs::unnamed(inputs)).expect("a kernel")
}

/// Some rows.
pub fn cut(a: &Mat<f64>, from: usize, count: usize) -> Mat<f64> {
    a.as_ref().subrows(from, count).to_owned()
}

/// Rows of `a` and then of `b`.
pub fn stacked(a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let m = a.nrows();
    Mat::from_fn(m + b.nrows(), b.ncols(), |i, q| if i < m { a[(i, q)] } else { b[(i - m, q)] })
}

/// Jitter of Kuu.
pub const JITTER: Jitter = Jitter::Relative(1e-6);

/// What is learnt from a batch beside q.
#[derive(Clone, Copy, PartialEq)]
pub enum Learn {
    /// Nothing.
    Nothing,
    /// Inducing points, by so many steps of Adam of this length.
    Points(usize, f64),
    /// Points, kernel and noise, by at most so many iterations of L-BFGS.
    All(usize),
}

/// A sparse posterior that goes from batch to batch.
#[derive(Clone)]
pub struct Stream {
    /// The kernel's variance; without noise the likelihood is Bernoulli.
    pub variance: f64,
    /// The lengthscale.
    pub lengthscale: f64,
    /// The variance of the noise.
    pub noise: Option<f64>,
    /// Inducing points.
    pub z: Mat<f64>,
    /// What the batches so far left at them.
    pub sites: Vec<Site>,
    /// The bounds so far.
    pub bound: f64,
}

struct Fit<'a> {
    stream: &'a mut Stream,
    x: &'a Mat<f64>,
    y: &'a [f64],
    hyper: bool,
}

impl Stream {
    /// Of nothing so far.
    pub fn new(variance: f64, lengthscale: f64, noise: Option<f64>, inputs: usize) -> Self {
        let z = Mat::zeros(0, inputs);
        Self { variance, lengthscale, noise, z, sites: Vec::new(), bound: 0.0 }
    }

    /// The kernel.
    pub fn kernel(&self) -> Box<dyn Kernel> {
        rbf(self.variance, self.lengthscale, self.z.ncols())
    }

    fn likelihood(&self) -> Box<dyn Likelihood> {
        let spec = match self.noise {
            Some(noise) => format!("gaussian(variance={noise:?})"),
            None => "bernoulli(link=logit)".into(),
        };
        likelihoods::parse(&spec).expect("a likelihood")
    }

    fn with<T>(
        &self,
        x: &Mat<f64>,
        y: &[f64],
        mut f: impl FnMut(&mut Update<'_>) -> Result<T>,
    ) -> Result<T> {
        let (kernels, likelihood) = (vec![self.kernel()], self.likelihood());
        let batch = Batch { x: x.as_ref(), y, extra: &[], weights: &[], mean: None };
        let z = self.z.as_ref();
        let mut update = Update::new(&kernels, &*likelihood, z, JITTER, &self.sites, batch)?;
        update.solve(&SolveOptions::default())?;
        f(&mut update)
    }

    /// Takes up a batch at new points.
    pub fn take(&mut self, x: &Mat<f64>, y: &[f64], z: Mat<f64>, learn: Learn) -> Result<()> {
        self.z = z;
        let steps = match learn {
            Learn::Nothing => 0,
            Learn::Points(steps, _) | Learn::All(steps) => steps,
        };
        let hyper = matches!(learn, Learn::All(_));
        let mut fit = Fit { stream: self, x, y, hyper };
        let start = fit.values();
        let mut optimiser: Box<dyn Optimiser> = match learn {
            Learn::Points(_, rate) => Box::new(Adam::new(
                start,
                AdamOptions { learning_rate: rate, ..AdamOptions::default() },
            )),
            _ => {
                let options = LbfgsOptions { largest_move: Some(1.0), ..LbfgsOptions::fitting() };
                Box::new(Lbfgs::new(start, options))
            }
        };
        for _ in 0..steps {
            if optimiser.step(&mut fit)?.status.is_final() {
                break;
            }
        }
        let best = optimiser.best().map(|(x, _)| x.to_vec());
        if let Some(best) = best {
            fit.place(&best);
        }
        let (sites, bound) =
            self.with(x, y, |update| Ok((update.sites(), update.bound().total())))?;
        self.sites = sites;
        self.bound += bound;
        Ok(())
    }

    /// Means and variances of f at other inputs.
    pub fn predict(&self, x: &Mat<f64>) -> (Vec<f64>, Vec<f64>) {
        let none = Mat::zeros(0, x.ncols());
        let of = |update: &mut Update<'_>| Ok(update.predict(x.as_ref()));
        let (mean, variance) = self.with(&none, &[], of).expect("predictions");
        (mean.col_as_slice(0).to_vec(), variance.col_as_slice(0).to_vec())
    }

    /// Mean negative log density and root mean square error (or error rate) of other rows.
    pub fn score(&self, x: &Mat<f64>, y: &[f64]) -> (f64, f64) {
        let (mean, variance) = self.predict(x);
        let likelihood = self.likelihood();
        let (mut loss, mut error) = (0.0, 0.0);
        let extra = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        for i in 0..y.len() {
            let target = likelihoods::Target { y: y[i], extra };
            loss -= likelihood.predict_log_density(target, &mean[i..=i], &variance[i..=i]);
            error += match self.noise {
                Some(_) => (y[i] - mean[i]).powi(2),
                None => f64::from((mean[i] > 0.0) != (y[i] > 0.5)),
            };
        }
        let n = y.len() as f64;
        (loss / n, if self.noise.is_some() { (error / n).sqrt() } else { error / n })
    }
}

impl Fit<'_> {
    fn values(&self) -> Vec<f64> {
        let z = &self.stream.z;
        let mut all: Vec<f64> = (0..z.ncols()).flat_map(|q| z.col_as_slice(q).to_vec()).collect();
        if self.hyper {
            all.extend([self.stream.variance.ln(), self.stream.lengthscale.ln()]);
            all.extend(self.stream.noise.map(f64::ln));
        }
        all
    }

    fn place(&mut self, values: &[f64]) {
        let (m, d) = (self.stream.z.nrows(), self.stream.z.ncols());
        self.stream.z = Mat::from_fn(m, d, |i, q| values[q * m + i]);
        if let [variance, lengthscale, noise @ ..] = &values[m * d..] {
            (self.stream.variance, self.stream.lengthscale) = (variance.exp(), lengthscale.exp());
            self.stream.noise = noise.first().map(|v| v.exp());
        }
    }
}

impl Objective for Fit<'_> {
    fn dim(&self) -> usize {
        self.values().len()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.place(x);
        let stream = &*self.stream;
        let (value, slopes) = stream.with(self.x, self.y, |update| {
            Ok((update.bound().total(), update.gradient_at(&update.moments())?))
        })?;
        let z = &slopes.z;
        let mut all: Vec<f64> = (0..z.ncols()).flat_map(|q| z.col_as_slice(q).to_vec()).collect();
        if self.hyper {
            all.push(slopes.kernels[0][0] * stream.variance);
            all.push(slopes.kernels[0][1] * stream.lengthscale);
            all.extend(stream.noise.map(|noise| slopes.likelihood[0] * noise));
        }
        gradient.iter_mut().zip(all).for_each(|(to, own)| *to = -own);
        Ok(-value)
    }

    fn terms(&self) -> Option<f64> {
        Some(self.y.len() as f64)
    }
}

/// Returns old points with rows that none of them is near to.
///
/// # Panics
/// If covariances are not finite.
pub fn grown(kernel: &dyn Kernel, z: &Mat<f64>, x: &Mat<f64>, rho: f64) -> Mat<f64> {
    let mut diag = vec![0.0; x.nrows()];
    kernel.diag(x.as_ref(), &mut diag);
    let mut nearest = vec![-1.0_f64; x.nrows()];
    for j in 0..z.nrows() {
        let point = z.as_ref().subrows(j, 1);
        let mut own = [0.0];
        kernel.diag(point, &mut own);
        let k = covariances(kernel, x.as_ref(), point);
        let c = normalised(k.col_as_slice(0), &diag, own[0]);
        nearest.iter_mut().zip(c).for_each(|(most, c)| *most = most.max(c));
    }
    let mut correlations = |i: usize| {
        let k = covariances(kernel, x.as_ref(), x.as_ref().subrows(i, 1));
        let mut c = normalised(k.col_as_slice(0), &diag, diag[i]);
        c[i] = 1.0;
        Ok(vec![c])
    };
    let (rows, _) = accept(&mut [nearest], rho, usize::MAX, &mut correlations).expect("points");
    let new = Mat::from_fn(rows.len(), x.ncols(), |i, q| x[(rows[i], q)]);
    stacked(z.as_ref(), new.as_ref())
}
