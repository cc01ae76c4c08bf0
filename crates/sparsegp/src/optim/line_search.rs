//! Line search for the strong Wolfe conditions (Nocedal & Wright 2006, Alg. 3.5 and 3.6) that
//! takes a point without a value for an infinitely high one and comes nearer.

use super::vector::{add_scaled, all_finite, dot};
use super::{Objective, Outcome, evaluate};
use crate::error::Result;

/// Constants of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wolfe {
    /// c₁ of the sufficient decrease, equation (3.7a).
    pub decrease: f64,
    /// c₂ of the curvature, equation (3.7b).
    pub curvature: f64,
    /// Most evaluations in one search.
    pub evaluations: usize,
    /// Longest step; one that still goes down there is taken.
    pub longest: f64,
    /// A bracket that after [`PATIENCE`] trials promises no more than this share of the decrease so far is not worth
    /// another; 0 to continue until both conditions hold.
    pub little: f64,
    /// Differences of values below this are ignored, and slopes decide (Hager & Zhang 2005).
    pub noise: f64,
}

/// Where the search starts: x, value, gradient there, and the direction.
pub(super) struct Ray<'a> {
    pub x: &'a [f64],
    pub value: f64,
    pub gradient: &'a [f64],
    pub direction: &'a [f64],
}

/// A point on the ray, with its gradient and slope φ′.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub alpha: f64,
    pub value: f64,
    pub slope: f64,
    pub x: Vec<f64>,
    pub gradient: Vec<f64>,
}

/// Result of a search.
pub(super) struct Found {
    /// A lower point, if there is one.
    pub point: Option<Point>,
    /// Evaluations spent.
    pub evaluations: usize,
    /// The function was still falling at the longest step tried.
    pub endless: bool,
    /// The last of the points without a value that kept the search from a longer step, if any did, as a sentence.
    pub wall: Option<String>,
}

/// What is known of the other end of a bracket: its step and, if it has them, value and slope.
#[derive(Clone, Copy)]
struct End {
    alpha: f64,
    finite: Option<(f64, f64)>,
}

impl End {
    fn of(point: &Point) -> Self {
        Self { alpha: point.alpha, finite: Some((point.value, point.slope)) }
    }
}

struct Search<'a> {
    ray: &'a Ray<'a>,
    slope: f64,
    wolfe: Wolfe,
    evaluations: usize,
    wall: Option<String>,
}

/// Relative rounding error of an objective that sums over many rows. Near the minimum, differences
/// below it say nothing and the slopes decide (Hager & Zhang 2005, "approximate Wolfe").
const VALUE_NOISE: f64 = 1e-12;

/// A bracket that has more than this share of its width after two trial steps is halved (Moré & Thuente 1994, §4).
const SHRINKING: f64 = 0.66;

/// Trials in a bracket before [`Wolfe::little`] counts.
const PATIENCE: usize = 5;

/// A search that is still going down at this step has no end in sight.
const ENDLESS: f64 = 1e6;

