//! What holds for every likelihood with local variables, far from unit parameters.

use super::augmented::{Augmented, Site, names};
use super::*;
use crate::rng;

/// Every registered likelihood that has local variables, with targets.
fn zoo() -> Vec<(Box<dyn Likelihood>, Vec<Target>)> {
    let case = |spec: &str, extra: f64, y: &[f64]| {
        let likelihood = parse(spec).unwrap();
        let targets: Vec<Target> = y.iter().map(|y| Target { y: *y, extra }).collect();
        for target in &targets {
            assert_eq!(likelihood.check(*target), Ok(()), "{spec}");
        }
        (likelihood, targets)
    };
    let real = [-2.1, 0.4, 7.3];
    vec![
        case("gaussian(variance=0.31)", 0.17, &real),
        case("student-t(df=4.6, scale=0.3)", 0.0, &real),
        case("laplace(scale=0.6)", 0.0, &real),
        case("matern32(scale=0.7)", 0.0, &real),
        case("logistic(scale=0.4)", 0.0, &real),
        case("pseudo-huber(delta=0.9, scale=0.6)", 0.0, &real),
        case("bernoulli(link=logit)", 1.0, &[0.0, 1.0]),
        case("svm", 1.0, &[0.0, 1.0]),
        case("binomial", 7.0, &[0.0, 3.0, 7.0]),
        case("poisson-logistic(rate=3.1)", 2.3, &[0.0, 3.0, 11.0]),
        case("negative-binomial(dispersion=0.7)", 2.3, &[0.0, 3.0, 40.0]),
        case("heteroscedastic(scale=logistic, precision=2.6)", 0.0, &real),
        case("hetero-student-t(scale=logistic, precision=2.6, df=3.4)", 0.0, &real),
        case("logistic-softmax(classes=3, integration=laplace)", 0.0, &[0.0, 1.0, 2.0]),
        case(
            "logistic-softmax(classes=3, integration=laplace, scales=[1.3, 2.1, 0.4])",
            0.0,
            &[0.0, 1.0, 2.0],
        ),
        case(
            "logistic-softmax(classes=4, integration=laplace, scales=[1.3, 2.1, 0.4, 0.7], constant=0.6)",
            0.0,
            &[0.0, 1.0, 2.0, 3.0],
        ),
        case(
            "logistic-softmax(classes=3, integration=laplace, scales=[1.3, 2.1, 0.4], \
             augmentation=mean-field)",
            0.0,
            &[0.0, 1.0, 2.0],
        ),
        case(
            "logistic-softmax(classes=4, integration=laplace, scales=[1.3, 2.1, 0.4, 0.7], constant=0.6, \
             augmentation=mean-field)",
            0.0,
            &[0.0, 1.0, 2.0, 3.0],
        ),
    ]
}

const PLACES: [([f64; 3], [f64; 3]); 3] = [
    ([0.3, -0.6, 0.9], [0.4, 0.25, 0.9]),
    ([-1.2, 0.4, 0.2], [1.3, 0.6, 0.15]),
    ([2.8, -1.1, -1.4], [0.08, 2.11, 0.05]),
];

pub(super) struct Found {
    pub(super) value: f64,
    pub(super) mean: Vec<f64>,
    pub(super) variance: Vec<f64>,
    pub(super) params: Vec<f64>,
}

/// Whether its bound has a gap where f is known, and is not that of its draws.
fn mean_field(l: &dyn Likelihood) -> bool {
    l.to_json()["augmentation"] == "mean-field"
}

fn of(l: &dyn Likelihood) -> &dyn Augmented {
    l.augmented().expect("local variables")
}

