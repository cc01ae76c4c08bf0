//! E[log p(y | f)] of many rows with slopes: by [`integrals`] of one latent function, by points of Gauss–Hermite of several.
//! With g = log p and f = μ + √v t, slopes in mean and variance are E[g t]/√v and E[g(t² − 1)]/2v by parts, of values only, where a
//! density gives none and g is smooth; else E[g′] and E[g′t]/2√v, or ½E[g″] (Price 1958) where v is nearly 0.

use super::integrals::integrals;
use super::{General, Many, normal};
use crate::error::Result;
use crate::likelihoods::multi_points::Points;
use crate::linalg::{Mat, MatRef, column};
use crate::params::{Param, STEP};

/// Step of a second difference.
const SECOND: f64 = 1e-4;
/// Below this variance the slope of the rule, which divides by √v, is left for ½ E[g″].
const SMALL_VARIANCE: f64 = 1e-8;
/// From this variance on, values of log p are enough for both slopes.
const WIDE: f64 = 1e-6;
/// Latent values that are asked for at once, more or less.
const AT_ONCE: usize = 1 << 16;
/// Nodes that a row of one latent function takes where its density is smooth.
const NODES: usize = 41;

/// log p at pairs with its slopes: in f (N×K), and in the parameters (N×P).
struct Sloped {
    value: Vec<f64>,
    by_f: Mat<f64>,
    by_parameters: Mat<f64>,
}

/// Picks some rows of numbers row by row, so many each.
fn picked(all: &[f64], each: usize, rows: &[usize]) -> Vec<f64> {
    rows.iter().flat_map(|row| &all[row * each..(row + 1) * each]).copied().collect()
}

/// Puts rows back.
fn put(from: &[f64], each: usize, rows: &[usize], to: &mut [f64]) {
    for (at, row) in rows.iter().enumerate() {
        to[row * each..(row + 1) * each].copy_from_slice(&from[at * each..(at + 1) * each]);
    }
}

impl General {
    /// Adds nothing, writes everything: values and slopes of E[log p] for means and variances of rows (N×K, row by row).
    pub(super) fn expected(&self, y: &[f64], mean: &[f64], variance: &[f64], out: Many<'_>) {
        let (k, p) = (self.density.latents(), self.params.iter().map(Param::len).sum::<usize>());
        let Many { value, mean: by_mean, variance: by_variance, params } = out;
        let each = self.points.as_ref().map_or(NODES, |points| points.iter().count());
        let rows = (AT_ONCE / each).max(1);
        for start in (0..y.len()).step_by(rows) {
            let end = (start + rows).min(y.len());
            let (at, own) = (start * k..end * k, start * p..end * p);
            let part = Many {
                value: &mut value[start..end],
                mean: &mut by_mean[at.clone()],
                variance: &mut by_variance[at.clone()],
                params: &mut params[own],
            };
            let (y, mean, variance) = (&y[start..end], &mean[at.clone()], &variance[at]);
            let known = |row: usize| variance[row * k..(row + 1) * k].iter().all(|v| *v == 0.0);
            let (known, open): (Vec<usize>, Vec<usize>) = (0..y.len()).partition(|i| known(*i));
            match (known.is_empty(), open.is_empty()) {
                (true, _) => self.expected_of_open(y, mean, variance, part),
                (_, true) => self.expected_of_known(y, mean, part),
                // the bits of a row do not depend on those beside it
                _ => {
                    let Many { value, mean: a, variance: b, params: c } = part;
                    for (rows, are_known) in [(known, true), (open, false)] {
                        let of = |all: &[f64], each| picked(all, each, &rows);
                        let (y, mean, variance) = (of(y, 1), of(mean, k), of(variance, k));
                        let mut found = [1, k, k, p].map(|each| vec![0.0; each * rows.len()]);
                        let [v, by_mean, by_variance, params] = &mut found;
                        let own = Many { value: v, mean: by_mean, variance: by_variance, params };
                        match are_known {
                            true => self.expected_of_known(&y, &mean, own),
                            false => self.expected_of_open(&y, &mean, &variance, own),
                        }
                        let into = [(&mut *value, 1), (&mut *a, k), (&mut *b, k), (&mut *c, p)];
                        for ((to, each), from) in into.into_iter().zip(&found) {
                            put(from, each, &rows, to);
                        }
                    }
                }
            }
        }
    }

