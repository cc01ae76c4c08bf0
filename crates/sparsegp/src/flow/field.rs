//! The flow of particles.
//!
//! ẋ = b + A(x − m) with b = −ḡ and A = I − Ψ, Ψ = GZᵀ/N, makes the free energy fall by ‖ḡ‖² + ‖Ψ − I‖² (Galy-Fajou,
//! Perrone & Opper 2021, eq. 5–8, with the signs of Algorithm 2's descent). Both vanish where E[∇φ] = 0 and C⁻¹ =
//! E[∇²φ], by Stein's lemma.

use super::blocks::Blocks;
use super::energy::rows_of;
use super::target::{centred, check_count, check_dim, check_some, row_means};
use crate::error::Result;
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, column, column_mut, dot, gemm, not_below_0, par_for,
    product, solve_lower, symmetric_eigen, symmetrise,
};

/// Which way the mean moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeanFlow {
    /// Along −ḡ.
    #[default]
    Plain,
    /// Along −Cḡ, the natural gradient. With N ≤ D it stays in the span of the particles, and may stall away from the
    /// optimum.
    Natural,
}

/// Where the particles go, for rates of 1.
#[derive(Clone, Debug)]
pub struct Field {
    /// −d, D numbers: d = ḡ or C_b ḡ_b.
    pub mean: Vec<f64>,
    /// Z − ΨZ by blocks, D×N; its columns sum to 0.
    pub spread: Mat<f64>,
    /// ḡᵀd ≥ 0.
    pub descent: f64,
    /// Σ_b ‖Ψ_bb − Π_b‖²_F, with the projector Π_b on the span of Z_b.
    pub residual: f64,
    /// ‖ḡ‖².
    pub slope_square: f64,
}

/// Least curvature that a preconditioned flow trusts, by that of the particles: none grows more than fourfold in a step.
const LEAST_CURVATURE: f64 = 1.0 / 16.0;

impl Field {
    /// Computes the flow of particles X (D×N) with gradients G (D×N) by blocks that fit. Nothing of D×D is made where
    /// N < D (O(N²D); Algorithm 2 of Galy-Fajou, Perrone & Opper 2021 as printed makes Ψ).
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if particles and gradients differ in shape,
    /// [`Error::Invalid`](crate::Error::Invalid) for no particles and for blocks that do not fit.
    pub fn new(
        x: MatRef<'_, f64>,
        gradient: MatRef<'_, f64>,
        blocks: &Blocks,
        flow: MeanFlow,
    ) -> Result<Self> {
        check_dim("gradients", gradient.nrows(), x.nrows())?;
        check_count("gradients", gradient.ncols(), x.ncols())?;
        check_some("particles", x.ncols())?;
        blocks.check(x.nrows())?;
        let z = centred(x, &row_means(x));
        let mean_gradient = row_means(gradient);
        // Z1 = 0, so centred gradients give the same and do not cancel where ḡ is large
        let g = centred(gradient, &mean_gradient);
        let mut field = Self {
            mean: mean_gradient.iter().map(|g| -g).collect(),
            spread: Mat::zeros(x.nrows(), x.ncols()),
            descent: 0.0,
            residual: 0.0,
            slope_square: mean_gradient.iter().map(|g| g * g).sum(),
        };
        let natural = flow == MeanFlow::Natural;
        match blocks {
            Blocks::Whole => {
                field.spread = of_block(z.as_ref(), g.as_ref(), &mut field.residual);
                if natural {
                    field.mean = along(z.as_ref(), &mean_gradient);
                }
            }
            Blocks::Diagonal => field.of_coordinates(&z, &g, natural),
            Blocks::Of(blocks) => {
                for rows in blocks {
                    let (z, g) = (rows_of(z.as_ref(), rows), rows_of(g.as_ref(), rows));
                    let spread = of_block(z.as_ref(), g.as_ref(), &mut field.residual);
                    for n in 0..x.ncols() {
                        rows.iter().enumerate().for_each(|(k, i)| {
                            field.spread[(*i, n)] = spread[(k, n)];
                        });
                    }
                    if natural {
                        let own: Vec<f64> = rows.iter().map(|i| mean_gradient[*i]).collect();
                        let moved = along(z.as_ref(), &own);
                        rows.iter().zip(moved).for_each(|(i, d)| field.mean[*i] = d);
                    }
                }
            }
        }
        field.descent = -field.mean.iter().zip(&mean_gradient).map(|(d, g)| d * g).sum::<f64>();
        Ok(field)
    }

