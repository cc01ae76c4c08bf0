//! Predictive densities and probabilities against numbers of independent programs (integrals on fine grids in NumPy), and at the largest
//! and smallest latent values that there are.

use super::heteroscedastic::{HeteroscedasticGaussian, HeteroscedasticStudentT, Options};
use super::logistic_softmax::LogisticSoftmax;
use super::robust_max::RobustMax;
use super::softmax::Softmax;
use super::{Likelihood, Target, parse, registry::REGISTRY};

#[track_caller]
fn near(what: &str, own: f64, expected: f64, tolerance: f64) {
    let size = 1.0_f64.max(expected.abs());
    assert!((own - expected).abs() <= tolerance * size, "{what}: {own} {expected}");
}

fn target(y: f64) -> Target {
    Target { y, extra: 1.0 }
}

fn probabilities(likelihood: &dyn Likelihood, mean: &[f64], variance: &[f64]) -> Vec<f64> {
    let mut p = vec![f64::NAN; likelihood.classes().unwrap()];
    likelihood.probabilities(mean, variance, &mut p);
    p
}

#[test]
fn classes_far_from_the_data() {
    let softmax = Softmax::new(3).unwrap();
    let logistic = LogisticSoftmax::new(3).unwrap();
    /// Likelihood, means, variances and what is right.
    type Case<'a> = (&'a dyn Likelihood, [f64; 3], [f64; 3], [f64; 3]);
    let cases: [Case<'_>; 8] = [
        (
            &softmax,
            [-50.0, 30.0, 10.0],
            [2500.0, 1.3, 14400.0],
            [0.0347481744942891, 0.535076430298815, 0.430175395206898],
        ),
        (&softmax, [0.0; 3], [900.0; 3], [1.0 / 3.0; 3]),
        (
            &softmax,
            [250.0, -3.0, 20.0],
            [3600.0, 0.2, 625.0],
            [0.99979651103265, 2.26412483588692e-06, 0.00020122484251379],
        ),
        (
            &softmax,
            [5.0, -300.0, 4.0],
            [0.7, 0.4, 0.9],
            [0.682763350921021, 0.0, 0.317236649078755],
        ),
        (
            &logistic,
            [0.5, -20.0, 30.0],
            [0.6, 1600.0, 900.0],
            [0.398803993962842, 0.132781363278621, 0.468414642758504],
        ),
        (
            &logistic,
            [-60.0, -100.0, -150.0],
            [1.2, 1600.0, 900.0],
            [0.839844878177217, 0.158935780151854, 0.00121934167089658],
        ),
        (
            &logistic,
            [0.5, -0.3, 60.0],
            [0.6, 2.0, 3000.0],
            [0.337358123936067, 0.231179885917193, 0.431461990146755],
        ),
        (
            &logistic,
            [8.0, 3.0, -260.0],
            [500.0, 0.3, 400.0],
            [0.33470794664742, 0.665292053352552, 0.0],
        ),
    ];
    for (likelihood, mean, variance, expected) in cases {
        let p = probabilities(likelihood, &mean, &variance);
        for k in 0..3 {
            let name = format!("{} {mean:?} {k}", likelihood.name());
            near(&name, p[k], expected[k], 1e-10);
            let log = likelihood.predict_log_density(target(k as f64), &mean, &variance);
            if expected[k] > 0.0 {
                near(&name, log, expected[k].ln(), 1e-8);
            }
        }
    }
    near(
        "3e-133",
        softmax.predict_log_density(target(1.0), &[5.0, -300.0, 4.0], &[0.7, 0.4, 0.9]),
        3.3482287968975e-133_f64.ln(),
        1e-9,
    );
    let two = Softmax::new(2).unwrap();
    for (mean, variance, expected) in [
        (-3000.0, [100.0, 50.0], -2925.0),
        (-1e5, [1e4, 2.0], -94999.0),
        (-500.0, [1e5, 1.0], -2.865985088312116),
    ] {
        let log = two.predict_log_density(target(0.0), &[mean, 0.0], &variance);
        near(&format!("{mean}"), log, expected, 1e-9);
    }
}

