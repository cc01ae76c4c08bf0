use super::*;
use crate::likelihoods::parse;
use crate::special::log_factorial;
use crate::testing::check_likelihood;

/// Gaussian noise, or counts: what the built-in likelihoods know in closed form.
#[derive(Clone, Debug)]
struct Own {
    counts: bool,
    slopes: bool,
    /// What is wrong, on purpose.
    wrong: Option<&'static str>,
}

const COUNTS: Own = Own { counts: true, slopes: false, wrong: None };
const NOISE: Own = Own { counts: false, slopes: false, wrong: None };

impl Density for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn parameters(&self) -> Vec<(String, Param)> {
        if self.counts { Vec::new() } else { vec![("variance".into(), Param::positive(0.7))] }
    }

    fn support(&self) -> Support {
        if self.counts { Support::Counts } else { Support::Real }
    }

    fn log_density(&self, p: &[&[f64]], y: &[f64], f: MatRef<f64>, out: &mut [f64]) {
        for (i, (out, y)) in out.iter_mut().zip(y).enumerate() {
            let f = f[(i, 0)];
            *out = match self.counts {
                true => y * f - f.exp() - log_factorial(*y),
                false => {
                    -0.5 * ((y - f).powi(2) / p[0][0] + (std::f64::consts::TAU * p[0][0]).ln())
                }
            };
            match self.wrong {
                Some("finite") => *out = f64::NAN,
                Some("constant") => *out += 0.3,
                _ => {}
            }
        }
    }

    fn has_slopes(&self) -> bool {
        self.slopes
    }

    fn slopes(
        &self,
        p: &[&[f64]],
        y: &[f64],
        f: MatRef<f64>,
        by_f: &mut Mat<f64>,
        by_parameters: &mut Mat<f64>,
    ) {
        let factor = if self.wrong == Some("slope") { 1.01 } else { 1.0 };
        for (i, y) in y.iter().enumerate() {
            let f = f[(i, 0)];
            if self.counts {
                by_f[(i, 0)] = y - f.exp();
                continue;
            }
            by_f[(i, 0)] = (y - f) / p[0][0];
            by_parameters[(i, 0)] = factor * 0.5 * ((y - f).powi(2) / p[0][0] - 1.0) / p[0][0];
        }
    }

    fn has_moments(&self) -> bool {
        self.slopes
    }

    fn moments(&self, p: &[&[f64]], f: MatRef<f64>, mean: &mut [f64], variance: &mut [f64]) {
        for i in 0..f.nrows() {
            let rate = f[(i, 0)].exp();
            (mean[i], variance[i]) = if self.counts { (rate, rate) } else { (f[(i, 0)], p[0][0]) };
        }
    }
}

/// Two latent functions: the mean and the logarithm of the deviation.
#[derive(Clone, Debug)]
struct Two;

impl Density for Two {
    fn name(&self) -> &'static str {
        "two"
    }

    fn parameters(&self) -> Vec<(String, Param)> {
        vec![("scale".into(), Param::positive(0.6))]
    }

    fn latents(&self) -> usize {
        2
    }

    fn log_density(&self, p: &[&[f64]], y: &[f64], f: MatRef<f64>, out: &mut [f64]) {
        for (i, (out, y)) in out.iter_mut().zip(y).enumerate() {
            let z = (y - f[(i, 0)]) / (p[0][0] * f[(i, 1)].exp());
            let log_scale = p[0][0].ln() + f[(i, 1)];
            *out = -0.5 * z * z - log_scale - 0.5 * std::f64::consts::TAU.ln();
        }
    }
}

fn target(y: f64) -> Target {
    Target { y, extra: 1.0 }
}

#[test]
fn expectations_and_slopes_are_right() {
    for slopes in [false, true] {
        let counts = General::new(Own { slopes, ..COUNTS }).unwrap();
        check_likelihood(&counts, &[target(0.0), target(4.0)]).unwrap();
        let noise = General::new(Own { slopes, ..NOISE }).unwrap();
        check_likelihood(&noise, &[target(-0.4), target(1.9)]).unwrap();
    }
    check_likelihood(&General::new(Two).unwrap(), &[target(-0.4), target(1.9)]).unwrap();
}

/// Value and slopes of one row.
fn expect(likelihood: &dyn Likelihood, target: Target, mean: f64, variance: f64) -> [f64; 4] {
    let (mut a, mut b, mut c) = ([0.0], [0.0], [0.0]);
    let params = &mut c[..likelihood.num_params()];
    let out = Slopes { mean: &mut a, variance: &mut b, params };
    let value = likelihood.expect(target, &[mean], &[variance], out);
    [value, a[0], b[0], c[0]]
}