    /// Computes the flow measured by the curvature that the particles see, for N > D: with C = LLᵀ and the symmetric
    /// B = LᵀE[∇φ zᵀ]L⁻ᵀ, which is LᵀΛL for a Gaussian, z goes towards L B^{−½} L⁻¹ z and the mean along
    /// −L B⁻¹ Lᵀ ḡ. A rate of 1 is a step of Newton's method, whatever the scales of the coordinates; residuals are those
    /// of whitened coordinates, ‖B − I‖² and ‖Lᵀḡ‖².
    ///
    /// # Errors
    /// As for [`Field::new`]; [`Error::NotPositiveDefinite`](crate::Error::NotPositiveDefinite) for particles that are
    /// affinely dependent, and what eigenvalues give.
    pub fn preconditioned(x: MatRef<'_, f64>, gradient: MatRef<'_, f64>) -> Result<Self> {
        let (d, n) = (x.nrows(), x.ncols());
        check_dim("gradients", gradient.nrows(), d)?;
        check_count("gradients", gradient.ncols(), n)?;
        check_some("particles", n)?;
        let z = centred(x, &row_means(x));
        let mean_gradient = row_means(gradient);
        let g = centred(gradient, &mean_gradient);
        let scale = 1.0 / n as f64;
        let covariance = product(z.as_ref(), z.transpose()) * faer::Scale(scale);
        let factor = Cholesky::new(covariance.as_ref(), Jitter::Absolute(0.0), "C")?;
        let l = factor.l.as_ref();
        let mut white = z.clone();
        solve_lower(l, white.as_mut(), par_for(d));
        let slopes = product(l.transpose(), g.as_ref());
        let mut curvature = product(slopes.as_ref(), white.transpose()) * faer::Scale(scale);
        let mut residual = 0.0;
        for (i, j) in (0..d).flat_map(|j| (0..d).map(move |i| (i, j))) {
            residual += (curvature[(i, j)] - f64::from(u8::from(i == j))).powi(2);
        }
        symmetrise(curvature.as_mut());
        let (values, vectors) = symmetric_eigen(curvature.as_ref())?;
        let values: Vec<f64> = values.iter().map(|b| b.max(LEAST_CURVATURE)).collect();
        // L V, and Vᵀ times what it meets
        let basis = product(l, vectors.as_ref());
        let scaled = |mut a: Mat<f64>, power: f64| {
            for j in 0..a.ncols() {
                let own = column_mut(a.as_mut(), j).iter_mut();
                own.zip(&values).for_each(|(a, b)| *a *= b.powf(power));
            }
            a
        };
        let to = scaled(product(vectors.transpose(), white.as_ref()), -0.5);
        let mut spread = product(basis.as_ref(), to.as_ref());
        spread -= &z;
        let own = MatRef::from_column_major_slice(&mean_gradient, d, 1);
        let white_slope = product(l.transpose(), own);
        let moved = scaled(product(vectors.transpose(), white_slope.as_ref()), -1.0);
        let moved = product(basis.as_ref(), moved.as_ref());
        let mean: Vec<f64> = column(moved.as_ref(), 0).iter().map(|m| -m).collect();
        let descent = -mean.iter().zip(&mean_gradient).map(|(d, g)| d * g).sum::<f64>();
        let slope_square = column(white_slope.as_ref(), 0).iter().map(|g| g * g).sum();
        Ok(Self { mean, spread, descent, residual, slope_square })
    }

    /// Computes the field of every coordinate by itself: z_d ← z_d (1 − η(E[g z] − 1)).
    fn of_coordinates(&mut self, z: &Mat<f64>, g: &Mat<f64>, natural: bool) {
        let (d, n) = (z.nrows(), z.ncols() as f64);
        let (mut psi, mut variance) = (vec![0.0; d], vec![0.0; d]);
        for at in 0..z.ncols() {
            let (z, g) = (column(z.as_ref(), at), column(g.as_ref(), at));
            for i in 0..d {
                psi[i] += z[i] * g[i] / n;
                variance[i] += z[i] * z[i] / n;
            }
        }
        for at in 0..z.ncols() {
            let out = column_mut(self.spread.as_mut(), at);
            for (i, z) in column(z.as_ref(), at).iter().enumerate() {
                out[i] = z - psi[i] * z;
            }
        }
        self.residual = psi.iter().map(|p| (p - 1.0) * (p - 1.0)).sum();
        if natural {
            self.mean.iter_mut().zip(&variance).for_each(|(m, v)| *m *= v);
        }
    }

    /// Returns dF̃/dt for rates of mean and spread: −η₁ḡᵀd − η₂ Σ_b ‖Ψ_bb − Π_b‖² exactly.
    pub fn slope(&self, mean_rate: f64, spread_rate: f64) -> f64 {
        -mean_rate * self.descent - spread_rate * self.residual
    }
}

/// Returns −C v = −Z(Zᵀv)/N.
fn along(z: MatRef<'_, f64>, v: &[f64]) -> Vec<f64> {
    let v = MatRef::from_column_major_slice(v, v.len(), 1);
    let moved = product(z, product(z.transpose(), v).as_ref());
    column(moved.as_ref(), 0).iter().map(|m| -m / z.ncols() as f64).collect()
}

/// Returns Z − ΨZ of one block, with centred gradients; adds ‖Ψ − Π‖².
fn of_block(z: MatRef<'_, f64>, g: MatRef<'_, f64>, residual: &mut f64) -> Mat<f64> {
    let (d, n) = (z.nrows(), z.ncols());
    let scale = 1.0 / n as f64;
    let mut spread = z.to_owned();
    if n < d {
        let gram = product(z.transpose(), z);
        gemm(spread.as_mut(), Accum::Add, g, gram.as_ref(), -scale, par_for(d));
        let slopes = product(g.transpose(), g);
        let rank = (n - 1) as f64;
        let square = dot(slopes.as_ref(), gram.as_ref()) * scale * scale;
        *residual += not_below_0(square - 2.0 * scale * dot(g, z) + rank);
        return spread;
    }
    let mut psi = Mat::zeros(d, d);
    gemm(psi.as_mut(), Accum::Replace, g, z.transpose(), scale, par_for(d));
    gemm(spread.as_mut(), Accum::Add, psi.as_ref(), z, -1.0, par_for(d));
    if n > d {
        (0..d).for_each(|i| psi[(i, i)] -= 1.0);
        *residual += dot(psi.as_ref(), psi.as_ref());
    } else {
        // N = D: Π has rank D − 1
        let square = dot(psi.as_ref(), psi.as_ref());
        *residual += not_below_0(square - 2.0 * scale * dot(g, z) + (n - 1) as f64);
    }
    spread
}
