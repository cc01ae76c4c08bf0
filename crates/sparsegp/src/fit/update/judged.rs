//! New rows against what the model promises, before anything is learnt from them.

use crate::data::InMemory;
use crate::error::Result;
use crate::fit::Fitted;
use crate::likelihoods::{Slopes, Target};
use crate::linalg::{Mat, MatRef};
use crate::online::{Calibration, Miss, Seen};
use crate::rng;

/// The annotation that keeps the watch from one update to the next.
const WATCH: &str = "calibration";
/// Most rows that are looked at, evenly spread.
const MOST: usize = 4096;
/// Rows whose dependence on each other is looked at together.
const TOGETHER: usize = 128;
/// Predicted standard deviations from which on a row is all but impossible, whatever the shape of the law.
const IMPOSSIBLE: f64 = 20.0;

/// Most rows that are named.
const NAMED: usize = 5;

/// What a look at new rows came to.
pub(super) struct Judged {
    /// Share of the targets within 95 % intervals; none where they are labels, or all are missing.
    pub inside: Option<f64>,
    /// In sentences.
    pub warnings: Vec<String>,
    /// What to keep with the model.
    watch: Calibration,
}

impl Judged {
    /// Notes in the model what was seen so far.
    pub(super) fn keep(&self, fitted: &mut Fitted) {
        let text = serde_json::to_string(&self.watch).unwrap_or_default();
        fitted.annotations.insert(WATCH.into(), text);
    }
}

