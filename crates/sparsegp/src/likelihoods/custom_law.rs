//! A distribution that is known only by its density: mass, moments, quantiles.
//!
//! A continuous support is mapped to the line (y = x, eˣ or a logistic function), and the line is
//! x = c + s sinh(½π sinh t), t by the trapezoidal rule (Takahasi & Mori 1974): tails as heavy as
//! those of Cauchy are covered. c and s follow the quartiles found, until they fit. A density so narrow or so far away that its
//! integral comes out wrong is looked for first where its logarithm is largest.

use super::Support;
use super::peaks::peaks;
use crate::special::sigmoid;
use std::f64::consts::FRAC_PI_2;

/// Step in t.
const STEP: f64 = 1.0 / 128.0;
/// Largest |t|: sinh(½π sinh 4.2) is 2e22.
const REACH: f64 = 4.2;
/// Counts whose probabilities are asked for at once.
const ATOMS: usize = 64;
/// Counts without probability, one after the other, after which no others are looked for.
const GAP: usize = 100_000;
/// What an integral may miss of 1 before the density is looked for.
const MISSED: f64 = 1e-3;
/// Most counts that are looked at.
const COUNTS: f64 = 1e7;

/// A distribution on points: atoms, or nodes of an integral.
pub(super) struct Law {
    support: Support,
    centre: f64,
    width: f64,
    /// Atoms, or values of y at the nodes.
    y: Vec<f64>,
    /// Their probabilities, or density by t.
    g: Vec<f64>,
    /// Probability up to and with the point.
    cumulative: Vec<f64>,
}

fn to_line(support: Support, y: f64) -> f64 {
    match support {
        Support::Positive => y.ln(),
        Support::Interval(low, high) => ((y - low) / (high - y)).ln(),
        _ => y,
    }
}

/// Returns y and dy/dx.
fn from_line(support: Support, x: f64) -> (f64, f64) {
    match support {
        Support::Positive => (x.exp(), x.exp()),
        Support::Interval(low, high) => {
            (low + (high - low) * sigmoid(x), (high - low) * sigmoid(x) * sigmoid(-x))
        }
        _ => (x, 1.0),
    }
}

impl Law {
    pub(super) fn new(
        support: Support,
        at: f64,
        width: f64,
        log_density: impl Fn(&[f64]) -> Vec<f64>,
    ) -> Self {
        match support.largest() {
            Some(largest) => {
                Self::atoms(support, (largest + 1.0).min(COUNTS) as usize, log_density)
            }
            None => {
                let mut centre = to_line(support, at);
                // dx = dy/(dy/dx)
                let mut scale = width / from_line(support, centre).1;
                for round in 0..12 {
                    let law = Self::nodes(support, centre, scale, &log_density);
                    if round == 0 && (law.mass() - 1.0).abs() > MISSED {
                        (centre, scale) = law.located(&log_density);
                        continue;
                    }
                    let [low, middle, high] = [0.25, 0.5, 0.75].map(|q| law.line(law.t(q)));
                    // the quartiles of a normal are 1.35 standard deviations apart
                    let found = (high - low) / 1.35;
                    let fits =
                        (middle - centre).abs() < scale && (0.3..3.0).contains(&(found / scale));
                    if fits || !(found > 0.0 && middle.is_finite()) {
                        return law;
                    }
                    (centre, scale) = (middle, found);
                }
                Self::nodes(support, centre, scale, &log_density)
            }
        }
    }

