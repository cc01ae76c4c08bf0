//! Where the patches of an image are, images to rows of patches, and back.

use crate::error::{Error, Result};
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
    image: [usize; 3],
    patch: [usize; 2],
    stride: usize,
    colour: Colour,
    /// Number of columns that rows have at least: one more than the last one of a pixel.
    span: usize,
    /// Column of every entry of every patch, those of a patch together.
    places: Vec<usize>,
    count: usize,
}

impl Grid {
    /// Makes the list of patches, without padding: channel by channel (where a patch is of one), then row by row. `image` is
    /// H×W×C, `patch` h×w, both in pixels; patches are `stride` pixels apart. `columns` are the H·W·C input columns of the
    /// pixels, row by row with the channel last.
    ///
    /// # Errors
    /// [`Error::Shape`] for a patch that does not fit into the image or another number of columns, [`Error::Invalid`] for a
    /// size or stride of 0.
    pub fn new(
        image: [usize; 3],
        patch: [usize; 2],
        stride: usize,
        colour: Colour,
        columns: &[usize],
    ) -> Result<Self> {
        let [height, width, channels] = image;
        let [h, w] = patch;
        if image.contains(&0) || patch.contains(&0) || stride == 0 {
            return Err(Error::Invalid(format!(
                "sizes of images and patches and the stride are from 1 on, found images of {height}×{width}×{channels}, \
                 patches of {h}×{w} and a stride of {stride}"
            )));
        }
        if h > height || w > width {
            let expected = format!("at most {height}×{width}, as the image");
            return Err(Error::shape("a patch of an image", expected, format!("{h}×{w}")));
        }
        let pixels = height.checked_mul(width).and_then(|all| all.checked_mul(channels));
        if pixels != Some(columns.len()) {
            return Err(Error::shape(
                "columns of the pixels of an image",
                format!("{height}×{width}×{channels} of them"),
                columns.len(),
            ));
        }
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
        let span = columns.iter().max().map_or(0, |last| last + 1);
        Ok(Self { image, patch, stride, colour, span, places, count: outer * rows * cols })
    }

    /// Returns H, W, C: the size of an image in pixels, and its channels.
    pub fn image(&self) -> [usize; 3] {
        self.image
    }

    /// Returns h, w: the size of a patch in pixels.
    pub fn patch(&self) -> [usize; 2] {
        self.patch
    }

    /// Returns how many pixels patches are apart.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns which pixels a patch has.
    pub fn colour(&self) -> Colour {
        self.colour
    }

    /// Returns the number of pixels of an image H·W·C.
    pub fn pixels(&self) -> usize {
        self.image.iter().product()
    }

    /// Refuses rows of so many columns, if some pixel is in none of them.
    ///
    /// # Errors
    /// [`Error::Shape`] with both numbers.
    pub fn fits(&self, columns: usize) -> Result<()> {
        if self.span <= columns {
            return Ok(());
        }
        let [height, width, channels] = self.image;
        let expected =
            format!("{} columns, since pixels are as far as column {}", self.span, self.span - 1);
        Err(Error::shape(
            format!("rows of images of {height}×{width}×{channels} pixels"),
            expected,
            columns,
        ))
    }

    /// Returns the number of patches of an image.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of entries d of a patch.
    pub fn size(&self) -> usize {
        self.places.len() / self.count
    }

    /// Returns the input columns of the entries of a patch.
    pub fn columns(&self, patch: usize) -> &[usize] {
        &self.places[patch * self.size()..(patch + 1) * self.size()]
    }

    /// Gathers the patches of images (n×D), (n·P)×d, those of an image together.
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

    /// Applies the adjoint of [`Grid::gather`]: adds every entry of a patch to its pixel (n×D).
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
