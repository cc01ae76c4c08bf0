//! Methods by name on any target, and how far they are from a Gaussian.

use sparsegp::error::Result;
use sparsegp::flow::compared::{
    Curvature, DescentOptions, Dsvi, Entropy, Fcs, Iblr, IblrOptions, Precision, Root, Svgd,
    SvgdKernel, SvgdOptions,
};
use sparsegp::flow::{
    Blocks, Factor, Gf, GfOptions, Gpf, GpfOptions, MeanFlow, Particles, Rule, Solver, Target,
};
use sparsegp::linalg::Mat;
use sparsegp::rng;
use std::time::Instant;

/// A method on a start N(mean, deviation² I) in some dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Particles, and which way their mean goes.
    Gpf(MeanFlow),
    /// Particles without correlations.
    GpfMeanField,
    /// Parameters.
    Gf(MeanFlow),
    /// Parameters without correlations.
    GfMeanField,
    /// A triangular root.
    Dsvi,
    /// A diagonal one.
    DsviMeanField,
    /// Factors and a diagonal.
    Fcs,
    /// A precision by second derivatives.
    IblrHessian,
    /// A precision by gradients.
    Iblr,
    /// A diagonal precision by gradients.
    IblrMeanField,
    /// Particles without a Gaussian.
    Svgd(SvgdKernel),
}

/// The squared exponential kernel with the median of distances.
pub const MEDIAN: SvgdKernel = SvgdKernel::SquaredExponential { length: None };

impl Method {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpf(MeanFlow::Plain) => "GPF",
            Self::Gpf(MeanFlow::Natural) => "GPF, natural mean",
            Self::GpfMeanField => "GPF, mean field",
            Self::Gf(MeanFlow::Plain) => "GF",
            Self::Gf(MeanFlow::Natural) => "GF, natural mean",
            Self::GfMeanField => "GF, mean field",
            Self::Dsvi => "DSVI",
            Self::DsviMeanField => "DSVI, mean field",
            Self::Fcs => "FCS",
            Self::IblrHessian => "IBLR, Hessian",
            Self::Iblr => "IBLR",
            Self::IblrMeanField => "IBLR, mean field",
            Self::Svgd(SvgdKernel::SquaredExponential { .. }) => "SVGD",
            Self::Svgd(_) => "SVGD, linear",
        }
    }
}

/// Where a method starts and how it goes.
#[derive(Clone, Debug)]
pub struct Start {
    /// Mean.
    pub mean: Vec<f64>,
    /// Standard deviation of every dimension.
    pub deviation: f64,
    /// Particles, or positions of every step, or columns of a factor and one.
    pub particles: usize,
    /// η.
    pub rate: f64,
    /// How the flows of particles become moves.
    pub of_particles: Rule,
    /// How those of parameters do.
    pub of_parameters: Rule,
    /// Seed.
    pub seed: u64,
}

/// What a method has come to.
pub enum Law {
    /// The mean and the covariance.
    Moments(Vec<f64>, Mat<f64>),
    /// Draws, D×S, of what is too large for a matrix.
    Draws(Mat<f64>),
}

impl Law {
    /// ‖m − μ‖ and ‖C − Σ‖_F.
    pub fn errors(&self, mean: &[f64], covariance: &Mat<f64>) -> (f64, f64) {
        let Law::Moments(m, c) = self else { return (f64::NAN, f64::NAN) };
        let squares: f64 = m.iter().zip(mean).map(|(a, b)| (a - b).powi(2)).sum();
        (squares.sqrt(), (c - covariance).norm_l2())
    }
}

/// A law at some steps, with the seconds since the start.
pub type Path = Vec<(usize, f64, Law)>;

