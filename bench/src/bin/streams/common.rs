//! A stream with one kernel, rows, scores, tables and lines.

use plotters::prelude::*;
use sparsegp::error::Result;
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
    /// Kernel variance and lengthscale, and the variance of Gaussian noise; none for Bernoulli.
    pub variance: f64,
    pub lengthscale: f64,
    pub noise: Option<f64>,
    /// Inducing points.
    pub z: Mat<f64>,
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

/// Colours that people without red-green sight tell apart (Okabe & Ito).
pub const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

pub use sparsegp_bench::page::{Area, Drawn, head, normal, number, option, row};

/// A line with a name.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// Draws lines with names and marks; `logarithmic` says which axes are.
pub fn lines(
    area: &Area<'_>,
    (title, x, y): (&str, &str, &str),
    all: &[Line<'_>],
    logarithmic: [bool; 2],
) -> Drawn {
    let change = |v: f64, log: bool| if log { v.log10() } else { v };
    let map = |p: &(f64, f64)| (change(p.0, logarithmic[0]), change(p.1, logarithmic[1]));
    let points: Vec<(f64, f64)> = all.iter().flat_map(|l| l.points.iter().map(map)).collect();
    let range = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let low = points.iter().map(of).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let margin = 0.05 * (high - low).max(1e-9);
        low - margin..high + margin
    };
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(38)
        .y_label_area_size(56)
        .build_cartesian_2d(range(&|p| p.0), range(&|p| p.1))?;
    let plain = |v: &f64, log: bool| match log {
        true => {
            format!("{:.3}", 10_f64.powf(*v)).trim_end_matches('0').trim_end_matches('.').into()
        }
        false => format!("{}", (v * 1e4).round() / 1e4),
    };
    let (of_x, of_y) = (|v: &f64| plain(v, logarithmic[0]), |v: &f64| plain(v, logarithmic[1]));
    let mut mesh = chart.configure_mesh();
    mesh.disable_mesh().x_desc(x).y_desc(y).x_labels(6).y_labels(6);
    mesh.x_label_formatter(&of_x).y_label_formatter(&of_y).draw()?;
    for (line, colour) in all.iter().zip(COLOURS.iter().cycle()) {
        let own: Vec<(f64, f64)> = line.points.iter().map(map).collect();
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(own.iter().copied(), style))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], style));
        chart.draw_series(own.iter().map(|p| Circle::new(*p, 2, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 11))
        .draw()?;
    Ok(())
}
