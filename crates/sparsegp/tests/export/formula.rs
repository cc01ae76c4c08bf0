//! The formula gives what the model gives, or there is none.

use crate::models::{ALL, assert_same, inputs, learnt, options, outputs, regression, rows, target};
use sparsegp::export::Export;
use sparsegp::fit::{FitOptions, Of};
use sparsegp::linalg::Mat;

/// Rows that a model of so many inputs is compared at.
pub fn rows_for(inputs: usize) -> Mat<f64> {
    match inputs {
        3 => rows(),
        _ => Mat::from_fn(9, 2, |i, d| {
            [[1.0, 1e-3, 40.0, 2e5, 1e9, 0.0, -3.0, 33.3, 7.0][i], i as f64 - 4.0][d]
        }),
    }
}

#[test]
fn the_formula_gives_what_the_model_gives() {
    for (case, fitted) in ALL.iter() {
        let export = Export::new(fitted).unwrap_or_else(|error| panic!("{case}: {error}"));
        let x = rows_for(fitted.input_names.len());
        let latent = ["latent_mean", "latent_sd"].map(|name| outputs(&export, &x, name));
        let pair = [&latent[0][..], &latent[1][..]];
        assert_same(fitted, &x, pair, Of::Latent, 1e-8, case);
        let names: Vec<&str> = export.outputs().iter().map(|own| own.name).collect();
        if names.contains(&"mean") {
            let observed = ["mean", "sd"].map(|name| outputs(&export, &x, name));
            let pair = [&observed[0][..], &observed[1][..]];
            assert_same(fitted, &x, pair, Of::Observations, 1e-8, case);
        }
        if names.contains(&"probabilities") {
            let (own, expected) =
                (outputs(&export, &x, "probabilities"), fitted.predict_proba(x.as_ref()).unwrap());
            for i in 0..x.nrows() {
                assert!((0..2).all(|c| (own[i][c] - expected[(i, c)]).abs() < 1e-10), "{case} {i}");
            }
        }
        let latent_alone = names == ["latent_mean", "latent_sd"];
        let other = case == "negative-binomial"
            || case == "heteroscedastic"
            || case.ends_with("of two functions");
        assert_eq!(latent_alone, other, "{case}: {names:?}");
        assert_eq!(export.remark().is_some(), latent_alone || case == "poisson", "{case}");
    }
}

#[test]
fn what_has_no_formula_is_refused_by_name() {
    let refused = |options: &FitOptions| {
        let fitted = regression(options);
        Export::new(&fitted).unwrap_err().to_string()
    };
    let text = refused(&options("rbf + arccosine", "exact"));
    assert!(
        text.contains("the kernel `arccosine` cannot be exported")
            && text.contains("rbf, matern12"),
        "{text}"
    );
    // a kernel that is added is among those with formulas, or here
    for name in sparsegp::kernels::REGISTRY.iter().map(|entry| entry.name) {
        let other = ["arccosine", "convolutional", "warped", "sum", "product"].contains(&name);
        assert!(other || text.contains(name), "{name}: {text}");
    }
    let text = refused(&options("rbf", "deep(layers=2)"));
    assert!(text.contains("a closed formula") && text.contains("models of one layer"), "{text}");
    let text = refused(&options("rbf", "rsvgp"));
    assert!(text.contains("an inverse by products") && text.contains("`svgp`"), "{text}");
    let text = refused(&options("rbf", "vecchia"));
    assert!(text.contains("use `exact` or `titsias2025`"), "{text}");
    let x = Mat::from_fn(50, 1, |i, _| i as f64);
    let y = Mat::from_fn(50, 1, |i, _| (0.3 * i as f64).sin());
    let series = learnt(x, y, &options("matern32", "markov"));
    let text = Export::new(&series).unwrap_err().to_string();
    assert!(text.contains("use `exact` or `titsias2025`"), "{text}");
    let pairs = [("x0".to_owned(), "x0_sd".to_owned())];
    let noisy = regression(&options("rbf", "exact")).with_input_deviations_of(&pairs).unwrap();
    let text = Export::new(&noisy).unwrap_err().to_string();
    assert!(text.contains("inputs with standard deviations"), "{text}");
}

/// Nearly singular covariances: of points that are next to each other, with hardly any noise.
#[test]
fn covariances_that_are_nearly_singular_keep_six_digits() {
    let x = Mat::from_fn(60, 1, |i, _| i as f64 / 60.0 + 1e-7 * (i % 2) as f64);
    let y = Mat::from_fn(60, 1, |i, _| (5.0 * x[(i, 0)]).sin());
    for method in ["exact", "titsias2025"] {
        let mut own = options("rbf(lengthscales=3)", method);
        own.inducing = (method != "exact").then_some(40);
        own.set = vec![("likelihood.variance".into(), vec![1e-6])];
        own.train.max_iterations = 0;
        let fitted = learnt(x.clone(), y.clone(), &own);
        let export = Export::new(&fitted).unwrap();
        let rows = Mat::from_fn(5, 1, |i, _| [0.5, 0.501, -1.0, 3.0, 100.0][i]);
        let found = ["mean", "sd"].map(|name| outputs(&export, &rows, name));
        assert_same(&fitted, &rows, [&found[0], &found[1]], Of::Observations, 1e-6, method);
    }
}

#[test]
fn inputs_and_outputs_have_names() {
    let (x, n) = (inputs(40), 40);
    let y = Mat::from_fn(n, 2, |i, p| target(&x, i) + p as f64 * x[(i, 0)]);
    let fitted = learnt(x, y, &options("rbf", "titsias2025"));
    let export = Export::new(&fitted).unwrap();
    let names: Vec<String> = export.inputs().into_iter().map(|own| own.name).collect();
    assert_eq!(names, ["x0", "x1", "x2"]);
    assert!(export.inputs().iter().all(|own| own.kind == "number"));
    let outputs: Vec<(&str, Vec<String>)> =
        export.outputs().into_iter().map(|own| (own.name, own.columns)).collect();
    let both = || vec!["y0".to_owned(), "y1".to_owned()];
    let names = ["mean", "sd", "latent_mean", "latent_sd"];
    assert_eq!(outputs, names.map(|name| (name, both())));
    let one = Mat::zeros(1, 2);
    assert!(export.evaluate(one.as_ref()).unwrap_err().to_string().contains("3 columns"));
    // what is not a name of C
    for wrong in ["", "for", "2x", "a b", "größe"] {
        assert!(
            export.to_c(wrong).unwrap_err().to_string().contains("is not a name of C"),
            "{wrong}"
        );
    }
}
