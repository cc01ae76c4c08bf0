//! The same bits for any number of threads and however the rows come.

use crate::problem::{Draw, points, problem};
use crate::streamed::Streamed;
use crate::support::{random_q, with_q};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;

#[test]
fn one_pass_gives_the_same_bits_on_any_number_of_threads() {
    let draw =
        Draw { n: 50, m: 9, d: 2, p: 2, kernel: "matern32 + linear", mean: "linear", seed: 3 };
    let mut problem = problem(&draw);
    let n = 20_011;
    let x = points(n, 2, 0.1, &mut problem.rng);
    let y = Mat::from_fn(n, 2, |i, p| (x[(i, 0)] * (1.3 + p as f64)).sin() + 0.1 * x[(i, 1)]);
    let data = InMemory::new(x, y).expect("as many targets as inputs");
    let q = random_q(draw.m, 2, false, true, &mut problem.rng);
    for method in ["svgp", "svgp2025", "svgp-spherical"] {
        let q = if method == "svgp-spherical" { q.clone().with_factors() } else { q.clone() };
        let model = with_q(&problem, method, q);
        let run = |threads: usize, streamed: bool| -> Vec<u64> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("a pool of threads").install(|| {
                let engine = Cpu::default();
                let evaluation = match streamed {
                    true => model.evaluate(&engine, &Streamed(data.clone())),
                    false => model.evaluate(&engine, &data),
                };
                let evaluation = evaluation.expect("well posed");
                let numbers = std::iter::once(evaluation.value).chain(evaluation.gradient);
                numbers.map(f64::to_bits).collect()
            })
        };
        let one = run(1, false);
        for (threads, streamed) in [(2, false), (3, false), (1, true), (3, true)] {
            assert_eq!(run(threads, streamed), one, "{method} {threads} {streamed}");
        }
    }
}