    /// Computes expectations of latent functions that are not known.
    fn expected_of_open(&self, y: &[f64], mean: &[f64], variance: &[f64], out: Many<'_>) {
        match &self.points {
            None => self.expected_of_one(y, mean, variance, out),
            Some(points) => self.expected_of_several(points, y, mean, variance, out),
        }
    }

    /// Computes log p at latent values (N×K, row by row) with its slopes there.
    pub(super) fn slopes_in_f(&self, y: &[f64], f: &[f64], value: &mut [f64], slopes: &mut [f64]) {
        let k = f.len() / y.len();
        let f = MatRef::from_row_major_slice(f, y.len(), k);
        let found = if self.density.has_slopes() {
            self.sloped(y, f, true)
        } else {
            let (value, mut by_f) = (self.log(y, f), Mat::zeros(y.len(), k));
            self.in_f_by_differences(y, f, &mut by_f);
            Sloped { value, by_f, by_parameters: Mat::new() }
        };
        value.copy_from_slice(&found.value);
        for (row, own) in slopes.chunks_exact_mut(k).enumerate() {
            own.iter_mut().enumerate().for_each(|(l, s)| *s = found.by_f[(row, l)]);
        }
    }

    /// Computes expectations of latent functions that are known.
    fn expected_of_known(&self, y: &[f64], f: &[f64], out: Many<'_>) {
        let (k, p) = (f.len() / y.len(), out.params.len() / y.len());
        let f = MatRef::from_row_major_slice(f, y.len(), k);
        let found = self.sloped(y, f, true);
        let second = self.second(y, f, &found);
        out.value.copy_from_slice(&found.value);
        for row in 0..y.len() {
            for l in 0..k {
                out.mean[row * k + l] = found.by_f[(row, l)];
                out.variance[row * k + l] = 0.5 * second[(row, l)];
            }
            (0..p).for_each(|q| out.params[row * p + q] = found.by_parameters[(row, q)]);
        }
    }

    /// Computes expectations of one latent function: every row with as many nodes as it needs.
    fn expected_of_one(&self, y: &[f64], mean: &[f64], variance: &[f64], out: Many<'_>) {
        let p = out.params.len() / y.len().max(1);
        let deviation: Vec<f64> = variance.iter().map(|v| v.max(0.0).sqrt()).collect();
        let small = |row: usize| variance[row] < SMALL_VARIANCE;
        let wide = |row: usize| variance[row] >= WIDE && !self.density.has_slopes();
        // so that what varies is not lost beside what does not
        let mut centre = self.log(y, MatRef::from_column_major_slice(mean, y.len(), 1));
        centre.iter_mut().filter(|g| !g.is_finite()).for_each(|g| *g = 0.0);
        // log p, what gives its slopes in mean and variance, and slopes in the parameters
        let mut of = |rows: &[usize], t: &[f64], kinked: bool| {
            let own: Vec<f64> = rows.iter().map(|row| y[*row]).collect();
            let f: Vec<f64> =
                rows.iter().zip(t).map(|(i, t)| mean[*i] + deviation[*i] * t).collect();
            let f = MatRef::from_column_major_slice(&f, t.len(), 1);
            let by_values = |row: usize| wide(row) && !kinked;
            let found = self.sloped(&own, f, !rows.iter().all(|row| by_values(*row)));
            let second = rows.iter().any(|row| small(*row)).then(|| self.second(&own, f, &found));
            let slope = column(found.by_f.as_ref(), 0);
            let mut all = Mat::zeros(t.len(), 3 + p);
            for (i, (&row, &t)) in rows.iter().zip(t).enumerate() {
                let (value, deviation) = (found.value[i], deviation[row]);
                let varying = (value - centre[row]) / deviation;
                let [a, b] = match (&second, by_values(row)) {
                    (_, true) => [varying * t, 0.5 * varying / deviation * (t * t - 1.0)],
                    (Some(second), _) if small(row) => [slope[i], second[(i, 0)]],
                    _ if wide(row) => [slope[i], 0.5 * slope[i] * t / deviation],
                    _ => [slope[i], slope[i] * t],
                };
                let normal = normal(t);
                [value, a, b].iter().enumerate().for_each(|(q, v)| all[(i, q)] = normal * v);
                (0..p).for_each(|q| all[(i, 3 + q)] = normal * found.by_parameters[(i, q)]);
            }
            all
        };
        for (row, own) in integrals(y.len(), 3 + p, small, &mut of).into_iter().enumerate() {
            out.value[row] = own[0];
            out.mean[row] = own[1];
            out.variance[row] = match own[2] {
                whole if wide(row) => whole,
                second if small(row) => 0.5 * second,
                first => 0.5 * first / deviation[row],
            };
            out.params[row * p..(row + 1) * p].copy_from_slice(&own[3..]);
        }
    }