fn call(l: &dyn Likelihood, m: &[f64], work: impl FnOnce(Slopes<'_>) -> f64) -> Found {
    let k = m.len();
    let (mut mean, mut variance) = (vec![f64::NAN; k], vec![f64::NAN; k]);
    let mut params = vec![f64::NAN; l.num_params()];
    let slopes = Slopes { mean: &mut mean, variance: &mut variance, params: &mut params };
    let value = work(slopes);
    Found { value, mean, variance, params }
}

pub(super) fn bound(l: &dyn Likelihood, t: Target, m: &[f64], v: &[f64]) -> Found {
    call(l, m, |slopes| of(l).expect(t, m, v, slopes))
}

pub(super) fn close(own: f64, expected: f64, tolerance: f64, what: &str) {
    let allowed = tolerance * (1.0 + expected.abs());
    assert!((own - expected).abs() <= allowed, "{what}: {own:e} for {expected:e}");
}

pub(super) fn difference(h: f64, g: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (g(h) - g(-h)) - (g(2.0 * h) - g(-2.0 * h))) / (12.0 * h)
}

#[test]
fn every_registered_likelihood_with_local_variables_is_in_the_zoo() {
    let known: Vec<&str> = zoo().iter().map(|(l, _)| l.name()).collect();
    assert_eq!(names().iter().find(|name| !known.contains(name)), None);
    for (l, _) in zoo() {
        assert!(find(l.name()).unwrap().augmented, "{}", l.name());
    }
    for entry in REGISTRY.iter().filter(|e| !e.augmented) {
        let built = parse(entry.name).or_else(|_| parse(&format!("{}(classes=3)", entry.name)));
        assert!(built.is_ok_and(|l| l.augmented().is_none()), "{}", entry.name);
    }
    assert!(parse("bernoulli").unwrap().augmented().is_none(), "the probit has none");
}

#[test]
fn slopes_are_those_of_the_bound() {
    for (l, targets) in zoo() {
        let k = l.latents();
        for t in targets {
            for (m, v) in &PLACES {
                let (m, v) = (&m[..k], &v[..k]);
                let what = format!("{} {t:?} {m:?}", l.to_json());
                let found = bound(&*l, t, m, v);
                for j in 0..k {
                    let moved = |which: &[f64], d: f64| {
                        let mut other = which.to_vec();
                        other[j] += d;
                        other
                    };
                    let slope = difference(1e-3, |d| bound(&*l, t, &moved(m, d), v).value);
                    close(found.mean[j], slope, 1e-8, &format!("{what} mean {j}"));
                    let h = 1e-3 * v[j];
                    let slope = difference(h, |d| bound(&*l, t, m, &moved(v, d)).value);
                    close(found.variance[j], slope, 1e-8, &format!("{what} variance {j}"));
                    assert!(found.variance[j] <= 0.0, "{what}: a negative precision");
                }
                let mut at = 0;
                for (path, param) in l.params() {
                    for entry in 0..param.len() {
                        let slope = difference(2e-4, |d| {
                            let mut other = l.clone();
                            let params = &mut other.params_mut();
                            let own = params.iter_mut().find(|(p, _)| *p == path).unwrap();
                            let mut values = param.value().to_vec();
                            values[entry] += d;
                            own.1.set(&path, &values).unwrap();
                            bound(&*other, t, m, v).value
                        });
                        close(found.params[at], slope, 1e-8, &format!("{what} {path}"));
                        at += 1;
                    }
                }
            }
        }
    }
}

#[test]
fn it_is_a_bound_that_is_tight_without_variance() {
    for (l, targets) in zoo() {
        let k = l.latents();
        for t in targets {
            for (m, v) in &PLACES {
                let (m, v) = (&m[..k], &v[..k]);
                let what = format!("{} {t:?} {m:?}", l.to_json());
                let found = bound(&*l, t, m, &vec![0.0; k]).value;
                let log = l.log_prob(t, m);
                if mean_field(&*l) {
                    assert!(found < log, "{what} without variance: {found} {log}");
                } else {
                    close(found, log, 1e-12, &format!("{what} without variance"));
                }
                let expected = call(&*l, m, |slopes| l.expect(t, m, v, slopes)).value;
                let found = bound(&*l, t, m, v).value;
                let tight = l.name() == "gaussian";
                // rules of 20 points are not exact
                let rule = if tight { 1e-12 } else { 2e-3 };
                assert!(found <= expected + rule, "{what}: {found} above {expected}");
                assert!(!tight || found >= expected - rule, "{what}: {found} {expected}");
            }
        }
    }
}

