//! The list of likelihoods by name, and how one is built from a specification.

use super::links::{Positive, Probability};
use super::quadrature::{Rule, Slope};
use super::{
    Likelihood, beta, binomial, coregionalised, gamma, gaussian, heteroscedastic, laplace,
    log_normal, logistic_noise, logistic_softmax, matern32, negative_binomial, ordinal, poisson,
    poisson_logistic, pseudo_huber, robust_max, softmax, student_t, svm, zero_inflated_poisson,
};
use crate::error::{Error, Result, nearest};
use crate::guests::{Guests, Named};
use crate::params::{Param, Shape, Transform};
use crate::spec;
use serde_json::{Map, Value};

/// A likelihood that can be named in a specification.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name that is written.
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// One line for people.
    pub about: &'static str,
    /// What the targets must be, for people: `counts (0, 1, 2, …)`.
    pub targets: &'static str,
    /// How many latent functions a target depends on, for people: `1`, `one per class`.
    pub latents: &'static str,
    /// Whether local variables can make it Gaussian ([`super::augmented`]), perhaps with an option.
    pub augmented: bool,
    /// Builds it.
    pub build: fn(Args<'_>) -> Result<Box<dyn Likelihood>>,
}

/// Every likelihood: one line each.
pub const REGISTRY: &[Entry] = &[
    gaussian::ENTRY,
    student_t::ENTRY,
    laplace::ENTRY,
    matern32::ENTRY,
    logistic_noise::ENTRY,
    pseudo_huber::ENTRY,
    log_normal::ENTRY,
    binomial::BERNOULLI,
    svm::ENTRY,
    binomial::BINOMIAL,
    poisson::ENTRY,
    poisson_logistic::ENTRY,
    negative_binomial::ENTRY,
    zero_inflated_poisson::ENTRY,
    gamma::ENTRY,
    gamma::EXPONENTIAL,
    beta::ENTRY,
    ordinal::ENTRY,
    heteroscedastic::GAUSSIAN,
    heteroscedastic::STUDENT_T,
    softmax::ENTRY,
    robust_max::ENTRY,
    logistic_softmax::ENTRY,
    coregionalised::ENTRY,
];

impl Named for Entry {
    const WHAT: &'static str = "likelihood";

    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn is(&self, other: &Self) -> bool {
        self.name == other.name && std::ptr::fn_addr_eq(self.build, other.build)
    }

    fn own() -> &'static [Self] {
        REGISTRY
    }
}

static ENTRIES: Guests<Entry> = Guests::new();

/// Gives a likelihood of another crate a name, in this process, as [`crate::kernels::register`] does for kernels.
///
/// # Errors
/// [`Error::Invalid`] for a name or alias that is taken, or that specifications could not name.
pub fn register(entry: Entry) -> Result<()> {
    ENTRIES.register(entry)
}

/// Returns the entry of a registered name or alias, in any capitals.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.find(name)
}

/// Parses a likelihood from its specification, either the short form (`student-t(df=4, scale=0.3)`)
/// or JSON.
///
/// ```
/// let likelihood = sparsegp::likelihoods::parse("bernoulli(link=logit)")?;
/// assert_eq!(likelihood.classes(), Some(2));
/// # Ok::<(), sparsegp::Error>(())
/// ```
///
/// # Errors
/// [`Error::Spec`] that names the position and what would be right; [`Error::InvalidParameter`] for
/// values out of range.
pub fn parse(spec: &str) -> Result<Box<dyn Likelihood>> {
    let json = spec::read_as(spec, "the name of a likelihood, such as `poisson` or `student-t`")?;
    build(&json).map_err(|error| match error {
        // in the words that were given, at the first of them that the reason names
        Error::Spec { reason, .. } => Error::Spec {
            spec: spec.to_owned(),
            position: reason.split('`').skip(1).find_map(|word| position(spec, word)).unwrap_or(0),
            reason,
        },
        other => other,
    })
}

