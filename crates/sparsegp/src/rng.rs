//! One seed, many named streams of random numbers.
//!
//! Each use of randomness (initial inducing points, minibatches of an epoch, a chain of a sampler)
//! asks for a stream by name. A stream is a function only of the seed and the name, not of threads,
//! of the order of the requests or of how much another use has drawn. A use that must resume in the
//! middle of a run puts its position into the name (`batches/17`) or stores the word position of
//! the generator.
//!
//! The seed fills the key of ChaCha with 8 rounds (Bernstein 2008) and the 64-bit FNV-1a hash of
//! the name is its stream number. Both are written out here, and so are the conversions to floats
//! and indices: a run must not change with a version of a dependency.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

/// Returns the generator of the stream `name` under `seed`.
///
/// ```
/// use rand::Rng;
/// let mut a = sparsegp::rng::stream(7, "inducing");
/// let mut b = sparsegp::rng::stream(7, "inducing");
/// assert_eq!(a.next_u64(), b.next_u64());
/// ```
pub fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut key = [0_u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(b"sparsegp");
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(fnv1a(name.as_bytes()));
    generator
}

/// Returns FNV-1a, 64 bits (Fowler, Noll and Vo).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Draws a number uniform on [0, 1): a multiple of 2⁻⁵³ made of the upper 53 bits of one word.
pub fn uniform(generator: &mut (impl Rng + ?Sized)) -> f64 {
    (generator.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Draws a number uniform on 0, 1, …, `bound` − 1, without bias (Lemire 2019, Alg. 5); 0 if `bound`
/// is 0 or 1.
pub fn below(generator: &mut (impl Rng + ?Sized), bound: usize) -> usize {
    if bound < 2 {
        return 0;
    }
    let range = bound as u64;
    let reject_below = range.wrapping_neg() % range;
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(range);
        if product as u64 >= reject_below {
            return (product >> 64) as usize;
        }
    }
}

/// Returns the first `count` entries of a uniformly random permutation of 0, 1, …, `n` − 1
/// (Fisher–Yates). At most `n` indices are returned.
pub fn permutation(generator: &mut impl Rng, n: usize, count: usize) -> Vec<usize> {
    let count = count.min(n);
    // only the entries that are not at home are kept: memory grows with `count`, not with `n`
    let mut moved: HashMap<usize, usize> = HashMap::with_capacity(count);
    (0..count)
        .map(|i| {
            let j = i + below(generator, n - i);
            let home = moved.get(&i).copied().unwrap_or(i);
            moved.insert(j, home).filter(|_| j != i).unwrap_or(if j == i { home } else { j })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_permutation_is_that_of_the_whole_shuffle() {
        for (n, count) in [(1, 1), (7, 7), (50, 13), (1000, 999)] {
            let mut whole: Vec<usize> = (0..n).collect();
            let mut generator = stream(9, "shuffle");
            for i in 0..count {
                let j = i + below(&mut generator, n - i);
                whole.swap(i, j);
            }
            assert_eq!(permutation(&mut stream(9, "shuffle"), n, count), whole[..count]);
        }
    }

    #[test]
    fn fnv1a_agrees_with_the_published_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn streams_are_stable_from_version_to_version() {
        let words = |seed, name| {
            let mut generator = stream(seed, name);
            [generator.next_u64(), generator.next_u64()]
        };
        assert_eq!(words(0, ""), [10558430094167099213, 14049217619206569939]);
        assert_eq!(words(0, "inducing"), [2944044063152827670, 13878035725146063709]);
        assert_eq!(words(42, "batches/0"), [12255880803561467248, 10012190714536346694]);
        assert_eq!(words(u64::MAX, "batches/0"), [11064476799775865746, 4412647460397759417]);
    }

    #[test]
    fn conversions_are_stable_from_version_to_version() {
        let mut generator = stream(1, "test");
        assert_eq!(uniform(&mut generator).to_bits(), 4_603_630_626_510_141_448);
        assert_eq!(
            (0..6).map(|_| below(&mut generator, 10)).collect::<Vec<_>>(),
            [2, 8, 1, 3, 2, 2]
        );
        assert_eq!(permutation(&mut generator, 8, 8), [4, 2, 1, 6, 5, 0, 3, 7]);
    }

    #[test]
    fn seeds_and_names_give_different_streams() {
        let first = |seed, name| stream(seed, name).next_u64();
        let mut all = vec![];
        for seed in [0, 1, 2, 1 << 40] {
            for name in ["", "a", "b", "ab", "ba", "batches/1", "batches/2"] {
                all.push(first(seed, name));
            }
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn streams_do_not_depend_on_threads() {
        let here: Vec<u64> = (0..16).map(|i| stream(i, "threads").next_u64()).collect();
        let there: Vec<u64> = (0..16)
            .map(|i| std::thread::spawn(move || stream(i, "threads").next_u64()).join().unwrap())
            .collect();
        assert_eq!(here, there);
    }

    #[test]
    fn uniform_stays_in_range_and_has_the_right_moments() {
        let mut generator = stream(3, "uniform");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| uniform(&mut generator)).collect();
        assert!(draws.iter().all(|&u| (0.0..1.0).contains(&u)));
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|u| (u - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Five standard errors.
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / f64::from(n)).sqrt());
        assert!((variance - 1.0 / 12.0).abs() < 5.0 * (1.0 / 180.0 / f64::from(n)).sqrt());
    }

    #[test]
    fn below_is_uniform() {
        let mut generator = stream(4, "below");
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[below(&mut generator, 7)] += 1;
        }
        // Binomial(70 000, 1/7) has standard deviation 93.
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
        assert_eq!(below(&mut generator, 0), 0);
        assert_eq!(below(&mut generator, 1), 0);
        assert!(below(&mut generator, usize::MAX) < usize::MAX);
    }

    #[test]
    fn permutation_holds_each_index_once() {
        let mut generator = stream(5, "permutation");
        for (n, count) in [(0, 0), (0, 3), (1, 1), (10, 4), (10, 10), (10, 99)] {
            let mut drawn = permutation(&mut generator, n, count);
            assert_eq!(drawn.len(), count.min(n));
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), count.min(n));
            assert!(drawn.iter().all(|&i| i < n));
        }
    }
}
