//! What L-BFGS moves: variables of alike curvature instead of the free numbers of the parameters.

use super::OptimiserKind;
use super::frame::Frame;
use crate::data::Source;
use crate::error::Result;
use crate::model::Model;
use crate::params::{Role, Ruler, Shape, Transform};

/// How a variable of the optimiser stands for a free number of the model.
#[derive(Clone, Debug)]
enum Variable {
    /// It is a multiple: so much per unit.
    Scaled(f64),
    /// It is the logarithm of the (positive) value. A softplus is linear where values are large, and a
    /// lengthscale of an input that does not matter has to go from 1 to 1000.
    Logarithm(Transform),
    /// Of a parameter with bounds, see [`Way`].
    Bounded(Way),
}

/// A variable without bounds for a value with bounds. Let c be the value, or the logarithm of what a positive number is
/// above its natural bound, between c₁ and c₂ = c₁ + w. Then
///
/// | bounds | c(x) |
/// | --- | --- |
/// | both | c₁ + w sin²(x/k), k = max(w, 2) |
/// | the lower | c₁ + √(1 + x²) − 1 |
/// | the upper | c₂ − √(1 + x²) + 1 |
///
/// (James & Roos 1975, Minuit, section on limits, with the square of a sine of half the angle.) In the middle of an
/// interval, and far from a single bound, x moves as c does. At a bound, at finite x, an objective that rises towards it
/// has an optimum like any other, which takes a few iterations; free numbers would go to infinity. k keeps a move by 1
/// from going round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    ruler: Ruler,
    /// Within the bounds.
    transform: Transform,
}

/// x (of a sine, the sine) is at least so far from 0, where the slope of the free number is infinite.
const NEAREST: f64 = 1e-9;

fn off_zero(x: f64) -> f64 {
    if x.abs() < NEAREST { NEAREST.copysign(x) } else { x }
}

impl Way {
    /// The least move that counts as one of the whole interval is not less than this.
    const SHORTEST: f64 = 2.0;

    /// Returns the variable of a value, which is moved off the bounds.
    fn of(self, value: f64) -> f64 {
        let c = self.ruler.off_bounds(self.ruler.measure(value));
        let far = |d: f64| (d * (2.0 + d)).sqrt();
        match (self.ruler.low, self.ruler.high) {
            (Some(low), Some(high)) => {
                let w = high - low;
                w.max(Self::SHORTEST) * ((c - low) / w).sqrt().asin()
            }
            (Some(low), None) => far(c - low),
            (None, Some(high)) => -far(high - c),
            (None, None) => c,
        }
    }

    /// Returns the free number, and its slope.
    fn free(self, x: f64) -> (f64, f64) {
        let far = |x: f64| {
            let x = off_zero(x);
            let root = x.hypot(1.0);
            (x * (x / (root + 1.0)), x / root)
        };
        // what c is above the lower end and below the upper one, and its slope
        let (above, below, by_x) = match (self.ruler.low, self.ruler.high) {
            (Some(low), Some(high)) => {
                let w = high - low;
                let k = w.max(Self::SHORTEST);
                let (sin, cos) = (x / k).sin_cos();
                let (sin, cos) = (off_zero(sin), off_zero(cos));
                (Some(w * sin * sin), Some(w * cos * cos), 2.0 * w / k * sin * cos)
            }
            (Some(_), None) => {
                let (d, slope) = far(x);
                (Some(d), None, slope)
            }
            (None, Some(_)) => {
                let (d, slope) = far(x);
                (None, Some(d), -slope)
            }
            (None, None) => (None, None, 1.0),
        };
        let c = match (above, below) {
            (Some(above), _) => self.ruler.low.unwrap_or_default() + above,
            (_, Some(below)) => self.ruler.high.unwrap_or_default() - below,
            _ => x,
        };
        let by_x = self.ruler.slope(c) * by_x;
        // what the value is above and below its ends: differences of values would lose digits. A logarithm without a
        // lower end is of what the value is above the natural one
        let rise = above.map_or(self.ruler.slope(c), |above| self.ruler.rise(c, above));
        let fall = below.map_or(1.0, |below| -self.ruler.rise(c, -below));
        match self.transform {
            Transform::Interval { .. } => ((rise / fall).ln(), by_x * (1.0 / rise + 1.0 / fall)),
            Transform::Below { .. } => {
                let (free, slope) = Transform::POSITIVE.free_of_logarithm(fall.ln());
                (-free, slope / fall * by_x)
            }
            other => {
                let (free, slope) = other.free_of_logarithm(rise.ln());
                (free, slope / rise * by_x)
            }
        }
    }
}

