//! The noise of hidden layers: given, for tests and deterministic objectives, or from named streams.

use super::layer::{Layer, Sampling};
use super::model::Deep;
use crate::error::{Error, Result};
use crate::linalg::{Mat, column, sized};
use crate::rng;
use rand_distr::{Distribution, StandardNormal};

/// Standard normals of one hidden layer for S samples of n rows.
#[derive(Clone, Debug)]
pub struct Draws {
    /// ε of every row and output, (S n)×P, sample-major: row t n + i is sample t of row i.
    pub rows: Mat<f64>,
    /// u of every sample, M×P, for a layer that is sampled by functions ([`Sampling::Functions`]); else empty.
    pub functions: Vec<Mat<f64>>,
}

/// Where the noise of hidden layers comes from.
#[derive(Clone, Copy, Debug)]
pub enum Noise<'a> {
    /// These draws, one for every hidden layer.
    Given(&'a [Draws]),
    /// Streams named after a step, a layer and a block of 256 rows ([`crate::rng`]): the same for any number of threads.
    /// Functions are drawn once for a block.
    Streams {
        /// The seed.
        seed: u64,
        /// The step: another one has fresh noise.
        step: u64,
    },
}

/// A block of the tiled rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) start: usize,
    pub(super) len: usize,
    /// Of its first row.
    pub(super) sample: usize,
}

/// Rows per block, as of the engine.
const BLOCK: usize = 256;

impl Noise<'_> {
    /// Refuses draws that do not fit S samples of n rows.
    pub(super) fn check(&self, model: &Deep, rows: usize, samples: usize) -> Result<()> {
        if samples == 0 {
            return Err(Error::Invalid("a bound takes at least one sample, found 0".into()));
        }
        let Noise::Given(draws) = self else { return Ok(()) };
        check_draws(draws, model, rows, samples, |layer| layer.sampling == Sampling::Functions)
    }

    /// Returns the blocks of S samples of n rows: no block has rows of two samples where every
    /// sample has its own functions.
    pub(super) fn places(&self, model: &Deep, rows: usize, samples: usize) -> Vec<Place> {
        let hidden = &model.layers[..model.layers.len() - 1];
        let apart = matches!(self, Noise::Given(_))
            && hidden.iter().any(|layer| layer.sampling == Sampling::Functions);
        let (runs, length) = if apart { (samples, rows) } else { (1, rows * samples) };
        let mut all = Vec::new();
        for run in 0..runs {
            for start in (0..length).step_by(BLOCK) {
                let (start, len) = (run * length + start, BLOCK.min(length - start));
                all.push(Place { index: all.len(), start, len, sample: start / rows });
            }
        }
        all
    }

    /// Draws ε of a block in a hidden layer (B×P), into `rows`, and u of its functions (M×P), into
    /// `function`, where there are such.
    pub(super) fn fill(
        &self,
        model: &Deep,
        l: usize,
        place: Place,
        rows: &mut Mat<f64>,
        function: &mut Mat<f64>,
    ) -> bool {
        let layer = &model.layers[l];
        let outputs = layer.outputs();
        let functions = layer.sampling == Sampling::Functions;
        sized(rows, place.len, outputs);
        match self {
            Noise::Given(draws) => {
                for p in 0..outputs {
                    let own = &column(draws[l].rows.as_ref(), p)[place.start..][..place.len];
                    rows.col_as_slice_mut(p).copy_from_slice(own);
                }
                if functions {
                    let own = &draws[l].functions[place.sample];
                    sized(function, own.nrows(), own.ncols());
                    function.copy_from(own);
                }
            }
            Noise::Streams { seed, step } => {
                let name = format!("deep/{step}/{l}/{}", place.index);
                let mut generator = rng::stream(*seed, &name);
                let mut normal = |a: &mut Mat<f64>| {
                    for p in 0..a.ncols() {
                        let own = a.col_as_slice_mut(p).iter_mut();
                        own.for_each(|v| *v = StandardNormal.sample(&mut generator));
                    }
                };
                if functions {
                    sized(function, layer.points(), layer.functions());
                    normal(function);
                }
                normal(rows);
            }
        }
        functions
    }
}

/// Refuses draws that do not fit S samples of n rows of every hidden layer. Draws of functions are looked at where these
/// are read.
pub(super) fn check_draws(
    draws: &[Draws],
    model: &Deep,
    rows: usize,
    samples: usize,
    reads_functions: impl Fn(&Layer) -> bool,
) -> Result<()> {
    let hidden = &model.layers[..model.layers.len() - 1];
    if draws.len() != hidden.len() {
        let expected = format!("{} of them, one per hidden layer", hidden.len());
        return Err(Error::shape("noise of hidden layers", expected, draws.len()));
    }
    let of = |a: &Mat<f64>| format!("{}×{}", a.nrows(), a.ncols());
    for (l, (own, layer)) in draws.iter().zip(hidden).enumerate() {
        if (own.rows.nrows(), own.rows.ncols()) != (rows * samples, layer.outputs()) {
            return Err(Error::shape(
                format!("noise of layer {l}"),
                format!("{}×{}, a row for every sample and row", rows * samples, layer.outputs()),
                of(&own.rows),
            ));
        }
        if !reads_functions(layer) {
            continue;
        }
        let shape = (layer.points(), layer.functions());
        let wrong = own.functions.iter().find(|u| (u.nrows(), u.ncols()) != shape);
        if own.functions.len() != samples || wrong.is_some() {
            let found = own.functions.len();
            return Err(Error::shape(
                format!("draws of the functions of layer {l}"),
                format!("{samples} of {}×{}, one per sample", shape.0, shape.1),
                wrong.map_or(found.to_string(), |u| format!("{found}, with one of {}", of(u))),
            ));
        }
    }
    Ok(())
}
