//! A kernel as a sum of squared exponentials, one linear part with a constant, and white noise: sums and products with
//! constants come to that.

use crate::error::{Error, Result};
use crate::kernels::{Form, Kernel};

/// σ² exp(−½ Σ_q ω_q (x_q − x′_q)²); ω is 0 where an input is not active.
#[derive(Clone, Debug)]
pub(super) struct Bump {
    /// log σ².
    pub log_amplitude: f64,
    /// ω = ℓ⁻², Q numbers.
    pub omega: Vec<f64>,
}

/// What a kernel is a sum of.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub bumps: Vec<Bump>,
    /// a of Σ_q a_q x_q x′_q, for an input that is always 1 (the constant) and then for the Q inputs.
    pub linear: Vec<f64>,
    /// Whether there is a linear part or a constant.
    pub is_linear: bool,
    /// Variance of white noise.
    pub white: f64,
    sources: Vec<Source>,
    inputs: usize,
}

/// Slopes of a sum by the numbers of [`Parts`].
#[derive(Clone, Debug)]
pub(super) struct PartSlopes {
    /// By log σ² of every squared exponential.
    pub log_amplitude: Vec<f64>,
    /// By ω of every one.
    pub omega: Vec<Vec<f64>>,
    /// By a.
    pub linear: Vec<f64>,
    /// By the variance of white noise.
    pub white: f64,
}

impl PartSlopes {
    /// Adds others.
    pub fn add(&mut self, other: &PartSlopes) {
        let add = |a: &mut [f64], b: &[f64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        add(&mut self.log_amplitude, &other.log_amplitude);
        self.omega.iter_mut().zip(&other.omega).for_each(|(a, b)| add(a, b));
        add(&mut self.linear, &other.linear);
        self.white += other.white;
    }
}

/// A product of variances (places among the parameters, and values) and of at most one function of the inputs.
#[derive(Clone, Debug)]
struct Source {
    factors: Vec<(usize, f64)>,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Constant,
    White,
    Linear(Numbers),
    Bump(Numbers),
}

impl Shape {
    fn name(&self) -> &'static str {
        match self {
            Shape::Constant => "constant",
            Shape::White => "white",
            Shape::Linear(_) => "linear",
            Shape::Bump(_) => "rbf",
        }
    }
}

/// Weights or lengthscales, one for all or one for each active input.
#[derive(Clone, Debug)]
struct Numbers {
    /// Place of the first among the parameters.
    first: usize,
    values: Vec<f64>,
    dims: Vec<usize>,
}

impl Numbers {
    /// Returns the input, place among the parameters and value.
    fn each(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        self.dims.iter().enumerate().map(|(at, &dim)| {
            let slot = if self.values.len() == 1 { 0 } else { at };
            (dim, self.first + slot, self.values[slot])
        })
    }
}

impl Source {
    fn amplitude(&self) -> f64 {
        self.factors.iter().map(|(_, value)| value).product()
    }

    fn times(&self, other: &Source) -> Result<Source> {
        let shape = match (&self.shape, &other.shape) {
            (Shape::Constant, shape) | (shape, Shape::Constant) => shape.clone(),
            (a, b) => {
                return Err(refusal(&format!(
                    "the product of the kernels `{}` and `{}`",
                    a.name(),
                    b.name()
                )));
            }
        };
        Ok(Source { factors: [self.factors.clone(), other.factors.clone()].concat(), shape })
    }
}

fn refusal(what: &str) -> Error {
    Error::Invalid(format!(
        "{what} has no expectations in closed form under uncertain inputs; possible are `rbf`, `linear`, `constant` and \
         `white`, sums of them and products with `constant`"
    ))
}

/// Returns the terms of a kernel whose parameters begin at `offset`.
fn sources(kernel: &dyn Kernel, offset: usize) -> Result<Vec<Source>> {
    let form = kernel.form().ok_or_else(|| refusal(&format!("the kernel `{}`", kernel.name())))?;
    let children = |children: &[Box<dyn Kernel>]| {
        let mut at = offset;
        let each = children.iter().map(|child| {
            let own = sources(&**child, at);
            at += child.num_params();
            own
        });
        each.collect::<Result<Vec<_>>>()
    };
    Ok(match form {
        Form::Constant { variance } => {
            vec![Source { factors: vec![(offset, variance.scalar())], shape: Shape::Constant }]
        }
        Form::White { variance } => {
            vec![Source { factors: vec![(offset, variance.scalar())], shape: Shape::White }]
        }
        Form::Linear { weights, dims } => {
            let numbers =
                Numbers { first: offset, values: weights.value().to_vec(), dims: dims.to_vec() };
            vec![Source { factors: Vec::new(), shape: Shape::Linear(numbers) }]
        }
        Form::SquaredExponential { variance, lengthscales, dims } => {
            let values = lengthscales.value().to_vec();
            let numbers = Numbers { first: offset + 1, values, dims: dims.to_vec() };
            let factors = vec![(offset, variance.scalar())];
            vec![Source { factors, shape: Shape::Bump(numbers) }]
        }
        Form::Sum(all) => children(all)?.concat(),
        Form::Product(all) => {
            let mut product = vec![Source { factors: Vec::new(), shape: Shape::Constant }];
            for child in children(all)? {
                let pairs = product.iter().flat_map(|a| child.iter().map(move |b| a.times(b)));
                product = pairs.collect::<Result<_>>()?;
            }
            product
        }
    })
}