/// Fisher's identity: the mean of the score of p(y, ω | f) over ω given f and y is that of p(y | f),
/// E[a − λf] = ∂ log p(y | f)/∂f. So the draws have the law of the local variables where it matters: the same
/// identity with the second derivative, E[(a − λf)² − λ] − score² = ∂², tells their spread.
#[test]
fn draws_given_f_have_the_score_and_the_curvature_of_the_density() {
    for (index, (l, targets)) in zoo().into_iter().enumerate() {
        let k = l.latents();
        let augmented = of(&*l);
        let mut rng = rng::stream(index as u64, "local variables");
        for t in targets {
            for f in [[0.35, -0.8, 0.5], [-1.2, 1.4, -0.3]] {
                let f = &f[..k];
                let draws = 20_000;
                let mut sums = vec![[0.0; 4]; k];
                for _ in 0..draws {
                    let mut sites = vec![Site::default(); k];
                    for turn in 0..augmented.turns() {
                        augmented.draw(turn, t, f, &vec![0.0; k], &mut rng, &mut sites);
                    }
                    for j in 0..k {
                        let score = sites[j].potential - sites[j].precision * f[j];
                        let second = score * score - sites[j].precision;
                        assert!(sites[j].precision >= 0.0, "{} {:?}", l.to_json(), sites[j]);
                        for (sum, term) in
                            sums[j].iter_mut().zip([score, score * score, second, second * second])
                        {
                            *sum += term / f64::from(draws);
                        }
                    }
                }
                for j in 0..k {
                    let what = format!("{} {t:?} {f:?} {j}", l.to_json());
                    let log = |d: f64| {
                        let mut other = f.to_vec();
                        other[j] += d;
                        l.log_prob(t, &other)
                    };
                    let h = 1e-3;
                    let slope = difference(h, log);
                    let bend = (16.0 * (log(h) + log(-h))
                        - log(2.0 * h)
                        - log(-2.0 * h)
                        - 30.0 * log(0.0))
                        / (12.0 * h * h);
                    let [first, square, second, fourth] = sums[j];
                    let spread = |square: f64, mean: f64| {
                        ((square - mean * mean).max(0.0) / f64::from(draws)).sqrt()
                    };
                    let error = (first - slope).abs();
                    let allowed = 4.5 * spread(square, first) + 1e-8 * (1.0 + slope.abs());
                    assert!(error <= allowed, "{what} score: {first} for {slope}");
                    let expected = bend + slope * slope;
                    let error = (second - expected).abs();
                    let allowed = 4.5 * spread(fourth, second) + 1e-5 * (1.0 + expected.abs());
                    assert!(error <= allowed, "{what} curvature: {second} for {expected}");
                }
            }
        }
    }
}

/// With a spread of f the local variables have their optimal q, whose mean site is that of the bound.
#[test]
fn draws_with_a_variance_have_the_mean_of_the_bounds_sites() {
    let zoo = zoo().into_iter().filter(|(l, _)| !mean_field(&**l));
    for (index, (l, targets)) in zoo.enumerate() {
        let k = l.latents();
        let augmented = of(&*l);
        let mut rng = rng::stream(index as u64, "local variables with a spread");
        for t in targets {
            let (m, v) = (&PLACES[1].0[..k], &PLACES[1].1[..k]);
            let found = bound(&*l, t, m, v);
            let draws = 20_000;
            let mut sums = vec![[0.0; 2]; k];
            for _ in 0..draws {
                let mut sites = vec![Site::default(); k];
                for turn in 0..augmented.turns() {
                    augmented.draw(turn, t, m, v, &mut rng, &mut sites);
                }
                for j in 0..k {
                    sums[j][0] += sites[j].precision / f64::from(draws);
                    sums[j][1] += sites[j].precision * sites[j].precision / f64::from(draws);
                }
            }
            for (j, [mean, square]) in sums.into_iter().enumerate() {
                let precision = -2.0 * found.variance[j];
                let spread = ((square - mean * mean).max(0.0) / f64::from(draws)).sqrt();
                let what = format!("{} {t:?} {j}: {mean} for {precision}", l.to_json());
                assert!((mean - precision).abs() <= 4.5 * spread + 1e-9 * precision, "{what}");
            }
        }
    }
}

