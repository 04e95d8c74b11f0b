//! Container images: references, digests, registries, signatures, and the files inside.
//!
//! What a person or a template wrote is read and kept as it was written ([`Reference`]); what is fetched is called by the digest of its bytes
//! ([`Digest`]). [`registry`] asks a registry, [`verify`] judges offline whether an image is signed by those who should have signed it, and
//! [`contents`] takes a file out of its layers, for which [`minisig`] and [`sha256sum`] vouch. Nothing here decides whether an upgrade goes on:
//! it says what is there, what was proven, and what could not be asked.

pub mod contents;
mod digest;
pub mod document;
mod grammar;
mod location;
pub mod minisig;
mod reference;
pub mod registry;
pub mod sha256sum;
pub mod verify;

pub use digest::{Digest, Hashing, InvalidDigest, Mismatch};
pub use document::{Config, Descriptor, Document, Index, Manifest, Platform};
pub use location::{Location, Wanted};
pub use reference::{InvalidReference, Part, Problem, Reference};
pub use registry::{Registry, RegistryError};