/// Runs a method, and looks at its law every so many steps and at the end. `draws` asks for draws in place of moments. With the
/// step at which the method lost itself, if it did.
pub fn follow(
    method: Method,
    start: &Start,
    target: &mut dyn Target,
    (steps, every): (usize, usize),
    draws: Option<usize>,
) -> Result<(Path, Option<usize>)> {
    let dim = start.mean.len();
    let clock = Instant::now();
    let plan = Plan { steps, every, draws, clock };
    let root = || Mat::from_fn(dim, dim, |i, j| if i == j { start.deviation } else { 0.0 });
    let descent = DescentOptions {
        rate: start.rate,
        rule: start.of_parameters,
        draws: start.particles.min(dim),
        seed: start.seed,
        ..DescentOptions::default()
    };
    let particles = || -> Result<Particles> {
        if start.particles > dim {
            return Particles::matched(&start.mean, root().as_ref(), start.particles, start.seed);
        }
        let deviations = vec![start.deviation; dim];
        Particles::around(&start.mean, &deviations, start.particles, start.seed)
    };
    match method {
        Method::Gpf(_) | Method::GpfMeanField => {
            let mean_flow = if let Method::Gpf(flow) = method { flow } else { MeanFlow::Plain };
            let options = GpfOptions {
                mean_rate: start.rate,
                spread_rate: start.rate,
                mean_flow,
                blocks: if method == Method::GpfMeanField {
                    Blocks::Diagonal
                } else {
                    Blocks::Whole
                },
                rule: start.of_particles,
                ..GpfOptions::default()
            };
            let gpf = Gpf::new(particles()?, options)?;
            let diagonal = method == Method::GpfMeanField;
            plan.make(gpf, target, &|own, draws| {
                let own = own.particles();
                match draws {
                    Some(_) if !diagonal => {
                        Ok(Law::Draws(own.draw(draws.unwrap_or(1), &mut rng::stream(0, "flows"))))
                    }
                    Some(count) => Ok(diagonal_draws(&own.mean(), &own.variances(), count)),
                    None => Ok(Law::Moments(own.mean(), own.covariance())),
                }
            })
        }
        Method::Gf(_) | Method::GfMeanField => {
            let mean_flow = if let Method::Gf(flow) = method { flow } else { MeanFlow::Plain };
            let columns = (start.particles - 1).min(dim);
            let factor = match method {
                Method::GfMeanField => Factor::Diagonal(vec![start.deviation; dim]),
                _ if columns == dim => Factor::Whole(root()),
                // as many directions as the particles have
                _ => Factor::Whole(
                    particles()?.deviations().as_ref().subcols(0, columns).to_owned()
                        * faer::Scale(1.0 / (columns as f64).sqrt()),
                ),
            };
            let options = GfOptions {
                mean_rate: start.rate,
                spread_rate: start.rate,
                mean_flow,
                rule: start.of_parameters,
                draws: start.particles.min(dim),
                seed: start.seed,
                ..GfOptions::default()
            };
            let gf = Gf::new(start.mean.clone(), factor, options)?;
            plan.make(gf, target, &|own, draws| match draws {
                Some(count) => Ok(Law::Draws(own.draw(count, &mut rng::stream(0, "flows")))),
                None => Ok(Law::Moments(own.mean().to_vec(), own.factor().covariance()?)),
            })
        }
        Method::Dsvi | Method::DsviMeanField => {
            let root = match method {
                Method::Dsvi => Root::Lower(root()),
                _ => Root::Diagonal(vec![start.deviation; dim]),
            };
            let dsvi = Dsvi::new(start.mean.clone(), root, descent)?;
            plan.make(dsvi, target, &|own, draws| match (draws, own.root()) {
                (Some(count), _) => Ok(Law::Draws(own.draw(count, &mut rng::stream(0, "flows")))),
                (None, Root::Lower(l)) => Ok(Law::Moments(own.mean().to_vec(), l * l.transpose())),
                (None, Root::Diagonal(s)) => Ok(Law::Moments(
                    own.mean().to_vec(),
                    Mat::from_fn(s.len(), s.len(), |i, j| if i == j { s[i] * s[i] } else { 0.0 }),
                )),
            })
        }
        Method::Fcs => {
            let columns = (start.particles - 1).min(dim);
            let fcs = if columns == dim {
                let covariance = root().as_ref() * root().as_ref();
                let mean = start.mean.clone();
                Fcs::of_covariance(mean, covariance.as_ref(), dim, Entropy::Sampled, descent)?
            } else {
                let b = particles()?.deviations().as_ref().subcols(0, columns).to_owned()
                    * faer::Scale((0.5 / columns as f64).sqrt());
                let d = vec![start.deviation * 0.5_f64.sqrt(); dim];
                Fcs::new(start.mean.clone(), b, d, Entropy::Closed, descent)?
            };
            plan.make(fcs, target, &|own, draws| match draws {
                Some(count) => Ok(Law::Draws(own.draw(count, &mut rng::stream(0, "flows")))),
                None => Ok(Law::Moments(own.mean().to_vec(), own.covariance())),
            })
        }
        Method::IblrHessian | Method::Iblr | Method::IblrMeanField => {
            let scale = start.deviation.powi(-2);
            let precision = match method {
                Method::IblrMeanField => Precision::Diagonal(vec![scale; dim]),
                _ => Precision::Whole(Mat::from_fn(
                    dim,
                    dim,
                    |i, j| if i == j { scale } else { 0.0 },
                )),
            };
            let curvature = match method {
                Method::IblrHessian => Curvature::Hessian,
                _ => Curvature::Reparameterised,
            };
            let options = IblrOptions {
                rate: start.rate,
                curvature,
                draws: start.particles.min(dim),
                seed: start.seed,
            };
            let iblr = Iblr::new(start.mean.clone(), precision, options)?;
            plan.make(iblr, target, &|own, draws| match draws {
                Some(count) => Ok(Law::Draws(own.draw(count, &mut rng::stream(0, "flows"))?)),
                None => Ok(Law::Moments(own.mean().to_vec(), own.covariance()?)),
            })
        }
        Method::Svgd(kernel) => {
            let rule = start.of_particles;
            let options = SvgdOptions { kernel, rate: start.rate, rule, ..SvgdOptions::default() };
            let svgd = Svgd::new(particles()?, options)?;
            plan.make(svgd, target, &|own, draws| {
                let own = own.particles();
                Ok(match draws {
                    // they are themselves what is drawn
                    Some(_) => Law::Draws(own.x().to_owned()),
                    None => Law::Moments(own.mean(), own.covariance()),
                })
            })
        }
    }
}

