//! Contributions of rows, with the slopes that follow from them.
//!
//! With noise variances wᵢ = 0.2 + 0.3 Σₚ yᵢₚ² a row contributes ℓ = data + by s + by r:
//!
//! | part | here |
//! | --- | --- |
//! | data, s | −½ Σₚ (y − μ)²/w − P s/2w, or −P β s, or with both −½ Σₚ (y − μ)²/(w + s) − ½P log(w + s) |
//! | r | −P r/2w, or −P κ r, or −½P log(1 + r/w) |

use sparsegp::engine::{Block, Plan, Pointwise, Slope, Slopes};

/// How s enters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ByS {
    /// −P β s.
    Constant(f64),
    /// −P s/2w.
    Rows,
    /// Together with the residual, so that a depends on s too.
    Coupled,
}

/// How r enters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ByR {
    /// −P κ r.
    Constant(f64),
    /// −P r/2w.
    Rows,
    /// −½P log(1 + r/w).
    Log,
}

/// A contribution of P outputs.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Whether s is asked for.
    pub variances: bool,
    /// How s enters.
    pub s: ByS,
    /// How r enters.
    pub r: ByR,
    /// P.
    pub outputs: usize,
}

/// Every combination of constant and varying slopes, with and without variances.
pub fn all(outputs: usize) -> Vec<Rule> {
    let rule = |variances, s, r| Rule { variances, s, r, outputs };
    vec![
        rule(true, ByS::Rows, ByR::Rows),
        rule(true, ByS::Coupled, ByR::Log),
        rule(true, ByS::Coupled, ByR::Constant(0.8)),
        rule(true, ByS::Constant(1.3), ByR::Log),
        rule(true, ByS::Constant(1.3), ByR::Constant(0.8)),
        rule(false, ByS::Rows, ByR::Log),
        rule(false, ByS::Rows, ByR::Constant(0.8)),
        rule(false, ByS::Constant(1.3), ByR::Log),
        rule(false, ByS::Constant(1.3), ByR::Constant(0.8)),
    ]
}

/// ℓ of one row with its slopes.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub value: f64,
    pub a: Vec<f64>,
    pub b: f64,
    pub c: f64,
}

impl Rule {
    /// ℓ and slopes, by the table above.
    pub fn row(&self, y: &[f64], mu: &[f64], s: f64, r: f64) -> Row {
        let p = self.outputs as f64;
        let w = noise(y);
        let width = if self.s == ByS::Coupled { w + s } else { w };
        let squares: f64 = y.iter().zip(mu).map(|(y, mu)| (y - mu) * (y - mu)).sum();
        let (by_s, b) = match self.s {
            ByS::Constant(beta) => (-p * beta * s, -p * beta),
            ByS::Rows => (-0.5 * p * s / w, -0.5 * p / w),
            ByS::Coupled => {
                (-0.5 * p * width.ln(), 0.5 * squares / (width * width) - 0.5 * p / width)
            }
        };
        let (by_r, c) = match self.r {
            ByR::Constant(kappa) => (-p * kappa * r, -p * kappa),
            ByR::Rows => (-0.5 * p * r / w, -0.5 * p / w),
            ByR::Log => (-0.5 * p * (r / w).ln_1p(), -0.5 * p / (w + r)),
        };
        Row {
            value: -0.5 * squares / width + by_s + by_r,
            a: y.iter().zip(mu).map(|(y, mu)| (y - mu) / width).collect(),
            b,
            c,
        }
    }
}

fn noise(y: &[f64]) -> f64 {
    0.2 + 0.3 * y.iter().map(|y| y * y).sum::<f64>()
}

/// Sums: Σ wᵢ Σₚ aᵢₚ, Σ s, Σ r (the last two only where they are given).
pub const SUMS: usize = 3;

/// What a row adds to the sums.
pub fn sums(y: &[f64], a: &[f64], s: f64, r: f64) -> [f64; SUMS] {
    [noise(y) * a.iter().sum::<f64>(), s, r]
}

/// A contribution of P outputs is one of P latent functions, of which each has an equal part in the slopes that they share.
impl Pointwise for Rule {
    fn plan(&self) -> Plan<'_> {
        let b = match self.s {
            ByS::Constant(beta) => Slope::Constant(-beta),
            _ => Slope::Rows,
        };
        let c = match self.r {
            ByR::Constant(kappa) => Slope::Constant(-kappa),
            _ => Slope::Rows,
        };
        Plan { variances: self.variances, b, c: Some(c), sums: SUMS, counts: None }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let plan = self.plan();
        let (n, p) = (block.rows.y.nrows(), self.outputs);
        let shown = if self.variances { p } else { 0 };
        assert_eq!((block.s.nrows(), block.s.ncols()), (n, shown), "s is given where asked for");
        let by_row = Some(Slope::Rows);
        let features = self.variances || plan.b == Slope::Rows || plan.c == by_row;
        assert!(block.r.ncols() == p || (block.r.ncols() == 0 && !features));
        assert_eq!((out.b.nrows(), out.b.ncols()), (n, p));
        assert_eq!((out.c.nrows(), out.c.ncols()), (n, p));
        for i in 0..n {
            let y: Vec<f64> = (0..p).map(|p| block.rows.y[(i, p)]).collect();
            let mu: Vec<f64> = (0..p).map(|p| block.mu[(i, p)]).collect();
            let shared = |a: sparsegp::linalg::MatRef<'_, f64>| {
                (0..a.ncols()).for_each(|j| assert_eq!(a[(i, j)], a[(i, 0)], "all share it"));
                (a.ncols() > 0).then(|| a[(i, 0)])
            };
            let (s, r) = (shared(block.s), shared(block.r));
            let row = self.row(&y, &mu, s.unwrap_or(0.0), r.unwrap_or(0.0));
            for (j, a) in row.a.iter().enumerate() {
                out.a[(i, j)] = *a;
                // what the plan calls constant is not to be read: leave there what would be noticed
                let part =
                    |by_row: bool, slope: f64| if by_row { slope / p as f64 } else { f64::NAN };
                out.b[(i, j)] = part(plan.b == Slope::Rows, row.b);
                out.c[(i, j)] = part(plan.c == by_row, row.c);
            }
            let added = sums(&y, &row.a, s.unwrap_or(0.0), r.unwrap_or(0.0));
            out.sums.iter_mut().zip(added).for_each(|(sum, v)| *sum += v);
        }
    }
}
