//! Beta: y in (0, 1) of the mean m = link(f) and precision s (Ferrari & Cribari-Neto 2004):
//! p(y | f) = yᵃ⁻¹(1 − y)ᵇ⁻¹/B(a, b), a = ms, b = (1 − m)s.
//!
//! a and b may be far below the smallest number. So log p is a function of their logarithms,
//! h(u) = u − lnΓ(eᵘ + 1) + eᵘ log y for u = log a, and likewise for b.

use super::links::Probability;
use super::registry::{Args, Entry};
use super::single::{OPTIONS, Scalar, Single, spread, start};
use super::{Likelihood, Support, Target, binomial};
use crate::error::Result;
use crate::params::{Param, Transform, Visitor, VisitorMut};
use crate::special::trigamma;
use rand_distr::Distribution;
use serde_json::Value;
use statrs::function::gamma::{digamma, ln_gamma};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "beta",
    aliases: &[],
    about: "shares: beta of mean link(f) (logit or probit) and precision scale",
    targets: "numbers strictly between 0 and 1",
    latents: "1",
    augmented: false,
    build,
};

/// Beta.
#[derive(Clone, Debug)]
pub struct Beta {
    /// Precision s: y has the variance m(1 − m)/(1 + s).
    pub scale: Param,
    /// Link from f to the mean m.
    pub link: Probability,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["link", "floor", "scale"], &OPTIONS)?;
    let default = match args.get("floor") {
        Some(_) => Probability::Probit { floor: 0.0 },
        None => Probability::Logit,
    };
    let link = args.probability(default)?;
    Single::boxed(Beta { scale: args.scalar("scale", 1.0, Transform::POSITIVE)?, link }, &args)
}

/// Returns h(u), h′(u), h″(u) with a = eᵘ.
fn part(log_a: f64, log_y: f64) -> [f64; 3] {
    let a = log_a.exp();
    let psi = a * digamma(a + 1.0);
    [
        log_a - ln_gamma(a + 1.0) + a * log_y,
        1.0 - psi + a * log_y,
        -psi - a * a * trigamma(a + 1.0) + a * log_y,
    ]
}

impl Beta {
    fn s(&self) -> f64 {
        self.scale.scalar()
    }

    /// Returns the link's log m and log(1 − m) with derivatives, and h at both.
    fn parts(&self, y: f64, f: f64) -> [([f64; 3], [f64; 3]); 2] {
        let log_s = self.s().ln();
        let (up, [log, first, second]) = (self.link.log(f), self.link.log(-f));
        let down = [log, -first, second];
        [(up, part(log_s + up[0], y.ln())), (down, part(log_s + down[0], (-y).ln_1p()))]
    }
}

impl Scalar for Beta {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"scale", &self.scale);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"scale", &mut self.scale);
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        // moments, of a variance that the inputs will explain in part
        let (mean, variance) = spread(targets.iter().map(|t| t.y));
        start(&mut self.scale, (2.0 * mean * (1.0 - mean) / variance - 1.0).clamp(0.5, 100.0));
        self.link.inverse(mean)
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        if target.y > 0.0 && target.y < 1.0 {
            Ok(())
        } else {
            Err("is not strictly between 0 and 1".into())
        }
    }

    fn write(&self, json: &mut Value) {
        binomial::write_link(self.link, json);
        json["scale"] = self.scale.to_json(Transform::POSITIVE);
    }

    fn constant(&self, target: Target) -> f64 {
        ln_gamma(self.s()) - target.y.ln() - (-target.y).ln_1p()
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for (link, h) in self.parts(target.y, f) {
            sums[0] += h[0];
            sums[1] += h[1] * link[1];
            sums[2] += h[2] * link[1] * link[1] + h[1] * link[2];
        }
        sums
    }

    fn constant_slopes(&self, _: Target, out: &mut [f64]) {
        out[0] = digamma(self.s());
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        let [(_, a), (_, b)] = self.parts(target.y, f);
        out[0] += weight * (a[1] + b[1]) / self.s();
    }

    fn pole(&self) -> f64 {
        self.link.pole().min(match self.link {
            Probability::Logit => f64::INFINITY,
            Probability::Probit { .. } => 0.8,
        })
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        let (m, rest) = (self.link.value(f), self.link.value(-f));
        (m, m * rest / (1.0 + self.s()))
    }

    fn cdf(&self, _: f64, y: f64, f: f64) -> f64 {
        let (a, b) = (self.s() * self.link.value(f), self.s() * self.link.value(-f));
        if a < 1e-290 {
            1.0
        } else if b < 1e-290 {
            0.0
        } else {
            statrs::function::beta::beta_reg(a, b, y)
        }
    }

    fn support(&self, _: f64) -> Support {
        Support::Interval(0.0, 1.0)
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        let (a, b) = (self.s() * self.link.value(f), self.s() * self.link.value(-f));
        let tiny = f64::MIN_POSITIVE;
        let y = rand_distr::Beta::new(a.max(tiny), b.max(tiny)).map_or(f64::NAN, |d| d.sample(rng));
        // strictly inside, as targets must be
        if y.is_nan() { y } else { y.clamp(tiny, 1.0_f64.next_down()) }
    }
}