/// Means and variances of every size, in every likelihood of classes: numbers of sum 1. What took a time that grows with 1e150 would
/// never end.
#[test]
fn classes_at_extremes() {
    let sizes = [0.0, 30.0, 1e6, 1e150, 1e300];
    for spec in [
        "softmax(classes=3)",
        "logistic-softmax(classes=3)",
        "logistic-softmax(classes=3, constant=0.5)",
        "robust-max(classes=3)",
        "bernoulli",
        "bernoulli(link=logit)",
        "svm",
        "ordinal(classes=3)",
    ] {
        let likelihood = parse(spec).unwrap();
        let k = likelihood.latents();
        for size in sizes {
            for spread in [0.0, 30.0, 1e6, 1e300] {
                for (mean, variance) in [
                    ([size, -size, 0.0], [spread; 3]),
                    ([size; 3], [spread, 0.3, 1.0]),
                    ([-size, -size, -0.5 * size], [0.2, spread, spread]),
                    ([1.7 * size, -1.7 * size, 0.0], [0.0, spread, 1.0]),
                ] {
                    let (mean, variance) = (&mean[..k], &variance[..k]);
                    let what = format!("{spec} {mean:?} {variance:?}");
                    let p = probabilities(&*likelihood, mean, variance);
                    near(&what, p.iter().sum(), 1.0, 1e-13);
                    assert!(p.iter().all(|p| (0.0..=1.0).contains(p)), "{what}: {p:?}");
                    for (y, p) in p.iter().enumerate() {
                        let log = likelihood.predict_log_density(target(y as f64), mean, variance);
                        assert!(!log.is_nan() && log <= 1e-9, "{what} {y}: {log}");
                        assert!(*p < 1e-6 || (log - p.ln()).abs() < 1e-6, "{what} {y}: {log} {p}");
                    }
                }
            }
        }
    }
}

/// Wide latent values where the ways of integration change.
#[test]
fn probabilities_do_not_jump_where_latent_values_are_called_wide() {
    for spec in [
        "softmax(classes=3)",
        "logistic-softmax(classes=3)",
        "logistic-softmax(classes=3, constant=0.5)",
    ] {
        let likelihood = parse(spec).unwrap();
        let k = likelihood.latents();
        for (inside, outside) in [(399.9999, 400.0001), (63.9999, 64.0001)] {
            let at = |v: f64, wide: f64| {
                probabilities(&*likelihood, &[3.0, -7.0, 0.2][..k], &[v, 0.8, wide][..k])
            };
            // slopes in the variances are below 1e-3
            for wide in [1.1, 401.0] {
                for (a, b) in at(inside, wide).iter().zip(at(outside, wide)) {
                    near(spec, *a, b, 1e-6);
                }
            }
        }
    }
}

#[test]
fn robust_max_is_one_probability_whatever_the_rule() {
    let mean = [1.78, -0.52, -2.19, 1.27, 2.78, -1.44, -0.15];
    let variance = [0.003, 0.004, 0.026, 0.001, 5.244, 0.009, 0.012];
    for spec in ["robust-max(classes=7)", "robust-max(classes=7, rule=20)"] {
        let own = parse(spec).unwrap();
        let p = probabilities(&*own, &mean, &variance);
        for (y, p) in p.iter().enumerate() {
            let log = own.predict_log_density(target(y as f64), &mean, &variance);
            near(spec, log, p.ln(), 1e-9);
        }
        // SciPy: adaptive integral of N(f; 2.78, 5.244) Π Φ, and the closed form of two classes
        let share = 0.668784953724757;
        near(spec, p[4], share * 0.999 + (1.0 - share) * 0.001 / 6.0, 1e-7);
    }
    let two = RobustMax::new(2).unwrap();
    let p = probabilities(&two, &[-0.85, 0.5], &[8.104, 0.003]);
    let z = 0.682298827947234;
    near("two", p[1], z * 0.999 + (1.0 - z) * 0.001, 1e-7);
}

