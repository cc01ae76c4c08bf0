//! The inference methods by name: what a model's objective is and how its posterior is found.
//!
//! To add one: one file and one line in [`REGISTRY`].

mod collapsed;
mod collected;
mod deep;
pub mod described;
mod exact;
pub mod precision;
mod tvgp;
pub mod uncollapsed;

pub use collapsed::{
    Collapsed, DEFAULT_ALPHA, HighCost, MOST_ROWS_HIGH_COST, PowerEp, upper_bound,
};
pub(crate) use collected::collect;
pub use deep::{Deep, WIDEST};
pub use exact::Exact;
pub(crate) use tvgp::least_raised;
pub use tvgp::{Look, Tvgp};
pub use uncollapsed::{Following, Keeps, Step, Uncollapsed};

use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result, nearest};
use crate::kernels;
use crate::likelihoods::Likelihood;
use crate::linalg::Jitter;
use crate::means;
use crate::model::{Model, Posterior};
use crate::terms;

/// Value of an objective (log evidence or a bound on it) with its gradient.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The value, without priors.
    pub value: f64,
    /// Gradient with respect to every constrained parameter, in the order of [`Model::params`].
    pub gradient: Vec<f64>,
    /// What the numerics had to do.
    pub diagnostics: Diagnostics,
}

/// What the numerics had to do, and how much the inducing points leave unexplained.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Diagnostics {
    /// Jitter added to the diagonal of Kuu (or of K + σ²I).
    pub jitter: f64,
    /// Σ rᵢ: prior variance of the rows that the inducing points do not explain.
    pub unexplained: f64,
    /// Σ k(xᵢ, xᵢ), by the methods that sum it.
    pub prior_variance: Option<f64>,
    /// Rows where rᵢ came out below −1e-8 of the mean prior variance: rounding; raise the jitter if
    /// there are any.
    pub negative: usize,
    /// ‖LᵀK̃L − I‖_F/√M of R-SVGP: how far T is from the inverse of K̃ = Kuu + Λ.
    #[serde(default)]
    pub residual: Option<f64>,
}

/// The Gaussian factor that a row contributes to a posterior, by which leave-one-out predictions go
/// ([`Posterior::leave_one_out`]).
#[derive(Clone, Copy)]
pub enum RowSite {
    /// The posterior is not the prior times factors of rows.
    None,
    /// Of Gaussian noise of the variance σ² + αr.
    Noise {
        /// α.
        alpha: f64,
    },
    /// What natural-gradient steps on this bound end at: λ₂ = −2 ∂ℓ/∂s.
    Bound(&'static dyn uncollapsed::Bound),
}

/// How a model is trained and conditioned.
pub trait Method: Send + Sync + std::fmt::Debug {
    /// Name in specifications, model files and messages.
    fn name(&self) -> &'static str;

    /// Whether there are inducing points.
    fn is_sparse(&self) -> bool;

    /// Whether the objective is the log evidence or a bound from below, which the approximations by power
    /// expectation propagation are not.
    fn is_bound(&self) -> bool {
        true
    }

    /// Checks that the method supports every part of `model`.
    ///
    /// # Errors
    /// [`Error::Invalid`] that says what, and what can.
    fn check(&self, model: &Model) -> Result<()>;

    /// What a row contributes to the posterior.
    fn row_site(&self) -> RowSite {
        RowSite::None
    }

