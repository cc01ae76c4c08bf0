//! What rows say of the function at other places.

use super::density::Rows;
use super::tree::Tree;
use super::{Metric, maximin};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Tape};
use crate::linalg::{
    Cholesky, Jitter, Mat, MatRef, Par, in_parts, not_below_0, sized, solve_lower,
    solve_lower_transpose, stacked, sum_of_products,
};
use rand_distr::{Distribution, StandardNormal};

/// The matrix that is factorised.
const MATRIX: &str = "K + σ²I of neighbours";

/// A place with less than this part of its prior variance, given its neighbours, follows from them: whoever comes later has
/// them for neighbours, and not the place.
const FOLLOWS: f64 = 1e-10;

/// Rows with noise, and the way to the nearest of them.
#[derive(Clone, Debug)]
pub struct Nearest {
    kernel: Box<dyn Kernel>,
    x: Mat<f64>,
    residual: Mat<f64>,
    noise: Vec<f64>,
    metric: Metric,
    neighbours: usize,
    tree: Tree,
}

/// A place given rows, and places before it.
#[derive(Clone, Debug)]
struct Link {
    place: usize,
    /// What rows say, for every target.
    fixed: Vec<f64>,
    /// Places before it, with their weights.
    earlier: Vec<(usize, f64)>,
    variance: f64,
}

/// The joint posterior of places, each given rows and the places before it.
#[derive(Clone, Debug)]
pub struct Joint {
    links: Vec<Link>,
    targets: usize,
}

/// The memory of one thread.
struct Scratch {
    x: Mat<f64>,
    g: Mat<f64>,
    z: Mat<f64>,
    k: Mat<f64>,
    tape: Tape,
    factor: Cholesky,
}

impl Scratch {
    fn new() -> Self {
        let new = Mat::new;
        let (tape, factor) = (Tape::off(), Cholesky::of_factor(new()));
        Self { x: new(), g: new(), z: new(), k: new(), tape, factor }
    }
}

