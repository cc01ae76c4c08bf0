//! What `sparsegp compare --auto` compares: kernels, likelihoods that the targets allow, and baselines.

use crate::compare_args::CompareArgs;
use crate::fail::Result;
use sparsegp::data::Table;

/// Kernels that differ in what they take a function to be; the last is another one only of several inputs.
const KERNELS: [&str; 4] = ["auto", "rbf", "matern32", "rbf(ard=false)"];
/// No function and a line, of the same noise: how much better a kernel is than these is what a Gaussian process adds.
const BASELINES: [&str; 2] = ["constant", "constant + linear"];

/// Tells whether a kernel is a baseline.
pub fn is_baseline(kernel: &str) -> bool {
    BASELINES.contains(&kernel)
}

/// Fills in kernels and likelihoods that were not named, and adds the baselines.
pub fn completed(args: &CompareArgs, table: &Table) -> Result<CompareArgs> {
    let mut own = args.clone();
    let named = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    if own.kernel.is_empty() {
        let several = table.columns().len() > args.target.len() + 1;
        own.kernel = named(if several { &KERNELS } else { &KERNELS[..3] });
    }
    for baseline in BASELINES {
        if !own.kernel.iter().any(|kernel| kernel == baseline) {
            own.kernel.push(baseline.into());
        }
    }
    if own.likelihood.is_empty() {
        own.likelihood = named(&likelihoods(args, table)?);
    }
    Ok(own)
}

/// Returns the likelihoods for a column of targets.
fn likelihoods(args: &CompareArgs, table: &Table) -> Result<Vec<&'static str>> {
    let [target] = &args.target[..] else {
        return Ok(vec!["gaussian", "student-t", "heteroscedastic"]);
    };
    let mut texts: Vec<String> = table.texts(target)?;
    texts.retain(|text| !text.trim().is_empty());
    let labels = table.holds_labels(target)?;
    let values: Vec<f64> = texts.iter().filter_map(|text| text.trim().parse().ok()).collect();
    texts.sort_unstable();
    texts.dedup();
    let all = |holds: &dyn Fn(f64) -> bool| values.iter().all(|value| holds(*value));
    Ok(match () {
        () if labels && texts.len() > 2 => vec!["softmax", "robust-max"],
        () if labels || all(&|y| y == 0.0 || y == 1.0) => {
            vec!["bernoulli", "bernoulli(link=logit)"]
        }
        () if all(&|y| y >= 0.0 && y.fract() == 0.0) => {
            vec!["gaussian", "poisson", "negative-binomial"]
        }
        () if all(&|y| y > 0.0 && y < 1.0) => {
            vec!["gaussian", "student-t", "heteroscedastic", "beta"]
        }
        () if all(&|y| y > 0.0) => vec!["gaussian", "student-t", "heteroscedastic", "log-normal"],
        () => vec!["gaussian", "student-t", "heteroscedastic"],
    })
}
