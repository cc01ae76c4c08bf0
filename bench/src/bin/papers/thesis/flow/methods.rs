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
) -> Result<Followed> {
    let plan = Plan { steps, every, draws, clock: Instant::now() };
    match method {
        Method::Gpf(flow) => start.gpf(flow, Blocks::Whole, &plan, target),
        Method::GpfMeanField => start.gpf(MeanFlow::Plain, Blocks::Diagonal, &plan, target),
        Method::Gf(flow) => start.gf(flow, false, &plan, target),
        Method::GfMeanField => start.gf(MeanFlow::Plain, true, &plan, target),
        Method::Dsvi => start.dsvi(Root::Lower(start.root()), &plan, target),
        Method::DsviMeanField => {
            let root = Root::Diagonal(vec![start.deviation; start.mean.len()]);
            start.dsvi(root, &plan, target)
        }
        Method::Fcs => start.fcs(&plan, target),
        Method::IblrHessian => start.iblr(false, Curvature::Hessian, &plan, target),
        Method::Iblr => start.iblr(false, Curvature::Reparameterised, &plan, target),
        Method::IblrMeanField => start.iblr(true, Curvature::Reparameterised, &plan, target),
        Method::Svgd(kernel) => start.svgd(kernel, &plan, target),
    }
}

/// A path, and the step at which the method lost itself.
pub type Followed = (Path, Option<usize>);

/// A diagonal matrix of one value.
fn scaled(dim: usize, value: f64) -> Mat<f64> {
    Mat::from_fn(dim, dim, |i, j| if i == j { value } else { 0.0 })
}

fn draw() -> impl rand::Rng {
    rng::stream(0, "flows")
}

impl Start {
    fn root(&self) -> Mat<f64> {
        scaled(self.mean.len(), self.deviation)
    }

    /// As many columns as the particles have directions.
    fn columns(&self) -> usize {
        (self.particles - 1).min(self.mean.len())
    }

    fn descent(&self) -> DescentOptions {
        DescentOptions {
            rate: self.rate,
            rule: self.of_parameters,
            draws: self.particles.min(self.mean.len()),
            seed: self.seed,
            ..DescentOptions::default()
        }
    }

    fn cloud(&self) -> Result<Particles> {
        let dim = self.mean.len();
        if self.particles > dim {
            return Particles::matched(&self.mean, self.root().as_ref(), self.particles, self.seed);
        }
        Particles::around(&self.mean, &vec![self.deviation; dim], self.particles, self.seed)
    }

    /// The deviations of particles as columns of a factor, scaled.
    fn directions(&self, scale: f64) -> Result<Mat<f64>> {
        let columns = self.columns();
        let own = self.cloud()?.deviations().as_ref().subcols(0, columns).to_owned();
        Ok(own * faer::Scale((scale / columns as f64).sqrt()))
    }

    fn gpf(
        &self,
        mean_flow: MeanFlow,
        blocks: Blocks,
        plan: &Plan,
        target: &mut dyn Target,
    ) -> Result<Followed> {
        let diagonal = blocks == Blocks::Diagonal;
        let options = GpfOptions {
            mean_rate: self.rate,
            spread_rate: self.rate,
            mean_flow,
            blocks,
            rule: self.of_particles,
            ..GpfOptions::default()
        };
        plan.make(Gpf::new(self.cloud()?, options)?, target, &|own, draws| {
            let own = own.particles();
            Ok(match draws {
                Some(count) if diagonal => diagonal_draws(&own.mean(), &own.variances(), count),
                Some(count) => Law::Draws(own.draw(count, &mut draw())),
                None => Law::Moments(own.mean(), own.covariance()),
            })
        })
    }