    fn expected_of_several(
        &self,
        points: &Points,
        y: &[f64],
        mean: &[f64],
        variance: &[f64],
        out: Many<'_>,
    ) {
        let (x, w): (Vec<&[f64]>, Vec<f64>) = points.iter().unzip();
        let (k, count) = (self.density.latents(), w.len());
        let all: Vec<f64> = y.iter().flat_map(|y| vec![*y; count]).collect();
        let f = Mat::from_fn(all.len(), k, |i, l| {
            let at = (i / count) * k + l;
            mean[at] + variance[at].max(0.0).sqrt() * x[i % count][l]
        });
        let found = self.sloped(&all, f.as_ref(), true);
        let small = variance.iter().any(|v| *v < SMALL_VARIANCE);
        let second = small.then(|| self.second(&all, f.as_ref(), &found));
        out.value.fill(0.0);
        out.mean.fill(0.0);
        out.variance.fill(0.0);
        out.params.fill(0.0);
        let p = found.by_parameters.ncols();
        for (i, value) in found.value.iter().enumerate() {
            let (row, w, x) = (i / count, w[i % count], x[i % count]);
            out.value[row] += w * value;
            for l in 0..k {
                let (at, slope) = (row * k + l, found.by_f[(i, l)]);
                out.mean[at] += w * slope;
                out.variance[at] += 0.5
                    * w
                    * match &second {
                        Some(second) if variance[at] < SMALL_VARIANCE => second[(i, l)],
                        _ => slope * x[l] / variance[at].sqrt(),
                    };
            }
            for q in 0..p {
                out.params[row * p + q] += w * found.by_parameters[(i, q)];
            }
        }
    }

    /// Returns log p with its slopes; those in f may be left out where they would be differences.
    fn sloped(&self, y: &[f64], f: MatRef<f64>, in_f: bool) -> Sloped {
        let p = self.params.iter().map(Param::len).sum();
        let mut found = Sloped {
            value: self.log(y, f),
            by_f: Mat::full(y.len(), f.ncols(), f64::NAN),
            by_parameters: Mat::full(y.len(), p, f64::NAN),
        };
        if self.density.has_slopes() {
            let Sloped { by_f, by_parameters, .. } = &mut found;
            self.density.slopes(&self.numbers(), y, f, by_f, by_parameters);
        } else {
            if in_f {
                self.in_f_by_differences(y, f, &mut found.by_f);
            }
            self.in_parameters_by_differences(y, f, &mut found.by_parameters);
        }
        found
    }

