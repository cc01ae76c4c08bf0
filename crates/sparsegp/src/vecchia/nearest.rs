//! What rows say of the function at other places.

use super::density::Rows;
use super::tree::Tree;
use super::{Common, Features, Metric, maximin};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Tape};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, column, gemm, gram_lower, in_parts, not_below_0,
    par_for, product, sized, solve_lower, solve_lower_transpose, stacked, sum_of_products,
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
    common: Option<(Features, Common)>,
    /// Features of the rows, M×N; 0×N without inducing points.
    phi: Mat<f64>,
}

/// A place given rows, and places before it.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) place: usize,
    /// What rows say, for every target.
    pub(super) fixed: Vec<f64>,
    /// Rows with their weights.
    pub(super) rows: Vec<(u32, f64)>,
    /// Places before it, with their weights.
    pub(super) earlier: Vec<(usize, f64)>,
    pub(super) variance: f64,
    /// What multiplies the whitened inducing variables.
    common: Vec<f64>,
}

/// The joint posterior of places, each given rows and the places before it.
#[derive(Clone, Debug)]
pub struct Joint {
    links: Vec<Link>,
    targets: usize,
    common: Option<Common>,
}

/// Places without noise that a place is conditioned on: all there are, their features, and those of them that are meant.
#[derive(Clone, Copy)]
struct Earlier<'a> {
    x: MatRef<'a, f64>,
    phi: MatRef<'a, f64>,
    places: &'a [u32],
}

/// A place (1×D) and its features.
#[derive(Clone, Copy)]
struct At<'a> {
    x: MatRef<'a, f64>,
    phi: &'a [f64],
}

/// The memory of one thread.
struct Scratch {
    x: Mat<f64>,
    g: Mat<f64>,
    z: Mat<f64>,
    k: Mat<f64>,
    /// Features of the rows and places, M×n.
    phi: Mat<f64>,
    tape: Tape,
    factor: Cholesky,
}

impl Scratch {
    fn new() -> Self {
        let new = Mat::new;
        let (tape, factor) = (Tape::off(), Cholesky::of_factor(new()));
        Self { x: new(), g: new(), z: new(), k: new(), phi: new(), tape, factor }
    }

    /// Computes b = L⁻ᵀ(L⁻¹k), in the place of L⁻¹k.
    fn weights(&mut self) {
        solve_lower_transpose(self.factor.l.as_ref(), self.k.as_mut(), Par::Seq);
    }

    /// Puts φ − Φb in the place of φ.
    fn leave(&self, phi: &mut [f64]) {
        if phi.is_empty() {
            return;
        }
        for (i, b) in self.k.col_as_slice(0).iter().enumerate() {
            let of_row = self.phi.col_as_slice(i);
            phi.iter_mut().zip(of_row).for_each(|(own, of_row)| *own -= b * of_row);
        }
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
        let (noise, phi) = (rows.noise.to_vec(), Mat::zeros(0, rows.x.nrows()));
        let common = None;
        Ok(Self { kernel, x, residual, noise, metric, neighbours, tree, common, phi })
    }

    /// Returns neighbours for what inducing points do not explain: `phi` are the features of the
    /// rows (M×N), `common` is what the rows say of the inducing variables ([`super::FullScale`]).
    #[must_use]
    pub fn with_points(self, features: Features, phi: Mat<f64>, common: Common) -> Self {
        Self { common: Some((features, common)), phi, ..self }
    }

    /// Returns the features of places (B×D), M×B.
    fn features_of(&self, x: MatRef<f64>) -> Mat<f64> {
        let none = || Mat::zeros(0, x.nrows());
        self.common.as_ref().map_or_else(none, |(features, _)| features.of(&*self.kernel, x))
    }

