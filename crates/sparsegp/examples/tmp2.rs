//! tmp
use sparsegp::linalg::*;
use std::time::Instant;
fn t<R>(name: &str, mut f: impl FnMut() -> R) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let s = Instant::now();
        std::hint::black_box(f());
        best = best.min(s.elapsed().as_secs_f64());
    }
    println!("{name:20} {:.1} ms", best * 1e3);
}
fn main() {
    for threads in [1, 2] {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let m: usize = std::env::args().nth(1).unwrap().parse().unwrap();
            println!("threads {threads}");
            let g = Mat::from_fn(2000, m, |i, j| ((i * 7 + j * 13) as f64).sin());
            let mut a = Mat::zeros(m, m);
            gram_lower(a.as_mut(), Accum::Replace, g.as_ref(), g.as_ref(), 1.0, Par::Seq);
            for i in 0..m {
                a[(i, i)] += 1.0;
            }
            mirror_lower(a.as_mut());
            let c = Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "a").unwrap();
            t("chol", || Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "a").unwrap());
            t("inverse", || c.inverse());
            t("inverse_root", || Cholesky::inverse_root(a.as_ref(), "a").unwrap());
            t("invert_lower", || invert_lower(c.l.as_ref(), par_for(m)));
            t("sandwich", || sandwich_inverse(c.l.as_ref(), a.clone(), par_for(m)));
            t("one solve T", || {
                let mut x = a.clone();
                solve_lower_transpose(c.l.as_ref(), x.as_mut(), par_for(m));
                x
            });
            t("one solve T rowmaj", || {
                let mut x = a.clone();
                solve_lower_transpose(c.l.as_ref(), x.as_mut().transpose_mut(), par_for(m));
                x
            });
            t("gemm", || {
                let mut x = Mat::zeros(m, m);
                gemm(x.as_mut(), Accum::Replace, a.as_ref(), c.l.as_ref(), 1.0, par_for(m));
                x
            });
            t("clone", || a.clone());
            t("mirror", || mirror_lower(a.as_mut()));
            t("symmetrise", || symmetrise(a.as_mut()));
            t("from_fn", || {
                Mat::from_fn(m, m, |i, j| a[(i, j)] / 2.0 + if i == j { 1.0 } else { 0.0 })
            });
        });
    }
}
