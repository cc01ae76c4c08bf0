//! A model file: from a table to a file, and back without the table. The command line and Python read it too.
//!
//! `cargo run --release -p sparsegp --example save_and_load`

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::io;
use sparsegp::linalg::Mat;

/// Saves a model, loads it again, and compares predictions.
pub fn main() -> sparsegp::Result<()> {
    let x = Mat::from_fn(100, 2, |i, j| ((3 * i + 7 * j) as f64 * 0.37).sin());
    let y = Mat::from_fn(100, 1, |i, _| x[(i, 0)] * x[(i, 1)]);
    let data = Dataset::from_arrays(x, y, true)?;
    let options = FitOptions {
        kernel: "rbf".into(),
        method: "titsias2025".into(),
        inducing: Some(20),
        ..FitOptions::default()
    };
    let fitted = fit(&data, &options, &Cpu::default(), &mut ())?;

    let folder = std::env::temp_dir().join(format!("sparsegp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| sparsegp::Error::io(&folder, &e))?;
    let path = folder.join("model.safetensors");
    io::save(&fitted, &path)?;
    let loaded = io::load(&path)?;
    std::fs::remove_dir_all(&folder).map_err(|e| sparsegp::Error::io(&folder, &e))?;

    let new = Mat::from_fn(3, 2, |i, j| 0.3 * i as f64 - 0.2 * j as f64);
    let (before, _) = fitted.predict(new.as_ref(), Of::Observations)?;
    let (after, _) = loaded.predict(new.as_ref(), Of::Observations)?;
    println!("{before:.4?}");
    assert_eq!(before, after); // to the last bit
    Ok(())
}
