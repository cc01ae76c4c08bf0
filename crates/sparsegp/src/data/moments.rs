//! Mean and variance of a stream of numbers in one pass.

use crate::linalg::{MatRef, column};

/// Running mean and sum of squared deviations (Welford 1962, Technometrics 4:419), mergeable
/// (Chan, Golub & LeVeque 1983, Am. Stat. 37:242), of the values less the first one: so the running mean
/// is rounded relative to the spread of the values, not to an offset that they share.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Moments {
    count: u64,
    /// Sum of the weights.
    weight: f64,
    /// The first value; the mean is `origin + shift`.
    origin: f64,
    shift: f64,
    squares: f64,
    min: f64,
    max: f64,
    /// Whether there are more than two values.
    many: bool,
    /// Values outside are not looked at.
    within: (f64, f64),
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            weight: 0.0,
            origin: 0.0,
            shift: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            many: false,
            within: (f64::NEG_INFINITY, f64::INFINITY),
        }
    }
}

impl Moments {
    /// Creates moments of only the values from the first to the second number.
    pub fn within(within: (f64, f64)) -> Self {
        Self { within, ..Self::default() }
    }

    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.push_weighted(value, 1.0);
    }

    /// Adds a value as often as its weight says (West 1979, Commun. ACM 22:532).
    pub fn push_weighted(&mut self, value: f64, weight: f64) {
        if value < self.within.0 || value > self.within.1 {
            return;
        }
        self.count += 1;
        if weight <= 0.0 {
            return;
        }
        if self.weight == 0.0 {
            self.origin = value;
        }
        self.weight += weight;
        let value_shift = value - self.origin;
        let delta = value_shift - self.shift;
        self.shift += weight * delta / self.weight;
        self.squares += weight * delta * (value_shift - self.shift);
        self.see(value);
    }

    fn see(&mut self, value: f64) {
        self.many |= self.min < self.max && value != self.min && value != self.max;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub fn merge(&mut self, other: &Self) {
        if other.weight == 0.0 || self.weight == 0.0 {
            let count = self.count + other.count;
            *self = if other.weight == 0.0 { *self } else { *other };
            self.count = count;
            return;
        }
        let (a, b) = (self.weight, other.weight);
        let delta = (other.origin - self.origin) + (other.shift - self.shift);
        self.shift += delta * (b / (a + b));
        self.squares += other.squares + delta * delta * (a * (b / (a + b)));
        self.count += other.count;
        self.weight += other.weight;
        self.many |= other.many;
        self.see(other.min);
        self.see(other.max);
    }

    /// Returns the sum of the weights.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        let mean = self.origin + self.shift;
        // Only numbers near the largest f64 can overflow the running mean.
        if mean.is_finite() { mean } else { self.min / 2.0 + self.max / 2.0 }
    }

    /// Returns Σ (value − mean)².
    pub fn squares(&self) -> f64 {
        self.squares
    }

    /// Returns the smallest and the largest value.
    pub fn range(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    /// Returns whether all values are the same (or there are none).
    pub fn is_constant(&self) -> bool {
        self.min >= self.max
    }

    /// Returns the range of the values, if it is no more than rounding makes of a constant: less
    /// than 64 units in the last place of the largest.
    pub fn rounding(&self) -> Option<f64> {
        let (range, size) = (self.max - self.min, self.min.abs().max(self.max.abs()));
        (range > 0.0 && range < 64.0 * f64::EPSILON * size).then_some(range)
    }

    /// Returns the population standard deviation (1/N), or half the range where squares over- or
    /// underflow; 1 for a constant, or where values differ only by rounding.
    pub fn scale(&self) -> f64 {
        let deviation = (self.squares / self.weight).sqrt();
        match deviation {
            _ if self.is_constant() || self.rounding().is_some() => 1.0,
            deviation if self.squares.is_normal() => deviation,
            _ => self.half_range(),
        }
    }

    /// Returns what an input is divided by: the standard deviation, or half of the difference
    /// between two values, so that a level which few rows have is not far from the others. It is 1
    /// as for [`Moments::scale`].
    pub fn spread(&self) -> f64 {
        match self.many || self.is_constant() || self.rounding().is_some() {
            true => self.scale(),
            false => self.half_range(),
        }
    }

    /// Returns the standard deviation, 0 for a constant.
    pub fn deviation(&self) -> f64 {
        if self.is_constant() { 0.0 } else { self.scale() }
    }

    fn half_range(&self) -> f64 {
        (self.max / 2.0 - self.min / 2.0).max(f64::MIN_POSITIVE)
    }
}

/// Returns the values less their mean, divided by their norm: the products of those of two columns add up to their correlation. Of a
/// constant they are NaN.
pub(crate) fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mut apart: Vec<f64> = values.iter().map(|v| v - mean).collect();
    let norm = apart.iter().map(|v| v * v).sum::<f64>().sqrt();
    apart.iter_mut().for_each(|v| *v /= norm);
    apart
}