    /// Factors vᵢ of what the inducing points leave unexplained of the rows (given), in the q(f | u) of this
    /// method; none for methods without ([`HighCost`]).
    fn factors(&self, _model: &Model, _unexplained: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// This method if it trains q(u) as a parameter, so that minibatches and natural gradients are
    /// possible.
    fn uncollapsed(&self) -> Option<&Uncollapsed> {
        None
    }

    /// This method if its models have hidden layers.
    fn deep(&self) -> Option<&Deep> {
        None
    }

    /// This method if it keeps sites of all rows without inducing points.
    fn full_sites(&self) -> Option<&Tvgp> {
        None
    }

    /// Whether the posterior is sampled once hyperparameters are trained ([`crate::samplers::gibbs`]).
    fn samples(&self) -> bool {
        false
    }

    /// Whether a model of this method has a q.
    fn has_q(&self) -> bool {
        self.uncollapsed().is_some() || self.full_sites().is_some()
    }

    /// Whether minibatches train it: of the methods with a q, those that are not for all rows at once.
    fn in_minibatches(&self) -> bool {
        self.uncollapsed()
            .is_some_and(|method| !(method.keeps == Keeps::Sites && method.bound.augments()))
    }

    /// Whether it needs a likelihood with local variables ([`crate::likelihoods::augmented`]).
    fn augments(&self) -> bool {
        self.uncollapsed().is_some_and(|method| method.bound.augments())
            || self.full_sites().is_some_and(|method| method.bound.augments())
    }

    /// The objective at the model's parameters, with its gradient.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], [`Error::Imprecise`], [`Error::NonFinite`] (recoverable: try nearer
    /// parameters), or what reading the data gives.
    fn evaluate(&self, model: &Model, engine: &dyn Engine, data: &dyn Source)
    -> Result<Evaluation>;

    /// What a training climbs: the objective less a barrier where double precision ends ([`precision`]), with the
    /// gradient of both, and the barrier.
    ///
    /// # Errors
    /// As for [`Method::evaluate`]; [`Error::Imprecise`] beyond the barrier.
    fn climb(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<(Evaluation, f64)> {
        Ok((self.evaluate(model, engine, data)?, 0.0))
    }

    /// The posterior at the model's parameters.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    fn posterior(&self, model: &Model, engine: &dyn Engine, data: &dyn Source)
    -> Result<Posterior>;
}

/// A method that can be named.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// The objective in one line.
    pub about: &'static str,
    /// Cost of one evaluation.
    pub cost: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The method.
    pub method: &'static dyn Method,
}

impl Entry {
    /// Whether the method infers under a likelihood.
    pub fn takes(&self, likelihood: &dyn Likelihood) -> bool {
        let (Ok(kernel), Ok(mean)) =
            (kernels::parse("constant", kernels::Inputs::unnamed(1)), means::by_name("zero", 1, 1))
        else {
            return false;
        };
        let model = Model {
            kernels: vec![kernel],
            mean,
            likelihood: likelihood.clone_box(),
            inducing: Vec::new(),
            q: None,
            method: self.method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        self.method.check(&model).is_ok()
    }
}

/// Every method: one line (of the table) each.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: "exact",
        aliases: &["gpr"],
        about: "exact Gaussian-process regression: the log evidence itself",
        cost: "O(N³), memory O(N²)",
        source: "Rasmussen & Williams 2006, §2.2",
        method: &Exact,
    },
    Entry {
        name: "titsias2009",
        aliases: &["sgpr", "vfe"],
        about: "collapsed bound, the classical one",
        cost: "O(NM²), memory O(M²)",
        source: "Titsias 2009",
        method: &Collapsed { term: &terms::Titsias2009 },
    },
    Entry {
        name: "spherical",
        aliases: &["artemev"],
        about: "collapsed bound with one factor for the unexplained variance: tighter",
        cost: "O(NM²), memory O(M²)",
        source: "Artemev, Burt & van der Wilk 2021",
        method: &Collapsed { term: &terms::Spherical },
    },
    Entry {
        name: "titsias2025",
        aliases: &["new", "sgpr-new"],
        about: "collapsed bound with one factor per row: the tightest of the three",
        cost: "O(NM²), memory O(M²)",
        source: "Titsias 2025, Eq. 16",
        method: &Collapsed { term: &terms::Titsias2025 },
    },
    Entry {
        name: "fitc",
        aliases: &[],
        about: "approximate log evidence, not a bound: rows independent given the inducing points",
        cost: "O(NM²), memory O(M²)",
        source: "Snelson & Ghahramani 2006",
        method: &PowerEp { name: "fitc", alpha: 1.0 },
    },
    Entry {
        name: "pep",
        aliases: &["power-ep"],
        about: "approximate log evidence, not a bound, between titsias2009 (alpha to 0) and fitc (1): pep(alpha=0.5)",
        cost: "O(NM²), memory O(M²)",
        source: "Bui, Yan & Turner 2017",
        method: &PowerEp { name: "pep", alpha: DEFAULT_ALPHA },
    },
    Entry {
        name: "svgp",
        aliases: &["hensman"],
        about: "uncollapsed bound: any likelihood, minibatches",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Hensman et al. 2013, 2015",
        method: &Uncollapsed {
            name: "svgp",
            bound: &uncollapsed::Hensman,
            keeps: Keeps::Moments,
            samples: false,
        },
    },
    Entry {
        name: "svgp2025",
        aliases: &["svgp-new"],
        about: "uncollapsed bound for Gaussian noise with one factor per row: tighter",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Titsias 2025, Eq. 18-19",
        method: &Uncollapsed {
            name: "svgp2025",
            bound: &uncollapsed::Titsias2025,
            keeps: Keeps::Moments,
            samples: false,
        },
    },
    Entry {
        name: "svgp-spherical",
        aliases: &["svgp-v"],
        about: "uncollapsed bound with one factor per latent function: tighter, any likelihood",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Titsias 2025, Eq. 22-23",
        method: &Uncollapsed {
            name: "svgp-spherical",
            bound: &uncollapsed::Spherical,
            keeps: Keeps::Moments,
            samples: false,
        },
    },
    Entry {
        name: "tsvgp",
        aliases: &["t-svgp", "dual"],
        about: "as svgp, but q is the prior times sites: it moves with the hyperparameters",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Adam, Chang, Khan & Solin 2021",
        method: &Uncollapsed {
            name: "tsvgp",
            bound: &uncollapsed::Hensman,
            keeps: Keeps::Sites,
            samples: false,
        },
    },
    Entry {
        name: "lsvgp",
        aliases: &["l-svgp"],
        about: "as svgp, but q is what pseudo-observations with M noise variances make of the prior",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Panos, Dellaportas & Titsias 2018",
        method: &Uncollapsed {
            name: "lsvgp",
            bound: &uncollapsed::Hensman,
            keeps: Keeps::Pseudo,
            samples: false,
        },
    },
    Entry {
        name: "rsvgp",
        aliases: &["r-svgp", "relaxed", "inverse-free"],
        about: "as lsvgp by matrix products alone: no factorisation, no solve",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Cortinovis, Aitchison, Eleftheriadis & van der Wilk",
        method: &Uncollapsed {
            name: "rsvgp",
            bound: &uncollapsed::Hensman,
            keeps: Keeps::Relaxed,
            samples: false,
        },
    },
    Entry {
        name: "tvgp",
        aliases: &["t-vgp"],
        about: "sites of all rows, without inducing points: any likelihood, few rows",
        cost: "O(N³), memory O(N²)",
        source: "Adam, Chang, Khan & Solin 2021; Opper & Archambeau 2009",
        method: &Tvgp { name: "tvgp", bound: &uncollapsed::Hensman, samples: false },
    },
    Entry {
        name: "cavi",
        aliases: &["augmented", "aaci"],
        about: "as tsvgp on all rows, with local variables that make the likelihood Gaussian: steps in closed form",
        cost: "O(NM² + M³), memory O(M²)",
        source: "Wenzel et al. 2019; Galy-Fajou, Wenzel & Opper 2020",
        method: &Uncollapsed {
            name: "cavi",
            bound: &uncollapsed::Augmented,
            keeps: Keeps::Sites,
            samples: false,
        },
    },
    Entry {
        name: "cavi-full",
        aliases: &["augmented-full"],
        about: "as cavi with sites of all rows, without inducing points: few rows",
        cost: "O(N³), memory O(N²)",
        source: "Galy-Fajou, Wenzel & Opper 2020, Alg. 1",
        method: &Tvgp { name: "cavi-full", bound: &uncollapsed::Augmented, samples: false },
    },
    Entry {
        name: "gibbs",
        aliases: &["gibbs-full"],
        about: "hyperparameters as by cavi-full, then draws from the exact posterior",
        cost: "O(N³) a sweep, memory O(N²)",
        source: "Galy-Fajou, Wenzel & Opper 2020, Alg. 2; Polson, Scott & Windle 2013",
        method: &Tvgp { name: "gibbs", bound: &uncollapsed::Augmented, samples: true },
    },
    Entry {
        name: "gibbs-sparse",
        aliases: &["variational-gibbs"],
        about: "hyperparameters as by cavi, then draws given the inducing points",
        cost: "O(NM²) a sweep, memory O(NM)",
        source: "Galy-Fajou 2022, §7.5, with a law that is stated",
        method: &Uncollapsed {
            name: "gibbs-sparse",
            bound: &uncollapsed::Augmented,
            keeps: Keeps::Sites,
            samples: true,
        },
    },
    Entry {
        name: "svi",
        aliases: &["augmented-svi", "x-gpc"],
        about: "as cavi by minibatches: natural gradients with a rate that adapts",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Wenzel et al. 2019; Ranganath et al. 2013",
        method: &Uncollapsed {
            name: "svi",
            bound: &uncollapsed::Augmented,
            keeps: Keeps::Moments,
            samples: false,
        },
    },
    Entry {
        name: "deep",
        aliases: &["dgp", "deep-gp"],
        about: "layers of functions of functions: deep(layers=3), any likelihood, minibatches",
        cost: "O(LPBM² + LM³) for L layers of P outputs, memory O(LPM²)",
        source: "Salimbeni & Deisenroth 2017; Cortinovis et al., §4.3",
        method: &Deep::DEFAULT,
    },
];

/// The entry of a method's name or alias, in any capitals. `pep` takes its power: `pep(alpha=0.3)`, and `deep` its layers:
/// `deep(layers=3, width=5, kind=w, samples=5, functions=true)`.
///
/// # Errors
/// [`Error::Invalid`] that names the nearest, or says what is wrong with an option.
pub fn find(name: &str) -> Result<&'static Entry> {
    let lower = name.to_ascii_lowercase();
    if let Some((plain, options)) = lower.split_once('(') {
        let entry = find(plain.trim())?;
        let options = options.trim_end().strip_suffix(')');
        if let (Some(_), Some(options)) = (entry.method.deep(), options) {
            return Deep::entry(options);
        }
        let alpha = options.and_then(|text| text.split_once('='));
        return match alpha.filter(|(key, _)| key.trim() == "alpha") {
            Some((_, number)) if entry.name == "pep" => {
                let alpha = number.trim().parse().map_err(|_| {
                    Error::Invalid(format!("method `{name}`: `{}` is not a number", number.trim()))
                })?;
                PowerEp::entry(alpha)
            }
            _ => Err(Error::Invalid(format!(
                "method `{name}`: options are for `pep` and `deep` alone, as in `pep(alpha=0.3)` and `deep(layers=3)`"
            ))),
        };
    }
    REGISTRY.iter().find(|e| e.name == lower || e.aliases.contains(&lower.as_str())).ok_or_else(
        || {
            Error::Invalid(format!(
                "unknown method `{name}`; nearest: {}; known: {}",
                nearest(&lower, REGISTRY.iter().map(|e| e.name)).join(", "),
                REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
            ))
        },
    )
}

/// The value if it is finite.
pub(crate) fn finite(value: f64, what: &str) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFinite { what: what.into(), value }) }
}

/// Refuses a noise variance of 0 where a method divides by it.
///
/// # Errors
/// [`Error::Invalid`] that names the method that does not.
pub fn check_noise(model: &Model) -> Result<()> {
    if model.noise() != 0.0 || model.method.name() == Exact.name() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "method `{}` divides by the noise variance, and `likelihood.variance` is 0: use `exact`, or a positive \
         variance",
        model.method.name()
    )))
}

/// Refuses rows that bring more than inputs and targets.
pub(crate) fn plain_rows(model: &Model, data: &dyn Source) -> Result<()> {
    if data.is_plain() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "method `{}` supports neither row weights nor known noise variances; use `svgp`, or `exact` for small tables",
        model.method.name()
    )))
}
