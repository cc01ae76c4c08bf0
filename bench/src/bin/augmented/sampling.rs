//! Gibbs against random walks and Hamiltonian Monte Carlo at fixed hyperparameters, one thread.

use crate::common::{Table, digits, kernel, number, problem};
use sparsegp::data::InMemory;
use sparsegp::model::Model;
use sparsegp::samplers::gibbs::{self, GibbsOptions};
use sparsegp::samplers::hmc::{self, HmcOptions, Path};
use sparsegp::samplers::joint::Variables;
use sparsegp::samplers::metropolis::{self, MetropolisOptions};
use sparsegp::samplers::{Draws, Mixing};
use sparsegp_bench::load;
use std::ops::ControlFlow;
use std::time::Instant;

const PROBLEMS: [(&str, &str, bool); 4] = [
    ("heart", "bernoulli(link=logit)", true),
    ("housing", "student-t(df=3, scale=1)", false),
    ("housing", "laplace(scale=1)", false),
    ("housing", "matern32(scale=1)", false),
];

/// Time of a sample and what the draws say, of chains with so many sweeps each.
fn told(
    draws: &Draws,
    seconds: f64,
    chains: usize,
    sweeps: usize,
    acceptance: Option<f64>,
) -> Vec<String> {
    let each = seconds / (chains * sweeps) as f64;
    let Mixing { draws, lag_one, effective, split_rhat, .. } =
        draws.mixing(each).expect("enough draws");
    let rate = effective / (each * (chains * draws) as f64);
    vec![
        digits(1e3 * each),
        format!("{lag_one:.3}"),
        format!("{split_rhat:.3}"),
        digits(effective),
        digits(rate),
        acceptance.map_or("–".into(), |a| format!("{a:.2}")),
    ]
}

/// Runs them.
pub fn run(arguments: &[String]) {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    one.install(|| all(arguments));
}

fn all(arguments: &[String]) {
    let chains = number(arguments, "--chains", 5.0) as usize;
    let draws = number(arguments, "--draws", 1000.0) as usize;
    let lengthscale = number(arguments, "--lengthscale", 3.0);
    let grid = arguments.iter().any(|a| a == "--grid");
    println!("{chains} chains of {draws} draws, kernel {}\n", kernel(lengthscale, 1.0));
    let header = [
        "data",
        "likelihood",
        "sampler",
        "ms a sample",
        "lag 1",
        "split R̂",
        "least ESS",
        "ESS per second",
        "acceptance",
    ];
    let mut table = Table::new(arguments, &header);
    for (data, likelihood, classes) in PROBLEMS {
        let (model, rows, _) =
            problem(&load(data, classes), likelihood, &kernel(lengthscale, 1.0), "gibbs");
        let name = likelihood.split('(').next().unwrap_or(likelihood);
        let mut say = |sampler: &str, cells: Vec<String>| {
            let head = [data, name, sampler].map(str::to_owned);
            table.row(&[&head[..], &cells].concat());
        };
        let burn_in = 50;
        let options = GibbsOptions { chains, draws, burn_in, ..GibbsOptions::default() };
        let clock = Instant::now();
        let found = gibbs::sample(&model, &rows, &options, &mut |_, _| ControlFlow::Continue(()));
        let seconds = clock.elapsed().as_secs_f64();
        say("Gibbs", told(&found.expect("chains"), seconds, chains, burn_in + draws, None));
        let burn_in = 1000;
        let options = MetropolisOptions { chains, draws, burn_in, ..MetropolisOptions::default() };
        let clock = Instant::now();
        let found =
            metropolis::sample(&model, &rows, &options, &mut |_, _| ControlFlow::Continue(()))
                .expect("chains");
        let seconds = clock.elapsed().as_secs_f64();
        let accepted = Some(found.acceptance);
        say("random walk", told(&found.draws, seconds, chains, burn_in + draws, accepted));
        let mut paths = |label: &str, options: HmcOptions| {
            say(label, hamiltonian(&model, &rows, &options));
        };
        let own = HmcOptions { chains, draws, burn_in: 300, ..HmcOptions::default() };
        paths("HMC, 10 steps adapted", own.clone());
        let path = Path::NoUTurn { depth: 10 };
        paths("NUTS", HmcOptions { path, ..own.clone() });
        // the densities of Pólya-Gamma variables are contour integrals: hours
        if !classes {
            let augmented = HmcOptions { variables: Variables::Augmented, ..own.clone() };
            paths("HMC, 10 steps adapted, with local variables", augmented);
        }
        if grid {
            for step in [0.01, 0.05, 0.1] {
                for steps in [1, 2, 5, 10] {
                    let path = Path::Steps(steps);
                    let options = HmcOptions { step: Some(step), path, ..own.clone() };
                    paths(&format!("HMC, {steps} steps of {step}"), options);
                }
            }
        }
    }
}

fn hamiltonian(model: &Model, rows: &InMemory, options: &HmcOptions) -> Vec<String> {
    let clock = Instant::now();
    let found = hmc::sample(model, rows, options, &mut |_, _| ControlFlow::Continue(()));
    let seconds = clock.elapsed().as_secs_f64();
    let found = found.expect("chains");
    let sweeps = options.burn_in + options.draws;
    told(&found.draws, seconds, options.chains, sweeps, Some(found.acceptance))
}
