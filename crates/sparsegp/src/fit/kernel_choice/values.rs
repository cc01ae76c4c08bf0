//! Where a candidate begins: at the values of another that it is made of.

use crate::kernels::Kernel;
use crate::model::Model;
use crate::params::{Param, Role};

/// Lengthscales of a slow term beside those of the first, and at least, in standard deviations of the inputs.
const SLOWER: f64 = 4.0;
const SLOW: f64 = 2.0;

/// Returns the shortest lengthscale of every input; infinite where there is none.
pub(super) fn lengthscales(model: &Model, d: usize) -> Vec<f64> {
    let mut relevance = vec![0.0; d];
    model.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
    relevance.into_iter().map(|own: f64| own.recip()).collect()
}

/// Returns the term of a sum that a parameter belongs to.
fn term(path: &str) -> usize {
    let index = path.strip_prefix("kernels[").and_then(|rest| rest.split(']').next());
    index.and_then(|index| index.parse().ok()).unwrap_or(0)
}

/// Returns the term and the place in it of every parameter.
fn places<P>(params: Vec<(String, P)>) -> Vec<(usize, usize, P)> {
    let mut last = (0, 0);
    let place = |(path, param): (String, P)| {
        let own = term(&path);
        last = if own == last.0 { (own, last.1 + 1) } else { (own, 1) };
        (own, last.1 - 1, param)
    };
    params.into_iter().map(place).collect()
}

fn terms<P>(all: &[(usize, usize, P)]) -> usize {
    all.last().map_or(0, |(term, ..)| term + 1)
}

/// Starts a kernel at the values of another that it begins with, as far as they are alike; so many terms at their ends are the
/// same. Lengthscales that several inputs come to share are at the geometric mean of those of single ones, and those that are
/// shared no more at what they had.
pub(super) fn start_at(kernel: &mut dyn Kernel, before: &dyn Kernel, lengths: &[f64], same: usize) {
    let most = 2.0 * (lengths.len() as f64).sqrt();
    let finite: Vec<f64> = lengths.iter().filter(|l| l.is_finite()).map(|l| l.min(most)).collect();
    let mean = finite.iter().map(|l| l.ln()).sum::<f64>() / finite.len().max(1) as f64;
    let before = places(before.params());
    let own = places(kernel.params_mut());
    let (new, old) = (terms(&own), terms(&before));
    for (term, place, own) in own {
        let from = match () {
            () if term + same >= new => (term + old).checked_sub(new),
            () => (term + same < old).then_some(term),
        };
        let known = before.iter().find(|(t, p, _)| Some(*t) == from && *p == place);
        let Some((.., before)) = known else { continue };
        if own.frozen || own.given || own.role() != before.role() {
            continue;
        }
        if own.len() == before.len() {
            own.start(before.value());
        } else if own.role() == Role::Lengthscales && before.len() == 1 {
            own.start(&vec![before.scalar(); own.len()]);
        } else if own.role() == Role::Lengthscales && own.len() == 1 && !finite.is_empty() {
            own.start(&[mean.exp()]);
        }
    }
}

/// Starts a kernel with a period at the values of another with a wave in its place, the last term before so many others: at so
/// many times the period of the wave.
pub(super) fn start_period(kernel: &mut dyn Kernel, wave: &dyn Kernel, times: f64, same: usize) {
    let waves = places(wave.params());
    let last = terms(&waves).saturating_sub(same + 1);
    let period = waves
        .iter()
        .find(|(term, _, param)| *term == last && param.role() == Role::Lengthscales)
        .map(|(.., param)| times * param.scalar());
    let shape = |all: Vec<(usize, usize, &mut Param)>| -> Vec<f64> {
        let own = |(term, _, param): &(usize, usize, &mut Param)| {
            *term == last && param.role() == Role::Lengthscales
        };
        all.iter().filter(|of| own(of)).map(|(.., param)| param.scalar()).collect()
    };
    // the lengthscale of a period is one of its shape, that of a wave is its period
    let shapes = shape(places(kernel.params_mut()));
    start_at(kernel, wave, &[], same);
    for (term, _, own) in places(kernel.params_mut()) {
        if term != last || own.frozen || own.given {
            continue;
        }
        match (own.role(), period, shapes.first()) {
            (Role::Period, Some(period), _) => own.start(&[period]),
            (Role::Lengthscales, _, Some(shape)) => own.start(&[*shape]),
            _ => {}
        }
    }
}

