//! Checksums of a model file, by which a bit that has changed is noticed.
//!
//! The last tensor, [`NAME`], holds a CRC-32 (which notices any change within 32 neighbouring bits) of every other tensor in the
//! order of the file, one of the header with its length, one of all these, and a word by which the end of a file is known before
//! anything of it is read.

use super::foreign;
use crate::error::{Error, Result};
use safetensors::SafeTensors;
use safetensors::tensor::Metadata;

/// The tensor of the checksums; its name is the last of those of bytes.
pub(super) const NAME: &str = "written.sums";
/// What a file with checksums ends with.
const END: &[u8; 8] = b"SPGPSUMS";
/// The first version of the layout that has them.
const SINCE: u64 = 2;

/// Returns the bytes of the checksums of so many tensors, of the header and of themselves, with the
/// word at the end.
pub(super) fn length(tensors: usize) -> usize {
    4 * (tensors + 2) + END.len()
}

/// Returns the header with the eight bytes of its length, if the file is long enough for it.
fn header(content: &[u8]) -> Option<&[u8]> {
    let length = u64::from_le_bytes(content.get(..8)?.try_into().ok()?);
    content.get(..usize::try_from(length).ok()?.checked_add(8)?)
}

fn damaged(what: &str) -> Error {
    Error::Invalid(format!(
        "is damaged: {what} is not what was written (its checksum differs); take a copy of the file, or fit again"
    ))
}

/// Returns a number of four bytes that stands so many bytes before the end.
fn before_end(content: &[u8], bytes: usize) -> Option<u32> {
    let start = content.len().checked_sub(bytes)?;
    Some(u32::from_le_bytes(content[start..].first_chunk::<4>().copied()?))
}

/// Checks the header of a file that has checksums, before it is read.
///
/// # Errors
/// [`Error::Invalid`] if it is damaged.
pub(super) fn check_header(content: &[u8]) -> Result<()> {
    if !content.ends_with(END) {
        return Ok(());
    }
    let sum = before_end(content, END.len() + 8);
    match header(content).map(crc32fast::hash) == sum {
        true => Ok(()),
        false => Err(damaged("its header")),
    }
}

/// Checks every tensor. A file of this version has checksums, or it is damaged at its end.
///
/// # Errors
/// [`Error::Invalid`] with the name of the tensor that is damaged.
pub(super) fn check(content: &[u8], metadata: &Metadata, version: u64) -> Result<()> {
    let has = metadata.tensors().contains_key(NAME);
    if version < SINCE && !has && !content.ends_with(END) {
        return Ok(());
    }
    let own = damaged(&format!("tensor `{NAME}`"));
    let names = metadata.offset_keys();
    let (Some(start), [tensors @ .., last]) = (header(content).map(<[u8]>::len), &names[..]) else {
        return Err(own);
    };
    let ranges = metadata.tensors();
    let range = |name: &String| {
        let (from, to) = ranges.get(name)?.data_offsets;
        content.get(start.checked_add(from)?..start.checked_add(to)?)
    };
    let sums = range(last).filter(|s| last == NAME && s.len() == length(tensors.len()));
    let Some(sums) = sums.filter(|s| s.ends_with(END)) else { return Err(own) };
    let (covered, _) = sums.split_at(sums.len() - END.len() - 4);
    if Some(crc32fast::hash(covered)) != before_end(content, END.len() + 4) {
        return Err(own);
    }
    for (name, sum) in tensors.iter().zip(covered.chunks_exact(4)) {
        let bytes = range(name).ok_or_else(|| foreign(format!("tensor `{name}` is cut off")))?;
        if crc32fast::hash(bytes).to_le_bytes() != *sum {
            return Err(damaged(&format!("tensor `{name}`")));
        }
    }
    Ok(())
}

/// Recomputes the checksums of a file that was changed on purpose. A content without any stays as
/// it is.
pub fn reseal(content: &mut [u8]) {
    let Some(start) = header(content).map(<[u8]>::len) else { return };
    let Ok((_, metadata)) = SafeTensors::read_metadata(content) else { return };
    let mut sums = Vec::new();
    let ranges = metadata.tensors();
    let mut end = None;
    for name in metadata.offset_keys() {
        let Some(info) = ranges.get(&name) else { return };
        let (from, to) = (start + info.data_offsets.0, start + info.data_offsets.1);
        let Some(bytes) = content.get(from..to) else { return };
        match name == NAME {
            true => end = Some((from, to)),
            false => sums.extend(crc32fast::hash(bytes).to_le_bytes()),
        }
    }
    sums.extend(crc32fast::hash(&content[..start]).to_le_bytes());
    let own = crc32fast::hash(&sums);
    sums.extend(own.to_le_bytes());
    sums.extend(END);
    if let Some((from, to)) = end.filter(|(from, to)| to - from == sums.len()) {
        content[from..to].copy_from_slice(&sums);
    }
}
