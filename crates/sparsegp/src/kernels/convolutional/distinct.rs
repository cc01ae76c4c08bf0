//! The distinct patches of images: equal ones have equal covariances, and much of many images is background.

use super::Grid;
use crate::linalg::{Mat, MatRef, sized};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Distinct patches of some images, image after image, each in the order of their first appearance.
pub(super) struct Distinct {
    /// R×d.
    pub(super) patches: Mat<f64>,
    /// The sum of ω over the patches that are this one, R numbers.
    pub(super) omega: Vec<f64>,
    /// Where every patch of every image is among them, n·P numbers.
    pub(super) place: Vec<usize>,
    /// The first of every image, and R.
    pub(super) starts: Vec<usize>,
    all: Mat<f64>,
    hashes: Vec<u64>,
    found: HashMap<u64, usize, BuildHasherDefault<Known>>,
}

/// A number that is a hash already.
#[derive(Default)]
struct Known(u64);

impl Hasher for Known {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, own: u64) {
        self.0 = own;
    }
}

impl Distinct {
    pub(super) fn new() -> Self {
        Self {
            patches: Mat::new(),
            omega: Vec::new(),
            place: Vec::new(),
            starts: Vec::new(),
            all: Mat::new(),
            hashes: Vec::new(),
            found: HashMap::default(),
        }
    }

    /// Finds those of images (n×D), with the ω of the P patches of each.
    pub(super) fn find(&mut self, grid: &Grid, x: MatRef<f64>, omega: &[f64]) {
        let (n, count, size) = (x.nrows(), grid.count(), grid.size());
        grid.gather(x, &mut self.all);
        self.hashes.clear();
        self.hashes.resize(n * count, 0);
        for e in 0..size {
            let cells = self.all.col_as_slice_mut(e).iter_mut();
            for (hash, cell) in self.hashes.iter_mut().zip(cells) {
                // zeros of either sign are one number
                *cell += 0.0;
                *hash = (hash.rotate_left(5) ^ cell.to_bits()).wrapping_mul(0x517c_c1b7_2722_0a95);
            }
        }
        self.omega.clear();
        self.place.clear();
        self.starts.clear();
        let mut kept: Vec<usize> = Vec::new();
        let same = |a: usize, b: usize| {
            (0..size).all(|e| {
                let column = self.all.col_as_slice(e);
                column[a].to_bits() == column[b].to_bits()
            })
        };
        for i in 0..n {
            self.starts.push(kept.len());
            self.found.clear();
            for (p, w) in omega.iter().enumerate() {
                let row = i * count + p;
                let at = match self.found.get(&self.hashes[row]) {
                    Some(at) if same(kept[*at], row) => *at,
                    // two that share a hash are two
                    other => {
                        let first = other.is_none();
                        kept.push(row);
                        self.omega.push(0.0);
                        if first {
                            self.found.insert(self.hashes[row], kept.len() - 1);
                        }
                        kept.len() - 1
                    }
                };
                self.omega[at] += w;
                self.place.push(at);
            }
        }
        self.starts.push(kept.len());
        sized(&mut self.patches, kept.len(), size);
        for e in 0..size {
            let source = self.all.col_as_slice(e);
            let target = self.patches.col_as_slice_mut(e).iter_mut();
            target.zip(&kept).for_each(|(to, from)| *to = source[*from]);
        }
    }

    /// Returns the numbers of image i, in a list of R.
    pub(super) fn of<'a>(&self, i: usize, list: &'a [f64]) -> &'a [f64] {
        &list[self.starts[i]..self.starts[i + 1]]
    }

    /// Adds slopes by the sums of ω (R numbers) to those by ω itself (P numbers).
    pub(super) fn add_by_omega(&self, slopes: &[f64], out: &mut [f64]) {
        for own in self.place.chunks_exact(out.len()) {
            out.iter_mut().zip(own).for_each(|(t, at)| *t += slopes[*at]);
        }
    }
}