    /// Returns the centre and width of the density on the line by its largest value.
    fn located(&self, log_density: &impl Fn(&[f64]) -> Vec<f64>) -> (f64, f64) {
        let mut log = |_: &[usize], x: &[f64]| -> Vec<f64> {
            let (y, slopes): (Vec<f64>, Vec<f64>) =
                x.iter().map(|x| from_line(self.support, *x)).unzip();
            let log = log_density(&y).into_iter().zip(slopes);
            // where the line ends in rounding there is nothing
            log.map(|(log, slope)| log + slope.ln())
                .map(|l| if l.is_nan() { f64::NEG_INFINITY } else { l })
                .collect()
        };
        let half = (REACH / STEP) as i32;
        let places = (-half..=half).step_by(4).map(|i| self.line(f64::from(i) * STEP));
        let inside = |x: &f64| {
            let (y, slope) = from_line(self.support, *x);
            y.is_finite() && slope.is_finite() && slope > 0.0
        };
        let x: Vec<f64> = places.filter(inside).collect();
        let logs = log(&vec![0; x.len()], &x);
        let peak = peaks(&[0], vec![(x, logs)], &mut log)[0];
        (peak.at, peak.width)
    }

    fn atoms(support: Support, most: usize, log_density: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let mut law =
            Self { support, centre: 0.0, width: 1.0, y: vec![], g: vec![], cumulative: vec![] };
        let (mut sum, mut quiet) = (0.0, 0);
        for start in (0..most).step_by(ATOMS) {
            let y: Vec<f64> = (start..most.min(start + ATOMS)).map(|k| k as f64).collect();
            for (y, log) in y.iter().zip(log_density(&y)) {
                let p = log.exp();
                sum += p;
                law.y.push(*y);
                law.g.push(p);
                law.cumulative.push(sum);
                quiet = if p < 1e-17 * sum { quiet + 1 } else { 0 };
                // beside many zeros the other counts may begin far away
                let all = (quiet > 0 && sum > 1.0 - 1e-6) || quiet > GAP || p.is_nan();
                if !matches!(support, Support::Classes(_)) && all {
                    return law;
                }
            }
        }
        law
    }

    fn nodes(
        support: Support,
        centre: f64,
        width: f64,
        log_density: &impl Fn(&[f64]) -> Vec<f64>,
    ) -> Self {
        let half = (REACH / STEP) as i32;
        let mut law = Self { support, centre, width, y: vec![], g: vec![], cumulative: vec![] };
        let mut factors = Vec::with_capacity(2 * half as usize + 1);
        for i in -half..=half {
            let t = f64::from(i) * STEP;
            let (y, slope) = from_line(support, law.line(t));
            let by_t = width * (FRAC_PI_2 * t.sinh()).cosh() * FRAC_PI_2 * t.cosh();
            law.y.push(y);
            factors.push(slope * by_t);
        }
        let good = |(y, factor): (&f64, &f64)| *factor > 0.0 && factor.is_finite() && y.is_finite();
        let asked: Vec<bool> = law.y.iter().zip(&factors).map(good).collect();
        let y: Vec<f64> =
            law.y.iter().zip(&asked).filter(|(_, own)| **own).map(|(y, _)| *y).collect();
        let mut found = log_density(&y).into_iter();
        for (factor, asked) in factors.iter().zip(&asked) {
            let g = match asked {
                true => (found.next().unwrap_or(f64::NEG_INFINITY) + factor.ln()).exp(),
                false => 0.0,
            };
            law.g.push(if g.is_finite() { g } else { 0.0 });
        }
        // ∫ over a cell by the cubic through four values
        let g =
            |i: isize| usize::try_from(i).ok().and_then(|i| law.g.get(i)).copied().unwrap_or(0.0);
        let mut sum = 0.0;
        law.cumulative = (0..law.g.len() as isize)
            .map(|i| {
                sum += STEP / 24.0 * (13.0 * (g(i - 1) + g(i)) - g(i - 2) - g(i + 1));
                sum
            })
            .collect();
        law
    }

    /// Returns x at t.
    fn line(&self, t: f64) -> f64 {
        self.centre + self.width * (FRAC_PI_2 * t.sinh()).sinh()
    }

    pub(super) fn mass(&self) -> f64 {
        self.cumulative.last().copied().unwrap_or(0.0)
    }

    fn discrete(&self) -> bool {
        self.support.largest().is_some()
    }

