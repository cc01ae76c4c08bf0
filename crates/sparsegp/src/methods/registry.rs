//! The methods by name: one line (of the table) each.

use super::vecchia::Placed;
use super::{
    Collapsed, DEFAULT_ALPHA, Deep, Exact, Keeps, Markov, Method, PowerEp, Sampler, Tvgp,
    Uncollapsed, Vecchia, uncollapsed,
};
use crate::bounds;
use crate::error::{Error, Result, nearest};
use crate::kernels;
use crate::likelihoods::{self, Likelihood};
use crate::linalg::Jitter;
use crate::means;
use crate::model::Model;
use crate::terms;
use std::sync::{Mutex, PoisonError};

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
    /// Returns whether the method infers under a likelihood.
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

    /// Returns the same entry with a method of other options, made once for every name that is
    /// asked for: methods live as long as the program, so that a model can hold one without owning
    /// it.
    pub(super) fn variant(
        &self,
        name: String,
        make: impl FnOnce(&'static str) -> Box<dyn Method>,
    ) -> &'static Self {
        static VARIANTS: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());
        let mut variants = VARIANTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = variants.iter().find(|entry| entry.name == name) {
            return entry;
        }
        let name: &'static str = Box::leak(name.into_boxed_str());
        let method: &'static dyn Method = Box::leak(make(name));
        let entry: &'static Self = Box::leak(Box::new(Self { name, method, ..*self }));
        variants.push(entry);
        entry
    }
}

