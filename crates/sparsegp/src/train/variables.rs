//! What L-BFGS moves: variables of alike curvature instead of the free numbers of the parameters.

use super::OptimiserKind;
use crate::model::Model;
use crate::params::{Shape, Transform};

/// How a variable of the optimiser stands for a free number of the model.
#[derive(Clone, Debug)]
pub(super) enum Variable {
    /// It is a multiple: so much per unit.
    Scaled(f64),
    /// It is the logarithm of the (positive) value. A softplus is linear where values are large, and a
    /// lengthscale of an input that does not matter has to go from 1 to 1000.
    Logarithm(Transform),
}

impl Variable {
    /// Its multiple, if it is one.
    pub(super) fn scale(&self) -> Option<f64> {
        match self {
            Self::Scaled(scale) => Some(*scale),
            Self::Logarithm(_) => None,
        }
    }

    /// With the multiple that it had; none if it cannot be.
    pub(super) fn with_scale(self, scale: Option<f64>) -> Option<Self> {
        match (scale, self) {
            (Some(scale), _) => Some(Self::Scaled(scale)),
            (None, Self::Scaled(_)) => None,
            (None, logarithm) => Some(logarithm),
        }
    }

    /// The variables of a model that are trained, in the order of its free numbers, and where they are.
    ///
    /// L-BFGS starts from a multiple of the identity: its variables should have curvatures alike. Inducing
    /// points are in parts of a lengthscale that grow with √M, since the objective is the flatter in each
    /// point the more of them there are. (The factor 1/100 against a logarithm is an empirical optimum: with
    /// it 120 iterations go further than 300 without.) Adam's steps are of the size of its rate whatever the
    /// curvature: it has the free numbers themselves.
    pub(super) fn all(model: &Model, optimiser: &OptimiserKind) -> (Vec<Self>, Vec<f64>) {
        let lbfgs = matches!(optimiser, OptimiserKind::Lbfgs(_));
        let d = match model.inducing.first().map(|z| z.shape()) {
            Some(Shape::Matrix(_, d)) => d,
            _ => 0,
        };
        let mut relevance = vec![0.0; d];
        if d > 0 {
            model.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
        }
        let (mut variables, mut start) = (Vec::new(), Vec::new());
        for (path, param) in model.params().into_iter().filter(|(_, p)| !p.frozen) {
            let transform = param.transform();
            let points = path.starts_with("inducing.points");
            let m = (param.len() / d.max(1)).max(1);
            for (i, value) in param.value().iter().enumerate() {
                let (variable, at) = match transform.logarithm(*value) {
                    _ if !lbfgs => (Self::Scaled(1.0), transform.to_free(*value)),
                    Some(logarithm) => (Self::Logarithm(transform), logarithm),
                    None => {
                        let step = match transform {
                            Transform::Identity if points => {
                                let r = relevance[i / m];
                                0.01 * (m as f64).sqrt() * if r > 0.0 { 1.0 / r } else { 1.0 }
                            }
                            Transform::Identity => 1.0,
                            // as a logarithm would move it
                            _ => value / transform.slope_at(*value),
                        };
                        (Self::Scaled(step), transform.to_free(*value) / step)
                    }
                };
                variables.push(variable);
                start.push(at);
            }
        }
        (variables, start)
    }

    /// The free number, and its slope.
    pub(super) fn free(&self, x: f64) -> (f64, f64) {
        match self {
            Self::Scaled(step) => (x * step, *step),
            Self::Logarithm(transform) => transform.free_of_logarithm(x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
