//! Changes to an input, by chance and the same for the same seed.

/// Numbers that look random (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than this, and 0 for nothing.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    /// A piece of some bytes.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below(length - start + 1)
    }
}

/// Bytes at which lengths and signs go wrong.
const EDGES: &[u8] = &[0, 1, 0x7f, 0x80, 0xff, b'0', b'7', b'9', b' ', b'/', b'.', b'\n', b'='];

/// One change.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], words: &[&str], random: &mut Random) {
    let at = random.below(input.len());
    match random.below(10) {
        0 => flip(input, at, random),
        1 => set(input, at, random.of(EDGES).copied()),
        2 => input.truncate(at),
        3 => drop(input.drain(random.range(input.len()))),
        4 => {
            let piece = input[random.range(input.len())].to_vec();
            input.splice(at..at, piece);
        }
        // The head of one and the tail of another.
        5 => {
            input.truncate(at);
            input.extend(&other[random.below(other.len())..]);
        }
        // Whole blocks, where there are any: entries of an archive change places.
        6 => {
            let blocks = random.range(other.len() / 512);
            let at = at / 512 * 512;
            input.splice(at..at, other[blocks.start * 512..blocks.end * 512].iter().copied());
        }
        7 => number(input, random),
        8 => {
            let word = random.of(words).map_or(&[][..], |word| word.as_bytes());
            input.splice(at..at, word.iter().copied());
        }
        _ => {
            let word = random.of(words).map_or(&[][..], |word| word.as_bytes());
            let end = input.len().min(at + word.len());
            input.splice(at..end, word.iter().copied());
        }
    }
}

fn flip(input: &mut [u8], at: usize, random: &mut Random) {
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn set(input: &mut [u8], at: usize, byte: Option<u8>) {
    if let (Some(place), Some(byte)) = (input.get_mut(at), byte) {
        *place = byte;
    }
}

/// Another number of as many digits, where there is one: lengths are numbers.
fn number(input: &mut [u8], random: &mut Random) {
    let digits: Vec<usize> = (0..input.len()).filter(|at| input[*at].is_ascii_digit()).collect();
    if let Some(at) = random.of(&digits) {
        input[*at] = b"0123456789"[random.below(10)];
    }
}