#[test]
fn they_are_those_of_the_built_in_likelihoods() {
    let pairs = [
        (General::new(COUNTS).unwrap(), parse("poisson").unwrap(), [0.0, 3.0]),
        (General::new(NOISE).unwrap(), parse("gaussian(variance=0.7)").unwrap(), [-0.8, 2.3]),
    ];
    for (own, reference, targets) in pairs {
        // exposure 1, or no noise but that of the likelihood
        let extra = reference.extra().and_then(|e| e.default).unwrap_or(1.0);
        let target = |y| Target { y, extra };
        for y in targets {
            let marginals =
                [(0.3, 0.4), (-0.7, 1.3), (0.9, 3e-4), (0.6, 2e-6), (1.1, 1e-9), (0.2, 0.0)];
            for (mean, variance) in marginals {
                let found = expect(&own, target(y), mean, variance);
                let expected = expect(&*reference, target(y), mean, variance);
                for (at, (a, b)) in found.iter().zip(expected).enumerate() {
                    // the slope in a variance that is nearly 0 is a second difference
                    let close = if at == 2 && variance < 1e-8 { 2e-6 } else { 1e-7 };
                    assert!(
                        (a - b).abs() < close * (1.0 + b.abs()),
                        "{at}: {found:?} {expected:?}"
                    );
                }
                let (m, v) = ([mean], [variance]);
                let near = |a: f64, b: f64, what: &str| {
                    assert!((a - b).abs() < 1e-6 * (1.0 + b.abs()), "{what}: {a} and {b}");
                };
                let (a, b) = (own.predict(1.0, &m, &v), reference.predict(extra, &m, &v));
                near(a.0, b.0, "mean");
                near(a.1, b.1, "variance");
                let (a, b) = [&own as &dyn Likelihood, &*reference]
                    .map(|l| l.predict_log_density(target(y), &m, &v))
                    .into();
                near(a, b, "density");
                near(own.cdf(target(y), &m, &v), reference.cdf(target(y), &m, &v), "cdf");
                let (a, b) =
                    (own.quantile(1.0, &m, &v, 0.9), reference.quantile(extra, &m, &v, 0.9));
                near(a, b, "quantile");
            }
        }
    }
}

#[test]
fn rows_together_are_rows_one_by_one() {
    let own = General::new(NOISE).unwrap();
    // more than are asked for at once
    let n = 5000;
    let targets: Vec<Target> = (0..n).map(|i| target((i as f64).sin())).collect();
    let mean: Vec<f64> = (0..n).map(|i| (0.7 * i as f64).cos()).collect();
    let variance: Vec<f64> = (0..n).map(|i| if i % 7 == 0 { 0.0 } else { 0.3 }).collect();
    let mut all = [n, n, n, n].map(|count| vec![f64::NAN; count]);
    let [value, a, b, c] = &mut all;
    let out = Many { value, mean: a, variance: b, params: c };
    own.expect_rows(&targets, &mean, &variance, out);
    for i in (0..n).step_by(431).chain([n - 1]) {
        let single = expect(&own, targets[i], mean[i], variance[i]);
        for (which, one) in single.iter().enumerate() {
            let many = all[which][i];
            assert_eq!(one.to_bits(), many.to_bits(), "{i}: {one} and {many}");
        }
    }
}

#[test]
fn slopes_of_many_rows_are_those_of_each() {
    for slopes in [false, true] {
        let own = General::new(Own { slopes, ..NOISE }).unwrap();
        let targets = [target(0.4), target(-2.0)];
        let (mut value, mut slope) = ([f64::NAN; 2], [f64::NAN; 2]);
        own.log_prob_slopes(&targets, &[0.9, -0.3], &mut value, &mut slope);
        for (i, (y, f)) in [(0.4, 0.9), (-2.0, -0.3)].into_iter().enumerate() {
            let expected = [own.log_prob(target(y), &[f]), (y - f) / 0.7];
            assert!((value[i] - expected[0]).abs() < 1e-14, "{value:?}");
            assert!((slope[i] - expected[1]).abs() < 1e-8, "{slope:?}");
            let mut logs = [f64::NAN];
            own.log_probs(&[target(y)], &[f], &mut logs);
            assert_eq!(logs[0].to_bits(), expected[0].to_bits());
        }
    }
    // targets that cannot be are not asked for
    let counts = General::new(COUNTS).unwrap();
    let mut logs = [f64::NAN; 2];
    counts.log_probs(&[target(2.0), target(-1.0)], &[0.3, 0.3], &mut logs);
    assert!(logs[0].is_finite() && logs[1] == f64::NEG_INFINITY, "{logs:?}");
}