/// Sets what has an update in closed form. Returns which numbers have one.
fn update(l: &mut Box<dyn Likelihood>, rows: &[(Target, &[f64], &[f64])]) -> Vec<bool> {
    let updated = super::augmented::closed_form(of(&**l), rows.iter().copied());
    let mut rest = &updated[..];
    for (path, param) in l.params_mut() {
        let Some((own, tail)) = rest.split_at_checked(param.len()) else { break };
        rest = tail;
        let new: Vec<f64> =
            param.value().iter().zip(own).map(|(old, new)| new.unwrap_or(*old)).collect();
        param.set(&path, &new).unwrap();
    }
    updated.iter().map(Option::is_some).collect()
}

/// At fixed q(f), over rows.
#[test]
fn updates_in_closed_form_never_lower_the_bound_and_end_where_its_slope_is_0() {
    let mut seen = Vec::new();
    for (mut l, mut targets) in zoo() {
        if l.name() == "gaussian" {
            targets.iter_mut().for_each(|t| t.extra = 0.0);
        }
        let k = l.latents();
        let targets = &targets;
        let rows: Vec<(Target, &[f64], &[f64])> = PLACES
            .iter()
            .flat_map(|(m, v)| targets.iter().map(move |t| (*t, &m[..k], &v[..k])))
            .collect();
        let sum = |l: &dyn Likelihood| -> f64 {
            rows.iter().map(|(t, m, v)| bound(l, *t, m, v).value).sum()
        };
        let what = l.to_json().to_string();
        let mut values = vec![sum(&*l)];
        let mut which = Vec::new();
        for step in 0..3000 {
            which = update(&mut l, &rows);
            values.push(sum(&*l));
            // some are the optimum at once
            let at_once = ["gaussian", "laplace", "poisson-logistic", "heteroscedastic"];
            if step == 0 && at_once.contains(&l.name()) {
                let last = values[1];
                update(&mut l, &rows);
                close(sum(&*l), last, 1e-14, &what);
            }
        }
        let rounding = 1e-13 * (1.0 + values[0].abs());
        let falls = values.windows(2).position(|pair| pair[1] < pair[0] - rounding);
        assert_eq!(falls, None, "{what}: {:?}", &values[..8]);
        if !which.contains(&true) {
            assert_eq!(values[0], values[1], "{what}");
            continue;
        }
        assert!(values[1] > values[0] + 1e-3, "{what}: {values:?}");
        seen.push(l.name().to_owned());
        // by differences of the bound itself
        let mut at = 0;
        for (path, param) in l.params() {
            for entry in 0..param.len() {
                if which[at] {
                    let h = 1e-3 * param.value()[entry];
                    let slope = difference(h, |d| {
                        let mut other = l.clone();
                        let mut values = param.value().to_vec();
                        values[entry] += d;
                        let own = &mut other.params_mut();
                        let own = own.iter_mut().find(|(p, _)| *p == path).unwrap();
                        own.1.set(&path, &values).unwrap();
                        sum(&*other)
                    });
                    assert!(slope.abs() * param.value()[entry] < 1e-7, "{what} {path}: {slope}");
                }
                at += 1;
            }
        }
    }
    seen.dedup();
    let names = "gaussian, student-t, laplace, poisson-logistic, heteroscedastic, heteroscedastic-student-t, \
                 logistic-softmax";
    assert_eq!(seen.join(", "), names);
}

