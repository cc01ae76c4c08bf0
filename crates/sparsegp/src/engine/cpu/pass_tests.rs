//! Blocks that go together give what lanes of blocks give.

use super::*;
use crate::data::InMemory;
use crate::engine::{CholeskyBasis, Factors, Pointwise, Spread, Through};
use crate::kernels::inducing::{AtPoints, Inducing};
use crate::kernels::{Inputs, Tape, parse};
use crate::linalg::{Jitter, Mat};
use crate::means::by_name;

/// Smooth slopes of everything, for every latent function others.
struct Waves {
    equal: bool,
    without: Option<usize>,
    counts: Option<[bool; 4]>,
}

impl Waves {
    fn new(equal: bool, without: Option<usize>) -> Self {
        let counts = without.map(|without| std::array::from_fn(|l| l != without));
        Self { equal, without, counts }
    }
}

impl Pointwise for Waves {
    fn plan(&self) -> Plan<'_> {
        let c = if self.equal { None } else { Some(Slope::Rows) };
        Plan { c, counts: self.counts.as_ref().map(|all| &all[..]), ..Plan::by_rows(3) }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        for l in 0..block.mu.ncols() {
            let share = f64::from(self.without != Some(l));
            for i in 0..block.mu.nrows() {
                let (mu, s, r) = (block.mu[(i, l)], block.s[(i, l)], block.r[(i, l)]);
                let y = block.rows.y[(i, 0)];
                out.a[(i, l)] = share * (y - mu + 0.3 * l as f64).sin();
                out.b[(i, l)] = -share * (0.4 + 0.2 * (mu + s).cos());
                out.c[(i, l)] = if self.equal { out.b[(i, l)] } else { -share * (0.3 + 0.1 * r) };
                out.sums[0] += mu;
                out.sums[1] += s * y;
                out.sums[2] += r;
            }
        }
    }
}

fn wave(rows: usize, columns: usize, from: f64) -> Mat<f64> {
    Mat::from_fn(rows, columns, |i, j| {
        (from + 1.7 * i as f64 + 0.9 * (j * (i % 7 + 2)) as f64).sin()
    })
}

fn lower(m: usize, from: f64) -> Mat<f64> {
    let wave = wave(m, m, from);
    Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5 + 0.1 * wave[(i, j)],
        std::cmp::Ordering::Greater => 0.05 * wave[(i, j)],
    })
}

/// All numbers of a pass; of lower triangles what counts.
fn numbers(passed: &Passed) -> Vec<f64> {
    let mut all = [passed.sums.clone(), passed.mean.clone()].concat();
    let mut add = |a: &Mat<f64>, whole: bool| {
        for j in 0..a.ncols() {
            all.extend(&a.col_as_slice(j)[if whole { 0 } else { j }..]);
        }
    };
    for sums in &passed.processes {
        add(&sums.phi_a, true);
        sums.grams.iter().chain(&sums.gram_c).for_each(|a| add(a, true));
        sums.roots.iter().chain(&sums.psi).for_each(|a| add(a, false));
    }
    passed.processes.iter().for_each(|sums| all.extend(&sums.inducing));
    all
}

fn agree(own: &[f64], other: &[f64], tolerance: f64, what: &str) {
    assert_eq!(own.len(), other.len(), "{what}");
    let size = own.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    for (i, (a, b)) in own.iter().zip(other).enumerate() {
        assert!((a - b).abs() <= tolerance * size, "{what}, number {i}: {a} and {b}");
    }
}

