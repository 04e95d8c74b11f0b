//! Container images: references, digests, registries, signatures, and the files inside.
//!
//! What a person or a template wrote is read and kept as it was written ([`Reference`]); what is fetched is called by the digest of its bytes
//! ([`Digest`]). Nothing here decides whether an upgrade goes on: it says what is there, what was proven, and what could not be asked.

pub mod contents;
mod digest;
mod grammar;
pub mod minisig;
mod reference;
pub mod sha256sum;

pub use digest::{Digest, Hashing, InvalidDigest, Mismatch};
pub use reference::{InvalidReference, Part, Problem, Reference};
