//! The programs in `examples`, each of which checks what it prints.

#[path = "../examples/classification.rs"]
mod classification;
#[path = "../examples/counts.rs"]
mod counts;
#[path = "../examples/own_kernel.rs"]
mod own_kernel;
#[path = "../examples/own_likelihood.rs"]
mod own_likelihood;
#[path = "../examples/own_mean.rs"]
mod own_mean;
#[path = "../examples/regression.rs"]
mod regression;
#[path = "../examples/save_and_load.rs"]
mod save_and_load;
#[path = "../examples/series.rs"]
mod series;

#[test]
fn regression_runs() {
    regression::main().unwrap();
}

#[test]
fn classification_runs() {
    classification::main().unwrap();
}

#[test]
fn counts_runs() {
    counts::main().unwrap();
}

#[test]
fn own_kernel_runs() {
    own_kernel::main().unwrap();
}

#[test]
fn own_likelihood_runs() {
    own_likelihood::main().unwrap();
}

#[test]
fn own_mean_runs() {
    own_mean::main().unwrap();
}

#[test]
fn series_runs() {
    series::main().unwrap();
}

#[test]
fn save_and_load_runs() {
    save_and_load::main().unwrap();
}
