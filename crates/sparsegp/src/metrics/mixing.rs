//! How well chains of samples mixed, in numbers ([`crate::samplers`] makes them).

/// How well chains have mixed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Mixing {
    /// Chains.
    pub chains: usize,
    /// Draws of every chain that were kept.
    pub draws: usize,
    /// Wall-clock seconds over the sweeps of all chains, which run side by side.
    pub seconds_per_sweep: f64,
    /// Mean autocorrelation of successive draws, over latent values.
    pub lag_one: f64,
    /// Smallest effective sample size among latent values, of all chains together.
    pub effective: f64,
    /// Largest split R̂ among latent values: near 1 for chains that agree.
    pub split_rhat: f64,
    /// The hyperparameters that were sampled.
    #[serde(default)]
    pub hyperparameters: Vec<Sampled>,
}

/// What chains say of a hyperparameter.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sampled {
    /// Its path, with its place in a vector.
    pub path: String,
    /// Mean of its draws, on the model's scale.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Effective sample size, of all chains together.
    pub effective: f64,
    /// Split R̂.
    pub split_rhat: f64,
}
