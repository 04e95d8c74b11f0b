//! Names in paths and queries.

use std::fmt::Write as _;

/// A name as one segment of a path, or one value in a query: whatever it holds, it stays inside that.
pub fn segment(name: &str) -> String {
    let mut segment = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            segment.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}
