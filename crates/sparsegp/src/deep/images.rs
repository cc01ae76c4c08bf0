//! Layers from images to images (deep convolutional processes: Blomqvist, Kaski & Heinonen 2019): what is between images in rows, n×(P·maps) with maps last, and rows of patches, (n·P)×maps.

use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, sized};
use faer::reborrow::ReborrowMut;

/// Makes rows of patches from images, `count` patches each: entry (i P + p, m) is (i, p·maps + m).
pub(super) fn to_patches(images: MatRef<f64>, count: usize, maps: usize, out: &mut Mat<f64>) {
    let n = images.nrows();
    sized(out, n * count, maps);
    for m in 0..maps {
        let target = out.col_as_slice_mut(m);
        for p in 0..count {
            let source = column(images, p * maps + m).iter().enumerate();
            source.for_each(|(i, v)| target[i * count + p] = *v);
        }
    }
}

/// Does the opposite.
pub(super) fn to_images(patches: MatRef<f64>, count: usize, mut out: MatMut<f64>) {
    let maps = patches.ncols();
    for m in 0..maps {
        let source = column(patches, m);
        for p in 0..count {
            let target = column_mut(out.rb_mut(), p * maps + m).iter_mut().enumerate();
            target.for_each(|(i, t)| *t = source[i * count + p]);
        }
    }
}
