//! Pólya-Gamma draws per second: `cargo run --release -p sparsegp-bench --bin polya_gamma`, with
//! `--features peers` against the crate `polya-gamma`.
//!
//! Two uses: many draws of one PG(b, c), and, as in a Gibbs sweep, one draw for each of many c (normal,
//! of standard deviation 2), which has to prepare every time. All draw from the same kind of generator
//! on one thread; rounds alternate and the fastest is printed, with the distance of the mean of all draws to the
//! exact one in standard errors. The other crate draws an integer b as a sum of b variates and any other b
//! from a mixture, and prepares nothing.

use rand::Rng;
use sparsegp::distributions::PolyaGamma;
use sparsegp::rng::{stream, uniform};
use std::time::Instant;

const DRAWS: usize = 5_000;
const ROUNDS: usize = 41;

/// Seconds and sum of one round.
type Round = (f64, f64);

fn timed(draws: impl FnOnce() -> f64) -> Round {
    let start = Instant::now();
    let sum = draws();
    (start.elapsed().as_secs_f64(), sum)
}

fn ours(shape: f64, tilts: &[f64], name: &str) -> Round {
    let mut rng = stream(1, name);
    let law = |c| PolyaGamma::new(shape, c).expect("valid numbers");
    timed(|| {
        let mut sum = 0.0;
        match tilts {
            [c] => {
                let sampler = law(*c).sampler();
                for _ in 0..DRAWS {
                    sum += draw(&sampler, &mut rng);
                }
            }
            _ => {
                for c in tilts {
                    sum += draw(&law(*c), &mut rng);
                }
            }
        }
        sum
    })
}

fn draw(law: &impl rand::distr::Distribution<f64>, rng: &mut impl Rng) -> f64 {
    law.sample(rng)
}

#[cfg(feature = "peers")]
fn theirs(shape: f64, tilts: &[f64], name: &str) -> Option<Round> {
    /// The same generator behind the traits of an earlier version.
    struct Earlier<R>(R);

    impl<R: Rng> rand_core_06::RngCore for Earlier<R> {
        fn next_u32(&mut self) -> u32 {
            self.0.next_u32()
        }
        fn next_u64(&mut self) -> u64 {
            self.0.next_u64()
        }
        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            self.0.fill_bytes(bytes);
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core_06::Error> {
            self.0.fill_bytes(bytes);
            Ok(())
        }
    }

    let mut rng = Earlier(stream(1, name));
    let law = polya_gamma::PolyaGamma::new(shape);
    Some(timed(|| {
        let mut sum = 0.0;
        match tilts {
            [c] => {
                for _ in 0..DRAWS {
                    sum += law.draw(&mut rng, *c);
                }
            }
            _ => {
                for c in tilts {
                    sum += law.draw(&mut rng, *c);
                }
            }
        }
        sum
    }))
}

#[cfg(not(feature = "peers"))]
fn theirs(_: f64, _: &[f64], _: &str) -> Option<Round> {
    None
}

/// Millions of draws a second, and how many standard errors the mean is off.
fn summary(rounds: &[Round], mean: f64, variance: f64) -> (f64, f64) {
    let seconds = rounds.iter().map(|round| round.0).fold(f64::INFINITY, f64::min);
    let draws = (rounds.len() * DRAWS) as f64;
    let average = rounds.iter().map(|round| round.1).sum::<f64>() / draws;
    (DRAWS as f64 / seconds / 1e6, (average - mean) / (variance / draws).sqrt())
}

fn main() {
    let mut rng = stream(3, "tilts");
    let various: Vec<f64> = (0..DRAWS)
        .map(|_| {
            // Box and Muller
            let radius = (-2.0 * (1.0 - uniform(&mut rng)).ln()).sqrt();
            2.0 * radius * (std::f64::consts::TAU * uniform(&mut rng)).cos()
        })
        .collect();
    println!("millions of draws per second (mean off by standard errors)");
    println!("{:>6} {:>8} {:>18} {:>18} {:>7}", "b", "c", "sparsegp", "polya-gamma 0.5", "ratio");
    for shape in [0.5, 1.0, 2.5, 8.0, 30.0] {
        let single = [0.0, 0.7, 4.0, 12.0].map(|c| vec![c]);
        for tilts in single.iter().chain([&various]) {
            let laws = || tilts.iter().map(|c| PolyaGamma::new(shape, *c).expect("valid numbers"));
            let count = tilts.len() as f64;
            let mean = laws().map(|law| law.mean()).sum::<f64>() / count;
            let variance = laws().map(|law| law.variance()).sum::<f64>() / count;
            let (mut own, mut other) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                own.push(ours(shape, tilts, &format!("own {shape} {round}")));
                other.extend(theirs(shape, tilts, &format!("other {shape} {round}")));
            }
            let (rate, off) = summary(&own, mean, variance);
            let c = if let [c] = tilts[..] { c.to_string() } else { "N(0, 4)".into() };
            print!("{shape:>6} {c:>8} {rate:>10.2} ({off:>5.1})");
            if other.is_empty() {
                println!();
            } else {
                let (peer, off) = summary(&other, mean, variance);
                println!(" {peer:>10.2} ({off:>5.1}) {:>6.2}", rate / peer);
            }
        }
    }
}
