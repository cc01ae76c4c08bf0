//! Up to which frequency unevenly placed rows can tell waves apart.

/// Most cycles over the range of the places that are looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cycles {
    /// By the gaps that are typical: up to half a cycle in a gap, as with even places (the Nyquist frequency).
    pub typical: f64,
    /// By the smallest gaps.
    pub most: f64,
}

/// Places whose gaps differ by less than this are even: a wave above their Nyquist frequency is a slower wave's alias.
const EVEN: f64 = 0.8;
/// The part of the gaps that may be smaller than those that count: places next to each other by chance tell nothing.
const SMALL: f64 = 0.05;
/// How nearly gaps must be multiples of one number to be on its grid, in parts of the smallest.
const ON_GRID: f64 = 1e-3;
/// A grid much finer than the smallest gap is none.
const FINEST: f64 = 0.02;

/// Returns the cycles for places in rising order, all different; at least two.
///
/// Uneven places tell waves apart beyond the Nyquist frequency of their mean gap (Eyer & Bartholdi 1999: up to half a cycle in
/// the spacing of the grid on which they all lie, which for arbitrary places is far beyond what a search can cover). On a
/// grid, like days of which some are missing, that limit is taken; elsewhere half a cycle in the gaps that are smaller
/// than all but a few.
pub(super) fn cycles(places: &[f64]) -> Cycles {
    let range = places[places.len() - 1] - places[0];
    let mut gaps: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| gaps[((gaps.len() - 1) as f64 * part) as usize];
    let (small, median) = (at(SMALL), at(0.5));
    let mean = range / gaps.len() as f64;
    let typical = 0.5 * range / median.min(mean);
    if small > EVEN * median {
        return Cycles { typical, most: typical };
    }
    let spacing = grid(&gaps).unwrap_or(small);
    Cycles { typical, most: typical.max(0.5 * range / spacing) }
}

/// Returns the spacing of the grid on which all places lie, if there is one: the greatest common
/// divisor of the gaps (rising).
fn grid(gaps: &[f64]) -> Option<f64> {
    let smallest = gaps[0];
    let tolerance = ON_GRID * smallest;
    let mut spacing = smallest;
    for gap in gaps {
        let mut rest = (gap - (gap / spacing).round() * spacing).abs();
        while rest > tolerance {
            (spacing, rest) = (rest, (spacing - (spacing / rest).round() * rest).abs());
        }
        if spacing < FINEST * smallest {
            return None;
        }
    }
    Some(spacing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(places: impl IntoIterator<Item = f64>) -> Cycles {
        cycles(&places.into_iter().collect::<Vec<_>>())
    }

    fn is(found: Cycles, typical: f64, most: f64) {
        assert!((found.typical / typical - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.most / most - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn even_places_have_their_nyquist_frequency() {
        is(of((0..50).map(|i| 7.3 + 0.2 * f64::from(i))), 24.5, 24.5);
        // months: 28 to 31 days
        let months = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut day = 0.0;
        let starts: Vec<f64> = (0..48)
            .map(|i| {
                day += f64::from(months[i % 12]);
                day
            })
            .collect();
        let found = of(starts);
        assert_eq!(found.typical, found.most);
        assert!(found.typical < 24.0, "{found:?}");
    }

    #[test]
    fn a_grid_with_missing_places_has_that_of_the_grid() {
        // multiples of 0.1 (less rounding) far from the origin, of which none are neighbours
        let grid = [0.0, 3.0, 5.0, 11.0, 13.0, 20.0, 26.0, 29.0, 40.0];
        is(of(grid.map(|k| 1e3 + 0.1 * k)), 20.0 / 3.0, 20.0);
        // blocks of hours, weeks apart
        let blocks = (0..24).chain(2000..2024).map(f64::from);
        is(of(blocks), 0.5 * 2023.0, 0.5 * 2023.0);
    }

    #[test]
    fn other_places_have_that_of_their_small_gaps() {
        // gaps of 1, √2, 0.03 once: the last is by chance
        let gaps = (0..60).map(|i| if i == 7 { 0.03 } else { [1.0, 2_f64.sqrt(), 2.7][i % 3] });
        let mut place = 0.0;
        let places: Vec<f64> = std::iter::once(0.0)
            .chain(gaps.map(|gap| {
                place += gap;
                place
            }))
            .collect();
        let found = of(places);
        assert!((found.most / (0.5 * place) - 1.0).abs() < 1e-9, "{found:?}");
    }
}
