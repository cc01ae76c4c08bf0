//! Plain functions of several inputs that are not drawn from the prior: unlike strength and speed, idle inputs, waves.

use super::{Dice, Function, Problem};
use sparsegp::data::InMemory;
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::rng;
use std::f64::consts::TAU;

/// Fewest and most rows.
const ROWS: (f64, f64) = (300.0, 2000.0);
/// Fewest and most waves over the range of an input.
const WAVES: (f64, f64) = (2.0, 200.0);

/// The value at a row.
type Value = dyn Fn(&[f64]) -> f64;

/// A function of the inputs, all on (0, 1), with lengthscales near those that suit it.
struct Drawn {
    kind: &'static str,
    rows: usize,
    inputs: usize,
    lengthscales: Vec<f64>,
    value: Box<Value>,
}

fn rows(dice: &mut Dice, most: usize) -> usize {
    dice.log_uniform(ROWS.0, ROWS.1.min(most as f64).max(ROWS.0)) as usize
}

/// Sines of unlike strength and speed along some inputs, with a product of two.
fn unlike(dice: &mut Dice, most: usize) -> Drawn {
    let inputs = dice.whole(4, 10);
    let active = dice.whole(2, inputs - 1);
    let terms: Vec<[f64; 3]> = (0..active)
        .map(|_| [dice.log_uniform(0.3, 1.5), dice.log_uniform(2.0, 16.0), dice.uniform(0.0, TAU)])
        .collect();
    let product = dice.uniform(-2.0, 2.0);
    let lengthscales = (0..inputs).map(|q| terms.get(q).map_or(30.0, |term| 2.5 / term[1]));
    Drawn {
        kind: "unlike inputs",
        rows: rows(dice, most),
        inputs,
        lengthscales: lengthscales.collect(),
        value: Box::new(move |x| {
            let sum: f64 = terms.iter().zip(x).map(|(t, x)| t[0] * (t[1] * x + t[2]).sin()).sum();
            sum + product * x[0] * x[1]
        }),
    }
}

/// sin a + b²c/3 + ½cos d with idle inputs: b has no part without c.
fn interacting(dice: &mut Dice, most: usize) -> Drawn {
    let inputs = dice.whole(4, 8);
    let (first, last) = (dice.uniform(4.0, 12.0), dice.uniform(4.0, 16.0));
    let mut lengthscales = vec![2.5 / first, 0.5, 0.7, 2.5 / last];
    lengthscales.resize(inputs, 30.0);
    Drawn {
        kind: "interacting inputs",
        rows: rows(dice, most),
        inputs,
        lengthscales,
        value: Box::new(move |x| {
            let (b, c) = (4.0 * x[1] - 2.0, 4.0 * x[2] - 2.0);
            (first * x[0]).sin() + b * b * c / 3.0 + 0.5 * (last * x[3]).cos()
        }),
    }
}

/// One wave with 6 to 12 rows for each period.
fn wave(dice: &mut Dice, most: usize) -> Drawn {
    let waves = dice.log_uniform(WAVES.0, WAVES.1);
    let rows = (waves * dice.uniform(6.0, 12.0)).clamp(60.0, most as f64) as usize;
    Drawn {
        kind: "a wave",
        rows,
        inputs: 1,
        lengthscales: vec![0.24 / waves],
        value: Box::new(move |x| (TAU * waves * x[0]).sin()),
    }
}

/// One fast input beside slow and idle ones.
fn fast(dice: &mut Dice, most: usize) -> Drawn {
    let inputs = dice.whole(2, 9);
    let waves = dice.uniform(2.0, 8.0);
    let slow: Vec<f64> =
        (1..inputs).map(|_| if dice.chance(0.6) { dice.uniform(0.0, 0.6) } else { 0.0 }).collect();
    let mut lengthscales = vec![0.24 / waves];
    lengthscales.extend(slow.iter().map(|size| if *size > 0.0 { 2.0 } else { 30.0 }));
    Drawn {
        kind: "one fast input",
        rows: rows(dice, most.min(900)),
        inputs,
        lengthscales,
        value: Box::new(move |x| {
            let others: f64 = slow.iter().zip(&x[1..]).map(|(s, x)| s * (2.0 * x).sin()).sum();
            (TAU * waves * x[0]).sin() + others
        }),
    }
}

/// Two fast inputs: the sum or the product of two waves.
fn two_fast(dice: &mut Dice, most: usize) -> Drawn {
    let inputs = dice.whole(2, 3);
    let waves = [dice.uniform(1.5, 5.0), dice.uniform(1.5, 5.0)];
    let product = dice.chance(0.5);
    let mut lengthscales = vec![0.24 / waves[0], 0.24 / waves[1]];
    lengthscales.resize(inputs, 30.0);
    Drawn {
        kind: if product { "a product of waves" } else { "a sum of waves" },
        rows: (dice.uniform(500.0, 1000.0) as usize).min(most.max(500)),
        inputs,
        lengthscales,
        value: Box::new(move |x| {
            let [a, b] = [0, 1].map(|q| (TAU * waves[q] * x[q] + q as f64).sin());
            if product { a * b } else { a + b }
        }),
    }
}

impl Problem {
    /// Draws problem `index` of a seed: a plain function in Gaussian noise, with at most `most_rows` rows. Kinds take turns.
    ///
    /// # Panics
    /// If the library refuses what was drawn, which would be a fault of this module.
    pub fn function(seed: u64, index: usize, most_rows: usize) -> Self {
        let dice = &mut Dice(Box::new(rng::stream(seed, &format!("functions/{index}"))));
        let kinds = [unlike, interacting, wave, fast, two_fast];
        let Drawn { kind, rows, inputs, lengthscales, value } =
            kinds[index % kinds.len()](dice, most_rows);
        let units: Vec<f64> = (0..inputs).map(|_| dice.log_uniform(1e-2, 1e2)).collect();
        let plain = Mat::from_fn(rows, inputs, |_, _| dice.uniform(0.0, 1.0));
        let of_row = |i: usize| (0..inputs).map(|q| plain[(i, q)]).collect::<Vec<f64>>();
        let f: Vec<f64> = (0..rows).map(|i| value(&of_row(i))).collect();
        let mean = f.iter().sum::<f64>() / rows as f64;
        let sd = (f.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / rows as f64).sqrt();
        let noise = sd * dice.log_uniform(0.05, 0.6);
        let y = Mat::from_fn(rows, 1, |i, _| f[i] + noise * dice.normal());
        let x = Mat::from_fn(rows, inputs, |i, q| units[q] * plain[(i, q)]);
        let mut drawn = likelihoods::parse("gaussian").expect("a registered likelihood");
        for (path, param) in drawn.params_mut() {
            param.set(&path, &[noise * noise]).expect("a value in range");
        }
        let lengthscales = lengthscales.iter().zip(&units).map(|(l, unit)| l * unit).collect();
        Self {
            index,
            likelihood: "gaussian",
            spec: "gaussian".into(),
            data: InMemory::new(x, y).expect("as many targets as rows"),
            kinds: vec![kind],
            drawn,
            functions: vec![Function { sd, lengthscales }],
            constants: vec![mean],
        }
    }
}
