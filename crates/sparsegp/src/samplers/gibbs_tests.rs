//! Gibbs chains: joint-distribution tests, equal laws, equal bits.

use super::diagnostics::effective_sample_size;
use super::gibbs::{Chain, GibbsOptions, sample};
use super::test_models::{model, rows};
use super::{Setting, Target};
use crate::data::InMemory;
use crate::likelihoods;
use crate::linalg::Mat;
use crate::rng;
use std::ops::ControlFlow;

/// Every likelihood whose y can be drawn, with what a row brings.
pub(super) const LAWS: [(&str, f64); 13] = [
    ("gaussian(variance=0.31)", 0.17),
    ("student-t(df=4.6, scale=0.4)", 1.0),
    ("laplace(scale=0.6)", 1.0),
    ("matern32(scale=0.7)", 1.0),
    ("logistic(scale=0.4)", 1.0),
    ("pseudo-huber(delta=0.9, scale=0.6)", 1.0),
    ("bernoulli(link=logit)", 1.0),
    ("binomial", 4.0),
    ("poisson-logistic(rate=3.1)", 1.3),
    ("negative-binomial(dispersion=0.7)", 2.3),
    ("heteroscedastic(scale=logistic, precision=2.6)", 1.0),
    ("hetero-student-t(scale=logistic, precision=2.6, df=3.4)", 1.0),
    ("logistic-softmax(classes=3, integration=laplace)", 1.0),
];

/// Geweke 2004: where y is drawn given f and f by the sweep given y, in turn, f has the law of its prior.
/// A sweep that is wrong anywhere drifts away from it.
fn joint(spec: &str, extra: f64, points: Option<&Mat<f64>>, target: Target) {
    let likelihood = likelihoods::parse(spec).unwrap();
    let each = likelihood.latents();
    let model = model(likelihood, points);
    let mut rng = rng::stream(11, spec);
    let mut data = rows(&[0.0, 0.0], extra);
    let mut draw_y = |data: &mut InMemory, f: &Mat<f64>| {
        for i in 0..2 {
            let own: Vec<f64> = (0..each).map(|l| f[(i, l)]).collect();
            data.y[(i, 0)] = model.likelihood.sample(extra, &own, &mut rng);
        }
    };
    let setting = Setting::new(&model, &data, target).unwrap();
    let mut chain = Chain::new(&setting, 5, 0).unwrap();
    let prior: Vec<[f64; 2]> = (0..each)
        .map(|l| {
            let mut k = [0.0; 2];
            model.kernels[l].diag(data.x.as_ref(), &mut k);
            [0.3 - 0.4 * l as f64, k[0]]
        })
        .collect();
    let steps = 20_000;
    let mut values = vec![Vec::with_capacity(steps); 2 * each];
    for _ in 0..steps {
        let f = chain.latent_values().clone();
        draw_y(&mut data, &f);
        let setting = Setting::new(&model, &data, target).unwrap();
        chain.sweep(&setting).unwrap();
        for l in 0..each {
            let d = chain.latent_values()[(0, l)] - prior[l][0];
            values[2 * l].push(d);
            values[2 * l + 1].push(d * d - prior[l][1]);
        }
    }
    for (at, values) in values.iter().enumerate() {
        let mean = values.iter().sum::<f64>() / steps as f64;
        let spread = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / steps as f64;
        let size = effective_sample_size(&[values]).unwrap();
        let error = (spread / size).sqrt();
        let what = if at % 2 == 0 { "mean" } else { "variance" };
        assert!(
            mean.abs() < 4.5 * error,
            "{spec} {target:?}: the {what} of latent function {} is off by {mean} ± {error}",
            at / 2
        );
    }
}

#[test]
fn sweeps_without_inducing_points_leave_the_joint_law() {
    for (spec, extra) in LAWS {
        joint(spec, extra, None, Target::Variational);
    }
}

#[test]
fn sweeps_of_the_model_with_independent_rows_leave_its_joint_law() {
    // f at the rows has the prior's variance in this model too
    let points = Mat::from_fn(2, 1, |i, _| [0.0, 1.7][i]);
    for (spec, extra) in LAWS {
        joint(spec, extra, Some(&points), Target::Fitc);
    }
}

/// z of one inducing point for every latent function, by a grid: its density is N(z; 0, I) exp Σ ℓᵢ. Means and variances.
fn best_q(setting: &Setting<'_>) -> Vec<[f64; 2]> {
    let latents = setting.latents();
    // enough for densities that are nearly normal and for tails that are a power
    let (half, step) = if latents == 1 { (2000_usize, 0.004) } else { (32, 0.2) };
    let side = 2 * half + 1;
    let (mut mass, mut sums) = (0.0, vec![[0.0; 2]; latents]);
    for at in 0..side.pow(latents as u32) {
        let place = |l: usize| (at / side.pow(l as u32)) % side;
        let z: Vec<f64> = (0..latents).map(|l| step * (place(l) as f64 - half as f64)).collect();
        let f = Mat::from_fn(setting.mu.nrows(), latents, |i, l| {
            setting.mu[(i, l)] + setting.features(l).a[(i, 0)] * z[l]
        });
        let prior = -0.5 * z.iter().map(|z| z * z).sum::<f64>();
        let w = (prior + setting.log_likelihood(&f)).exp();
        mass += w;
        for (sum, z) in sums.iter_mut().zip(&z) {
            sum[0] += w * z;
            sum[1] += w * z * z;
        }
    }
    let moments = |[first, second]: [f64; 2]| {
        let mean = first / mass;
        [mean, second / mass - mean * mean]
    };
    sums.into_iter().map(moments).collect()
}

