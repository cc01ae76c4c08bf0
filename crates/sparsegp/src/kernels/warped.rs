//! Inputs bent by two numbers each before another kernel sees them: k(w(x), w(x′)), after Snoek, Swersky, Zemel & Adams (2014).
//!
//! They take the distribution function of Kumaraswamy, 1 − (1 − uᵃ)ᵇ, on inputs in [0, 1], which needs their range and has no value
//! beyond it. Here u = 1/(1 + e⁻ᵗ) of t = (x − location)/scale, and what comes out goes back by the logit, so that w is increasing
//! on the whole line, the identity at a = b = 1, and linear far away, with slope a on the left and b on the right:
//!
//! ```text
//! T = a ln(1 + e⁻ᵗ)    L = ln(1 − e⁻ᵀ)    B = bL    w = location + scale (ln(1 − eᴮ) − B)
//! ∂w/∂B = scale/(eᴮ − 1)    ∂B/∂L = b    ∂L/∂T = 1/(eᵀ − 1)    ∂T/∂t = −a/(1 + eᵗ)
//! ```
//!
//! With w = location + scale g(t), those in location and scale are 1 − g′ and g − tg′.

use super::radial::Profile;
use super::registry::{Args, Entry, build as build_kernel};
use super::squared_exponential::SquaredExponential;
use super::terms::Term;
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};
use crate::params::{Param, Prior, Shape, Transform, Visitor, VisitorMut, prefixed, prefixed_mut};
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "warped",
    aliases: &["input_warped", "input-warped"],
    about: "base=… of inputs that are bent by two numbers each, so that a function may vary faster at one end (learnt)",
    build,
};

/// Standard deviation of the logarithms of a and b, about 0, where they are given no prior.
const SPREAD: f64 = 0.75;

/// A kernel of bent inputs.
#[derive(Clone, Debug)]
pub struct Warped {
    base: Box<dyn Kernel>,
    a: Param,
    b: Param,
    /// Where inputs are bent about, and how wide they are; not trained.
    location: Param,
    scale: Param,
    dims: Vec<usize>,
    dims_given: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["base", "a", "b", "location", "scale", "active_dims"])?;
    let usual = json!({ "type": SquaredExponential::NAME });
    let base = build_kernel(args.get("base").unwrap_or(&usual), args.inputs)?;
    let (dims, dims_given) = args.active_dims()?;
    let count = dims.len();
    let says = |name: &str, what: &str| {
        args.get(name).and_then(Value::as_object).is_some_and(|own| own.contains_key(what))
    };
    let bend = |name: &str| -> Result<Param> {
        let mut param = args.positive(name, Some(count), true)?;
        if !says(name, "prior") {
            param.prior = Some(Prior::LogNormal { loc: 0.0, scale: SPREAD });
        }
        Ok(param)
    };
    let (a, b) = (bend("a")?, bend("b")?);
    let mut scale = args.positive("scale", Some(count), true)?;
    let value = args.get("location").map(|own| own.get("value").unwrap_or(own));
    let mut location = match value {
        Some(Value::Number(_)) => Param::with(vec![0.0], Shape::Scalar, Transform::Identity),
        _ => Param::with(vec![0.0; count], Shape::Vector(count), Transform::Identity),
    };
    args.read("location", &mut location)?;
    for (name, param) in [("location", &mut location), ("scale", &mut scale)] {
        param.frozen |= !says(name, "frozen");
    }
    Ok(Box::new(Warped { base, a, b, location, scale, dims, dims_given }))
}

/// e⁻ᵗ has no digits beside 1 from here on.
const FAR: f64 = 37.0;

/// Returns ln(1 + eᵗ).
fn softplus(t: f64) -> f64 {
    if t > FAR { t } else { t.exp().ln_1p() }
}

/// Returns ln(1 − e⁻ᵀ) for T > 0.
fn log_complement(t: f64) -> f64 {
    if t > std::f64::consts::LN_2 { (-(-t).exp()).ln_1p() } else { (-(-t).exp_m1()).ln() }
}