impl Parts {
    /// Takes a kernel of `inputs` latent dimensions apart.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names a kernel without expectations in closed form; [`Error::Shape`] for one of more
    /// inputs.
    pub fn new(kernel: &dyn Kernel, inputs: usize) -> Result<Self> {
        let sources = sources(kernel, 0)?;
        let mut parts = Parts {
            bumps: Vec::new(),
            linear: vec![0.0; inputs + 1],
            is_linear: false,
            white: 0.0,
            sources: Vec::new(),
            inputs,
        };
        for source in &sources {
            if let Shape::Linear(numbers) | Shape::Bump(numbers) = &source.shape
                && let Some(dim) = numbers.dims.iter().max().filter(|dim| **dim >= inputs)
            {
                return Err(Error::Shape {
                    what: "latent dimensions".into(),
                    expected: format!("at least {}, which the kernel looks at", dim + 1),
                    found: format!("{inputs}"),
                });
            }
            let amplitude = source.amplitude();
            match &source.shape {
                Shape::Constant => parts.linear[0] += amplitude,
                Shape::White => parts.white += amplitude,
                Shape::Linear(weights) => {
                    weights.each().for_each(|(dim, _, a)| parts.linear[1 + dim] += amplitude * a);
                }
                Shape::Bump(lengthscales) => {
                    let mut omega = vec![0.0; inputs];
                    lengthscales.each().for_each(|(dim, _, l)| omega[dim] = l.powi(-2));
                    // of logarithms, so that no product of variances underflows
                    let logs = source.factors.iter().map(|(_, value)| value.ln());
                    parts.bumps.push(Bump { log_amplitude: logs.sum(), omega });
                }
            }
            parts.is_linear |= matches!(source.shape, Shape::Constant | Shape::Linear(_));
        }
        parts.sources = sources;
        Ok(parts)
    }

    /// Returns slopes of zero.
    pub fn slopes(&self) -> PartSlopes {
        PartSlopes {
            log_amplitude: vec![0.0; self.bumps.len()],
            omega: vec![vec![0.0; self.inputs]; self.bumps.len()],
            linear: vec![0.0; self.inputs + 1],
            white: 0.0,
        }
    }

    /// Adds the slopes by the kernel's constrained parameters to `params`.
    pub fn pull(&self, slopes: &PartSlopes, params: &mut [f64]) {
        let mut bump = 0;
        for source in &self.sources {
            let amplitude = source.amplitude();
            // the slope by the logarithm of the amplitude
            let total = match &source.shape {
                Shape::Constant => amplitude * slopes.linear[0],
                Shape::White => amplitude * slopes.white,
                Shape::Linear(weights) => {
                    let mut total = 0.0;
                    for (dim, place, a) in weights.each() {
                        let own = amplitude * slopes.linear[1 + dim];
                        params[place] += own;
                        total += a * own;
                    }
                    total
                }
                Shape::Bump(lengthscales) => {
                    for (dim, place, l) in lengthscales.each() {
                        // ∂ω/∂ℓ = −2ℓ⁻³
                        params[place] -= 2.0 * l.powi(-3) * slopes.omega[bump][dim];
                    }
                    bump += 1;
                    slopes.log_amplitude[bump - 1]
                }
            };
            source.factors.iter().for_each(|(place, value)| params[*place] += total / value);
        }
    }

    /// Returns the prior variance of the slope ∂f/∂x_q of a function at the origin, Q numbers: how
    /// much it varies along each input.
    pub fn slope_variances(&self) -> Vec<f64> {
        let of = |q: usize| {
            let bumps = self.bumps.iter().map(|bump| bump.log_amplitude.exp() * bump.omega[q]);
            bumps.sum::<f64>() + self.linear[1 + q]
        };
        (0..self.inputs).map(of).collect()
    }
}