impl Variable {
    /// Returns its multiple, if it is one.
    fn scale(&self) -> Option<f64> {
        match self {
            Self::Scaled(scale) => Some(*scale),
            Self::Logarithm(_) | Self::Bounded(_) => None,
        }
    }

    /// Sets the multiple that it had; none if it cannot be.
    fn with_scale(self, scale: Option<f64>) -> Option<Self> {
        match (scale, self) {
            (Some(scale), _) => Some(Self::Scaled(scale)),
            (None, Self::Scaled(_)) => None,
            (None, other) => Some(other),
        }
    }

    /// Returns the free number, and its slope.
    fn free(&self, x: f64) -> (f64, f64) {
        match self {
            Self::Scaled(step) => (x * step, *step),
            Self::Logarithm(transform) => transform.free_of_logarithm(x),
            Self::Bounded(way) => way.free(x),
        }
    }
}

/// The variables of a model that are trained, in the order of its free numbers.
#[derive(Clone, Debug)]
pub(super) struct Variables {
    each: Vec<Variable>,
    /// How those of the mean function hang together, where an optimiser moves it.
    frame: Frame,
}

impl Variables {
    /// Returns the variables and where they are.
    ///
    /// L-BFGS starts from a multiple of the identity: its variables should have curvatures alike. Inducing
    /// points are in parts of a lengthscale that grow with √M, since the objective is the flatter in each
    /// point the more of them there are. (The factor 1/100 against a logarithm is an empirical optimum: with
    /// it 120 iterations go further than 300 without.) Mean functions are in the units of the targets, and have their
    /// origin amid the rows ([`Frame`]). Adam's steps are of the size of its rate whatever the curvature: it has the free
    /// numbers themselves.
    ///
    /// # Errors
    /// Those of reading the rows.
    pub(super) fn all(
        model: &Model,
        data: &dyn Source,
        optimiser: &OptimiserKind,
    ) -> Result<(Self, Vec<f64>)> {
        let lbfgs = matches!(optimiser, OptimiserKind::Lbfgs(_));
        let frame = if lbfgs { Frame::of(model, data)? } else { Frame::default() };
        let d = match model.inducing.first().map(|z| z.shape()) {
            Some(Shape::Matrix(_, d)) => d,
            _ => 0,
        };
        let mut relevance = vec![0.0; d];
        if d > 0 {
            model.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
        }
        let (mut each, mut start) = (Vec::new(), Vec::new());
        let mut free = model.free_values();
        frame.centre(&mut free);
        for (_, param) in model.params().into_iter().filter(|(_, p)| !p.frozen) {
            let transform = param.transform();
            let points = param.role() == Role::Points;
            let m = (param.len() / d.max(1)).max(1);
            let way = param.ruler().map(|ruler| Way { ruler, transform });
            for (i, value) in param.free_places().map(|i| (i, &param.value()[i])) {
                let own = free[each.len()];
                let (variable, at) = match transform.logarithm(*value) {
                    _ if !lbfgs => (Variable::Scaled(1.0), own),
                    _ if let Some(way) = way => (Variable::Bounded(way), way.of(*value)),
                    Some(logarithm) => (Variable::Logarithm(transform), logarithm),
                    None => {
                        let step = match transform {
                            Transform::Identity if points => {
                                let r = relevance[i / m];
                                0.01 * (m as f64).sqrt() * if r > 0.0 { 1.0 / r } else { 1.0 }
                            }
                            Transform::Identity => frame.unit(each.len()),
                            // as a logarithm would move it
                            _ => value / transform.slope_at(*value),
                        };
                        (Variable::Scaled(step), own / step)
                    }
                };
                each.push(variable);
                start.push(at);
            }
        }
        Ok((Self { each, frame }, start))
    }

    /// Returns their multiples, for a checkpoint.
    pub(super) fn scales(&self) -> Vec<Option<f64>> {
        self.each.iter().map(Variable::scale).collect()
    }

    /// Sets the multiples that they had; none if they cannot be.
    pub(super) fn with_scales(self, scales: Vec<Option<f64>>) -> Option<Self> {
        let pairs = self.each.into_iter().zip(scales);
        let each = pairs.map(|(variable, scale)| variable.with_scale(scale)).collect::<Option<_>>();
        Some(Self { each: each?, frame: self.frame })
    }