impl Nearest {
    /// Takes the rows: each place is conditioned on so many of them, the nearest in the kernel's metric.
    ///
    /// # Errors
    /// [`Error::Shape`] for parts of different lengths.
    pub fn new(kernel: Box<dyn Kernel>, rows: Rows<'_>, neighbours: usize) -> Result<Self> {
        rows.check()?;
        let metric = Metric::of(&*kernel, rows.x.ncols());
        let tree = Tree::new(&metric.places(rows.x), metric.dims());
        let (x, residual) = (rows.x.to_owned(), rows.residual.to_owned());
        Ok(Self { kernel, x, residual, noise: rows.noise.to_vec(), metric, neighbours, tree })
    }

    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        Rows { x: self.x.as_ref(), residual: self.residual.as_ref(), noise: &self.noise }
    }

    /// Returns means, less the mean function (B×P), and variances of the function at places (B×D):
    ///
    /// ```text
    /// E f = kᵀG_cc⁻¹r_c      var f = k(x, x) − kᵀG_cc⁻¹k,      k = k(X_c, x)
    /// ```
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub fn marginals(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<f64>)> {
        self.each(x, |_, at| {
            let near = self.tree.nearest(at, self.neighbours, u32::MAX);
            near.into_iter().map(|near| near.point).collect()
        })
    }

    /// Returns the same at the rows, each given the nearest of the others: cross-validation that leaves one row out.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub fn leave_one_out(&self) -> Result<(Mat<f64>, Vec<f64>)> {
        self.each(self.x.as_ref(), |row, at| {
            let near = self.tree.nearest(at, self.neighbours + 1, u32::MAX).into_iter();
            let others = near.map(|near| near.point).filter(|point| *point as usize != row);
            others.take(self.neighbours).collect()
        })
    }

    /// Means and variances at places, each given the rows that `of` finds for its index and coordinates.
    fn each(
        &self,
        x: MatRef<f64>,
        of: impl Fn(usize, &[f64]) -> Vec<u32> + Sync,
    ) -> Result<(Mat<f64>, Vec<f64>)> {
        let p = self.residual.ncols();
        let all = in_parts(x, |start, x| {
            let mut scratch = Scratch::new();
            let (mut means, mut variances) = (Mat::zeros(x.nrows(), p), vec![0.0; x.nrows()]);
            self.kernel.diag(x, &mut variances);
            let (places, dims) = (self.metric.places(x), self.metric.dims());
            for (i, variance) in variances.iter_mut().enumerate() {
                let rows = of(start + i, &places[i * dims..][..dims]);
                self.whiten(&rows, None, x.subrows(i, 1), &mut scratch)?;
                let w = scratch.k.col_as_slice(0);
                *variance = not_below_0(*variance - sum_of_products(w, w));
                for j in 0..p {
                    means[(i, j)] = sum_of_products(w, scratch.z.col_as_slice(j));
                }
            }
            Ok((means, variances))
        })?;
        let variances = all.iter().flat_map(|own| own.1.iter().copied()).collect();
        let means: Vec<Mat<f64>> = all.into_iter().map(|own| own.0).collect();
        Ok((stacked(&means, x.nrows(), p), variances))
    }

    /// L⁻¹k and, for rows, L⁻¹r, with the factor of rows and then `earlier` places without noise. Of these the part of z is 0.
    fn whiten(
        &self,
        rows: &[u32],
        earlier: Option<(MatRef<f64>, &[u32])>,
        at: MatRef<f64>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch { x, g, z, k, tape, factor } = scratch;
        let (own, p) = (rows.len(), self.residual.ncols());
        let n = own + earlier.map_or(0, |(_, places)| places.len());
        sized(x, n, self.x.ncols());
        sized(z, n, p);
        let copy = |out: &mut Mat<f64>, from: MatRef<f64>, of: &[u32], start: usize| {
            for j in 0..from.ncols() {
                for (i, row) in of.iter().enumerate() {
                    out[(start + i, j)] = from[(*row as usize, j)];
                }
            }
        };
        z.fill(0.0);
        copy(x, self.x.as_ref(), rows, 0);
        copy(z, self.residual.as_ref(), rows, 0);
        if let Some((from, places)) = earlier {
            copy(x, from, places, own);
        }
        sized(g, n, n);
        self.kernel.evaluate(x.as_ref(), None, g.as_mut(), tape);
        for (i, row) in rows.iter().enumerate() {
            g[(i, i)] += self.noise[*row as usize];
        }
        match (factor.renew(g.as_ref(), Jitter::Absolute(0.0), MATRIX), earlier) {
            // places that nearly follow from each other
            (Err(Error::NotPositiveDefinite { .. }), Some(_)) => {
                factor.renew(g.as_ref(), Jitter::Relative(FOLLOWS), MATRIX)?;
            }
            (outcome, _) => outcome?,
        }
        sized(k, n, 1);
        self.kernel.evaluate(x.as_ref(), Some(at), k.as_mut(), tape);
        solve_lower(factor.l.as_ref(), k.as_mut(), Par::Seq);
        solve_lower(factor.l.as_ref(), z.as_mut(), Par::Seq);
        Ok(())
    }

    /// Returns the joint posterior of places (B×D). They come after all rows, ordered by maximin; each is conditioned on
    /// its nearest rows, and on as many of the nearest places before it, which have no noise (Katzfuss, Guinness, Gong &
    /// Zilber 2020, §3: responses first). Marginals are those of [`Nearest::marginals`] to the accuracy of the
    /// approximation.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub fn joint(&self, x: MatRef<f64>) -> Result<Joint> {
        let (places, dims) = (self.metric.places(x), self.metric.dims());
        let tree = Tree::new(&places, dims);
        let order = maximin(&tree, &places, dims);
        let tree = tree.ranked(&order);
        let mut prior = vec![0.0; x.nrows()];
        self.kernel.diag(x, &mut prior);
        let mut scratch = Scratch::new();
        let mut links: Vec<Link> = Vec::with_capacity(order.len());
        let mut follows = vec![false; x.nrows()];
        let points = |near: Vec<super::tree::Near>| near.into_iter().map(|near| near.point);
        for (rank, place) in order.iter().enumerate() {
            let (at, own) = (&places[*place as usize * dims..][..dims], *place as usize);
            let rows: Vec<u32> = points(self.tree.nearest(at, self.neighbours, u32::MAX)).collect();
            let before = points(tree.nearest(at, self.neighbours, rank as u32));
            let before: Vec<u32> = before.filter(|other| !follows[*other as usize]).collect();
            let target = x.subrows(own, 1).to_owned();
            self.whiten(&rows, Some((x, &before)), target.as_ref(), &mut scratch)?;
            let Scratch { k, z, factor, .. } = &mut scratch;
            let w = k.col_as_slice(0);
            let variance = not_below_0(prior[own] - sum_of_products(w, w));
            follows[own] = variance <= FOLLOWS * prior[own];
            solve_lower_transpose(factor.l.as_ref(), k.as_mut(), Par::Seq);
            let b = k.col_as_slice(0);
            let residual = |j: usize| {
                rows.iter().zip(b).map(move |(row, b)| b * self.residual[(*row as usize, j)])
            };
            let fixed = (0..z.ncols()).map(|j| residual(j).sum()).collect();
            let earlier = before.iter().map(|other| *other as usize);
            let earlier = earlier.zip(b[rows.len()..].iter().copied()).collect();
            links.push(Link { place: own, fixed, earlier, variance });
        }
        Ok(Joint { links, targets: self.residual.ncols() })
    }
}

impl Joint {
    /// Returns the means, less the mean function, B×P.
    pub fn mean(&self) -> Mat<f64> {
        self.along(|_, _| 0.0)
    }

    /// Values at all places, with what `apart` adds to those of a place and target.
    fn along(&self, mut apart: impl FnMut(&Link, usize) -> f64) -> Mat<f64> {
        let mut f = Mat::zeros(self.links.len(), self.targets);
        for link in &self.links {
            for j in 0..self.targets {
                let earlier: f64 = link.earlier.iter().map(|(other, b)| b * f[(*other, j)]).sum();
                f[(link.place, j)] = link.fixed[j] + earlier + apart(link, j);
            }
        }
        f
    }

    /// Returns the covariance of the function at all places, B×B, the same for every target. O(B²m).
    pub fn covariance(&self) -> Mat<f64> {
        let n = self.links.len();
        let mut c = Mat::zeros(n, n);
        for (at, link) in self.links.iter().enumerate() {
            for other in &self.links[..at] {
                let along = link.earlier.iter().map(|(e, b)| b * c[(*e, other.place)]);
                let own: f64 = along.sum();
                c[(link.place, other.place)] = own;
                c[(other.place, link.place)] = own;
            }
            let along = link.earlier.iter().map(|(e, b)| b * c[(*e, link.place)]);
            let explained: f64 = along.sum();
            c[(link.place, link.place)] = link.variance + explained;
        }
        c
    }

    /// Draws the function at all places, less the mean function, B×P. O(Bm).
    pub fn draw(&self, rng: &mut dyn rand::Rng) -> Mat<f64> {
        self.along(|link, _| {
            let normal: f64 = StandardNormal.sample(rng);
            link.variance.sqrt() * normal
        })
    }
}