    fn gf(
        &self,
        mean_flow: MeanFlow,
        diagonal: bool,
        plan: &Plan,
        target: &mut dyn Target,
    ) -> Result<Followed> {
        let dim = self.mean.len();
        let factor = match diagonal {
            true => Factor::Diagonal(vec![self.deviation; dim]),
            false if self.columns() == dim => Factor::Whole(self.root()),
            false => Factor::Whole(self.directions(1.0)?),
        };
        let options = GfOptions {
            mean_rate: self.rate,
            spread_rate: self.rate,
            mean_flow,
            rule: self.of_parameters,
            draws: self.particles.min(dim),
            seed: self.seed,
            ..GfOptions::default()
        };
        let gf = Gf::new(self.mean.clone(), factor, options)?;
        plan.make(gf, target, &|own, draws| match draws {
            Some(count) => Ok(Law::Draws(own.draw(count, &mut draw()))),
            None => Ok(Law::Moments(own.mean().to_vec(), own.factor().covariance()?)),
        })
    }

    fn dsvi(&self, root: Root, plan: &Plan, target: &mut dyn Target) -> Result<Followed> {
        let dsvi = Dsvi::new(self.mean.clone(), root, self.descent())?;
        plan.make(dsvi, target, &|own, draws| match (draws, own.root()) {
            (Some(count), _) => Ok(Law::Draws(own.draw(count, &mut draw()))),
            (None, Root::Lower(l)) => Ok(Law::Moments(own.mean().to_vec(), l * l.transpose())),
            (None, Root::Diagonal(s)) => {
                let own_variance = |i: usize, j: usize| if i == j { s[i] * s[i] } else { 0.0 };
                Ok(Law::Moments(own.mean().to_vec(), Mat::from_fn(s.len(), s.len(), own_variance)))
            }
        })
    }

    fn fcs(&self, plan: &Plan, target: &mut dyn Target) -> Result<Followed> {
        let dim = self.mean.len();
        let (mean, descent) = (self.mean.clone(), self.descent());
        let fcs = if self.columns() == dim {
            let covariance = scaled(dim, self.deviation.powi(2));
            Fcs::of_covariance(mean, covariance.as_ref(), dim, Entropy::Sampled, descent)?
        } else {
            let d = vec![self.deviation * 0.5_f64.sqrt(); dim];
            Fcs::new(mean, self.directions(0.5)?, d, Entropy::Closed, descent)?
        };
        plan.make(fcs, target, &|own, draws| match draws {
            Some(count) => Ok(Law::Draws(own.draw(count, &mut draw()))),
            None => Ok(Law::Moments(own.mean().to_vec(), own.covariance())),
        })
    }

    fn iblr(
        &self,
        diagonal: bool,
        curvature: Curvature,
        plan: &Plan,
        target: &mut dyn Target,
    ) -> Result<Followed> {
        let (dim, scale) = (self.mean.len(), self.deviation.powi(-2));
        let precision = match diagonal {
            true => Precision::Diagonal(vec![scale; dim]),
            false => Precision::Whole(scaled(dim, scale)),
        };
        let draws = self.particles.min(dim);
        let options = IblrOptions { rate: self.rate, curvature, draws, seed: self.seed };
        let iblr = Iblr::new(self.mean.clone(), precision, options)?;
        plan.make(iblr, target, &|own, draws| match draws {
            Some(count) => Ok(Law::Draws(own.draw(count, &mut draw())?)),
            None => Ok(Law::Moments(own.mean().to_vec(), own.covariance()?)),
        })
    }

    fn svgd(&self, kernel: SvgdKernel, plan: &Plan, target: &mut dyn Target) -> Result<Followed> {
        let rule = self.of_particles;
        let options = SvgdOptions { kernel, rate: self.rate, rule, ..SvgdOptions::default() };
        plan.make(Svgd::new(self.cloud()?, options)?, target, &|own, draws| {
            let own = own.particles();
            Ok(match draws {
                // they are themselves what is drawn
                Some(_) => Law::Draws(own.x().to_owned()),
                None => Law::Moments(own.mean(), own.covariance()),
            })
        })
    }
}

/// Draws of independent normal numbers.
fn diagonal_draws(mean: &[f64], variances: &[f64], count: usize) -> Law {
    let mut rng = draw();
    let of =
        |i: usize, _: usize| mean[i] + variances[i].sqrt() * sparsegp_bench::page::normal(&mut rng);
    Law::Draws(Mat::from_fn(mean.len(), count, of))
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
