//! Texts in other encodings than UTF-8, read as UTF-8.

use encoding_rs::{CoderResult, Decoder, Encoding};
use std::io::{self, Read};

/// Returns the encoding of a name such as `latin1`, `utf-16le` or `windows-1252`.
pub(super) fn named(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(name.trim().as_bytes())
}

/// Returns the encoding of a text: that of its byte order mark, else the one that was named, else UTF-8.
pub(super) fn of_text(start: &[u8], named: Option<&'static Encoding>) -> &'static Encoding {
    let marked = Encoding::for_bom(start).map(|(encoding, _)| encoding);
    marked.or(named).unwrap_or(encoding_rs::UTF_8)
}

/// Reads a text as UTF-8. What stands for no character becomes U+FFFD.
pub(super) struct Decoded<R> {
    inner: R,
    decoder: Decoder,
    input: Vec<u8>,
    /// Bytes of `input` that are still to be decoded.
    left: std::ops::Range<usize>,
    output: Vec<u8>,
    /// How much of `output` has been handed on.
    done: usize,
    ended: bool,
}

impl<R: Read> Decoded<R> {
    /// Creates a reader of a text in this encoding, with or without a byte order mark.
    pub fn new(inner: R, encoding: &'static Encoding) -> Self {
        const BUFFER: usize = 1 << 15;
        let decoder = encoding.new_decoder_with_bom_removal();
        let input = vec![0; BUFFER];
        Self { inner, decoder, input, left: 0..0, output: Vec::new(), done: 0, ended: false }
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.done == self.output.len() && !self.ended {
            let mut last = false;
            if self.left.is_empty() {
                let count = self.inner.read(&mut self.input)?;
                self.left = 0..count;
                last = count == 0;
            }
            // at most three bytes for each byte, and what the decoder has kept back
            self.output.resize(3 * self.left.len() + 16, 0);
            let input = &self.input[self.left.clone()];
            let (result, read, written, _) =
                self.decoder.decode_to_utf8(input, &mut self.output, last);
            self.left.start += read;
            self.output.truncate(written);
            self.done = 0;
            self.ended = last && result == CoderResult::InputEmpty;
        }
        let rest = &self.output[self.done..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.done += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], encoding: &'static Encoding) -> String {
        let mut text = String::new();
        Decoded::new(bytes, encoding).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn texts_in_other_encodings_become_utf8() {
        let text = "Größe,y\n1,é€\n".repeat(9000);
        let little: Vec<u8> =
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> =
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        assert_eq!(decoded(&little, of_text(&little, None)), text);
        assert_eq!(decoded(&big, of_text(&big, named("latin1"))), text);
        let (western, _, _) = encoding_rs::WINDOWS_1252.encode(&text);
        assert_eq!(decoded(&western, of_text(&western, named("latin1"))), text);
        assert_eq!(decoded(b"", named("utf-16le").unwrap()), "");
        assert_eq!(of_text(b"a,b", None), encoding_rs::UTF_8);
        assert!(named("klingon").is_none());
    }
}
