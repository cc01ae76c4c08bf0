//! One layer: groups of latent functions side by side, a mean function, and how what they give is sampled.

use super::block::Block;
use super::group::{Group, Prepared, Sums};
use crate::error::{Error, Result};
use crate::inverse_free::Solved;
use crate::kernels::convolutional::Grid;
use crate::linalg::{Jitter, Mat, MatRef, Precision, sized, zeroed};
use crate::means::Mean;
use crate::params::{Visitor, VisitorMut, prefixed, prefixed_mut};

/// How a hidden layer is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Every row and output from its own marginal, f = μ + √(s + r) ε (Salimbeni & Deisenroth 2017, their recursion of samples).
    #[default]
    Rows,
    /// One draw u of the inducing variables for a whole block, and noise by row for what they leave: f = m(x) + φᵀ(m + Ru) + √r ε.
    /// The same bound in expectation, without products with R; for W and M layers.
    Functions,
    /// Every pixel of an image from its own marginal, as public programs do. Pixels of an image are correlated and the
    /// likelihood sees them together, so that what this gives is neither a bound nor an estimate of
    /// one: layers of images only, and only for comparison.
    Pixels,
}

/// A layer of P outputs over D inputs.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its functions: one group that share kernel and inducing points, or one for each. Outputs are in their order.
    pub groups: Vec<Group>,
    /// The mean function of all outputs.
    pub mean: Box<dyn Mean>,
    /// Jitter on Kuu; relative by default, since variances of hidden kernels are small. L and R
    /// layers take only an absolute one, and need none.
    pub jitter: Jitter,
    /// Whether its rows are [f, x], what the layer before gives and the model's inputs behind it.
    pub skip: bool,
    /// How what it gives is sampled, if another layer follows.
    pub sampling: Sampling,
    /// The patches of its rows, if these are images: then its functions are of patches, and what it gives is an image of as many
    /// pixels as there are patches, with a map for every function, maps last. It is to be sampled by functions, which keeps
    /// what the pixels of an image have in common through q(u): the bound of functions whose pixels are independent given u.
    pub grid: Option<Grid>,
}

/// Marginals of a layer at B rows: of the function p, N(mean, s + r).
#[derive(Clone, Debug)]
pub struct Marginals {
    /// μ, B×P, with the mean function.
    pub mean: Mat<f64>,
    /// s, B×P; for L and R layers all of s + r.
    pub s: Mat<f64>,
    /// r, B×P; 0 for L and R layers.
    pub r: Mat<f64>,
    /// k(x, x), B×P.
    pub prior: Mat<f64>,
}

/// Slopes of some objective in the marginals, B×P each.
#[derive(Clone, Debug)]
pub struct Slopes {
    /// ∂/∂μ.
    pub a: Mat<f64>,
    /// ∂/∂s.
    pub b: Mat<f64>,
    /// ∂/∂r; not read for L and R layers.
    pub c: Mat<f64>,
}

/// What the way back through a layer gives.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// By the constrained parameters, in the order of [`Layer::visit`].
    pub gradient: Vec<f64>,
    /// By the rows, B×D.
    pub x: Mat<f64>,
}

impl Default for Marginals {
    fn default() -> Self {
        Self { mean: Mat::new(), s: Mat::new(), r: Mat::new(), prior: Mat::new() }
    }
}

impl Marginals {
    pub(super) fn sized(&mut self, rows: usize, outputs: usize) {
        let all = [&mut self.mean, &mut self.s, &mut self.r, &mut self.prior];
        all.into_iter().for_each(|a| sized(a, rows, outputs));
    }
}

impl Default for Slopes {
    fn default() -> Self {
        Self { a: Mat::new(), b: Mat::new(), c: Mat::new() }
    }
}

impl Slopes {
    pub(super) fn sized(&mut self, rows: usize, outputs: usize) {
        [&mut self.a, &mut self.b, &mut self.c].into_iter().for_each(|a| sized(a, rows, outputs));
    }
}

/// The name of a layer that is in no model.
const ALONE: &str = "the layer";

impl Layer {
    /// Makes a layer of groups and a mean function, with relative jitter 10⁻⁶, rows sampled by their marginals.
    pub fn new(groups: Vec<Group>, mean: Box<dyn Mean>) -> Self {
        let jitter = Jitter::Relative(1e-6);
        Self { groups, mean, jitter, skip: false, sampling: Sampling::Rows, grid: None }
    }

    /// Returns the number of outputs P: of functions, or of pixels of all maps.
    pub fn outputs(&self) -> usize {
        self.tiles() * self.functions()
    }

    /// Returns the number of functions.
    pub fn functions(&self) -> usize {
        self.groups.iter().map(Group::outputs).sum()
    }

    /// Returns the number of rows that its functions see of each of its rows: patches of an image,
    /// else 1.
    pub(super) fn tiles(&self) -> usize {
        self.grid.as_ref().map_or(1, Grid::count)
    }

