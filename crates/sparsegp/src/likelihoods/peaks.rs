//! Where logarithms of densities are largest, found for many rows at once.

/// Logarithms at places of rows.
pub type Logs<'a> = dyn FnMut(&[usize], &[f64]) -> Vec<f64> + 'a;

/// Where a function is largest, as far as its values show.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    pub at: f64,
    /// There and at this distance the function differs by 2 at most.
    pub width: f64,
    pub log: f64,
}

/// Returns the largest value with its neighbours.
fn around(t: &[f64], logs: &[f64]) -> ([f64; 3], [f64; 3]) {
    let known = |i: usize| if logs[i].is_nan() { f64::NEG_INFINITY } else { logs[i] };
    if t.is_empty() {
        return ([f64::NAN; 3], [f64::NEG_INFINITY; 3]);
    }
    let best = (0..t.len()).max_by(|a, b| known(*a).total_cmp(&known(*b))).unwrap_or(0);
    let near = [best.saturating_sub(1), best, (best + 1).min(t.len() - 1)];
    (near.map(|i| t[i]), near.map(|i| logs[i]))
}

/// Returns where logarithms that were found at ascending places are largest: outwards first where
/// that is an end, then closer and closer.
pub fn peaks(rows: &[usize], seen: Vec<(Vec<f64>, Vec<f64>)>, log: &mut Logs<'_>) -> Vec<Peak> {
    const BETWEEN: usize = 7;
    const ROUNDS: usize = 24;
    const OUTWARDS: i32 = 10;
    let mut near: Vec<([f64; 3], [f64; 3])> = seen.iter().map(|(t, l)| around(t, l)).collect();
    // ends of what was seen
    let beyond = |k: usize| {
        let ([left, at, right], _) = near[k];
        let way = if at == left { -1.0 } else { 1.0 };
        let size = 0.5 * (right - left).abs().max(at.abs());
        (at == left || at == right)
            .then(|| (1..=OUTWARDS).map(move |j| at + way * size * (1.6_f64.powi(j) - 1.0)))
    };
    let outer: Vec<(usize, Vec<f64>)> =
        (0..rows.len()).filter_map(|k| beyond(k).map(|t| (k, t.collect()))).collect();
    let asked: Vec<usize> = outer.iter().flat_map(|(k, t)| vec![rows[*k]; t.len()]).collect();
    let at: Vec<f64> = outer.iter().flat_map(|(_, t)| t.iter().copied()).collect();
    let found = if at.is_empty() { Vec::new() } else { log(&asked, &at) };
    for ((k, further), logs) in outer.iter().zip(found.chunks(OUTWARDS as usize)) {
        let (t, l) = near[*k];
        let mut all: Vec<(f64, f64)> =
            t.into_iter().zip(l).chain(further.iter().copied().zip(logs.iter().copied())).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.dedup_by(|a, b| a.0 == b.0);
        let (t, l): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        near[*k] = around(&t, &l);
    }
    for _ in 0..ROUNDS {
        let steep = |(t, l): &([f64; 3], [f64; 3])| {
            let drop = (l[1] - l[0]).max(l[1] - l[2]);
            drop > 2.0 && t[2] - t[0] > 1e-13 * (1.0 + t[1].abs())
        };
        let open: Vec<usize> = (0..rows.len()).filter(|k| steep(&near[*k])).collect();
        if open.is_empty() {
            break;
        }
        let inner = |k: &usize| {
            let ([a, b, c], _) = near[*k];
            let share = |i: usize| i as f64 / (BETWEEN + 1) as f64;
            let left = (1..=BETWEEN).map(move |i| a + (b - a) * share(i));
            left.chain((1..=BETWEEN).map(move |i| b + (c - b) * share(i)))
        };
        let at: Vec<f64> = open.iter().flat_map(inner).collect();
        let asked: Vec<usize> = open.iter().flat_map(|k| [rows[*k]; 2 * BETWEEN]).collect();
        let found = log(&asked, &at);
        let each = at.chunks(2 * BETWEEN).zip(found.chunks(2 * BETWEEN));
        for (k, (t, l)) in open.iter().zip(each) {
            let with = |ends: [f64; 3], inner: &[f64]| {
                let (left, right) = inner.split_at(BETWEEN);
                [&[ends[0]], left, &[ends[1]], right, &[ends[2]]].concat()
            };
            let (ends, tops) = near[*k];
            near[*k] = around(&with(ends, t), &with(tops, l));
        }
    }
    let peak = |([a, b, c], l): &([f64; 3], [f64; 3])| {
        let width = (c - b).max(b - a).max(1e-14 * (1.0 + b.abs()));
        Peak { at: *b, width, log: l[1] }
    };
    near.iter().map(peak).collect()
}