/// A bent place with its slopes, in t, a and b.
#[derive(Clone, Copy)]
struct Bent {
    value: f64,
    by_t: f64,
    by_a: f64,
    by_b: f64,
}

fn bend(t: f64, a: f64, b: f64) -> Bent {
    let rest = softplus(-t);
    let total = a * rest;
    if total > FAR + b.max(1.0).ln() {
        // B = −be⁻ᵀ has no digits beside 1: w = ln b − T
        let by_t = a / (1.0 + t.exp());
        return Bent { value: b.ln() - total, by_t, by_a: -rest, by_b: 1.0 / b };
    }
    // where T has none, L = ln T = ln a − t
    let far = t > FAR;
    let l = if far { a.ln() - t } else { log_complement(total) };
    let big = b * l;
    let by = 1.0 / big.exp_m1();
    let by_l = by * b;
    let by_total = by_l / total.exp_m1();
    Bent {
        value: log_complement(-big) - big,
        by_t: if far { -by_l } else { -by_total * a / (1.0 + t.exp()) },
        by_a: if far { by_l / a } else { by_total * rest },
        by_b: by * l,
    }
}

/// Returns the value of the q-th active column: there may be one for all.
fn of(param: &Param, q: usize) -> f64 {
    param.value()[slot(param, q)]
}

fn slot(param: &Param, q: usize) -> usize {
    if param.len() == 1 { 0 } else { q }
}

impl Warped {
    /// Returns t of the q-th active column at `x`.
    fn place(&self, q: usize, x: f64) -> f64 {
        (x - of(&self.location, q)) / of(&self.scale, q)
    }

    fn bend(&self, q: usize, x: f64) -> Bent {
        bend(self.place(q, x), of(&self.a, q), of(&self.b, q))
    }

    /// Returns all inputs, those of the active columns bent.
    fn bent(&self, x: MatRef<f64>, tape: &mut Tape) -> Mat<f64> {
        let mut bent = tape.buffer(x.nrows(), x.ncols());
        bent.copy_from(x);
        for (q, &d) in self.dims.iter().enumerate() {
            let (location, scale) = (of(&self.location, q), of(&self.scale, q));
            let own = bent.col_as_slice_mut(d).iter_mut();
            own.for_each(|v| *v = location + scale * self.bend(q, *v).value);
        }
        bent
    }

    /// Pulls the cotangent of bent inputs back to the parameters and, if they are wanted, to the inputs.
    fn pull(
        &self,
        x: MatRef<f64>,
        bars: MatRef<f64>,
        params: &mut [f64],
        mut sink: Option<&mut MatMut<'_, f64>>,
    ) {
        let (by_a, rest) = params.split_at_mut(self.a.len());
        let (by_b, rest) = rest.split_at_mut(self.b.len());
        let (by_location, by_scale) = rest.split_at_mut(self.location.len());
        for (q, &d) in self.dims.iter().enumerate() {
            let scale = of(&self.scale, q);
            for (i, (x, bar)) in column(x, d).iter().zip(column(bars, d)).enumerate() {
                let own = self.bend(q, *x);
                by_a[slot(&self.a, q)] += bar * scale * own.by_a;
                by_b[slot(&self.b, q)] += bar * scale * own.by_b;
                by_location[slot(&self.location, q)] += bar * (1.0 - own.by_t);
                by_scale[slot(&self.scale, q)] += bar * (own.value - self.place(q, *x) * own.by_t);
                if let Some(sink) = sink.as_deref_mut() {
                    sink[(i, d)] += bar * own.by_t;
                }
            }
        }
        let Some(sink) = sink else { return };
        for d in (0..x.ncols()).filter(|d| !self.dims.contains(d)) {
            let to = column_mut(sink.rb_mut(), d).iter_mut();
            to.zip(column(bars, d)).for_each(|(to, bar)| *to += bar);
        }
    }