#[test]
fn densities_of_changing_noise_at_any_variance_of_its_scale() {
    let normal = HeteroscedasticGaussian::new();
    for (mean, variance, y, expected) in [
        ([0.3, -0.4], [0.02, 4.0], 1.7, -2.898689694978165),
        ([0.3, 0.9], [0.001, 8.0], -6.0, -4.680261298197151),
        ([-0.2, 0.1], [0.5, 25.0], 40.0, -7.2754657413093184),
        ([-0.2, 0.1], [0.5, 0.02], 9.0, -18.87862896199585),
        ([0.1, -2.0], [0.0, 12.0], 0.1002, 4.293969203398923),
    ] {
        let own = normal.predict_log_density(target(y), &mean, &variance);
        near(&format!("normal {mean:?} {variance:?}"), own, expected, 1e-8);
    }
    let heavy = HeteroscedasticStudentT::new(3.3, Options::default()).unwrap();
    for (mean, variance, y, expected) in [
        ([0.3, -0.4], [0.02, 4.0], 1.7, -2.877771165815812),
        ([-0.2, 0.1], [0.5, 25.0], 40.0, -7.25089760135173),
        ([-0.2, 0.1], [0.5, 0.02], 9.0, -7.586350762366405),
        ([0.3, 0.9], [0.001, 8.0], -6.0, -4.663987970117969),
    ] {
        let own = heavy.predict_log_density(target(y), &mean, &variance);
        near(&format!("t {mean:?} {variance:?}"), own, expected, 1e-8);
    }
}

/// Their distribution functions rise by their densities, and quantiles invert them.
#[test]
fn distributions_of_changing_noise_are_those_of_its_densities() {
    for own in
        ["heteroscedastic", "heteroscedastic-student-t(df=3.3)", "heteroscedastic(scale=softplus)"]
    {
        let own = parse(own).unwrap();
        for v in [0.3, 9.0, 100.0, 900.0] {
            let (mean, variance) = ([0.4, -0.6], [0.2, v]);
            for y in [-3.0, 0.41, 2.0] {
                let h = 1e-3;
                let at = |y: f64| own.cdf(target(y), &mean, &variance);
                let slope = (8.0 * (at(y + h) - at(y - h)) - at(y + 2.0 * h) + at(y - 2.0 * h))
                    / (12.0 * h);
                let density = own.predict_log_density(target(y), &mean, &variance).exp();
                near(&format!("{} {v} {y}", own.name()), slope, density, 1e-6);
            }
            let q = own.quantile(1.0, &mean, &variance, 0.9);
            near(own.name(), own.cdf(target(q), &mean, &variance), 0.9, 1e-9);
        }
    }
}

/// The mode of p(y | f) N(f) may lie hundreds of deviations away, and p(y | f) may be a millionth as wide as N(f).
#[test]
fn surprising_and_vague_counts() {
    let poisson = parse("poisson").unwrap();
    for (y, mean, variance, expected) in [
        (1e6, 0.0, 1e-3, -95349.66007159647),
        (5000.0, 1.0, 1e-2, -2774.1976175279665),
        (3.0, 0.0, 1e8, -11.227891200048095),
        (0.0, 0.0, 1e8, -0.6931932367663626),
    ] {
        let own = poisson.predict_log_density(target(y), &[mean], &[variance]);
        near(&format!("{y} {mean} {variance}"), own, expected, 1e-9);
    }
}

/// Nothing is NaN and all ends, whatever the latent mean and variance.
#[test]
fn predictions_at_extremes() {
    for entry in REGISTRY.iter().filter(|e| e.name != "coregionalised") {
        let spec = match entry.name {
            "softmax" | "robust-max" | "logistic-softmax" | "ordinal" => {
                format!("{}(classes=3)", entry.name)
            }
            name => name.to_owned(),
        };
        let own = parse(&spec).unwrap();
        let k = own.latents();
        for mean in [30.0, -1e300] {
            for variance in [1e-300, 1e6, 1e300] {
                let what = format!("{spec} {mean} {variance}");
                // of changing noise its scale
                let mut m = vec![mean; k];
                if k > 1 {
                    m[0] = 0.3;
                }
                let v = vec![variance; k];
                let y = if spec == "beta" { 0.4 } else { 1.0 };
                let extra = if spec == "gaussian" { 0.2 } else { 1.0 };
                let t = Target { y, extra };
                let density = own.predict_log_density(t, &m, &v);
                assert!(!density.is_nan(), "{what}: density {density}");
                let below = own.cdf(t, &m, &v);
                assert!((-1e-9..=1.0 + 1e-9).contains(&below), "{what}: cdf {below}");
                let q = own.quantile(extra, &m, &v, 0.9);
                assert!(!q.is_nan(), "{what}: quantile {q}");
                let (expected, spread) = own.predict(extra, &m, &v);
                assert!(!expected.is_nan() && !spread.is_nan(), "{what}: {expected} {spread}");
            }
        }
    }
}
