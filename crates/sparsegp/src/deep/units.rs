//! Units of the numbers that training moves: Adam's steps have one length for all of them, and what is an inch in one unit
//! is nothing in another.

use super::layer::Layer;
use super::model::Deep;
use crate::data::moments::spreads;
use crate::linalg::MatRef;
use crate::params::{Param, Role, Transform};
use crate::special::{inverse_softplus, sigmoid};
use crate::variational::Form;

/// Returns the power of ten nearest to a size, so that data of about unit scale have unit 1; 1
/// where there is none.
pub(super) fn unit(size: f64) -> f64 {
    if size > 0.0 && size.is_finite() { 10_f64.powf(size.log10().round()) } else { 1.0 }
}

/// Returns the unit of several columns together.
pub(super) fn unit_of(rows: MatRef<'_, f64>) -> f64 {
    let all = spreads(rows);
    unit((all.iter().map(|s| s * s).sum::<f64>() / all.len().max(1) as f64).sqrt())
}

/// Returns the units of the inputs of a layer, by its inducing points; none where these are not
/// inputs.
fn inputs(layer: &Layer) -> Vec<f64> {
    let points = layer.groups.first().and_then(|group| group.inducing.as_points());
    points.map_or_else(Vec::new, |own| spreads(own.z()).into_iter().map(unit).collect())
}

/// Appends the units of a layer's numbers, in their order: of points and lengthscales those of the
/// inputs, of what the layer gives `output`.
fn of_layer(layer: &Layer, columns: &[f64], output: f64, all: &mut Vec<f64>) {
    let mean = columns.iter().sum::<f64>() / columns.len().max(1) as f64;
    let together = if columns.is_empty() { 1.0 } else { unit(mean) };
    let mut add = |param: &Param, form: Option<Form>| {
        let of = |i: usize, count: usize| match columns.len() {
            // a matrix lies column by column
            d if d > 0 && count.is_multiple_of(d) => columns[i * d / count],
            _ => together,
        };
        let marginal = !matches!(form, Some(Form::Whitened));
        let positive = !matches!(param.transform(), Transform::Identity);
        let count = param.len();
        let one = |i: usize| match param.role() {
            Role::Points | Role::Lengthscales | Role::Period => of(i, count),
            Role::Variance => output * output,
            Role::Constant => output,
            Role::Slopes => output / together,
            // λ is a variance
            Role::Variational if marginal && positive => output * output,
            Role::Variational if marginal => output,
            _ => 1.0,
        };
        all.extend((0..count).map(one));
    };
    for group in &layer.groups {
        group.inducing.visit("", &mut |_, param| add(param, None));
        group.q.visit(&mut |_, param| add(param, Some(group.q.form)));
    }
    layer.mean.visit(&mut |_, param| add(param, None));
}

/// How the free numbers of a model follow from those that Adam moves, which are of unit scale.
#[derive(Debug, Default)]
pub(super) struct Scales {
    /// The unit of every free number, and whether it is that of its softplus. Logarithms have none.
    all: Vec<(f64, bool)>,
}

impl Scales {
    /// Creates the scales of the free numbers among all, whose units are given.
    pub(super) fn new(model: &Deep, units: &[f64]) -> Self {
        let (mut at, mut all) = (0, Vec::new());
        model.visit(&mut |_, param| {
            let of = |unit: &f64| match param.transform() {
                Transform::Identity => (*unit, false),
                Transform::Softplus { .. } => (*unit, true),
                _ => (1.0, false),
            };
            if !param.frozen {
                all.extend(param.free_places().map(|place| of(&units[at + place])));
            }
            at += param.len();
        });
        Self { all }
    }

    /// Returns the free numbers of Adam's.
    pub(super) fn free(&self, x: &[f64]) -> Vec<f64> {
        let one = |(x, (unit, softplus)): (&f64, &(f64, bool))| match softplus {
            _ if *unit == 1.0 => *x,
            true => inverse_softplus(unit * crate::special::softplus(*x)),
            false => unit * x,
        };
        x.iter().zip(&self.all).map(one).collect()
    }

    /// Returns Adam's numbers of free ones.
    pub(super) fn moved(&self, free: &[f64]) -> Vec<f64> {
        let one = |(free, (unit, softplus)): (&f64, &(f64, bool))| match softplus {
            _ if *unit == 1.0 => *free,
            true => inverse_softplus(crate::special::softplus(*free) / unit),
            false => free / unit,
        };
        free.iter().zip(&self.all).map(one).collect()
    }

    /// Computes slopes by Adam's numbers from those by free ones.
    pub(super) fn pull(&self, x: &[f64], free: &[f64], gradient: &mut [f64]) {
        for (i, (unit, softplus)) in self.all.iter().enumerate() {
            gradient[i] *= match softplus {
                _ if *unit == 1.0 => 1.0,
                true => unit * sigmoid(x[i]) / sigmoid(free[i]),
                false => *unit,
            };
        }
    }
}

impl Deep {
    /// Returns the units of all numbers among the parameters as they are, powers of ten: of data of
    /// about unit scale all are 1.
    pub fn units(&self) -> Vec<f64> {
        let sizes: Vec<Vec<f64>> = self.layers.iter().map(inputs).collect();
        let last = self.layers.last().and_then(|layer| layer.groups.first());
        let points = last.and_then(|group| group.inducing.as_points());
        let target = points.map_or(1.0, |own| {
            let mut variances = vec![0.0; own.z().nrows()];
            own.kernel.diag(own.z(), &mut variances);
            unit((variances.iter().sum::<f64>() / variances.len().max(1) as f64).sqrt())
        });
        let mut all = Vec::new();
        for (l, layer) in self.layers.iter().enumerate() {
            let output = match sizes.get(l + 1) {
                Some(next) if !next.is_empty() => next[0],
                Some(_) => 1.0,
                None => target,
            };
            of_layer(layer, &sizes[l], output, &mut all);
        }
        let powers = self.likelihood.units();
        let mut at = 0;
        self.likelihood.visit(&mut |_, param| {
            for _ in 0..param.len() {
                all.push(target.powi(powers.get(at).copied().unwrap_or(0)));
                at += 1;
            }
        });
        all
    }
}
