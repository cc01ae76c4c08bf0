//! What may stand in the brackets of `vecchia(…)` and `full-scale(…)`.

use super::{MOST_NEIGHBOURS, Placed, Vecchia};
use crate::error::{Error, Result};
use crate::methods::Entry;
use crate::methods::training_rows::TrainingRows;
use crate::vecchia::Solver;

impl Vecchia {
    /// Returns the method of an entry with options, as [`crate::methods::find`] gives it for
    /// `vecchia(neighbours=…)`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a value out of range.
    pub(in crate::methods) fn entry(
        registered: &'static Entry,
        options: &str,
    ) -> Result<&'static Entry> {
        let plain = registered.name;
        let points = registered.method.is_sparse().then_some(Placed::Fixed);
        let mut own = Self::usual(plain, points);
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (key, value) =
                option.split_once('=').map_or((option, ""), |(k, v)| (k.trim(), v.trim()));
            own.set(key, value)
                .map_err(|reason| Error::Invalid(format!("method `{plain}`: {reason}")))?;
        }
        let said = own.said();
        if said.is_empty() {
            return Ok(registered);
        }
        let name = format!("{plain}({})", said.join(", "));
        Ok(registered.variant(name, |name| Box::new(Self { name, ..own })))
    }

    /// Sets an option, or says why not.
    fn set(&mut self, key: &str, value: &str) -> std::result::Result<(), String> {
        let refused = |must: &str| Err(format!("{key}={value}: must be {must}"));
        let whole = value.parse::<usize>().ok();
        match (key, self.points.is_some()) {
            ("inducing" | "points", _) => {
                return Err(format!(
                    "`{key}` is not an option of neighbours; `full-scale` has inducing points, as many as `inducing` says \
                     (--inducing {value}; in Python n_inducing={value})"
                ));
            }
            ("neighbours", _) => {
                self.neighbours = whole.filter(|m| (1..=MOST_NEIGHBOURS).contains(m));
                if self.neighbours.is_none() {
                    return refused(&format!("a whole number from 1 to {MOST_NEIGHBOURS}"));
                }
            }
            ("moving", true) => match value {
                "true" => self.points = Some(Placed::Moving),
                "false" => self.points = Some(Placed::Fixed),
                _ => return refused("true or false"),
            },
            ("latent", false) => match value {
                "true" => self.latent = true,
                "false" => self.latent = false,
                _ => return refused("true or false"),
            },
            ("solver", false) => match value {
                "auto" => self.solver = Solver::Auto,
                "cholesky" => self.solver = Solver::Cholesky,
                "iterative" => self.solver = Solver::Iterative,
                _ => return refused("auto, cholesky or iterative"),
            },
            ("training_rows", false) => {
                self.training_rows = TrainingRows::parse(value)?;
            }
            (_, sparse) => {
                let known = match sparse {
                    true => "neighbours, moving",
                    false => "neighbours, latent, solver, training_rows",
                };
                return Err(format!("`{key}` is unknown; known: {known}"));
            }
        }
        Ok(())
    }

    /// Returns the options that differ from what is usual.
    fn said(&self) -> Vec<String> {
        let solver = match self.solver {
            Solver::Auto => None,
            Solver::Cholesky => Some("cholesky"),
            Solver::Iterative => Some("iterative"),
        };
        let all = [
            self.neighbours.map(|m| format!("neighbours={m}")),
            (self.points == Some(Placed::Moving)).then(|| "moving=true".into()),
            self.latent.then(|| "latent=true".into()),
            solver.map(|own| format!("solver={own}")),
            self.training_rows.said(),
        ];
        all.into_iter().flatten().collect()
    }
}