    /// Returns the rows.
    pub fn rows(&self) -> Rows<'_> {
        Rows { x: self.x.as_ref(), residual: self.residual.as_ref(), noise: &self.noise }
    }

    /// Returns means, less the mean function (B×P), and variances of the function at places (B×D):
    ///
    /// ```text
    /// E f = bᵀr_c + ψᵀμ      var f = k(x, x) − φᵀφ − kᵀb + ψᵀA⁻¹ψ
    /// b = G_cc⁻¹k            ψ = φ − Φ_cb                               k = k(X_c, x) − Φ_cᵀφ
    /// ```
    ///
    /// where without inducing points there is neither φ nor ψ.
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

    /// Returns the means and variances at places, each given the rows that `of` finds for its index
    /// and coordinates.
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
            let phi = self.features_of(x);
            let mut left = phi.clone();
            let (places, dims) = (self.metric.places(x), self.metric.dims());
            for (i, variance) in variances.iter_mut().enumerate() {
                let rows = of(start + i, &places[i * dims..][..dims]);
                let phi = column(phi.as_ref(), i);
                self.whiten(&rows, None, At { x: x.subrows(i, 1), phi }, &mut scratch)?;
                let w = scratch.k.col_as_slice(0);
                let explained = sum_of_products(phi, phi) + sum_of_products(w, w);
                *variance = not_below_0(*variance - explained);
                for j in 0..p {
                    means[(i, j)] = sum_of_products(w, scratch.z.col_as_slice(j));
                }
                if self.common.is_some() {
                    scratch.weights();
                    scratch.leave(left.col_as_slice_mut(i));
                }
            }
            if let Some((_, common)) = &self.common {
                let par = Par::Seq;
                let mean = common.mean.as_ref();
                gemm(means.as_mut(), Accum::Add, left.transpose(), mean, 1.0, par);
                solve_lower(common.factor.l.as_ref(), left.as_mut(), par);
                for (i, variance) in variances.iter_mut().enumerate() {
                    let own = column(left.as_ref(), i);
                    *variance += sum_of_products(own, own);
                }
            }
            Ok((means, variances))
        })?;
        let variances = all.iter().flat_map(|own| own.1.iter().copied()).collect();
        let means: Vec<Mat<f64>> = all.into_iter().map(|own| own.0).collect();
        Ok((stacked(&means, x.nrows(), p), variances))
    }

    /// Computes L⁻¹k and, for rows, L⁻¹r, with the factor of rows and then `earlier` places without
    /// noise. Of these the part of z is 0.
    fn whiten(
        &self,
        rows: &[u32],
        earlier: Option<Earlier<'_>>,
        at: At<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch { x, g, z, k, phi, tape, factor } = scratch;
        let (own, p) = (rows.len(), self.residual.ncols());
        let n = own + earlier.map_or(0, |own| own.places.len());
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
        if let Some(earlier) = earlier {
            copy(x, earlier.x, earlier.places, own);
        }
        sized(g, n, n);
        self.kernel.evaluate(x.as_ref(), None, g.as_mut(), tape);
        let points = at.phi.len();
        if points > 0 {
            sized(phi, points, n);
            let of_rows = rows.iter().map(|row| column(self.phi.as_ref(), *row as usize));
            let of_places = earlier
                .iter()
                .flat_map(|own| own.places.iter().map(|place| column(own.phi, *place as usize)));
            for (i, source) in of_rows.chain(of_places).enumerate() {
                phi.col_as_slice_mut(i).copy_from_slice(source);
            }
            let phi = phi.as_ref();
            gram_lower(g.as_mut(), Accum::Add, phi, phi, -1.0, Par::Seq);
        }
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
        self.kernel.evaluate(x.as_ref(), Some(at.x), k.as_mut(), tape);
        if points > 0 {
            let own = MatRef::from_column_major_slice(at.phi, points, 1);
            gemm(k.as_mut(), Accum::Add, phi.transpose(), own, -1.0, Par::Seq);
        }
        solve_lower(factor.l.as_ref(), k.as_mut(), Par::Seq);
        solve_lower(factor.l.as_ref(), z.as_mut(), Par::Seq);
        Ok(())
    }

    /// Returns a place with this prior variance, given rows and places before it.
    fn link(
        &self,
        rows: &[u32],
        earlier: Option<Earlier<'_>>,
        (place, at, prior): (usize, At<'_>, f64),
        scratch: &mut Scratch,
    ) -> Result<Link> {
        self.whiten(rows, earlier, at, scratch)?;
        let w = scratch.k.col_as_slice(0);
        let explained = sum_of_products(at.phi, at.phi) + sum_of_products(w, w);
        let variance = not_below_0(prior - explained);
        scratch.weights();
        let mut common = at.phi.to_vec();
        scratch.leave(&mut common);
        let (of_rows, of_places) = scratch.k.col_as_slice(0).split_at(rows.len());
        let rows: Vec<(u32, f64)> = rows.iter().copied().zip(of_rows.iter().copied()).collect();
        let residual =
            |j: usize| rows.iter().map(move |(row, b)| b * self.residual[(*row as usize, j)]);
        let fixed = (0..self.residual.ncols()).map(|j| residual(j).sum()).collect();
        let places = earlier.iter().flat_map(|own| own.places.iter().map(|other| *other as usize));
        let earlier = places.zip(of_places.iter().copied()).collect();
        Ok(Link { place, fixed, rows, earlier, variance, common })
    }

    /// Returns places (B×D), each given its nearest rows only.
    pub(super) fn links(&self, x: MatRef<f64>) -> Result<Vec<Link>> {
        let all = in_parts(x, |start, x| {
            let (mut scratch, mut prior) = (Scratch::new(), vec![0.0; x.nrows()]);
            self.kernel.diag(x, &mut prior);
            let phi = self.features_of(x);
            let (places, dims) = (self.metric.places(x), self.metric.dims());
            let one = |(i, prior): (usize, &f64)| {
                let near =
                    self.tree.nearest(&places[i * dims..][..dims], self.neighbours, u32::MAX);
                let rows: Vec<u32> = near.into_iter().map(|near| near.point).collect();
                let at = At { x: x.subrows(i, 1), phi: column(phi.as_ref(), i) };
                self.link(&rows, None, (start + i, at, *prior), &mut scratch)
            };
            prior.iter().enumerate().map(one).collect::<Result<Vec<_>>>()
        })?;
        Ok(all.into_iter().flatten().collect())
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
        let phi = self.features_of(x);
        let points = |near: Vec<super::tree::Near>| near.into_iter().map(|near| near.point);
        for (rank, place) in order.iter().enumerate() {
            let (at, own) = (&places[*place as usize * dims..][..dims], *place as usize);
            let rows: Vec<u32> = points(self.tree.nearest(at, self.neighbours, u32::MAX)).collect();
            let before = points(tree.nearest(at, self.neighbours, rank as u32));
            let before: Vec<u32> = before.filter(|other| !follows[*other as usize]).collect();
            let target = x.subrows(own, 1).to_owned();
            let at = At { x: target.as_ref(), phi: column(phi.as_ref(), own) };
            let earlier = Earlier { x, phi: phi.as_ref(), places: &before };
            let link = self.link(&rows, Some(earlier), (own, at, prior[own]), &mut scratch)?;
            follows[own] = link.variance <= FOLLOWS * prior[own];
            links.push(link);
        }
        let common = self.common.as_ref().map(|(_, common)| common.clone());
        Ok(Joint { links, targets: self.residual.ncols(), common })
    }
}