    /// Returns the number of columns that its functions see.
    fn columns(&self) -> usize {
        self.groups.first().map_or(0, |group| group.inducing.inputs())
    }

    /// Returns the largest number of inducing variables of its groups: rows of a draw u of its
    /// functions.
    pub(super) fn points(&self) -> usize {
        self.groups.iter().map(|group| group.inducing.len()).max().unwrap_or(0)
    }

    /// Returns the number of columns of its rows.
    pub fn inputs(&self) -> usize {
        match &self.grid {
            Some(grid) => grid.pixels(),
            None => self.columns(),
        }
    }

    /// Returns the factor v of r of an output; 1 where there is none.
    pub fn factor(&self, output: usize) -> f64 {
        let mut first = 0;
        for group in &self.groups {
            if output < first + group.outputs() {
                return group.q.factor_of(output - first);
            }
            first += group.outputs();
        }
        1.0
    }

    /// Shows the parameters with their paths: for every group `kernel.…`, `inducing.points`, `q.…` (with an index where there
    /// are several), then `mean.…`.
    pub fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        for (at, group) in self.groups.iter().enumerate() {
            group.visit(&index(at, self.groups.len()), visitor);
        }
        prefixed(&"mean", visitor, |v| self.mean.visit(v));
    }

    /// Shows the same, to change them.
    pub fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        let count = self.groups.len();
        for (at, group) in self.groups.iter_mut().enumerate() {
            group.visit_mut(&index(at, count), visitor);
        }
        prefixed_mut(&"mean", visitor, |v| self.mean.visit_mut(v));
    }

    /// Returns the number of numbers among the parameters.
    pub fn num_params(&self) -> usize {
        self.groups.iter().map(Group::num_params).sum::<usize>() + self.mean.num_params()
    }

    /// Refuses a layer whose parts do not fit together.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        if self.groups.is_empty() {
            return Err(Error::Invalid(format!("{name} has no functions: give it a group")));
        }
        let columns = self.grid.as_ref().map_or(self.columns(), Grid::size);
        if let Some(grid) = &self.grid {
            grid.fits(self.inputs())?;
        }
        match (&self.grid, self.sampling) {
            (Some(_), Sampling::Rows) => {
                return Err(Error::Invalid(format!(
                    "{name} gives images, whose pixels are correlated: sample its functions (`Sampling::Functions`)"
                )));
            }
            (None, Sampling::Pixels) => {
                return Err(Error::Invalid(format!(
                    "{name} has no images whose pixels could be sampled: sample its rows (`Sampling::Rows`)"
                )));
            }
            _ => {}
        }
        for group in &self.groups {
            group.check()?;
            if self.grid.is_some() && group.q.v.is_some() {
                return Err(Error::Invalid(format!(
                    "{name} gives images, and factors v are of rows: keep its q without v"
                )));
            }
            if group.inducing.inputs() != columns {
                return Err(Error::shape(
                    format!("inducing points of {name}"),
                    format!("{columns} columns, as in its first group or patch"),
                    group.inducing.inputs(),
                ));
            }
            if self.sampling == Sampling::Functions && group.shares() {
                return Err(Error::Invalid(format!(
                    "{name} is of pseudo-observations (L or R), whose q has no root to draw functions with: sample its rows \
                     (`Sampling::Rows`), which is cheap there"
                )));
            }
        }
        // of images a mean function is of patches, as the functions are
        self.mean.check(columns, self.functions()).map_err(|error| match error {
            Error::Shape { what, expected, found } => {
                Error::Shape { what: format!("{what} of {name}"), expected, found }
            }
            other => other,
        })
    }

    /// Returns the marginals at rows (B×D); of images a row for every patch, those of an image
    /// together.
    ///
    /// # Errors
    /// As for [`Deep::check`](super::Deep::check), [`Error::Shape`] for another number of columns,
    /// [`Error::NotPositiveDefinite`] if Kuu is not.
    pub fn forward(&self, x: MatRef<f64>) -> Result<Marginals> {
        self.check(ALONE)?;
        let mut work = LayerWork::default();
        work.prepare(self, Precision::Double, false)?;
        let mut own = Block::default();
        own.forward(self, &work, self.rows(x)?, None, false);
        Ok(own.marginals)
    }

    /// Returns the KL divergence of its q from the prior; of R layers the bound on it (Cortinovis
    /// et al., Eq. 4).
    ///
    /// # Errors
    /// As for [`Deep::check`](super::Deep::check), [`Error::NotPositiveDefinite`] if Kuu is not.
    pub fn kl(&self) -> Result<f64> {
        self.check(ALONE)?;
        let mut work = LayerWork::default();
        work.prepare(self, Precision::Double, false)?;
        Ok(work.kl())
    }

    /// Pulls slopes in the marginals at rows (B×D), and the slope κ in the KL divergence, back to parameters and rows. Of
    /// [`crate::variational::Variational::root`] only if it is not frozen; factors v do not enter marginals.
    ///
    /// # Errors
    /// As for [`Layer::forward`], and [`Error::Shape`] for slopes of other shapes.
    pub fn pull(&self, x: MatRef<f64>, slopes: &Slopes, kappa: f64) -> Result<Pulled> {
        self.check(ALONE)?;
        let x = self.rows(x)?;
        for (name, a) in [("a", &slopes.a), ("b", &slopes.b), ("c", &slopes.c)] {
            let rows = x.nrows() * self.tiles();
            if (a.nrows(), a.ncols()) != (rows, self.functions()) {
                return Err(Error::shape(
                    format!("slopes {name} of a layer"),
                    format!("{rows}×{}", self.functions()),
                    format!("{}×{}", a.nrows(), a.ncols()),
                ));
            }
        }
        let mut work = LayerWork::default();
        work.prepare(self, Precision::Double, true)?;
        let (mut own, mut sums) = (Block::default(), LayerSums::default());
        sums.begin(self, false);
        own.forward(self, &work, x, None, true);
        own.slopes = slopes.clone();
        let mut x_bar = Mat::zeros(x.nrows(), x.ncols());
        own.back(self, &work, x, None, &mut sums, Some(x_bar.as_mut()));
        let mut gradient = vec![0.0; self.num_params()];
        work.finish(self, &mut sums, kappa, &mut gradient);
        Ok(Pulled { gradient, x: x_bar })
    }

    fn rows<'a>(&self, x: MatRef<'a, f64>) -> Result<MatRef<'a, f64>> {
        if x.ncols() == self.inputs() {
            return Ok(x);
        }
        let expected = format!("{} columns, as its inducing points have", self.inputs());
        Err(Error::shape("rows of a layer", expected, x.ncols()))
    }
}

