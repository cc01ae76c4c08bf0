//! Sums over rows: threads, streams and the order of rows.

use crate::problem::{Draw, KERNELS, Problem, draws, objective, problem, rounding};
use crate::streamed::Streamed;
use proptest::prelude::*;
use sparsegp::data::{InMemory, Source};
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;

const SPARSE: [&str; 6] =
    ["titsias2009", "spherical", "titsias2025", "fitc", "pep(alpha=0.3)", "upper"];

/// A problem larger than the property tests'.
fn large(n: usize, m: usize, kernel: &'static str) -> Problem {
    problem(&Draw { n, m, d: 2, p: 2, kernel, mean: "linear", seed: 20_250_607 })
}

/// Value and gradient to the last bit.
fn bits(name: &str, problem: &Problem, data: &dyn Source) -> Vec<u64> {
    let method = if name == "upper" { "titsias2009" } else { name };
    let evaluation = objective(name, &problem.with(method), data);
    let all = std::iter::once(evaluation.value).chain(evaluation.gradient);
    all.map(f64::to_bits).collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let problem = large(3000, 40, "matern32 + linear");
    for name in SPARSE.into_iter().chain(["exact"]) {
        // exact inference shares no sums over rows; a part of them is enough
        let n = if name == "exact" { 700 } else { 3000 };
        let (x, y) = (problem.data.x.as_ref(), problem.data.y.as_ref());
        let data =
            InMemory::new(x.subrows(0, n).to_owned(), y.subrows(0, n).to_owned()).expect("rows");
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("a pool of threads").install(|| bits(name, &problem, &data))
        };
        let one = on(1);
        assert_eq!(one, on(2), "{name}: two threads");
        assert_eq!(one, on(3), "{name}: three threads");
    }
}

#[test]
fn a_stream_gives_the_same_bits_as_memory() {
    // the rows of 16 lanes of 512 fill one chunk: 1, several and an incomplete last one; and a last
    // one that is a single block
    for n in [300, 9001, 8192 + 100] {
        let problem = large(n, 8, "matern52 + constant");
        let stream = Streamed(problem.data.clone());
        for name in SPARSE {
            let memory = bits(name, &problem, &problem.data);
            assert_eq!(memory, bits(name, &problem, &stream), "{name} {n}");
        }
        for name in ["titsias2025", "pep"] {
            let posterior = |data: &dyn Source| {
                let posterior = problem.with(name).posterior(&Cpu::default(), data);
                posterior.expect("well posed").q_mu().to_owned()
            };
            assert_eq!(posterior(&problem.data), posterior(&stream));
        }
    }
    let problem = large(200, 8, "rbf");
    let stream = Streamed(problem.data.clone());
    assert_eq!(bits("exact", &problem, &problem.data), bits("exact", &problem, &stream));
}

/// `data` with its rows in another order.
fn shuffled(data: &InMemory, step: usize) -> InMemory {
    let n = data.x.nrows();
    let at = |i: usize| (i * step + 3) % n;
    InMemory::new(
        Mat::from_fn(n, data.x.ncols(), |i, q| data.x[(at(i), q)]),
        Mat::from_fn(n, data.y.ncols(), |i, p| data.y[(at(i), p)]),
    )
    .expect("as many targets as inputs")
}

/// Sums in another order: what differs is rounding of the sums, 10⁻⁹ of the value.
///
/// Gradients may differ by what [`rounding`] says besides.
fn assert_same(name: &str, problem: &Problem, other: &InMemory) -> Result<(), TestCaseError> {
    let model = problem.with(if name == "upper" { "titsias2009" } else { name });
    let a = objective(name, &model, &problem.data);
    let b = objective(name, &model, other);
    prop_assert!((a.value - b.value).abs() <= 1e-9 * (1.0 + a.value.abs()), "{name} value");
    let size = a.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
    let lost = rounding(name, problem, &a);
    for (g, h) in a.gradient.iter().zip(&b.gradient) {
        prop_assert!((g - h).abs() <= 1e-9 * size + lost, "{name} gradient {g} {h} of {size}");
    }
    Ok(())
}

#[test]
fn the_order_of_blocks_does_not_matter() {
    // six blocks; 1201 has no factor in common with 3000
    let problem = large(3000, 40, "rbf + linear");
    for name in SPARSE {
        assert_same(name, &problem, &shuffled(&problem.data, 1201)).expect(name);
    }
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn the_order_of_rows_does_not_matter(draw in draws(KERNELS)) {
        let problem = problem(&draw);
        // n − 1 has no factor in common with n: the rows backwards, from the third on
        let other = shuffled(&problem.data, draw.n - 1);
        for name in SPARSE.into_iter().chain(["exact"]) {
            assert_same(name, &problem, &other)?;
        }
    }
}
