//! Reading the specification of a convolutional kernel.

use super::{Colour, Convolutional, Grid};
use crate::error::Result;
use crate::kernels::registry::{Args, build as build_kernel};
use crate::kernels::{Inputs, Kernel, white};
use crate::params::{Param, Shape, Transform};
use serde_json::{Value, json};

/// Returns a list of whole numbers from 1 on.
fn sizes<const N: usize>(args: &Args<'_>, name: &str, otherwise: [usize; N]) -> Result<[usize; N]> {
    let Some(given) = args.get(name) else { return Ok(otherwise) };
    let numbers: Option<Vec<usize>> = given.as_array().and_then(|all| {
        all.iter().map(|v| v.as_u64().filter(|v| *v > 0).map(|v| v as usize)).collect()
    });
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| {
        args.wrong(format!("`{name}` is a list of {N} whole numbers from 1 on, not {given}"))
    })
}

/// Returns whether a kernel, or one that it is made of, is white noise.
fn has_white(json: &Value) -> bool {
    let is = json.get("type").and_then(Value::as_str) == Some(white::ENTRY.name);
    is || match json {
        Value::Object(entries) => entries.values().any(has_white),
        Value::Array(all) => all.iter().any(has_white),
        _ => false,
    }
}

pub(super) fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(read(&args)?))
}

pub(super) fn read(args: &Args<'_>) -> Result<Convolutional> {
    args.allow(&[
        "image",
        "patch",
        "stride",
        "colour",
        "normalise",
        "weighted",
        "weights",
        "base",
        "active_dims",
    ])?;
    let (dims, dims_given) = args.active_dims()?;
    let side = (dims.len() as f64).sqrt().round() as usize;
    if args.get("image").is_none() && side * side != dims.len() {
        return Err(args.wrong(format!(
            "say what `image=[height, width, channels]` the {} columns are",
            dims.len()
        )));
    }
    let image = sizes(args, "image", [side, side, 1])?;
    let pixels: usize = image.iter().product();
    if pixels != dims.len() {
        return Err(args.wrong(format!(
            "an image of {}×{}×{} has {pixels} pixels, and there are {} input columns",
            image[0],
            image[1],
            image[2],
            dims.len()
        )));
    }
    let patch = sizes(args, "patch", [3.min(image[0]), 3.min(image[1])])?;
    if patch[0] > image[0] || patch[1] > image[1] {
        return Err(args.wrong(format!(
            "a patch of {}×{} does not fit into an image of {}×{}",
            patch[0], patch[1], image[0], image[1]
        )));
    }
    let stride = args.whole("stride", 1)?.unwrap_or(1) as usize;
    let flag = |name: &str, default: bool| match args.get(name) {
        None => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(args.wrong(format!("`{name}` is true or false, not {other}"))),
    };
    let (normalise, weighted) = (flag("normalise", true)?, flag("weighted", false)?);
    let colour = match args.get("colour").map(|v| v.as_str().unwrap_or_default()) {
        None | Some("channels") => Colour::Channels,
        Some("joint") => Colour::Joint,
        Some(_) => return Err(args.wrong("`colour` is `channels` or `joint`".into())),
    };
    let grid = Grid::new(image, patch, stride, colour, &dims)?;
    let base = args.get("base").cloned().unwrap_or_else(|| json!("rbf"));
    let base = build_kernel(&base, Inputs::unnamed(grid.size()))?;
    // the variance of an image sums over pairs of patches, and equal patches are one there; white noise would tell them apart
    if has_white(&base.to_json()) {
        return Err(args.wrong(format!(
            "its base has `{}` noise, which patches of equal pixels cannot have apart: add it to the kernel of images \
             instead, `convolutional(…) + {0}`",
            white::ENTRY.name
        )));
    }
    let count = grid.count();
    let mut weights = Param::with(vec![1.0; count], Shape::Vector(count), Transform::Identity);
    weights.frozen = !weighted && args.get("weights").is_none();
    args.read("weights", &mut weights)?;
    let inputs = args.inputs.dim;
    Ok(Convolutional { base, weights, grid, dims, dims_given, normalise, inputs })
}