/// Returns where `word` stands in `spec` as a separate word.
fn position(spec: &str, word: &str) -> Option<usize> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    spec.match_indices(word).map(|(at, _)| at).find(|at| {
        !word.is_empty()
            && !spec[..*at].ends_with(inside)
            && !spec[at + word.len()..].starts_with(inside)
    })
}

/// Builds a likelihood from JSON: `{"type": "student-t", "df": 4.0, "scale": 0.3}`.
///
/// # Errors
/// [`Error::Spec`] for an unknown type or entry, [`Error::InvalidParameter`] for values out of range.
pub fn build(json: &Value) -> Result<Box<dyn Likelihood>> {
    let wrong = |reason: String| Error::Spec { spec: json.to_string(), position: 0, reason };
    let Value::Object(entries) = json else {
        return Err(wrong("a likelihood is an object with an entry `type`".into()));
    };
    let Some(Value::String(name)) = entries.get("type") else {
        return Err(wrong("the entry `type` is missing".into()));
    };
    if ["sum", "product"].contains(&name.as_str()) {
        return Err(wrong("there is one likelihood: they are not added or multiplied".into()));
    }
    let Some(entry) = find(name) else {
        if let Some(class) = entries.get("class").and_then(Value::as_str) {
            return Err(wrong(format!(
                "the likelihood is the class `{class}` of Python, which nothing else can load: use the model from Python"
            )));
        }
        let names: Vec<&str> = ENTRIES.all().into_iter().map(|e| e.name).collect();
        return Err(wrong(format!(
            "unknown likelihood `{name}`; nearest: {}; known: {}",
            nearest(&name.to_ascii_lowercase(), names.iter().copied()).join(", "),
            names.join(", ")
        )));
    };
    (entry.build)(Args { name: entry.name, entries })
}

/// The entries of a likelihood's JSON object.
pub struct Args<'a> {
    name: &'static str,
    entries: &'a Map<String, Value>,
}

