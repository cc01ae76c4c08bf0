//! Rates of what everything else is made of, GFLOP/s: plain products by this library and by `faer`,
//! with factors stored by columns and by rows, and Cholesky factors, inverses, sandwiches
//! and solves: `cargo run --release -p sparsegp-bench --bin products`. Medians, everything in turn
//! in every round; on one thread and on two.

use sparsegp::linalg::{
    Accum, Cholesky, Jitter, Mat, Par, Real, gemm, gram_lower, inner_gram, invert_lower,
    mirror_lower, par_for, sandwich_inverse, sized, solve_lower, times_triangular,
};
use sparsegp_bench::{median, noise};
use std::time::Instant;

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Random numbers in memory as evaluations have it.
fn matrix<T: Real>(rows: usize, columns: usize, seed: u64) -> Mat<T> {
    let from = noise(rows, columns, seed);
    let mut matrix = Mat::new();
    sized(&mut matrix, rows, columns);
    for j in 0..columns {
        (0..rows).for_each(|i| matrix[(i, j)] = T::of(from[(i, j)]));
    }
    matrix
}

/// (m×k)·(k×n) on one thread, from factors by columns and by rows.
fn plain<T: Real>(name: &str, [m, n, k]: [usize; 3]) {
    let (a, b) = (matrix::<T>(m, k, 1), matrix::<T>(k, n, 2));
    let (at, bt) = (matrix::<T>(k, m, 3), matrix::<T>(n, k, 4));
    let mut out = matrix::<T>(m, n, 5);
    let ways = [
        ("columns", a.as_ref(), b.as_ref()),
        ("left by rows", at.transpose(), b.as_ref()),
        ("right by rows", a.as_ref(), bt.transpose()),
        ("both by rows", at.transpose(), bt.transpose()),
    ];
    let mut times = [const { [Vec::new(), Vec::new()] }; 4];
    for _ in 0..rounds(m.max(n)) {
        for ((_, a, b), [own, other]) in ways.iter().zip(&mut times) {
            let one = T::of(1.0);
            own.push(seconds(|| gemm(out.as_mut(), Accum::Replace, *a, *b, one, Par::Seq)));
            let faer = faer::linalg::matmul::matmul;
            other.push(seconds(|| faer(out.as_mut(), Accum::Replace, *a, *b, one, Par::Seq)));
        }
    }
    let rate = |times: &Vec<f64>| 2e-9 * (m * n * k) as f64 / median(times.clone());
    print!("{name}  {m:4} × {k:4} · {k:4} × {n:4}:");
    for ((name, ..), [own, other]) in ways.iter().zip(&times) {
        print!("   {name} {:5.1} (faer {:5.1})", rate(own), rate(other));
    }
    println!();
}

fn rounds(size: usize) -> usize {
    if size > 1500 { 7 } else { 31 }
}

/// Times of one kind of work, with how many operations it has.
struct Work(&'static str, f64, Vec<f64>);

impl Work {
    fn take(&mut self, work: impl FnOnce()) {
        self.2.push(seconds(work));
    }
}

/// The n×n work of exact inference and of inducing points, and what a block of 256 rows has with a triangle of that size.
fn triangles(n: usize, threads: usize) {
    let par = par_for(n);
    let (a, rows) = (matrix::<f64>(n, n, 3), matrix::<f64>(256, n, 4));
    let mut s = matrix::<f64>(n, n, 5);
    gram_lower(s.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), 1.0, par);
    (0..n).for_each(|i| s[(i, i)] += n as f64);
    mirror_lower(s.as_mut());
    let positive = "it is positive definite";
    let mut factor = Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S").expect(positive);
    let l = factor.l.clone();
    let l = l.as_ref();
    let mut by_rows = matrix::<f64>(n, n, 6);
    by_rows.copy_from(l.transpose());
    let by_rows = by_rows.transpose();
    let (mut root, mut out, mut block) = (s.clone(), s.clone(), rows.clone());
    let (cube, of_rows) = ((n as f64).powi(3), 256.0 * (n as f64).powi(2));
    let mut works = [
        Work("product", 2.0 * cube, Vec::new()),
        Work("Cholesky", cube / 3.0, Vec::new()),
        Work("L⁻¹", cube / 3.0, Vec::new()),
        Work("LᵀL", cube / 3.0, Vec::new()),
        Work("L⁻ᵀSL⁻¹", cube, Vec::new()),
        Work("solve", cube, Vec::new()),
        Work("rows: solve", of_rows, Vec::new()),
        Work("with L by rows", of_rows, Vec::new()),
        Work("XL", of_rows, Vec::new()),
        Work("XLᵀ", of_rows, Vec::new()),
        Work("XᵀX", of_rows, Vec::new()),
    ];
    for _ in 0..rounds(n) {
        let [product, cholesky, inverse, gram, sandwich, solve, of_rows @ ..] = &mut works;
        product.take(|| gemm(out.as_mut(), Accum::Replace, a.as_ref(), s.as_ref(), 1.0, par));
        cholesky.take(|| factor.renew(s.as_ref(), Jitter::Absolute(0.0), "S").expect(positive));
        inverse.take(|| invert_lower(root.as_mut(), l, par));
        gram.take(|| inner_gram(out.as_mut(), l, par));
        let whole = s.clone();
        sandwich.take(|| drop(sandwich_inverse(l, whole, par)));
        out.copy_from(&s);
        solve.take(|| solve_lower(l, out.as_mut(), par));
        block.copy_from(&rows);
        let [row_solve, row_solve_too, times, transposed, row_gram] = of_rows;
        row_solve.take(|| solve_lower(l, block.transpose_mut(), Par::Seq));
        block.copy_from(&rows);
        row_solve_too.take(|| solve_lower(by_rows, block.transpose_mut(), Par::Seq));
        let (x, replace) = (rows.as_ref(), Accum::Replace);
        times.take(|| times_triangular(block.as_mut(), replace, x, l, false, Par::Seq));
        transposed.take(|| times_triangular(block.as_mut(), replace, x, l, true, Par::Seq));
        row_gram.take(|| gram_lower(out.as_mut(), replace, x, x, 1.0, Par::Seq));
    }
    print!("{threads} thread(s)  n = {n:4}:");
    for Work(name, operations, times) in works {
        print!("   {name} {:5.1}", 1e-9 * operations / median(times));
    }
    println!();
}

fn main() {
    for shape in [[2000; 3], [1024; 3], [256, 1024, 1024], [256, 512, 512], [256; 3]] {
        plain::<f64>("f64", shape);
    }
    for shape in [[2000; 3], [256, 1024, 1024], [256; 3]] {
        plain::<f32>("f32", shape);
    }
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            [100, 256, 512, 1024, 2000].into_iter().for_each(|n| triangles(n, threads))
        });
    }
}
