//! Additive kernels (Duvenaud, Nickisch & Rasmussen 2011): sums of functions of one input, of two, ….
//!
//! With one stationary kernel z_q = κ((x_q − x′_q)²/ℓ_q²) of unit variance for each of D inputs,
//! k = Σ_d v_d e_d(z₁, …, z_D)/C(D, d) with the elementary symmetric polynomials e_d, the sums of all
//! products of d of them. Divided by their number C(D, d), so that v_d is the variance of order d as a
//! whole, whatever D is (theirs is v_d/C(D, d)).
//!
//! e_d is summed input by input, e_d ← e_d + z_q e_{d−1}: sums and products of what is not negative, whose
//! relative error stays small at every order. (Newton–Girard, by sums of powers with alternating signs,
//! loses digits; the number of operations is the same for few orders.) Its adjoint gives
//! ∂e_d/∂z_q, the polynomial e_{d−1} of the other inputs, with no division or difference either.

mod loops;

use super::matern::{Matern12, Matern32, Matern52};
use super::radial::Profile;
use super::registry::{Args, Entry, find, object};
use super::squared_exponential::SquaredExponential;
use super::terms::{Term, column_name};
use super::{Cotangents, Kernel, Tape, Unit, exponential::Exponential, no_spectrum, spec};
use crate::error::Result;
use crate::linalg::{MatMut, MatRef, column_mut, mirror_lower};
use crate::params::{Param, Role, Transform, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use loops::{Slopes, Task};
use rand_distr::{Distribution, StandardNormal};
use serde_json::{Value, json};
use std::marker::PhantomData;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "additive",
    aliases: &[],
    about: "additive, Σ variances·(mean of the products of 1, 2, … kernels of one input): effects of single inputs, and \
            interactions up to an `order`",
    build,
};

/// Sums of functions of few inputs each, with a lengthscale for each input (or one for all) and a variance
/// for each order.
#[derive(Clone, Debug)]
pub struct Additive<P: Profile> {
    variances: Param,
    lengthscales: Param,
    dims: Vec<usize>,
    dims_given: bool,
    base: PhantomData<P>,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["base", "order", "variances", "lengthscales", "active_dims", "ard"])?;
    let base = match args.get("base") {
        Some(Value::String(short)) => spec::read(short)?,
        Some(other) => other.clone(),
        None => json!({ "type": SquaredExponential::NAME }),
    };
    let plain = base.as_object().filter(|own| own.len() == 1).and_then(|own| own.get("type"));
    let name = plain.and_then(Value::as_str).map(|name| find(name).map_or(name, |e| e.name));
    match name {
        Some(SquaredExponential::NAME) => Additive::<SquaredExponential>::read(&args),
        Some(Matern12::NAME) => Additive::<Matern12>::read(&args),
        Some(Matern32::NAME) => Additive::<Matern32>::read(&args),
        Some(Matern52::NAME) => Additive::<Matern52>::read(&args),
        Some(Exponential::NAME) => Additive::<Exponential>::read(&args),
        _ => Err(args.wrong(format!(
            "its base is the name of one of rbf, matern12, matern32, matern52, exponential, not {base}; `lengthscales`, \
             `variances` and `active_dims` are entries of `additive` itself, as in `additive(base=matern52, order=2, \
             lengthscales=0.5)`"
        ))),
    }
}

/// Returns C(n, d), a few units in the last place.
fn binomial(n: usize, d: usize) -> f64 {
    (0..d).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64)
}

impl<P: Profile> Additive<P> {
    fn read(args: &Args<'_>) -> Result<Box<dyn Kernel>> {
        let (dims, dims_given) = args.active_dims()?;
        let order = args.whole("order", 1)?.unwrap_or(1) as usize;
        if order > dims.len() {
            return Err(args.wrong(format!(
                "`order` is {order}; it is at most the number of active input columns, {}",
                dims.len()
            )));
        }
        let mut variances = Param::positive_vector(vec![1.0; order]).of(Role::Variance);
        args.read("variances", &mut variances)?;
        let lengthscales = args.positive("lengthscales", Some(dims.len()), args.ard(true)?)?;
        Ok(Box::new(Self { variances, lengthscales, dims, dims_given, base: PhantomData }))
    }

    fn order(&self) -> usize {
        self.variances.len()
    }

    fn slot(&self, q: usize) -> usize {
        if self.lengthscales.len() == 1 { 0 } else { q }
    }

    fn inverse_lengthscale(&self, q: usize) -> f64 {
        1.0 / self.lengthscales.value()[self.slot(q)]
    }

    /// Returns what the loops work on.
    fn task<'a>(&'a self, x: MatRef<'a, f64>, z: Option<MatRef<'a, f64>>) -> Task<'a> {
        let each = self.variances.value().iter().enumerate();
        Task {
            x,
            z: z.unwrap_or(x),
            dims: &self.dims,
            inverse: (0..self.dims.len()).map(|q| self.inverse_lengthscale(q)).collect(),
            weights: each.map(|(d, v)| v / binomial(self.dims.len(), d + 1)).collect(),
            same: z.is_none(),
        }
    }

    /// Returns k(x, x).
    fn variance(&self) -> f64 {
        self.variances.value().iter().sum()
    }

    fn add_slopes(&self, slopes: &Slopes, z: Option<MatRef<f64>>, sinks: &mut Cotangents<'_>) {
        for (d, own) in slopes.polynomials.iter().enumerate() {
            sinks.params[d] += own / binomial(self.dims.len(), d + 1);
        }
        for (q, own) in slopes.lengths.iter().enumerate() {
            sinks.params[self.order() + self.slot(q)] -= own * self.inverse_lengthscale(q);
        }
        let add = |sink: &mut Option<MatMut<'_, f64>>, own: MatRef<'_, f64>| {
            let Some(sink) = sink else { return };
            for (q, &d) in self.dims.iter().enumerate() {
                let own = own.col(q).iter();
                column_mut(sink.rb_mut(), d).iter_mut().zip(own).for_each(|(t, v)| *t += v);
            }
        };
        add(&mut sinks.x, slopes.x.as_ref());
        add(if z.is_none() { &mut sinks.x } else { &mut sinks.z }, slopes.z.as_ref());
    }
}