/// Returns the spread of every column: its standard deviation, or half of the difference between
/// two values; 1 for a constant one.
pub(crate) fn spreads(x: MatRef<f64>) -> Vec<f64> {
    let n = x.nrows() as f64;
    (0..x.ncols())
        .map(|q| {
            let values = column(x, q);
            let first = values.first().copied().unwrap_or(0.0);
            let other = values.iter().copied().find(|v| *v != first).unwrap_or(first);
            if first != other && values.iter().all(|v| *v == first || *v == other) {
                return (first / 2.0 - other / 2.0).abs().max(f64::MIN_POSITIVE);
            }
            let mean = values.iter().sum::<f64>() / n;
            let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            if sd > 0.0 && sd.is_finite() { sd } else { 1.0 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Moments {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| moments.push(value));
        moments
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs(), "{a} is not {b}");
    }

    /// Deterministic numbers in (−1, 1).
    fn noise(n: usize) -> impl Iterator<Item = f64> + Clone {
        (0..n).map(|i| ((i as f64 + 1.0) * 0.618_033_988_749_895).fract() * 2.0 - 1.0)
    }

    #[test]
    fn population_variance_by_hand() {
        let moments = of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((moments.mean(), moments.scale(), moments.count()), (5.0, 2.0, 8));
    }

    #[test]
    fn scales_from_1e_minus_200_to_1e200() {
        let unit = of(noise(1000)).scale();
        for exponent in [-200, -153, -12, 12, 150, 153, 200] {
            let factor = 10f64.powi(exponent);
            let moments = of(noise(1000).map(|v| v * factor));
            assert!(!moments.is_constant());
            // Where the squares leave the range of f64 the scale is half the range instead.
            let expected = if exponent.abs() > 152 { moments.scale() } else { unit * factor };
            close(moments.scale(), expected, 1e-12);
            assert!(moments.scale() > 0.1 * factor && moments.scale() < 10.0 * factor);
        }
        let extreme = of([f64::MAX, f64::MIN, f64::MAX]);
        assert!(extreme.mean().is_finite() && extreme.scale().is_finite());
    }

    #[test]
    fn a_large_offset_costs_only_the_digits_it_has_to() {
        let near = of(noise(10_000));
        let far = of(noise(10_000).map(|v| v + 1e9));
        close(far.scale(), near.scale(), 1e-9);
        close(far.mean(), 1e9 + near.mean(), 2.0 * f64::EPSILON);
    }

    /// Two values differ by two spreads, whatever the rows that have either, in parts and together.
    #[test]
    fn two_values_are_spread_by_half_of_their_difference() {
        let rare = || (0..200).map(|i| if i == 70 { 7.0 } else { 3.0 });
        assert_eq!(of(rare()).spread(), 2.0);
        assert_eq!(of(rare().chain([3.5])).spread(), of(rare().chain([3.5])).scale());
        let mut parts = Moments::default();
        for part in [of([3.0; 4]), of([]), of([7.0; 2]), of(rare())] {
            parts.merge(&part);
        }
        assert_eq!(parts.spread(), 2.0);
        for other in [of([3.0, 8.0]), of([5.0]), of([1.0, 3.0])] {
            let mut more = parts;
            more.merge(&other);
            assert_eq!(more.spread(), more.scale());
        }
        let x = crate::linalg::Mat::from_fn(200, 2, |i, q| match q {
            0 => {
                if i == 70 {
                    7.0
                } else {
                    3.0
                }
            }
            _ => (i % 3) as f64,
        });
        let found = spreads(x.as_ref());
        assert_eq!(found[0], 2.0);
        close(found[1], of((0..200).map(|i| (i % 3) as f64)).scale(), 1e-12);
    }

    #[test]
    fn constants_have_scale_one_whatever_the_rounding() {
        for value in [0.0, 0.1, -1e300, 1e-300, 1e9 + 0.1] {
            let moments = of(std::iter::repeat_n(value, 1001));
            assert!(moments.is_constant());
            assert_eq!((moments.mean(), moments.scale()), (value, 1.0));
        }
        assert_eq!((Moments::default().mean(), Moments::default().scale()), (0.0, 1.0));
        // Not constant, if only just.
        assert!(!of([1.0, 1.0 + f64::EPSILON]).is_constant());
    }

    #[test]
    fn merging_is_as_good_as_pushing() {
        let offset = noise(3000).map(|v| v * 7.0 + 1e6);
        let whole = of(offset.clone());
        for cut in [0, 1, 1000, 2999, 3000] {
            let mut left = of(offset.clone().take(cut));
            left.merge(&of(offset.clone().skip(cut)));
            assert_eq!(left.count(), 3000);
            close(left.mean(), whole.mean(), 1e-15);
            close(left.scale(), whole.scale(), 1e-10);
        }
    }
}