impl Search<'_> {
    /// Returns the point at `alpha`; none where the objective has no usable value.
    fn at(&mut self, objective: &mut dyn Objective, alpha: f64) -> Result<Option<Point>> {
        let mut x = self.ray.x.to_vec();
        add_scaled(&mut x, alpha, self.ray.direction);
        self.evaluations += 1;
        if !all_finite(&x) {
            return Ok(None);
        }
        let mut gradient = vec![0.0; x.len()];
        Ok(match evaluate(objective, &x, &mut gradient)? {
            Outcome::Infeasible(error) => {
                self.wall = Some(error.to_string());
                None
            }
            Outcome::Finite(value, _) => {
                let slope = dot(&gradient, self.ray.direction);
                slope.is_finite().then_some(Point { alpha, value, slope, x, gradient })
            }
        })
    }

    fn exhausted(&self) -> bool {
        self.evaluations >= self.wolfe.evaluations
    }

    fn decreases_enough(&self, point: &Point) -> bool {
        let decrease = self.wolfe.decrease * point.alpha * self.slope;
        point.value <= self.ray.value + decrease + self.wolfe.noise
    }

    fn is_flat_enough(&self, point: &Point) -> bool {
        point.slope.abs() <= -self.wolfe.curvature * self.slope
    }

    /// Returns whether the approximate Wolfe conditions hold, for values that differ by rounding
    /// only.
    fn is_flat_within_noise(&self, point: &Point) -> bool {
        let noise = (VALUE_NOISE * self.ray.value.abs()).max(self.wolfe.noise);
        (point.value - self.ray.value).abs() <= noise
            && (2.0 * self.wolfe.decrease - 1.0) * self.slope >= point.slope
            && self.is_flat_enough(point)
    }

    /// Returns whether the two ends are the same vector in floating point.
    fn is_collapsed(&self, a: f64, b: f64) -> bool {
        let width = (a - b).abs();
        let mut pairs = self.ray.direction.iter().zip(self.ray.x);
        pairs.all(|(d, x)| (width * d).abs() <= f64::EPSILON * x.abs())
    }

    /// Zooms in by Alg. 3.6. `low` fulfils the sufficient decrease and has the lowest value so far
    /// (or is none, which stands for the start); a step that fulfils both conditions lies between
    /// it and `high`.
    fn zoom(
        &mut self,
        objective: &mut dyn Objective,
        mut low: Option<Point>,
        mut high: End,
    ) -> Result<Option<Point>> {
        let (mut widths, mut trials) = ([f64::INFINITY; 2], 0);
        loop {
            let start = End { alpha: 0.0, finite: Some((self.ray.value, self.slope)) };
            let near = low.as_ref().map_or(start, End::of);
            // Where the function falls towards a wall, the curvature condition may never hold: half
            // the way to the wall is as good as any.
            let at_wall = high.finite.is_none() && near.alpha > 0.5 * high.alpha;
            if at_wall || self.exhausted() || self.is_collapsed(near.alpha, high.alpha) {
                return Ok(low);
            }
            let width = (high.alpha - near.alpha).abs();
            // What the slope promises for the rest of the bracket: where values are exact and slopes are not quite, as at
            // sites that are almost at their best, no point may ever be flat.
            trials += 1;
            if trials > PATIENCE
                && let Some(point) = &low
                && point.slope.abs() * width <= self.wolfe.little * (self.ray.value - point.value)
            {
                return Ok(low);
            }
            // Far above all else, the other end draws the cubic's minimiser to this one, again and again.
            let creeps = width > SHRINKING * widths[0] && high.finite.is_some();
            widths = [widths[1], width];
            let alpha = if creeps { 0.5 * (near.alpha + high.alpha) } else { between(near, high) };
            if alpha == near.alpha || alpha == high.alpha {
                return Ok(low);
            }
            let Some(point) = self.at(objective, alpha)? else {
                high = End { alpha, finite: None };
                continue;
            };
            if self.is_flat_within_noise(&point) {
                return Ok(Some(point));
            }
            let (low_value, _) = near.finite.unwrap_or((self.ray.value, self.slope));
            // Values that are equal but for rounding do not tell higher from lower; slopes do.
            let rounding = 8.0 * f64::EPSILON * low_value.abs().max(point.value.abs());
            let rounding = rounding.max(self.wolfe.noise);
            let is_tie = low.is_some() && (point.value - low_value).abs() <= rounding;
            if !self.decreases_enough(&point) || (point.value >= low_value && !is_tie) {
                high = End::of(&point);
                continue;
            }
            if self.is_flat_enough(&point) {
                return Ok(Some(point));
            }
            if point.slope * (high.alpha - near.alpha) >= 0.0 {
                high = near;
            }
            low = Some(point);
        }
    }
}

