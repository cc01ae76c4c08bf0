//! The noisy sinc, and forms of q, which Figures 1 and 2 share.

use super::em::{bound, settle};
use sparsegp::data::InMemory;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::find;
use sparsegp::model::Model;
use sparsegp::rng::{stream, uniform};
use sparsegp::variational::{Form, Tying, Variational};
use sparsegp::{likelihoods, means};

/// A form of q with its name: sites with what ties them, or moments.
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// What ties sites, for those that are sites.
    pub tying: Option<Tying>,
    /// How moments are kept, for the others.
    pub form: Form,
}

/// Sites by their natural parameters, which the library calls t-SVGP.
pub const NATURAL: Shape = Shape { name: "t", tying: Some(Tying::Natural), form: Form::Whitened };
/// Sites as the paper's algorithm stores them.
pub const PRINTED: Shape =
    Shape { name: "t as printed", tying: Some(Tying::Kernel), form: Form::Whitened };
/// A site for every row.
pub const UNTIED: Shape =
    Shape { name: "t untied", tying: Some(Tying::Untied), form: Form::Whitened };
/// Moments of u.
pub const PLAIN: Shape = Shape { name: "q", tying: None, form: Form::Marginal };
/// Moments of L⁻¹u.
pub const WHITENED: Shape = Shape { name: "q whitened", tying: None, form: Form::Whitened };

/// Returns a model with a new q of this form.
pub fn with(shape: &Shape, model: &Model, rows: usize) -> sparsegp::Result<Model> {
    let m = model.inducing_points()?.nrows();
    let (method, q) = match shape.tying {
        Some(Tying::Untied) => ("tsvgp", Variational::sites(rows, 1, Tying::Untied)),
        Some(tying) => ("tsvgp", Variational::sites(m, 1, tying)),
        None => ("svgp", Variational { form: shape.form, ..Variational::prior(m, 1, false) }),
    };
    Ok(Model { method: find(method)?.method, q: Some(q), ..model.clone() })
}

/// Returns the rows, and a model with ten points at even distances and the lengthscale ½.
pub fn sinc(seed: u64) -> sparsegp::Result<(InMemory, Model)> {
    let mut rng = stream(seed + 3, "sinc");
    let n = 100;
    let mut x: Vec<f64> = (0..n).map(|_| 2.0 * uniform(&mut rng) - 1.0).collect();
    x.sort_by(f64::total_cmp);
    // a sum of twelve uniform numbers for the noise
    let mut normal = || (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0;
    let above = |x: &f64, noise: f64| (12.0 * x).sin() / x + 0.2 * noise > 0.0;
    let y: Vec<f64> = x.iter().map(|x| f64::from(u8::from(above(x, normal())))).collect();
    let data = InMemory::new(Mat::from_fn(n, 1, |i, _| x[i]), Mat::from_fn(n, 1, |i, _| y[i]))?;
    let z = Mat::from_fn(10, 1, |j, _| x[0] + (x[n - 1] - x[0]) * j as f64 / 9.0);
    let kernel = parse("rbf(variance=0.6, lengthscales=0.5)", Inputs::unnamed(1))?;
    let model = Model::builder(kernel, find("svgp")?.method)
        .mean(means::by_name("zero", 1, 1)?)
        .likelihood(likelihoods::parse("bernoulli(link=logit)")?)
        .inducing(z.as_ref())
        .jitter(Jitter::Absolute(1e-6))
        .build(1, 1)?;
    Ok((data, model))
}

/// Returns the model with another variance of the kernel.
pub fn at(model: &Model, variance: f64) -> sparsegp::Result<Model> {
    let mut moved = model.clone();
    moved.set("kernel.variance", &[variance])?;
    Ok(moved)
}

/// Returns the variance with the largest bound in [0.02, 4] at what is stored of q, by golden sections of its
/// logarithm.
pub fn best_variance(model: &Model, data: &InMemory) -> sparsegp::Result<f64> {
    let value = |log: f64| bound(&at(model, log.exp())?, data);
    let share = 0.5 * (5_f64.sqrt() - 1.0);
    let (mut low, mut high) = (0.02_f64.ln(), 4_f64.ln());
    while high - low > 1e-5 {
        let (left, right) = (high - share * (high - low), low + share * (high - low));
        if value(left)? > value(right)? { high = right } else { low = left }
    }
    Ok((0.5 * (low + high)).exp())
}

/// Moves q to its optimum.
pub fn solve(model: &mut Model, data: &InMemory) -> sparsegp::Result<f64> {
    settle(model, data, 60)
}
