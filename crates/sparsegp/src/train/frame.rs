//! Where the mean function has its origin and its units, for an optimiser: amid the rows.
//!
//! A line through years 1900 to 2020 is 14 + 0.02 (x − 1960), and −25.2 + 0.02 x: in the second form constant and slope must
//! move together by numbers of quite different sizes. In terms of cᵢ = c + x̄ᵀw, in standard deviations of the targets, and wⱼ in
//! such per standard deviation of an input, the objective has like curvatures in all, whatever the units.

use crate::data::Source;
use crate::data::moments::Moments;
use crate::error::Result;
use crate::linalg::column;
use crate::model::Model;
use crate::params::Param;
use std::ops::Range;

/// Places of one output's numbers among the free numbers of a model, where both are trained.
#[derive(Clone, Debug)]
struct Line {
    constant: usize,
    weights: Range<usize>,
}

/// Origin and units of a mean function that is trained.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// Means of the inputs.
    centre: Vec<f64>,
    lines: Vec<Line>,
    /// Where the units begin among the free numbers.
    start: usize,
    units: Vec<f64>,
}

/// What the rows that count say of inputs and targets.
pub(super) struct Spreads {
    pub(super) inputs: Vec<Moments>,
    pub(super) targets: Vec<Moments>,
}

impl Spreads {
    /// Creates the spreads of all rows but those of weight 0, and targets that are missing.
    pub(super) fn of(data: &dyn Source) -> Result<Self> {
        if let Some(rows) = data.sharded() {
            // units need no more digits than some of the rows tell
            return Self::of(&rows.spread()?);
        }
        let mut inputs = vec![Moments::default(); data.inputs()];
        let mut targets = vec![Moments::default(); data.outputs()];
        data.for_each_chunk(1 << 14, &mut |rows| {
            let counts = |i: usize| rows.weights.get(i).is_none_or(|w| *w > 0.0);
            for (own, of) in [(&mut inputs, rows.x), (&mut targets, rows.y)] {
                for (j, moments) in own.iter_mut().enumerate() {
                    let values = column(of, j).iter().enumerate();
                    let known = values.filter(|(i, v)| v.is_finite() && counts(*i));
                    known.for_each(|(_, v)| moments.push(*v));
                }
            }
            Ok(())
        })?;
        Ok(Self { inputs, targets })
    }
}

/// Returns the standard deviation; 1 where there is none.
fn deviation(moments: &Moments) -> f64 {
    let deviation = (moments.squares() / moments.count().max(1) as f64).sqrt();
    if deviation > 0.0 && deviation.is_finite() && !moments.is_constant() { deviation } else { 1.0 }
}

impl Frame {
    /// Creates the frame of a model with these rows; nothing where its mean function is not
    /// trained.
    ///
    /// # Errors
    /// Those of reading the rows.
    pub(super) fn of(model: &Model, data: &dyn Source) -> Result<Self> {
        let of_mean = model.mean.params();
        let trained = |param: &&Param| !param.frozen;
        // bounds are of each number by itself
        let bounded = of_mean.iter().any(|(_, param)| param.bounds().any());
        if bounded || !of_mean.iter().any(|(_, param)| !param.frozen) {
            return Ok(Self::default());
        }
        let spreads = Spreads::of(data)?;
        let kernels = model.kernels.iter().flat_map(|kernel| kernel.params());
        let start = kernels.filter(|(_, p)| !p.frozen).map(|(_, p)| p.free_len()).sum();
        // the first latent function of a target has its units, if the likelihood is about numbers
        let each = model.likelihood.latents();
        let unit = |l: usize| match spreads.targets.get(l / each) {
            Some(moments) if model.likelihood.standardises() && l.is_multiple_of(each) => {
                deviation(moments)
            }
            _ => 1.0,
        };
        let (d, mut units, mut places) = (data.inputs(), Vec::new(), [None, None]);
        for (path, param) in of_mean.iter().filter(|(_, param)| trained(param)) {
            let weights = path == "weights";
            places[usize::from(weights)] = Some(start + units.len());
            for at in 0..param.len() {
                units.push(match weights {
                    true => unit(at / d) / deviation(&spreads.inputs[at % d]),
                    false => unit(at),
                });
            }
        }
        let outputs =
            of_mean.iter().find(|(path, _)| path == "constant").map_or(0, |(_, p)| p.len());
        let lines = match places {
            [Some(constant), Some(weights)] => (0..outputs)
                .map(|l| Line {
                    constant: constant + l,
                    weights: weights + l * d..weights + (l + 1) * d,
                })
                .collect(),
            _ => Vec::new(),
        };
        let centre = spreads.inputs.iter().map(Moments::mean).collect();
        Ok(Self { centre, lines, start, units })
    }

    /// Returns the unit of a free number without a transform.
    pub(super) fn unit(&self, at: usize) -> f64 {
        at.checked_sub(self.start).and_then(|at| self.units.get(at)).copied().unwrap_or(1.0)
    }

    /// Returns x̄ᵀw of a line.
    fn level(&self, line: &Line, free: &[f64]) -> f64 {
        free[line.weights.clone()].iter().zip(&self.centre).map(|(w, x)| w * x).sum()
    }

    /// Turns constants at the origin of the inputs into those at their mean.
    pub(super) fn centre(&self, free: &mut [f64]) {
        for line in &self.lines {
            free[line.constant] += self.level(line, free);
        }
    }

    /// Goes the other way round.
    pub(super) fn uncentre(&self, free: &mut [f64]) {
        for line in &self.lines {
            free[line.constant] -= self.level(line, free);
        }
    }

    /// Computes the gradient with respect to centred numbers from that with respect to free ones.
    pub(super) fn pull(&self, gradient: &mut [f64]) {
        for line in &self.lines {
            let own = gradient[line.constant];
            let slopes = gradient[line.weights.clone()].iter_mut().zip(&self.centre);
            slopes.for_each(|(g, x)| *g -= x * own);
        }
    }

    /// Goes the other way round.
    pub(super) fn push(&self, gradient: &mut [f64]) {
        for line in &self.lines {
            let own = gradient[line.constant];
            let slopes = gradient[line.weights.clone()].iter_mut().zip(&self.centre);
            slopes.for_each(|(g, x)| *g += x * own);
        }
    }
}
