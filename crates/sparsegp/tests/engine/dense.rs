//! A problem, and what the engine should find, written out.

use crate::rules::{Row, Rule, SUMS, sums};
use sparsegp::Result;
use sparsegp::data::{InMemory, Source};
use sparsegp::engine::{CholeskyBasis, Cpu, Engine, Job, Passed, Process, Spread, Want};
use sparsegp::kernels::inducing::AtPoints;
use sparsegp::kernels::{Inputs, Kernel, Tape, parse};
use sparsegp::linalg::{Jitter, Mat, MatRef};
use sparsegp::means::{Mean, by_name};
use sparsegp::rng::{stream, uniform};

/// Input columns.
pub const D: usize = 2;
/// Jitter, as a fraction of the mean diagonal: large, so that its part in gradients is seen.
pub const JITTER: f64 = 1e-3;

/// Data, parameters and q. The kernel is σ² exp(−½ Σ (x − x′)²/ℓ²) + v x·x′, the mean Wᵀx + c.
pub struct Problem {
    pub data: InMemory,
    /// σ², ℓ₁, ℓ₂, v, W (column by column), c, Z (column by column).
    pub theta: Vec<f64>,
    pub m: usize,
    pub p: usize,
    pub q_mean: Mat<f64>,
    pub q_covariance: Mat<f64>,
}

pub fn problem(n: usize, m: usize, p: usize) -> Problem {
    let mut rng = stream(31 + n as u64, "engine");
    let mut random = |low: f64, high: f64| low + (high - low) * uniform(&mut rng);
    let x = Mat::from_fn(n, D, |_, _| random(-2.0, 2.5));
    let y = Mat::from_fn(n, p, |i, j| {
        (1.4 * x[(i, 0)] + j as f64).sin() + 0.4 * x[(i, 1)] + random(-0.7, 0.7)
    });
    let mut theta = vec![1.7, 0.8, 1.9, 0.35];
    theta.extend((0..D * p + p).map(|_| random(-0.6, 0.6)));
    theta.extend((0..m * D).map(|_| random(-2.0, 2.5)));
    let root =
        Mat::from_fn(m, m, |i, j| if i == j { random(0.3, 1.2) } else { 0.3 * random(-1.0, 1.0) });
    Problem {
        data: InMemory::new(x, y).expect("as many targets as inputs"),
        theta,
        m,
        p,
        q_mean: Mat::from_fn(m, p, |_, _| random(-1.0, 1.0)),
        q_covariance: &root * root.transpose(),
    }
}

/// The parts that the engine is given.
pub struct Parts {
    pub kernel: Box<dyn Kernel>,
    pub mean: Box<dyn Mean>,
    pub z: Mat<f64>,
    pub kuu: Mat<f64>,
    pub tape: Tape,
    pub basis: CholeskyBasis,
}

/// A Gaussian over the whitened inducing variables.
#[derive(Clone, Copy)]
pub struct Whitened<'a> {
    pub mean: &'a Mat<f64>,
    pub covariance: &'a Mat<f64>,
}

/// What the rows contribute but for gradients.
pub struct Statistics {
    pub sums: Vec<f64>,
    pub phi_a: Mat<f64>,
    pub gram: Mat<f64>,
    pub gram_c: Option<Mat<f64>>,
}

/// Gradients that the rows contribute.
pub struct Gradients {
    pub sums: Vec<f64>,
    pub kernel: Vec<f64>,
    pub mean: Vec<f64>,
    pub z: Mat<f64>,
}