/// Searches from step 1 on (Alg. 3.5).
///
/// # Errors
/// An error of the objective that is not recoverable.
pub(super) fn search(objective: &mut dyn Objective, ray: &Ray<'_>, wolfe: Wolfe) -> Result<Found> {
    let slope = dot(ray.gradient, ray.direction);
    let mut search = Search { ray, slope, wolfe, evaluations: 0, wall: None };
    let mut previous: Option<Point> = None;
    let mut alpha = wolfe.longest.min(1.0);
    let mut endless = false;
    let point = loop {
        if search.exhausted() {
            endless = previous.as_ref().is_some_and(|point| point.alpha >= ENDLESS);
            break previous;
        }
        let Some(point) = search.at(objective, alpha)? else {
            break search.zoom(objective, previous, End { alpha, finite: None })?;
        };
        if search.is_flat_within_noise(&point) {
            break Some(point);
        }
        let highest = |previous: &Point| previous.value + wolfe.noise;
        let no_better = previous.as_ref().is_some_and(|previous| point.value > highest(previous));
        if !search.decreases_enough(&point) || no_better {
            let high = End::of(&point);
            break search.zoom(objective, previous, high)?;
        }
        if search.is_flat_enough(&point) {
            break Some(point);
        }
        if point.alpha >= wolfe.longest {
            break Some(point);
        }
        if point.slope >= 0.0 {
            let start = End { alpha: 0.0, finite: Some((ray.value, slope)) };
            let high = previous.as_ref().map_or(start, End::of);
            break search.zoom(objective, Some(point), high)?;
        }
        let start = End { alpha: 0.0, finite: Some((ray.value, slope)) };
        alpha =
            beyond(previous.as_ref().map_or(start, End::of), End::of(&point)).min(wolfe.longest);
        previous = Some(point);
    };
    // a point that is flat enough was not kept from anything
    let free = point.as_ref().is_some_and(|point| search.is_flat_enough(point));
    let Search { evaluations, wall, .. } = search;
    let wall = wall.filter(|_| !free);
    Ok(Found { point, evaluations, endless, wall })
}

/// Returns the minimiser of the cubic through two values and slopes, equation (3.59).
fn cubic(a: End, b: End) -> Option<f64> {
    let ((fa, ga), (fb, gb)) = (a.finite?, b.finite?);
    let d1 = ga + gb - 3.0 * (fa - fb) / (a.alpha - b.alpha);
    let root = d1 * d1 - ga * gb;
    if root < 0.0 {
        return None;
    }
    let d2 = (b.alpha - a.alpha).signum() * root.sqrt();
    let minimiser = b.alpha - (b.alpha - a.alpha) * (gb + d2 - d1) / (gb - ga + 2.0 * d2);
    minimiser.is_finite().then_some(minimiser)
}

/// Returns a trial step inside a bracket: the cubic's minimiser, at least a tenth of the width away
/// from both ends; the middle if there is none. As long as only the start has a value, a quarter.
fn between(low: End, high: End) -> f64 {
    let width = high.alpha - low.alpha;
    let fraction = match (high.finite, cubic(low, high)) {
        (None, _) if low.alpha == 0.0 => 0.25,
        (_, None) => 0.5,
        (_, Some(minimiser)) => ((minimiser - low.alpha) / width).clamp(0.1, 0.9),
    };
    low.alpha + fraction * width
}