    /// Returns the latent values with one column moved by a step of their size; by how much.
    fn moved(f: MatRef<f64>, l: usize, step: f64) -> (Mat<f64>, Vec<f64>) {
        let mut moved = f.to_owned();
        let mut by = Vec::with_capacity(f.nrows());
        for v in moved.col_as_slice_mut(l) {
            let before = *v;
            *v += step * before.abs().max(1.0);
            by.push(*v - before);
        }
        (moved, by)
    }

    fn in_f_by_differences(&self, y: &[f64], f: MatRef<f64>, slopes: &mut Mat<f64>) {
        for l in 0..f.ncols() {
            let ((up, above), (down, below)) = (Self::moved(f, l, STEP), Self::moved(f, l, -STEP));
            let (up, down) = (self.log(y, up.as_ref()), self.log(y, down.as_ref()));
            for (i, slope) in slopes.col_as_slice_mut(l).iter_mut().enumerate() {
                *slope = (up[i] - down[i]) / (above[i] - below[i]);
            }
        }
    }

    fn in_parameters_by_differences(&self, y: &[f64], f: MatRef<f64>, all: &mut Mat<f64>) {
        let of = |numbers: &[&[f64]]| {
            let mut out = vec![f64::NAN; y.len()];
            self.density.log_density(numbers, y, f, &mut out);
            out
        };
        Param::differences(&self.params, of, |at, up, down, apart| {
            let slopes = all.col_as_slice_mut(at).iter_mut();
            slopes.enumerate().for_each(|(i, s)| *s = (up[i] - down[i]) / apart);
        });
    }

    /// Returns the second derivatives in every latent value.
    fn second(&self, y: &[f64], f: MatRef<f64>, found: &Sloped) -> Mat<f64> {
        let mut second = Mat::zeros(f.nrows(), f.ncols());
        for l in 0..f.ncols() {
            let ((up, above), (down, below)) =
                (Self::moved(f, l, SECOND), Self::moved(f, l, -SECOND));
            let own = second.col_as_slice_mut(l).iter_mut().enumerate();
            if self.density.has_slopes() {
                let [up, down] = [up, down].map(|f| self.sloped(y, f.as_ref(), true));
                own.for_each(|(i, s)| {
                    *s = (up.by_f[(i, l)] - down.by_f[(i, l)]) / (above[i] - below[i]);
                });
            } else {
                let (up, down) = (self.log(y, up.as_ref()), self.log(y, down.as_ref()));
                own.for_each(|(i, s)| {
                    *s = (up[i] + down[i] - 2.0 * found.value[i]) / (above[i] * -below[i]);
                });
            }
        }
        second
    }

    /// Compares slopes at pairs with differences.
    pub(super) fn tried_slopes(&self, y: &[f64], f: MatRef<f64>) -> Result<()> {
        let own = self.sloped(y, f, true);
        let mut other = self.sloped(y, f, true);
        self.in_f_by_differences(y, f, &mut other.by_f);
        self.in_parameters_by_differences(y, f, &mut other.by_parameters);
        let differs = |a: f64, b: f64| (a - b).is_nan() || (a - b).abs() > 1e-4 * (1.0 + b.abs());
        let names = std::iter::repeat_n("f".to_owned(), f.ncols());
        let each = self.names.iter().zip(&self.params);
        let params = each.flat_map(|(name, param)| vec![format!("`{name}`"); param.len()]);
        for (q, name) in names.chain(params).enumerate() {
            let of = |s: &Sloped, i: usize| match q.checked_sub(f.ncols()) {
                None => s.by_f[(i, q)],
                Some(at) => s.by_parameters[(i, at)],
            };
            if let Some(i) = (0..y.len()).find(|i| differs(of(&own, *i), of(&other, *i))) {
                return Err(self.wrong(&format!(
                    "has the slope {} in {name} for y = {}, where differences of its log density give {}",
                    of(&own, i),
                    y[i],
                    of(&other, i)
                )));
            }
        }
        Ok(())
    }
}