fn index(at: usize, count: usize) -> String {
    if count > 1 { format!("[{at}]") } else { String::new() }
}

/// A layer's M×M work.
#[derive(Debug, Default)]
pub(super) struct LayerWork {
    pub(super) groups: Vec<Prepared>,
}

impl LayerWork {
    pub(super) fn prepare(
        &mut self,
        layer: &Layer,
        precision: Precision,
        record: bool,
    ) -> Result<()> {
        let how = (layer.jitter, precision);
        self.groups.resize_with(layer.groups.len(), Prepared::default);
        let pairs = self.groups.iter_mut().zip(&layer.groups);
        pairs.into_iter().try_for_each(|(own, group)| own.prepare(group, how, record))
    }

    pub(super) fn kl(&self) -> f64 {
        self.groups.iter().map(|own| own.kl).sum()
    }

    /// Brings T of R layers up to date.
    pub(super) fn settle(
        &mut self,
        layer: &mut Layer,
        options: &crate::inverse_free::SolverOptions,
    ) -> Result<Vec<Solved>> {
        self.groups.resize_with(layer.groups.len(), Prepared::default);
        let jitter = layer.jitter;
        let mut all = Vec::new();
        for (group, own) in layer.groups.iter_mut().zip(&mut self.groups) {
            all.extend(group.settle(jitter, options, own)?);
        }
        Ok(all)
    }

    /// Computes the gradient of a layer's parameters from what its rows left.
    pub(super) fn finish(
        &mut self,
        layer: &Layer,
        sums: &mut LayerSums,
        kappa: f64,
        gradient: &mut [f64],
    ) {
        let (mut rest, mut first) = (gradient, 0);
        for ((group, own), sums_of) in
            layer.groups.iter().zip(&mut self.groups).zip(&mut sums.groups)
        {
            let (gradient, tail) = rest.split_at_mut(group.num_params());
            own.finish(group, sums_of, kappa, gradient);
            if let Some(v) = &group.q.v {
                let target = gradient.len() - v.len();
                gradient[target..].copy_from_slice(&sums.v[first..first + v.len()]);
            }
            first += group.outputs();
            rest = tail;
        }
        rest.copy_from_slice(&sums.mean);
    }
}

/// What a layer's rows leave.
#[derive(Debug, Default)]
pub(super) struct LayerSums {
    pub(super) groups: Vec<Sums>,
    pub(super) mean: Vec<f64>,
    /// Of the factors v.
    pub(super) v: Vec<f64>,
}

impl LayerSums {
    pub(super) fn begin(&mut self, layer: &Layer, grams: bool) {
        self.groups.resize_with(layer.groups.len(), Sums::default);
        let pairs = self.groups.iter_mut().zip(&layer.groups);
        pairs.for_each(|(own, group)| own.begin(group, grams && !group.shares()));
        zeroed(&mut self.mean, layer.mean.num_params());
        zeroed(&mut self.v, layer.functions());
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.groups.iter_mut().zip(&other.groups).for_each(|(own, other)| own.add(other));
        let sums = self.mean.iter_mut().zip(&other.mean);
        sums.chain(self.v.iter_mut().zip(&other.v)).for_each(|(t, v)| *t += v);
    }
}