#[test]
fn together_or_by_lanes() {
    let (d, l) = (3, 2);
    // two sizes, so that memory of one is used for the other
    for (n, m) in [(700, 37), (900, 53), (256, 53), (1, 37)] {
        let (x, y) = (wave(n, d, 0.1), wave(n, 1, 0.7));
        let data = InMemory::new(x, y).unwrap();
        let z = wave(m, d, 0.4);
        let mut kernel = parse("matern52", Inputs::unnamed(d)).unwrap();
        kernel.initialise(&vec![1.3; d], 1.7);
        let mut kuu = Mat::zeros(m, m);
        let inducing = AtPoints { kernel: &*kernel, z: z.as_ref() };
        inducing.kuu(kuu.as_mut(), &mut Tape::off());
        let basis = CholeskyBasis::new(kuu.as_ref(), Jitter::Relative(1e-4)).unwrap();
        let mean = by_name("linear", d, 2 * l).unwrap();
        let q_mean = wave(m, l, 0.2);
        let (roots, forms) = ([lower(m, 0.3), lower(m, 2.3)], [wave(m, m, 0.6), wave(m, m, 0.8)]);
        let weights = wave(m, l, 1.1);
        let triangle = lower(m, 1.5);
        let symmetric = &triangle * triangle.transpose();
        let single = |a: &Mat<f64>| Mat::from_fn(m, m, |i, j| a[(i, j)] as f32);
        let (triangle32, symmetric32) = (single(&triangle), single(&symmetric));
        let through = Through { weights: weights.as_ref(), forms: &forms };
        let (t, e) = (triangle.as_ref(), symmetric.as_ref());
        let spreads = [
            ("roots", Spread::Roots(&roots), 1e-12),
            ("through", Spread::Through(through), 1e-12),
            ("shared", Spread::Shared(Some(e)), 1e-12),
            ("a point", Spread::Shared(None), 1e-12),
            ("products", Spread::Products(Factors::Double(t, e)), 1e-12),
            // sums of 256 or fewer rows are rounded to 24 bits in another order
            (
                "single",
                Spread::Products(Factors::Single(triangle32.as_ref(), symmetric32.as_ref())),
                1e-6,
            ),
        ];
        let both = [Precision::Double, Precision::Single];
        for (precision, (name, spread, tolerance)) in
            both.into_iter().flat_map(|own| spreads.map(|spread| (own, spread)))
        {
            // the process beside it is rounded too
            let tolerance: f64 = if precision == Precision::Single { 5e-5 } else { tolerance };
            // beside it a process of roots
            let process = |spread| Process {
                inducing: &inducing,
                basis: &basis,
                mean: q_mean.as_ref(),
                spread,
            };
            let processes = [process(spread), process(Spread::Roots(&roots))];
            for equal in [true, false] {
                if !equal && matches!(spread, Spread::Through(_)) {
                    continue;
                }
                for want in [
                    Want::Value,
                    Want::Statistics,
                    Want::AllStatistics,
                    Want::GradientsAlone,
                    Want::Gradients,
                    Want::Adjoints { statistics: false },
                    Want::Adjoints { statistics: true },
                ] {
                    for without in [None, Some(3)] {
                        let pointwise = Waves::new(equal, without);
                        let job = Job {
                            processes: &processes,
                            mean: &*mean,
                            pointwise: &pointwise,
                            scale: 1.7,
                            want,
                        };
                        let what = format!(
                            "{name}, {precision:?}, n = {n}, m = {m}, {equal}, {want:?}, {without:?}"
                        );
                        let cpu = Cpu::default();
                        let (mut lanes, mut first) = (Passed::default(), Passed::default());
                        let mut double = Passed::default();
                        let task = (Precision::Double, &job);
                        go(&cpu, task, &data, &mut double, 4, Par::Seq).unwrap();
                        go(&cpu, (precision, &job), &data, &mut lanes, 4, Par::Seq).unwrap();
                        agree(&numbers(&lanes), &numbers(&double), tolerance.max(1e-12), &what);
                        for threads in [1, 2, 3] {
                            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                            let mut own = Passed::default();
                            let task = (precision, &job);
                            let run = || go(&cpu, task, &data, &mut own, 4, Par::rayon(0));
                            pool.build().unwrap().install(run).unwrap();
                            agree(&numbers(&lanes), &numbers(&own), tolerance, &what);
                            if threads == 1 {
                                first = own;
                            } else {
                                assert_eq!(numbers(&first), numbers(&own), "{what}");
                            }
                        }
                    }
                }
            }
        }
    }
}