#[test]
fn the_trial_before_a_fit_finds_what_is_wrong() {
    let targets: Vec<Target> = (0..30).map(|i| target(f64::from(i % 4))).collect();
    for slopes in [false, true] {
        assert!(General::new(Own { slopes, ..NOISE }).unwrap().trial(&targets).is_ok());
        assert!(General::new(Own { slopes, ..COUNTS }).unwrap().trial(&targets).is_ok());
    }
    for (wrong, words) in [
        ("finite", "has the log density NaN"),
        ("constant", "it must be 1"),
        ("slope", "in `variance` for y"),
    ] {
        let own = General::new(Own { slopes: true, wrong: Some(wrong), ..NOISE }).unwrap();
        let error = own.trial(&targets).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("`own`"), "{wrong}: {error}");
    }
}

/// Gaussian noise of one deviation or another, far from where the latent function starts, or with a kink.
#[derive(Clone, Debug)]
struct Shape {
    at: f64,
    width: f64,
    kink: bool,
}

impl Density for Shape {
    fn name(&self) -> &'static str {
        "shape"
    }

    fn parameters(&self) -> Vec<(String, Param)> {
        vec![("width".into(), Param::positive(self.width))]
    }

    fn log_density(&self, p: &[&[f64]], y: &[f64], f: MatRef<f64>, out: &mut [f64]) {
        for (i, (out, y)) in out.iter_mut().zip(y).enumerate() {
            let z = (y - self.at - f[(i, 0)]) / p[0][0];
            *out = match self.kink {
                true => -z.abs() - (2.0 * p[0][0]).ln(),
                false => -0.5 * z * z - p[0][0].ln() - crate::special::HALF_LOG_TAU,
            };
        }
    }
}

#[test]
fn narrow_distant_and_kinked_densities_are_integrated() {
    for (at, width, kink) in [(0.0, 0.003, false), (4e5, 0.7, false), (-37.0, 0.02, true)] {
        let own = General::new(Shape { at, width, kink }).unwrap();
        let name = if kink { "laplace(scale=" } else { "gaussian(variance=" };
        let of = if kink { width } else { width * width };
        let reference = parse(&format!("{name}{of})")).unwrap();
        own.trial(&[target(at), target(at + 1.0)]).unwrap();
        let (m, v) = ([0.3], [0.8]);
        let here = |y: f64| Target { y, extra: 0.0 };
        let near = |a: f64, b: f64, what: &str, tolerance: f64| {
            assert!(
                (a - b).abs() < tolerance * (1.0 + b.abs()),
                "{what} {at} {width}: {a} and {b}"
            );
        };
        for y in [0.1, -4.0] {
            let (a, b) =
                (expect(&own, here(y + at), 0.3, 0.8), expect(&*reference, here(y), 0.3, 0.8));
            let parameter = if kink { 1.0 } else { 2.0 * width };
            // slopes of a kinked density are of size 1/width
            let tolerance = if kink { 1e-7 / width } else { 1e-6 };
            near(a[0], b[0], "value", 1e-7);
            near(a[1], b[1], "mean", tolerance);
            near(a[2], b[2], "variance", tolerance);
            near(a[3], b[3] * parameter, "width", 1e-6);
            let (a, b) = (
                own.predict_log_density(here(y + at), &m, &v),
                reference.predict_log_density(here(y), &m, &v),
            );
            near(a, b, "density", 1e-7);
            let (a, b) = (own.cdf(here(y + at), &m, &v), reference.cdf(here(y), &m, &v));
            near(a, b, "cdf", 1e-6);
        }
        // a kink between nodes, near and far, under variances of every size
        for (mean, variance) in [(0.1, 1e-2), (0.31, 1e-2), (0.8, 1e-2), (0.1003, 3e-5)] {
            let (own, right) = (
                expect(&own, here(0.1 + at), mean, variance),
                expect(&*reference, here(0.1), mean, variance),
            );
            let what = format!("{mean} {variance}");
            near(own[0], right[0], &format!("value {what}"), 1e-7);
            near(own[1], right[1], &format!("mean {what}"), if kink { 1e-7 / width } else { 1e-6 });
        }
        let (a, b) = (own.predict(0.0, &m, &v), reference.predict(0.0, &m, &v));
        near(a.0 - at, b.0, "mean", 1e-6);
        near(a.1, b.1, "variance", 1e-5);
        for level in [0.02, 0.5, 0.9] {
            let (a, b) = (own.quantile(0.0, &m, &v, level), reference.quantile(0.0, &m, &v, level));
            near(a - at, b, "quantile", 1e-6);
        }
    }
}