const MARKOV: Markov = Markov::usual("markov", &bounds::Hensman, None);
const CAVI_MARKOV: Markov = Markov::usual("cavi-markov", &uncollapsed::Augmented, None);
const GIBBS_MARKOV: Markov =
    Markov::usual("gibbs-markov", &bounds::Hensman, Some(Sampler::GibbsSeries));

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
        name: "markov",
        aliases: &["state-space", "kalman"],
        about: "inference of one input, beside labels that coregion reads, by Kalman filters: series of any length, kernels that are \
                Markov processes; exact for Gaussian noise, else by sites of all rows. \
                Kernels with periods have large states: more than 100 000 rows are trained by 50 000 (markov(training_rows=50000), all)",
        cost: "O(NS³) for S states, memory O(N)",
        source: "Hartikainen & Särkkä 2010; Chang, Wilkinson, Khan & Solin 2020",
        method: &MARKOV,
    },
    Entry {
        name: "vecchia",
        aliases: &["nngp", "nearest-neighbours"],
        about: "rows given their nearest neighbours, for space and few inputs: vecchia(neighbours=30, latent=false); an approximate log \
                evidence, not a bound. More than 100 000 rows are trained by 50 000 of them given their neighbours among all \
                (training_rows=50000, all). For other likelihoods than Gaussian noise, and with latent=true, 16 neighbours of the function \
                itself, and sites of all rows, by a sparse factor or, where that is large, by draws (solver=auto, cholesky, iterative)",
        cost: "O(Nm³) for m neighbours, memory O(Nm); with sites a sparse factor of all rows beside it, or a few passes over V for each of \
               80 vectors",
        source: "Vecchia 1988; Guinness 2018; Katzfuss & Guinness 2021; Zilber & Katzfuss 2021; Kündig & Sigrist 2025",
        method: &Vecchia::usual("vecchia", None),
    },
    Entry {
        name: "full-scale",
        aliases: &["vif", "vecchia-inducing"],
        about: "approximate log evidence, not a bound: inducing points, and nearest neighbours for what they do not explain: \
                full-scale(neighbours=30, moving=false)",
        cost: "O(N(M² + mM + m³)) for m neighbours, memory O(N(M + m))",
        source: "Gyger, Furrer & Sigrist 2025; Zhang, Sang & Huang 2019",
        method: &Vecchia::usual("full-scale", Some(Placed::Fixed)),
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
            sampler: None,
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
            sampler: None,
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
            sampler: None,
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
            sampler: None,
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
            sampler: None,
        },
    },
    Entry {
        name: "rsvgp",
        aliases: &["r-svgp", "relaxed", "inverse-free"],
        about: "as lsvgp by matrix products only: no factorisation, no solve",
        cost: "O(BM² + M³) for B rows, memory O(M²)",
        source: "Cortinovis, Aitchison, Eleftheriadis & van der Wilk",
        method: &Uncollapsed {
            name: "rsvgp",
            bound: &uncollapsed::Hensman,
            keeps: Keeps::Relaxed,
            sampler: None,
        },
    },
    Entry {
        name: "tvgp",
        aliases: &["t-vgp"],
        about: "sites of all rows, without inducing points: any likelihood, few rows",
        cost: "O(N³), memory O(N²)",
        source: "Adam, Chang, Khan & Solin 2021; Opper & Archambeau 2009",
        method: &Tvgp { name: "tvgp", bound: &uncollapsed::Hensman, sampler: None },
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
            sampler: None,
        },
    },
    Entry {
        name: "cavi-full",
        aliases: &["augmented-full"],
        about: "as cavi with sites of all rows, without inducing points: few rows",
        cost: "O(N³), memory O(N²)",
        source: "Galy-Fajou, Wenzel & Opper 2020, Alg. 1",
        method: &Tvgp { name: "cavi-full", bound: &uncollapsed::Augmented, sampler: None },
    },
    Entry {
        name: "cavi-markov",
        aliases: &["augmented-markov"],
        about: "as cavi with sites of all rows of a series of any length: one input beside labels, kernels that are Markov processes",
        cost: "O(NS³) for S states, memory O(N)",
        source: "Galy-Fajou, Wenzel & Opper 2020, Alg. 1; Chang, Wilkinson, Khan & Solin 2020",
        method: &CAVI_MARKOV,
    },
    Entry {
        name: "gibbs",
        aliases: &["gibbs-full"],
        about: "hyperparameters as by cavi-full, then draws from the exact posterior",
        cost: "O(N³) a sweep, memory O(N²)",
        source: "Galy-Fajou, Wenzel & Opper 2020, Alg. 2; Polson, Scott & Windle 2013",
        method: &Tvgp {
            name: "gibbs",
            bound: &uncollapsed::Augmented,
            sampler: Some(Sampler::Gibbs),
        },
    },
    Entry {
        name: "gibbs-markov",
        aliases: &["gibbs-series"],
        about: "hyperparameters as by markov, then draws from the exact posterior of a series of any length: one input beside labels, \
                kernels that are Markov processes",
        cost: "O(NS³) a sweep for S states, memory O(NS) a draw",
        source: "Carter & Kohn 1994; Frühwirth-Schnatter 1994; Durbin & Koopman 2002",
        method: &GIBBS_MARKOV,
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
            sampler: Some(Sampler::Gibbs),
        },
    },
    Entry {
        name: "nuts",
        aliases: &[],
        about: "hyperparameters as by tvgp, then draws from the exact posterior by paths without U-turns; any likelihood",
        cost: "O(N²) a step of a path, O(N³) with hyperparameters, memory O(N²)",
        source: "Hoffman & Gelman 2014",
        method: &Tvgp { name: "nuts", bound: &uncollapsed::Hensman, sampler: Some(Sampler::Nuts) },
    },
    Entry {
        name: "nuts-sparse",
        aliases: &[],
        about: "hyperparameters as by svgp, then draws given the inducing points by paths without U-turns; any likelihood",
        cost: "O(NM) a step of a path, O(NM²) with hyperparameters, memory O(NM)",
        source: "Hensman, Matthews, Filippone & Ghahramani 2015; Hoffman & Gelman 2014",
        method: &Uncollapsed {
            name: "nuts-sparse",
            bound: &uncollapsed::Hensman,
            keeps: Keeps::Moments,
            sampler: Some(Sampler::Nuts),
        },
    },
    Entry {
        name: "gpf",
        aliases: &["particle-flow"],
        about: "hyperparameters and a start as by svgp, then a Gaussian by particle flow: only gradients, any likelihood",
        cost: "O(NM²) a step, memory O(NM)",
        source: "Galy-Fajou, Perrone & Opper 2021",
        method: &Uncollapsed {
            name: "gpf",
            bound: &uncollapsed::Hensman,
            keeps: Keeps::Moments,
            sampler: Some(Sampler::Flow),
        },
    },
    Entry {
        name: "hmc",
        aliases: &[],
        about: "as nuts by Hamiltonian paths of ten steps",
        cost: "O(N²) a step of a path, O(N³) with hyperparameters, memory O(N²)",
        source: "Duane et al. 1987; Neal 2011",
        method: &Tvgp { name: "hmc", bound: &uncollapsed::Hensman, sampler: Some(Sampler::Hmc) },
    },
    Entry {
        name: "nuts-augmented",
        aliases: &[],
        about: "as nuts on f and the local variables of a super-Gaussian likelihood, hyperparameters as by cavi-full",
        cost: "O(N²) a step of a path, memory O(N²)",
        source: "Galy-Fajou 2022, §7.3",
        method: &Tvgp {
            name: "nuts-augmented",
            bound: &uncollapsed::Augmented,
            sampler: Some(Sampler::NutsAugmented),
        },
    },
    Entry {
        name: "hmc-augmented",
        aliases: &[],
        about: "as nuts-augmented by Hamiltonian paths of ten steps",
        cost: "O(N²) a step of a path, memory O(N²)",
        source: "Galy-Fajou 2022, §7.3",
        method: &Tvgp {
            name: "hmc-augmented",
            bound: &uncollapsed::Augmented,
            sampler: Some(Sampler::HmcAugmented),
        },
    },
    Entry {
        name: "metropolis",
        aliases: &["random-walk"],
        about: "as nuts by a random walk, the baseline of the others: a hundred times as many draws are needed",
        cost: "O(N²) a proposal, memory O(N²)",
        source: "Metropolis et al. 1953",
        method: &Tvgp {
            name: "metropolis",
            bound: &uncollapsed::Hensman,
            sampler: Some(Sampler::Metropolis),
        },
    },
    Entry {
        name: "ess",
        aliases: &["elliptical"],
        about: "as nuts by elliptical slices: no slopes, hyperparameters stay as trained",
        cost: "O(N²) a proposal, memory O(N²)",
        source: "Murray, Adams & MacKay 2010",
        method: &Tvgp {
            name: "ess",
            bound: &uncollapsed::Hensman,
            sampler: Some(Sampler::Elliptical),
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
            sampler: None,
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

/// Returns the entry of a method's name or alias, in any capitals. `pep` takes its power:
/// `pep(alpha=0.3)`, and `deep` its layers:
/// `deep(layers=3, width=5, kind=w, samples=5, functions=true)`; `vecchia` and `full-scale` take
/// their neighbours: `vecchia(neighbours=50)`, and methods of series `markov(training_rows=all)`.
///
/// # Errors
/// [`Error::Invalid`] that names the nearest, or says what is wrong with an option.
pub fn find(name: &str) -> Result<&'static Entry> {
    let lower = name.to_ascii_lowercase();
    if let Some((plain, options)) = lower.split_once('(') {
        let entry = find(plain.trim())?;
        let options = options.trim_end().strip_suffix(')');
        if let (Some(_), Some(options)) = (entry.method.architecture(), options) {
            return Deep::entry(options);
        }
        let neighbours = ["vecchia", "full-scale"].contains(&entry.name);
        if let (true, Some(options)) = (neighbours, options) {
            return Vecchia::entry(entry, options);
        }
        let series =
            [MARKOV, CAVI_MARKOV, GIBBS_MARKOV].into_iter().find(|own| own.name == entry.name);
        if let (Some(own), Some(options)) = (series, options) {
            return own.entry(entry, options);
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
                "method `{name}`: only `pep`, `deep`, `vecchia`, `full-scale` and those of series have options, as in `pep(alpha=0.3)`, \
                 `deep(layers=3)` and `vecchia(neighbours=50)`"
            ))),
        };
    }
    REGISTRY.iter().find(|e| e.name == lower || e.aliases.contains(&lower.as_str())).ok_or_else(
        || {
            if let Some(entry) = likelihoods::find(&lower) {
                return Error::Invalid(format!(
                    "`{name}` is a likelihood, not a method: --likelihood {} (`likelihood=\"{}\"`)",
                    entry.name, entry.name
                ));
            }
            Error::Invalid(format!(
                "unknown method `{name}`; nearest: {}; known: {}",
                nearest(&lower, REGISTRY.iter().map(|e| e.name)).join(", "),
                REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
            ))
        },
    )
}
