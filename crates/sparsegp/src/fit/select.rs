//! Where inducing points start.

use super::FitOptions;
use crate::error::Result;
use crate::inducing::select::{self, Selection};
use crate::kernels;
use crate::linalg::{Mat, MatRef, column};
use crate::model::Model;

/// Inducing points as the options say, chosen from the rows `x`.
pub(super) fn select_inducing(
    model: &Model,
    x: MatRef<f64>,
    count: usize,
    options: &FitOptions,
) -> Result<select::Selected> {
    if options.selection == Selection::KMeans {
        // distances as the kernel sees them: an input that hardly matters should not spread points
        let mut relevance = vec![0.0; x.ncols()];
        model.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
        if relevance.iter().any(|r| *r > 0.0) {
            let seen = Mat::from_fn(x.nrows(), x.ncols(), |i, q| x[(i, q)] * relevance[q]);
            let mut selected =
                options.selection.choose(seen.as_ref(), count, options.seed, None)?;
            let centres = &mut selected.points;
            let means: Vec<f64> = (0..x.ncols())
                .map(|q| column(x, q).iter().sum::<f64>() / x.nrows() as f64)
                .collect();
            for q in 0..x.ncols() {
                for v in centres.col_as_slice_mut(q) {
                    *v = if relevance[q] > 0.0 { *v / relevance[q] } else { means[q] };
                }
            }
            return Ok(selected);
        }
    }
    if options.selection != Selection::GreedyVariance {
        return options.selection.choose(x, count, options.seed, None);
    }
    let mut diag = vec![0.0; x.nrows()];
    model.kernel().diag(x, &mut diag);
    let mut column = |index: usize| {
        let mut column = Mat::zeros(x.nrows(), 1);
        let row = Mat::from_fn(1, x.ncols(), |_, q| x[(index, q)]);
        let mut tape = kernels::Tape::off();
        model.kernel().evaluate(x, Some(row.as_ref()), column.as_mut(), &mut tape);
        Ok(column.col_as_slice(0).to_vec())
    };
    let prior = select::Prior { diag: &diag, column: &mut column };
    options.selection.choose(x, count, options.seed, Some(prior))
}
