//! Inputs for the tests of the selectors.

use crate::rng;
use faer::Mat;

/// N×D numbers uniform on [0, 1).
pub(super) fn uniform(seed: u64, n: usize, d: usize) -> Mat<f64> {
    let mut generator = rng::stream(seed, "test");
    Mat::from_fn(n, d, |_, _| rng::uniform(&mut generator))
}

/// N rows around `count` centres that are far from each other in the first column.
pub(super) fn clusters(seed: u64, n: usize, d: usize, count: usize) -> Mat<f64> {
    let mut x = uniform(seed, n, d);
    for i in 0..n {
        x[(i, 0)] += 20.0 * (i % count) as f64;
    }
    x
}

/// The bits of a matrix.
pub(super) fn bits(x: &Mat<f64>) -> Vec<u64> {
    (0..x.ncols()).flat_map(|j| (0..x.nrows()).map(move |i| x[(i, j)].to_bits())).collect()
}

/// The same computation in pools of 1, 2 and 5 threads.
pub(super) fn in_pools<T: Send>(f: impl Fn() -> T + Sync) -> Vec<T> {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    [1, 2, 5].map(|threads| pool(threads).install(&f)).into()
}

/// The reference file of the selectors.
pub(super) fn reference() -> serde_json::Value {
    let root = std::env::var_os("SPARSEGP_REFERENCE").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reference"),
        Into::into,
    );
    let text = std::fs::read_to_string(root.join("streaming/selection.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A list of numbers in a reference file.
pub(super) fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// A matrix in a reference file.
pub(super) fn matrix(value: &serde_json::Value) -> Mat<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}