/// Returns a longer trial step: the cubic's minimiser, two to ten times as far; ten times where the
/// slope has hardly changed, because then the values tell rounding errors rather than curvature.
fn beyond(previous: End, current: End) -> f64 {
    let (least, most) = (2.0 * current.alpha, 10.0 * current.alpha);
    if let (Some((_, before)), Some((_, now))) = (previous.finite, current.finite)
        && now <= 0.99 * before
    {
        return most;
    }
    match cubic(previous, current) {
        Some(minimiser) if minimiser > current.alpha => minimiser.clamp(least, most),
        _ => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::test_functions::Scalar;

    const WOLFE: Wolfe = Wolfe {
        decrease: 1e-4,
        curvature: 0.1,
        evaluations: 30,
        longest: f64::INFINITY,
        little: 0.0,
        noise: 0.0,
    };

    /// Searches from 0 along `direction`.
    fn raw(f: impl Fn(f64) -> Option<(f64, f64)>, direction: f64) -> Found {
        by(WOLFE, f, direction)
    }

    fn by(wolfe: Wolfe, f: impl Fn(f64) -> Option<(f64, f64)>, direction: f64) -> Found {
        let (value, slope) = f(0.0).unwrap();
        let ray = Ray { x: &[0.0], value, gradient: &[slope], direction: &[direction] };
        let found = search(&mut Scalar(f), &ray, wolfe).unwrap();
        if let Some(point) = &found.point {
            let decrease = WOLFE.decrease * point.alpha * slope * direction;
            assert!(point.value <= value + decrease + wolfe.noise);
            assert_eq!(point.x[0], point.alpha * direction);
        }
        found
    }

    /// The same, and checks the curvature condition.
    fn run(f: impl Fn(f64) -> Option<(f64, f64)>, direction: f64) -> Found {
        let slope = f(0.0).unwrap().1;
        let found = raw(f, direction);
        let point = found.point.as_ref().unwrap();
        assert!(point.slope.abs() <= -WOLFE.curvature * slope * direction, "{point:?}");
        assert!(!found.endless);
        found
    }

    #[test]
    fn wolfe_conditions_hold_at_every_scale() {
        for scale in [1e-8, 1e-3, 1.0, 1e3, 1e8] {
            // Minimum at x = scale, while the first trial is at x = 1.
            let quadratic =
                |x: f64| Some(((x / scale - 1.0).powi(2), 2.0 * (x / scale - 1.0) / scale));
            let found = run(quadratic, 1.0);
            assert!(found.evaluations <= 15, "{scale}: {}", found.evaluations);
        }
    }

    #[test]
    fn wolfe_conditions_hold_on_the_functions_of_more_and_thuente() {
        // Moré & Thuente 1994, equations (5.1) and (5.2), β = 2 and 0.004.
        let first = |x: f64| Some((-x / (x * x + 2.0), (x * x - 2.0) / (x * x + 2.0).powi(2)));
        let second = |x: f64| {
            let t: f64 = x + 0.004;
            Some((t.powi(5) - 2.0 * t.powi(4), 5.0 * t.powi(4) - 8.0 * t.powi(3)))
        };
        for direction in [1e-3, 1e-1, 1e1, 1e3] {
            run(first, direction);
            run(second, direction);
        }
    }

    #[test]
    fn a_bracket_with_an_end_far_above_is_halved() {
        // minimum near 0.6; from 0.7 on the function is as steep as can be
        let f = |x: f64| {
            let wall = (x - 0.7).max(0.0);
            Some((-x + x * x / 1.2 + 1e6 * wall.powi(2), -1.0 + x / 0.6 + 2e6 * wall))
        };
        for direction in [1.0, 7.0] {
            let found = run(f, direction);
            assert!(found.evaluations <= 8, "{direction}: {}", found.evaluations);
        }
    }

    #[test]
    fn a_search_whose_slopes_never_vanish_ends_when_little_is_left() {
        // the slope is off by a constant, as where the objective is a maximum over something that is almost found
        let f =
            |x: f64| Some(((x - 0.3).powi(2), 2.0 * (x - 0.3) + if x > 0.0 { -0.3 } else { 0.0 }));
        let patient = by(WOLFE, f, 1.0);
        let quick = by(Wolfe { little: 0.05, ..WOLFE }, f, 1.0);
        assert!(patient.evaluations > quick.evaluations, "{}", patient.evaluations);
        assert!(quick.evaluations <= 12, "{}", quick.evaluations);
        let (own, other) = (quick.point.unwrap().value, patient.point.unwrap().value);
        assert!(own <= other + 0.05 * 0.09, "{own} {other}");
    }

    #[test]
    fn slopes_decide_where_values_differ_by_noise() {
        let mut slow = 0;
        for phase in 0..20 {
            // a minimum at 0.3, and values with an error that slopes do not have
            let wave = |x: f64| 0.05 * (200.0 * x + f64::from(phase)).sin();
            let f = |x: f64| Some(((x - 0.3).powi(2) + wave(x), 2.0 * (x - 0.3)));
            for direction in [0.1, 1.0, 20.0] {
                let found = by(Wolfe { noise: 0.1, ..WOLFE }, f, direction);
                let point = found.point.expect("a point");
                assert!((point.x[0] - 0.3).abs() <= 0.031, "{direction}: {}", point.x[0]);
                assert!(found.evaluations <= 10, "{direction}: {}", found.evaluations);
            }
            let strict = by(WOLFE, f, 1.0);
            let there = strict.point.is_some_and(|point| (point.x[0] - 0.3).abs() <= 0.031);
            slow += usize::from(!there || strict.evaluations > 10);
        }
        assert!(slow >= 2, "{slow}");
    }

    #[test]
    fn a_wall_is_a_very_high_place() {
        // Minimum at 0.9, nothing at 1 and beyond.
        for wall in [1.0, 0.95, 0.901] {
            let f = |x: f64| (x < wall).then(|| ((x - 0.9_f64).powi(2), 2.0 * (x - 0.9)));
            for direction in [1.0, 30.0, 1e6] {
                let found = raw(f, direction);
                assert!(found.point.is_some(), "{wall} {direction}");
                assert!(found.evaluations <= 20, "{wall} {direction} {}", found.evaluations);
            }
        }
        // Nothing at all but the start.
        let found = raw(|x| (x == 0.0).then_some((0.0, -1.0)), 1.0);
        assert!(found.point.is_none());
        assert_eq!(found.evaluations, WOLFE.evaluations);
    }

    #[test]
    fn a_linear_function_is_endless() {
        let found = raw(|x| Some((-x, -1.0)), 1.0);
        assert!(found.endless && found.evaluations == WOLFE.evaluations);
        assert!(found.point.unwrap().value < -1e8);
    }

    #[test]
    fn a_wrong_gradient_finds_nothing() {
        let found = raw(|x| Some((x, -1.0)), 1.0);
        assert!(found.point.is_none());
    }

    #[test]
    fn the_cubic_is_exact_for_cubics() {
        let f = |x: f64| (x.powi(3) - 3.0 * x, 3.0 * x * x - 3.0);
        let end = |alpha| End { alpha, finite: Some(f(alpha)) };
        for (a, b) in [(0.0, 3.0), (3.0, 0.0), (0.5, 0.7), (-0.5, 10.0)] {
            assert!((cubic(end(a), end(b)).unwrap() - 1.0).abs() < 1e-12, "{a} {b}");
        }
        assert_eq!(cubic(end(0.0), End { alpha: 1.0, finite: None }), None);
        assert_eq!(cubic(end(1.0), end(1.0)), None);
    }

    #[test]
    fn trial_steps_stay_in_their_ranges() {
        let end = |alpha, value, slope| End { alpha, finite: Some((value, slope)) };
        assert_eq!(between(end(0.0, 0.0, -1.0), End { alpha: 1.0, finite: None }), 0.25);
        for high in [end(1.0, 1e9, 1e9), end(1.0, 1e300, -1e300), end(1.0, 1e-9, -1.0)] {
            let alpha = between(end(0.0, 0.0, -1.0), high);
            assert!((0.1..=0.9).contains(&alpha), "{alpha}");
        }
        for current in [end(1.0, -1.0, -1.0), end(1.0, -1.0, -1e-9), end(1.0, -2.0, -5.0)] {
            let alpha = beyond(end(0.0, 0.0, -1.0), current);
            assert!((2.0..=10.0).contains(&alpha), "{alpha}");
        }
    }
}
