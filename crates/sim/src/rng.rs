//! Seeded randomness: one small generator, so that a seed means the same run on every machine and with every library version.

use std::time::Duration;

/// FNV-1a: the same number for the same bytes, on every machine and for ever.
pub fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// SplitMix64: tiny, well distributed, and its output for a seed will never change under us.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent generator for one part of the simulation, so that a draw in one part does not shift the others.
    #[must_use]
    pub fn fork(&mut self, label: &str) -> Self {
        Self(self.next() ^ hash(label.bytes()))
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "an endless generator is no iterator worth the name")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// True once in `n` times on average; never for 0.
    pub fn one_in(&mut self, n: u64) -> bool {
        n != 0 && self.below(n) == 0
    }

    /// A duration between the two, in whole milliseconds.
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let (low, high) = (millis(low), millis(high));
        Duration::from_millis(low + self.below(high.saturating_sub(low) + 1))
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(items.len() as u64)).unwrap_or(0);
        items.get(index)
    }
}
