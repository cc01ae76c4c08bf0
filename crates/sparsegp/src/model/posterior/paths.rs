//! Posteriors of a series that were sampled: even mixtures of what is known given the states at all rows.

use super::InputGradients;
use super::law::{Drawn, Joint, Law, Marginals, Pooled, Work, check_columns};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, StateSpace, of_latent};
use crate::linalg::{Accum, Mat, MatRef, Par, column, gemm};
use crate::markov::{self, Link, Sorted, Weights};
use crate::means::Mean;
use crate::model::Model;
use crate::rng;
use faer::Scale;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Draws of the states at rows.
#[derive(Debug)]
pub(super) struct Paths {
    mean: Box<dyn Mean>,
    kernels: Vec<Box<dyn Kernel>>,
    /// Of every kernel.
    spaces: Vec<Box<dyn StateSpace>>,
    /// The inputs of the rows as they came, N×D, and in the order of their times.
    x: Mat<f64>,
    rows: Sorted,
    latents: usize,
    /// NS×L each: the states of a latent function row by row, with zeros behind where others have more.
    draws: Vec<Mat<f64>>,
    /// Their mean.
    middle: Mat<f64>,
}

/// Adds a matrix of so many rows, row by row, times a vector.
fn add_product(a: &[f64], v: &[f64], out: &mut [f64]) {
    for (row, out) in a.chunks_exact(v.len()).zip(out) {
        *out += row.iter().zip(v).map(|(a, v)| a * v).sum::<f64>();
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Paths {
    /// Creates the paths of rows x, N×D.
    ///
    /// # Errors
    /// [`Error::Invalid`] for no draws and for a kernel that is not a Markov process, [`Error::Shape`] for draws that do not fit.
    pub(super) fn new(model: &Model, x: &Mat<f64>, draws: Vec<Mat<f64>>) -> Result<Self> {
        let Some(first) = draws.first() else {
            return Err(Error::Invalid("a posterior needs at least one draw".into()));
        };
        let time = model.time(x.ncols())?;
        let spaces: Vec<Box<dyn StateSpace>> =
            model.kernels.iter().map(|kernel| kernel.state_space()).collect::<Result<_>>()?;
        let states = spaces.iter().map(|own| own.size()).max().unwrap_or(0);
        let (latents, numbers) = (first.ncols(), x.nrows() * states);
        if draws.iter().any(|own| (own.nrows(), own.ncols()) != (numbers, latents)) {
            return Err(Error::Shape {
                what: "posterior.draws".into(),
                expected: format!("{numbers}×{latents}"),
                found: format!("{}×{}", first.nrows(), first.ncols()),
            });
        }
        let rows = Sorted::new(x.as_ref(), time);
        let mut middle = Mat::zeros(numbers, latents);
        draws.iter().for_each(|own| middle += own);
        middle *= Scale(1.0 / draws.len() as f64);
        let (mean, kernels) = (model.mean.clone(), model.kernels.clone());
        Ok(Self { mean, kernels, spaces, x: x.clone(), rows, latents, draws, middle })
    }

    fn sorted(&self, x: MatRef<f64>) -> Sorted {
        Sorted::new(x, self.rows.places().time())
    }

    fn space(&self, l: usize) -> &dyn StateSpace {
        &**of_latent(&self.spaces, l)
    }

    /// Returns the state of a draw at a row, which counts in rising order.
    fn state(&self, draw: usize, l: usize, row: usize) -> &[f64] {
        let n = self.space(l).size();
        &column(self.draws[draw].as_ref(), l)[self.rows.order[row] * n..][..n]
    }

    /// Returns the mean function, B×L.
    fn prior(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut prior = Mat::zeros(x.nrows(), self.latents);
        self.mean.evaluate(x, prior.as_mut());
        prior
    }

    /// Returns the weights of every kernel.
    fn weights(&self, places: &Sorted) -> Result<Vec<Vec<Weights>>> {
        let t = self.rows.places().t();
        self.spaces.iter().map(|own| markov::weights(&**own, t, places.places())).collect()
    }

    /// Adds the functions of a draw to their means.
    fn add_means(&self, draw: usize, places: &Sorted, all: &[Vec<Weights>], mean: &mut Mat<f64>) {
        for l in 0..self.latents {
            for (own, i) in of_latent(all, l).iter().zip(&places.order) {
                for (row, w) in [&own.before, &own.after].into_iter().flatten() {
                    mean[(*i, l)] += dot(w, self.state(draw, l, *row));
                }
            }
        }
    }

    /// Returns what is left at every draw, B×L.
    fn left(&self, places: &Sorted, all: &[Vec<Weights>]) -> Mat<f64> {
        let mut left = Mat::zeros(places.order.len(), self.latents);
        for l in 0..self.latents {
            for (own, i) in of_latent(all, l).iter().zip(&places.order) {
                left[(*i, l)] = own.variance;
            }
        }
        left
    }

    /// Adds a function given the states of a draw, one place after the other.
    fn add_path(
        &self,
        (draw, l): (usize, usize),
        places: &Sorted,
        links: &[Link],
        rng: &mut dyn Rng,
        f: &mut Mat<f64>,
    ) {
        let n = self.space(l).size();
        let mut state = vec![0.0; n];
        for (link, i) in links.iter().zip(&places.order) {
            let noise: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut *rng)).collect();
            let mut next = vec![0.0; n];
            match link.before {
                _ if link.chained => add_product(&link.forward, &state, &mut next),
                Some(row) => add_product(&link.forward, self.state(draw, l, row), &mut next),
                None => {}
            }
            if let Some(row) = link.after {
                add_product(&link.backward, self.state(draw, l, row), &mut next);
            }
            add_product(&link.root, &noise, &mut next);
            f[(*i, l)] += dot(&link.output, &next);
            state = next;
        }
    }

    /// Returns the covariance of a function over places given any states, B×B: places between the
    /// same rows depend on each other.
    fn left_joint(&self, l: usize, places: &Sorted) -> Result<Mat<f64>> {
        let (n, space) = (self.space(l).size(), self.space(l));
        let links = markov::links(space, self.rows.places().t(), places.places())?;
        let count = links.len();
        let mut all = Mat::zeros(count, count);
        let mut before: Vec<f64> = Vec::new();
        for (a, link) in links.iter().enumerate() {
            // the covariance of the state: what is left, and what that of the place before brings
            let mut own = link.left.clone();
            if link.chained {
                let mut image = vec![0.0; n * n];
                for c in 0..n {
                    // FV, of which V is symmetric
                    let mut moved = vec![0.0; n];
                    add_product(&link.forward, &before[c * n..][..n], &mut moved);
                    (0..n).for_each(|r| image[r * n + c] = moved[r]);
                }
                for r in 0..n {
                    add_product(&link.forward, &image[r * n..][..n], &mut own[r * n..][..n]);
                }
            }
            let mut along = vec![0.0; n];
            add_product(&own, &link.output, &mut along);
            let mut set = |b: usize, value: f64| {
                let (i, j) = (places.order[a], places.order[b]);
                (all[(i, j)], all[(j, i)]) = (value, value);
            };
            set(a, dot(&link.output, &along).max(0.0));
            for (b, next) in links.iter().enumerate().skip(a + 1).take_while(|own| own.1.chained) {
                let mut moved = vec![0.0; n];
                add_product(&next.forward, &along, &mut moved);
                along = moved;
                set(b, dot(&next.output, &along));
            }
            before = own;
        }
        Ok(all)
    }
}

