//! The wire format of Protocol Buffers, as far as a model of ONNX needs it
//! (<https://protobuf.dev/programming-guides/encoding>): whole numbers, texts, bytes and messages within messages.

/// A message that is written.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Writes a whole number, not below 0.
    pub(super) fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn text(&mut self, field: u64, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(&mut self, field: u64, value: &Self) -> &mut Self {
        self.bytes(field, &value.0)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation of the format.
    #[test]
    fn messages_are_those_of_the_documentation() {
        let mut one = Message::default();
        one.number(1, 150);
        let mut outer = Message::default();
        outer.text(2, "testing").message(3, &one);
        let expected =
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67, 0x1a, 0x03, 0x08, 0x96, 0x01];
        assert_eq!(outer.into_bytes(), expected);
    }
}
