//! Instruments: a kernel that records the cotangents it is given, and rows that record what the
//! engine shows them.

use serde_json::Value;
use sparsegp::Result;
use sparsegp::data::InMemory;
use sparsegp::engine::{
    Basis, Block, Cpu, Engine, Job, Passed, Plan, Pointwise, Process, Slope, Slopes, Spread, Want,
};
use sparsegp::kernels::inducing::AtPoints;
use sparsegp::kernels::{Cotangents, Kernel, Tape};
use sparsegp::linalg::{Mat, MatMut, MatRef};
use sparsegp::model::Model;
use sparsegp::params::{Visitor, VisitorMut};
use std::sync::{Arc, Mutex};

/// Cotangents in the order in which they came.
#[derive(Debug, Default)]
pub struct Log {
    /// Of covariances of inputs with themselves (Kuu, or K of exact inference).
    pub own: Vec<Mat<f64>>,
    /// Of covariances between rows and inducing points, one per block of rows (B×M).
    pub cross: Vec<Mat<f64>>,
    /// Of the variances, one per block of rows.
    pub diag: Vec<Vec<f64>>,
}

/// A kernel that does what another does and records the cotangents.
#[derive(Debug)]
pub struct Spy {
    inner: Box<dyn Kernel>,
    /// What it has seen.
    pub log: Arc<Mutex<Log>>,
}

impl Spy {
    /// Around `inner`, with an empty log.
    pub fn new(inner: Box<dyn Kernel>) -> Self {
        Self { inner, log: Arc::default() }
    }
}

impl Kernel for Spy {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.inner.visit(visitor);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.inner.visit_mut(visitor);
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, out: MatMut<f64>, tape: &mut Tape) {
        self.inner.evaluate(x, z, out, tape);
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        k: MatRef<f64>,
        k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let copy = k_bar.as_ref().to_owned();
        let mut log = self.log.lock().expect("no other test thread holds it");
        if z.is_some() {
            log.cross.push(copy)
        } else {
            log.own.push(copy)
        }
        drop(log);
        self.inner.vjp(x, z, k, k_bar, tape, sinks);
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.inner.diag(x, out);
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let mut log = self.log.lock().expect("no other test thread holds it");
        log.diag.push(weights.to_vec());
        drop(log);
        self.inner.diag_vjp(x, weights, sinks);
    }

    fn initialise(&mut self, lengthscales: &[f64], variance: f64) {
        self.inner.initialise(lengthscales, variance);
    }

    fn to_json(&self) -> Value {
        self.inner.to_json()
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(Self { inner: self.inner.clone(), log: self.log.clone() })
    }
}

/// The parts of a model that rows meet.
#[derive(Clone, Copy)]
pub struct Prepared<'a> {
    pub model: &'a Model,
    pub z: MatRef<'a, f64>,
    pub basis: &'a dyn Basis,
}

/// What a job gives for P latent functions with one kernel.
pub struct Given {
    pub sums: Vec<f64>,
    pub phi_a: Mat<f64>,
    pub gram: Mat<f64>,
    pub gram_c: Option<Mat<f64>>,
    pub kernel: Vec<f64>,
    pub z: Mat<f64>,
}

impl Prepared<'_> {
    /// A job at a q of this mean and covariance.
    pub fn at(
        &self,
        (mean, covariance): (&Mat<f64>, Option<&Mat<f64>>),
        pointwise: &dyn Pointwise,
        data: &InMemory,
        want: Want,
    ) -> Result<Given> {
        let spread = Spread::Shared(covariance.map(Mat::as_ref));
        let (kernel, mean) = (self.model.kernel(), mean.as_ref());
        let inducing = &AtPoints { kernel, z: self.z };
        let processes = &[Process { inducing, basis: self.basis, mean, spread }];
        let mean = &*self.model.mean;
        let mut passed = Passed::default();
        let job = Job { processes, mean, pointwise, scale: 1.0, want };
        Cpu::default().pass(&job, data, &mut passed)?;
        let mut own = passed.processes.remove(0);
        // nothing where no gradients were asked for
        let gradients = !own.inducing.is_empty();
        let params = if gradients { kernel.num_params() } else { 0 };
        let (by_kernel, by_z) = own.inducing.split_at(params);
        let rows = if gradients { self.z.nrows() } else { 0 };
        Ok(Given {
            sums: passed.sums,
            phi_a: own.phi_a,
            gram: own.grams.pop().unwrap_or_else(Mat::new),
            gram_c: own.gram_c,
            kernel: by_kernel.to_vec(),
            z: MatRef::from_column_major_slice(by_z, rows, self.z.ncols()).to_owned(),
        })
    }

    /// All statistics without a q.
    pub fn fold(&self, pointwise: &dyn Pointwise, data: &InMemory) -> Result<Given> {
        let nothing = Mat::zeros(self.z.nrows(), data.y.ncols());
        self.at((&nothing, None), pointwise, data, Want::AllStatistics)
    }
}

/// How the slope in r of a row follows from r, at noise σ².
#[derive(Clone, Copy, Debug)]
pub enum SlopeInR {
    /// One number for all rows.
    Constant(f64),
    /// −1/2(σ² + r): the bound with one factor per row.
    PerRow,
}

/// Gaussian rows, written from the formulas: a = (y − μ)/σ², b = −1/2σ² for every target.
/// The sums are n, Σ‖y − μ‖², Σ r, ½ Σ log(1 + r/σ²) and its slope in σ².
pub struct Rows {
    /// σ².
    pub noise: f64,
    /// ∂ℓ/∂r of one target.
    pub c: SlopeInR,
    /// The r of every row seen, block by block.
    pub unexplained: Mutex<Vec<f64>>,
}

impl Rows {
    /// Rows with noise `noise`.
    pub fn new(noise: f64, c: SlopeInR) -> Self {
        Self { noise, c, unexplained: Mutex::default() }
    }
}

impl Pointwise for Rows {
    fn plan(&self) -> Plan<'_> {
        let c = match self.c {
            SlopeInR::Constant(c) => Slope::Constant(c),
            SlopeInR::PerRow => Slope::Rows,
        };
        let b = Slope::Constant(-0.5 / self.noise);
        Plan { variances: false, b, c: Some(c), ..Plan::by_rows(5) }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let (s2, y) = (self.noise, block.rows.y);
        for i in 0..y.nrows() {
            out.sums[0] += 1.0;
            for p in 0..y.ncols() {
                let residual = y[(i, p)] - block.mu[(i, p)];
                out.a[(i, p)] = residual / s2;
                out.sums[1] += residual * residual;
            }
        }
        if block.r.ncols() == 0 {
            return;
        }
        let unexplained: Vec<f64> = (0..y.nrows()).map(|i| block.r[(i, 0)]).collect();
        for (i, r) in unexplained.iter().enumerate() {
            out.sums[2] += r;
            out.sums[3] += 0.5 * (r / s2).ln_1p();
            out.sums[4] -= 0.5 * r / (s2 * (s2 + r));
            if let SlopeInR::PerRow = self.c {
                (0..y.ncols()).for_each(|p| out.c[(i, p)] = -0.5 / (s2 + r));
            }
        }
        self.unexplained.lock().expect("no panic while it is held").extend(unexplained);
    }
}