impl Law for Paths {
    fn inputs(&self) -> usize {
        self.x.ncols()
    }

    fn latents(&self) -> usize {
        self.latents
    }

    fn points(&self) -> Option<MatRef<'_, f64>> {
        Some(self.x.as_ref())
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        check_columns(x, self.x.ncols())?;
        self.kernels.iter().try_for_each(|kernel| kernel.check(x))
    }

    fn count(&self) -> usize {
        self.draws.len()
    }

    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()> {
        let (places, prior) = (self.sorted(x), self.prior(x));
        let all = self.weights(&places)?;
        // the same at every draw
        let mut own = Marginals { mean: Mat::new(), variance: self.left(&places, &all) };
        for draw in 0..self.draws.len() {
            own.mean.clone_from(&prior);
            self.add_means(draw, &places, &all, &mut own.mean);
            work(None, &own);
        }
        Ok(())
    }

    fn means(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        let (places, mut mean) = (self.sorted(x), self.prior(x));
        let all = self.weights(&places)?;
        for l in 0..self.latents {
            for (own, i) in of_latent(&all, l).iter().zip(&places.order) {
                for (row, w) in [&own.before, &own.after].into_iter().flatten() {
                    let (n, at) = (w.len(), self.rows.order[*row]);
                    mean[(*i, l)] += dot(w, &column(self.middle.as_ref(), l)[at * n..][..n]);
                }
            }
        }
        Ok(mean)
    }

    /// Draws each one from a draw that is picked at random.
    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>> {
        let (places, prior) = (self.sorted(x), self.prior(x));
        let links: Vec<Vec<Link>> = self
            .spaces
            .iter()
            .map(|own| markov::links(&**own, self.rows.places().t(), places.places()))
            .collect::<Result<_>>()?;
        let mut one = |_| {
            let (draw, mut f) = (rng::below(rng, self.draws.len()), prior.clone());
            for l in 0..self.latents {
                let own: &Vec<Link> = of_latent(&links, l);
                self.add_path((draw, l), &places, own, rng, &mut f);
            }
            Drawn { likelihood: None, f }
        };
        Ok((0..samples).map(&mut one).collect())
    }

    fn joint(&self, x: MatRef<f64>) -> Result<Joint> {
        self.check(x)?;
        let (places, count) = (self.sorted(x), self.draws.len() as f64);
        let mut pooled = Pooled::new(x.nrows(), self.latents);
        let mut means = Vec::with_capacity(self.draws.len());
        self.components(x, &mut |_, own| {
            pooled.add(own);
            means.push(own.mean.clone());
        })?;
        let mean = pooled.mean();
        let mut all = Vec::with_capacity(self.latents);
        for l in 0..self.latents {
            let mut own = self.left_joint(l, &places)?;
            let apart =
                Mat::from_fn(x.nrows(), means.len(), |i, s| means[s][(i, l)] - mean[(i, l)]);
            let out = own.as_mut();
            gemm(out, Accum::Add, apart.as_ref(), apart.transpose(), 1.0 / count, Par::Seq);
            all.push(own);
        }
        Ok(Joint { mean, own: all, mixing: None })
    }

    fn refusal(&self, what: &str) -> Error {
        Error::Invalid(format!(
            "{what} is not known of draws of a series (`gibbs-markov`): there are means, variances, covariances, quantiles, \
             densities and draws; for the rest use `markov`, or `gibbs` for few rows"
        ))
    }

    fn gradients(&self, _: MatRef<f64>) -> Result<InputGradients> {
        Err(self.refusal("a slope of predictions"))
    }

    fn draws(&self) -> &[Mat<f64>] {
        &self.draws
    }
}