impl Joint {
    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the means, less the mean function, B×P.
    pub fn mean(&self) -> Mat<f64> {
        self.along(self.common.as_ref().map(|common| common.mean.clone()), |_| 0.0)
    }

    /// Returns the values at all places for values of the whitened inducing variables (M×P), with
    /// what `apart` adds to each.
    fn along(&self, v: Option<Mat<f64>>, mut apart: impl FnMut(&Link) -> f64) -> Mat<f64> {
        let mut f = Mat::zeros(self.links.len(), self.targets);
        for link in &self.links {
            for j in 0..self.targets {
                let earlier: f64 = link.earlier.iter().map(|(other, b)| b * f[(*other, j)]).sum();
                let own = link.fixed[j] + earlier + apart(link);
                let common = v.as_ref().map(|v| sum_of_products(&link.common, v.col_as_slice(j)));
                f[(link.place, j)] = own + common.unwrap_or(0.0);
            }
        }
        f
    }

    /// Returns the covariance of the function at all places, B×B, the same for every target. O(B²m), with M inducing points O(B²M) more.
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
        let Some(common) = &self.common else { return c };
        let mut through = Mat::zeros(common.mean.nrows(), n);
        for link in &self.links {
            let mut own = link.common.clone();
            for (other, b) in &link.earlier {
                let other = through.col_as_slice(*other);
                own.iter_mut().zip(other).for_each(|(own, other)| *own += b * other);
            }
            through.col_as_slice_mut(link.place).copy_from_slice(&own);
        }
        solve_lower(common.factor.l.as_ref(), through.as_mut(), par_for(n));
        c + product(through.transpose(), through.as_ref())
    }

    /// Draws the function at all places, less the mean function, B×P. O(Bm).
    pub fn draw(&self, rng: &mut dyn rand::Rng) -> Mat<f64> {
        let v = self.common.as_ref().map(|common| {
            let (m, p) = (common.mean.nrows(), common.mean.ncols());
            let mut apart = Mat::from_fn(m, p, |_, _| StandardNormal.sample(rng));
            solve_lower_transpose(common.factor.l.as_ref(), apart.as_mut(), Par::Seq);
            &common.mean + apart
        });
        self.along(v, |link| {
            let normal: f64 = StandardNormal.sample(rng);
            link.variance.sqrt() * normal
        })
    }
}
