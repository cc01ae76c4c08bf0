//! Binomial: y of n trials, p(y | f) = C(n, y) pʸ (1 − p)ⁿ⁻ʸ with p = link(f); Bernoulli is n = 1.

use super::augmented::{Augmented, Form, SuperGaussian};
use super::links::Probability;
use super::registry::{Args, Entry};
use super::single::{Many, OPTIONS, Scalar, Single};
use super::{Extra, Likelihood, Support, Target};
use crate::distributions::mixing::{Mixing, SechPower};
use crate::error::Result;
use crate::special::{is_count, log_factorial};
use rand_distr::Distribution;
use serde_json::{Value, json};
use std::f64::consts::LN_2;

/// Registry entry.
pub const BERNOULLI: Entry = Entry {
    name: "bernoulli",
    aliases: &["binary", "classification"],
    about: "two classes, link probit or logit",
    targets: "0 or 1",
    latents: "1",
    augmented: true,
    build: |args| build(&args, true),
};

/// Registry entry.
pub const BINOMIAL: Entry = Entry {
    name: "binomial",
    aliases: &[],
    about: "successes in a number of trials that every row brings, link logit or probit",
    targets: "counts from 0 to the trials",
    latents: "1",
    augmented: true,
    build: |args| build(&args, false),
};

/// Binomial, or Bernoulli.
#[derive(Clone, Debug)]
pub struct Binomial {
    /// Link from f to the probability of a success.
    pub link: Probability,
    /// Whether there is one trial always.
    pub bernoulli: bool,
}

fn build(args: &Args<'_>, bernoulli: bool) -> Result<Box<dyn Likelihood>> {
    args.allow(&["link", "floor"], &OPTIONS)?;
    let default = if bernoulli { Probability::Probit { floor: 0.0 } } else { Probability::Logit };
    // a floor says which link it belongs to
    let default = match args.get("floor") {
        Some(_) => Probability::Probit { floor: 0.0 },
        None => default,
    };
    Single::boxed(Binomial { link: args.probability(default)?, bernoulli }, args)
}

impl Binomial {
    fn trials(&self, extra: f64) -> f64 {
        if self.bernoulli { 1.0 } else { extra }
    }
}

/// Writes `link` and `floor`.
pub fn write_link(link: Probability, json: &mut Value) {
    json["link"] = json!(link.name());
    if let Probability::Probit { floor } = link
        && floor != 0.0
    {
        json["floor"] = json!(floor);
    }
}

impl Scalar for Binomial {
    fn name(&self) -> &'static str {
        if self.bernoulli { BERNOULLI.name } else { BINOMIAL.name }
    }

    fn classes(&self) -> Option<usize> {
        self.bernoulli.then_some(2)
    }

    fn extra(&self) -> Option<Extra> {
        (!self.bernoulli).then_some(Extra { name: "trials", default: None })
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        let successes: f64 = targets.iter().map(|t| t.y).sum();
        let trials: f64 = targets.iter().map(|t| self.trials(t.extra)).sum();
        // half a success and half a failure more: never 0 or 1
        self.link.inverse((successes + 0.5) / (trials + 1.0))
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        let (y, n) = (target.y, self.trials(target.extra));
        if self.bernoulli {
            return if y == 0.0 || y == 1.0 {
                Ok(())
            } else {
                Err("is not a class (0 or 1)".into())
            };
        }
        if !(is_count(n) && n >= 1.0) {
            Err(format!("has the trials {n}, which must be a positive whole number"))
        } else if !(is_count(y) && y <= n) {
            Err(format!("is not a count from 0 to its trials, {n}"))
        } else {
            Ok(())
        }
    }

    fn write(&self, json: &mut Value) {
        write_link(self.link, json);
    }

    fn constant(&self, target: Target) -> f64 {
        let (y, n) = (target.y, self.trials(target.extra));
        if y == 0.0 || y == n {
            0.0
        } else {
            log_factorial(n) - log_factorial(y) - log_factorial(n - y)
        }
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let (y, n) = (target.y, self.trials(target.extra));
        let mut sums = [0.0; 3];
        if y > 0.0 {
            let [value, first, second] = self.link.log(f);
            sums = [y * value, y * first, y * second];
        }
        if n > y {
            let [value, first, second] = self.link.log(-f);
            sums =
                [sums[0] + (n - y) * value, sums[1] - (n - y) * first, sums[2] + (n - y) * second];
        }
        sums
    }

    fn at_all(&self, target: Target, f: &[f64], out: &mut Many) {
        let (y, n) = (target.y, self.trials(target.extra));
        if y > 0.0 {
            self.link.add_logs(1.0, y, f, out);
        }
        if n > y {
            self.link.add_logs(-1.0, n - y, f, out);
        }
    }

    fn pole(&self) -> f64 {
        self.link.pole()
    }

    fn moments(&self, extra: f64, f: f64) -> (f64, f64) {
        let (n, p) = (self.trials(extra), self.link.value(f));
        (n * p, n * p * self.link.value(-f))
    }

    fn closed_moments(&self, _: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        if !self.bernoulli {
            return None;
        }
        let p = self.link.log_expected(mean, variance)?.exp();
        Some((p, p * self.link.log_expected(-mean, variance)?.exp()))
    }

    fn closed_log_density(&self, target: Target, mean: f64, variance: f64) -> Option<f64> {
        if !self.bernoulli {
            return None;
        }
        self.link.log_expected(if target.y == 1.0 { mean } else { -mean }, variance)
    }

    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64 {
        let (n, p) = (self.trials(extra), self.link.value(f));
        if y >= n {
            1.0
        } else if y < 0.0 || p >= 1.0 {
            f64::from(u8::from(y >= 0.0 && p < 1.0))
        } else if p <= 0.0 {
            1.0
        } else {
            statrs::function::beta::beta_reg(n - y, y + 1.0, self.link.value(-f).min(1.0))
        }
    }

    fn support(&self, extra: f64) -> Support {
        Support::Trials(self.trials(extra))
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        match self.link {
            Probability::Logit => Some(self),
            Probability::Probit { .. } => None,
        }
    }

    fn sample(&self, extra: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        let (n, p) = (self.trials(extra), self.link.value(f));
        rand_distr::Binomial::new(n as u64, p.clamp(0.0, 1.0))
            .map_or(f64::NAN, |d| d.sample(rng) as f64)
    }
}

/// With the link logit: σ(f)ʸσ(−f)ⁿ⁻ʸ = 2⁻ⁿ e^{(y − n/2)f} sechⁿ(f/2) (Polson, Scott & Windle 2013).
impl SuperGaussian for Binomial {
    fn with(&self, target: Target, work: &mut dyn FnMut(&Form, &dyn Mixing)) {
        let n = self.trials(target.extra);
        let form = Form {
            log_c: self.constant(target) - n * LN_2,
            g: target.y - 0.5 * n,
            centre: 0.0,
            gamma: 1.0,
            floor: 0.0,
        };
        work(&form, &SechPower::new(n, 1.0).expect("trials were checked"));
    }
}
