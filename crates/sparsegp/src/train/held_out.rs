//! Rows that were kept aside: how well a model predicts them, and the state that was best for them.

use crate::data::Source;
use crate::error::Result;
use crate::model::{Model, Posterior};
use rayon::prelude::*;

/// Mean log density of held-out rows, the epoch after which it was reached, and all parameters there.
pub type Best = (f64, usize, Vec<f64>);

/// Returns the mean log density of rows, by their weights.
pub(crate) fn density(model: &Model, data: &dyn Source) -> Result<f64> {
    const PART: usize = 256;
    let posterior = Posterior::of_q(model)?;
    let (mut sum, mut rows) = (0.0, 0.0);
    data.for_each_chunk(1 << 14, &mut |chunk| {
        let n = chunk.x.nrows();
        let parts: Vec<Vec<f64>> = (0..n.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let own = chunk.part(part * PART, PART.min(n - part * PART));
                posterior.predict_log_density(own.x, own.y, own.extra)
            })
            .collect::<Result<_>>()?;
        for (i, density) in parts.iter().flatten().enumerate() {
            let weight = chunk.weights.get(i).copied().unwrap_or(1.0);
            // a row that does not count may be as unlikely as it likes
            sum += if weight == 0.0 { 0.0 } else { weight * density };
            rows += weight;
        }
        Ok(())
    })?;
    Ok(sum / rows)
}

/// Returns all constrained values, in the order of the parameters.
pub(crate) fn all_values(model: &Model) -> Vec<f64> {
    model.params().iter().flat_map(|(_, p)| p.value().iter().copied()).collect()
}

/// Gives a model these values of all its parameters.
pub(crate) fn set_all_values(model: &mut Model, values: &[f64]) -> Result<()> {
    let mut rest = values;
    for (path, param) in model.params_mut() {
        let (own, tail) = rest.split_at(param.len());
        rest = tail;
        param.set(&path, own)?;
    }
    Ok(())
}

/// Keeps the state after an epoch where rows kept aside have never been predicted as well as `now`, their mean log density. Returns
/// why the training should end, where that has not happened for `patience` epochs. NaN is never the best.
pub(crate) fn judge(
    model: &Model,
    now: f64,
    epoch: usize,
    patience: usize,
    best: &mut Option<Best>,
) -> Option<String> {
    let better = best.as_ref().is_none_or(|(so_far, ..)| now > *so_far);
    if better && !now.is_nan() {
        *best = Some((now, epoch, all_values(model)));
        return None;
    }
    let (_, at, _) = best.as_ref()?;
    (epoch >= at + patience).then(|| {
        format!(
            "held-out rows have been predicted no better for {patience} epochs; the state after \
             epoch {at} is kept"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Jitter;

    #[test]
    fn the_best_state_is_kept_and_nan_never_is() {
        let mut model = Model {
            kernels: vec![
                crate::kernels::parse("rbf", crate::kernels::Inputs::unnamed(1)).unwrap(),
            ],
            mean: crate::means::by_name("zero", 1, 1).unwrap(),
            likelihood: Box::new(crate::likelihoods::Gaussian::new(0.3)),
            inducing: Vec::new(),
            q: None,
            method: crate::methods::find("exact").unwrap().method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        let mut best = None;
        let mut outcomes = Vec::new();
        for (epoch, now) in [(1, f64::NAN), (2, -2.0), (3, f64::NAN), (4, -1.0), (5, -1.0)] {
            model.params_mut()[0].1.set("variance", &[epoch as f64]).unwrap();
            outcomes.push(judge(&model, now, epoch, 2, &mut best));
        }
        assert!(outcomes.iter().all(Option::is_none), "{outcomes:?}");
        assert_eq!(
            best.as_ref().map(|(now, at, values)| (*now, *at, values[0])),
            Some((-1.0, 4, 4.0))
        );
        let message = judge(&model, f64::NAN, 6, 2, &mut best).unwrap();
        assert!(message.contains("for 2 epochs") && message.contains("after epoch 4"), "{message}");
        let (_, _, values) = best.unwrap();
        set_all_values(&mut model, &values).unwrap();
        assert_eq!(all_values(&model)[0], 4.0);
    }
}
