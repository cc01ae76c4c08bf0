//! Poisson: counts of the rate λ = exposure·link(f), p(y | f) = λʸ e^{−λ}/y!.

use super::links::Positive;
use super::registry::{Args, Entry};
use super::single::{EXPOSURE, OPTIONS, Scalar, Single, count, spread};
use super::{Extra, Likelihood, Slopes, Support, Target};
use crate::error::Result;
use crate::special::{incomplete_gamma, log_factorial};
use rand_distr::Distribution;
use serde_json::{Value, json};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "poisson",
    aliases: &["counts"],
    about: "counts; link exp or softplus, a row may bring its exposure",
    targets: "counts (0, 1, 2, …)",
    latents: "1",
    augmented: false,
    build,
};

/// Poisson counts.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// Link from f to the rate per exposure.
    pub link: Positive,
    /// Whether targets must be whole numbers. Where they need not be, log y! is log Γ(y + 1): the
    /// density is not a probability then, but the same objective for rates (quasi-likelihood).
    pub whole: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["link", "unit", "whole"], &OPTIONS)?;
    let whole = match args.get("whole") {
        None => true,
        Some(Value::Bool(whole)) => *whole,
        Some(other) => return Err(args.wrong(format!("`whole` is true or false, not {other}"))),
    };
    Single::boxed(Poisson { link: args.positive_link()?, whole }, &args)
}

/// Returns log mean(y/exposure), the pooled rate, half a count where there is none.
pub fn log_rate(targets: &[Target]) -> f64 {
    let counts: f64 = targets.iter().map(|t| t.y).sum();
    let exposures: f64 = targets.iter().map(|t| t.extra).sum();
    (counts.max(0.5) / exposures).ln()
}

/// Returns P(Y ≤ y) of a Poisson count.
pub fn cdf(y: f64, rate: f64) -> f64 {
    if y < 0.0 {
        0.0
    } else if rate <= 0.0 {
        1.0
    } else if rate > 1e300 {
        0.0
    } else {
        incomplete_gamma(y.floor() + 1.0, rate).1
    }
}

/// Draws a Poisson count; the normal approximation where counts are not exact in floating point.
pub fn draw(rate: f64, rng: &mut dyn rand::Rng) -> f64 {
    if rate <= 0.0 {
        return 0.0;
    }
    match rand_distr::Poisson::new(rate) {
        Ok(poisson) if rate < 1e15 => poisson.sample(rng),
        _ => {
            let normal: f64 = rand_distr::StandardNormal.sample(rng);
            (rate + rate.sqrt() * normal).round()
        }
    }
}

impl Scalar for Poisson {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn extra(&self) -> Option<Extra> {
        Some(EXPOSURE)
    }

    fn adopt_unit(&mut self, targets: &[Target]) {
        self.link.adopt_unit(log_rate(targets).exp());
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        self.link.inverse(log_rate(targets).exp())
    }

    fn latent_variance(&self, targets: &[Target]) -> f64 {
        let (mean, variance) = spread(targets.iter().map(|t| t.y / t.extra));
        self.link.latent_variance(mean, variance)
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        match self.whole {
            true => count(target),
            // of a rate only that it is none below 0
            false if target.y >= 0.0 && target.y.is_finite() => count(Target { y: 0.0, ..target }),
            false => Err("is not a finite number ≥ 0".into()),
        }
    }

    fn write(&self, json: &mut Value) {
        if !self.whole {
            json["whole"] = json!(false);
        }
        self.link.write(json);
    }

    fn constant(&self, target: Target) -> f64 {
        target.y * target.extra.ln() - log_factorial(target.y)
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let (log, rate) = (self.link.log(f), self.link.value(f));
        std::array::from_fn(|i| target.y * log[i] - target.extra * rate[i])
    }

    fn closed(
        &self,
        target: Target,
        mean: f64,
        variance: f64,
        out: &mut Slopes<'_>,
    ) -> Option<f64> {
        let rate = target.extra * self.link.moments(mean, variance)?.0;
        out.mean[0] = target.y - rate;
        out.variance[0] = -0.5 * rate;
        Some(self.constant(target) + target.y * mean - rate)
    }

    fn pole(&self) -> f64 {
        self.link.pole()
    }

    fn moments(&self, extra: f64, f: f64) -> (f64, f64) {
        let rate = extra * self.link.value(f)[0];
        (rate, rate)
    }

    fn closed_moments(&self, extra: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        let (rate, spread) = self.link.moments(mean, variance)?;
        Some((extra * rate, extra * rate + extra * extra * spread))
    }

    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64 {
        cdf(y, extra * self.link.value(f)[0])
    }

    fn support(&self, _: f64) -> Support {
        Support::Counts
    }

    fn sample(&self, extra: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        draw(extra * self.link.value(f)[0], rng)
    }
}

#[cfg(test)]
mod tests {
    use crate::likelihoods::{Target, parse};

    /// Right values: SciPy's `gammaincc(y + 1, rate)`.
    #[test]
    fn distribution_functions_of_large_counts() {
        for (y, rate, expected) in [
            (2000000.0, 2000000.0, 0.5001880631825008),
            (2000000.0, 2003000.0, 0.017011906787217864),
            (3000000.0, 2996700.0, 0.9716969408858797),
            (1000000000.0, 1000030000.0, 0.1713986315758679),
            (40000000.0, 39000000.0, 1.0),
        ] {
            let found = super::cdf(y, rate);
            assert!((found - expected).abs() < 1e-11, "{y} {rate}: {found} {expected}");
        }
        // where it took as many steps as there are counts
        assert_eq!((super::cdf(1e200, 1e100), super::cdf(1e15, 1e299)), (1.0, 0.0));
    }

    #[test]
    fn rates_are_accepted_where_that_was_asked_for() {
        let (counts, rates) = (parse("poisson").unwrap(), parse("poisson(whole=false)").unwrap());
        let target = |y, extra| Target { y, extra };
        assert!(counts.check(target(2.5, 1.3)).is_err());
        assert!(rates.check(target(2.5, 1.3)).is_ok());
        assert!(rates.check(target(-0.5, 1.3)).is_err() && rates.check(target(2.5, 0.0)).is_err());
        // log p is the same analytic function of y
        assert_eq!(
            rates.log_prob(target(3.0, 1.3), &[0.4]),
            counts.log_prob(target(3.0, 1.3), &[0.4])
        );
        let rate = 1.3 * 0.4_f64.exp();
        let expected = 2.5 * rate.ln() - rate - libm::lgamma(3.5);
        assert!((rates.log_prob(target(2.5, 1.3), &[0.4]) - expected).abs() < 1e-12);
        assert_eq!(rates.to_json()["whole"], false);
        assert!(parse("poisson(whole=3)").unwrap_err().to_string().contains("true or false"));
    }
}