#[test]
fn chains_have_the_law_of_the_best_q() {
    let point = Mat::from_fn(1, 1, |_, _| 0.5);
    let known = LAWS.iter().map(|(spec, _)| likelihoods::parse(spec).unwrap().name());
    let known: Vec<&str> = known.chain(["svm"]).collect();
    let names = likelihoods::augmented::names();
    assert_eq!(names.iter().find(|name| !known.contains(name)), None);
    for (spec, extra) in LAWS.into_iter().chain([("svm", 1.0)]) {
        let likelihood = likelihoods::parse(spec).unwrap();
        let (each, mut rng) = (likelihood.latents(), rng::stream(2, spec));
        let f = [0.9, -0.2, 0.4];
        let y: Vec<f64> = match spec {
            "svm" => vec![1.0, 0.0],
            _ => (0..2).map(|_| likelihood.sample(extra, &f[..each], &mut rng)).collect(),
        };
        let (model, data) = (model(likelihood, Some(&point)), rows(&y, extra));
        let setting = Setting::new(&model, &data, Target::Variational).unwrap();
        // much of f is left unexplained by the one point
        assert!(setting.averaged(1, 0) > 0.2);
        let exact = best_q(&setting);
        let options = GibbsOptions { chains: 2, draws: 12_000, ..GibbsOptions::default() };
        let draws = sample(&model, &data, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
        for (l, [mean, variance]) in exact.into_iter().enumerate() {
            for (what, g) in [
                ("mean", &(|d: f64| d) as &dyn Fn(f64) -> f64),
                ("variance", &|d: f64| d * d - variance),
            ] {
                let chains: Vec<Vec<f64>> = draws
                    .z
                    .iter()
                    .map(|chain| chain.iter().map(|z| g(z[(0, l)] - mean)).collect())
                    .collect();
                let all = || chains.iter().flatten();
                let n = all().count() as f64;
                let off = all().sum::<f64>() / n;
                let spread = all().map(|v| (v - off) * (v - off)).sum::<f64>() / n;
                let error = (spread / effective_sample_size(&chains).unwrap()).sqrt();
                assert!(off.abs() < 4.5 * error, "{spec}, {what} of z{l}: off by {off} ± {error}");
                assert!(error < 0.05, "{spec}: ± {error}");
            }
        }
    }
}

#[test]
fn with_inducing_points_at_the_rows_all_laws_are_one() {
    let y = [1.3, -0.4, 0.8];
    let points = rows(&y, 1.0).x;
    let mean = |points: Option<&Mat<f64>>, target: Target| {
        let model = model(likelihoods::parse("student-t(df=4.6, scale=0.4)").unwrap(), points);
        let options = GibbsOptions { chains: 2, draws: 6000, target, ..GibbsOptions::default() };
        let draws = sample(&model, &rows(&y, 1.0), &options, &mut |_, _| ControlFlow::Continue(()))
            .unwrap();
        let all: Vec<f64> = draws.f.iter().flatten().map(|f| f[(1, 0)]).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let exact = mean(None, Target::Variational);
    for target in [Target::Variational, Target::Fitc] {
        let found = mean(Some(&points), target);
        assert!((found - exact).abs() < 0.03, "{target:?}: {found} for {exact}");
    }
}

#[test]
fn draws_depend_only_on_the_seed() {
    let model = model(likelihoods::parse("bernoulli(link=logit)").unwrap(), None);
    let data = rows(&[1.0, 0.0, 1.0], 1.0);
    let options =
        GibbsOptions { chains: 3, draws: 20, burn_in: 5, thin: 2, ..GibbsOptions::default() };
    let run = |threads: usize, options: &GibbsOptions| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            sample(&model, &data, options, &mut |_, _| ControlFlow::Continue(())).unwrap()
        })
    };
    let (one, two) = (run(1, &options), run(2, &options));
    assert_eq!(one.f, two.f);
    assert_eq!(one.z, two.z);
    assert_eq!((one.f.len(), one.f[0].len()), (3, 20));
    let other = run(1, &GibbsOptions { seed: 1, ..options.clone() });
    assert_ne!(one.f, other.f);
    // the chains differ, and stopping keeps what there is
    assert_ne!(one.f[0], one.f[1]);
    let mut looks = 0;
    let stopped = sample(&model, &data, &options, &mut |_, _| {
        looks += 1;
        if looks == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert!(stopped.f[0].len() < 20);
    assert_eq!(stopped.f[0][..], one.f[0][..stopped.f[0].len()]);
    assert!(one.mixing(1e-3).is_some_and(|m| m.effective > 1.0 && m.split_rhat > 0.9));
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let mut watch = |_, _| ControlFlow::Continue(());
    let options = GibbsOptions::default();
    let probit = model(likelihoods::parse("bernoulli").unwrap(), None);
    let error = sample(&probit, &rows(&[1.0], 1.0), &options, &mut watch).unwrap_err();
    assert!(error.to_string().contains("no local variables"), "{error}");
    let logit = model(likelihoods::parse("bernoulli(link=logit)").unwrap(), None);
    let none = GibbsOptions { draws: 0, ..options.clone() };
    assert!(sample(&logit, &rows(&[1.0], 1.0), &none, &mut watch).is_err());
    let mut weighted = rows(&[1.0], 1.0);
    weighted.weights = vec![2.0];
    let error = sample(&logit, &weighted, &options, &mut watch).unwrap_err();
    assert!(error.to_string().contains("weights"), "{error}");
}