/// Judges rows (on the model's scale) by the predictions of the model, which has not learnt them.
pub(super) fn judge(fitted: &Fitted, rows: &InMemory) -> Result<Judged> {
    let kept = fitted.annotations.get(WATCH).and_then(|text| serde_json::from_str(text).ok());
    let mut watch: Calibration = kept.unwrap_or_default();
    let n = rows.x.nrows();
    let looked: Vec<usize> = (0..n).step_by(n.div_ceil(MOST).max(1)).collect();
    let (mut seen, mut odd) = (Vec::new(), Vec::new());
    let mut rng = rng::stream(fitted.seed, "calibration");
    let (mut inside, mut known) = (0, 0);
    for part in looked.chunks(TOGETHER) {
        let x = Mat::from_fn(part.len(), rows.x.ncols(), |i, q| rows.x[(part[i], q)]);
        let y = Mat::from_fn(part.len(), rows.y.ncols(), |i, p| rows.y[(part[i], p)]);
        let extra: Vec<f64> = part.iter().filter_map(|i| rows.extra.get(*i).copied()).collect();
        let rows = (x.as_ref(), y.as_ref(), &extra[..]);
        if let (Some(classes), 1) = (fitted.model.likelihood.classes(), y.ncols()) {
            let density = fitted.posterior.predict_log_density(x.as_ref(), y.as_ref(), &extra)?;
            let all = fitted.posterior.predict_proba(x.as_ref())?;
            let weights = weights(fitted, rows, Some(&all))?;
            for i in (0..part.len()).filter(|i| !y[(*i, 0)].is_nan()) {
                let expected = (0..classes).map(|c| all[(i, c)].powi(2)).sum();
                seen.push(Seen::label(density[i].exp(), expected, classes, weights[(i, 0)]));
            }
            continue;
        }
        let weights = weights(fitted, rows, None)?;
        let judged = fitted.posterior.judge(x.as_ref(), y.as_ref(), &extra)?;
        for (p, i) in (0..y.ncols()).flat_map(|p| (0..part.len()).map(move |i| (p, i))) {
            if y[(i, p)].is_nan() {
                continue;
            }
            let (below, up_to) = (judged.below[(i, p)], judged.up_to[(i, p)]);
            // of whole numbers a random one between the two is uniform
            let share = below + rng::uniform(&mut rng) * (up_to - below);
            seen.push(Seen::number(share, weights[(i, p)]));
            known += 1;
            inside += usize::from((0.025..=0.975).contains(&share));
            let away = (y[(i, p)] - judged.mean[(i, p)]).abs() / judged.variance[(i, p)].sqrt();
            if away > IMPOSSIBLE {
                odd.push((part[i], away));
            }
        }
    }
    let labels = known == 0;
    let mut warnings = Vec::new();
    warnings.extend(watch.add(&seen).map(|miss| text(&miss, labels)));
    if !odd.is_empty() {
        odd.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        let named = odd.iter().take(NAMED).map(|(i, _)| (i + 1).to_string());
        let list = named.collect::<Vec<_>>().join(", ");
        let more = if odd.len() > NAMED { ", …" } else { "" };
        warnings.push(format!(
            "{} of {} new rows lie more than {IMPOSSIBLE} predicted standard deviations away (row {list}{more}), the farthest {:.3e}: \
             they were learnt as they are, and one such row can spoil a model; look at them, leave them out, or choose a \
             likelihood with heavy tails (`student-t`)",
            odd.len(),
            looked.len(),
            odd[0].1
        ));
    }
    let inside = (known > 0).then(|| inside as f64 / known as f64);
    Ok(Judged { inside, warnings, watch })
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn text(miss: &Miss, labels: bool) -> String {
    let found = match labels {
        false => format!("95 % intervals held {} of them", percent(miss.found)),
        true => format!(
            "the model gave their labels a probability of {} on average, and expected {}",
            percent(miss.found),
            percent(miss.expected)
        ),
    };
    format!(
        "the last {} new rows are not as the model promised before it learnt them: {found}. Their source has changed, or \
         the model never described it: look at them, fit a new model, or let old rows fade (`forget`) and train on new ones \
         (`train`)",
        miss.rows
    )
}

/// Returns how much each target counts, B×P: 1 over the number of rows that are wrong together
/// where the latent function is. Two rows are, as far as their latent values are correlated and
/// what one says of them is much beside what is known. Of labels that is what they say on average,
/// with these probabilities (B×C).
fn weights(
    fitted: &Fitted,
    (x, y, extra): (MatRef<f64>, MatRef<f64>, &[f64]),
    labels: Option<&Mat<f64>>,
) -> Result<Mat<f64>> {
    let likelihood = &*fitted.model.likelihood;
    let (mean, covariances) = fitted.posterior.predict_f_full(x)?;
    let k = likelihood.latents();
    let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let mut all = Mat::from_fn(x.nrows(), y.ncols(), |_, _| 1.0);
    let (mut slope, mut spread) = (vec![0.0; k], vec![0.0; k]);
    let mut params = vec![0.0; likelihood.num_params()];
    for p in 0..y.ncols().min(covariances.len() / k.max(1)) {
        let own = &covariances[p * k..(p + 1) * k];
        // of every latent function the root of the share of a row's variance that is not its noise
        let mut shares = Mat::zeros(x.nrows(), k);
        for i in (0..x.nrows()).filter(|i| !y[(*i, p)].is_nan()) {
            let at: Vec<f64> = (0..k).map(|l| mean[(i, p * k + l)]).collect();
            let variance: Vec<f64> = own.iter().map(|own| own[(i, i)].max(0.0)).collect();
            let extra = extra.get(i).copied().unwrap_or(default);
            let mut precision = vec![0.0; k];
            let mut add = |y: f64, part: f64| {
                let out = Slopes { mean: &mut slope, variance: &mut spread, params: &mut params };
                likelihood.expect(Target { y, extra }, &at, &variance, out);
                precision.iter_mut().zip(&spread).for_each(|(sum, own)| *sum -= 2.0 * part * own);
            };
            match labels {
                None => add(y[(i, p)], 1.0),
                Some(labels) => (0..labels.ncols()).for_each(|c| add(c as f64, labels[(i, c)])),
            }
            for l in 0..k {
                let ratio = variance[l] * precision[l].max(0.0);
                shares[(i, l)] =
                    if ratio.is_finite() { (ratio / (1.0 + ratio)).sqrt() } else { 1.0 };
            }
        }
        for i in 0..x.nrows() {
            let with = |j: usize| {
                let of = |l: usize| {
                    let scale = (own[l][(i, i)] * own[l][(j, j)]).sqrt();
                    let correlation = own[l][(i, j)].abs() / scale;
                    if scale > 0.0 { correlation * shares[(i, l)] * shares[(j, l)] } else { 0.0 }
                };
                (0..k).map(of).fold(0.0, f64::max).min(1.0)
            };
            let others: f64 = (0..x.nrows()).filter(|j| *j != i).map(with).sum();
            all[(i, p)] = 1.0 / (1.0 + others);
        }
    }
    Ok(all)
}