/// The likelihood is what is left of p(y, ω | f) when ω is integrated out: p(y | f)/p(y | f₀) is the mean of
/// exp{a(f − f₀) − ½λ(f² − f₀²)} over draws of ω given f₀.
#[test]
fn local_variables_integrate_out() {
    for (index, (l, targets)) in zoo().into_iter().enumerate() {
        let (k, augmented) = (l.latents(), of(&*l));
        let mut rng = rng::stream(index as u64, "integrated out");
        for t in targets {
            // from a place of larger precisions to others
            let start = [0.35, -0.4, 0.5];
            for turn in 0..augmented.turns() {
                let moves: Vec<usize> = (0..k).filter(|j| augmented.turn(*j) == turn).collect();
                for by in [-0.6, 0.3, 0.8] {
                    let from = &start[..k];
                    let mut to = from.to_vec();
                    moves.iter().for_each(|j| to[*j] += by);
                    // towards the centre the weights have no variance
                    let mut nearer = false;
                    if let Some(law) = augmented.super_gaussian() {
                        law.with(t, &mut |form, _| {
                            nearer = form.square(to[0], 0.0) < 0.8 * form.square(from[0], 0.0);
                        });
                    }
                    if nearer {
                        continue;
                    }
                    let draws = 20_000;
                    let mut sums = [0.0; 2];
                    for _ in 0..draws {
                        let mut sites = vec![Site::default(); k];
                        augmented.draw(turn, t, from, &vec![0.0; k], &mut rng, &mut sites);
                        let log: f64 = moves
                            .iter()
                            .map(|j| {
                                let (f, f0, site) = (to[*j], from[*j], sites[*j]);
                                site.potential * (f - f0) - 0.5 * site.precision * (f * f - f0 * f0)
                            })
                            .sum();
                        sums[0] += log.exp() / f64::from(draws);
                        sums[1] += (2.0 * log).exp() / f64::from(draws);
                    }
                    let expected = (l.log_prob(t, &to) - l.log_prob(t, from)).exp();
                    let spread = ((sums[1] - sums[0] * sums[0]).max(0.0) / f64::from(draws)).sqrt();
                    let what = format!("{} {t:?} turn {turn} by {by}", l.to_json());
                    let allowed = 4.5 * spread + 1e-9 * expected;
                    assert!(spread < 0.5 * expected.max(sums[0]), "{what}: ± {spread}");
                    let off = (sums[0] - expected).abs();
                    assert!(off <= allowed, "{what}: {} ± {spread} for {expected}", sums[0]);
                }
            }
        }
    }
}

#[test]
fn limits_are_finite() {
    for (l, targets) in zoo() {
        let k = l.latents();
        for t in targets {
            for m in [-700.0, -50.0, 0.0, 1e-9, 50.0, 700.0] {
                for v in [0.0, 1e-12, 1.0, 1e6] {
                    let found = bound(&*l, t, &vec![m; k], &vec![v; k]);
                    let what = format!("{} {t:?} {m} {v}", l.to_json());
                    assert!(found.value.is_finite(), "{what}: {}", found.value);
                    let all = found.mean.iter().chain(&found.variance).chain(&found.params);
                    assert!(all.clone().all(|x| x.is_finite()), "{what}: {:?}", all);
                }
            }
        }
    }
}

#[test]
fn special_cases_agree() {
    let at = |spec: &str, y: f64, extra: f64| {
        let l = parse(spec).unwrap();
        let found = bound(&*l, Target { y, extra }, &[0.7], &[1.3]);
        (found.value, found.mean[0], found.variance[0])
    };
    // one trial, and the negative binomial of y + r = 1 with t = f, are the logistic likelihood
    let logistic = at("bernoulli(link=logit)", 1.0, 1.0);
    assert_eq!(at("binomial", 1.0, 1.0), logistic);
    let zero = at("bernoulli(link=logit)", 0.0, 1.0);
    let negative = at("negative-binomial(dispersion=1)", 0.0, 1.0);
    close(negative.0, zero.0, 1e-12, "negative binomial");
    close(negative.1, zero.1, 1e-12, "negative binomial");
    // Jaakkola & Jordan's bound: log σ(c) + (yf − c)/2 − (σ(c) − ½)/2c (f² − c²) averaged
    let c = f64::sqrt(0.7 * 0.7 + 1.3);
    let sigma = 1.0 / (1.0 + (-c).exp());
    close(logistic.0, sigma.ln() + 0.5 * (0.7 - c), 1e-13, "Jaakkola & Jordan");
    // Student's t with many degrees of freedom is normal
    let normal = at("gaussian(variance=0.09)", 0.2, 0.0);
    let t = at("student-t(df=1e7, scale=0.3)", 0.2, 0.0);
    close(t.0, normal.0, 1e-5, "Student-t");
    close(t.1, normal.1, 1e-5, "Student-t");
    // so is its heteroscedastic form
    let hetero = |spec: &str| {
        let l = parse(spec).unwrap();
        bound(&*l, Target { y: 0.4, extra: 1.0 }, &[0.1, -0.6], &[0.2, 0.5])
    };
    let t = hetero("hetero-student-t(scale=logistic, precision=2.6, df=1e7)");
    let normal = hetero("heteroscedastic(scale=logistic, precision=2.6)");
    close(t.value, normal.value, 1e-5, "heteroscedastic");
    close(t.mean[1], normal.mean[1], 1e-5, "heteroscedastic");
}