/// Starts the last term before so many others as one that varies slowly beside the first.
pub(super) fn start_slow(kernel: &mut dyn Kernel, same: usize) {
    let mut all = places(kernel.params_mut());
    let own = terms(&all).saturating_sub(same + 1);
    let of = |param: &Param| param.role() == Role::Lengthscales;
    let first = all.iter().find(|(term, _, param)| *term == 0 && of(param));
    let Some(first) = first.map(|(.., param)| param.scalar()) else { return };
    for (term, _, param) in &mut all {
        if *term == own && of(param) && !param.frozen && !param.given {
            param.start(&vec![(SLOWER * first).max(SLOW); param.len()]);
        }
    }
}

/// Starts a sum that ends in straight lines, but for so many terms, at the variance of these; terms before have this variance.
pub(super) fn start_beside(kernel: &mut dyn Kernel, line: &dyn Kernel, left: f64, same: usize) {
    let line = line.params().into_iter().find(|(_, param)| param.role() == Role::Variance);
    let all = places(kernel.params_mut());
    let last = terms(&all).saturating_sub(same + 1);
    for (term, _, own) in all {
        if own.role() != Role::Variance || own.frozen || own.given {
            continue;
        }
        match &line {
            Some((_, line)) if term == last => own.start(line.value()),
            _ if term < last => own.start(&vec![left; own.len()]),
            _ => {}
        }
    }
}

/// Multiplies the lengthscales of a sum that ends in straight lines, but for so many terms; those of the last terms stay.
pub(super) fn shorten(kernel: &mut dyn Kernel, by: f64, same: usize) {
    let all = places(kernel.params_mut());
    let last = terms(&all).saturating_sub(same + 1);
    for (term, _, own) in all {
        if term < last && own.role() == Role::Lengthscales && !own.frozen && !own.given {
            let shorter: Vec<f64> = own.value().iter().map(|value| by * value).collect();
            own.start(&shorter);
        }
    }
}

/// Starts the likelihood at that of another trial.
pub(super) fn start_likelihood(model: &mut Model, from: &Model) {
    let before = from.likelihood.params();
    for ((_, own), (_, before)) in model.likelihood.params_mut().into_iter().zip(before) {
        if !own.frozen && own.len() == before.len() {
            own.start(before.value());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Inputs, parse};

    #[test]
    fn a_period_starts_at_the_wave() {
        let of = |spec: &str| parse(spec, Inputs::unnamed(1)).expect("a kernel");
        let wave =
            of("matern52(variance=0.7, lengthscales=1.9) + cosine(variance=2.3, lengthscales=0.4)");
        let spec = "matern52 + periodic";
        let mut own = of(spec);
        let shape = own.params()[3].1.scalar();
        start_period(&mut *own, &*wave, 2.0, 0);
        let values: Vec<f64> = own.params().iter().map(|(_, own)| own.scalar()).collect();
        for (found, expected) in values.iter().zip([0.7, 1.9, 2.3, shape, 0.8]) {
            assert!((found - expected).abs() < 1e-12, "{values:?}");
        }
        // what was frozen stays
        let mut frozen = of(spec);
        let is_period = |param: &Param| param.role() == Role::Period;
        for (_, param) in frozen.params_mut().into_iter().filter(|(_, own)| is_period(own)) {
            param.frozen = true;
        }
        let before = frozen.params().last().expect("a period").1.scalar();
        start_period(&mut *frozen, &*wave, 2.0, 0);
        assert_eq!(frozen.params().last().expect("a period").1.scalar(), before);
    }
}
