//! Chains of f at fixed hyperparameters, which Tables 2 to 5 and Figure 4 share.

use crate::thesis::augmented::{kernel, problem};
use sparsegp::data::InMemory;
use sparsegp::model::Model;
use sparsegp::samplers::Draws;
use sparsegp::samplers::gibbs::{self, GibbsOptions};
use sparsegp::samplers::hmc::{self, HmcOptions, Path};
use sparsegp::samplers::metropolis::{self, MetropolisOptions};
use sparsegp_bench::load;
use sparsegp_bench::papers::Data;
use std::ops::ControlFlow;
use std::time::Instant;

/// What all of them are run on.
pub const DATA: &[Data] =
    &[Data::Substitute { of: "heart with 303 rows", by: "heart" }, Data::Bundled("housing")];

/// A data set with a likelihood.
#[derive(Clone, Copy)]
pub struct Problem {
    /// Its name in the paper.
    pub name: &'static str,
    data: &'static str,
    likelihood: &'static str,
}

/// The four of the paper.
pub const PROBLEMS: [Problem; 4] = [
    Problem { name: "logistic", data: "heart", likelihood: "bernoulli(link=logit)" },
    Problem { name: "Student-t", data: "housing", likelihood: "student-t(df=3, scale=1)" },
    Problem { name: "Laplace", data: "housing", likelihood: "laplace(scale=1)" },
    Problem { name: "Matérn 3/2", data: "housing", likelihood: "matern32(scale=1)" },
];

/// How chains are made.
#[derive(Clone, Copy)]
pub enum Sampler {
    /// Random walks.
    Metropolis,
    /// Paths of ten steps with step and mass found during burn-in, or of so many of a fixed size.
    Hamiltonian(Option<(usize, f64)>),
    /// Local variables.
    Gibbs,
}

/// Chains with what they took.
pub struct Chains {
    /// The draws.
    pub draws: Draws,
    /// Seconds of a sweep of one chain.
    pub each: f64,
    /// Correlation of f with that of the draw before, mean over the rows.
    pub lag_one: f64,
    /// Split R̂, the worst of the rows.
    pub rhat: f64,
    /// The least effective size of a row, of all chains, by second.
    pub rate: f64,
}

/// How many chains and draws.
#[derive(Clone, Copy)]
pub struct Length {
    /// Chains.
    pub chains: usize,
    /// Draws of each.
    pub draws: usize,
    /// Seed.
    pub seed: u64,
}

impl Problem {
    /// Returns model and rows.
    pub fn load(&self) -> sparsegp::Result<(Model, InMemory)> {
        let rows = load(self.data, self.data == "heart");
        let (model, rows, _) = problem(&rows, self.likelihood, &kernel(3.0, 1.0), "gibbs")?;
        Ok((model, rows))
    }

    /// Runs chains on one thread.
    pub fn chains(
        &self,
        sampler: Sampler,
        length: Length,
    ) -> Result<Chains, Box<dyn std::error::Error>> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        let (model, rows) = self.load()?;
        pool.install(|| sampled(&model, &rows, sampler, length)).map_err(Into::into)
    }
}

fn sampled(
    model: &Model,
    rows: &InMemory,
    sampler: Sampler,
    Length { chains, draws, seed }: Length,
) -> sparsegp::Result<Chains> {
    let mut watch = |_, _| ControlFlow::Continue(());
    let clock = Instant::now();
    let (found, burn_in) = match sampler {
        Sampler::Gibbs => {
            let burn_in = 50;
            let options = GibbsOptions { chains, draws, burn_in, seed, ..GibbsOptions::default() };
            (gibbs::sample(model, rows, &options, &mut watch)?, burn_in)
        }
        Sampler::Metropolis => {
            let burn_in = draws.min(1000);
            let options =
                MetropolisOptions { chains, draws, burn_in, seed, ..MetropolisOptions::default() };
            (metropolis::sample(model, rows, &options, &mut watch)?.draws, burn_in)
        }
        Sampler::Hamiltonian(fixed) => {
            let burn_in = draws.min(300);
            let path = Path::Steps(fixed.map_or(10, |(steps, _)| steps));
            let step = fixed.map(|(_, step)| step);
            let options =
                HmcOptions { chains, draws, burn_in, seed, path, step, ..HmcOptions::default() };
            (hmc::sample(model, rows, &options, &mut watch)?.draws, burn_in)
        }
    };
    let each = clock.elapsed().as_secs_f64() / (chains * (burn_in + draws)) as f64;
    let mixing = found.mixing(each);
    let of = |f: fn(&sparsegp::samplers::Mixing) -> f64| mixing.as_ref().map_or(f64::NAN, f);
    let rate = of(|m| m.effective) / (each * (chains * draws) as f64);
    Ok(Chains { draws: found, each, lag_one: of(|m| m.lag_one), rhat: of(|m| m.split_rhat), rate })
}

/// Returns mean and deviation over the rows of the autocorrelation of f in one chain, at lags 0 to `lags`.
pub fn autocorrelation(draws: &[sparsegp::linalg::Mat<f64>], lags: usize) -> Vec<(f64, f64)> {
    let (count, rows) = (draws.len(), draws[0].nrows());
    let of = |row: usize| -> Vec<f64> {
        let values: Vec<f64> = draws.iter().map(|f| f[(row, 0)]).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let at = |lag: usize| -> f64 {
            values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum()
        };
        let variance = at(0);
        (0..=lags).map(|lag| at(lag) / variance).collect()
    };
    let each: Vec<Vec<f64>> = (0..rows).map(of).collect();
    let over = |lag: usize| {
        let mean = each.iter().map(|own| own[lag]).sum::<f64>() / rows as f64;
        let square = each.iter().map(|own| (own[lag] - mean).powi(2)).sum::<f64>() / rows as f64;
        (mean, square.sqrt())
    };
    (0..=lags).map(over).collect()
}