impl Parts {
    fn inducing(&self) -> AtPoints<'_> {
        AtPoints { kernel: &*self.kernel, z: self.z.as_ref() }
    }

    fn pass(
        &self,
        engine: &Cpu,
        (mean, spread): (&Mat<f64>, Spread<'_>),
        (rule, data, scale): (&Rule, &dyn Source, f64),
        want: Want,
    ) -> Result<Passed> {
        let process =
            Process { inducing: &self.inducing(), basis: &self.basis, mean: mean.as_ref(), spread };
        let processes = &[process];
        let job = Job { processes, mean: &*self.mean, pointwise: rule, scale, want };
        let mut passed = Passed::default();
        engine.pass(&job, data, &mut passed)?;
        Ok(passed)
    }

    /// All statistics at q, or without one.
    pub fn statistics(
        &self,
        engine: &Cpu,
        q: Option<Whitened<'_>>,
        rule: &Rule,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Statistics> {
        let nothing = Mat::zeros(self.z.nrows(), data.outputs());
        let at = match q {
            Some(q) => (q.mean, Spread::Shared(Some(q.covariance.as_ref()))),
            None => (&nothing, Spread::Shared(None)),
        };
        let mut passed = self.pass(engine, at, (rule, data, scale), Want::AllStatistics)?;
        let mut own = passed.processes.remove(0);
        assert_eq!((own.grams.len(), own.inducing.len()), (1, 0));
        let gram = own.grams.remove(0);
        Ok(Statistics { sums: passed.sums, phi_a: own.phi_a, gram, gram_c: own.gram_c })
    }

    /// Only gradients, at q.
    pub fn gradients(
        &self,
        engine: &Cpu,
        q: Whitened<'_>,
        rule: &Rule,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Gradients> {
        let at = (q.mean, Spread::Shared(Some(q.covariance.as_ref())));
        let mut passed = self.pass(engine, at, (rule, data, scale), Want::GradientsAlone)?;
        let own = passed.processes.remove(0);
        assert!(own.grams.is_empty() && own.gram_c.is_none() && own.phi_a.nrows() == 0);
        let (sums, mean) = (passed.sums, passed.mean);
        let (kernel, z) = own.inducing.split_at(self.kernel.num_params());
        let z = MatRef::from_column_major_slice(z, self.z.nrows(), self.z.ncols()).to_owned();
        Ok(Gradients { sums, kernel: kernel.to_vec(), mean, z })
    }
}

impl Problem {
    pub fn q(&self) -> Whitened<'_> {
        Whitened { mean: &self.q_mean, covariance: &self.q_covariance }
    }

    /// Where Z begins in the parameters.
    pub fn z_at(&self) -> usize {
        4 + D * self.p + self.p
    }

    pub fn parts(&self) -> Parts {
        let t = &self.theta;
        let spec = format!(
            "rbf(variance={}, lengthscales=[{}, {}]) + linear(variance={})",
            t[0], t[1], t[2], t[3]
        );
        let kernel = parse(&spec, Inputs::unnamed(D)).expect("a kernel");
        let mut mean = by_name("linear", D, self.p).expect("a mean function");
        for (path, param) in mean.params_mut() {
            let from = if path == "weights" { 4 } else { 4 + D * self.p };
            param.set(&path, &t[from..from + param.len()]).expect("values");
        }
        let z = Mat::from_fn(self.m, D, |i, q| t[self.z_at() + q * self.m + i]);
        let mut kuu = Mat::zeros(self.m, self.m);
        let mut tape = Tape::recording();
        kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
        let basis = CholeskyBasis::new(kuu.as_ref(), Jitter::Relative(JITTER)).expect("definite");
        Parts { kernel, mean, z, kuu, tape, basis }
    }
}

/// Φ (N×M) and the rows' ℓ.
pub struct Dense {
    pub phi: Vec<Vec<f64>>,
    pub rows: Vec<Row>,
    pub sums: [f64; SUMS],
    pub value: f64,
}

/// Everything from scratch at parameters `theta`; without q if `with_q` is false.
pub fn dense(problem: &Problem, theta: &[f64], rule: &Rule, with_q: bool) -> Dense {
    let (m, p) = (problem.m, problem.p);
    let (x, y) = (&problem.data.x, &problem.data.y);
    let z_at = problem.z_at();
    let z = |j: usize| [theta[z_at + j], theta[z_at + m + j]];
    let k = |a: [f64; D], b: [f64; D]| {
        let square = |q: usize| ((a[q] - b[q]) / theta[1 + q]).powi(2);
        theta[0] * (-0.5 * (square(0) + square(1))).exp() + theta[3] * (a[0] * b[0] + a[1] * b[1])
    };
    let jitter = JITTER * (0..m).map(|j| k(z(j), z(j))).sum::<f64>() / m as f64;
    let mut l = vec![vec![0.0; m]; m];
    for i in 0..m {
        for j in 0..=i {
            let own: f64 = (0..j).map(|e| l[i][e] * l[j][e]).sum();
            let rest = k(z(i), z(j)) + if i == j { jitter } else { 0.0 } - own;
            l[i][j] = if i == j { rest.sqrt() } else { rest / l[j][j] };
        }
    }
    let mut out = Dense { phi: Vec::new(), rows: Vec::new(), sums: [0.0; SUMS], value: 0.0 };
    for i in 0..x.nrows() {
        let xi = [x[(i, 0)], x[(i, 1)]];
        let mut phi = vec![0.0; m];
        for j in 0..m {
            let own: f64 = (0..j).map(|e| l[j][e] * phi[e]).sum();
            phi[j] = (k(z(j), xi) - own) / l[j][j];
        }
        let r = k(xi, xi) - phi.iter().map(|v| v * v).sum::<f64>();
        let weight = if with_q { 1.0 } else { 0.0 };
        let mut s = 0.0;
        for e in 0..m {
            for f in 0..m {
                s += weight * phi[e] * problem.q_covariance[(e, f)] * phi[f];
            }
        }
        let yi: Vec<f64> = (0..p).map(|j| y[(i, j)]).collect();
        let mu: Vec<f64> = (0..p)
            .map(|j| {
                let weights = &theta[4 + j * D..4 + (j + 1) * D];
                let prior = weights[0] * xi[0] + weights[1] * xi[1] + theta[4 + D * p + j];
                prior + weight * (0..m).map(|e| phi[e] * problem.q_mean[(e, j)]).sum::<f64>()
            })
            .collect();
        let row = rule.row(&yi, &mu, s, r);
        let added = sums(&yi, &row.a, if rule.variances { s } else { 0.0 }, r);
        out.sums.iter_mut().zip(added).for_each(|(sum, v)| *sum += v);
        out.value += row.value;
        out.phi.push(phi);
        out.rows.push(row);
    }
    out
}

impl Dense {
    /// Φ diag(w) Φᵀ.
    pub fn gram(&self, w: impl Fn(&Row) -> f64) -> Mat<f64> {
        let m = self.phi[0].len();
        Mat::from_fn(m, m, |e, f| {
            let terms = self.phi.iter().zip(&self.rows).map(|(phi, row)| phi[e] * w(row) * phi[f]);
            terms.sum()
        })
    }

    /// Φa.
    pub fn phi_a(&self) -> Mat<f64> {
        Mat::from_fn(self.phi[0].len(), self.rows[0].a.len(), |e, j| {
            self.phi.iter().zip(&self.rows).map(|(phi, row)| phi[e] * row.a[j]).sum()
        })
    }
}

/// The largest |a − b|, as a part of the largest |b|.
pub fn apart(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()));
    (a - b).norm_max() / b.norm_max()
}
