//! Blocks of rows on threads, with sums that do not depend on the number of threads.
//!
//! Rows are cut into blocks of a fixed size. Block b belongs to lane b mod (number of lanes), counted in
//! bit-reversed order, so that any half or quarter of the lanes has its share of the blocks. A lane
//! adds its blocks in order into its own accumulator, and the accumulators are added in the order of
//! the lanes. Which thread works on a lane does not matter.

use crate::data::{Rows, Source};
use crate::error::Result;
use rayon::prelude::*;

/// Rows per block. Large enough for matrix products to run at full speed; small enough for a block of 1024 features to stay
/// in cache, and for a minibatch of 1024 rows to be work for four threads. (512 had the same share of a product's rate or up
/// to 5 % less, from 256 to 2048 features.)
pub const BLOCK: usize = 256;

/// Returns the number of lanes for accumulators of M×M and so many of them, a power of two: 16 if
/// that keeps them within 64 MiB, else 8; for several of them fewer, down to 2, to stay within 256
/// MiB. It depends only on these numbers: the sums must not depend on the machine.
pub fn count(features: usize, accumulators: usize) -> usize {
    const BUDGET: usize = (64 << 20) / 8;
    let each = features * features * accumulators;
    match accumulators {
        0 | 1 => {
            if each * 16 <= BUDGET {
                16
            } else {
                8
            }
        }
        _ => [16, 8, 4].into_iter().find(|lanes| each * lanes <= 4 * BUDGET).unwrap_or(2),
    }
}

/// Returns the index with its bits in opposite order, among `count` (a power of two) indices.
fn bit_reversed(index: usize, count: usize) -> usize {
    debug_assert!(count.is_power_of_two() && count > 1);
    index.reverse_bits() >> (usize::BITS - count.trailing_zeros())
}

/// Calls `work` with every block of rows and the lane it belongs to.
pub fn sweep<L: Send>(
    data: &dyn Source,
    lanes: &mut [L],
    work: impl Fn(&mut L, Rows<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let round = BLOCK * lanes.len();
    let chunk = if data.is_resident() { data.rows().next_multiple_of(round) } else { round };
    data.for_each_chunk(chunk, &mut |rows: Rows<'_>| {
        let n = rows.x.nrows();
        let block = |start: usize| rows.part(start, BLOCK.min(n - start));
        if n <= BLOCK {
            // one block: no thread hand-off
            return if n == 0 { Ok(()) } else { work(&mut lanes[0], block(0)) };
        }
        let lane_count = lanes.len();
        let step = BLOCK * lane_count;
        lanes.par_iter_mut().enumerate().try_for_each(|(index, lane)| {
            let mut start = bit_reversed(index, lane_count) * BLOCK;
            while start < n {
                work(lane, block(start))?;
                start += step;
            }
            Ok(())
        })
    })
}