    /// Returns the same with another kernel inside.
    fn around(&self, base: Box<dyn Kernel>) -> Box<dyn Kernel> {
        Box::new(Self { base, ..self.clone() })
    }
}

impl Kernel for Warped {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        prefixed(&"base", visitor, |v| self.base.visit(v));
        visitor(&"a", &self.a);
        visitor(&"b", &self.b);
        visitor(&"location", &self.location);
        visitor(&"scale", &self.scale);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        prefixed_mut(&"base", visitor, |v| self.base.visit_mut(v));
        visitor(&"a", &mut self.a);
        visitor(&"b", &mut self.b);
        visitor(&"location", &mut self.location);
        visitor(&"scale", &mut self.scale);
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, out: MatMut<f64>, tape: &mut Tape) {
        let own = self.bent(x, tape);
        let other = z.map(|z| self.bent(z, tape));
        self.base.evaluate(own.as_ref(), other.as_ref().map(Mat::as_ref), out, tape);
        [Some(own), other].into_iter().flatten().for_each(|used| tape.recycle(used));
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        k: MatRef<f64>,
        k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let own = self.bent(x, tape);
        let other = z.map(|z| self.bent(z, tape));
        let inner = self.base.num_params();
        let mut bars: Mat<f64> = Mat::zeros(x.nrows(), x.ncols());
        let mut other_bars: Mat<f64> = Mat::zeros(z.map_or(0, |z| z.nrows()), x.ncols());
        let mut below = Cotangents {
            params: &mut sinks.params[..inner],
            x: Some(bars.as_mut()),
            z: z.map(|_| other_bars.as_mut()),
        };
        let second = other.as_ref().map(Mat::as_ref);
        self.base.vjp(own.as_ref(), second, k, k_bar, tape, &mut below);
        self.pull(x, bars.as_ref(), &mut sinks.params[inner..], sinks.x.as_mut());
        if let Some(z) = z {
            self.pull(z, other_bars.as_ref(), &mut sinks.params[inner..], sinks.z.as_mut());
        }
        [Some(own), other].into_iter().flatten().for_each(|used| tape.recycle(used));
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.base.diag(self.bent(x, &mut Tape::off()).as_ref(), out);
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let own = self.bent(x, &mut Tape::off());
        let inner = self.base.num_params();
        let mut bars: Mat<f64> = Mat::zeros(x.nrows(), x.ncols());
        let params = &mut sinks.params[..inner];
        let mut below = Cotangents { params, x: Some(bars.as_mut()), z: None };
        self.base.diag_vjp(own.as_ref(), weights, &mut below);
        self.pull(x, bars.as_ref(), &mut sinks.params[inner..], sinks.x.as_mut());
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let mut units = self.base.units();
        units.extend(std::iter::repeat_n(Some(Unit::NONE), self.a.len() + self.b.len()));
        let mut add = |param: &Param, unit: &dyn Fn(usize) -> Unit| {
            let several = param.len() < self.dims.len();
            let own = self.dims.iter().take(param.len());
            units.extend(own.map(|d| (!several).then(|| unit(*d))));
        };
        add(&self.location, &Unit::place);
        add(&self.scale, &|d| Unit::input(d, 1));
        units
    }

    /// Computes the relevance where nothing is bent.
    fn relevance(&self, relevance: &mut [f64]) {
        self.base.relevance(relevance);
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        self.base.initialise(spreads, variance);
        let own: Vec<f64> = self.dims.iter().map(|d| spreads[*d]).collect();
        super::spec::initialise(&mut self.scale, &own);
    }

    fn initialise_from_rows(&mut self, x: MatRef<f64>, y: MatRef<f64>) {
        let mean = |d: &usize| column(x, *d).iter().sum::<f64>() / x.nrows().max(1) as f64;
        let own: Vec<f64> = self.dims.iter().map(mean).collect();
        super::spec::initialise(&mut self.location, &own);
        let bent = self.bent(x, &mut Tape::off());
        self.base.initialise_from_rows(bent.as_ref(), y);
    }

    fn other_starts(&self, x: MatRef<f64>, y: MatRef<f64>) -> Vec<Box<dyn Kernel>> {
        let bent = self.bent(x, &mut Tape::off());
        let starts = self.base.other_starts(bent.as_ref(), y);
        starts.into_iter().map(|base| self.around(base)).collect()
    }

    fn take_out(&self, x: MatRef<f64>, y: MatMut<f64>) {
        self.base.take_out(self.bent(x, &mut Tape::off()).as_ref(), y);
    }

    fn labels(&self) -> Vec<usize> {
        self.base.labels()
    }

    fn open_labels(&self) -> Vec<usize> {
        self.base.open_labels()
    }

    fn alike(&self) -> Vec<Vec<usize>> {
        self.base.alike()
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(ENTRY.name, &self.dims, x)?;
        self.base.check(x)
    }

    fn trial(&self, x: MatRef<f64>) -> Result<()> {
        self.base.trial(self.bent(x, &mut Tape::off()).as_ref())
    }

    fn terms(&self, names: &[String]) -> Vec<Term> {
        let inner = self.base.terms(names).into_iter();
        inner.map(|term| Term { kernel: self.around(term.kernel), ..term }).collect()
    }

    fn to_json(&self) -> Value {
        let mut json = json!({ "type": ENTRY.name, "base": self.base.to_json() });
        // what is written is read again with the prior and as free as it is, which is not how it would be without a word
        for (name, param) in [("a", &self.a), ("b", &self.b)] {
            json[name] = match (param.prior, param.to_json(Transform::POSITIVE)) {
                (None, Value::Object(mut own)) => {
                    own.insert("prior".into(), Value::Null);
                    own.into()
                }
                (None, value) => json!({ "value": value, "prior": null }),
                (Some(_), own) => own,
            };
        }
        let transforms = [Transform::Identity, Transform::POSITIVE];
        let placed = [("location", &self.location), ("scale", &self.scale)];
        for ((name, param), transform) in placed.into_iter().zip(transforms) {
            json[name] = match param.to_json(transform) {
                Value::Object(mut own) => {
                    own.insert("frozen".into(), param.frozen.into());
                    own.into()
                }
                value => json!({ "value": value, "frozen": param.frozen }),
            };
        }
        if self.dims_given {
            json["active_dims"] = json!(self.dims);
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Inputs, covariances, parse};

    /// As Kumaraswamy's distribution function of u = 1/(1 + e⁻ᵗ), back by the logit.
    fn plain(t: f64, a: f64, b: f64) -> f64 {
        let u = 1.0 / (1.0 + (-t).exp());
        let v = 1.0 - (1.0 - u.powf(a)).powf(b);
        (v / (1.0 - v)).ln()
    }

    #[test]
    fn places_are_those_of_the_distribution_function() {
        for (a, b) in [(0.6, 1.9), (2.3, 0.4), (1.0, 1.0), (7.0, 5.0)] {
            for t in [-2.1, -0.4, 0.0, 0.3, 1.7] {
                let (own, expected) = (bend(t, a, b).value, plain(t, a, b));
                assert!(
                    (own - expected).abs() < 1e-9 * (1.0 + expected.abs()),
                    "{t} {a} {b}: {own}"
                );
            }
        }
        for t in [-900.0, -38.0, -36.0, -5.0, -1e-9, 0.0, 2.0, 36.5, 900.0] {
            assert!((bend(t, 1.0, 1.0).value - t).abs() < 1e-14 * (1.0 + t.abs()), "{t}");
        }
    }

    /// Lines far away, increasing everywhere, and no seam where another formula takes over.
    #[test]
    fn bends_are_smooth_and_increase_to_lines() {
        for (a, b) in [(0.6, 1.9), (2.3, 0.4), (0.05, 20.0), (20.0, 0.05), (30.0, 30.0)] {
            let mut last = f64::NEG_INFINITY;
            for i in -4000..4000 {
                let t = 0.25 * f64::from(i) + 0.01;
                let own = bend(t, a, b);
                assert!(own.value > last && own.value.is_finite(), "{t} {a} {b}");
                last = own.value;
                let step = 1e-4;
                let slope = |of: &dyn Fn(f64) -> f64, at: f64, h: f64| {
                    (8.0 * (of(at + h) - of(at - h)) - (of(at + 2.0 * h) - of(at - 2.0 * h)))
                        / (12.0 * h)
                };
                let close = |own: f64, other: f64, what: &str| {
                    let rounding = 1e-11 * (1.0 + last.abs()) / step;
                    assert!(
                        (own - other).abs() < 1e-6 * (1.0 + other.abs()) + rounding,
                        "{what} at {t}, a = {a}, b = {b}: {own} {other}"
                    );
                };
                close(own.by_t, slope(&|t| bend(t, a, b).value, t, step), "t");
                close(own.by_a * a, slope(&|r| bend(t, a * r.exp(), b).value, 0.0, step), "a");
                close(own.by_b * b, slope(&|r| bend(t, a, b * r.exp()).value, 0.0, step), "b");
            }
            let far = |t: f64| bend(t, a, b).by_t;
            assert!((far(-3e4) / a - 1.0).abs() < 1e-12 && (far(3e4) / b - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn nothing_bent_is_the_base_and_places_have_units() {
        let x = Mat::from_fn(7, 2, |i, q| [0.3, -1.4][q] * i as f64 - 0.7);
        let inputs = Inputs::unnamed(2);
        let base = "matern52(variance=1.3, lengthscales=[0.8, 2.1])";
        let own =
            parse(&format!("warped(base={base}, location=[0.4, -3], scale=[0.7, 4])"), inputs)
                .unwrap();
        let (own, other) = (
            covariances(&*own, x.as_ref(), None),
            covariances(&*parse(base, inputs).unwrap(), x.as_ref(), None),
        );
        assert!((0..7).all(|i| (0..7).all(|j| (own[(i, j)] - other[(i, j)]).abs() < 1e-12)));
        // in other units of the inputs the same values
        let bent = |c: f64| {
            let spec = format!(
                "warped(base=rbf(lengthscales={}), a=0.6, b=1.8, location={}, scale={})",
                0.9 * c,
                0.4 * c,
                1.7 * c
            );
            let scaled = Mat::from_fn(7, 2, |i, q| c * x[(i, q)]);
            covariances(&*parse(&spec, inputs).unwrap(), scaled.as_ref(), None)
        };
        for c in [1e-4, 1e4] {
            let (one, other) = (bent(1.0), bent(c));
            assert!(
                (0..7).all(|i| (0..7).all(|j| (one[(i, j)] - other[(i, j)]).abs() < 1e-10)),
                "{c}"
            );
        }
    }

    /// Written and read again, parameters are as free and have the priors that they had.
    #[test]
    fn priors_and_freedom_survive_writing() {
        let inputs = Inputs::unnamed(2);
        let none = serde_json::json!({ "value": [0.7, 1.2], "prior": null });
        let spec = serde_json::json!({ "type": "warped", "base": "rbf", "a": none, "scale": { "value": 2.0, "frozen": false } });
        let own = build_kernel(&spec, inputs).unwrap();
        let again = build_kernel(&own.to_json(), inputs).unwrap();
        for ((path, one), (_, other)) in own.params().into_iter().zip(again.params()) {
            assert_eq!(
                (one.value(), one.frozen, one.prior),
                (other.value(), other.frozen, other.prior),
                "{path}"
            );
        }
        let of =
            |path: &str| own.params().into_iter().find(|(own, _)| own == path).unwrap().1.clone();
        assert!(of("a").prior.is_none() && of("b").prior.is_some());
        assert!(!of("scale").frozen && of("location").frozen);
    }
}