impl Args<'_> {
    /// Returns the whole object, with the name that is written.
    pub fn json(&self) -> Value {
        let mut entries = self.entries.clone();
        entries.insert("type".into(), Value::String(self.name.into()));
        Value::Object(entries)
    }

    /// Returns an [`Error::Spec`] for these arguments.
    pub fn wrong(&self, reason: String) -> Error {
        Error::Spec {
            spec: Value::Object(self.entries.clone()).to_string(),
            position: 0,
            reason: format!("likelihood {}: {reason}", self.name),
        }
    }

    /// Refuses entries that nobody asked for: all but `known` and `further`.
    pub fn allow(&self, known: &[&str], further: &[&str]) -> Result<()> {
        let all = [known, further].concat();
        match self.entries.keys().find(|k| *k != "type" && !all.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) if all.is_empty() => {
                Err(self.wrong(format!("unknown entry `{key}`; there are none")))
            }
            Some(key) => Err(self.wrong(format!(
                "unknown entry `{key}`; nearest: {}; known: {}",
                nearest(key, all.iter().copied()).join(", "),
                all.join(", ")
            ))),
        }
    }

    /// Returns an entry as it stands.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.get(name)
    }

    /// Returns the scalar parameter called `name`, `default` where it is not given.
    pub fn scalar(&self, name: &str, default: f64, transform: Transform) -> Result<Param> {
        let mut param = Param::with(vec![default], Shape::Scalar, transform);
        self.read(name, &mut param)?;
        Ok(param)
    }

    /// Reads the entry of a parameter into it, if there is one.
    pub fn read(&self, name: &str, param: &mut Param) -> Result<()> {
        let Some(given) = self.entries.get(name) else { return Ok(()) };
        let value = match given {
            Value::Object(object) => object.get("value"),
            other => Some(other),
        };
        if let (Shape::Scalar, Some(Value::Array(items))) = (param.shape(), value)
            && items.len() != 1
        {
            return Err(self.wrong(format!("`{name}` is one number, not {}", items.len())));
        }
        let path = format!("likelihood.{name}");
        param.read_json(&path, given)?;
        param.given = value.is_some();
        Ok(())
    }

    /// Returns the number of an entry, on its own or as the `value` of an object.
    pub fn number(&self, name: &str) -> Option<f64> {
        let given = self.entries.get(name)?;
        given.as_object().map_or(Some(given), |object| object.get("value"))?.as_f64()
    }

    /// Returns a whole number of at least `least`.
    pub fn whole(&self, name: &str, least: u64) -> Result<Option<usize>> {
        match self.entries.get(name) {
            None => Ok(None),
            Some(given) => match given.as_u64() {
                Some(n) if n >= least && n <= 1_000_000 => Ok(Some(n as usize)),
                _ => {
                    Err(self.wrong(format!("`{name}` is a whole number from {least}, not {given}")))
                }
            },
        }
    }

    /// Returns one of several words.
    pub fn word<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<Option<T>> {
        let Some(given) = self.entries.get(name) else { return Ok(None) };
        let found = known.iter().find(|(word, _)| given.as_str() == Some(word));
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        found
            .map(|(_, value)| Some(*value))
            .ok_or_else(|| self.wrong(format!("`{name}` is {}, not {given}", words.join(" or "))))
    }

    /// Returns `link` to probabilities with its `floor`.
    pub fn probability(&self, default: Probability) -> Result<Probability> {
        let probit = Probability::Probit { floor: 0.0 };
        let known = [("logit", Probability::Logit), ("probit", probit)];
        let link = self.word("link", &known)?.unwrap_or(default);
        match (link, self.floor()?) {
            (Probability::Probit { .. }, Some(floor)) => Ok(Probability::Probit { floor }),
            (Probability::Logit, Some(_)) => {
                Err(self.wrong("`floor` belongs to the link probit".into()))
            }
            (link, None) => Ok(link),
        }
    }

    /// Returns the entry `floor` of a probit link.
    pub fn floor(&self) -> Result<Option<f64>> {
        match self.entries.get("floor") {
            None => Ok(None),
            Some(given) => match given.as_f64() {
                Some(floor) if (0.0..0.5).contains(&floor) => Ok(Some(floor)),
                _ => Err(self.wrong(format!("`floor` is a number from 0, below ½, not {given}"))),
            },
        }
    }

    /// Returns `link` to positive numbers, with its `unit`.
    pub fn positive_link(&self) -> Result<Positive> {
        let unit = match self.entries.get("unit") {
            None => None,
            Some(given) => match given.as_f64() {
                Some(unit) if unit > 0.0 && unit.is_finite() => Some(unit),
                _ => return Err(self.wrong(format!("`unit` is a positive number, not {given}"))),
            },
        };
        let known = [("exp", Positive::Exp), ("softplus", Positive::Softplus { unit })];
        match self.word("link", &known)?.unwrap_or_default() {
            Positive::Exp if unit.is_some() => {
                Err(self.wrong("`unit` belongs to the link softplus".into()))
            }
            link => Ok(link),
        }
    }

    /// Returns the entry `rule`, see [`Rule::from_json`].
    pub fn quadrature(&self) -> Result<Option<Rule>> {
        let Some(given) = self.entries.get("rule") else { return Ok(None) };
        Rule::from_json(given).map(Some).ok_or_else(|| {
            self.wrong(format!(
                "`rule` is a number of Gauss–Hermite points from 1 to {} or trapezoid, not {given}",
                Rule::MOST
            ))
        })
    }

    /// Returns the entry `slope`.
    pub fn slope(&self) -> Result<Slope> {
        let known = [("rule", Slope::Rule), ("price", Slope::Price)];
        Ok(self.word("slope", &known)?.unwrap_or_default())
    }
}
