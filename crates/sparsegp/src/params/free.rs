//! The flat vector of free numbers that optimisers see.

use super::{Transform, Visitor, VisitorMut};

/// Returns the free numbers of the parameters that are not frozen, in order.
pub fn free_values<'a>(visit: impl FnOnce(Visitor<'a, '_>)) -> Vec<f64> {
    let mut free = Vec::new();
    visit(&mut |_, p| {
        if !p.frozen {
            free.extend(p.free_places().map(|at| p.transform.to_free(p.value[at])));
        }
    });
    free
}

/// Returns how many free numbers there are.
pub fn free_count<'a>(visit: impl FnOnce(Visitor<'a, '_>)) -> usize {
    let mut count = 0;
    visit(&mut |_, p| count += if p.frozen { 0 } else { p.free_len() });
    count
}

/// Sets the parameters that are not frozen from free numbers ([`free_values`]' inverse).
pub fn set_free_values<'a>(visit: impl FnOnce(VisitorMut<'a, '_>), free: &[f64]) {
    let mut rest = free;
    visit(&mut |_, p| {
        if p.frozen {
            return;
        }
        let (own, tail) = rest.split_at(p.free_len());
        rest = tail;
        if !p.tied.is_empty() {
            return p.set_free(own);
        }
        // of most parameters there are few; of q there are many, and they are free
        if p.transform == Transform::Identity {
            return p.value.copy_from_slice(own);
        }
        for (value, free) in p.value.iter_mut().zip(own) {
            *value = p.transform.to_constrained(*free);
        }
    });
    debug_assert!(rest.is_empty());
}

/// Writes the gradient with respect to the free numbers of the parameters that are not frozen, from
/// the gradient with respect to every constrained value (same order), into `free`.
pub fn free_gradient<'a>(
    visit: impl FnOnce(Visitor<'a, '_>),
    constrained: &[f64],
    free: &mut [f64],
) {
    let (mut rest, mut at) = (constrained, 0);
    visit(&mut |_, p| {
        let (own, tail) = rest.split_at(p.value.len());
        rest = tail;
        if p.frozen {
            return;
        }
        let targets = &mut free[at..at + p.free_len()];
        at += targets.len();
        if !p.tied.is_empty() {
            return p.pull(own, targets);
        }
        if p.transform == Transform::Identity {
            return targets.copy_from_slice(own);
        }
        let targets = targets.iter_mut().zip(own).zip(&p.value);
        targets.for_each(|((t, g), v)| *t = g * p.transform.slope_at(*v));
    });
    debug_assert_eq!(at, free.len());
}
