//! A short name for a long text.

/// FNV-1a: the same on every machine and in every build. Nothing is kept secret by it.
pub fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