impl<P: Profile> Kernel for Additive<P> {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variances", &self.variances);
        visitor(&"lengthscales", &self.lengthscales);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variances", &mut self.variances);
        visitor(&"lengthscales", &mut self.lengthscales);
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, mut out: MatMut<f64>, _: &mut Tape) {
        self.task(x, z).fill::<P>(out.rb_mut(), 0);
        if z.is_none() {
            (0..x.nrows()).for_each(|i| out[(i, i)] = self.variance());
            mirror_lower(out);
        }
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        _: MatRef<f64>,
        k_bar: MatMut<f64>,
        _: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let task = self.task(x, z);
        let slopes = task.pull::<P>(k_bar.as_ref(), 0..k_bar.ncols(), sinks.x.is_some());
        self.add_slopes(&slopes, z, sinks);
    }

    fn diag(&self, _: MatRef<f64>, out: &mut [f64]) {
        out.fill(self.variance());
    }

    fn diag_vjp(&self, _: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let total: f64 = weights.iter().sum();
        sinks.params[..self.order()].iter_mut().for_each(|slope| *slope += total);
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let own = self.lengthscales.len() == self.dims.len();
        let lengths = self.dims.iter().map(|&d| own.then_some(Unit::input(d, 1)));
        let variances = self.variances.value().iter().map(|_| Some(Unit::VARIANCE));
        variances.chain(lengths.take(self.lengthscales.len())).collect()
    }

    fn relevance(&self, relevance: &mut [f64]) {
        for (q, &d) in self.dims.iter().enumerate() {
            relevance[d] = relevance[d].max(self.inverse_lengthscale(q));
        }
    }

    /// Starts every function of one input as a kernel of that input by itself would start.
    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        let own: Vec<f64> = self.dims.iter().map(|&d| spreads[d]).collect();
        let values = if self.lengthscales.len() == 1 {
            vec![(own.iter().map(|l| l.ln()).sum::<f64>() / own.len() as f64).exp()]
        } else {
            own
        };
        super::spec::initialise(&mut self.lengthscales, &values);
        let share = vec![variance / self.order() as f64; self.order()];
        super::spec::initialise(&mut self.variances, &share);
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), &self.dims, x)
    }

    /// Draws from a mixture over orders, in proportion to their variances, and over sets of so many
    /// inputs, all alike likely; frequencies of the inputs of a set are independent.
    fn spectral(&self, mut out: MatMut<f64>, rng: &mut dyn rand::Rng) -> Result<f64> {
        let (total, inputs) = (self.variance(), self.dims.len());
        for j in 0..out.nrows() {
            let mut left = total * crate::rng::uniform(&mut *rng);
            let drawn = self.variances.value().iter().position(|variance| {
                left -= variance;
                left < 0.0
            });
            let mut needed = drawn.map_or(self.order(), |d| d + 1);
            for q in 0..inputs {
                // the next input is one of the set with probability (still needed)/(still there)
                let chance = needed as f64 / (inputs - q) as f64;
                if crate::rng::uniform(&mut *rng) >= chance {
                    continue;
                }
                needed -= 1;
                let scale = P::frequency_scale(&mut *rng);
                let scale = scale.ok_or_else(|| no_spectrum(self.name()))?;
                let z: f64 = StandardNormal.sample(&mut *rng);
                out[(j, self.dims[q])] += scale * z * self.inverse_lengthscale(q);
            }
        }
        Ok(total)
    }

    /// Returns the function of every input, then all interactions of two, of three, ….
    fn terms(&self, names: &[String]) -> Vec<Term> {
        let single = |q: usize| {
            let mut own = self.clone();
            own.dims = vec![self.dims[q]];
            own.dims_given = true;
            let share = self.variances.value()[0] / self.dims.len() as f64;
            own.variances = Param::positive_vector(vec![share]).of(Role::Variance);
            let lengthscale = self.lengthscales.value()[self.slot(q)];
            own.lengthscales = Param::positive_vector(vec![lengthscale]).of(Role::Lengthscales);
            let name = format!("{}({})", ENTRY.name, column_name(names, self.dims[q]));
            Term { name, kernel: Box::new(own) as Box<dyn Kernel> }
        };
        let interactions = |d: usize| {
            let mut own = self.clone();
            let others = own.variances.value_mut().iter_mut().enumerate().filter(|(o, _)| *o != d);
            others.for_each(|(_, variance)| *variance = 0.0);
            Term { name: format!("{} order {}", ENTRY.name, d + 1), kernel: Box::new(own) }
        };
        (0..self.dims.len()).map(single).chain((1..self.order()).map(interactions)).collect()
    }

    fn to_json(&self) -> Value {
        let mut json = object(
            ENTRY.name,
            &[("lengthscales", &self.lengthscales)],
            self.dims_given.then_some(&self.dims),
        );
        json["base"] = json!(P::NAME);
        json["order"] = json!(self.order());
        json["variances"] = self.variances.to_json(Transform::POSITIVE);
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
