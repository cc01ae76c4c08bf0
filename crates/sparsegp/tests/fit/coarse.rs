//! Default fits whose inducing points are too few for what the rows know, and mixed functions that started as constants.

use crate::support::{fit, value};
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

const TRIALS: f64 = 1e6;

/// Rows of two inputs that know their latent value to a few thousandths.
fn precise(n: usize) -> InMemory {
    let mut rng = stream(3, "precise");
    let x = Mat::from_fn(n, 2, |_, _| 4.0 * uniform(&mut rng));
    let binomial = likelihoods::parse("binomial").expect("a likelihood");
    let f = |i: usize| 1.5 * (3.0 * x[(i, 0)]).sin() * (2.5 * x[(i, 1)]).cos();
    let y = Mat::from_fn(n, 1, |i, _| binomial.sample(TRIALS, &[f(i)], &mut rng));
    let mut rows = InMemory::new(x, y).expect("as many targets");
    rows.extra = vec![TRIALS; n];
    rows
}

fn trained(rows: &InMemory, options: FitOptions) -> Fitted {
    let dataset = Dataset::from_rows(rows.clone(), false).expect("a table");
    fit(&dataset, &options).expect("a fit")
}

#[test]
fn precise_rows_are_not_left_to_a_few_inducing_points() {
    let rows = precise(110);
    let options = FitOptions { likelihood: Some("binomial".into()), ..FitOptions::default() };
    let default = trained(&rows, options.clone());
    assert!(default.reason.contains("no inducing points"), "{}", default.reason);
    assert_eq!(default.model.method.name(), "tvgp");
    let exact = trained(&rows, FitOptions { method: "tvgp".into(), ..options.clone() });
    let objective = |fitted: &Fitted| fitted.objective().expect("it was trained");
    assert!((objective(&default) - objective(&exact)).abs() < 1.0, "{}", objective(&default));
    // who asks for points has them
    let asked = trained(&rows, FitOptions { inducing: Some(50), ..options });
    assert!(asked.model.method.is_sparse() && objective(&asked) < objective(&default) - 1e3);
}

#[test]
fn rows_that_points_are_enough_for_keep_them() {
    let mut rows = precise(110);
    let binomial = likelihoods::parse("binomial").expect("a likelihood");
    let mut rng = stream(4, "few trials");
    rows.y = Mat::from_fn(110, 1, |i, _| binomial.sample(3.0, &[rows.x[(i, 0)].sin()], &mut rng));
    rows.extra = vec![3.0; 110];
    let options = FitOptions { likelihood: Some("binomial".into()), ..FitOptions::default() };
    let fitted = trained(&rows, options);
    assert!(fitted.model.method.is_sparse(), "{}", fitted.reason);
    assert!(fitted.warnings.iter().all(|text| !text.contains("too few")), "{:?}", fitted.warnings);
}

/// One function in three targets, under noise that is larger than it: gradients vanish where the function and its weights
/// are small.
#[test]
fn a_function_that_targets_share_is_found_under_noise() {
    let mut rng = stream(1, "shared");
    let n = 250;
    let x = Mat::from_fn(n, 1, |_, _| 6.0 * uniform(&mut rng));
    let gaussian = likelihoods::parse("gaussian(variance=0.5)").expect("a likelihood");
    let weights = [0.6, -0.5, 0.1];
    let y = Mat::from_fn(n, 3, |i, p| {
        gaussian.sample(1.0, &[weights[p] * (4.0 * x[(i, 0)]).sin()], &mut rng)
    });
    let rows = InMemory::new(x, y).expect("as many targets");
    let options = FitOptions {
        likelihood: Some("coregionalised(outputs=3, latents=1)".into()),
        ..FitOptions::default()
    };
    let default = trained(&rows, options.clone());
    let set = vec![
        ("kernel.lengthscales".into(), vec![0.25]),
        ("likelihood.mixing".into(), vec![0.6, -0.5, 0.1]),
    ];
    let near = trained(&rows, FitOptions { set, pilot: 0, ..options });
    let [own, best] = [&default, &near].map(|f| f.objective().expect("it was trained"));
    let show = |f: &Fitted| {
        ["kernel.lengthscales", "kernel.variance", "likelihood.mixing", "likelihood.variance"]
            .map(|p| value(&f.model, p).to_vec())
    };
    assert!(
        own > best - 1.0,
        "{own} {best} {:?} {:?} {:?}",
        show(&default),
        show(&near),
        default.warnings
    );
    assert!(value(&default.model, "kernel.lengthscales")[0] < 2.0);
}