    /// Returns the mean and variance.
    pub(super) fn moments(&self) -> (f64, f64) {
        let sum: f64 = self.g.iter().sum();
        let middle = self.quantile(0.5);
        let points = || self.y.iter().zip(&self.g).filter(|(_, g)| **g > 0.0);
        let shift = points().map(|(y, g)| g / sum * (y - middle)).sum::<f64>();
        let mean = middle + shift;
        (mean, points().map(|(y, g)| g / sum * (y - mean).powi(2)).sum())
    }

    /// Returns the index of the first point whose cumulative probability reaches that level.
    fn reaching(&self, level: f64) -> usize {
        let goal = level * self.mass();
        self.cumulative.partition_point(|c| *c < goal).min(self.y.len().saturating_sub(1))
    }

    /// Returns t of the first node.
    fn start() -> f64 {
        -f64::from((REACH / STEP) as i32) * STEP
    }

    /// Returns the probability of a share u of the cell that ends at node i: the distribution
    /// function is a cubic there with the right values and slopes at both ends.
    fn within(&self, i: usize, u: f64) -> f64 {
        let (rise, u2) = (self.cumulative[i] - self.cumulative[i - 1], u * u);
        let (a, b) = (self.g[i - 1] * STEP, self.g[i] * STEP);
        rise * u2 * (3.0 - 2.0 * u) + a * u * (1.0 - u) * (1.0 - u) - b * u2 * (1.0 - u)
    }

    /// Returns t of a quantile.
    fn t(&self, level: f64) -> f64 {
        let i = self.reaching(level);
        let t = Self::start() + (i as f64 - 1.0) * STEP;
        if i == 0 {
            return Self::start();
        }
        let goal = level * self.mass() - self.cumulative[i - 1];
        let cubic = |u: f64| self.within(i, u);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if cubic(middle) < goal { low = middle } else { high = middle }
        }
        t + STEP * 0.5 * (low + high)
    }

    /// Returns P(Y ≤ y) for y inside the support.
    pub(super) fn cdf(&self, y: f64) -> f64 {
        if self.discrete() {
            let count = self.y.partition_point(|own| *own <= y);
            return count.checked_sub(1).map_or(0.0, |i| self.cumulative[i]) / self.mass();
        }
        // y = from_line(centre + width sinh(½π sinh t))
        let x = (to_line(self.support, y) - self.centre) / self.width;
        let at = ((x.asinh() / FRAC_PI_2).asinh() + Self::start().abs()) / STEP;
        let i = at.floor();
        if i < 0.0 {
            return 0.0;
        }
        match self.g.get(i as usize + 1) {
            Some(_) => {
                (self.cumulative[i as usize] + self.within(i as usize + 1, at - i)) / self.mass()
            }
            None => 1.0,
        }
    }

    /// Returns the quantile of a level between 0 and 1.
    pub(super) fn quantile(&self, level: f64) -> f64 {
        if self.discrete() {
            return self.y.get(self.reaching(level)).copied().unwrap_or(f64::NAN);
        }
        from_line(self.support, self.line(self.t(level))).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::function::gamma::ln_gamma;

    /// 0 with a probability of 0.6, else Poisson with a mean of 100: between them there is nothing for dozens of counts.
    #[test]
    fn counts_far_from_many_zeros_are_found() {
        let log = |y: &[f64]| -> Vec<f64> {
            let one = |y: &f64| {
                let poisson = 0.4 * (y * 100.0_f64.ln() - 100.0 - ln_gamma(y + 1.0)).exp();
                (poisson + if *y == 0.0 { 0.6 } else { 0.0 }).ln()
            };
            y.iter().map(one).collect()
        };
        let law = Law::new(Support::Counts, 1.0, 1.0, log);
        let (mean, variance) = law.moments();
        assert!((law.mass() - 1.0).abs() < 1e-9, "{}", law.mass());
        assert!(
            (mean - 40.0).abs() < 1e-7 && (variance - 2440.0).abs() < 1e-5,
            "{mean} {variance}"
        );
        assert!((law.cdf(50.0) - 0.6).abs() < 1e-5 && law.quantile(0.8) > 95.0);
        assert!(law.y.len() < 400, "{}", law.y.len());
    }
}