/// Noise that is given only by log φ, with a φ that the library has too.
mod given {
    use super::super::augmented::{Form, SuperGaussian, log_constant, log_prob};
    use super::super::custom::{Custom, LogProb};
    use super::super::dual::Real;
    use super::*;
    use crate::distributions::mixing::{Complex64, Mixing, StudentT};

    /// φ of Student's t, only by its two logarithms: no mean, no variance, no sampler.
    struct Bare {
        df: f64,
        scale: f64,
    }

    impl Mixing for Bare {
        fn log_phi(&self, r: f64) -> f64 {
            -0.5 * (self.df + 1.0) * (r / (self.df * self.scale * self.scale)).ln_1p()
        }

        fn log_phi_complex(&self, s: Complex64) -> Complex64 {
            -0.5 * (self.df + 1.0) * (1.0 + s / (self.df * self.scale * self.scale)).ln()
        }
    }

    #[derive(Clone, Debug)]
    struct Noise {
        log_c: f64,
    }

    impl SuperGaussian for Noise {
        fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
            work(&Form::of_residual(self.log_c, target.y), &Bare { df: 4.6, scale: 0.3 });
        }
    }

    impl LogProb for Noise {
        fn name(&self) -> &'static str {
            "noise"
        }

        fn log_prob<T: Real>(&self, y: f64, extra: f64, f: &[T], _: &[T]) -> T {
            log_prob(self, Target { y, extra }, f[0])
        }

        fn augmented(&self) -> Option<&dyn Augmented> {
            Some(self)
        }
    }

    #[test]
    fn a_likelihood_of_ones_own_is_that_of_the_library() {
        let known = parse("student-t(df=4.6, scale=0.3)").unwrap();
        let log_c = log_constant(&Bare { df: 4.6, scale: 0.3 });
        close(log_c, log_constant(&StudentT::new(4.6, 0.3).unwrap()), 1e-14, "constant");
        let own = Custom::new(Noise { log_c }).unwrap();
        let mut rng = rng::stream(3, "own");
        for y in [-1.2, 0.3, 2.4] {
            let t = Target { y, extra: 1.0 };
            close(own.log_prob(t, &[0.4]), known.log_prob(t, &[0.4]), 1e-12, "log p");
            let (found, expected) =
                (bound(&own, t, &[0.4], &[0.7]), bound(&*known, t, &[0.4], &[0.7]));
            close(found.value, expected.value, 1e-12, "bound");
            close(found.mean[0], expected.mean[0], 1e-12, "by mean");
            close(found.variance[0], expected.variance[0], 1e-12, "by variance");
            // draws by inversion of the Laplace transform
            let draws = 4000;
            let mut mean = [0.0; 2];
            for (l, mean) in [&own as &dyn Likelihood, &*known].iter().zip(&mut mean) {
                for _ in 0..draws {
                    let mut site = [Site::default()];
                    of(*l).draw(0, t, &[0.4], &[0.7], &mut rng, &mut site);
                    *mean += site[0].precision / f64::from(draws);
                }
            }
            let precision = -2.0 * expected.variance[0];
            assert!(mean.iter().all(|m| (m / precision - 1.0).abs() < 0.06), "{y}: {mean:?}");
        }
    }
}