    /// Returns the free numbers of the model.
    pub(super) fn free(&self, x: &[f64]) -> Vec<f64> {
        let mut free: Vec<f64> = x.iter().zip(&self.each).map(|(x, v)| v.free(*x).0).collect();
        self.frame.uncentre(&mut free);
        free
    }

    /// Puts the gradient with respect to them in the place of that with respect to free numbers.
    pub(super) fn pull(&self, x: &[f64], gradient: &mut [f64]) {
        self.frame.pull(gradient);
        let slopes = x.iter().zip(&self.each).map(|(x, v)| v.free(*x).1);
        gradient.iter_mut().zip(slopes).for_each(|(g, slope)| *g *= slope);
    }

    /// Restores what [`Variables::pull`] made its result of.
    pub(super) fn push(&self, x: &[f64], gradient: &mut [f64]) {
        let slopes = x.iter().zip(&self.each).map(|(x, v)| v.free(*x).1);
        gradient.iter_mut().zip(slopes).for_each(|(g, slope)| *g /= slope);
        self.frame.push(gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Bounds, Param};

    /// A logarithm's free number is that of the value, and its slope a difference; at values so small and
    /// so large that a softplus is exponential and linear.
    #[test]
    fn logarithms_are_free_numbers_of_their_values() {
        for transform in [
            Transform::POSITIVE,
            Transform::Softplus { lower: 0.25 },
            Transform::Exp { lower: 0.25 },
        ] {
            for value in [0.2501, 0.3, 1.7, 40.0, 3e5] {
                let x = transform.logarithm(value).unwrap();
                let (free, slope) = Variable::Logarithm(transform).free(x);
                let own = transform.to_free(value);
                // the difference of a value and its bound has lost digits
                assert!((free - own).abs() <= 1e-11 * (1.0 + own.abs()), "{transform} {value}");
                assert!((transform.to_constrained(free) / value - 1.0).abs() < 1e-11);
                let h = 1e-5;
                let at = |x| Variable::Logarithm(transform).free(x).0;
                let difference = (at(x + h) - at(x - h)) / (2.0 * h);
                assert!((slope / difference - 1.0).abs() < 1e-8, "{transform} {value}");
            }
        }
        assert!(Transform::Identity.logarithm(2.0).is_none());
        let far = Variable::Logarithm(Transform::POSITIVE);
        assert!(far.free(1e6).0.is_finite() && far.free(-1e6).0.is_finite());
    }

    /// A line over years: variables are where the model is, and the gradient is that of the objective by differences.
    #[test]
    fn a_mean_has_its_origin_amid_the_rows() {
        use crate::data::InMemory;
        use crate::engine::Cpu;
        use crate::kernels::{self, Inputs};
        use crate::linalg::{Jitter, Mat};
        use crate::optim::LbfgsOptions;
        use crate::{likelihoods, means, methods};
        let x = Mat::from_fn(25, 2, |i, j| [1900.0 + 3.0 * i as f64, 0.01 * (i as f64).sin()][j]);
        let y =
            Mat::from_fn(25, 2, |i, j| (1.0 + 99.0 * j as f64) * (0.4 * i as f64).cos() + 300.0);
        let data = InMemory::new(x, y).unwrap();
        let mut model = Model {
            kernels: vec![
                kernels::parse("rbf(variance=1.3, ard=false)", Inputs::unnamed(2)).unwrap(),
            ],
            mean: means::by_name("linear", 2, 2).unwrap(),
            likelihood: likelihoods::parse("gaussian(variance=0.4)").unwrap(),
            inducing: Vec::new(),
            q: None,
            method: &methods::Exact,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        model.set("mean.weights", &[0.02, 3.0, -0.3, 40.0]).unwrap();
        model.set("mean.constant", &[-25.0, 900.0]).unwrap();
        let optimiser = OptimiserKind::Lbfgs(LbfgsOptions::default());
        for frozen in [None, Some("mean.weights"), Some("mean.constant"), Some("kernel")] {
            let mut model = model.clone();
            frozen.into_iter().for_each(|path| model.freeze(path, true).unwrap());
            let (variables, start) = Variables::all(&model, &data, &optimiser).unwrap();
            for (own, free) in variables.free(&start).iter().zip(model.free_values()) {
                assert!((own - free).abs() < 1e-11 * (1.0 + free.abs()), "{own} {free}");
            }
            let at = |x: &[f64]| {
                let mut moved = model.clone();
                moved.set_free_values(&variables.free(x));
                moved.evaluate_free(&Cpu::default(), &data).unwrap()
            };
            let (_, plain) = at(&start);
            let mut gradient = plain.clone();
            variables.pull(&start, &mut gradient);
            for (i, own) in gradient.iter().enumerate() {
                let h = 1e-4;
                let moved = |h: f64| {
                    let mut x = start.clone();
                    x[i] += h;
                    at(&x).0.value
                };
                let slope = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h)))
                    / (12.0 * h);
                let scale = gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
                assert!((own - slope).abs() < 1e-6 * scale, "{frozen:?} {i}: {own} {slope}");
            }
            variables.push(&start, &mut gradient);
            for (own, plain) in gradient.iter().zip(&plain) {
                assert!((own - plain).abs() < 1e-9 * (1.0 + plain.abs()), "{own} {plain}");
            }
        }
    }

    fn way(natural: Transform, min: Option<f64>, max: Option<f64>) -> (Way, Param) {
        let value = min.or(max).unwrap_or(1.0);
        let mut param = Param::with(vec![value], Shape::Scalar, natural);
        param.bound("p", Bounds { min, max }).unwrap();
        (Way { ruler: param.ruler().unwrap(), transform: param.transform() }, param)
    }

    /// The value of a variable is within the bounds wherever it is, comes back, and its slope is a difference; and at a bound
    /// the value has an optimum in the variable.
    #[test]
    fn variables_of_values_with_bounds_reach_them() {
        let above = Transform::Softplus { lower: 0.25 };
        let ways = [
            (Transform::POSITIVE, Some(0.1), Some(10.0)),
            (Transform::POSITIVE, Some(0.9), Some(1.1)),
            (Transform::POSITIVE, Some(1e-5), Some(1e5)),
            (Transform::POSITIVE, Some(3.0), None),
            (Transform::POSITIVE, None, Some(3.0)),
            (Transform::Exp { lower: 0.0 }, Some(3.0), None),
            (above, Some(0.3), Some(2.0)),
            (above, None, Some(2.0)),
            (Transform::Identity, Some(-2.0), Some(3.0)),
            (Transform::Identity, Some(-2.0), None),
            (Transform::Identity, None, Some(-2.0)),
            (Transform::Interval { lower: 0.0, upper: 2.0 }, Some(0.5), None),
        ];
        for (natural, min, max) in ways {
            let (way, param) = way(natural, min, max);
            let value = |x: f64| param.transform().to_constrained(way.free(x).0);
            for x in [-40.0, -1.3, -0.2, 0.0, 1e-5, 0.03, 0.7, 2.9, 11.0] {
                let v = value(x);
                assert!(param.transform().contains(v), "{param:?} at {x}: {v}");
                let (free, slope) = way.free(x);
                assert!(free.is_finite() && slope.is_finite(), "{param:?} at {x}");
                let h = 1e-4 * (1e-2 + x.abs().min(0.1));
                let difference = (way.free(x + h).0 - way.free(x - h).0) / (2.0 * h);
                // about 0 the free number goes to infinity
                if x.abs() > 0.01 {
                    let scale = difference.abs().max(1e-3);
                    assert!(
                        (slope - difference).abs() < 1e-4 * scale,
                        "{param:?} {x}: {slope}, {difference}"
                    );
                }
            }
            let (low, high) = (way.ruler.low, way.ruler.high);
            let middle = match (low, high) {
                (Some(low), Some(high)) => 0.3 * low + 0.7 * high,
                _ => low.map(|low| low + 0.4).or(high.map(|high| high - 0.4)).unwrap(),
            };
            let own = way.ruler.value(middle);
            let back = value(way.of(own));
            assert!((back - own).abs() < 1e-9 * own.abs().max(1.0), "{param:?}: {own}, {back}");
            // the bound at 0 (for only an upper bound, or at the other end of an interval)
            let bound = way.ruler.value(low.or(high).unwrap());
            assert!((value(0.0) - bound).abs() < 1e-9 * bound.abs().max(1.0), "{param:?}");
            let start = way.of(bound.next_up());
            assert!(start.abs() > 1e-3 && start.abs() < 1.0, "{param:?}: {start}");
        }
    }
}
