//! Where the patches of an image are, images to rows of patches, and back.

use crate::linalg::{Mat, MatMut, MatRef, column, sized};

/// Which pixels a patch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Those of one channel: patches channel by channel.
    Channels,
    /// Those of all channels, channel last.
    Joint,
}

/// Images of H×W×C pixels, row-major with the channel last, and the patches of h×w that fit in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// H, W, C.
    pub image: [usize; 3],
    /// h, w.
    pub patch: [usize; 2],
    /// Steps between patches.
    pub stride: usize,
    /// Which pixels a patch has.
    pub colour: Colour,
    /// Column of every entry of every patch, those of a patch together.
    places: Vec<usize>,
    count: usize,
}

impl Grid {
    /// Makes the list of patches, without padding: channel by channel (where a patch is of one), then row by row. `columns`
    /// are the input columns of the pixels. The patch must fit into the image, and no size be 0.
    pub fn new(
        image: [usize; 3],
        patch: [usize; 2],
        stride: usize,
        colour: Colour,
        columns: &[usize],
    ) -> Self {
        let [height, width, channels] = image;
        let [h, w] = patch;
        let ((rows, cols), stride) =
            (((height - h) / stride + 1, (width - w) / stride + 1), stride);
        let pixel = |i: usize, j: usize, c: usize| columns[(i * width + j) * channels + c];
        let (outer, inner) = match colour {
            Colour::Channels => (channels, 1),
            Colour::Joint => (1, channels),
        };
        let mut places = Vec::with_capacity(outer * rows * cols * h * w * inner);
        for own in 0..outer {
            for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i * stride, j * stride))) {
                for (a, b) in (0..h).flat_map(|a| (0..w).map(move |b| (a, b))) {
                    places.extend((0..inner).map(|c| pixel(i + a, j + b, own + c)));
                }
            }
        }
        Self { image, patch, stride, colour, places, count: outer * rows * cols }
    }

    /// Number of patches of an image.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of entries d of a patch.
    pub fn size(&self) -> usize {
        self.places.len() / self.count
    }

    /// Input columns of the entries of a patch.
    pub fn columns(&self, patch: usize) -> &[usize] {
        &self.places[patch * self.size()..(patch + 1) * self.size()]
    }

    /// The patches of images (n×D), (n·P)×d, those of an image together.
    pub fn gather(&self, x: MatRef<f64>, out: &mut Mat<f64>) {
        let (n, count, size) = (x.nrows(), self.count, self.size());
        sized(out, n * count, size);
        for e in 0..size {
            let target = out.col_as_slice_mut(e);
            for p in 0..count {
                let source = column(x, self.places[p * size + e]);
                for (i, v) in source.iter().enumerate() {
                    target[i * count + p] = *v;
                }
            }
        }
    }

    /// The adjoint of [`Grid::gather`]: adds every entry of a patch to its pixel (n×D).
    pub fn scatter(&self, patches: MatRef<f64>, mut out: MatMut<f64>) {
        let (n, count, size) = (out.nrows(), self.count, self.size());
        for e in 0..size {
            let source = column(patches, e);
            for p in 0..count {
                let pixel = self.places[p * size + e];
                for i in 0..n {
                    out[(i, pixel)] += source[i * count + p];
                }
            }
        }
    }
}
