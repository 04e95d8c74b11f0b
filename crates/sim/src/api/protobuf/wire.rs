//! Protobuf on the wire: numbered fields, each a number or a run of bytes.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes, which no Kubernetes type has.
    Fixed,
}

/// The fields of a message, in their order.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn read(&mut self) -> Option<(u64, Held<'a>)> {
        let tag = self.varint()?;
        let held = match tag & 7 {
            0 => Held::Number(self.varint()?),
            1 => self.take(8).map(|_| Held::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Held::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Held::Fixed)?,
            _ => return None,
        };
        Some((tag >> 3, held))
    }
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Held<'a>), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_none() {
            self.0 = &[];
        }
        Some(read.ok_or(Broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes_are_told_apart() {
        let fields: Result<Vec<_>, _> = Fields::of(&[0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i']).collect();
        assert_eq!(fields, Ok(vec![(1, Held::Number(150)), (2, Held::Bytes(b"hi"))]));
    }

    #[test]
    fn a_message_that_ends_too_early_is_broken() {
        for bytes in [&[0x08][..], &[0x12, 0x05, b'h'], &[0xff; 12]] {
            assert_eq!(Fields::of(bytes).last(), Some(Err(Broken)));
        }
    }
}
