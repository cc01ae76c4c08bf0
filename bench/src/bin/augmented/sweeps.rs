//! A Gibbs sweep against the factorisation and the products that it consists of.

use crate::common::{kernel, problem};
use sparsegp::data::Mask;
use sparsegp::linalg::{
    Accum, Cholesky, Jitter, Mat, Par, gemm, solve_lower, solve_lower_transpose,
};
use sparsegp::samplers::gibbs::Chain;
use sparsegp::samplers::{Setting, Target};
use sparsegp_bench::{load, median, noise};
use std::hint::black_box;
use std::time::Instant;

/// Runs it on one thread.
pub fn run() {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    one.install(all);
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// N = 500: B = I + Λ^½KΛ^½, its factor, Lε and Lz, two triangular solves and Lᵀt.
fn all() {
    println!("| N = 500 | ms a sweep | ms factor and products | ratio |\n|{}", " --- |".repeat(4));
    for (data, likelihood, classes) in [
        ("diabetes", "bernoulli(link=logit)", true),
        ("housing", "student-t(df=3, scale=1)", false),
    ] {
        let all = load(data, classes);
        let first = Mask::new("the first 500", (0..all.x.nrows()).map(|i| i < 500));
        let rows = all.rows_where(&first, true).expect("a mask of all rows");
        let (model, rows, _) = problem(&rows, likelihood, &kernel(3.0, 1.0), "gibbs");
        let n = rows.x.nrows();
        let setting = Setting::new(&model, &rows, Target::Variational).expect("a setting");
        let mut chain = Chain::new(&setting, 0, 0).expect("a chain");
        let mut k = Mat::zeros(n, n);
        let mut tape = sparsegp::kernels::Tape::off();
        model.kernel().evaluate(rows.x.as_ref(), None, k.as_mut(), &mut tape);
        let l = Cholesky::new(k.as_ref(), model.jitter, "K").expect("a factor").l;
        (0..n).for_each(|i| k[(i, i)] += 1.0);
        let mut b = Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "B").expect("a factor");
        let (z, mut row, mut out) = (noise(n, 1, 3), Mat::zeros(n, 1), Mat::zeros(n, 1));
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for round in 0..60 {
            let sweep = timed(|| chain.sweep(&setting).expect("a sweep"));
            let sum = timed(|| {
                b.renew(k.as_ref(), Jitter::Absolute(0.0), "B").expect("a factor");
                gemm(row.as_mut(), Accum::Replace, l.as_ref(), z.as_ref(), 1.0, Par::Seq);
                solve_lower(b.l.as_ref(), row.as_mut(), Par::Seq);
                solve_lower_transpose(b.l.as_ref(), row.as_mut(), Par::Seq);
                gemm(out.as_mut(), Accum::Replace, l.transpose(), row.as_ref(), 1.0, Par::Seq);
                gemm(row.as_mut(), Accum::Replace, l.as_ref(), out.as_ref(), 1.0, Par::Seq);
                black_box(&row);
            });
            if round > 4 {
                whole.push(sweep);
                parts.push(sum);
            }
        }
        let (whole, parts) = (1e3 * median(whole), 1e3 * median(parts));
        println!(
            "| {data}, {} | {whole:.2} | {parts:.2} | {:.2} |",
            likelihood.split('(').next().unwrap_or(likelihood),
            whole / parts
        );
    }
}
