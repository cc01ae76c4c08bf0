//! Several outputs by coregionalisation, against exact inference with the same kernel.

use crate::data::InMemory;
use crate::engine::Cpu;
use crate::kernels::{self, Inputs};
use crate::likelihoods;
use crate::linalg::Mat;
use crate::methods::find;
use crate::model::Model;

/// Two processes of the time, input 1, which share a label, input 0.
fn spec(unit: f64) -> String {
    format!(
        "matern32(variance=0.9, lengthscales={}, active_dims=[1]) * coregion(W=[[0.8, 0.1], [-0.5, 0.6], [0.3, -0.9]], kappa=[0.3, 0.5, 0.2], \
         active_dims=[0]) + matern12(variance=0.4, lengthscales={}, active_dims=[1]) * coregion(W=[0.4, 0.9, -1.3], kappa=[0.6, 0.1, 0.4], \
         active_dims=[0])",
        1.3 * unit,
        4.0 * unit
    )
}

fn model(method: &str, kernel: &str, inputs: usize) -> Model {
    let kernel = kernels::parse(kernel, Inputs::unnamed(inputs)).unwrap();
    let likelihood = likelihoods::parse("gaussian(variance=0.05)").unwrap();
    let builder = Model::builder(kernel, find(method).unwrap().method).likelihood(likelihood);
    builder.build(inputs, 1).unwrap()
}

/// Labels and uneven times in disorder: of every four rows two are at one time, some of them with one label.
fn places(n: usize, unit: f64) -> Mat<f64> {
    let t = |i: usize| {
        let i = i * 37 % n;
        let i = if i % 4 == 1 { i - 1 } else { i };
        unit * (0.07 * i as f64 + 0.5 * (i as f64 / 9.0).sin())
    };
    let label = |i: usize| ((i * i + i / 4) % 3) as f64;
    Mat::from_fn(n, 2, |i, q| if q == 0 { label(i) } else { t(i) })
}

fn rows(n: usize, unit: f64) -> InMemory {
    let x = places(n, unit);
    let y = Mat::from_fn(n, 1, |i, _| {
        (2.0 * x[(i, 1)] / unit + x[(i, 0)]).sin() + 0.2 * (5.0 * i as f64).cos()
    });
    let weights = (0..n).map(|i| 0.5 + 0.5 * (i % 3) as f64).collect();
    InMemory { x, y, weights, extra: Vec::new() }
}

fn close(found: f64, right: f64, scale: f64, what: &str) {
    assert!((found - right).abs() <= 1e-9 * (scale + right.abs()), "{what}: {found} and {right}");
}

/// Evidence, slopes, predictions, covariances and rows left out.
#[test]
fn outputs_are_those_of_exact_inference() {
    for (n, unit) in [(1, 1.0), (7, 1.0), (130, 1e-4), (130, 1e4), (300, 1.0)] {
        let (data, engine, spec) = (rows(n, unit), Cpu::default(), spec(unit));
        let [own, exact] = ["markov", "exact"].map(|method| model(method, &spec, 2));
        let found = own.evaluate(&engine, &data).unwrap();
        let right = exact.evaluate(&engine, &data).unwrap();
        let what = format!("{n} rows in units of {unit}");
        close(found.value, right.value, 1.0, &what);
        let names = own.params().into_iter();
        let names: Vec<String> = names.flat_map(|(path, param)| vec![path; param.len()]).collect();
        assert_eq!((names.len(), found.gradient.len()), (20, 20));
        for (k, name) in names.iter().enumerate() {
            let size =
                n as f64 / own.params().iter().find(|p| p.0 == *name).unwrap().1.value()[0].abs();
            close(found.gradient[k], right.gradient[k], size, &format!("{what}: {name}"));
        }
        let at = Mat::from_fn(40, 2, |i, q| match q {
            0 => (i % 3) as f64,
            _ => unit * (0.6 * (i / 2) as f64 - 1.0),
        });
        let [known, right] =
            [&own, &exact].map(|of| of.method.posterior(of, &engine, &data).unwrap());
        let (mean, covariance) = known.predict_f_full(at.as_ref()).unwrap();
        let (exactly, joint) = right.predict_f_full(at.as_ref()).unwrap();
        let (_, variance) = known.predict_f(at.as_ref()).unwrap();
        for i in 0..40 {
            close(mean[(i, 0)], exactly[(i, 0)], 1.0, &what);
            close(variance[(i, 0)], joint[0][(i, i)], 1.0, &what);
            (0..40).for_each(|j| close(covariance[0][(i, j)], joint[0][(i, j)], 1.0, &what));
        }
        let [left, right] =
            [(&own, &known), (&exact, &right)].map(|(of, by)| by.leave_one_out(of, &data).unwrap());
        for i in 0..n {
            close(left.mean[(i, 0)], right.mean[(i, 0)], 1.0, &what);
            close(left.log_density[(i, 0)], right.log_density[(i, 0)], 1.0, &what);
        }
    }
}

/// The slope of a label that few rows have is that of differences, too.
#[test]
fn slopes_of_labels_are_those_of_differences() {
    let (data, engine) = (rows(60, 1.0), Cpu::default());
    let own = model("markov", &spec(1.0), 2);
    let gradient = own.evaluate(&engine, &data).unwrap().gradient;
    let mut slot = 0;
    for (index, (path, param)) in own.params().iter().enumerate() {
        for k in 0..param.len() {
            let value = |by: f64| {
                let mut changed = own.clone();
                changed.params_mut()[index].1.value_mut()[k] += by;
                changed.evaluate(&engine, &data).unwrap().value
            };
            let step = 1e-5;
            let slope = (value(step) - value(-step)) / (2.0 * step);
            let off = (gradient[slot] - slope).abs();
            assert!(off < 1e-6 * (10.0 + slope.abs()), "{path}: {} {slope}", gradient[slot]);
            slot += 1;
        }
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let engine = Cpu::default();
    let refused = |kernel: &str, inputs: usize, words: &[&str]| {
        let x = Mat::from_fn(6, inputs, |i, q| ((i + q) % 2) as f64);
        let y = Mat::from_fn(6, 1, |i, _| i as f64);
        let data = InMemory::new(x, y).unwrap();
        let outcome = kernels::parse(kernel, Inputs::unnamed(inputs)).and_then(|kernel| {
            let own = Model::builder(kernel, find("markov").unwrap().method).build(inputs, 1)?;
            own.evaluate(&engine, &data)
        });
        let error = outcome.map(|_| ()).expect_err(kernel).to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{kernel}: {error}");
    };
    let coregion = "coregion(output_dim=2, active_dims=[1])";
    refused(&format!("matern32 * {coregion}"), 2, &["`matern32`", "2 inputs", "`active_dims`"]);
    refused(
        &format!("matern32(active_dims=[0]) * {coregion}"),
        3,
        &["`markov`", "one input", "there are 2", "`exact`"],
    );
    refused(
        &format!("matern32(active_dims=[0]) + matern12(active_dims=[1]) * {coregion}"),
        2,
        &["`markov`", "input 1", "labels", "`active_dims`"],
    );
    refused("coregion(output_dim=2)", 1, &["`markov`", "the time", "labels"]);
    refused(
        "matern52(active_dims=[0]) * coregion(output_dim=22, active_dims=[1])",
        2,
        &["66 states", "64", "labels"],
    );
    refused(
        "matern52(active_dims=[0]) * categorical(active_dims=[1])",
        2,
        &["`categorical`", "no state-space form", "coregion"],
    );
}
