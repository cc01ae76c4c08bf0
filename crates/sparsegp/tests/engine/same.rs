//! What must not change a bit: threads, chunks, and what the engine has done before.

use crate::dense::{Problem, problem};
use crate::rules::{Rule, all};
use crate::streamed::Streamed;
use sparsegp::data::{Rows, Source};
use sparsegp::engine::Cpu;

/// Rows of which never all are asked for at once.
struct Chunks(Streamed);

impl Source for Chunks {
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn inputs(&self) -> usize {
        self.0.inputs()
    }
    fn outputs(&self) -> usize {
        self.0.outputs()
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> sparsegp::Result<()>,
    ) -> sparsegp::Result<()> {
        assert!(chunk_rows < self.rows(), "{chunk_rows}: a stream is not to be held in memory");
        self.0.for_each_chunk(chunk_rows, f)
    }
}

/// Everything that both passes give.
fn bits(engine: &Cpu, problem: &Problem, rule: &Rule, data: &dyn Source) -> Vec<u64> {
    let parts = problem.parts();
    let q = problem.q();
    let sums = parts.statistics(engine, Some(q), rule, data, 1.5).expect("rows");
    let prior = parts.statistics(engine, None, rule, data, 1.5).expect("rows");
    let back = parts.gradients(engine, q, rule, data, 1.5).expect("rows");
    let mut all = back.sums;
    all.extend(back.kernel.into_iter().chain(back.mean));
    all.extend(back.z.col_iter().flat_map(|c| c.iter().copied().collect::<Vec<_>>()));
    for sums in [sums, prior] {
        all.extend(sums.sums);
        for a in [Some(sums.phi_a), Some(sums.gram), sums.gram_c].into_iter().flatten() {
            all.extend(a.col_iter().flat_map(|c| c.iter().copied().collect::<Vec<_>>()));
        }
    }
    assert!(all.iter().all(|v| v.is_finite()));
    all.into_iter().map(f64::to_bits).collect()
}

/// 8192 rows are one chunk of a stream (16 lanes of 512 rows): one and a part, the part of several
/// blocks or of a single one.
#[test]
fn neither_threads_nor_chunks_change_a_bit() {
    for n in [8192 + 1300, 8192 + 40] {
        let problem = problem(n, 5, 2);
        let stream = Chunks(Streamed(problem.data.clone()));
        for rule in all(2) {
            let on = |threads: usize, data: &dyn Source| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let work = || bits(&Cpu::default(), &problem, &rule, data);
                pool.expect("a pool of threads").install(work)
            };
            let one = on(1, &problem.data);
            for threads in [2, 3] {
                assert_eq!(one, on(threads, &problem.data), "{rule:?} on {threads} threads");
            }
            for threads in [1, 3] {
                assert_eq!(one, on(threads, &stream), "{rule:?}, chunks, {threads} threads");
            }
        }
    }
}

/// One engine keeps its buffers; other rules, numbers of rows, points and outputs leave no trace.
#[test]
fn buffers_leave_no_trace() {
    let engine = Cpu::default();
    let problems = [problem(1100, 7, 2), problem(37, 4, 1), problem(600, 9, 3)];
    for _ in 0..2 {
        for problem in &problems {
            for rule in all(problem.p) {
                let fresh = bits(&Cpu::default(), problem, &rule, &problem.data);
                assert_eq!(fresh, bits(&engine, problem, &rule, &problem.data), "{rule:?}");
            }
        }
    }
}