/// Draws of independent normal numbers.
fn diagonal_draws(mean: &[f64], variances: &[f64], count: usize) -> Law {
    let mut rng = rng::stream(0, "flows");
    let draw =
        |i: usize, _: usize| mean[i] + variances[i].sqrt() * sparsegp_bench::page::normal(&mut rng);
    Law::Draws(Mat::from_fn(mean.len(), count, draw))
}

struct Plan {
    steps: usize,
    every: usize,
    draws: Option<usize>,
    clock: Instant,
}

impl Plan {
    fn make<S: Solver>(
        &self,
        mut solver: S,
        target: &mut dyn Target,
        law: &dyn Fn(&S, Option<usize>) -> Result<Law>,
    ) -> Result<(Path, Option<usize>)> {
        let mut path = vec![(0, 0.0, law(&solver, self.draws)?)];
        let mut seconds = 0.0;
        for step in 0..self.steps {
            let before = self.clock.elapsed().as_secs_f64();
            let own = if step == 0 {
                solver.advance(target, step)
            } else {
                solver.advance_on(target, step)
            };
            seconds += self.clock.elapsed().as_secs_f64() - before;
            match own {
                Err(error) if error.is_recoverable() => return Ok((path, Some(step))),
                Err(error) => return Err(error),
                Ok(_) if !solver.is_finite() => return Ok((path, Some(step))),
                Ok(_) => {}
            }
            if (step + 1) % self.every == 0 || step + 1 == self.steps {
                match law(&solver, self.draws) {
                    Ok(own) => path.push((step + 1, seconds, own)),
                    Err(error) if error.is_recoverable() => return Ok((path, Some(step))),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((path, None))
    }
}

/// The median of numbers.
pub fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A number in a table.
pub fn shown(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "–".into(),
        0.0 => "0".into(),
        v if !(1e-3..1e4).contains(&v) => format!("{value:.0e}"),
        v if v < 0.1 => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    }
}
